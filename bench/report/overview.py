"""The speed-up of each engine over its strongest competitors: a table and a picture.

    python -m bench overview [--plot docs/images/overview.png]

They are made from the committed results. A row of the table has one competitor of one engine, and a
line of the picture has the problems of that competitor. The suites' reports have the rest: times,
sizes and versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import harness
from bench.report.tables import Graph, Time, geometric_mean, markdown, time_of, times_as_long
from bench.suites import (
    batches,
    cpu,
    date2016,
    dense,
    large_dense,
    linear_solvers,
    matching,
    sparse_assignment,
)

GPU, CPU = "an H200", "two CPU cores"
LONG = 0.05  # seconds of a competitor on the CPU from which a small problem counts

Ratios = dict[str, Time]  # the speed-up over the competitor, by problem
Ratio = Callable[[Graph], Time | None]


@dataclass(frozen=True)
class Comparison:
    """One engine and one competitor.

    Attributes
    ----------
    task, machine, rival : str
        The names of the task, the machine and the competitor in the table.
    file : str
        The file with the results in `bench/results`.
    page : str
        The page about the task in `docs/reproduction`.
    ratio : callable
        It returns the speed-up over the competitor on a problem: the competitor's time divided by
        ours. It returns None if one of the times is not known.
    counts : callable
        It returns True if a problem counts for this competitor.
    """

    task: str
    machine: str
    rival: str
    file: str
    page: str
    ratio: Ratio
    counts: Callable[[Graph], bool] = lambda graph: True

    def ratios(self, folder: Path) -> Ratios:
        """The speed-up on each problem that counts and whose times are known."""
        graphs = harness.read(folder / self.file)["graphs"]
        known = {name: self.ratio(graph) for name, graph in graphs.items() if self.counts(graph)}
        return {name: ratio for name, ratio in known.items() if ratio is not None}


def _beside(rival: str, ours: str) -> Ratio:
    return lambda graph: times_as_long(graph, rival, ours)


def _takes_long(rival: str, seconds: float = LONG) -> Callable[[Graph], bool]:
    def counts(graph: Graph) -> bool:
        taken = time_of(graph, rival)
        return taken is not None and taken.seconds >= seconds

    return counts


MATCHING, DENSE, SPARSE = "maximum matching", "assignment, dense", "assignment, sparse"
COMPARISONS = (
    Comparison(
        *(MATCHING, GPU, "ECL-MM", "matching-h200.json", "matching.md"),
        lambda graph: matching.times_slower(graph, "ecl-mm"),
    ),
    Comparison(
        *(MATCHING, GPU, "Deveci et al.'s APFB", "matching-h200.json", "matching.md"),
        lambda graph: matching.times_slower(graph, matching.PAPER),
        lambda graph: graph["rows"] >= matching.LARGE,
    ),
    Comparison(
        *("assignment, dense, `hungarian-tree`", GPU, "RAFT", "date2016-h200.json", "date2016.md"),
        _beside("raft", date2016.OURS),
    ),
    Comparison(
        *(SPARSE, GPU, "OR-tools, one thread", "sparse-assignment-h200.json"),
        "sparse_assignment.md",
        _beside(sparse_assignment.ORTOOLS, sparse_assignment.ON_GPU),
        lambda graph: graph["rows"] >= sparse_assignment.LARGE,
    ),
    Comparison(
        *("batches, dense", GPU, "torch-linear-assignment", "batches-h200.json", "batches.md"),
        _beside(batches.TORCH, batches.OURS),
    ),
    Comparison(
        *(MATCHING, CPU, "SciPy", "cpu-2cores.json", "cpu.md"),
        lambda graph: cpu.times_slower(graph, "scipy"),
        _takes_long("scipy"),
    ),
    Comparison(
        *(DENSE, CPU, "SciPy", "dense-2cores.json", "dense.md"),
        lambda graph: dense.times_slower(graph, "scipy"),
    ),
    Comparison(
        *("assignment, large and dense", CPU, "lapx", "large-dense-2cores.json", "dense.md"),
        _beside("lapx", large_dense.OURS),
    ),
    Comparison(
        *(SPARSE, CPU, "the better of OR-tools, SPRAL", "sparse-assignment-2cores.json"),
        "sparse_assignment.md",
        sparse_assignment.best_ratio,
        lambda graph: sparse_assignment.best_seconds(graph) >= LONG,
    ),
    Comparison(
        *("scaling for solvers", CPU, "SPRAL", "solvers-2cores.json", "linear_solvers.md"),
        linear_solvers.ratio_of,
        _takes_long("spral", linear_solvers.THRESHOLD),
    ),
)


def table(folder: Path) -> str:
    """The mean and the smallest speed-up of each comparison, as Markdown."""
    rows = []
    for one in COMPARISONS:
        ratios = one.ratios(folder).values()
        smallest = min(ratios, key=lambda ratio: ratio.seconds)
        link = f"[{one.task}]({one.page})"
        mean = f"**{geometric_mean(ratios)}**"
        rows.append([link, one.machine, one.rival, len(ratios), mean, smallest])
    header = ["task", "on", "competitor", "problems", "mean speed-up", "smallest speed-up"]
    return markdown(header, rows)


def figure(folder: Path) -> Any:
    """A dot for the speed-up on each problem of each comparison, and a bar for the mean."""
    from bench.report.axes import COLOURS, panels

    colours = {GPU: COLOURS[2], CPU: COLOURS[1]}
    whole, (panel,) = panels(1, (9.0, 4.6))
    for place, one in enumerate(COMPARISONS):
        ratios = list(one.ratios(folder).values())
        style = {"color": colours[one.machine], "linestyle": "none"}
        _dots(panel, place, (r for r in ratios if not r.at_least), marker="o", alpha=0.35, **style)
        _dots(panel, place, (r for r in ratios if r.at_least), marker=">", alpha=0.35, **style)
        if (mean := geometric_mean(ratios)) is not None:
            ends = [place - 0.36, place + 0.36]
            panel.plot([mean.seconds] * 2, ends, color="black", linewidth=2.5)
    panel.axvline(1.0, color="black", linewidth=0.8)
    panel.set_xscale("log")
    names = [f"{one.task}, on {one.machine},\nover {one.rival}" for one in COMPARISONS]
    panel.set_yticks(range(len(names)), [name.replace("`", "") for name in names], fontsize=8)
    panel.invert_yaxis()
    panel.set_xlabel("speed-up of gpumatch: dots are problems, bars are means")
    return whole


def _dots(panel: Any, place: int, ratios: Iterable[Time], **style: Any) -> None:
    seconds = [ratio.seconds for ratio in ratios]
    panel.plot(seconds, [place] * len(seconds), markersize=6, markeredgewidth=0, **style)
