"""The backend against networkx itself: its results and its exceptions."""

from __future__ import annotations

import itertools
import re
import tracemalloc
from fractions import Fraction
from functools import partial

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms import bipartite

from gpumatch.interop import networkx_backend as backend
from gpumatch.interop.networkx import NodeGraph

ODD = nx.cycle_graph(5)


@pytest.mark.parametrize("reflexive", [False, True, None])
def test_closures_and_searches_are_those_of_networkx(reflexive):
    graphs = [nx.gnp_random_graph(n, 1.5 / max(n, 1), n, directed=True) for n in range(12)]
    graphs.append(nx.relabel_nodes(graphs[9], lambda node: ("a", -node)))
    graphs.append(nx.DiGraph([(0, 0), (0, 1), (1, 2), (2, 1)]))
    for G in graphs:
        assert backend.can_run("transitive_closure", (G, reflexive), {}) is True
        found = backend.convert_to_nx(backend.transitive_closure(converted(G), reflexive))
        wanted = nx.transitive_closure(G, reflexive)
        assert found.is_directed()
        assert list(found) == list(wanted)
        assert set(found.edges) == set(wanted.edges)
        for source in (None, *G):
            assert backend.can_run("edge_bfs", (G, source), {}) is True
            edges = list(backend.edge_bfs(converted(G), source))
            assert edges == list(nx.edge_bfs(G, source))
    with pytest.raises(nx.NetworkXError, match="reflexive"):
        backend.transitive_closure(converted(G), 7)


@st.composite
def bipartite_graphs(draw, connected=False):
    """Graphs with nodes of several types in any order, isolated ones and weights among them."""
    nrows, ncols = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    rows, cols = [("r", i) for i in range(nrows)], [f"c{j}" for j in range(ncols)]
    G = nx.Graph()
    G.add_nodes_from(draw(st.permutations(rows + cols)))
    pairs = draw(st.lists(st.tuples(st.sampled_from(rows), st.sampled_from(cols)), max_size=20))
    if connected:
        pairs += [(rows[0], col) for col in cols] + [(row, cols[0]) for row in rows]
    for ends in pairs:
        G.add_edge(*draw(st.permutations(ends)))
        if draw(st.booleans()):
            G.edges[ends]["weight"] = draw(st.integers(-9, 9))
    return G, rows


def converted(G, weight=None):
    return backend.convert_from_nx(G, edge_attrs=weight and {weight: 1})


def outcome(function, *args, **kwargs):
    """The result, or the type of the exception."""
    try:
        return function(*args, **kwargs)
    except Exception as exc:
        return type(exc)


def weight_of(G, pairs):
    return sum(G.edges[pair].get("weight", 1) for pair in pairs)


@given(bipartite_graphs())
def test_matchings_and_vertex_covers_are_as_large(case):
    G, rows = case
    matching = backend.hopcroft_karp_matching(converted(G), rows)
    peer = bipartite.hopcroft_karp_matching(G, rows)
    assert type(matching) is dict
    assert len(matching) == len(peer)
    assert nx.is_matching(G, matching)
    assert all(matching[mate] == node for node, mate in matching.items())
    assert len(backend.eppstein_matching(converted(G), rows)) == len(peer)
    for given_matching in (matching, peer, dict(list(peer.items())[:1]), {}):
        cover = backend.to_vertex_cover(converted(G), given_matching, rows)
        assert type(cover) is set
        assert 2 * len(cover) == len(peer)
        assert all(u in cover or v in cover for u, v in G.edges)


