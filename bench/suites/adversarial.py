"""Costs that hurt: the engine on the CPU against rivals and our own other algorithms.

The problems are those of `graphs.adversarial` at three sizes each, and the worst that
`python -m bench adversary` has found. What is timed is as in `sparse_assignment`: rivals are called
in turns with the engine, and so are our own algorithms. SciPy solves dense costs by
`linear_sum_assignment`, lapx (wheel `lapx`) by `lapjvx`, OR-tools and SPRAL the sparse ones.

The report tells how many times longer the best rival and the best of our own algorithms take, and
how the engine's time grows with n: the exponent is the slope of log(seconds) against log(n) over
the sizes of a family.
"""

from __future__ import annotations

import importlib.util
import math
import operator
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

import gpumatch as gm
from bench.harness import Contender
from bench.report.tables import (
    Graph,
    Time,
    describe_run,
    failures,
    markdown,
    mean_and_least,
    milliseconds,
    section,
    time_of,
)
from bench.suites.sparse_assignment import (
    ORTOOLS,
    OURS,
    SCIPY,
    SPRAL,
    Engine,
    InTurns,
    Solver,
    SparseInstance,
    SparseProblem,
    ortools,
    ratio_to,
    spral,
)
from graphs import adversarial

THREADS = 1
THRESHOLD = 0.01
LAPX = "lapx"
OWN = ("shortest-augmenting-path", "auction")
RIVALS = (ORTOOLS, SPRAL, SCIPY, LAPX)


# -- problems ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AdversarialInstance(SparseInstance):
    """A family of `graphs.adversarial`, by its name and parameters."""

    suffix: ClassVar[str] = ".adversarial.npz"

    @property
    def is_dense(self) -> bool:
        return self.family in adversarial.DENSE

    def takes(self, contender: str) -> bool:
        """Whether a contender is to be measured on it."""
        if contender in (ORTOOLS, SPRAL):
            return not self.is_dense
        return self.is_dense or contender not in (SCIPY, LAPX)

    def original(self) -> csr_array:
        """The costs; dense ones as a matrix of which all is stored."""
        family, *parameters = self.source
        costs = adversarial.make(family, *parameters, seed=self.seed)
        if not self.is_dense:
            return costs
        cols = np.tile(np.arange(costs.shape[1], dtype=np.int32), costs.shape[0])
        ends = np.arange(0, costs.size + 1, costs.shape[1])
        return csr_array((costs.ravel(), cols, ends), shape=costs.shape)


class AdversarialProblem(SparseProblem):
    """A problem's costs, as contenders take them."""

    def __init__(self, instance: AdversarialInstance, matrix: csr_array, device: str) -> None:
        super().__init__(instance, matrix, device)
        self.is_dense = instance.is_dense

    @cached_property
    def costs(self) -> Any:
        """The matrix, or the array of dense costs."""
        return self.matrix.data.reshape(self.matrix.shape) if self.is_dense else self.matrix


problem = AdversarialProblem


# -- contenders ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Default(Engine):
    """The library's default, on so many threads; its certificate is checked once."""

    def costs(self, problem: Any) -> Any:
        return problem.costs


def own(algorithm: str, threads: int) -> Callable[[Any], Solver]:
    """Another algorithm of ours."""

    def prepare(problem: Any) -> Solver:
        def call() -> Callable[[], tuple[int, float]]:
            a = gm.assign(problem.costs, algorithm=algorithm, backend="cpu", threads=threads)
            return lambda: (a.size, a.objective)

        return call

    return prepare


def scipy(problem: Any) -> Solver:
    """`scipy.optimize.linear_sum_assignment`."""
    from scipy.optimize import linear_sum_assignment

    def call() -> Callable[[], tuple[int, float]]:
        rows, cols = linear_sum_assignment(problem.costs)
        return lambda: (rows.size, float(problem.costs[rows, cols].sum()))

    return call


def lapx(problem: Any) -> Solver:
    """`lap.lapjvx`, the algorithm of Jonker and Volgenant."""
    import lap

    def call() -> Callable[[], tuple[int, float]]:
        total, rows, _ = lap.lapjvx(problem.costs, extend_cost=True)
        return lambda: (len(rows), float(total))

    return call


def contenders(device: str, threads: int) -> list[Contender]:
    """The engine, the rivals that are installed, and our own other algorithms."""
    engine = Default(OURS, threads)
    known: list[Contender] = [engine]
    if importlib.util.find_spec("ortools") is not None:
        known.append(InTurns(ORTOOLS, ortools, engine))
    if "SPRAL" in os.environ:
        known.append(InTurns(SPRAL, spral, engine))
    known.append(InTurns(SCIPY, scipy, engine))
    if importlib.util.find_spec("lap") is not None:
        known.append(InTurns(LAPX, lapx, engine))
    return [*known, *(InTurns(name, own(name, threads), engine) for name in OWN)]


