"""Tables of Deveci et al. 2013 from the stored results, by the paper's own rules.

*Hardness* of a graph is the longer of PFP's and HK's times: the order of the paper's Table 2.
*S1* holds the original (O) or permuted (RCP) graphs that are harder than a threshold, one second
in 2013. *Hardest20* holds the 20 hardest. Figures 3 and 4 count over the S1 sets, because their
86 %, 76 %, 61 % and 74 % are 24 of 28, 38 of 50, 17 of 28 and 37 of 50 graphs.

Tables 1 and 2 and the ratios of Figure 5 have the published numbers beside ours.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from typing import Any

from bench.instances import RCP
from bench.report import deveci2013_published as published
from bench.report.tables import (
    Graph,
    Time,
    describe_run,
    failures,
    geometric_mean,
    markdown,
    section,
    time_of,
    times_as_long,
)
from bench.suites.deveci2013 import BEST_GPU, GPU_ALGORITHMS, MULTICORE, SEQUENTIAL

HARDEST = 20
FEW_LEVELS = 100  # of all phases together
PARALLEL = (BEST_GPU, *MULTICORE)
_TABLE1 = [f"{name} {launch}" for name in GPU_ALGORITHMS for launch in ("mt", "ct")]
_QUEUED = [f"{name} ct queue" for name in GPU_ALGORITHMS]

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
            *section("Table 1: geometric mean of seconds, GPU algorithms", table1(sets)),
            *section("Table 2: seconds on O_Hardest20", table2(data, sets)),
            *section("Table 2, published and here: original graphs", published_table2(data, False)),
            *section("Table 2, published and here: permuted graphs", published_table2(data, True)),
            *section("Figure 5: speedups over sequential codes, geometric mean", figure5(sets)),
            *section("The host's loop: after each level, or after a batch", host_loops(data)),
            *multicore_wins(data, threshold),
            *section("Every graph: seconds", every_graph(data)),
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
    """Geometric means of the GPU algorithms on the four sets, the published ones above ours."""
    rows: list[list[Any]] = []
    graphs = [graph for chosen in sets.values() for graph in chosen]
    queued = [name for name in _QUEUED if any(name in graph["results"] for graph in graphs)]
    columns = [*_TABLE1, *queued]
    for name, graphs in sets.items():
        means = [geometric_mean(time_of(graph, column) for graph in graphs) for column in columns]
        rows.append([f"{name}, published", *map(published.TABLE1[name].get, columns)])
        rows.append([f"{name}, here", *means])
    return markdown(["set", *columns], rows)


def table2(data: dict[str, Any], sets: dict[str, list[Graph]]) -> str:
    """The best GPU algorithm, the best multicore one and the sequential ones, graph by graph."""
    columns = [BEST_GPU, "p-dbfs", *SEQUENTIAL]
    rows = []
    for original in sets["O_Hardest20"]:
        permuted = data["graphs"].get(original["base"] + RCP, {"results": {}})
        times = [time_of(graph, name) for graph in (original, permuted) for name in columns]
        rows.append([original["base"], _stands_for(original["base"]), *times])
    columns = [*columns, *(f"RCP {name}" for name in columns)]
    return markdown(["graph", "in the paper's table", *columns], rows)


def _stands_for(graph: str) -> str | None:
    """The matrices of the paper's Table 2 that a graph is, or stands for."""
    if graph in published.TABLE2:
        return "itself"
    like = [name for name, pattern in published.STAND_INS.items() if fnmatch(graph, pattern)]
    return f"stand-in for {', '.join(like)}" if like else None


