"""Large dense assignment: the default against our own algorithms, lapx and POT.

What is timed is the whole call from a matrix that is where the code wants it: in NumPy, or on the
device. Two families are easy for shortest augmenting paths (uniform, two costs), the others are
not. POT solves transport, with uniform weights. On a GPU the others are what its default was made
of before it had a core, and the CPU's default.
"""

from __future__ import annotations

from typing import Any

from bench import solvers
from bench.costs import CostInstance, Matrices, geom, uniform
from bench.harness import Contender
from bench.report.tables import (
    Graph,
    Time,
    markdown,
    means,
    milliseconds,
    page,
    section,
    time_of,
)
from bench.solvers import Assign

THREADS = 2
THRESHOLD = 0.0  # every problem counts
OURS = "engine"
OTHERS = ("shortest-augmenting-path", "auction")
OTHERS_ON_GPU = ("hungarian-tree", "auction")
CPU_ENGINE = "engine on the CPU"
PEERS = ("lapx", "pot")
EVERY = (OURS, OTHERS_ON_GPU[0], *OTHERS, CPU_ENGINE, *PEERS)
SIZES = (1000, 2000, 5000, 10_000)
FACTORS = (0.1, 1.0, 10.0)

problem = Matrices


def contenders(device: str, threads: int) -> list[Contender]:
    """The default, what else the library has, and the peers that are installed, or the CPU."""
    if device == "cuda":
        on_gpu = [Assign(name, name, "cuda") for name in OTHERS_ON_GPU]
        on_cpu = Assign(CPU_ENGINE, OURS, "cpu", threads)
        return [Assign(OURS, OURS, "cuda", is_verified=True), *on_gpu, on_cpu]
    own = [Assign(name, name, "cpu", threads) for name in OTHERS]
    peers = [peer for peer in map(solvers.SolverPeer, PEERS) if peer.installed]
    return [Assign(OURS, OURS, "cpu", threads, is_verified=True), *own, *peers]


def instances(quick: bool, data: str | None) -> list[CostInstance]:
    """Each family at each size."""
    return [case for n in ((20,) if quick else SIZES) for case in of_size(n)]


def of_size(n: int) -> list[CostInstance]:
    """The problems with this many rows."""

    def drawn(name: str, family: str, *more: Any, dtype: str = "float64") -> CostInstance:
        return CostInstance(f"{name}-{n}", name, (family, n, None, *more), dtype=dtype)

    return [
        drawn("plane", "points"),
        drawn("64 dimensions", "points", 64),
        geom(n),
        drawn("rank 4", "low_rank", 4),
        drawn("rank 16", "low_rank", 16),
        drawn("machol_wien", "machol_wien", dtype="int32"),
        drawn("two_cost", "two_cost", dtype="int32"),
        *(uniform(n, factor) for factor in FACTORS),
        drawn("uniform_float", "uniform_float"),
    ]


def warming(quick: bool) -> list[CostInstance]:
    """One of each kind of costs, with rows that compete."""
    return of_size(64 if quick else 600)[:6]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times problem by problem, and how much longer the best of the others takes."""
    graphs = data["graphs"].values()
    every = [code for code in EVERY if any(code in graph["results"] for graph in graphs)]
    on_gpu = CPU_ENGINE in every
    rows = [
        [graph["group"], *(milliseconds(time_of(graph, code)) for code in every), to_best(graph)]
        for graph in graphs
    ]
    header = ["costs", *(f"{code} ms" for code in every), f"best of the others / {OURS}"]
    return page(
        data,
        section(
            f"The whole call on the {'GPU' if on_gpu else 'CPU'}, large matrices",
            markdown(header, rows),
        ),
        means(graphs, [code for code in every if code != OURS], OURS),
    )


def to_best(graph: Graph) -> Time | None:
    """How many times longer the best of the others takes; POT and another machine left out."""
    own = time_of(graph, OURS)
    names = {*OTHERS, *OTHERS_ON_GPU, "lapx"}
    others = [taken for name in names if (taken := time_of(graph, name)) is not None]
    if own is None or not others:
        return None
    best = min(others, key=lambda taken: taken.seconds)
    return Time(best.seconds / own.seconds, best.at_least)
