"""What all suites' tables are made of: times of the stored results, means, Markdown.

A contender that was given up on a graph counts with its cap; every mean that holds such a time
says "≥".
"""

from __future__ import annotations

import itertools
import math
import operator
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.harness import is_broken

Graph = dict[str, Any]


@dataclass(frozen=True)
class Time:
    """Seconds, or a lower bound on them."""

    seconds: float
    at_least: bool = False

    def __str__(self) -> str:
        return ("≥ " if self.at_least else "") + f"{self.seconds:.3g}"


def time_of(graph: Graph, contender: str) -> Time | None:
    """The median time; the cap if it was exceeded; None if there is neither."""
    result = graph["results"].get(contender, {})
    if "failed" not in result and "seconds" in result:
        return Time(statistics.median(result["seconds"]))
    return Time(result["at_least"], at_least=True) if "at_least" in result else None


def times_as_long(graph: Graph, rival: str, ours: str) -> Time | None:
    """How many times longer a rival takes than ours; None without both, or if ours is a cap."""
    own, its = time_of(graph, ours), time_of(graph, rival)
    if own is None or its is None or own.at_least:
        return None
    return Time(its.seconds / own.seconds, its.at_least)


def times_in_turns(graph: Graph, rival: str, ours: str) -> Time | None:
    """How many times longer a rival takes than ours, run by run if the two took turns."""
    times, result = times_as_long(graph, rival, ours), graph["results"].get(rival, {})
    if times is None or "ours" not in result:
        return times
    return Time(statistics.median(map(operator.truediv, result["seconds"], result["ours"])))


def work_in_turns(graph: Graph, rival: str) -> Time | None:
    """How many times as much processor time a rival takes, in all threads, if they took turns."""
    result = graph["results"].get(rival, {})
    return Time(statistics.median(result["work"])) if "work" in result else None


def milliseconds(taken: Time | None) -> Time | None:
    """The time as it is shown in tables of milliseconds."""
    return None if taken is None else Time(1e3 * taken.seconds, taken.at_least)


def geometric_mean(times: Iterable[Time | None]) -> Time | None:
    """The mean of the times that are known; None if none is."""
    known = [time for time in times if time is not None]
    if not known:
        return None
    mean = math.exp(statistics.fmean(math.log(time.seconds) for time in known))
    return Time(mean, any(time.at_least for time in known))


def mean_time(graphs: Iterable[Graph], contender: str) -> Time | None:
    """The mean of the median times on several graphs, as far as measured."""
    times = [taken for graph in graphs if (taken := time_of(graph, contender)) is not None]
    if not times:
        return None
    mean = statistics.fmean(taken.seconds for taken in times)
    return Time(mean, any(taken.at_least for taken in times))


def means(
    graphs: Iterable[Graph],
    rivals: Iterable[str],
    ours: str,
    name: str = "",
    ratio: Callable[[Graph, str, str], Time | None] = times_as_long,
) -> list[str]:
    """A line for each rival: its mean, and the problem on which it is nearest to ours.

    `name` is what ours is called in the line, if anything.
    """
    graphs, than = list(graphs), f" as {name}" if name else ""
    lines = []
    for rival in rivals:
        ratios = [(ratio(graph, rival, ours), graph["group"]) for graph in graphs]
        known = [(times, group) for times, group in ratios if times is not None]
        if known:
            lines.append(f"{rival} takes {mean_and_least(known, than)}.")
    return lines


def mean_and_least(ratios: Iterable[tuple[Time, str]], than: str, counted: str = "problems") -> str:
    """How many times as long, in the mean, and where least: of ratios and what they are of."""
    known = list(ratios)
    least, where = min(known, key=lambda pair: pair[0].seconds)
    mean = geometric_mean(times for times, _ in known)
    return (
        f"{mean} times as long{than} (geometric mean, {len(known)} {counted}), "
        f"{least} times at least, on {where}"
    )


def by_size(data: dict[str, Any]) -> dict[int, list[Graph]]:
    """The graphs by their number of rows, the smallest first."""
    groups: dict[int, list[Graph]] = {}
    for graph in sorted(data["graphs"].values(), key=lambda graph: graph["rows"]):
        groups.setdefault(graph["rows"], []).append(graph)
    return groups


def section(title: str, table: str) -> list[str]:
    """A table below its title; nothing if there is no table."""
    return [f"### {title}\n\n{table}"] if table else []


def describe_run(run: dict[str, Any]) -> str:
    """The machine and the versions of a run."""
    devices = [device["name"] for device in run["devices"]] or ["no GPU"]
    versions = [f"{name} {version}" for name, version in run["versions"].items() if version]
    return (
        f"{run['date']}: {', '.join(devices)}; {run['processor']}, {run['threads']} threads; "
        f"{', '.join(versions)}; sources {run['sources_sha256'][:12]}; "
        f"first calls, compiling included: {sum(run['first_call'].values()):.3g} s."
    )


def page(data: dict[str, Any], *parts: Iterable[str]) -> str:
    """A report: the machines and versions, the parts, and what has failed."""
    runs = (describe_run(run) for run in data["runs"])
    return "\n\n".join([*runs, *itertools.chain.from_iterable(parts), *failures(data)])


def failures(data: dict[str, Any]) -> list[str]:
    """A line for each result that is wrong or broken, not merely slow."""
    return [
        f"**{contender} on {name}: {result['failed']}**"
        for name, graph in data["graphs"].items()
        for contender, result in graph["results"].items()
        if is_broken(result)
    ]


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table; None is an empty cell.

    Empty columns are left out, and rows that have nothing but their first cell. There is no table
    without a second column.
    """
    rows = [row for row in rows if any(cell is not None for cell in row[1:])]
    shown = [i for i, _ in enumerate(header) if any(row[i] is not None for row in rows)]
    if len(shown) < 2:
        return ""
    ruler = ["---", *["---:"] * (len(header) - 1)]
    lines = [[line[i] for i in shown] for line in (header, ruler, *rows)]
    return "\n".join(
        "| " + " | ".join("" if cell is None else str(cell) for cell in line) + " |"
        for line in lines
    )
