"""`gpumatch.general.maximum_weight_matching`: every total against subsets and networkx."""

from __future__ import annotations

import math
import pickle

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, triu

import gpumatch as gm
import graphs
from gpumatch.costs import DenseCosts
from gpumatch.problems import dense_start
from tests.general_graphs import (
    chain_of_triangles,
    complete,
    factor_critical,
    flowers,
    petersen,
    random_graph,
)
from tests.general_weights import NONE, Weighted, best_by_subsets, random_small, random_weights

CARDINALITIES = ["any", "maximum", "perfect"]


def matched(G, **options):
    """A best matching, verified."""
    m = gm.general.maximum_weight_matching(G, **options)
    certificate = gm.verify(G, m)
    assert m.proven
    assert (certificate.size, certificate.objective) == (m.size, m.objective)
    return m


def check_totals(small: Weighted, cardinality: str, maximize: bool) -> None:
    """Compare the matching of each graph with the best of all subsets."""
    sign = 1 if maximize else -1
    m = matched(small.source, cardinality=cardinality, maximize=maximize)
    totals, sizes = small.sums_of(m.mate)
    assert m.objective == sum(totals.tolist())
    for k, (edges, weights, n) in enumerate(zip(*small)):
        best = best_by_subsets(edges, sign * weights, n)
        if cardinality == "any":
            assert sign * totals[k] == max(best)
        else:
            assert sizes[k] == max(size for size, total in enumerate(best) if total > NONE)
            assert sign * totals[k] == best[sizes[k]]


@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize("cardinality", ["any", "maximum"])
def test_random_small_graphs(cardinality, maximize):
    rng = np.random.default_rng([cardinality == "any", maximize])
    largest = 2**57 if cardinality == "any" else 10**6  # the vertices of all graphs count
    check_totals(random_small(1200, rng, 11, largest), cardinality, maximize)


@pytest.mark.parametrize("cardinality", ["maximum", "perfect"])
def test_huge_weights(cardinality):
    """One graph at a time, with weights up to the largest that are allowed."""
    rng = np.random.default_rng(62)
    for _ in range(60):
        n = 2 * int(rng.integers(1, 6))
        edges = complete(n) if cardinality == "perfect" else random_graph(n, rng)
        edges = np.concatenate([edges, [[n - 1, n - 1]]])
        largest = (2**59 - 1) // (n + 1)
        weights = rng.integers(-largest, largest + 1, len(edges))
        m = matched((edges, weights), cardinality=cardinality)
        best = best_by_subsets(edges[:-1], weights[:-1], n)
        assert m.objective == best[m.size]
        assert m.size == max(size for size, total in enumerate(best) if total > NONE)


@pytest.mark.long
@pytest.mark.parametrize("part", range(2))
def test_many_random_small_graphs(part):
    """25 seeds in each of four parts are a million graphs, which passed."""
    for seed in range(5):
        rng = np.random.default_rng([part, seed])
        check_totals(random_small(5000, rng, 12, 2**57), "any", bool(seed % 2))
        check_totals(random_small(5000, rng, 12), "maximum", bool(seed % 2))


def check_against_networkx(count, seed):
    rng = np.random.default_rng(seed)
    for k in range(count):
        n = int(rng.integers(2, 41))
        edges = random_graph(n, rng)
        weights = random_weights(len(edges), rng, 1000)
        G = nx.Graph()
        G.add_nodes_from(range(n))
        G.add_weighted_edges_from(zip(*edges.T.tolist(), weights.tolist()))
        largest = bool(k % 2)
        found = matched(G, cardinality="maximum" if largest else "any")
        known = nx.max_weight_matching(G, maxcardinality=largest)
        assert found.objective == sum(G[u][v]["weight"] for u, v in known)
        assert found.size == len(known) or not largest


def test_totals_are_those_of_networkx():
    check_against_networkx(150, 1)


@pytest.mark.long
@pytest.mark.parametrize("part", range(2))
def test_many_totals_are_those_of_networkx(part):
    """20,000 passed, as twenty calls of 1,000 with the seeds from 9000 on."""
    check_against_networkx(700, 2 + part)


# -- families that break others --------------------------------------------------------------------

FAMILIES = {
    "complete 5": lambda rng: complete(5),
    "complete 101": lambda rng: complete(101),
    "petersen": lambda rng: petersen(5, 2),
    "petersen 101": lambda rng: petersen(101, 40),
    "triangles": lambda rng: chain_of_triangles(500),
    "nested": lambda rng: factor_critical(300, rng, 1),
    "ears": lambda rng: factor_critical(300, rng, 9),
    "flowers": lambda rng: flowers(3, 3),
    "wide flowers": lambda rng: flowers(2, 11),
    "boost#399": lambda rng: rng.integers(0, 1000, (2000, 2)),
    "delaunay": lambda rng: pairs_of(graphs.delaunay(11, seed=1)),
    "kron": lambda rng: pairs_of(graphs.kron(8, seed=1)),
}


