"""`gpumatch.general.maximum_matching`: every size against subsets, networkx and what is known."""

from __future__ import annotations

import pickle

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
import graphs
from tests.general_graphs import (
    chain_of_triangles,
    complete,
    every_graph,
    factor_critical,
    flowers,
    graphs_of,
    petersen,
    random_graph,
    side_by_side,
    sizes_by_subsets,
    with_parts,
)


def matched(G, **options):
    """A maximum matching, verified."""
    m = gm.general.maximum_matching(G, **options)
    assert m.proven
    assert gm.verify(G, m).size == m.size
    return m


def check_sizes(edges_of_each, orders):
    edges, firsts = side_by_side(edges_of_each, orders)
    found = np.add.reduceat(matched((edges, None)).mate >= 0, firsts) // 2
    assert np.array_equal(found, sizes_by_subsets(edges_of_each, orders))


def check_random_small_graphs(count, seed):
    rng = np.random.default_rng(seed)
    orders = rng.integers(1, 13, count)
    check_sizes([random_graph(n, rng) for n in orders], orders)


@pytest.mark.parametrize("n", range(1, 7))
def test_every_small_graph(n):
    every = every_graph(n)
    check_sizes(every, [n] * len(every))


@pytest.mark.parametrize("seed", range(2))
def test_random_small_graphs(seed):
    check_random_small_graphs(2500, seed)


@pytest.mark.long
def test_graphs_of_seven():
    """An eighth of them, in a random order; all 2**21 passed."""
    numbers = np.random.default_rng(7).permutation(2**21)
    for part in numbers[: 2**18].reshape(2, -1):
        check_sizes(graphs_of(7, part), [7] * len(part))


@pytest.mark.long
@pytest.mark.parametrize("part", range(2))
def test_many_random_small_graphs(part):
    """25 seeds in each of four parts are a million graphs, which passed."""
    for seed in range(5):
        check_random_small_graphs(10_000, (part, seed))


def check_against_networkx(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = int(rng.integers(2, 41))
        G = nx.Graph(random_graph(n, rng).tolist())
        assert matched(G).size == len(nx.max_weight_matching(G, maxcardinality=True))


def test_sizes_are_those_of_networkx():
    check_against_networkx(150, 1)


@pytest.mark.long
@pytest.mark.parametrize("part", range(2))
def test_many_sizes_are_those_of_networkx(part):
    """20,000 passed, as twenty calls of 1,000 with the seeds from 9000 on."""
    check_against_networkx(700, 2 + part)


def test_the_double_cover_comes_where_trees_would_read_too_much():
    """After Karp–Sipser only; a mesh begins with it."""
    for G, steps in (
        (graphs.road(60), ["karp-sipser", "blossoms"]),
        (graphs.grid(128, 0.8), ["karp-sipser", "blossoms", "double cover"]),
        (graphs.delaunay(9), ["double cover"]),
    ):
        trace = matched(G).stats["trace"]
        assert [phase["step"] for phase in trace][: len(steps)] == steps


# -- families that break others --------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 5, 101, 2001])
def test_complete_graphs(n):
    assert matched((complete(n), None)).size == n // 2


@pytest.mark.parametrize(("n", "k"), [(5, 2), (5, 1), (7, 2), (8, 3), (10, 3), (101, 40)])
def test_petersen_graphs(n, k):
    assert matched((petersen(n, k), None)).size == n


@pytest.mark.parametrize("k", [1, 2, 3, 50, 5001])
def test_triangles_in_chains(k):
    assert matched((chain_of_triangles(k), None)).size == 3 * k // 2


@pytest.mark.parametrize("longest", [1, 3, 40])
def test_nested_blossoms(longest):
    edges = factor_critical(500, np.random.default_rng(longest), longest)
    m = matched((edges, None))
    assert m.unmatched.size == 1
    assert m.gallai_edmonds()[0].size == m.mate.size


@pytest.mark.parametrize(("depth", "petals"), [(1, 3), (2, 3), (3, 3), (3, 5), (2, 11)])
def test_flowers_on_flowers(depth, petals):
    edges = flowers(depth, petals)
    G = nx.Graph(edges.tolist())
    assert matched((edges, None)).size == len(nx.max_weight_matching(G, maxcardinality=True))


@pytest.mark.parametrize("degree", [1.0, 2.0, 3.0, 6.0])
def test_random_graphs_of_1000_vertices(degree):
    """Those of boost#399, on over half of which Boost's matching was not maximum."""
    rng = np.random.default_rng(399)
    for _ in range(5):
        matched((rng.integers(0, 1000, (int(degree * 1000), 2)), None))


@pytest.mark.parametrize("seed", range(6))
def test_the_decomposition_is_the_known_one(seed):
    rng = np.random.default_rng(seed)
    edges, parts = with_parts(5 * seed, 5 * seed + 1 + seed, 30 * (seed % 3), rng)
    m = matched((edges, None))
    assert m.unmatched.size == seed + 1
    for found, part in zip(m.gallai_edmonds(), (1, 2, 0)):
        assert np.array_equal(found, np.flatnonzero(parts == part))


@pytest.mark.parametrize(
    "graph",
    [
        lambda: graphs.delaunay(12, seed=1),
        lambda: graphs.rgg(12, seed=1),
        lambda: graphs.kron(10, seed=1),
        lambda: graphs.road(30, seed=1),
        lambda: graphs.grid(60, 0.65, seed=1),
        lambda: graphs.uniform(5000, 3, seed=1),
        lambda: graphs.ladder(500),
        lambda: graphs.chain(999),
    ],
    ids=["delaunay", "rgg", "kron", "road", "grid", "uniform", "ladder", "chain"],
)
def test_generated_graphs(graph):
    A = graph()
    matched(A + A.T)


def test_a_bipartite_graph_has_the_size_of_its_matching():
    rng = np.random.default_rng(2)
    B = csr_array(rng.random((300, 200)) < 0.01)
    rows, cols = B.nonzero()
    m = matched((np.stack([rows, 300 + cols], axis=1), None))
    assert m.size == gm.maximum_matching(B).size


# -- arguments -------------------------------------------------------------------------------------


def test_initial_is_extended():
    path = [(0, 1), (1, 2), (2, 3)]
    m = matched((path, None), initial=[-1, 2, 1, -1])
    assert m.edges().tolist() == [[0, 1], [2, 3]]
    assert np.array_equal(matched((path, None), initial=m).mate, m.mate)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ([-1, -1], "there must be 3 mates; got 2"),
        ([3, -1, -1], "vertex 0 has the mate 3 of 3"),
        ([-2, -1, -1], "vertex 0 has the mate -2 of 3"),
        ([1, 2, 1], "vertex 0 has the mate 1, which has the mate 2"),
        ([0, -1, -1], "vertices 0 and 0 are mates, but no edge"),
        ([2, -1, 0], "vertices 0 and 2 are mates, but no edge"),
        ([0.0, 1.0, 2.0], "initial must be integers"),
    ],
)
def test_a_wrong_initial_is_refused(initial, message):
    with pytest.raises((ValueError, TypeError), match=message):
        gm.general.maximum_matching(([(0, 1), (1, 2)], None), initial=initial)


