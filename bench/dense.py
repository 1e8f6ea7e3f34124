"""Dense assignment on the CPU: `linear_sum_assignment` of ours, of SciPy, and lapx.

What is timed is the whole call from a NumPy matrix to the pairs, warm, with the library's defaults:
what changes for a user of SciPy who changes an import.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import gpumatch as gm
from bench import solvers
from bench.costs import CostInstance, Matrices, geom, uniform, wide
from bench.harness import Contender, Limits, Result, Sample, repeat
from bench.tables import (
    Graph,
    Time,
    describe_run,
    failures,
    markdown,
    means,
    milliseconds,
    section,
    time_of,
    times_as_long,
)

THREADS = 2
THRESHOLD = 0.0  # every problem counts
OURS = "gpumatch"
PEERS = ("scipy", "lapx")
FACTORS = (0.1, 1.0, 10.0)
SIZES = (3, 10, 20, 30, 100, 200, 500, 1000)
WIDE = (10, 30, 100, 200)  # rows where there are twice as many columns
LARGE = 5000
FAMILIES = ("uniform_float", "geom2", "low_rank", "two_cost")  # drawn at random, float64
WHOLE = ("machol_wien", "constant")  # integers, the same for every seed


# -- contenders and problems ---------------------------------------------------------------------

problem = Matrices


@dataclass(frozen=True)
class SciPysName:
    """`gpumatch.optimize.linear_sum_assignment`, which runs on all cores or needs but one."""

    name: str

    def measure(self, problem: Matrices, limits: Limits) -> Result:
        (matrix,) = problem.on("cpu")
        call, maximize = gm.optimize.linear_sum_assignment, problem.maximize

        def sample() -> Sample:
            begin = time.perf_counter()
            rows, cols = call(matrix, maximize)
            seconds = time.perf_counter() - begin
            return Sample(seconds, len(cols), more={"objective": matrix[rows, cols].sum().item()})

        return repeat(sample, limits)


def contenders(device: str, threads: int) -> list[Contender]:
    """The library and the peers that are installed."""
    return [SciPysName(OURS), *solvers.peers(on_device=False)]


def instances(quick: bool, data: str | None) -> list[CostInstance]:
    """Each family at each size, wide ones, and large uniform ones."""
    sizes, rows = ((20,), (20,)) if quick else (SIZES, WIDE)
    integers = [uniform(n, factor) for n in sizes for factor in FACTORS]
    dtypes = dict.fromkeys(FAMILIES, "float64") | dict.fromkeys(WHOLE, "int64")
    others = [
        CostInstance(f"{family}-{n}", family, (family, n), dtype=dtype)
        for family, dtype in dtypes.items()
        for n in sizes
    ]
    gains = [geom(n) for n in sizes]
    only = OURS, "scipy"  # lapx takes square ones
    oblong = [
        wide(family, (n, 2 * n), dtype, only) for family, dtype in dtypes.items() for n in rows
    ]
    large = [] if quick else [uniform(LARGE, factor) for factor in FACTORS]
    return [*integers, *others, *gains, *oblong, *large]


def warming(quick: bool) -> list[CostInstance]:
    """One of each kind of costs, on both sides of where the small ones end."""
    return [case for n in (20, 1100) for case in (uniform(n, 1.0), geom(n))]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times and ratios problem by problem, their means, and the worst against SciPy."""
    graphs = data["graphs"]
    rows = [
        [
            graph["group"],
            *(milliseconds(time_of(graph, who)) for who in (OURS, *PEERS)),
            *(times_slower(graph, peer) for peer in PEERS),
        ]
        for graph in graphs.values()
    ]
    header = ["costs", f"{OURS} ms", *(f"{peer} ms" for peer in PEERS)]
    header += [f"{peer} / {OURS}" for peer in PEERS]
    return "\n\n".join(
        [
            *(describe_run(run) for run in data["runs"]),
            *section("The whole call on the CPU", markdown(header, rows)),
            *means(graphs.values(), PEERS, OURS),
            *failures(data),
        ]
    )


def times_slower(graph: Graph, peer: str) -> Time | None:
    """How many times longer a peer takes than the library."""
    return times_as_long(graph, peer, OURS)