@given(bipartite_graphs())
def test_weighted_matchings_weigh_as_much(case):
    G, rows = case
    graph = converted(G, "weight")
    for ours, peer in [
        (backend.max_weight_matching(graph), nx.max_weight_matching(G)),
        (backend.max_weight_matching(graph, True), nx.max_weight_matching(G, True)),
        (backend.min_weight_matching(graph), nx.min_weight_matching(G)),
    ]:
        assert type(ours) is set
        assert nx.is_matching(G, ours)
        assert weight_of(G, ours) == weight_of(G, peer)
    assert len(backend.max_weight_matching(graph, True)) == len(nx.max_weight_matching(G, True))
    assert len(backend.max_weight_matching(converted(G), weight=None)) == len(
        nx.max_weight_matching(G, weight=None)
    )
    ours = outcome(backend.minimum_weight_full_matching, graph, rows)
    peer = outcome(bipartite.minimum_weight_full_matching, G, rows)
    if isinstance(peer, dict):
        assert weight_of(G, ours.items()) == weight_of(G, peer.items())
        assert set(ours) >= set(min(rows, [*set(G) - set(rows)], key=len))
    else:
        assert issubclass(ours, peer)


@given(bipartite_graphs())
def test_edge_covers_are_as_large(case):
    G, _ = case
    ours, peer = outcome(backend.min_edge_cover, converted(G)), outcome(nx.min_edge_cover, G)
    if isinstance(peer, set):
        assert nx.is_edge_cover(G, ours)
        assert len(ours) == len(peer)
        assert ours <= {*G.edges, *((v, u) for u, v in G.edges)}
    else:
        assert ours is peer
    ours = outcome(backend.bipartite_min_edge_cover, converted(G))
    peer = outcome(bipartite.min_edge_cover, G)
    if isinstance(peer, set):
        assert {(v, u) for u, v in ours} == ours
        assert nx.is_edge_cover(G, ours)
        assert len(ours) == len(peer)
    else:
        assert ours is peer


@st.composite
def any_graphs(draw):
    """Graphs of at most 7 nodes, directed or not, odd cycles and loops among them."""
    G = draw(st.sampled_from([nx.Graph, nx.Graph, nx.DiGraph, nx.MultiGraph]))()
    G.add_nodes_from(draw(st.permutations(range(draw(st.integers(1, 7))))))
    nodes = st.sampled_from(list(G))
    G.add_edges_from(draw(st.lists(st.tuples(nodes, nodes), max_size=12)))
    return G


@given(any_graphs(), st.data())
def test_checks_say_what_networkx_says(G, data):
    node = st.integers(-1, len(G))
    pairs = st.one_of(st.sampled_from([*G.edges()] or [(0, 0)]), st.tuples(node, node))
    edges = data.draw(st.lists(st.one_of(pairs, pairs, pairs, st.tuples(node)), max_size=4))
    for matching in (edges, dict(edge for edge in edges if len(edge) == 2)):
        for name in ("is_matching", "is_maximal_matching", "is_perfect_matching"):
            ours = outcome(backend.FUNCTIONS[name], converted(G), matching)
            peer = outcome(getattr(nx, name), G, matching)
            assert ours is peer or (G.is_multigraph() and peer is ValueError), name  # unpacks keys
    if not G.is_directed():
        assert backend.is_edge_cover(converted(G), edges) is nx.is_edge_cover(G, edges)
    if type(G) is nx.Graph:
        assert backend.maximal_matching(converted(G)) == nx.maximal_matching(G)


@given(any_graphs(), st.data())
def test_sides_are_those_of_networkx(G, data):
    assert backend.is_bipartite(converted(G)) is bipartite.is_bipartite(G)
    if G.is_directed():
        return
    assert outcome(backend.color, converted(G)) == outcome(bipartite.color, G)
    assert outcome(backend.sets, converted(G)) == outcome(bipartite.sets, G)
    nodes = data.draw(st.lists(st.integers(-1, 7), max_size=7))
    ours = outcome(backend.is_bipartite_node_set, converted(G), nodes)
    peer = outcome(bipartite.is_bipartite_node_set, G, nodes)
    if bipartite.is_bipartite(G):
        assert ours is peer
    else:  # networkx may have seen another component first
        assert ours in (peer, nx.NetworkXError)


@given(any_graphs())
def test_an_odd_cycle_is_one(G):
    cycle = converted(G).odd_cycle()
    if cycle is None:
        assert bipartite.is_bipartite(G)
        return
    assert len(cycle) % 2 == 1
    assert len(set(cycle)) == len(cycle)
    U = G.to_undirected()
    assert all(U.has_edge(u, v) for u, v in itertools.pairwise([*cycle, cycle[0]]))


