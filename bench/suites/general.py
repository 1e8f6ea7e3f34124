"""Weighted matchings of graphs that are not bipartite: ours, exact and near it, against libraries.

Weights are integers from 1 to 1000, equal weights, or exponential floats. Seconds on the CPU are
those of the processor, on one thread. Each contender's graph is made before its clock begins. Exact
contenders keep their "objective", which must agree; the others keep the "weight" of their matching,
and ours the "bound" that its duals prove.

mwmatching is van Rantwijk's program in Python, O(n m log n); its folder must be on Python's path.

LEMON is C++. The environment's GPUMATCH_LEMON names a program to be built with Debian's
liblemon-dev, `program FILE KIND`. The file has int64 numbers: vertices n, edges m, then m tails, m
heads and m weights. The kind is "cardinality" (`MaxMatching`), "any" (`MaxWeightedMatching`) or
"perfect" (`MaxWeightedPerfectMatching`). It prints the size or the total, and the seconds of the
algorithm alone.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, triu

import gpumatch as gm
from bench.harness import Contender, Limits, Result, Sample, repeat
from bench.instances import Instance
from bench.report.tables import Graph, markdown, page, time_of, times_as_long

THREADS = 1
THRESHOLD = 0.0  # every graph counts
SUITOR, HALF, ENGINE = "suitor", "suitor, half", "engine"
NETWORKX, RUSTWORKX, NETWORKIT = "networkx", "rustworkx", "networkit Suitor"
LEMON, MWMATCHING = "LEMON", "mwmatching"
EXACT_EDGES = {NETWORKX: 4000, MWMATCHING: 4000, RUSTWORKX: 10_000, ENGINE: 4 * 10**5}
"""The edges up to which an exact contender is asked; beyond, it takes minutes."""
WEIGHTS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "equal": lambda random, count: np.ones(count, np.int64),
    "integers": lambda random, count: random.integers(1, 1001, count),
    "exponential": lambda random, count: random.exponential(1.0, count),
}


class Weighted:
    """A graph with weights, in CSR with both entries of each edge."""

    def __init__(self, instance: Instance, matrix: csr_array, device: str) -> None:
        self.facts = instance.facts(matrix)
        pattern = triu(matrix + matrix.T, 1).tocoo()
        weights = WEIGHTS[instance.family](np.random.default_rng(1), pattern.nnz)
        upper = csr_array((weights, (pattern.row, pattern.col)), shape=matrix.shape)
        self.matrix = (upper + upper.T).tocsr()
        self.edges = (pattern.row, pattern.col, weights)
        self.facts["edges"] = pattern.nnz


problem = Weighted


@dataclass(frozen=True)
class Ours:
    """`maximum_weight_matching` by one of its algorithms."""

    name: str
    threads: int
    backend: str

    def measure(self, problem: Weighted, limits: Limits) -> Result:
        wish: dict[str, Any] = {"algorithm": ENGINE}
        if self.name != ENGINE:
            bound = "half" if self.name == HALF else "tight"
            wish = {"algorithm": "suitor", "backend": self.backend, "bound": bound}

        def sample() -> Sample:
            begin = time.process_time()
            a = gm.general.maximum_weight_matching(problem.matrix, threads=self.threads, **wish)
            taken = time.process_time() - begin
            if isinstance(a, gm.general.BoundedMatching):
                return Sample(taken, 0, more={"weight": a.objective, "bound": a.bound})
            return Sample(taken, 0, more={"objective": a.objective})

        return repeat(sample, limits)


@dataclass(frozen=True)
class Library:
    """A function of another library, which is imported when it is measured."""

    name: str
    prepare: Callable[[Weighted], Callable[[], float]]
    kind: str = "objective"

    def measure(self, problem: Weighted, limits: Limits) -> Result:
        call = self.prepare(problem)

        def sample() -> Sample:
            begin = time.process_time()
            total = call()
            return Sample(time.process_time() - begin, 0, more={self.kind: total})

        return repeat(sample, limits)


def _networkx(problem: Weighted) -> Callable[[], float]:
    import networkx as nx

    G = nx.Graph()
    G.add_weighted_edges_from(zip(*(part.tolist() for part in problem.edges)))

    def call() -> float:
        return sum(G.edges[e]["weight"] for e in nx.max_weight_matching(G, backend="networkx"))

    return call


def _rustworkx(problem: Weighted) -> Callable[[], float]:
    import rustworkx as rx

    rows, cols, weights = (part.tolist() for part in problem.edges)
    G = rx.PyGraph()
    G.add_nodes_from(range(problem.matrix.shape[0]))
    G.add_edges_from(list(zip(rows, cols, weights)))

    def call() -> float:
        pairs = rx.max_weight_matching(G, weight_fn=int)
        return sum(G.get_edge_data(u, v) for u, v in pairs)

    return call


def _mwmatching(problem: Weighted) -> Callable[[], float]:
    import mwmatching

    edges = [*zip(*(part.tolist() for part in problem.edges))]
    weight = {(u, v): w for u, v, w in edges}

    def call() -> float:
        pairs = mwmatching.maximum_weight_matching(edges)
        return sum(weight[min(pair), max(pair)] for pair in pairs)

    return call


def _networkit(problem: Weighted) -> Callable[[], float]:
    import networkit as nk

    nk.setNumberOfThreads(1)
    rows, cols, weights = problem.edges
    G = nk.GraphFromCoo(
        (weights.astype(float), (rows, cols)), n=problem.matrix.shape[0], weighted=True
    )
    nk.graphtools.sortEdgesByWeight(G, True)  # it asks for this, and it is not timed

    def call() -> float:
        matcher = nk.matching.SuitorMatcher(G, True)
        matcher.run()
        return matcher.getMatching().weight(G)

    return call


def lemon_program() -> str | None:
    """The program of LEMON, if the environment names one."""
    return os.environ.get("GPUMATCH_LEMON")


def lemon_on(n: int, edges: tuple[np.ndarray, ...], kind: str) -> Callable[[], tuple[int, float]]:
    """A call of LEMON's program on a graph: the size or the total, and its seconds."""
    program = lemon_program()
    assert program is not None
    file = tempfile.NamedTemporaryFile(suffix=".graph")  # noqa: SIM115  until the call is forgotten
    for part in (np.array([n, edges[0].size]), *edges):
        part.astype(np.int64).tofile(file)
    file.flush()

    def call(file: Any = file) -> tuple[int, float]:
        said = subprocess.run([program, file.name, kind], capture_output=True, check=True).stdout
        total, seconds = said.split()
        return int(total), float(seconds)

    return call


