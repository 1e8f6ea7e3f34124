"""The GPU's matching engine against everything else, start and search together.

The graph is on the device in both directions, as `BipartiteGraph` keeps it. The exception is
"engine, rows only", which gets the rows' CSR alone, as from a cupyx matrix. "engine, cheap start"
shows what the start of least degrees brings. The rivals are the best algorithm of Deveci et al.
2013, ECL-MM (Akathoott, Burtscher, IPDPS 2025; if the environment variable ECL_MM names its
executable) and SciPy. One product of the matrix and a vector by cuSPARSE shows the time that the
device needs to look at every edge once.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scipy.sparse import csr_array

import gpumatch as gm
from bench.harness import Contender, Limits, Overrun, Result, Sample, repeat
from bench.instances import Instance, generated, real, small, with_permutations
from bench.peers import EclMm, Peer
from bench.report.tables import (
    Graph,
    Time,
    geometric_mean,
    markdown,
    milliseconds,
    page,
    time_of,
    times_as_long,
)
from gpumatch.dispatch.registry import BackendName

THREADS = 1
THRESHOLD = 1.0  # seconds of SciPy from which a graph counts in its mean
LARGE = 1_000_000  # rows from which a graph counts in the means over the product and the paper's
BANDWIDTH = 4.3e12  # bytes a second that the H200 copies
BARRIER = 2e-6  # seconds a level costs at least
ENGINE, ROWS_ONLY, CHEAP = "engine", "engine, rows only", "engine, cheap start"
PAPER = "apfb-gpubfs-wr ct"
RIVALS = (PAPER, "ecl-mm", "scipy")
PRODUCTS = 7  # products timed on a graph


# -- problem and contenders ----------------------------------------------------------------------


class Resident:
    """A graph on the device, its host matrix, its rows alone, and what one product takes."""

    def __init__(self, instance: Instance, matrix: csr_array, device: str) -> None:
        self.matrix = matrix
        self.facts = instance.facts(matrix)
        graph = gm.BipartiteGraph(matrix)
        self.graph = graph.to_device() if device == "cuda" else graph
        _ = self.graph.indptr, self.graph.col_indptr
        self.rows = gm.BipartiteGraph((self.graph.indptr, self.graph.indices, matrix.shape))
        if device == "cuda":
            self.facts["product"] = product_seconds(self.graph)


def product_seconds(graph: gm.BipartiteGraph) -> list[float]:
    """The matrix times a vector: float32, by cuSPARSE, timed by the device's events."""
    import cupy as cp
    from cupyx.scipy.sparse import csr_matrix

    values = cp.ones(graph.nnz, cp.float32)
    matrix = csr_matrix((values, graph.indices, graph.indptr), shape=graph.shape)
    vector = cp.ones(graph.ncols, cp.float32)

    def seconds() -> float:
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        matrix @ vector
        end.record()
        end.synchronize()
        return cp.cuda.get_elapsed_time(begin, end) / 1e3

    seconds()  # loads the library
    return [seconds() for _ in range(PRODUCTS)]


problem = Resident


@dataclass(frozen=True)
class StartAndSearch:
    """One of the library's algorithms with its start, on the resident graph."""

    name: str
    algorithm: str
    rows_only: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def measure(self, problem: Resident, limits: Limits) -> Result:
        graph = problem.rows if self.rows_only else problem.graph
        backend: BackendName = "cuda" if graph.on_device else "cpu"

        def sample() -> Sample:
            matching = gm.maximum_matching(
                graph,
                algorithm=self.algorithm,
                backend=backend,
                time_limit=limits.cap,
                **self.options,
            )
            if not matching.proven:
                raise Overrun
            seconds = matching.stats["seconds"]
            levels = tuple(phase["levels"] for phase in matching.stats["trace"])
            return Sample(seconds["start"] + seconds["search"], matching.size, levels)

        return repeat(sample, limits)


def contenders(device: str, threads: int) -> list[Contender]:
    """The engine and its rivals; those that need a GPU on ``"cuda"`` only."""
    ours: list[Contender] = [StartAndSearch(ENGINE, "engine")]
    if device == "cuda":
        ours += [
            StartAndSearch(ROWS_ONLY, "engine", rows_only=True),
            StartAndSearch(CHEAP, "engine", options={"init": "cheap"}),
            StartAndSearch(PAPER, "apfb-gpubfs-wr", options={"launch": "ct"}),
        ]
        ours += [EclMm()] if EclMm().installed else []
    return [*ours, Peer("scipy")]


