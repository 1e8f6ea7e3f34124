"""Costs that hurt: the engine on CPU and GPU against rivals and our own other algorithms.

The problems are those of `graphs.adversarial` at three sizes each; of some, rectangles or rounded
costs too, which `python -m bench adversary` has found to hurt. What is timed is as in
`bench.sparse_solvers`: rivals are called in turns with the engine, and so are our own algorithms.
SciPy solves dense costs by `linear_sum_assignment`, lapx (wheel `lapx`) by `lapjvx`, OR-tools and
SPRAL the sparse ones.

The report tells how many times longer the best rival and the best of our own algorithms take, and
how the engine's time grows with n: the exponent is the slope of log(seconds) against log(n) over
the sizes of a family.
"""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

import gpumatch as gm
from bench.adversary import Problem
from bench.harness import Contender, Overrun
from bench.peers import is_installed
from bench.report.tables import (
    Graph,
    Time,
    markdown,
    mean_and_least,
    milliseconds,
    page,
    section,
    time_of,
    times_in_turns,
    work_in_turns,
)
from bench.sparse_costs import ON_GPU, OURS, SPRAL, SparseInstance, SparseProblem
from bench.sparse_solvers import ORTOOLS, SCIPY, Engine, InTurns, Solver, rivals_in_turns
from graphs import adversarial

THREADS = 1
THRESHOLD = 0.01
LAPX = "lapx"
OWN = ("shortest-augmenting-path", "auction")
RIVALS = (ORTOOLS, SPRAL, SCIPY, LAPX)
COLUMNS = (OURS, ON_GPU, *RIVALS, *OWN)
LONGEST = 40.0  # seconds after which our other algorithms stop
LARGE = 50_000  # rows from which a GPU must be ahead


# -- problems ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AdversarialInstance(SparseInstance):
    """A problem of `bench.adversary`, by its fields."""

    suffix: ClassVar[str] = ".adversarial.npz"

    @property
    def problem(self) -> Problem:
        """The family, its parameters, and what is changed of its costs."""
        return Problem(*self.source)

    def takes(self, contender: str) -> bool:
        """True if a contender is to be measured on it."""
        is_dense = self.problem.is_dense
        if contender == ORTOOLS:
            return not is_dense and self.problem.rows == 1  # it takes squares
        if contender == SPRAL:
            return not is_dense and self.suits_spral
        return is_dense or contender not in (SCIPY, LAPX)

    def original(self) -> csr_array:
        """The costs; dense ones as a matrix of which all is stored."""
        costs = self.problem.costs()
        if not self.problem.is_dense:
            return costs
        cols = np.tile(np.arange(costs.shape[1], dtype=np.int32), costs.shape[0])
        ends = np.arange(0, costs.size + 1, costs.shape[1])
        return csr_array((costs.ravel(), cols, ends), shape=costs.shape)


class AdversarialProblem(SparseProblem):
    """A problem's costs, as contenders take them."""

    def __init__(self, instance: AdversarialInstance, matrix: csr_array, device: str) -> None:
        super().__init__(instance, matrix, device)
        self.is_dense = instance.problem.is_dense

    @cached_property
    def costs(self) -> Any:
        """The matrix, or the array of dense costs."""
        return self.matrix.data.reshape(self.matrix.shape) if self.is_dense else self.matrix

    @cached_property
    def on_gpu(self) -> Any:
        """The costs on a GPU."""
        import cupy

        return cupy.asarray(self.costs) if self.is_dense else super().on_gpu


problem = AdversarialProblem


# -- contenders ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Default(Engine):
    """The library's default, on so many threads; its certificate is checked once."""

    def costs(self, problem: Any) -> Any:
        return problem.on_gpu if self.backend == "cuda" else problem.costs


def own(algorithm: Any, threads: int) -> Callable[[Any], Solver]:
    """Another algorithm of ours."""

    def prepare(problem: Any) -> Solver:
        def call() -> Callable[[], tuple[int, float]]:
            a = gm.assign(
                problem.costs, algorithm=algorithm, backend="cpu", threads=threads,
                time_limit=LONGEST,
            )  # fmt: skip
            if not a.proven:
                raise Overrun
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
    if device == "cuda":
        known.append(Default(ON_GPU, threads, "cuda"))
    known += [*rivals_in_turns(engine), InTurns(SCIPY, scipy, engine)]
    if is_installed("lap"):
        known.append(InTurns(LAPX, lapx, engine))
    return [*known, *(InTurns(name, own(name, threads), engine) for name in OWN)]


# -- instances -----------------------------------------------------------------------------------