def published_table2(data: dict[str, Any], permuted: bool) -> str:
    """The paper's Table 2, and what was measured in place of each matrix."""
    columns = [BEST_GPU, "p-dbfs", *SEQUENTIAL]
    rows = []
    for matrix, both in published.TABLE2.items():
        name = _in_place_of(data, matrix)
        graph = data["graphs"].get(f"{name}{RCP if permuted else ''}", {"results": {}})
        kind = "none" if name is None else "itself" if name == matrix else f"stand-in {name}"
        times = [time_of(graph, column) for column in columns]
        rows.append([matrix, *(both[permuted][column] for column in columns), kind, *times])
    there, here = ([f"{where} {name}" for name in columns] for where in ("published", "here"))
    return markdown(["matrix", *there, "measured here", *here], rows)


def _in_place_of(data: dict[str, Any], matrix: str) -> str | None:
    """The matrix if it was measured, else the largest graph that stands for it, if any."""
    graphs = {name: graph for name, graph in data["graphs"].items() if not graph["permuted"]}
    pattern = matrix if matrix in graphs else published.STAND_INS.get(matrix, "")
    like = [name for name in graphs if fnmatch(name, pattern)]
    return max(like, key=lambda name: graphs[name]["entries"], default=None)


def figure5(sets: dict[str, list[Graph]]) -> str:
    """The GPU's mean speedups over PFP and HK; the text of the paper has the lower of the two."""
    rows = []
    for name, graphs in sets.items():
        means = [
            geometric_mean(times_as_long(graph, over, BEST_GPU) for graph in graphs)
            for over in SEQUENTIAL
        ]
        rows.append([name, published.SIZES[name], published.FIGURE5[name], len(graphs), *means])
    over = [f"here over {name}" for name in SEQUENTIAL]
    return markdown(["set", "graphs there", "published, at least", "graphs here", *over], rows)


def host_loops(data: dict[str, Any]) -> str:
    """What it costs to look at the flags after each level, as the paper's host does."""
    rows = []
    for batched in (f"{name} ct" for name in GPU_ALGORITHMS):
        stepped = f"{batched} level"
        graphs = [g for g in data["graphs"].values() if times_as_long(g, stepped, batched)]
        few = [g for g in graphs if sum(g["results"][stepped]["levels"]) <= FEW_LEVELS]
        many = [g for g in graphs if g not in few]
        for kind, some in ((f"{FEW_LEVELS} at most", few), ("more", many)):
            if some:
                rows.append([batched, kind, len(some), *_compared(some, stepped, batched)])
    header = ["algorithm", "levels", "graphs", "times as long by level", "least", "most"]
    return markdown([*header, "µs a level, by batch", "µs a level, by level"], rows)


def _compared(graphs: Sequence[Graph], stepped: str, batched: str) -> list[str]:
    """How many times longer `stepped` takes: mean, least, most; median time of a level of both."""
    longer = [times_as_long(graph, stepped, batched) for graph in graphs]
    known = [taken.seconds for taken in longer if taken is not None]
    a_level = (
        statistics.median(_microseconds_a_level(graph, name) for graph in graphs)
        for name in (batched, stepped)
    )
    values = (statistics.geometric_mean(known), min(known), max(known), *a_level)
    return [f"{value:.3g}" for value in values]


def _microseconds_a_level(graph: Graph, contender: str) -> float:
    taken, levels = time_of(graph, contender), graph["results"][contender]["levels"]
    return math.nan if taken is None else 1e6 * taken.seconds / sum(levels)


def multicore_wins(data: dict[str, Any], threshold: float) -> Iterator[str]:
    """A line that counts the graphs on which a multicore code is faster than the GPU."""
    graphs = [g for g in data["graphs"].values() if math.isfinite(_finished(g, BEST_GPU))]
    faster = [
        graph
        for graph in graphs
        if min(_finished(graph, name) for name in MULTICORE) < _finished(graph, BEST_GPU)
    ]
    if graphs:
        hard = sum(hardness(graph) > threshold for graph in faster)
        yield (
            f"A multicore code is faster than {BEST_GPU} on {len(faster)} of {len(graphs)} graphs, "
            f"{hard} of them in O_S1 or RCP_S1."
        )


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