def pairs_of(graph):
    matrix = coo_array(triu(csr_array((np.ones(graph.nnz), graph.indices, graph.indptr)), 1))
    return np.stack(matrix.coords, axis=1)


@pytest.mark.parametrize("name", FAMILIES)
def test_families(name):
    rng = np.random.default_rng(5)
    edges = FAMILIES[name](rng)
    for largest in (1, 2, 50):
        weights = rng.integers(-1, largest + 1, len(edges)) + largest // 2
        matched((edges, weights))
        matched((edges, weights), cardinality="maximum", maximize=largest < 50)
    matched((edges, np.ones(len(edges), int)), cardinality="maximum")


@pytest.mark.long
def test_complete_graph_of_2001():
    edges = complete(2001)
    weights = np.random.default_rng(1).integers(0, 10**6, len(edges))
    assert matched((edges, weights), cardinality="maximum").size == 1000


def test_a_blossom_within_a_blossom():
    """van Rantwijk's graphs that make nested S-blossoms, relabel them and expand them."""
    edges = [(1, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5), (5, 6)]
    assert matched((edges, [9, 9, 10, 8, 8, 10, 6])).edges().tolist() == [[1, 3], [2, 4], [5, 6]]
    edges = [(1, 2), (1, 7), (2, 3), (3, 4), (4, 5), (4, 6), (5, 6), (6, 7), (7, 8), (8, 9),
             (8, 10), (9, 10)]  # fmt: skip
    weights = [10, 10, 12, 20, 20, 25, 25, 10, 10, 10, 5, 10][: len(edges)]
    best = best_by_subsets(np.array(edges), np.array(weights), 11)
    assert matched((edges, weights)).objective == max(best)


# -- floats ----------------------------------------------------------------------------------------


def float_weights(kind, count, rng):
    return {
        "normal": lambda: rng.normal(size=count),
        "tenths": lambda: rng.integers(1, 9, count) / 10,
        "wide": lambda: np.exp(8 * rng.normal(size=count)),
        "whole": lambda: rng.integers(-9, 9, count).astype(float),
        "huge": lambda: rng.uniform(-1e303, 1e303, count),
        "tiny": lambda: rng.uniform(0, 1e-306, count),
    }[kind]()


@pytest.mark.parametrize("kind", ["normal", "tenths", "wide", "whole", "huge", "tiny"])
def test_floats(kind):
    rng = np.random.default_rng(8)
    for k in range(12):
        n = int(rng.integers(2, 25))
        edges = complete(n) if k % 3 == 2 and n % 2 == 0 else random_graph(n, rng)
        edges = edges if len(edges) else np.array([[0, 1]])
        weights = float_weights(kind, len(edges), rng)
        G = nx.Graph()
        G.add_weighted_edges_from(zip(*edges.T.tolist(), (weights / abs(weights).max()).tolist()))
        for cardinality in ("any", "maximum"):
            m = matched((edges, weights), cardinality=cardinality)
            known = nx.max_weight_matching(G, maxcardinality=cardinality == "maximum")
            total = math.fsum(G[u][v]["weight"] for u, v in known) * abs(weights).max()
            assert m.objective == pytest.approx(total, rel=1e-9, abs=1e-9 * abs(weights).max())
            assert 0 <= m.gap <= 1e-9 * abs(weights).max()


def test_whole_floats_are_exact():
    edges = complete(30)
    weights = np.random.default_rng(3).integers(-50, 50, len(edges))
    for cardinality in CARDINALITIES:
        exact = matched((edges, weights), cardinality=cardinality)
        floats = matched((edges, weights.astype(float)), cardinality=cardinality)
        assert (floats.objective, floats.gap) == (exact.objective, 0)
        assert (exact.dual_scale, floats.dual_scale) == (2, 1)


def test_prohibitive_weights_of_floats():
    """What costs 1e300 is not used, and so does not make the other weights coarse."""
    rng = np.random.default_rng(7)
    edges = complete(20)
    weights = rng.random(len(edges))
    is_dear = rng.random(len(edges)) < 0.4
    is_dear[(edges[:, 0] % 2 == 0) & (edges[:, 1] == edges[:, 0] + 1)] = False
    dear = np.where(is_dear, 1e300, weights)
    m = matched((edges, dear), cardinality="perfect", maximize=False)
    left = matched((edges[~is_dear], weights[~is_dear]), cardinality="perfect", maximize=False)
    assert m.objective == pytest.approx(left.objective, rel=1e-13)


# -- arguments and results -------------------------------------------------------------------------


