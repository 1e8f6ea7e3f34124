"""Half-approximate weighted matching through its front door, and the check of its bound."""

from __future__ import annotations

import math
import types
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, triu

import gpumatch as gm
from gpumatch.certificates import CertificateError
from gpumatch.general.suitor import half_matching
from gpumatch.running.control import Control
from tests.cpu.general.greedy import WEIGHTS, random_graph


def matrix_of(graph):
    indptr, indices, weights = graph
    return csr_array((weights, indices, indptr), shape=(len(indptr) - 1,) * 2)


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("maximize", [True, False])
def test_the_bound_of_random_graphs_is_one(kind, maximize):
    rng = np.random.default_rng(len(kind))
    for _ in range(15):
        A = matrix_of(random_graph(rng, kind=kind))
        A = A if maximize else -A
        for bound in ("tight", "half"):
            a = half_matching(A, maximize=maximize, options={"bound": bound})
            best = sum_of_best(A, maximize)
            sign = 1 if maximize else -1
            assert sign * a.objective <= sign * best * (1 + 1e-12) + 1e-300
            assert Fraction(sign * a.bound) >= Fraction(sign * best) * (1 - Fraction(1, 2**40))
            assert 2 * sign * a.objective >= sign * best * (1 - 1e-12) - 1e-300
            proof = gm.verify(A, a)
            assert (proof.size, proof.bound, proof.objective) == (a.size, a.bound, a.objective)
            assert isinstance(a.objective, int) == (A.dtype.kind == "i")
            assert a.stats["bound"] == bound


def sum_of_best(A, maximize):
    G = nx.Graph()
    upper = triu(A, 1).tocoo()
    for u, v, w in zip(upper.row.tolist(), upper.col.tolist(), upper.data.tolist()):
        G.add_edge(u, v, weight=w if maximize else -w)
    best = nx.max_weight_matching(G)
    total = sum(G.edges[e]["weight"] for e in best)
    return total if maximize else -total


@pytest.fixture
def small():
    ends = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 5)])
    return ends, np.array([4, 7, 4, 2, 3, 1])


def test_all_forms_of_a_graph_have_the_same_matching(small):
    ends, weights = small
    low = coo_array((weights, ends.T), shape=(6, 6)).tocsr()
    whole = (low + low.T).tocsr()
    G = nx.MultiGraph()
    G.add_nodes_from(range(6))
    G.add_weighted_edges_from(zip(*ends.T.tolist(), weights.tolist()))
    G.add_weighted_edges_from([(1, 2, 5), (3, 3, 99)])
    expected = half_matching(small)
    assert (expected.objective, expected.bound, expected.gap) == (10, 10, 0)
    for form in (low, whole, whole.toarray(), G):
        found = half_matching(form)
        assert found.mate.tolist() == expected.mate.tolist()
        assert found.objective == expected.objective
        assert gm.verify(form, found).bound == found.bound
    assert half_matching(triu(whole), triangle="upper").objective == 10
    assert sorted(map(sorted, half_matching(G).edges())) == expected.edges().tolist()
    assert (
        half_matching(nx.relabel_nodes(G, dict(enumerate("abcdef")))).unmatched == ["f", "d"][::-1]
    )


def test_the_weights_of_a_networkx_graph_are_those_chosen():
    G = nx.Graph()
    G.add_weighted_edges_from([(0, 1, 5), (1, 2, 9), (0, 2, 7)], weight="cost")
    nx.set_edge_attributes(G, 2, "weight")
    for weight, objective in (("cost", 9), ("weight", 2), (None, 1)):
        for algorithm in ("suitor", "auto"):
            m = gm.general.maximum_weight_matching(G, weight=weight, algorithm=algorithm)
            assert m.objective == gm.verify(G, m, weight=weight).objective == objective
    with pytest.raises(CertificateError, match="in all"):
        gm.verify(G, gm.general.maximum_weight_matching(G, weight="cost", algorithm="suitor"))


def test_lists_are_no_arrays_of_a_device():
    for algorithm in ("suitor", "auto"):
        m = gm.general.maximum_weight_matching(
            ([0, 1, 2], [1, 0], [3, 3], (2, 2)), algorithm=algorithm
        )
        assert (m.size, m.objective) == (1, 3)


