"""Which nodes of a networkx graph are rows, and which are columns."""

from __future__ import annotations

import re

import networkx as nx
import numpy as np
import pytest

import gpumatch as gm
from gpumatch import BipartiteGraph
from tests.bipartite_inputs import names, networkx_graph


def test_networkx_nodes_are_the_labels():
    graph = BipartiteGraph(networkx_graph())
    assert (graph.row_labels, graph.col_labels) == (names(3, "r"), names(4, "c"))


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph])
def test_a_connected_networkx_graph_needs_no_marks(kind):
    G = kind([("a", "x"), ("b", "x"), ("b", "y")])
    graph = BipartiteGraph(G)
    sides = {tuple(graph.row_labels), tuple(graph.col_labels)}
    assert sides == {("a", "b"), ("x", "y")}
    assert graph.nnz == 3


def test_sides_that_are_found_keep_the_order_of_the_nodes():
    G = nx.path_graph(range(99, -1, -1))
    graph = BipartiteGraph(G)
    for labels in (graph.row_labels, graph.col_labels):
        assert labels == sorted(labels, reverse=True)


def test_each_component_is_divided_by_itself():
    """Its first node is a row, so that isolated nodes are."""
    graph = BipartiteGraph(nx.Graph([("b", "y"), ("a", "y"), ("x", "c"), ("x", "d")]))
    assert (graph.row_labels, graph.col_labels) == (["b", "a", "x"], ["y", "c", "d"])
    G = nx.Graph()
    G.add_nodes_from("zyx")
    G.add_edge("x", "u")
    assert BipartiteGraph(G).row_labels == ["z", "y", "x"]


@pytest.mark.parametrize("marked", [{"c": 0}, {"x": 1}, {"x": 1, "d": 0}])
def test_a_component_goes_where_a_mark_lets_it(marked):
    G = nx.Graph([("x", "c"), ("x", "d"), ("y", "e")])
    nx.set_node_attributes(G, {**marked, "e": 0}, "bipartite")
    graph = BipartiteGraph(G)
    assert (graph.row_labels, graph.col_labels) == (["c", "d", "e"], ["x", "y"])


@pytest.mark.parametrize("mark", [2, -1, "0", 0.5])
def test_a_mark_that_is_no_side_is_refused_by_name(mark):
    G = nx.Graph(["ax", "bx"])
    nx.set_node_attributes(G, {"a": 0, "b": mark, "x": None}, "bipartite")
    says = re.escape(f"node 'b' has the mark bipartite={mark!r}: it must be 0 for rows and 1 for")
    with pytest.raises(ValueError, match=says):
        BipartiteGraph(G)
    with pytest.raises(ValueError, match=says):
        gm.assign(G)
    assert BipartiteGraph.from_networkx(G, "ab").shape == (2, 1)


@pytest.mark.parametrize("zero", [0, 0.0, False, np.int64(0)])
def test_marks_may_be_of_any_kind_of_number(zero):
    G = nx.Graph(["ax", "by"])
    nx.set_node_attributes(G, {"x": zero, "b": zero + 1}, "bipartite")
    assert set(BipartiteGraph(G).row_labels) == {"x", "y"}


def test_marks_in_a_component_that_contradict_each_other_are_refused():
    G = nx.path_graph(4)
    nx.set_node_attributes(G, {0: 0, 3: 0}, "bipartite")
    with pytest.raises(ValueError, match="stays on one side"):
        BipartiteGraph(G)


def test_row_nodes_set_the_order_of_rows():
    G = networkx_graph(marked=False)
    graph = BipartiteGraph.from_networkx(G, iter(["r2", "r0", "r1", "r2"]))
    assert graph.row_labels == ["r2", "r0", "r1"]
    assert graph.indptr.tolist() == [0, 2, 4, 4]
    with pytest.raises(ValueError, match="row_nodes: 'z' is not a node"):
        BipartiteGraph.from_networkx(G, ["z"])
    with pytest.raises(ValueError, match=r"edge .* stays on one side"):
        BipartiteGraph.from_networkx(G, ["r0", "c1", "c3"])


def test_marks_that_contradict_the_edges_are_refused():
    G = networkx_graph()
    G.add_edge("r0", "r1")
    with pytest.raises(ValueError, match=r"edge \('r0', 'r1'\) stays on one side"):
        BipartiteGraph(G)


def test_a_networkx_graph_without_nodes():
    assert BipartiteGraph(nx.Graph()).shape == (0, 0)
