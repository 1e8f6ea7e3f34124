"""Graphs go to networkx and come back: nodes, sides, isolated vertices, edges, their order."""

from __future__ import annotations

import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms import bipartite

import gpumatch as gm
from gpumatch import BipartiteGraph
from gpumatch.interop.networkx import NodeGraph

DENSE = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]])

# Nodes of every kind that networkx has: numbers, text, tuples, numbers that look like indices.
NODES = st.one_of(st.integers(-5, 5), st.text(max_size=2), st.tuples(st.integers(0, 2)))


@st.composite
def networkx_graphs(draw):
    """Bipartite graphs with marks, of any class, with parallel edges and isolated nodes."""
    nodes = draw(st.lists(NODES, unique=True, max_size=12))
    sides = draw(st.lists(st.integers(0, 1), min_size=len(nodes), max_size=len(nodes)))
    G = draw(st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]))()
    for node, side in zip(nodes, sides):
        G.add_node(node, bipartite=side)
    rows, cols = ([n for n, s in zip(nodes, sides) if s == side] for side in (0, 1))
    if rows and cols:
        pairs = st.tuples(st.sampled_from(rows), st.sampled_from(cols))
        for row, col in draw(st.lists(pairs, max_size=20)):
            G.add_edge(*draw(st.permutations([row, col])))
    return G


def without_directions(G):
    """The simple graph with the same nodes and marks, as sets."""
    return set(G.nodes(data="bipartite")), {frozenset(ends) for ends in nx.Graph(G).edges()}


def assert_same(graph, again):
    assert again.shape == graph.shape
    for name in ("indptr", "indices", "col_indptr", "col_indices"):
        np.testing.assert_array_equal(getattr(again, name), getattr(graph, name))


@given(networkx_graphs())
def test_a_networkx_graph_comes_back(G):
    graph = BipartiteGraph(G)
    H = graph.to_networkx()
    assert type(H) is nx.Graph
    assert without_directions(H) == without_directions(G)
    again = BipartiteGraph(H)
    assert_same(graph, again)
    assert (again.row_labels, again.col_labels) == (graph.row_labels, graph.col_labels)


@given(st.integers(0, 6), st.integers(0, 6), st.data())
def test_a_graph_without_labels_comes_back(nrows, ncols, data):
    marks = st.lists(st.booleans(), min_size=nrows * ncols, max_size=nrows * ncols)
    dense = np.array(data.draw(marks), bool).reshape(nrows, ncols)
    graph = BipartiteGraph(dense)
    G = graph.to_networkx()
    assert_same(graph, BipartiteGraph(G))
    peer = bipartite.from_biadjacency_matrix(sp.csr_array(dense.astype(int)))
    assert without_directions(G) == without_directions(peer)
    assert all(type(node) is int for node in G)


def test_the_nodes_come_in_the_order_of_rows_then_columns():
    G = nx.Graph([("x", "b"), ("a", "x"), ("a", "y")])
    H = BipartiteGraph.from_networkx(G, ["b", "a"]).to_networkx()
    assert list(H.nodes(data="bipartite")) == [("b", 0), ("a", 0), ("x", 1), ("y", 1)]


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_either_direction_gives_the_same_edges(form):
    G = BipartiteGraph(sp.csr_array(DENSE).asformat(form)).to_networkx()
    assert set(G.edges()) == {(0, 4), (0, 6), (2, 3), (2, 4)}
    assert G.degree(1) == G.degree(5) == 0


def test_the_graph_has_the_same_matching():
    graph = BipartiteGraph(DENSE)
    m = gm.maximum_matching(graph.to_networkx())
    assert gm.verify(graph, m).size == 2


@pytest.mark.gpu
def test_a_graph_on_the_device_goes_to_networkx():
    graph = BipartiteGraph(DENSE)
    G, of_device = graph.to_networkx(), graph.to_device().to_networkx()
    assert without_directions(G) == without_directions(of_device)
    named = BipartiteGraph.from_networkx(nx.Graph(["ax", "by"]), "ab").to_device()
    assert set(named.to_networkx()) == set("abxy")


@pytest.mark.parametrize("objective", ["sum", "bottleneck"])
@pytest.mark.parametrize("turned", [False, True])
def test_an_infeasible_graph_names_its_nodes(objective, turned):
    G = nx.Graph([("ann", "web"), ("bob", "web"), ("cy", "docs"), ("cy", "tests"), ("cy", "web")])
    rows = ["web", "docs", "tests"] if turned else ["ann", "bob", "cy"]
    text = "'docs', 'tests' to 'cy'" if turned else "'ann', 'bob' to 'web'"
    with pytest.raises(gm.InfeasibleError, match=text) as caught:
        gm.assign(G, row_nodes=rows, objective=objective)
    error = pickle.loads(pickle.dumps(caught.value))
    sides = (["docs", "tests"], ["cy"]) if turned else (["ann", "bob"], ["web"])
    assert (error.rows, error.cols) == sides


def test_a_row_that_is_no_node_is_named():
    with pytest.raises(ValueError, match="row_nodes: 'zed' is not a node of the graph"):
        gm.maximum_matching(nx.path_graph(3), row_nodes=[0, "zed", 2])


def test_an_infeasible_graph_names_few_nodes():
    G = nx.Graph([(k, "hub") for k in range(9)])
    G.add_nodes_from("abcdefgh")
    with pytest.raises(gm.InfeasibleError, match=r"0, 1, 2, 3, 4, … to 'hub'|to none"):
        gm.assign(G, row_nodes=range(9))


def test_a_graph_in_arrays_is_taken_as_the_graph_it_was_made_from():
    G = nx.Graph([("a", "x", {"weight": 3}), ("a", "y", {"weight": 1}), ("b", "y", {"weight": 2})])
    converted = NodeGraph.of(G, {"weight": 1})
    assert gm.maximum_matching(converted).to_dict() == {"a": "x", "x": "a", "b": "y", "y": "b"}
    assert gm.assign(converted).objective == gm.assign(G).objective == 5


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiGraph])
def test_a_graph_without_loops_is_of_the_same_kind(kind):
    graph = NodeGraph.of(kind([(0, 0), (0, 1)])).without_loops()
    assert graph.indices.tolist() == ([1] if graph.is_directed() else [1, 0])
    assert (graph.is_directed(), graph.is_multigraph()) == (
        kind is nx.DiGraph, kind is nx.MultiGraph,
    )  # fmt: skip


def test_a_graph_without_edges_has_integer_weights():
    assert NodeGraph.of(nx.empty_graph(3), {"weight": 1}).value("weight").dtype == np.int64
