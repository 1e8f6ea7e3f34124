"""`general.maximum_matching` of graphs of all kinds, in all forms, stopped or not."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array

import gpumatch as gm
from tests import general_graphs
from tests.fuzz.judgement import require
from tests.fuzz.trials import Trial

BY_SUBSETS = 13
"""Vertices up to which the size is found by subsets."""
BY_NETWORKX = 60
LARGEST = 2**15


def maximum_matching(trial: Trial) -> None:
    edges, size = _drawn(trial)
    n = int(edges.max()) + 1 if edges.size else 0
    trial.sized(edges.size)
    options: dict[str, Any] = {"seed": trial.integer(0, 9), "threads": trial.integer(1, 3)}
    G, triangle = _given(trial, edges, n)
    if trial.chance(0.3):
        options["initial"] = _some_pairs(trial, edges, n)
    stops = trial.chance(0.1)
    if stops:
        calls, last = itertools.count(1), trial.integer(1, 9)
        options["callback"] = lambda _: next(calls) >= last
    trial.note(G=G, triangle=triangle, **options)
    m = gm.general.maximum_matching(G, triangle=triangle, **options)
    require(m.proven or stops, "a run to the end is not proven")
    if m.proven:
        certificate = gm.verify(G, m, triangle=triangle)
        known = _known(edges, n) if size is None else size
        require(known is None or certificate.size == known, f"the size is {m.size}, not {known}")
    else:
        ends = np.flatnonzero(m.mate >= 0)
        pairs = {*map(tuple, edges.tolist()), *map(tuple, edges[:, ::-1].tolist())}
        require(np.array_equal(m.mate[m.mate[ends]], ends), "mates do not name each other")
        require(pairs >= {*zip(ends.tolist(), m.mate[ends].tolist())}, "a pair is no edge")


def _drawn(trial: Trial) -> tuple[np.ndarray, int | None]:
    """The edges of a graph, and the size of its maximum matching if that is known."""
    kind = trial.pick(("small", "sparse", "ears", "parts", "flowers", "triangles"))
    rng = trial.rng
    if kind == "small":
        return general_graphs.random_graph(trial.scaled(trial.integer(2, 40)), rng), None
    if kind == "ears":
        edges = general_graphs.factor_critical(
            trial.scaled(trial.integer(1, 400)), rng, trial.integer(1, 9)
        )
        return edges, int(edges.max()) // 2
    if kind == "parts":
        barrier, more = trial.scaled(trial.integer(0, 60)), trial.integer(1, 20)
        edges, parts = general_graphs.with_parts(
            barrier, barrier + more, trial.scaled(trial.integer(0, 60)), rng
        )
        return edges, (parts.size - more) // 2 if edges.max() == parts.size - 1 else None
    if kind == "flowers":
        return general_graphs.flowers(trial.integer(1, 3), trial.pick((3, 5, 7))), None
    if kind == "triangles":
        k = trial.scaled(trial.integer(1, 500))
        return general_graphs.chain_of_triangles(k), 3 * k // 2
    n = trial.scaled(int(2 ** rng.uniform(1, np.log2(LARGEST))))
    return rng.integers(0, n, (int(n * trial.pick((0.7, 1.0, 1.3, 2.0, 4.0))), 2)), None


def _given(trial: Trial, edges: np.ndarray, n: int) -> tuple[Any, str]:
    """The graph in some form, and the triangle in which a matrix has its edges."""
    form = trial.pick(("edges", "csr", "csc", "coo", "dense", "upper", "lower", "networkx"))
    if form == "networkx" and edges.size:
        import networkx as nx

        G = trial.pick((nx.Graph, nx.MultiGraph, nx.DiGraph))()
        G.add_nodes_from(range(n))
        G.add_edges_from(edges.tolist())
        return G, "both"
    if form in ("edges", "networkx"):
        return (edges, None), "both"
    rows, cols = edges.T
    if form in ("upper", "lower"):
        rows, cols = np.minimum(rows, cols), np.maximum(rows, cols)
        rows, cols = (rows, cols) if form == "upper" else (cols, rows)
    matrix = coo_array((np.ones(rows.size), (rows, cols)), shape=(n, n))
    if form in ("upper", "lower"):
        return matrix, form
    if form == "dense" and 2 < n < 500:
        return matrix.toarray(), "both"
    return {"csr": csr_array, "csc": csc_array}.get(form, coo_array)(matrix), "both"


def _some_pairs(trial: Trial, edges: np.ndarray, n: int) -> np.ndarray:
    mate = np.full(n, -1)
    for u, v in trial.rng.permutation(edges)[: trial.integer(0, edges.shape[0])].tolist():
        if u != v and mate[u] < 0 and mate[v] < 0:
            mate[u], mate[v] = v, u
    return mate


def _known(edges: np.ndarray, n: int) -> int | None:
    if n <= BY_SUBSETS:
        return general_graphs.size_by_subsets(edges, n)
    if n > BY_NETWORKX:
        return None
    import networkx as nx

    G = nx.Graph(edges[edges[:, 0] != edges[:, 1]].tolist())
    return len(nx.max_weight_matching(G, maxcardinality=True))