def test_floats_far_apart_that_do_not_pay_are_left():
    for weights in ([1e300, 1.0], [1e300, 1e-300], [1e-5, 1e300]):
        m = matched(([(0, 1), (1, 2)], weights), maximize=False)
        assert (m.size, m.objective, m.gap) == (0, 0, 0)


@pytest.mark.parametrize("maximize", [True, False])
def test_duals_beyond_float64(maximize):
    """With cardinality "maximum", those of unmatched vertices grow with the number of vertices."""
    star = np.array([(0, k) for k in range(1, 100)])
    wish = {"cardinality": "maximum", "maximize": maximize}
    with pytest.raises(ValueError, match=r"weights up to 1e\+308 of a graph of 100 vertices have"):
        gm.general.maximum_weight_matching((star, [1e308] * 99), **wish)
    large = [1e306] * 98 + [5e305]
    m = gm.general.maximum_weight_matching((star, large), **wish)
    assert m.objective == (1e306 if maximize else 5e305)
    assert (m.gap, m.proven) == (np.inf, False)
    gm.verify((star, large), m, optimal=False)


def test_no_edges_weigh_nothing():
    m = gm.general.maximum_weight_matching(([(0, 1)], [0.5]), maximize=False)
    assert str(m.objective) == "0.0"


def test_the_least_and_the_largest_floats():
    edges, tiny = [(0, 1), (2, 3)], 5e-324
    m = gm.general.maximum_weight_matching((edges, [tiny, tiny]))
    assert m.objective == 2 * tiny
    assert gm.verify((edges, [tiny, tiny]), m, optimal=False).bound >= 2 * tiny
    with pytest.raises(ValueError, match=r"weights up to 1e\+308 have sums beyond float64"):
        gm.general.maximum_weight_matching((edges, [1e308, 1e308]))


def test_forms_of_one_graph():
    edges, weights = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)], [3, 8, 3, 1, 2]
    whole = coo_array((weights, np.transpose(edges)), shape=(4, 4)).tocsr()
    G = nx.MultiGraph()
    G.add_nodes_from("abcd")
    for (u, v), w in zip(edges, weights):
        G.add_edge("abcd"[u], "abcd"[v], cost=w)
        G.add_edge("abcd"[u], "abcd"[v], cost=w - 1)
    G.add_edge("a", "a", cost=99)
    for source in ((edges, weights), whole, whole + whole.T, (whole + whole.T).toarray()):
        m = matched(source)
        assert (m.edges().tolist(), m.objective) == ([[1, 2], [0, 3]][::-1], 9)
    m = gm.general.maximum_weight_matching(whole, triangle="lower")
    assert m.size == 0
    m = gm.general.maximum_weight_matching(G, weight="cost")
    assert (m.edges(), m.objective, m.unmatched) == ([("a", "d"), ("b", "c")], 9, [])
    gm.verify(G, m, weight="cost")
    low = gm.general.maximum_weight_matching(
        G, weight="cost", maximize=False, cardinality="perfect"
    )
    assert (low.edges(), low.objective) == ([("a", "b"), ("c", "d")], 4)


def test_empty_graphs():
    for source in (np.zeros((0, 0)), np.zeros((1, 1)), np.zeros((5, 5)), ([], [])):
        for cardinality in ("any", "maximum"):
            m = matched(source, cardinality=cardinality)
            assert (m.size, m.objective, m.gap) == (0, 0, 0)
    assert matched(np.zeros((0, 0)), cardinality="perfect").size == 0


def test_a_graph_without_a_perfect_matching_has_a_tutte_set():
    star = [("x", "a"), ("x", "b"), ("x", "c"), ("a", "d")]
    with pytest.raises(gm.general.ImperfectError, match="without 1 vertices") as caught:
        gm.general.maximum_weight_matching(nx.Graph([*star, ("e", "f")]), cardinality="perfect")
    assert (caught.value.tutte_set, caught.value.components) == (["x"], 3 - 1)
    assert isinstance(caught.value, gm.InfeasibleError)
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (copied.tutte_set, str(copied)) == (["x"], str(caught.value))


@pytest.mark.parametrize("seed", range(4))
def test_tutte_sets_of_random_graphs(seed):
    rng = np.random.default_rng(seed)
    found = 0
    while found < 10:
        n = int(rng.integers(3, 30))
        G = nx.Graph()
        G.add_nodes_from(range(n))
        G.add_edges_from(random_graph(n, rng).tolist())
        if 2 * matched(G, cardinality="maximum").size == n:
            matched(G, cardinality="perfect")
            continue
        with pytest.raises(gm.general.ImperfectError) as caught:
            gm.general.maximum_weight_matching(G, cardinality="perfect")
        found += 1
        G.remove_nodes_from(caught.value.tutte_set)
        odd = sum(len(part) % 2 for part in nx.connected_components(G))
        assert odd == caught.value.components > len(caught.value.tutte_set)


