"""What a change of `cuda/frontier.cuh` costs: the calls that stand on it, in two trees.

Measure each tree with a file of its own, then set the files side by side:

    python -m bench frontier --out before.json        in the tree before the change
    python -m bench frontier --out after.json         in the tree after it
    python -m bench.suites.frontier before.json after.json   how many times as long each call takes

Matchings on the frontier are in the suite `matching`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import harness
from bench.costs import CostInstance, Matrices, geom, uniform, wide
from bench.harness import Contender
from bench.report.tables import (
    Graph,
    markdown,
    milliseconds,
    page,
    section,
    time_of,
)
from bench.solvers import Assign

THREADS = 1
THRESHOLD = 0.0  # every problem counts
TREE, PAPER, CLASSICAL, AUCTION = CODES = (
    "hungarian-tree",
    "hungarian-tree paper",
    "hungarian-classical",
    "auction",
)
SEARCHES = CODES[:3]
RANGES = ((500, 1.0), (5000, 1.0), (5000, 10.0), (20_000, 1.0), (20_000, 10.0))


# -- contenders and problems ---------------------------------------------------------------------

problem = Matrices


def contenders(device: str, threads: int) -> list[Contender]:
    """The searches and the auction, on the GPU or, to see that all of it works, on the CPU."""
    where: Any = "cuda" if device == "cuda" else "cpu"
    paper = [Assign(PAPER, TREE, "cuda", options={"search": "paper"})] if device == "cuda" else []
    return [*(Assign(name, name, where) for name in CODES if name != PAPER), *paper]


def instances(quick: bool, data: str | None) -> list[CostInstance]:
    """Integers of two ranges, floats with columns to spare, and distances."""
    if quick:
        return [uniform(20, 1.0, only=SEARCHES), geom(20)]
    return [
        *(uniform(n, factor, only=SEARCHES) for n, factor in RANGES),
        wide("uniform_float", (4000, 5000), "float64", SEARCHES),
        geom(1000, only=(TREE, AUCTION)),
    ]


def warming(quick: bool) -> list[CostInstance]:
    """A small problem of each type of costs."""
    return [uniform(64, 1.0), wide("uniform_float", (64, 80), "float64", SEARCHES), geom(64)]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Milliseconds of each call."""
    rows = [
        [graph["group"], *(milliseconds(time_of(graph, code)) for code in CODES)]
        for graph in data["graphs"].values()
    ]
    table = markdown(["costs", *(f"{code} ms" for code in CODES)], rows)
    return page(data, section("The whole call", table))


def beside(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Milliseconds of each call in both trees, and how many times as long it takes after."""
    rows: list[list[Any]] = []
    for name, graph in before["graphs"].items():
        other: Graph | None = after["graphs"].get(name)
        for code in CODES:
            times = [time_of(g, code) if g else None for g in (graph, other)]
            if times[0] is not None and times[1] is not None:
                ratio = times[1].seconds / times[0].seconds
                shown = map(milliseconds, times)
                rows.append([graph["group"], code, *shown, f"{ratio:.3f}"])
    return markdown(["costs", "code", "before ms", "after ms", "after / before"], rows)


def main(arguments: Sequence[str]) -> None:
    """Print the table of two files."""
    before, after = (harness.read(Path(name)) for name in arguments)
    print(beside(before, after))


if __name__ == "__main__":
    main(sys.argv[1:])
