"""Vasconcelos, Rosenhahn (EMMCVPR 2009), Figure 6: auctions between two frames of moving points.

Costs are the distances between the points of two frames. The points move in space with persistence
0.8, some leave and others enter. There are a hundred pairs of frames of each size. Each is solved
once, and the mean is shown, as in the paper. Its CPU Hungarian is `hungarian-classical` on one
thread here. What counts is the call from a matrix that is where the code wants it, on the device or
on the host.
"""

from __future__ import annotations

import statistics
from typing import Any

from bench import solvers
from bench.costs import CostInstance, Matrices, moving
from bench.harness import Contender
from bench.solvers import Assign
from bench.tables import (
    Graph,
    Time,
    by_size,
    describe_run,
    failures,
    geometric_mean,
    markdown,
    section,
)

THREADS = 1
THRESHOLD = 0.0  # every problem counts
SETS = 100
SIZES = (100, 200, 300, 400, 500, 750, 1000)
HUNGARIAN, AUCTION, AUCTION_GPU = "CPU Hungarian", "CPU Auction", "GPU Auction"
REDUCED = "GPU Auction, reduction"
OTHERS = ("shortest-augmenting-path", "hungarian-tree gpu", "scipy", "lapx")
COLUMNS = (HUNGARIAN, AUCTION, AUCTION_GPU, REDUCED, *OTHERS)


# -- contenders and problems ---------------------------------------------------------------------

problem = Matrices


def contenders(device: str, threads: int) -> list[Contender]:
    """The paper's three and others; those that need a GPU on ``"cuda"`` only."""
    on_gpu = [
        Assign(AUCTION_GPU, "auction", "cuda"),
        Assign(REDUCED, "auction", "cuda", options={"convergence": "reduction"}),
        Assign("hungarian-tree gpu", "hungarian-tree", "cuda"),
    ]
    return [
        *(on_gpu if device == "cuda" else []),
        Assign(HUNGARIAN, "hungarian-classical", "cpu", threads),
        Assign(AUCTION, "auction", "cpu", threads),
        Assign("shortest-augmenting-path", "shortest-augmenting-path", "cpu", threads),
        *solvers.peers(on_device=False),
    ]


def instances(quick: bool, data: str | None) -> list[CostInstance]:
    """A stack of matrices of each size."""
    return [moving(n, 3) for n in (10, 20)] if quick else [moving(n, SETS) for n in SIZES]


def warming(quick: bool) -> list[CostInstance]:
    return [moving(64, 1)]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Figure 6 as a table, and how the auctions compare."""
    groups = by_size(data)
    rows = [
        [n, *(milliseconds(graph, name) for name in COLUMNS)]
        for n, graphs in groups.items()
        for graph in graphs
    ]
    return "\n\n".join(
        [
            *(describe_run(run) for run in data["runs"]),
            *section("Figure 6: mean milliseconds", markdown(["points", *COLUMNS], rows)),
            *comparisons(groups),
            *failures(data),
        ]
    )


def milliseconds(graph: Graph, contender: str) -> Time | None:
    """The mean over the matrices of a stack, as in the paper; the cap if one exceeded it."""
    result = graph["results"].get(contender, {})
    if "seconds" in result and "failed" not in result:
        return Time(1e3 * statistics.fmean(result["seconds"]))
    return Time(1e3 * result["at_least"], at_least=True) if "at_least" in result else None


def comparisons(groups: dict[int, list[Graph]]) -> list[str]:
    """How every code compares to the GPU's auction, or to the CPU's if there is none."""
    graphs = {n: graphs[0] for n, graphs in groups.items()}
    is_there = any(AUCTION_GPU in graph["results"] for graph in graphs.values())
    auction = AUCTION_GPU if is_there else AUCTION
    lines = []
    for name in (name for name in COLUMNS if name != auction):
        ratios = {}
        for n, graph in graphs.items():
            ours, theirs = milliseconds(graph, auction), milliseconds(graph, name)
            if ours and theirs and not ours.at_least:
                ratios[n] = Time(theirs.seconds / ours.seconds, theirs.at_least)
        if ratios:
            ahead = [str(n) for n, ratio in ratios.items() if ratio.seconds > 1.0]
            lines.append(
                f"- {name} takes {geometric_mean(ratios.values())} times as long as {auction} "
                f"(geometric mean of {len(ratios)} sizes), {ratios[max(ratios)]} times at "
                f"{max(ratios)} points; longer at {', '.join(ahead) or 'no size'}."
            )
    return ["\n".join(lines)] if lines else []
