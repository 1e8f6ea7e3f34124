"""The GPU's assignment engine on costs of every kind, against what it is made of and other codes.

What counts is the whole call, from costs that are where the code wants them, for the GPU on the
device. On some families alternating trees are up to fifty times faster than the auction, on others
the auction is. The engine is to be near the better of them on each family. RAFT is measured too on
integers, the CPU's default and SciPy at n = 1,000.
"""

from __future__ import annotations

from typing import Any

from bench import solvers
from bench.costs import CostInstance, Matrices, geom, uniform, wide
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
    times_as_long,
)
from bench.solvers import Assign

THREADS = 8
THRESHOLD = 0.0  # every problem counts
ENGINE, TREE, AUCTION, RAFT = "engine", "hungarian-tree", "auction", "raft"
ON_GPU = (ENGINE, TREE, AUCTION, RAFT)
RIVALS = (TREE, AUCTION, RAFT, "shortest-augmenting-path", "scipy")
SIZES = (1000, 4000, 10_000)
MOST_ON_CPU = 1000
FACTORS = (0.1, 1.0, 10.0)
FLOATS = ("uniform_float", "geom2", "low_rank")
INTEGERS = ("machol_wien", "two_cost")
RANKS = (1, 16)  # low_rank's own is 3
WIDE = ("uniform_float", "geom2")


# -- contenders and problems ---------------------------------------------------------------------

problem = Matrices


def contenders(device: str, threads: int) -> list[Contender]:
    """The engine and its rivals; those that need a GPU on ``"cuda"`` only."""
    on_gpu = [
        Assign(ENGINE, ENGINE, "cuda", is_verified=True),
        Assign(TREE, TREE, "cuda"),
        Assign(AUCTION, AUCTION, "cuda"),
    ]
    peers = {peer.name: peer for peer in solvers.peers(on_device=device == "cuda")}
    sap = "shortest-augmenting-path"
    return [
        *(on_gpu if device == "cuda" else []),
        Assign(sap, sap, "cpu", threads),
        *(peers[name] for name in (RAFT, "scipy") if name in peers),
    ]


def instances(quick: bool, data: str | None) -> list[CostInstance]:
    """Each family at each size, in rising order."""
    return [case for n in ((20,) if quick else SIZES) for case in of_size(n)]


def of_size(n: int) -> list[CostInstance]:
    """The problems with this many rows."""
    every = (ENGINE, *RIVALS) if n <= MOST_ON_CPU else ON_GPU
    others = tuple(name for name in every if name != RAFT)
    oblong = n, n + n // 4

    def drawn(family: str, dtype: str, only: tuple[str, ...], rank: int = 0) -> CostInstance:
        name, more = (f"{family}-{rank}", (None, rank)) if rank else (family, ())
        return CostInstance(f"{name}-{n}", name, (family, n, *more), dtype=dtype, only=only)

    return [
        *(uniform(n, factor, only=every) for factor in FACTORS),
        *(drawn(family, "int32", every) for family in INTEGERS),
        *(drawn(family, "float64", others) for family in FLOATS),
        *(drawn("low_rank", "float64", others, rank) for rank in RANKS),
        geom(n, only=others),
        *(wide(family, oblong, "float64", others) for family in WIDE),
    ]


def warming(quick: bool) -> list[CostInstance]:
    """One small problem of each kind of costs."""
    return of_size(64)


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times problem by problem, and how much longer each rival takes."""
    graphs = list(data["graphs"].values())
    rows = [
        [
            graph["group"],
            *(milliseconds(time_of(graph, code)) for code in (ENGINE, *RIVALS)),
            to_better(graph),
        ]
        for graph in graphs
    ]
    header = ["costs", *(f"{code} ms" for code in (ENGINE, *RIVALS)), "engine / better of two"]
    return page(
        data,
        section("The whole call on the GPU", markdown(header, rows)),
        means(graphs, RIVALS, ENGINE, "the engine"),
    )


def to_better(graph: Graph) -> Time | None:
    """How many times longer the engine takes than the faster of those it is made of."""
    ratios = [times_as_long(graph, ENGINE, name) for name in (TREE, AUCTION)]
    known = [ratio for ratio in ratios if ratio is not None]
    return max(known, key=lambda ratio: ratio.seconds) if known else None
