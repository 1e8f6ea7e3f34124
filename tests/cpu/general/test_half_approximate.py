"""Suitor and its duals on the CPU, against the definition of the matching and exact sums."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

import graphs
from gpumatch.cpu.general import better_parts, dual_descent, suitor
from gpumatch.cpu.general.half_approximate import HostSteps
from gpumatch.numeric.half_approximate import solve
from gpumatch.running.control import Control
from tests.cpu.general.greedy import (
    WEIGHTS,
    Ending,
    check_duals,
    check_matching,
    check_solution,
    greedy,
    path,
    random_graph,
    weight_of,
    with_both_entries,
)


def solved(graph, bound="tight", threads=1, control=None):
    control = control or Control()
    return solve(HostSteps(*graph, threads, control), control, bound)


def go_on():
    return False


@pytest.mark.parametrize("kind", WEIGHTS)
def test_random_graphs(kind):
    rng = np.random.default_rng(len(kind))
    for _ in range(30):
        graph = random_graph(rng, kind=kind)
        for bound in ("half", "tight"):
            check_solution(graph, solved(graph, bound), bound)


def test_half_of_what_networkx_finds():
    rng = np.random.default_rng(2)
    for _ in range(20):
        graph = random_graph(rng, 20, "integers")
        G = nx.Graph()
        for u, (begin, end) in enumerate(pairwise(graph[0].tolist())):
            G.add_weighted_edges_from(
                (u, *edge)
                for edge in zip(graph[1][begin:end].tolist(), graph[2][begin:end].tolist())
            )
        best = sum(G.edges[e]["weight"] for e in nx.max_weight_matching(G))
        for bound in ("half", "tight"):
            found = solved(graph, bound)
            weight = weight_of(graph, found.entry)
            assert weight <= best <= min(2 * weight, check_duals(graph, found.dual))


def large(name, draw):
    A = graphs.make(*name)
    u, v = A.nonzero()
    low = u < v
    return with_both_entries(A.shape[0], u[low], v[low], draw(np.random.default_rng(5), low.sum()))


LARGE = [("delaunay", 12), ("rgg", 12), ("kron", 9), ("grid", 64, 0.65), ("road", 40)]


@pytest.mark.parametrize("name", LARGE, ids=lambda name: name[0])
def test_the_duals_of_large_graphs_prove_nine_tenths(name):
    for kind in ("equal", "integers", "floats"):
        graph = large(name, WEIGHTS[kind])
        found = solved(graph)
        check_matching(graph, found.mate, found.entry)
        assert weight_of(graph, found.entry) >= 0.9 * check_duals(graph, found.dual)


def test_any_number_of_threads_finds_the_same(monkeypatch):
    monkeypatch.setattr("gpumatch.cpu.numba_tools.workers._EDGES_EACH", 1)
    monkeypatch.setattr(suitor, "BUDGET", 500)
    for kind in ("equal", "integers"):
        graph = large(("delaunay", 11), WEIGHTS[kind])
        expected = greedy(*graph)
        for threads in (1, 2, 5):
            assert (suitor.match(*graph, threads, go_on)[0] == expected).all()
        one, many = solved(graph), solved(graph, threads=3)
        assert (one.mate == many.mate).all()
        assert (one.dual == many.dual).all()


def test_bids_that_displace_each_other_along_a_path():
    graph = path(np.arange(1, 2001))
    assert (solved(graph, "half").mate == greedy(*graph)).all()


def test_a_run_that_is_stopped_has_a_matching(monkeypatch):
    monkeypatch.setattr(suitor, "BUDGET", 500)
    graph = large(("delaunay", 10), WEIGHTS["integers"])
    sizes, proved = [], []
    for tick in range(60):
        found = solved(graph, control=Ending(tick))
        check_matching(graph, found.mate, found.entry)
        sizes.append(int((found.mate >= 0).sum()))
        proved.append(found.dual is not None)
        if found.dual is not None:
            check_duals(graph, found.dual)
        if found.finished:
            break
    assert sizes[0] < sizes[-1]
    assert found.finished
    assert proved == sorted(proved)
    assert proved.count(True) > 10


def covering(rng, graph):
    """Duals that cover all edges, most of them with slack."""
    indptr, indices, weights = graph
    dual = np.zeros(len(indptr) - 1)
    for v, (begin, end) in enumerate(pairwise(indptr.tolist())):
        dual[v] = max([0.0, *(weights[begin:end] - dual[indices[begin:end]])])
    return dual + rng.integers(0, 2, dual.size) * rng.uniform(0, 200, dual.size)


def test_a_sweep_keeps_edges_covered():
    rng = np.random.default_rng(3)
    for temperature in (0.0, 0.3, 50.0, 1e5):
        graph = random_graph(rng, 60, "integers")
        weights, dual = graph[2].astype(float), covering(rng, graph)
        lowered = dual_descent.sweep(*graph[:2], weights, dual, temperature, 1, go_on)
        check_duals((*graph[:2], weights), lowered * (1 + 2.0**-46))


def test_a_warm_sweep_is_that_of_the_formula():
    rng = np.random.default_rng(4)
    indptr, indices, weights = graph = random_graph(rng, 30, "integers")
    dual, temperature = covering(rng, graph), 100.0
    lowered = dual_descent.sweep(
        indptr, indices, weights.astype(float), dual, temperature, 1, go_on
    )
    for v, (begin, end) in enumerate(pairwise(indptr.tolist())):
        offers = (weights[begin:end] - dual[indices[begin:end]]) / temperature
        soft = temperature * np.logaddexp.reduce([0.0, *offers])
        assert lowered[v] == pytest.approx((dual[v] + soft) / 2, rel=1e-3)


def test_the_heavier_parts_are_kept():
    """Two paths and a cycle; the second matching is heavier on one path and on the cycle."""
    ends = [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (7, 8), (8, 9), (9, 10), (7, 10)]
    weights = [2, 5, 2, 4, 3, 1, 9, 1, 9]
    graph = with_both_entries(11, *np.array(ends).T, np.array(weights))
    first, second = matching(graph, [0, 2, 3, 5, 7]), matching(graph, [1, 4, 6, 8])
    better_parts.keep_better(graph[2], first, second, go_on)
    check_matching(graph, *first)
    assert first[0].tolist() == [-1, 2, 1, -1, 5, 4, -1, 10, 9, 8, 7]


@pytest.mark.parametrize("longest", [4, 5])
def test_parts_that_are_too_long_are_kept(monkeypatch, longest):
    monkeypatch.setattr(better_parts, "LONGEST", longest)
    graph = path([1, 3, 1, 3, 1])
    first, second = matching(graph, [0, 2, 4], graph[2]), matching(graph, [1, 3], graph[2])
    better_parts.keep_better(graph[2], first, second, go_on)
    assert (first[0][0] < 0) == (longest == 5)


def matching(graph, edges, weights=None):
    """Mates and entries of some edges, by their place in the list of `with_both_entries`."""
    indptr, indices, _ = graph
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    mate, entry = np.full(len(indptr) - 1, -1, np.int32), np.full(len(indptr) - 1, -1, np.int64)
    ends = PATH if weights is not None else ENDS
    for u, v in (ends[k] for k in edges):
        for one, other in ((u, v), (v, u)):
            mate[one] = other
            entry[one] = np.flatnonzero((rows == one) & (indices == other))[0]
    return mate, entry


ENDS = [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (7, 8), (8, 9), (9, 10), (7, 10)]
PATH = [(k, k + 1) for k in range(5)]
