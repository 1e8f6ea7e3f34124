"""Vasconcelos, Rosenhahn (EMMCVPR 2009), Figure 6: auctions between two frames of moving points.

Costs are the distances between the points of two frames. The points move in space with persistence
0.8, in a closed box, or in an open one that some leave and others enter. Each pair of frames is
solved once, and the mean is shown, as in the paper. What counts is the call from a matrix that is
where the code wants it, on the device or on the host.

The paper's auctions have one epsilon and prices that begin from 0. They stop when all points have a
partner, with the gap that epsilon leaves. On the GPU the host looks after thousands of rounds, or
after each as in the paper (host loop). `hungarian-classical` stands for the paper's Hungarian.
The other columns are not the paper's: they end at the optimum.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from bench import solvers
from bench.costs import CostInstance, Matrices, moving
from bench.harness import Contender
from bench.report.tables import (
    Graph,
    Time,
    describe_run,
    failures,
    geometric_mean,
    markdown,
    section,
)
from bench.solvers import Assign

THREADS = 1
THRESHOLD = 0.0  # every problem counts
SETS = {100: 100, 200: 100, 500: 30, 1000: 10, 2000: 3, 4000: 2}
"""Points, and pairs of frames: as many as the paper's where that takes seconds."""
BOXES = {"moving closed": "closed", "moving": "open"}
TITLES = {"moving closed": "in a closed box", "moving": "some leave and others enter"}

HUNGARIAN, AUCTION, AUCTION_GPU = "CPU Hungarian", "CPU Auction", "GPU Auction"
REDUCED, ROUND_BY_ROUND = "GPU Auction, reduction", "GPU Auction, host loop"
CLOSED = "GPU Auction, gap closed"
PAPERS = {"scaling": "none", "finish": "epsilon"}
PAPERS_ON_GPU = {
    AUCTION_GPU: {},
    REDUCED: {"convergence": "reduction"},
    ROUND_BY_ROUND: {"host_loop": "round"},
}
OF_PAPER = (HUNGARIAN, AUCTION, AUCTION_GPU, REDUCED, ROUND_BY_ROUND)
LEAVING_A_GAP = (AUCTION, AUCTION_GPU)
OURS = ("auction cpu", "auction gpu", "hungarian-tree gpu", "shortest-augmenting-path")
COLUMNS = (*OF_PAPER, CLOSED, *OURS, "scipy", "lapx")
LARGE = 1000  # points above which the few contenders that tell nothing new are left out
AT_LARGE = (HUNGARIAN, AUCTION, AUCTION_GPU, *OURS, "scipy")


# -- contenders and problems ---------------------------------------------------------------------

problem = Matrices


def contenders(device: str, threads: int) -> list[Contender]:
    """The paper's three and others; those that need a GPU on ``"cuda"`` only."""
    on_gpu = [
        *(
            Assign(name, "auction", "cuda", options=PAPERS | way, is_exact=False)
            for name, way in PAPERS_ON_GPU.items()
        ),
        Assign(CLOSED, "auction", "cuda", options={"scaling": "none"}),
        Assign("auction gpu", "auction", "cuda"),
        Assign("hungarian-tree gpu", "hungarian-tree", "cuda"),
    ]
    return [
        *(on_gpu if device == "cuda" else []),
        Assign(HUNGARIAN, "hungarian-classical", "cpu", threads),
        Assign(AUCTION, "auction", "cpu", threads, options=PAPERS, is_exact=False),
        Assign("auction cpu", "auction", "cpu", threads),
        Assign("shortest-augmenting-path", "shortest-augmenting-path", "cpu", threads),
        *solvers.peers(on_device=False),
    ]


def instances(quick: bool, data: str | None) -> list[CostInstance]:
    """A stack of matrices of each size, in both boxes."""
    sizes = {10: 3, 20: 3} if quick else SETS
    return [
        moving(n, sets, box, ("*",) if n <= LARGE else AT_LARGE)
        for n, sets in sizes.items()
        for box in BOXES.values()
    ]


def warming(quick: bool) -> list[CostInstance]:
    return [moving(64, 1)]


# -- report --------------------------------------------------------------------------------------

Sizes = dict[int, Graph]


def report(data: dict[str, Any], threshold: float) -> str:
    """Figure 6 as a table for each box, what the paper's auctions leave, and how codes compare."""
    lines = [describe_run(run) for run in data["runs"]]
    for family, title in TITLES.items():
        sizes = of_family(data, family)
        lines += section(f"Figure 6, {title}: mean milliseconds", figure6(sizes))
        lines += section(f"Rounds and gap, {title}", rounds_and_gaps(sizes))
        lines += comparisons(sizes)
    return "\n\n".join([*lines, *failures(data)])


def of_family(data: dict[str, Any], family: str) -> Sizes:
    """The stacks of a family by the number of points, the smallest first."""
    graphs = [graph for graph in data["graphs"].values() if graph["family"] == family]
    return {graph["rows"]: graph for graph in sorted(graphs, key=lambda graph: graph["rows"])}


def figure6(sizes: Sizes) -> str:
    """The mean time of each code."""
    rows = [[n, *(milliseconds(graph, name) for name in COLUMNS)] for n, graph in sizes.items()]
    return markdown(["points", *COLUMNS], rows)


def milliseconds(graph: Graph, contender: str) -> Time | None:
    """The mean over the matrices of a stack, as in the paper; the cap if one exceeded it."""
    result = graph["results"].get(contender, {})
    if "seconds" in result and "failed" not in result:
        return Time(1e3 * statistics.fmean(result["seconds"]))
    return Time(1e3 * result["at_least"], at_least=True) if "at_least" in result else None


def rounds_and_gaps(sizes: Sizes) -> str:
    """Rounds of a data set, the gap by the auction's own prices, and what was really missed."""
    header = ["points", "data sets"]
    for name in LEAVING_A_GAP:
        header += [f"{name}: rounds", "gap, percent", "missed, percent"]
    rows = []
    for n, graph in sizes.items():
        sets = len(graph["results"].get(AUCTION, {}).get("seconds", ()))
        cells = [cell for name in LEAVING_A_GAP for cell in left_by(graph, name)]
        rows.append([n, sets or None, *cells])
    return markdown(header, rows)


def left_by(graph: Graph, contender: str) -> Sequence[str | None]:
    """Mean rounds, and the shares of the objective that may be missed and that are."""
    result, best = graph["results"].get(contender, {}), optimum(graph)
    if "failed" in result or best is None or not {"rounds", "reached", "gap"} <= result.keys():
        return None, None, None
    mean = result["rounds"] / len(result["seconds"])
    shares = (100 * result["gap"] / best, 100 * max(result["reached"] / best - 1, 0))
    return f"{mean:,.0f}", *(f"{share:.2g}" for share in shares)


def optimum(graph: Graph) -> float | None:
    """What the exact codes agree on, of all matrices of the stack together."""
    for result in graph["results"].values():
        if "objective" in result and "failed" not in result:
            return float(result["objective"])
    return None


def comparisons(sizes: Sizes) -> list[str]:
    """How every code compares to the paper's auction on the GPU, or on the CPU if there is none."""
    is_there = any(AUCTION_GPU in graph["results"] for graph in sizes.values())
    auction = AUCTION_GPU if is_there else AUCTION
    lines = []
    for name in (name for name in COLUMNS if name != auction):
        ratios = {}
        for n, graph in sizes.items():
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