# -- instances -----------------------------------------------------------------------------------

SPARSE: dict[str, tuple[tuple[Any, ...], ...]] = {
    "nearest_matched": ((7_500, 16), (30_000, 16), (100_000, 24)),
    "far_clusters": ((5_000,), (20_000,), (80_000,)),
    "log_normal": ((5_000,), (20_000,), (80_000,)),
    "decades": ((5_000,), (20_000,), (80_000,)),
    "few_dear": ((5_000,), (20_000,), (80_000,)),
    "wide_integers": ((12_500,), (50_000,), (200_000,)),
}
DENSE: dict[str, tuple[tuple[Any, ...], ...]] = {
    "few_zeros": ((500,), (1_000,), (2_000,)),
    "line": ((500,), (1_000,), (2_000,)),
    "clusters": ((500,), (1_000,), (2_000,)),
    "outer": ((500,), (1_000,), (2_000,)),
}


def instances(quick: bool, data: str | None) -> list[AdversarialInstance]:
    """Each family at three sizes; one is of normal points against points twice as wide."""
    if quick:
        return [_made("far_clusters", 300), _made("line", 60)]
    sizes = {**SPARSE, **DENSE}
    made = [_made(family, *given) for family, all_given in sizes.items() for given in all_given]
    return made + [_made("line", n, n, 2.0) for n in (500, 1_000, 2_000)]


def _made(family: str, *parameters: Any) -> AdversarialInstance:
    name = "-".join([family, *map(str, parameters)])
    suits_spral = family not in ("log_normal", "decades", "few_dear")  # exp(-cost) underflows
    kind = f"{family} {parameters[2]:g}" if family == "line" and len(parameters) > 2 else family
    return AdversarialInstance(
        name, kind, (family, *parameters), "full", 1, suits_spral=suits_spral
    )


def warming(quick: bool) -> list[AdversarialInstance]:
    """Floats and integers, sparse and dense, for which no kernel is compiled twice."""
    names = ("nearest_matched", "log_normal", "wide_integers")
    return [*(_made(name, 3_000) for name in names), *(_made(name, 300) for name in DENSE)]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times and ratios problem by problem, their means, and the exponents by families."""
    graphs = data["graphs"]
    rows = [
        [
            name,
            graph["rows"],
            graph["entries"],
            *(milliseconds(time_of(graph, code)) for code in (OURS, *RIVALS, *OWN)),
            best_of(graph, RIVALS),
            best_of(graph, OWN),
        ]
        for name, graph in graphs.items()
    ]
    header = ["costs", "rows", "entries", *(f"{code} ms" for code in (OURS, *RIVALS, *OWN))]
    header += ["best rival / engine", "best own / engine"]
    exponents = [[family, f"{slope:.2f}"] for family, slope in exponents_of(graphs).items()]
    return "\n\n".join(
        [
            *(describe_run(run) for run in data["runs"]),
            *section("Costs that hurt", markdown(header, rows)),
            *_means(graphs, threshold),
            *section("Exponents", markdown(["family", "exponent of time against n"], exponents)),
            *failures(data),
        ]
    )


def best_of(graph: Graph, names: tuple[str, ...]) -> Time | None:
    """How many times longer the fastest of these takes than the engine."""
    known = [ratio for name in names if (ratio := ratio_to(graph, name)) is not None]
    return min(known, key=operator.attrgetter("seconds"), default=None)


def exponents_of(graphs: dict[str, Graph]) -> dict[str, float]:
    """The slope of log(seconds of the engine) against log(rows), for families of several sizes."""
    points: dict[str, list[tuple[float, float]]] = {}
    for graph in graphs.values():
        taken = time_of(graph, OURS)
        if taken is not None:
            point = math.log(graph["rows"]), math.log(taken.seconds)
            points.setdefault(graph["family"], []).append(point)
    return {
        family: statistics.linear_regression(*zip(*known)).slope
        for family, known in points.items()
        if len({size for size, _ in known}) > 1
    }


def _means(graphs: dict[str, Graph], threshold: float) -> list[str]:
    lines = []
    for names, who in ((RIVALS, "the best rival"), (OWN, "the best of our own algorithms")):
        ratios = []
        for name, graph in graphs.items():
            ratio, taken = best_of(graph, names), time_of(graph, OURS)
            longer = ratio.seconds if ratio is not None else 0.0
            if taken is not None and max(longer, 1.0) * taken.seconds >= threshold and longer:
                ratios.append((Time(longer), name))
        if ratios:
            mean = mean_and_least(ratios, " as the engine")
            lines.append(f"Where either takes {threshold:g} s or more, {who} takes {mean}.")
    return lines
