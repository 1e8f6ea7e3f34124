"""The checker of edge covers and T-joins accepts true claims, and no false one."""

from __future__ import annotations

import copy
import itertools
import math

import networkx as nx
import numpy as np
import pytest

import gpumatch as gm
from gpumatch.certificates.edge_sets import _of_copies
from gpumatch.general.graph import weighted_of
from tests.general_graphs import random_graph

EDGES = np.array([(0, 1), (1, 2), (2, 3), (0, 3), (1, 3)])
WEIGHTS = np.array([2, 2, 4, 3, 6])
G = EDGES, WEIGHTS
WEIGHT = {tuple(edge): weight for edge, weight in zip(EDGES.tolist(), WEIGHTS.tolist())}


def cover():
    """Edges (0, 3) and (1, 2) of weight 5."""
    return gm.general.edge_cover(G)


def join():
    """Edges (0, 1) and (0, 3) of weight 5, which join vertices 1 and 3."""
    return gm.general.t_join(G, [1, 3])


def changed(result, **wrong):
    result = copy.copy(result)
    for name, value in wrong.items():
        setattr(result, name, value)
    return result


def of_edges(result, *edges):
    """A claim of other edges, with their true weight."""
    total = sum(WEIGHT.get(edge, 0) for edge in edges)
    return changed(result, edge_ind=np.array(edges).T, objective=total)


def with_dual(result, vertex, change):
    dual = result.matching.vertex_dual.copy()
    dual[vertex] += change
    return changed(result, matching=changed(result.matching, vertex_dual=dual))


def test_right_claims():
    assert str(gm.verify(G, cover())) == (
        "optimal: an edge cover of 2 edges of total 5, and duals of total 5, checked on 5 edges; "
        "the gap is at most 0, with an allowance of 0"
    )
    proof = gm.verify(G, join())
    assert (proof.problem, proof.size, proof.bound, proof.gap) == ("T-join", 2, 5, 0)
    assert isinstance(proof, gm.certificates.EdgeSetCertificate)
    nothing, lonely = np.zeros((0, 0)), np.zeros((3, 3))
    assert gm.verify(nothing, gm.general.edge_cover(nothing)).size == 0
    assert gm.verify(lonely, gm.general.t_join(lonely, [])).size == 0


@pytest.mark.parametrize("make", [cover, join])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"objective": 4}, "the objective is 4"),
        ({"objective": math.nan}, "the objective must be a number"),
        ({"gap": 1}, "the gap is 1"),
        ({"gap": -1}, "the gap is -1"),
        ({"edge_ind": ([0, 1], [2, 3])}, r"\(0, 2\) is no edge"),
        ({"edge_ind": ([0, 0, 0], [3, 1, 3])}, r"edge \(0, 3\) is there twice"),
        ({"edge_ind": ([0, 3], [1, 0])}, r"edge \(3, 0\) must have its smaller end first"),
        ({"edge_ind": ([0], [4])}, "names vertex 4 of 4"),
        ({"edge_ind": ([-1], [3])}, "names vertex -1 of 4"),
        ({"edge_ind": ([0], [3, 1])}, "1 ends and 2 others"),
        ({"edge_ind": ([0.5], [3.0])}, "two lists of integers"),
    ],
)
def test_wrong_claims_of_both(make, wrong, message):
    result = make()
    if "edge_ind" in wrong:
        wrong = {"edge_ind": tuple(np.array(part) for part in wrong["edge_ind"])}
    with pytest.raises(gm.CertificateError, match=message):
        gm.verify(G, changed(result, **wrong))
    with pytest.raises(gm.CertificateError):
        gm.verify(([*EDGES.tolist(), (0, 2)], [*WEIGHTS.tolist(), -1]), result)


def test_wrong_covers():
    right = cover()
    for wrong, message in (
        (of_edges(right, (0, 3)), "vertex 1 is in none of the edges"),
        (of_edges(right, (0, 1), (2, 3)), "the duals prove 5, which is 1 from the objective"),
        (with_dual(right, 3, -1), "the matching behind it: the duals of edge"),
        (with_dual(right, 1, 4), "the matching behind it: the duals prove"),
        (changed(right, odd_vertices=np.array([0])), "vertex 0 is|vertex 1 is not of T"),
        (changed(right, matching=changed(right.matching, cardinality="perfect")), "'any'"),
        (changed(right, matching=changed(right.matching, maximize=False)), "maximize=True"),
        (changed(right, matching=join().matching), "must have cardinality"),
    ):
        with pytest.raises(gm.CertificateError, match=message):
            gm.verify(G, wrong)
    heavier = of_edges(right, (0, 1), (2, 3))
    proof = gm.verify(G, changed(heavier, gap=1), optimal=False)
    assert (proof.bound, proof.gap, str(proof).startswith("not proven optimal")) == (5, 1, True)
    with pytest.raises(gm.CertificateError, match="the gap is 0, but the duals leave 1"):
        gm.verify(G, heavier, optimal=False)
    with pytest.raises(gm.CertificateError, match="reach 2"):
        gm.verify((EDGES, [2, 2, 4, 3, 2**55]), right)


