"""Maximum matchings of graphs that are not bipartite: ours against libraries.

Graphs of families, and the real matrices A: those of A + A.T, or with rows and columns as vertices
where A is not square. Whole calls: they make a simple graph of the input, and the proof. Seconds on
the CPU are those of the processor, on one thread; on a GPU they are wall time. A library's graph is
made before its clock begins. Sizes must agree. LEMON is a program that `bench.suites.general`
describes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import block_array, csr_array, triu

import gpumatch as gm
from bench.harness import Contender, Limits, Result, Sample, repeat
from bench.instances import Instance, real
from bench.report.tables import Graph, markdown, page, time_of, times_as_long
from bench.suites.general import LEMON, NETWORKX, RUSTWORKX, lemon_on, lemon_program

THREADS = 1
THRESHOLD = 0.0  # every graph counts
ENGINE = "engine"
SMALL = {NETWORKX: 2000, RUSTWORKX: 40_000}
"""The edges up to which a library is asked; beyond, it takes minutes."""


class Undirected:
    """A graph in CSR with both entries of each edge."""

    def __init__(self, instance: Instance, matrix: csr_array, device: str) -> None:
        self.facts = instance.facts(matrix)
        ones = csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), matrix.shape)
        if ones.shape[0] != ones.shape[1]:
            ones = block_array([[None, ones], [ones.T, None]], format="csr")
        self.matrix = csr_array(ones + ones.T)
        self.matrix.setdiag(0)
        self.matrix.eliminate_zeros()
        self.matrix.sort_indices()
        upper = triu(self.matrix, 1).tocoo()
        self.edges = upper.row, upper.col
        self.facts["edges"] = upper.nnz


problem = Undirected


@dataclass(frozen=True)
class Ours:
    """`maximum_matching`."""

    threads: int
    backend: str
    name: str = ENGINE

    def measure(self, problem: Undirected, limits: Limits) -> Result:
        G: Any = problem.matrix
        if self.backend == "cuda":
            from cupyx.scipy.sparse import csr_matrix

            G = csr_matrix(problem.matrix.astype(np.float32))

        clock = time.perf_counter if self.backend == "cuda" else time.process_time

        def sample() -> Sample:
            begin = clock()
            m = gm.general.maximum_matching(G, threads=self.threads)
            taken = clock() - begin
            return Sample(taken, m.size, more={"proven": m.proven})

        return repeat(sample, limits)


@dataclass(frozen=True)
class Library:
    """A function of another library, which is imported when it is measured."""

    name: str
    prepare: Callable[[Undirected], Callable[[], tuple[int, float]]]

    def measure(self, problem: Undirected, limits: Limits) -> Result:
        call = self.prepare(problem)

        def sample() -> Sample:
            size, seconds = call()
            return Sample(seconds, size)

        return repeat(sample, limits)


def _timed(call: Callable[[], int]) -> tuple[int, float]:
    begin = time.process_time()
    size = call()
    return size, time.process_time() - begin


def _networkx(problem: Undirected) -> Callable[[], tuple[int, float]]:
    import networkx as nx

    G = nx.Graph([*zip(*(part.tolist() for part in problem.edges))])
    return lambda: _timed(lambda: len(nx.max_weight_matching(G, True, backend="networkx")))


def _rustworkx(problem: Undirected) -> Callable[[], tuple[int, float]]:
    import rustworkx as rx

    G = rx.PyGraph()
    G.add_nodes_from(range(problem.matrix.shape[0]))
    G.add_edges_from_no_data([*zip(*(part.tolist() for part in problem.edges))])
    return lambda: _timed(lambda: len(rx.max_weight_matching(G, max_cardinality=True)))


def _lemon(problem: Undirected) -> Callable[[], tuple[int, float]]:
    ones = np.ones(problem.edges[0].size, np.int64)
    return lemon_on(problem.matrix.shape[0], (*problem.edges, ones), "cardinality")


def contenders(device: str, threads: int) -> list[Contender]:
    """Ours, and the libraries that are installed here."""
    rivals = [Library(RUSTWORKX, _rustworkx), Library(NETWORKX, _networkx)]
    if lemon_program():
        rivals.insert(0, Library(LEMON, _lemon))
    return [Ours(threads, device), *rivals]


@dataclass(frozen=True)
class GeneralInstance(Instance):
    """A graph of about so many `edges`; real ones are taken for large."""

    edges: int = 10**6

    def takes(self, contender: str) -> bool:
        return self.edges <= SMALL.get(contender, self.edges)


def warming(quick: bool) -> list[Instance]:
    """A small graph."""
    return [GeneralInstance("warming", "mesh", ("delaunay", 5), edges=90)]


SIZES = (
    ("mesh", ("delaunay", 9), 1500),
    ("random", ("uniform", 1000, 3), 3000),
    ("mesh", ("delaunay", 18), 3 * 2**18),
    ("mesh", ("delaunay", 20), 3 * 2**20),
    ("geometric", ("rgg", 18), 6 * 2**18),
    ("geometric", ("rgg", 20), 7 * 2**20),
    ("random", ("uniform", 2**18, 3), 3 * 2**18),
    ("random", ("uniform", 2**20, 3), 3 * 2**20),
    ("kronecker", ("kron", 16), 2 * 10**6),
    ("kronecker", ("kron", 18), 10**7),
    ("road", ("road", 350), 6 * 10**5),
    ("road", ("road", 904), 4 * 10**6),
)


def instances(quick: bool, data: str | None) -> list[Instance]:
    """Meshes, geometric, uniform and Kronecker graphs, roads; and the real matrices."""
    if quick:
        return warming(quick)
    families = [
        GeneralInstance(" ".join(map(str, source)), family, source, edges=edges)
        for family, source, edges in SIZES
    ]
    return [*families, *(GeneralInstance(one.base, one.family, one.source) for one in real(data))]


def report(data: dict[str, Any], threshold: float) -> str:
    """Seconds, and how many times as long the libraries take."""
    graphs: dict[str, Graph] = data["graphs"]
    names = (ENGINE, LEMON, RUSTWORKX, NETWORKX)
    rows = [
        [
            name,
            *(time_of(graph, contender) for contender in names),
            *(times_as_long(graph, rival, ENGINE) for rival in names[1:]),
        ]
        for name, graph in graphs.items()
    ]
    header = ["graph", *names, *(f"{rival} / {ENGINE}" for rival in names[1:])]
    return page(data, [markdown(header, rows)])