def test_empty_graphs():
    empty = converted(nx.Graph())
    assert backend.max_weight_matching(converted(nx.Graph(), "weight")) == set()
    assert backend.min_edge_cover(empty) == backend.bipartite_min_edge_cover(empty) == set()
    assert backend.color(empty) == {}
    assert backend.hopcroft_karp_matching(empty, []) == {}
    with pytest.raises(nx.NetworkXPointlessConcept):
        backend.hopcroft_karp_matching(empty)


ERRORS = [
    ("hopcroft_karp_matching", (nx.Graph([(0, 1), (2, 3)]),), nx.AmbiguousSolution, "Disconn"),
    ("hopcroft_karp_matching", (ODD,), nx.NetworkXError, "odd cycle of 5 nodes: "),
    ("hopcroft_karp_matching", (nx.path_graph(3), [0, 7]), KeyError, "7"),
    ("hopcroft_karp_matching", (nx.path_graph(3), [0, 1]), nx.NetworkXError, "one side"),
    ("to_vertex_cover", (nx.path_graph(4), {0: 3, 3: 0}), nx.NetworkXError, "no edge"),
    ("minimum_weight_full_matching", (nx.star_graph(2), [1, 2], None), None, ""),
    (
        "minimum_weight_full_matching",
        (nx.path_graph(3), [1], "w"),
        NotImplementedError,
        "without .* 'w'",
    ),
]


@pytest.mark.parametrize(("name", "args", "error", "says"), ERRORS)
def test_errors(name, args, error, says):
    G, *others = args
    if error is None:
        assert len(backend.FUNCTIONS[name](converted(G), *others)) == 2
        return
    with pytest.raises(error, match=says):
        backend.FUNCTIONS[name](converted(G), *others)


def test_weights_of_every_numeric_kind():
    for weights in ([0.5, 2], [Fraction(1, 2), 2], [2**70, 2**71], [True, 2], [np.float32(1), 2]):
        G = nx.Graph()
        G.add_weighted_edges_from([("a", "x", weights[0]), ("a", "y", weights[1])])
        ours = backend.minimum_weight_full_matching(converted(G, "weight"), ["a"])
        assert ours == {"a": "x", "x": "a"}
    G.edges["a", "x"]["weight"] = "heavy"
    with pytest.raises(NotImplementedError, match="'weight' must be a number"):
        converted(G, "weight")


@given(any_graphs())
def test_a_graph_comes_back(G):
    if G.is_multigraph():
        return
    nx.set_edge_attributes(G, {edge: i for i, edge in enumerate(G.edges)}, "weight")
    again = backend.convert_to_nx(converted(G, "weight"))
    assert nx.utils.graphs_equal(again, G)
    assert backend.convert_to_nx({1: 2}) == {1: 2}


def test_a_sparse_full_matching_makes_no_dense_matrix():
    n = 10_000  # 800 MB as a matrix of float64
    rng = np.random.default_rng(1)
    G = nx.Graph()
    G.add_weighted_edges_from((i, n + i, 50) for i in range(n))
    ends = rng.integers(n, size=(2 * n, 2)).tolist()
    weights = rng.integers(100, size=2 * n).tolist()
    G.add_weighted_edges_from((u, n + v, w) for (u, v), w in zip(ends, weights) if u != v)
    tracemalloc.start()
    matching = backend.minimum_weight_full_matching(converted(G, "weight"), range(n))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6
    assert len(matching) == 2 * n
    assert weight_of(G, ((v, matching[v]) for v in range(n))) <= 50 * n


@st.composite
def weighted_graphs(draw):
    """Graphs of at most 9 nodes, odd cycles and loops among them, with weights of any sign."""
    G = nx.Graph()
    G.add_nodes_from(draw(st.permutations("abcdefghi")))
    nodes = st.sampled_from(list(G))
    for u, v in draw(st.lists(st.tuples(nodes, nodes), max_size=24)):
        G.add_edge(u, v)
        if draw(st.booleans()):
            G.edges[u, v]["weight"] = draw(st.integers(-9, 9))
    return G


