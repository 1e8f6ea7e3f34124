"""Sparse assignment: the engine on CPU and GPU against OR-tools, SPRAL's MC64 and SciPy.

`bench.sparse_solvers` says what is timed, and how each rival is installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.harness import Contender
from bench.report.tables import (
    Graph,
    Time,
    markdown,
    mean_and_least,
    milliseconds,
    page,
    section,
    time_of,
    times_as_long,
    times_in_turns,
    work_in_turns,
)
from bench.sparse_costs import ON_GPU, OURS, SPRAL, SparseInstance, SparseProblem
from bench.sparse_solvers import ORTOOLS, SCIPY, Engine, SciPy, rivals_in_turns
from gpumatch.problems.request import Cardinality

THREADS = 2
THRESHOLD = 0.05  # seconds of the best rival that make a problem count
PEERS = (ORTOOLS, SPRAL, SCIPY)
LARGE = 200_000  # rows from which a GPU must be far ahead

problem = SparseProblem


def contenders(device: str, threads: int) -> list[Contender]:
    """The engine, and the rivals that are installed."""
    engine = Engine(OURS, threads)
    on_gpu = [Engine(ON_GPU, threads, "cuda")] if device == "cuda" else []
    return [engine, *on_gpu, *rivals_in_turns(engine), SciPy()]


# -- instances -----------------------------------------------------------------------------------

SLOW = (
    "sparse_uniform-100000-120000-8.0-1000000",
    "sparse_uniform-100000-100000-3.0-1000",
    "sparse_uniform-1000-200000-200.0-1000",
)
REAL = ("bayer10", "teko_szdMat", "cage10", "rajat01")


def instances(quick: bool, data: str | None) -> list[SparseInstance]:
    """Structured ones by family, and real matrices."""
    if quick:
        return [
            _made("spread", 300),
            _made("mesh", 7),
            _made("nearest", 60, None, 4, cardinality="maximum"),
        ]
    return [
        _made("spread", 200_000),
        _made("mesh", 18),
        _made("nearest", 20_000, cardinality="maximum"),
        _made("nearest", 100_000, None, 24, cardinality="maximum"),
        *_real(data),
        _made("spread", 20_000),
        _made("circuit", 200_000),
        _made("circuit", 1_000_000),
        _made("kkt", 200_000),
        _made("kkt", 1_000_000),
        *(_made("mesh", 16, high) for high in (10, 10**6)),
        *(_made("power_law", 16, 8, high) for high in (10, 10**6)),
        _made("power_law", 18, 8, 10**6),
        _made("nearest", 30_000, None, 16, 3, cardinality="maximum"),
        _made("nearest", 5_000, None, 16, 64),
        _made("sparse_uniform", 100_000, 120_000, 8.0, 10**6, cardinality="maximum"),
        _made("sparse_uniform", 100_000, 100_000, 3.0, 1000, cardinality="maximum"),
        _made("sparse_uniform", 1000, 200_000, 200.0, 1000),
        _made("linkage", 3_000, cardinality="any"),
        *(_made("goldberg_kennedy", 65_536, 16, kind) for kind in ("high_cost", "low_cost")),
        _made("goldberg_kennedy", 65_536, 16, "two_cost"),
        _made("goldberg_kennedy", 262_144, 16, "low_cost"),
        _made("goldberg_kennedy", 16_384, 16, "geometric"),
        _made("goldberg_kennedy", 4_096, 16, "fixed_cost"),
    ]


def _made(family: str, *parameters: Any, cardinality: Cardinality = "full") -> SparseInstance:
    named = [str(value) for value in parameters if value is not None]
    name = "-".join([family, *named])
    suits_spral = family != "linkage" and name not in SLOW
    return SparseInstance(name, family, (family, *parameters), cardinality, suits_spral=suits_spral)


def _real(data: str | None) -> list[SparseInstance]:
    """The square matrices of numbers that are in the folder."""
    folder = Path(data or ".") / "matrices"
    files = {name: folder / f"{name}.mtx.gz" for name in REAL}
    return [
        SparseInstance(name, "real", ("file", str(file)), "maximum")
        for name, file in files.items()
        if file.exists()
    ]


def warming(quick: bool) -> list[SparseInstance]:
    """Floats and integers, square and not, for which no kernel is compiled twice."""
    return [
        _made("spread", 5_000),
        _made("mesh", 12),
        _made("nearest", 2_000, 2_500, 4, cardinality="maximum"),
        _made("sparse_uniform", 4_000, 5_000, 8.0, 1000, cardinality="maximum"),
    ]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times and ratios problem by problem, and their means where the best rival takes long."""
    graphs = data["graphs"]
    has_gpu = any(ON_GPU in graph["results"] for graph in graphs.values())
    codes = (OURS, ON_GPU, *PEERS) if has_gpu else (OURS, *PEERS)
    rows = [
        [
            name,
            graph["rows"],
            graph["entries"],
            graph["cardinality"],
            *(milliseconds(time_of(graph, code)) for code in codes),
            best_ratio(graph),
            best_ratio(graph, work_in_turns),
        ]
        for name, graph in graphs.items()
    ]
    header = ["costs", "rows", "entries", "cardinality"]
    header += [f"{code} ms" for code in codes] + [
        "best rival / engine",
        "by processor time",
    ]
    return page(
        data,
        section("Sparse costs" if has_gpu else "Sparse costs on the CPU", markdown(header, rows)),
        _means(graphs, threshold),
        _means_on_gpu(graphs),
    )


def ratio_to(graph: Graph, peer: str) -> Time | None:
    """How many times longer a rival takes than the engine."""
    return times_in_turns(graph, peer, OURS)


def best_ratio(
    graph: Graph, ratio_of: Callable[[Graph, str], Time | None] = ratio_to
) -> Time | None:
    """The least of the rivals' ratios."""
    known = [ratio for peer in PEERS if (ratio := ratio_of(graph, peer)) is not None]
    return min(known, key=lambda ratio: ratio.seconds, default=None)


def best_seconds(graph: Graph) -> float:
    """The seconds of the fastest rival."""
    times = [time_of(graph, peer) for peer in PEERS]
    return min((taken.seconds for taken in times if taken is not None), default=math.nan)


def _means_on_gpu(graphs: dict[str, Graph]) -> list[str]:
    """How the engine on the GPU compares with the fastest rival, and with itself on the CPU."""
    large = {name: graph for name, graph in graphs.items() if graph["rows"] >= LARGE}
    lines = []
    for names, what in (
        (PEERS, "the fastest rival takes"),
        ((OURS,), "the engine on the CPU takes"),
    ):
        ratios = []
        for name, graph in large.items():
            known = [times_as_long(graph, other, ON_GPU) for other in names]
            if any(known):
                least = min(filter(None, known), key=lambda ratio: ratio.seconds)
                ratios.append((least, name))
        if ratios:
            mean = mean_and_least(ratios, " as the engine on the GPU")
            lines.append(f"With {LARGE} rows or more, {what} {mean}.")
    return lines


def _means(graphs: dict[str, Graph], threshold: float) -> list[str]:
    long = {name: graph for name, graph in graphs.items() if best_seconds(graph) >= threshold}
    lines = []
    for ratio_of, how in ((ratio_to, ""), (work_in_turns, " of processor time")):
        known = [(best_ratio(graph, ratio_of), name) for name, graph in long.items()]
        ratios = [(ratio, name) for ratio, name in known if ratio is not None]
        if ratios:
            mean = mean_and_least(ratios, f" as the engine{how}")
            lines.append(f"Where the best rival takes {threshold:g} s or more, it takes {mean}.")
    return lines