# -- graphs --------------------------------------------------------------------------------------

warming = small


def instances(quick: bool, data: str | None) -> list[Instance]:
    """Original and permuted graphs of each family, and the real matrices."""
    if quick:
        return with_permutations([generated("grid-12-p.65", "grid", 12, 0.65)])
    families = [
        *(generated(f"grid-{k}-p.65", "grid", k, 0.65) for k in (1024, 2048, 4096)),
        *(generated(f"uniform-2^{k}-d3", "uniform", 2**k, 3) for k in (20, 22, 24)),
        *(generated(f"uniform-2^22-d{d}", "uniform", 2**22, d) for d in (2.5, 8)),
        *(generated(f"kron_g500-logn{k}", "kron", k) for k in (18, 20)),
        *(generated(f"hugetrace-{k}", "trace", k) for k in (1448, 2896)),
        *(generated(f"road-{k}", "road", k) for k in (904, 1850)),
        generated("rgg_n_2_22", "rgg", 22),
        generated("delaunay_n20", "delaunay", 20),
        generated("lopsided-720000x1700", "lopsided", 720_000, 1_700),
    ]
    slow_to_make = generated("delaunay_n22", "delaunay", 22)
    return with_permutations([*families, *real(data), slow_to_make])


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """The engine's time graph by graph, against its rivals' and against what the device allows."""
    graphs = data["graphs"]
    rows = [
        [
            name,
            graph["rows"],
            graph["entries"],
            *(milliseconds(time_of(graph, code)) for code in (ENGINE, ROWS_ONLY, CHEAP)),
            *(times_slower(graph, code) for code in RIVALS),
            products(graph),
            milliseconds(floor(graph)),
        ]
        for name, graph in graphs.items()
    ]
    header = ["graph", "rows", "entries", "engine ms", "rows only ms", "cheap start ms"]
    header += [f"{code} / engine" for code in RIVALS] + ["engine / product", "floor ms"]
    return page(
        data,
        ["### Start and search together\n\n" + markdown(header, rows)],
        _means(list(graphs.values()), threshold),
    )


def times_slower(graph: Graph, rival: str) -> Time | None:
    """How many times longer a rival takes than the engine."""
    return times_as_long(graph, rival, ENGINE)


def products(graph: Graph) -> Time | None:
    """How many products of the matrix and a vector take as long as the engine."""
    ours = time_of(graph, ENGINE)
    if ours is None or "product" not in graph:
        return None
    return Time(ours.seconds / statistics.median(graph["product"]), ours.at_least)


def floor(graph: Graph) -> Time | None:
    """What the device needs at least: every edge and mate read once, or a barrier a level."""
    result = graph["results"].get(ENGINE, {})
    if "levels" not in result:
        return None
    traffic = 4 * graph["entries"] + 12 * graph["rows"] + 8 * graph["cols"]
    return Time(max(traffic / BANDWIDTH, BARRIER * sum(result["levels"])))


def _means(graphs: list[Graph], threshold: float) -> list[str]:
    """Geometric means and worst cases over the graphs that count for each rival."""
    large = [graph for graph in graphs if graph["rows"] >= LARGE]
    hard = [
        graph
        for graph in graphs
        if (taken := time_of(graph, "scipy")) is not None and taken.seconds >= threshold
    ]
    counted = {PAPER: large, "ecl-mm": graphs, "scipy": hard}
    lines = []
    for rival, among in counted.items():
        ratios = [ratio for graph in among if (ratio := times_slower(graph, rival)) is not None]
        if ratios:
            worst = min(ratios, key=lambda ratio: ratio.seconds)
            lines.append(
                f"{rival}: {geometric_mean(ratios)} times slower than the engine (geometric mean, "
                f"{len(ratios)} graphs), {worst} times at least."
            )
    known = [ratio for graph in large if (ratio := products(graph)) is not None]
    if known:
        lines.append(
            f"The engine takes {geometric_mean(known)} products "
            f"(geometric mean, {len(known)} graphs)."
        )
    return lines