SIZES = {"nearest_matched": (7_500, 30_000, 100_000), "wide_integers": (12_500, 50_000, 200_000)}
SPARSE_SIZES, DENSE_SIZES = (5_000, 20_000, 80_000), (500, 1_000, 2_000)
UNDERFLOW = ("log_normal", "decades", "few_dear")
"""Families whose exp(-cost), which SPRAL wants, is 0 for many entries."""

FOUND: tuple[tuple[str, dict[str, float], str, float], ...] = (
    ("log_normal", {"n": 522, "degree": 21, "sigma": 31.5056}, "squared", 1.0),
    ("wide_integers", {"n": 1105, "degree": 23, "high": 4879427913377}, "few values", 1.0),
    ("log_normal", {"n": 747, "degree": 21, "sigma": 29.5319}, "squared", 1.0),
    ("wide_integers", {"n": 2206, "degree": 23, "high": 26805332305896}, "few values", 1.0),
    ("nearest_matched", {"n": 2110, "k": 15, "dimension": 1}, "none", 1.0),
    ("nearest_matched", {"n": 2458, "k": 59, "dimension": 1}, "squared", 1.0),
    ("far_clusters", {"n": 1221, "k": 11, "share": 0.505103, "distance": 473.055}, "squared", 1.0),
    ("nearest_matched", {"n": 1257, "k": 15, "dimension": 1}, "none", 1.0),
    ("nearest_matched", {"n": 1257, "k": 15, "dimension": 1}, "squared", 1.0),
    ("far_clusters", {"n": 2623, "k": 2, "share": 0.505103, "distance": 738.639}, "squared", 0.9),
    ("decades", {"n": 1283, "degree": 3, "exponent": 13.3242}, "squared", 1.0),
    ("nearest_matched", {"n": 2257, "k": 12, "dimension": 1}, "many values", 1.0),
    (
        "far_clusters",
        {"n": 3904, "k": 2, "share": 0.52258, "distance": 1021.25},
        "many values",
        1.0,
    ),
    ("decades", {"n": 531, "degree": 24, "exponent": 23.3317}, "squared", 1.0),
    ("wide_integers", {"n": 2970, "degree": 22, "high": 5069698778024}, "few values", 1.0),
    ("far_clusters", {"n": 1221, "k": 25, "share": 0.505103, "distance": 637.684}, "squared", 0.9),
    ("log_normal", {"n": 747, "degree": 21, "sigma": 31.4572}, "none", 1.0),
    ("far_clusters", {"n": 1221, "k": 11, "share": 0.505103, "distance": 637.684}, "integers", 0.9),
    ("nearest_matched", {"n": 673, "k": 25, "dimension": 1}, "many values", 1.0),
    ("nearest_matched", {"n": 763, "k": 19, "dimension": 1}, "many values", 1.0),
    (
        "far_clusters",
        {"n": 2798, "k": 5, "share": 0.197112, "distance": 267.877},
        "many values",
        1.0,
    ),
    (
        "far_clusters",
        {"n": 1943, "k": 4, "share": 0.309926, "distance": 270.41},
        "many values",
        1.0,
    ),
    (
        "far_clusters",
        {"n": 1917, "k": 10, "share": 0.146426, "distance": 270.938},
        "many values",
        1.0,
    ),
)
"""What `python -m bench adversary` found to be the worst, of each family and change at one size."""
FOUND_SIZES = 1, 2, 4  # times their own


def instances(quick: bool, data: str | None) -> list[AdversarialInstance]:
    """Each family at three sizes; some as rectangles, with rounded costs, or in another form."""
    if quick:
        return [_made("far_clusters", 300), _made("line", 60), _made("line", 60, width=2.0)]
    made = [_made(name, n) for name in adversarial.SPARSE for n in SIZES.get(name, SPARSE_SIZES)]
    made += [
        _made(name, n, change="few values")
        for name in ("far_clusters", "few_dear")
        for n in SPARSE_SIZES
    ]
    made += [
        _made(name, n, rows=rows)
        for name, rows in (("nearest_matched", 0.9), ("wide_integers", 0.5))
        for n in SIZES[name]
    ]
    made += [_made(name, n) for name in adversarial.DENSE for n in DENSE_SIZES]
    made += [_made("line", n, width=2.0) for n in DENSE_SIZES]
    made.append(_made("nearest_matched", 100_000, k=24))  # one size: exponents are at fixed degree
    made += [_made(name, n, rows=0.7) for name in ("line", "clusters") for n in DENSE_SIZES]
    return made + [
        _found(k, times * int(own["n"]), family, own, change, rows)
        for k, (family, own, change, rows) in enumerate(FOUND, 1)
        for times in FOUND_SIZES
    ]