def test_a_graph_without_edges():
    a = half_matching(csr_array((3, 3)))
    assert (a.size, a.objective, a.bound, a.gap, a.proven) == (0, 0, 0, 0, True)
    assert a.unmatched.tolist() == [0, 1, 2]
    assert "optimal" in repr(a)
    gm.verify(csr_array((3, 3)), a)


def test_a_run_that_is_stopped_proves_nothing():
    A = matrix_of(random_graph(np.random.default_rng(1), kind="integers"))
    control = Control(callback=lambda progress: True)
    a = half_matching(A, control=control)
    assert not a.proven
    if a.vertex_dual is None:
        assert (a.bound, a.gap) == (math.inf, math.inf)
        with pytest.raises(CertificateError, match="stopped"):
            gm.verify(A, a)
    else:
        gm.verify(A, a)


def test_wrong_arguments_are_named(small):
    with pytest.raises(ValueError, match="bound must be one of"):
        half_matching(small, options={"bound": "tigth"})
    with pytest.raises(ValueError, match="triangle"):
        half_matching(small, triangle="all")
    with pytest.raises(ValueError, match="square"):
        half_matching(csr_array((2, 3)))
    with pytest.raises(ValueError, match="finite"):
        half_matching((small[0], np.array([1.0, 2, np.inf, 3, 4, 5])))


def test_weights_that_no_sum_or_opposite_holds_are_refused(small):
    with pytest.raises(ValueError, match="sums beyond float64"):
        half_matching((small[0], np.full(6, 1e308)))
    with pytest.raises(ValueError, match="does not fit int64"):
        half_matching((small[0], np.full(6, -(2**63))), maximize=False)
    assert half_matching((small[0], np.full(6, -(2**63)))).size == 0


def forged(a, **claims):
    names = ("mate", "size", "objective", "bound", "gap", "vertex_dual", "maximize")
    return types.SimpleNamespace(**{name: getattr(a, name) for name in names} | claims)


def changed(values, place, value):
    values = values.copy()
    values[place] = value
    return values


def test_false_claims_are_refused():
    ends, weights = np.array([(0, 1), (1, 2), (2, 3), (3, 4)]), np.array([4, 7, 4, 2])
    graph = (ends, weights)
    a = half_matching(graph)
    gm.verify(graph, forged(a))
    dual = a.vertex_dual
    wrong = [
        ({"mate": changed(a.mate, 0, 2)}, "mate"),
        ({"mate": np.array([4, 2, 1, -1, 0])}, "no edge"),
        ({"mate": a.mate[:-1]}, "5 integers"),
        ({"size": 3}, "size"),
        ({"objective": a.objective + 1}, "objective"),
        ({"bound": a.bound - 1, "gap": a.gap - 1}, "bound|gap"),
        ({"gap": a.gap + 1}, "gap"),
        ({"vertex_dual": changed(dual, 1, 0.0)}, "do not cover"),
        ({"vertex_dual": dual * (1 - 2.0**-30)}, "do not cover"),
        ({"vertex_dual": changed(dual, 4, -1.0)}, "wrong sign"),
        ({"vertex_dual": changed(dual, 4, np.nan)}, "finite"),
        ({"vertex_dual": dual + 1}, "bound"),
        ({"vertex_dual": None}, "stopped"),
        ({"maximize": 1}, "True or False"),
        ({"maximize": False}, "objective|sign"),
    ]
    for claims, says in wrong:
        with pytest.raises(CertificateError, match=says):
            gm.verify(graph, forged(a, **claims))


def test_weights_that_no_float_holds_are_covered_exactly():
    """The duals of 2**60 + 1 must not be those of 2**60."""
    graph = (np.array([(0, 1)]), np.array([2**60 + 1]))
    a = half_matching(graph)
    assert a.objective == 2**60 + 1 <= a.bound
    gm.verify(graph, a)
    exact = forged(a, vertex_dual=np.array([2.0**60, 0.0]), bound=2**60, gap=-1)
    with pytest.raises(CertificateError, match="do not cover"):
        gm.verify(graph, exact)
