"""Any input as a simple undirected graph."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix

from gpumatch.general.graph import Graph, pattern_of, weighted_of


def weights_of(graph):
    """The weight of each edge, None if there are none, by its ends."""
    found = {}
    for v in range(graph.order):
        begin, end = graph.indptr[v : v + 2]
        assert (np.diff(graph.indices[begin:end]) > 0).all()
        for place in range(begin, end):
            weight = None if graph.weights is None else graph.weights[place].item()
            found[v, int(graph.indices[place])] = weight
    assert all(found[v, u] == weight for (u, v), weight in found.items())
    return {ends: weight for ends, weight in found.items() if ends[0] < ends[1]}


def best_of(edges, weights, best):
    found = {}
    for (u, v), weight in zip(edges.tolist(), weights.tolist()):
        if u != v:
            ends = min(u, v), max(u, v)
            found[ends] = best(found.get(ends, weight), weight)
    return found


def drawn(rng):
    n, m = int(rng.integers(1, 9)), int(rng.integers(1, 15))
    return n, rng.integers(0, n, (m, 2)), rng.integers(-3, 4, m)


@pytest.mark.parametrize(("maximize", "best"), [(True, max), (False, min)])
def test_the_best_of_repeated_edges_counts(maximize, best):
    rng = np.random.default_rng(3)
    for _ in range(60):
        n, edges, weights = drawn(rng)
        expected = best_of(edges, weights, best)
        assert weights_of(weighted_of((edges, weights), maximize=maximize)) == expected
        G = nx.MultiGraph()
        G.add_nodes_from(range(n))
        G.add_weighted_edges_from(zip(*edges.T.tolist(), weights.tolist()))
        assert weights_of(weighted_of(G, maximize=maximize)) == expected
        for triangle, reads in ("upper", np.less), ("lower", np.greater):
            chosen = reads(*edges.T)
            matrix = coo_array((weights, edges.T), shape=(n, n))
            graph = weighted_of(matrix, triangle=triangle, maximize=maximize)
            assert weights_of(graph) == best_of(edges[chosen], weights[chosen], best)
            assert [*weights_of(pattern_of(matrix, triangle))] == sorted(weights_of(graph))
        assert {*weights_of(pattern_of(matrix))} == {*expected}


SYMMETRIC = np.array([[9, 2, 0], [2, 0, -1], [0, -1, 0]])


@pytest.mark.parametrize(
    "source",
    [
        SYMMETRIC,
        SYMMETRIC.tolist(),
        SYMMETRIC.astype(np.float32),
        csr_array(SYMMETRIC),
        csr_matrix(SYMMETRIC),
        csc_array(SYMMETRIC),
        coo_array(SYMMETRIC),
        csr_array(np.triu(SYMMETRIC)),
        coo_array(np.tril(SYMMETRIC)),
        (np.array([0, 2, 4, 5]), [0, 1, 2, 0, 1], [9, 2, -1, 2, -1], (3, 3)),
        ([(1, 0), (1, 2)], [2, -1]),
        (np.array([[2, 1], [0, 1], [1, 1]], np.uint8), [-1, 2, 5]),
    ],
)
def test_forms_of_one_graph(source):
    for graph in weighted_of(source), weighted_of(weighted_of(source)):
        assert weights_of(graph) == {(0, 1): 2, (1, 2): -1}
    assert weights_of(pattern_of(source)) == {(0, 1): None, (1, 2): None}
    assert pattern_of(weighted_of(source)).weights is None


def test_stored_zeros_are_edges():
    matrix = csr_array(([0, 0], [1, 0], [0, 1, 2]), shape=(2, 2))
    assert weights_of(weighted_of(matrix)) == {(0, 1): 0}
    assert weights_of(pattern_of(matrix)) == {(0, 1): None}


def test_edges_without_weights_weigh_1():
    assert weights_of(weighted_of(([(0, 1)], None))) == {(0, 1): 1}
    assert weights_of(weighted_of(nx.path_graph(3))) == {(0, 1): 1, (1, 2): 1}
    assert weights_of(weighted_of(pattern_of(csr_array([[0, 1], [1, 0]])))) == {(0, 1): 1}
    G = nx.Graph([(0, 1, {"w": 2.5}), (1, 2)])
    assert weights_of(weighted_of(G, "w")) == {(0, 1): 2.5, (1, 2): 1.0}


def test_types_of_weights():
    assert weighted_of(([(0, 1)], np.array([3], np.uint16))).weights.dtype == np.int64
    assert weighted_of(([(0, 1)], np.array([True]))).weights.dtype == np.int64
    assert weighted_of(([(0, 1)], np.array([3], np.float16))).weights.dtype == np.float64


def test_the_arrays_are_the_graphs_own():
    matrix = csr_array(SYMMETRIC[1:, 1:])
    graph = pattern_of(matrix)
    before = graph.indices.copy()
    matrix.indices[:] = 0
    assert np.array_equal(graph.indices, before)


def test_two_weights_of_one_edge_are_refused():
    matrix = csr_array([[0, 1, 0], [1, 0, 2], [0, 3, 0]])
    with pytest.raises(ValueError, match=r"edge \(1, 2\) has the weight 2 in one triangle and 3"):
        weighted_of(matrix)
    assert pattern_of(matrix).size == 2


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("maximize", [True, False])
def test_what_is_no_edge_may_have_any_weight(number, maximize):
    """Loops, as on the diagonal of distances, and what is in the other triangle."""
    dense = np.array([[number, 2.5, 1.0], [2.5, number, 3.0], [1.0, 3.0, number]])
    known = {(0, 1): 2.5, (0, 2): 1.0, (1, 2): 3.0}
    G = nx.MultiGraph()
    G.add_weighted_edges_from((u, v, dense[u, v]) for u in range(3) for v in range(u, 3))
    ends = np.argwhere(np.ones((3, 3)))
    for source in (dense, csr_array(dense), coo_array(dense), (ends, dense[*ends.T]), G):
        assert weights_of(weighted_of(source, maximize=maximize)) == known
    dense[np.tril_indices(3)] = number
    for matrix in (dense, csr_array(dense), csc_array(dense)):
        assert weights_of(weighted_of(matrix, triangle="upper", maximize=maximize)) == known
        for triangle in ("both", "lower"):
            with pytest.raises(ValueError, match="all must be finite"):
                weighted_of(matrix, triangle=triangle, maximize=maximize)
    with pytest.raises(ValueError, match="all must be finite"):
        weighted_of(([(0, 1), (1, 0)], [1.0, number]), maximize=maximize)


@pytest.mark.parametrize("edges", [[], np.zeros((0, 2)), np.zeros((0, 2), int), ([], [])])
def test_no_edges_are_a_list_of_edges(edges):
    assert pattern_of(edges).order == weighted_of(edges).order == 0


@pytest.mark.parametrize(
    ("indptr", "indices", "weights", "message"),
    [
        ([0, 1], [7], None, "indices"),
        ([0, 1, 1], [1], None, "from both"),
        ([0, 2, 4], [0, 1, 0, 1], None, "from both"),
        ([0, 2, 3, 4], [2, 1, 0, 0], None, "sorted"),
        ([0, 2, 4], [1, 1, 0, 0], None, "once"),
        ([0, 1, 2], [1, 0], [1, 2], "one weight"),
        ([0, 1, 2], [1, 0], [1], "data"),
        ([0, 1, 2], [1, 0], [np.inf, np.inf], "must be finite"),
        ([0, 1, 3], [1, 0], None, "indptr"),
    ],
)
def test_a_graph_of_wrong_arrays_is_refused(indptr, indices, weights, message):
    """Kernels would read and write where no array is."""
    weights = None if weights is None else np.array(weights)
    graph = Graph(np.array(indptr), np.array(indices, np.int32), weights)
    with pytest.raises(ValueError, match=message):
        weighted_of(graph)
    if weights is None:
        with pytest.raises(ValueError, match=message):
            pattern_of(graph)
    with pytest.raises(ValueError, match="has 1 nodes"):
        weighted_of(weighted_of(([(0, 1)], [2]))._replace(nodes=["a"]))


WRONG = [
    (np.ones((2, 3)), r"must be square.* edges are given as \(edges, weights\)"),
    (csr_array((2, 3)), "must be square"),
    (np.ones((2, 2)), "a matrix or a list of two edges"),
    ([[0, 1], [1, 2]], "a matrix or a list of two edges"),
    (np.ones(3), "must have 2 dimensions"),
    (np.array([["a"]]), "must be a sparse matrix"),
    (([(0, 1, 2)], None), r"shape \(m, 2\)"),
    (([(0.5, 1.0)], None), "edges must be integers"),
    (([(0, -1)], None), "edges: vertex -1 is below 0"),
    (([(0, 1)], [1, 2]), "one number for each of the 1 edges"),
    (([(0, 1)], [np.nan]), "a weight is nan"),
    (([(0, 1)], [np.inf]), "a weight is inf"),
    (([(0, 1)], [1j]), "must be real numbers"),
    (([(0, 1)], np.array([2**63], np.uint64)), "does not fit int64"),
    (nx.Graph([("a", "b", {"weight": None})]), "a weight is nan"),
    (nx.MultiGraph([("a", "b", {"weight": "x"})]), "must be a number"),
]


@pytest.mark.parametrize(("source", "message"), WRONG)
def test_what_is_no_graph_is_refused(source, message):
    with pytest.raises((ValueError, TypeError), match=message):
        weighted_of(source)


@pytest.mark.parametrize("make", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_graphs_of_every_kind(make):
    G = make()
    G.add_nodes_from("zyx")
    G.add_edges_from(itertools.permutations("xy"), weight=4)
    G.add_edge("z", "z", weight=7)
    graph = weighted_of(G)
    assert graph.nodes == ["z", "y", "x"]
    assert weights_of(graph) == {(1, 2): 4}
    assert repr(graph) == "Graph(3 vertices, 1 edges, weights of int64)"


def test_arguments_of_the_wrong_type_are_named():
    edges = [(0, 1), (1, 2), (0, 2)], [1, 2, 3]
    with pytest.raises(TypeError, match=r"weight must be the name of an attribute; got \['w'\]"):
        weighted_of(nx.Graph([(0, 1)]), ["w"])
    for triangle in (1, np.array(["upper", "lower"])):
        with pytest.raises(ValueError, match="triangle must be one of"):
            weighted_of(edges, triangle=triangle)