def _found(
    k: int, n: int, family: str, parameters: dict[str, float], change: str, rows: float
) -> AdversarialInstance:
    """The k-th of the problems that a search has found, with so many rows."""
    kind = f"found {k} {family}" + (f" rows {rows:g}" if rows < 1 else "")
    source = family, {**parameters, "n": n}, change, None, rows
    return AdversarialInstance(
        f"{kind} {n}".replace(" ", "-"), kind, source, suits_spral=family not in UNDERFLOW
    )


def _made(
    family: str, n: int, change: str = "none", rows: float = 1.0, **parameters: float
) -> AdversarialInstance:
    """The problem of such a size; nearest points have 16 neighbours, unless others are given."""
    is_dense = family in adversarial.DENSE
    kind = " ".join(
        [
            *(family, *(f"{name} {value:g}" for name, value in parameters.items())),
            *([change] if change != "none" else []),
            *([f"rows {rows:g}"] if rows < 1 else []),
        ]
    )
    if family == "nearest_matched":
        parameters = {"k": 16, **parameters}
    source = family, {"nrows" if is_dense else "n": n, **parameters}, change, None, rows
    return AdversarialInstance(
        f"{kind} {n}".replace(" ", "-"), kind, source, suits_spral=family not in UNDERFLOW
    )


def warming(quick: bool) -> list[AdversarialInstance]:
    """Floats and integers, sparse and dense, for which no kernel is compiled twice."""
    names = ("nearest_matched", "log_normal", "wide_integers")
    dense = [_made(name, 300) for name in adversarial.DENSE]
    if not quick:
        dense.append(_made("clusters", 1_500))  # small ones need neither known columns nor auctions
    return [*(_made(name, 3_000) for name in names), *dense]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times and ratios problem by problem, their means, and the exponents by families."""
    graphs = data["graphs"]
    rows = [
        [
            name,
            graph["rows"],
            graph["entries"],
            *(milliseconds(time_of(graph, code)) for code in COLUMNS),
            *(best_of(graph, RIVALS, ratio_of) for ratio_of in (_times, work_in_turns)),
            *(best_of(graph, OWN, ratio_of) for ratio_of in (_times, work_in_turns)),
        ]
        for name, graph in graphs.items()
    ]
    header = ["costs", "rows", "entries", *(f"{code} ms" for code in COLUMNS)]
    header += ["best rival / engine", "by processor time", "best own / engine", "by processor time"]
    exponents = [[family, f"{slope:.2f}"] for family, slope in exponents_of(graphs).items()]
    return page(
        data,
        section("Costs that hurt", markdown(header, rows)),
        _means(graphs, threshold),
        _on_gpu(graphs),
        section("Exponents", markdown(["family", "exponent of time against n"], exponents)),
    )


def _times(graph: Graph, name: str) -> Time | None:
    return times_in_turns(graph, name, OURS)


def best_of(
    graph: Graph,
    names: tuple[str, ...],
    ratio_of: Callable[[Graph, str], Time | None] = _times,
) -> Time | None:
    """How many times longer the fastest of these takes than the engine."""
    known = [ratio for name in names if (ratio := ratio_of(graph, name)) is not None]
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
        for ratio_of, how in ((_times, ""), (work_in_turns, " of processor time")):
            ratios = []
            for name, graph in graphs.items():
                ratio, taken = best_of(graph, names, ratio_of), time_of(graph, OURS)
                longer = ratio.seconds if ratio is not None else 0.0
                if taken is not None and max(longer, 1.0) * taken.seconds >= threshold and longer:
                    ratios.append((Time(longer), name))
            if ratios:
                mean = mean_and_least(ratios, f" as the engine{how}")
                lines.append(f"Where either takes {threshold:g} s or more, {who} takes {mean}.")
    return lines


def _on_gpu(graphs: dict[str, Graph]) -> list[str]:
    """How many times longer the CPU takes than the GPU on large problems."""
    ratios = [
        (Time(ours.seconds / theirs.seconds), name)
        for name, graph in graphs.items()
        if graph["rows"] >= LARGE
        and (ours := time_of(graph, OURS)) is not None
        and (theirs := time_of(graph, ON_GPU)) is not None
    ]
    if not ratios:
        return []
    mean = mean_and_least(ratios, " as on the GPU")
    return [f"From {LARGE:,} rows on, the engine on the CPU takes {mean}."]
