"""Tables of Deveci et al. 2013 from the stored results, by the paper's own rules.

*Hardness* of a graph is the longer of PFP's and HK's times: the order of the paper's Table 2.
*S1* holds the original (O) or permuted (RCP) graphs that are harder than a threshold, one second
in 2013. *Hardest20* holds the 20 hardest. Figures 3 and 4 count over the S1 sets, because their
86 %, 76 %, 61 % and 74 % are 24 of 28, 38 of 50, 17 of 28 and 37 of 50 graphs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bench.deveci2013 import BEST_GPU, GPU_ALGORITHMS, MULTICORE, SEQUENTIAL
from bench.instances import RCP
from bench.tables import (
    Graph,
    Time,
    describe_run,
    failures,
    geometric_mean,
    markdown,
    time_of,
)

HARDEST = 20
FOUR_SETS = ("O_S1", "O_Hardest20", "RCP_S1", "RCP_Hardest20")
PARALLEL = (BEST_GPU, *MULTICORE)
_TABLE1 = [f"{name} {launch}" for name in GPU_ALGORITHMS for launch in ("mt", "ct")]
_TABLE1 += [f"{name} ct queue" for name in GPU_ALGORITHMS if name.endswith("-wr")]

# -- sets ----------------------------------------------------------------------------------------


def hardness(graph: Graph) -> float:
    """Seconds of the slower sequential algorithm; 0 if none was run."""
    times = (time_of(graph, name) for name in SEQUENTIAL)
    return max((time.seconds for time in times if time is not None), default=0.0)


def select(data: dict[str, Any], threshold: float) -> dict[str, list[Graph]]:
    """The paper's four sets, hardest graph last, by name."""
    sets = {}
    for prefix, permuted in (("O", False), ("RCP", True)):
        graphs = [graph for graph in data["graphs"].values() if graph["permuted"] == permuted]
        graphs = sorted((graph for graph in graphs if hardness(graph) > 0), key=hardness)
        sets[f"{prefix}_S1"] = [graph for graph in graphs if hardness(graph) > threshold]
        sets[f"{prefix}_Hardest20"] = graphs[-HARDEST:]
    return sets


def baseline(graphs: Sequence[Graph]) -> str:
    """The sequential algorithm that is faster over all of the graphs."""

    def overall(name: str) -> float:
        mean = geometric_mean(time_of(graph, name) for graph in graphs)
        return math.inf if mean is None else mean.seconds

    return min(SEQUENTIAL, key=overall)


def speedups(graphs: Sequence[Graph], contender: str, over: str) -> list[float]:
    """How many times faster the contender is, on each graph on which both were run."""
    pairs = ((time_of(graph, over), time_of(graph, contender)) for graph in graphs)
    return [slow.seconds / fast.seconds for slow, fast in pairs if slow and fast]


def ratios_to_best(graphs: Sequence[Graph], contenders: Sequence[str]) -> dict[str, list[float]]:
    """By contender, how many times slower it is than the best of all on each graph."""
    ratios: dict[str, list[float]] = {}
    for graph in graphs:
        known = [name for name in contenders if name in graph["results"]]
        seconds = [_finished(graph, name) for name in known]
        for name, taken in zip(known, seconds):
            ratios.setdefault(name, []).append(taken / min(seconds))
    return ratios


def _finished(graph: Graph, contender: str) -> float:
    """Seconds of a contender that has ended, infinity for any other."""
    time = time_of(graph, contender)
    return math.inf if time is None or time.at_least else time.seconds


# -- tables --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """All tables as Markdown."""
    sets = select(data, threshold)
    return "\n\n".join(
        [
            *(describe_run(run) for run in data["runs"]),
            _sizes(sets, threshold),
            "### Table 1: geometric mean of seconds, GPU algorithms\n\n" + table1(sets),
            "### Table 2: seconds on O_Hardest20\n\n" + table2(data, sets),
            "### Every graph: seconds\n\n" + every_graph(data),
            *failures(data),
        ]
    )


def _sizes(sets: dict[str, list[Graph]], threshold: float) -> str:
    """How many graphs each set has, and how many are wanted if it is too few."""
    parts = []
    for name, graphs in sets.items():
        wanted = f" (of {HARDEST} wanted)" if "Hardest" in name and len(graphs) < HARDEST else ""
        parts.append(f"{name} {len(graphs) or 'no'} graphs{wanted}")
    return f"Sets, S1 being over {threshold:g} s by PFP or HK: {', '.join(parts)}."


def table1(sets: dict[str, list[Graph]]) -> str:
    """Geometric means of the GPU algorithms on the four sets."""
    rows = [
        [name, *(geometric_mean(time_of(graph, column) for graph in graphs) for column in _TABLE1)]
        for name, graphs in sets.items()
    ]
    return markdown(["set", *_TABLE1], rows)


def table2(data: dict[str, Any], sets: dict[str, list[Graph]]) -> str:
    """The best GPU algorithm, the best multicore one and the sequential ones, graph by graph."""
    columns = [BEST_GPU, "p-dbfs", *SEQUENTIAL]
    rows = []
    for original in sets["O_Hardest20"]:
        permuted = data["graphs"].get(original["base"] + RCP, {"results": {}})
        times = [time_of(graph, name) for graph in (original, permuted) for name in columns]
        rows.append([original["base"], *times])
    return markdown(["graph", *columns, *(f"RCP {name}" for name in columns)], rows)


def every_graph(data: dict[str, Any]) -> str:
    """The best GPU algorithm, the CPU's and SciPy, and the time to move the graph to the GPU."""
    columns = [*PARALLEL, *SEQUENTIAL, "hkdw", "scipy"]
    rows = [
        [
            name,
            graph["rows"],
            graph["entries"],
            *(time_of(graph, column) for column in columns),
            Time(graph["transfer"]) if "transfer" in graph else None,
        ]
        for name, graph in data["graphs"].items()
    ]
    return markdown(["graph", "rows", "entries", *columns, "transfer"], rows)
