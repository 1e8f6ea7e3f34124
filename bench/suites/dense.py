"""Dense assignment on the CPU: `linear_sum_assignment` of ours, of SciPy, and lapx.

What is timed is the whole call from a NumPy matrix to the pairs, warm, with the library's defaults.
That is the change for SciPy's users if they change an import. Ours and SciPy's are called in turns,
because processors change their pace from second to second. If problems are small, a run solves a
stack of matrices, once each, and the mean counts, because processors learn the branches of a search
that is repeated on one matrix.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

import gpumatch as gm
from bench import solvers
from bench.costs import CostInstance, Matrices, geom, uniform, wide
from bench.harness import ROUNDING, Contender, Limits, Result, Sample, repeat
from bench.report.tables import (
    Graph,
    Time,
    markdown,
    means,
    milliseconds,
    page,
    section,
    time_of,
    times_in_turns,
)

THREADS = 2
THRESHOLD = 0.0  # every problem counts
OURS, SCIPY = "gpumatch", "scipy"
PEERS = (SCIPY, "lapx")
FACTORS = (0.1, 1.0, 10.0)
SIZES = (3, 5, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000)
FEW = 50  # rows up to which there is a stack
STACK = 100  # matrices in it
WIDE = (10, 30, 100, 200)  # rows of problems with twice as many columns
LARGE = 5000
WHOLE = ("machol_wien", "constant")  # the same for every seed
KINDS = {  # of costs: the family, and how its numbers are stored
    **{
        family: (family, "float64") for family in ("uniform_float", "geom2", "low_rank", "two_cost")
    },
    **{family: (family, "int64") for family in WHOLE},
    "machol_wien float": ("machol_wien", "float64"),
}
STORED = {"big-endian": ("uniform_float", ">f8"), "half": ("uniform_float", "float16")}


# -- contenders and problems ---------------------------------------------------------------------

problem = Matrices


@dataclass(frozen=True)
class SciPysName:
    """`gpumatch.optimize.linear_sum_assignment`, on all cores, or on one if it needs no more."""

    name: str

    def measure(self, problem: Matrices, limits: Limits) -> Result:
        ours = _timed(gm.optimize.linear_sum_assignment, problem)
        matrices = problem.on("cpu")
        return repeat(lambda: _mean([ours(matrix) for matrix in matrices]), limits)


@dataclass(frozen=True)
class InTurns:
    """SciPy's function in turns with ours, whose seconds are kept as ``"ours"``."""

    name: str

    def measure(self, problem: Matrices, limits: Limits) -> Result:
        ours = _timed(gm.optimize.linear_sum_assignment, problem)
        theirs = _timed(scipy.optimize.linear_sum_assignment, problem)
        matrices = problem.on("cpu")
        seconds: list[float] = []

        def sample() -> Sample:
            pairs = [(ours(matrix), theirs(matrix)) for matrix in matrices]
            own, other = (_mean([*samples]) for samples in zip(*pairs))
            totals = own.more["objective"], other.more["objective"]
            if not math.isclose(*totals, rel_tol=ROUNDING):
                raise ValueError("ours is {}, theirs {}".format(*totals))
            seconds.append(own.seconds)
            return other

        result = repeat(sample, limits)
        return {**result, "ours": seconds[-len(result["seconds"]) :]}


def _timed(function: Callable[..., Any], problem: Matrices) -> Callable[[np.ndarray], Sample]:
    def call(matrix: np.ndarray) -> Sample:
        begin = time.perf_counter()
        rows, cols = function(matrix, problem.maximize)
        seconds = time.perf_counter() - begin
        total = matrix[rows, cols].sum(dtype=None if matrix.dtype.kind == "i" else float)
        return Sample(seconds, len(cols), more={"objective": total.item()})

    return call


def _mean(samples: list[Sample]) -> Sample:
    """Of a stack's matrices: the mean of their seconds, the sum of their objectives."""
    seconds = statistics.fmean(one.seconds for one in samples)
    total = sum(one.more["objective"] for one in samples)
    return Sample(seconds, samples[-1].size, more={"objective": total})


def contenders(device: str, threads: int) -> list[Contender]:
    """The library and the peers that are installed."""
    others = [peer for peer in solvers.peers(on_device=False) if peer.name != SCIPY]
    return [SciPysName(OURS), InTurns(SCIPY), *others]


def instances(quick: bool, data: str | None) -> list[CostInstance]:
    """Each family at each size, wide ones, and large uniform ones."""
    sizes, rows = ((20,), (20,)) if quick else (SIZES, WIDE)
    without_lapx = OURS, SCIPY  # it takes square ones, and no other floats
    integers = [uniform(n, factor) for n in sizes for factor in FACTORS]
    square = [
        CostInstance(
            f"{kind}-{n}",
            kind,
            (family, n),
            dtype=dtype,
            only=without_lapx if kind in STORED else ("*",),
        )
        for kind, (family, dtype) in {**KINDS, **STORED}.items()
        for n in sizes
    ]
    gains = [geom(n) for n in sizes]
    oblong = [
        wide(family, (n, 2 * n), dtype, without_lapx)
        for kind, (family, dtype) in KINDS.items()
        if kind == family
        for n in rows
    ]
    large = [] if quick else [uniform(LARGE, factor) for factor in FACTORS]
    return [*map(_stacked, (*integers, *square, *gains, *oblong)), *large]


def _stacked(instance: CostInstance) -> CostInstance:
    """A stack of such problems if they are small and drawn at random."""
    family, n, *_ = instance.source
    if family in WHOLE or n > FEW:
        return instance
    return dataclasses.replace(instance, count=STACK)


def warming(quick: bool) -> list[CostInstance]:
    """One of each kind of costs, below and above the limit of the small ones."""
    return [case for n in (20, 1100) for case in (uniform(n, 1.0), geom(n))]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times and ratios problem by problem, their means, and the worst against SciPy."""
    graphs = data["graphs"]
    rows = [
        [
            graph["group"],
            *(milliseconds(time_of(graph, code)) for code in (OURS, *PEERS)),
            *(times_slower(graph, peer) for peer in PEERS),
        ]
        for graph in graphs.values()
    ]
    header = ["costs", f"{OURS} ms", *(f"{peer} ms" for peer in PEERS)]
    header += [f"{peer} / {OURS}" for peer in PEERS]
    return page(
        data,
        section("The whole call on the CPU", markdown(header, rows)),
        means(graphs.values(), PEERS, OURS, ratio=times_in_turns),
    )


def times_slower(graph: Graph, peer: str) -> Time | None:
    """How many times longer a peer takes than the library."""
    return times_in_turns(graph, peer, OURS)
