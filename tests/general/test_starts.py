"""Starts of weighted matching: duals that are feasible, and totals that do not depend on them."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import gpumatch as gm
from gpumatch.contracts import GeneralMatchingTask
from gpumatch.general.graph import weighted_of
from gpumatch.problems import general_weights
from gpumatch.problems.deficient_start import deficient_start, largest_matching
from gpumatch.running.control import Control
from tests.general_graphs import random_graph, with_parts

LEVEL = -(10**6)


def deficient(rng):
    """Edges with weights of graphs that leave vertices, alone in D and not."""
    for k in range(12):
        edges, _ = with_parts(int(rng.integers(0, 5)), int(rng.integers(6, 12)), 2 * k, rng)
        yield edges, rng.integers(-20, 30, len(edges))
    for _ in range(30):
        edges = random_graph(int(rng.integers(3, 40)), rng)
        if len(edges):
            yield edges, rng.integers(-20, 30, len(edges))
    hubs = np.array([(h, 4 + 10 * h + k) for h in range(4) for k in range(10)])
    yield np.concatenate([hubs, [(0, 1), (1, 2), (2, 3)]]), rng.integers(1, 9, 43)


def test_duals_are_feasible_and_reach_the_level():
    made = 0
    for source in deficient(np.random.default_rng(1)):
        graph = weighted_of(source)
        largest = largest_matching(graph, Control(), 1, 0)
        start = deficient_start(graph, graph.weights, LEVEL, largest.part)
        if start is None:
            continue
        made += 1
        tails = np.repeat(np.arange(graph.order), np.diff(graph.indptr))
        dual = start.vertex_dual
        assert (dual[tails] + dual[graph.indices] >= 2 * graph.weights).all()
        assert dual.min() >= LEVEL
        outer = largest.part == GeneralMatchingTask.OUTER
        assert dual[outer & (np.diff(graph.indptr) > 0)].min() == LEVEL
    assert made > 20


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("maximize", [True, False])
def test_the_totals_are_those_without_it(monkeypatch, maximize, kind):
    for edges, whole in deficient(np.random.default_rng(2)):
        source = edges, whole if kind is int else whole / 7
        wish = {"cardinality": "maximum", "maximize": maximize}
        m = gm.general.maximum_weight_matching(source, **wish)
        with monkeypatch.context() as patch:
            patch.setattr(general_weights, "deficient_start", lambda *_: None)
            plain = gm.general.maximum_weight_matching(source, **wish)
        assert m.proven
        assert m.size == plain.size
        assert m.objective == pytest.approx(plain.objective, rel=1e-14)
        gm.verify(source, m)


def test_what_cannot_be_perfect_is_said_before_the_searches(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("searched")

    monkeypatch.setattr(general_weights, "GeneralWeightTask", refuse)
    G = nx.star_graph(3)
    nx.set_edge_attributes(G, 0.5, "weight")
    with pytest.raises(gm.general.ImperfectError) as info:
        gm.general.maximum_weight_matching(G, cardinality="perfect")
    assert info.value.tutte_set == [0]
    assert info.value.components == 3


def test_a_run_that_stops_in_the_largest_matching_has_a_result():
    edges = np.array([(0, k) for k in range(1, 40)])
    m = gm.general.maximum_weight_matching(
        (edges, np.ones(39)), cardinality="maximum", callback=lambda _: True
    )
    assert not m.proven
    gm.verify((edges, np.ones(39)), m, optimal=False)


@pytest.mark.parametrize("cardinality", ["any", "maximum", "perfect"])
def test_equal_weights_need_no_searches(monkeypatch, cardinality):
    """Graphs with all parts, and weights of either sign; what does not pay is not matched."""
    taken, weighed = [], general_weights.equal_solution
    monkeypatch.setattr(
        general_weights, "equal_solution", lambda *all: taken.append(1) or weighed(*all)
    )
    rng = np.random.default_rng(4)
    for edges, _ in deficient(rng):
        for weight in (1, 7, -3, 0.1, -2.5, 2**40):
            weights = np.full(len(edges), weight)
            taken.clear()
            try:
                m = gm.general.maximum_weight_matching((edges, weights), cardinality=cardinality)
            except gm.general.ImperfectError:
                assert cardinality == "perfect"
                break
            assert m.proven
            gm.verify((edges, weights), m)
            size = gm.general.maximum_matching((edges, None)).size
            pays = weight > 0 or cardinality != "any"
            assert m.size == (size if pays else 0)
            assert bool(taken) == pays
    m = gm.general.maximum_weight_matching(nx.petersen_graph())
    assert m.objective == 5
    assert "searches" not in m.stats