@dataclass(frozen=True)
class Lemon:
    """`MaxWeightedMatching` of LEMON; integers only."""

    name: str = LEMON

    def measure(self, problem: Weighted, limits: Limits) -> Result:
        call = lemon_on(problem.matrix.shape[0], problem.edges, "any")

        def sample() -> Sample:
            total, seconds = call()
            return Sample(seconds, 0, more={"objective": total})

        return repeat(sample, limits)


def contenders(device: str, threads: int) -> list[Contender]:
    """Ours, near the best and exact, and the libraries that are installed here."""
    ours = [Ours(name, threads, device) for name in (SUITOR, HALF, ENGINE)]
    programs = [Lemon()] if lemon_program() else []
    return [
        *programs,
        *ours,
        Library(NETWORKIT, _networkit, "weight"),
        Library(RUSTWORKX, _rustworkx),
        Library(MWMATCHING, _mwmatching),
        Library(NETWORKX, _networkx),
    ]


# -- graphs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WeightedInstance(Instance):
    """A graph, and by its family its weights.

    Attributes
    ----------
    edges : int
        About so many.
    """

    edges: int = 0

    def takes(self, contender: str) -> bool:
        if contender in (RUSTWORKX, LEMON) and self.family == "exponential":
            return False  # they take integers only
        return self.edges <= EXACT_EDGES.get(contender, self.edges)


def warming(quick: bool) -> list[Instance]:
    """A small graph with weights of each kind."""
    return [WeightedInstance(kind, kind, ("delaunay", 5), edges=90) for kind in WEIGHTS]


SIZES = (
    (("delaunay", 10), 3 * 2**10),
    (("delaunay", 17), 3 * 2**17),
    (("rgg", 15), 10 * 2**15),
    (("kron", 13), 2**18),
    (("grid", 400, 1.0), 2 * 400**2),
    (("road", 200), 2 * 10**5),
    (("uniform", 2**16, 5), 5 * 2**16),
    (("uniform", 1000, 3), 3000),
)


def instances(quick: bool, data: str | None) -> list[Instance]:
    """Meshes, geometric, Kronecker and uniform graphs, grids, roads: weights of each kind."""
    sizes = ((("delaunay", 5), 90),) if quick else SIZES
    return [
        WeightedInstance(f"{' '.join(map(str, source))}, {kind}", kind, source, edges=edges)
        for source, edges in sizes
        for kind in WEIGHTS
    ]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Seconds, and what Suitor's matchings weigh of the bound that our duals prove."""
    graphs: dict[str, Graph] = data["graphs"]
    names = (SUITOR, HALF, NETWORKIT, ENGINE, LEMON, RUSTWORKX, MWMATCHING, NETWORKX)
    rows = [
        [
            name,
            *(time_of(graph, contender) for contender in names),
            times_as_long(graph, NETWORKIT, HALF),
            times_as_long(graph, LEMON, ENGINE),
            *(share_of(graph, contender) for contender in (SUITOR, HALF, NETWORKIT)),
        ]
        for name, graph in graphs.items()
    ]
    times = f"{NETWORKIT} / {HALF}", f"{LEMON} / {ENGINE}"
    header = ["graph", *names, *times, *(f"{n}: of bound" for n in names[:3])]
    return page(data, [markdown(header, rows)])


def share_of(graph: Graph, contender: str) -> str:
    """What a matching weighs, as a share of the bound that our tight duals prove."""
    results = graph["results"]
    bound, weight = results[SUITOR].get("bound"), results.get(contender, {}).get("weight")
    return f"{weight / bound:.3f}" if bound and weight is not None else ""