@given(weighted_graphs())
def test_graphs_with_odd_cycles_have_matchings_that_weigh_as_much(G):
    graph = converted(G, "weight")
    G.remove_edges_from(list(nx.selfloop_edges(G)))
    for ours, peer in [
        (backend.max_weight_matching(graph), nx.max_weight_matching(G)),
        (backend.max_weight_matching(graph, True), nx.max_weight_matching(G, True)),
        (backend.min_weight_matching(graph), nx.min_weight_matching(G)),
    ]:
        assert type(ours) is set
        assert nx.is_matching(G, ours)
        assert weight_of(G, ours) == weight_of(G, peer)
    assert len(backend.max_weight_matching(graph, True)) == len(nx.max_weight_matching(G, True))
    lone = [node for node in G if not G.degree[node]]
    G.remove_nodes_from(lone)
    cover = backend.min_edge_cover(converted(G))
    assert len(cover) == len(nx.min_edge_cover(G))
    assert not len(G) or nx.is_edge_cover(G, cover)


def test_a_cover_by_networkx_own_algorithm_has_its_edges_once():
    G = nx.cycle_graph(5)
    for algorithm in (nx.max_weight_matching, partial(nx.max_weight_matching, maxcardinality=True)):
        assert backend.can_run("min_edge_cover", (G, algorithm), {}) is True
        assert len(backend.min_edge_cover(converted(G), algorithm)) == 3


@pytest.mark.parametrize("name", ["min_edge_cover", "max_weight_matching", "min_weight_matching"])
def test_loops_are_in_no_matching(name):
    G = nx.path_graph(4)
    G.add_edge(1, 1)
    G.add_edge(3, 3)
    found = backend.FUNCTIONS[name](converted(G, "weight"))
    assert {frozenset(edge) for edge in found} == {frozenset((0, 1)), frozenset((2, 3))}


def test_what_cannot_be_a_node_is_none():
    graph = converted(nx.path_graph(3))
    assert 2 in graph
    assert 3 not in graph
    assert [2] not in graph  # not hashable
    assert not backend.is_matching(converted(nx.path_graph(2)), {(0, 1), (1, 0)})


@pytest.mark.parametrize("algorithm", [None, bipartite.eppstein_matching])
def test_a_bipartite_edge_cover_has_its_edges_from_both_ends(algorithm):
    cover = backend.bipartite_min_edge_cover(NodeGraph.of(nx.path_graph(4)), algorithm)
    assert cover == {(0, 1), (1, 0), (2, 3), (3, 2)}


@pytest.mark.parametrize("nodes", [{0, 2, 5, 7}, {0, 2, 4, 6}, {1, 3, 5, 7}, {0, 2, 5}, {0, 1}])
def test_a_set_of_nodes_may_be_another_side_of_each_component(nodes):
    G = nx.disjoint_union(nx.path_graph(4), nx.path_graph(4))
    expected = bipartite.is_bipartite_node_set(G, nodes)
    assert backend.is_bipartite_node_set(NodeGraph.of(G), nodes) is expected is (len(nodes) == 4)


def test_the_least_weight_of_as_many_edges_as_there_can_be():
    """Neither side can be matched whole."""
    G = nx.Graph()
    G.add_weighted_edges_from([(0, 10, 5), (1, 10, 3), (2, 10, 4), (2, 11, 1), (2, 12, 2)])
    found = backend.min_weight_matching(NodeGraph.of(G, {"weight": 1}))
    assert {frozenset(edge) for edge in found} == {frozenset((1, 10)), frozenset((2, 11))}


@pytest.mark.parametrize(
    ("nodes", "end"), [(9, r"\d+\."), (11, r"\d+, …\.")], ids=["all named", "ten named"]
)
def test_of_a_long_odd_cycle_ten_nodes_are_named(nodes, end):
    with pytest.raises(nx.NetworkXError) as info:
        backend.color(converted(nx.cycle_graph(nodes)))
    said = str(info.value)
    assert re.search(rf"odd cycle of {nodes} nodes: (\d+, ){{{min(nodes, 10) - 1}}}{end}$", said)