def test_wrong_arguments_are_named():
    edges = ([(0, 1)], None)
    with pytest.raises(ValueError, match="algorithm must be"):
        gm.general.maximum_matching(edges, algorithm="hk")
    with pytest.raises(ValueError, match="not on 'reference'"):
        gm.general.maximum_matching(edges, backend="reference")
    with pytest.raises(TypeError, match="unexpected argument 'maximise'"):
        gm.general.maximum_matching(edges, maximise=True)
    with pytest.raises(ValueError, match="triangle must be"):
        gm.general.maximum_matching(edges, triangle="left")


def test_seed_and_threads_change_nothing_that_is_proven():
    A = graphs.road(40, seed=3)
    sizes = {matched(A, seed=seed, threads=1 + seed % 2).size for seed in range(4)}
    assert len(sizes) == 1
    mates = [gm.general.maximum_matching(A, seed=5, threads=1).mate for _ in range(2)]
    assert np.array_equal(*mates)


@pytest.mark.parametrize("ticks", range(1, 12))
@pytest.mark.parametrize("make", [lambda: graphs.road(30, seed=1), lambda: graphs.kron(8, seed=1)])
def test_a_run_that_stops_has_a_matching_without_a_proof(ticks, make):
    A, seen = make(), []
    m = gm.general.maximum_matching(A, callback=lambda _: seen.append(1) or len(seen) >= ticks)
    if m.proven:
        assert len(seen) < ticks
        return
    ends = np.flatnonzero(m.mate >= 0)
    assert np.array_equal(m.mate[m.mate[ends]], ends)
    assert A.toarray()[ends, m.mate[ends]].all()
    with pytest.raises(ValueError, match="not proven maximum"):
        m.tutte_berge_set()
    with pytest.raises(gm.CertificateError, match="not proven maximum"):
        gm.verify(A, m)


def test_an_interrupt_brings_the_best_matching():
    def stop(progress):
        if progress.matched:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gm.general.maximum_matching(graphs.delaunay(9), callback=stop)
    assert caught.value.result.size > 0
    assert not caught.value.result.proven


# -- results ---------------------------------------------------------------------------------------


def test_results_name_nodes():
    G = nx.MultiDiGraph([("a", "b"), ("b", "a"), ("b", "c"), ("c", "c"), ("c", "d"), ("e", "e")])
    m = matched(G)
    assert m.to_dict() == {"a": "b", "b": "a", "c": "d", "d": "c"}
    assert m.edges() == [("a", "b"), ("c", "d")]
    assert m.unmatched == ["e"]
    assert m.gallai_edmonds() == (["e"], [], ["a", "b", "c", "d"])
    assert nx.is_maximal_matching(nx.Graph([*G.edges()]), {*m.edges()})


def test_the_matching_as_a_matrix():
    m = matched(([(0, 1), (2, 3), (1, 2)], None))
    assert m.to_matrix().toarray().tolist() == np.eye(4)[[1, 0, 3, 2]].tolist()
    assert repr(m) == "GeneralMatching(size 2, maximum, engine)"
    assert len(m) == 2


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_graph_without_edges(n):
    m = matched(csr_array((n, n)))
    assert m.size == 0
    assert m.unmatched.tolist() == [*range(n)]
    assert m.edges().shape == (0, 2)
    assert m.gallai_edmonds()[0].tolist() == [*range(n)]


def test_parts_that_a_search_has_left_are_found_when_asked_for():
    """Of an odd component whose one unmatched vertex no path can reach."""
    edges = factor_critical(40, np.random.default_rng(2))
    graph = gm.general.graph.pattern_of((edges, None))
    m = gm.general.maximum_matching(graph)
    again = pickle.loads(pickle.dumps(m))
    assert again.gallai_edmonds()[0].tolist() == m.gallai_edmonds()[0].tolist()
    assert m.gallai_edmonds()[0].size == graph.order
    m = gm.general.maximum_matching(graph)
    m.mate[:] = -1  # the caller's own
    assert m.tutte_berge_set().size == 0
    m = gm.general.maximum_matching(graph)
    graph.indices[:] = 0
    with pytest.raises(RuntimeError, match="have changed"):
        m.gallai_edmonds()
