"""Perfect matchings of points, of the least or the greatest total length: ours against libraries.

Points are uniform in a square, and lengths are whole numbers up to 10**6 times the square root of
2. All pairs of points are joined, or each point with its nearest ones. Seconds are those of the
processor, on one thread, without making a contender's graph. Objectives must agree.
`bench.suites.general` describes LEMON's program and mwmatching.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, triu

import gpumatch as gm
from bench.harness import Contender, Limits, Result, Sample, repeat
from bench.instances import Instance
from bench.report.tables import Graph, markdown, page, time_of, times_as_long
from bench.suites.general import (
    ENGINE,
    LEMON,
    MWMATCHING,
    NETWORKX,
    RUSTWORKX,
    lemon_on,
    lemon_program,
)

THREADS = 1
THRESHOLD = 0.0  # every graph counts
SMALL = {NETWORKX: 5000, MWMATCHING: 10_000, RUSTWORKX: 15_000}
"""The edges up to which a library is asked; beyond, it takes minutes."""
LONGEST = "longest"
"""The family of graphs whose greatest total length is sought."""


class Lengths:
    """Edges between points, with integer lengths."""

    def __init__(self, instance: Instance, matrix: csr_array, device: str) -> None:
        upper = triu(matrix, 1).tocoo()
        self.matrix, self.maximize = matrix, instance.family == LONGEST
        self.edges = upper.row, upper.col, upper.data
        self.facts = {**instance.facts(matrix), "edges": upper.nnz}

    @property
    def gains(self) -> tuple[np.ndarray, ...]:
        """The edges with weights to be maximised."""
        tails, heads, lengths = self.edges
        return tails, heads, lengths if self.maximize else -lengths


problem = Lengths


@dataclass(frozen=True)
class Ours:
    """`maximum_weight_matching` with cardinality "perfect"."""

    threads: int
    name: str = ENGINE

    def measure(self, problem: Lengths, limits: Limits) -> Result:
        def sample() -> Sample:
            begin = time.process_time()
            m = gm.general.maximum_weight_matching(
                problem.matrix,
                cardinality="perfect",
                maximize=problem.maximize,
                threads=self.threads,
            )
            taken = time.process_time() - begin
            return Sample(taken, m.size, more={"objective": m.objective, "proven": m.proven})

        return repeat(sample, limits)


@dataclass(frozen=True)
class Lemon:
    """`MaxWeightedPerfectMatching` of LEMON."""

    name: str = LEMON

    def measure(self, problem: Lengths, limits: Limits) -> Result:
        call = lemon_on(problem.matrix.shape[0], problem.gains, "perfect")
        sign = 1 if problem.maximize else -1

        def sample() -> Sample:
            total, seconds = call()
            size = problem.matrix.shape[0] // 2
            return Sample(seconds, size, more={"objective": sign * total})

        return repeat(sample, limits)


def _networkx(problem: Lengths) -> Callable[[], Any]:
    import networkx as nx

    G = nx.Graph()
    G.add_weighted_edges_from(zip(*(part.tolist() for part in problem.gains)))
    return lambda: nx.max_weight_matching(G, True, backend="networkx")


def _rustworkx(problem: Lengths) -> Callable[[], Any]:
    import rustworkx as rx

    G = rx.PyGraph()
    G.add_nodes_from(range(problem.matrix.shape[0]))
    G.add_edges_from([*zip(*(part.tolist() for part in problem.gains))])
    return lambda: rx.max_weight_matching(G, True, weight_fn=int)


def _mwmatching(problem: Lengths) -> Callable[[], Any]:
    import mwmatching as mw

    edges = [*zip(*(part.tolist() for part in problem.gains))]
    lifted = mw.adjust_weights_for_maximum_cardinality_matching(edges)
    return lambda: mw.maximum_weight_matching(lifted)


@dataclass(frozen=True)
class Matcher:
    """A function of another library, which is imported when it is measured."""

    name: str
    prepare: Callable[[Lengths], Callable[[], Any]]

    def measure(self, problem: Lengths, limits: Limits) -> Result:
        call = self.prepare(problem)

        def sample() -> Sample:
            begin = time.process_time()
            pairs = call()
            taken = time.process_time() - begin
            rows, cols = np.array([*pairs]).T
            total = int(problem.matrix[rows, cols].sum())
            return Sample(taken, rows.size, more={"objective": total})

        return repeat(sample, limits)


def contenders(device: str, threads: int) -> list[Contender]:
    """Ours, and the libraries that are installed here."""
    programs = [Lemon()] if lemon_program() else []
    libraries = (RUSTWORKX, _rustworkx), (MWMATCHING, _mwmatching), (NETWORKX, _networkx)
    return [Ours(threads), *programs, *(Matcher(*library) for library in libraries)]


# -- graphs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PointInstance(Instance):
    """Points, of which each is joined with so many near ones, or with all others.

    Attributes
    ----------
    points : int
    neighbours : int, optional
    """

    points: int = 0
    neighbours: int | None = None

    def original(self) -> csr_array:
        """The lengths of the edges, from both ends."""
        places = np.random.default_rng(1).random((self.points, 2))
        rows, cols = self._pairs(places)
        length = np.rint(1e6 * np.hypot(*(places[rows] - places[cols]).T)).astype(np.int64) + 1
        upper = coo_array((length, (rows, cols)), shape=(self.points,) * 2)
        return csr_array(upper + upper.T)

    def _pairs(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.neighbours is None:
            rows, cols = np.triu_indices(self.points, 1)
            return rows, cols
        from scipy.spatial import cKDTree

        near = cKDTree(places).query(places, self.neighbours + 1)[1][:, 1:]
        pairs = np.stack([np.repeat(np.arange(self.points), self.neighbours), near.ravel()])
        rows, cols = np.unique(np.sort(pairs, axis=0), axis=1)
        return rows, cols

    def takes(self, contender: str) -> bool:
        near = self.points - 1 if self.neighbours is None else self.neighbours
        return self.points * near // 2 <= SMALL.get(contender, self.points * near)


def _instance(points: int, neighbours: int | None, family: str) -> PointInstance:
    joined = "complete" if neighbours is None else f"{neighbours} nearest"
    base = f"{points} points, {joined}, {family}"
    return PointInstance(base, family, (), points=points, neighbours=neighbours)


def warming(quick: bool) -> list[Instance]:
    """Points that take the kernels of all that is measured."""
    sizes = ((40, 6),) if quick else ((80, 6), (80, None), (1000, None))
    return [_instance(n, k, family) for n, k in sizes for family in ("shortest", LONGEST)]


SIZES = (
    *((1000, 10, "shortest"), (1000, 10, LONGEST), (100_000, 10, "shortest")),
    *((100, None, "shortest"), (100, None, LONGEST)),
    *((1000, None, "shortest"), (1000, None, LONGEST)),
)


def instances(quick: bool, data: str | None) -> list[Instance]:
    """Points with their nearest ones, and complete graphs."""
    sizes = ((40, 6, "shortest"), (20, None, LONGEST)) if quick else SIZES
    return [_instance(*size) for size in sizes]


def report(data: dict[str, Any], threshold: float) -> str:
    """Seconds, and how many times as long the libraries take."""
    graphs: dict[str, Graph] = data["graphs"]
    names = (ENGINE, LEMON, RUSTWORKX, MWMATCHING, NETWORKX)
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