def test_wrong_joins():
    right = join()
    other = gm.general.t_join(G, [0, 1])
    for wrong, message in (
        (changed(right, odd_vertices=np.array([1, 2])), "vertex 2 is of T, but in 0 edges"),
        (changed(right, odd_vertices=np.array([1])), "vertex 3 is not of T, but in 1 edges"),
        (changed(right, odd_vertices=np.array([1, 4])), "T names vertex 4 of 4"),
        (changed(right, odd_vertices=np.array([0.5])), "T must be a list of integers"),
        (of_edges(right, (1, 2)), "vertex 2 is not of T"),
        (of_edges(right, (1, 2), (2, 3)), "the duals prove 5, which is 1 from the objective"),
        (of_edges(right, (1, 3)), "the duals prove 5, which is 1 from the objective"),
        (changed(right, odd_vertices=None), "vertex 2 is in none of the edges"),
        (changed(right, matching=other.matching), "the matching behind it"),
        (changed(right, matching=changed(right.matching, cardinality="any")), "'perfect'"),
    ):
        with pytest.raises(gm.CertificateError, match=message):
            gm.verify(G, wrong)
    for vertex in range(right.matching.vertex_dual.size):
        with pytest.raises(gm.CertificateError, match="the matching behind it"):
            gm.verify(G, with_dual(right, vertex, 1))


@pytest.mark.parametrize("kind", ["whole", "negative", "floats", "far apart"])
def test_all_sets_of_small_graphs(kind):
    """What is found is accepted, and each other set with its own weight only if it weighs as much.

    The bound is that of the lightest set.
    """
    rng = np.random.default_rng(8)
    done = accepted = refused = 0
    while done < 12:
        edges = random_graph(int(rng.integers(3, 7)), rng)
        n, m = int(edges.max(initial=0)) + 1, len(edges)
        if not 2 <= m <= 7 or np.unique(edges).size < n:
            continue
        weights = {
            "whole": lambda m: rng.integers(0, 5, m),
            "negative": lambda m: rng.integers(-3, 5, m),
            "floats": lambda m: rng.random(m),
            "far apart": lambda m: rng.choice([1e-9, 1.0, 1e9], m) * rng.random(m),
        }[kind](m)
        done += 1
        degrees = np.bincount(edges[rng.random(m) < 0.5].ravel(), minlength=n)
        join = gm.general.t_join((edges, weights), np.flatnonzero(degrees % 2))
        for found in (gm.general.edge_cover((edges, weights)), join):
            proof = gm.verify((edges, weights), found)
            for chosen in itertools.product((False, True), repeat=m):
                some = edges[np.array(chosen)]
                degrees = np.bincount(some.ravel(), minlength=n)
                if found.odd_vertices is None:
                    is_such = degrees.all()
                else:
                    is_such = np.array_equal(np.flatnonzero(degrees % 2), found.odd_vertices)
                total = weights[np.array(chosen)].tolist()
                total = math.fsum(total) if weights.dtype.kind == "f" else sum(total)
                other = changed(found, edge_ind=np.sort(some, axis=1).T, objective=total)
                if is_such and total - proof.bound <= proof.allowance:
                    assert total >= proof.bound
                    gm.verify((edges, weights), other)
                    accepted += 1
                else:
                    refused += 1
                    with pytest.raises(gm.CertificateError):
                        gm.verify((edges, weights), other)
    assert accepted >= 24
    assert refused > 200


def test_runs_that_were_stopped():
    rng = np.random.default_rng(9)
    ring = np.stack([np.arange(40), (np.arange(40) + 1) % 40], axis=1)
    edges = np.concatenate([random_graph(40, rng), ring])
    G = edges, rng.random(len(edges))
    stopped = gm.general.edge_cover(G, time_limit=0)
    assert not stopped.proven
    with pytest.raises(gm.CertificateError):
        gm.verify(G, stopped)
    proof = gm.verify(G, stopped, optimal=False)
    assert proof.bound <= gm.general.edge_cover(G).objective <= proof.objective


def test_networkx_and_triangles():
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", 2), ("b", "c", 3), ("a", "c", 9)], weight="cost")
    for found in (
        gm.general.edge_cover(graph, weight="cost"),
        gm.general.t_join(graph, ["a", "c"], weight="cost"),
    ):
        assert gm.verify(graph, found, weight="cost").objective == 5
        with pytest.raises(gm.CertificateError):
            gm.verify(graph, found, weight=None)
    matrix = np.array([[0, 1, 7], [2, 0, 1], [0, 0, 0]])
    found = gm.general.edge_cover(matrix, triangle="upper")
    assert gm.verify(matrix, found, triangle="upper").size == 2
    with pytest.raises(TypeError, match="sizes is for"):
        gm.verify(matrix, found, sizes=(3, 3))


def test_the_graph_of_copies_has_joins_as_perfect_matchings():
    """Against the least of all perfect matchings, by networkx."""
    graph = weighted_of(G, maximize=False)
    for T, least in (([1, 3], 5), ([0, 1, 2, 3], 5), ([], 0), ([0, 2], 4)):
        ends, weights = _of_copies(graph, np.isin(np.arange(4), T))
        copies = nx.Graph()
        copies.add_weighted_edges_from(zip(*ends.T.tolist(), weights.tolist()))
        pairs = nx.min_weight_matching(copies)
        assert 2 * len(pairs) == copies.number_of_nodes()
        assert sum(copies.edges[pair]["weight"] for pair in pairs) == 2 * least