def test_weights_that_are_too_large():
    edges = [(0, 1), (1, 2)]
    matched((edges, [2**58 - 1, 1 - 2**58]))
    for weights in ([2**58, 1], [1, -(2**58)], [-(2**63), 1]):
        with pytest.raises(ValueError, match=r"must be below 2\*\*58"):
            gm.general.maximum_weight_matching((edges, weights))
    limit = (2**59 - 1) // 4
    matched((edges, [limit, -limit]), cardinality="maximum")
    with pytest.raises(ValueError, match="cardinality 'maximum'"):
        gm.general.maximum_weight_matching((edges, [limit + 1, 1]), cardinality="maximum")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cardinality": "full"}, ValueError, "cardinality must be one of"),
        ({"maximize": "yes"}, TypeError, "maximize"),
        ({"triangle": "left"}, ValueError, "triangle must be one of"),
        ({"algorithm": "enginee"}, ValueError, "engine"),
        ({"backend": "gpu"}, ValueError, "backend"),
        ({"cardinalty": "any"}, TypeError, "did you mean"),
        ({"time_limit": -1}, ValueError, "time_limit"),
    ],
)
def test_wrong_arguments(options, error, message):
    with pytest.raises(error, match=message):
        gm.general.maximum_weight_matching(np.ones((3, 3)), **options)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers(value):
    with pytest.raises(ValueError, match="finite"):
        gm.general.maximum_weight_matching(([(0, 1)], [value]))


@pytest.mark.parametrize("cardinality", CARDINALITIES)
def test_a_run_that_is_stopped(cardinality):
    graph = pairs_of(graphs.delaunay(12, seed=2))
    weights = np.random.default_rng(1).integers(1, 10**6, len(graph))
    full = matched((graph, weights), cardinality=cardinality)
    for limit in (0, 1):
        calls = []
        m = gm.general.maximum_weight_matching(
            (graph, weights),
            cardinality=cardinality,
            callback=lambda p, calls=calls, limit=limit: calls.append(p) or len(calls) > limit,
        )
        assert not m.proven
        assert m.gap == math.inf or m.objective + m.gap >= full.objective
        assert (m.gap < math.inf) == (cardinality == "any")
        gm.verify((graph, weights), m, optimal=False)


def test_an_interrupt_brings_the_matching():
    graph = pairs_of(graphs.delaunay(10, seed=2))

    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gm.general.maximum_weight_matching((graph, np.ones(len(graph))), callback=interrupt)
    m = caught.value.result
    assert not m.proven
    gm.verify((graph, np.ones(len(graph))), m, optimal=False)


def test_results_do_not_depend_on_the_order_of_vertices():
    rng = np.random.default_rng(4)
    edges = pairs_of(graphs.delaunay(9, seed=3))
    weights = rng.integers(1, 1000, len(edges))
    order = rng.permutation(edges.max() + 1)
    for cardinality in ("any", "maximum"):
        one = matched((edges, weights), cardinality=cardinality)
        other = matched((order[edges], weights), cardinality=cardinality)
        assert (one.objective, one.size) == (other.objective, other.size) or cardinality == "any"
        assert one.objective == other.objective


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("cardinality", ["any", "maximum", "perfect"])
def test_nearly_complete_graphs_begin_from_an_assignment(monkeypatch, cardinality, kind):
    """Also where an edge does not pay, and where no full assignment exists."""
    rng = np.random.default_rng(8)
    made = []
    monkeypatch.setattr(dense_start, "DenseCosts", lambda m: made.append(len(m)) or DenseCosts(m))
    for n, lowest, lonely in ((64, 1, 0), (64, -60, 0), (67, 1, 0), (70, 1, 2), (63, 1, 0)):
        if cardinality == "perfect" and (n % 2 or lonely):
            continue
        edges = complete(n)
        edges = edges[(edges >= lonely).all(axis=1) | (edges[:, 1] == n - 1)]
        weights = rng.integers(lowest, 30, len(edges)).astype(kind)
        weights = weights / 7 if kind is float else weights
        for maximize in (True, False):
            m = gm.general.maximum_weight_matching(
                (edges, weights), cardinality=cardinality, maximize=maximize
            )
            with monkeypatch.context() as patch:
                patch.setattr(dense_start, "FEWEST", 10**9)
                plain = gm.general.maximum_weight_matching(
                    (edges, weights), cardinality=cardinality, maximize=maximize
                )
            assert m.proven
            assert m.objective == pytest.approx(plain.objective, rel=1e-14)
            gm.verify((edges, weights), m)
    assert 64 in made
    assert 63 not in made
