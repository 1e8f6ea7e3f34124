"""`gpumatch.general.edge_cover`: against all sets of edges, and what is known."""

from __future__ import annotations

import itertools
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import gpumatch as gm
from tests.general_graphs import complete, random_graph


def covered(G, **options):
    """A lightest edge cover, checked."""
    cover = gm.general.edge_cover(G, **options)
    assert cover.proven
    assert gm.verify(G, cover, **options).objective == cover.objective
    return cover


def lightest(edges, weights, n):
    """The least weight by all sets of edges."""
    best = np.inf
    for chosen in itertools.product((False, True), repeat=len(edges)):
        chosen = np.array(chosen)
        if np.unique(edges[chosen]).size == n:
            best = min(best, weights[chosen].sum())
    return best


@pytest.mark.parametrize("kind", ["whole", "negative", "ties", "floats"])
def test_random_graphs(kind):
    rng = np.random.default_rng(3)
    done = 0
    while done < 60:
        n = int(rng.integers(2, 8))
        edges = random_graph(n, rng)
        if len(edges) > 11 or np.unique(edges).size < n:
            continue
        done += 1
        weights = {
            "whole": lambda m: rng.integers(0, 20, m),
            "negative": lambda m: rng.integers(-5, 20, m),
            "ties": lambda m: rng.integers(1, 3, m),
            "floats": lambda m: rng.random(m),
        }[kind](len(edges))
        cover = covered((edges, weights))
        found = cover.edges()
        assert np.unique(found).size == n
        pairs = {tuple(sorted(pair)): w for pair, w in zip(edges.tolist(), weights.tolist())}
        total = sum(pairs[tuple(pair)] for pair in found.tolist())
        assert cover.objective == pytest.approx(total, rel=1e-14)
        assert cover.objective == pytest.approx(lightest(edges, weights, n), rel=1e-12)


def test_the_gap_of_floats_counts_what_is_lost_of_what_edges_save():
    """Small weights vanish beside large ones, and then a cover may be heavier than the lightest."""
    rng = np.random.default_rng(4)
    numbers = np.array([0, 1, 1 + 2.0**-52, 1 - 2.0**-53, 2.0**-54, 2.0**-60, 3, 3 - 2.0**-51, 0.3])
    heavier = 0
    for _ in range(60):
        ring = np.arange(6)
        edges = np.concatenate([np.stack([ring, (ring + 1) % 6], axis=1), [(0, 3), (1, 4)]])
        weights = rng.choice(numbers, len(edges))
        exact = np.array([*map(Fraction, weights.tolist())], object)
        cover = gm.general.edge_cover((edges, weights))
        total = dict(zip(map(frozenset, edges.tolist()), exact))
        excess = sum(total[frozenset(pair)] for pair in cover.edges().tolist())
        excess -= lightest(edges, exact, 6)
        proof = gm.verify((edges, weights), cover)
        assert 0 <= excess <= proof.gap <= cover.gap < 1e-14
        heavier += excess > cover.matching.gap
    assert heavier > 0


def test_unit_weights_are_gallais():
    """A smallest edge cover has n edges less those of a maximum matching."""
    edges = complete(9)
    assert covered((edges, np.ones(len(edges), int))).size == 9 - 4


def test_an_interrupt_brings_no_matching_of_what_is_saved():
    def interrupt(_):
        raise KeyboardInterrupt

    edges = [(0, 1), (1, 2), (2, 0)]
    for find in (gm.general.edge_cover, lambda G, **how: gm.general.t_join(G, [0, 1], **how)):
        with pytest.raises(KeyboardInterrupt) as caught:
            find((edges, [3, 2, 2]), callback=interrupt)
        assert caught.value.result is None


def test_nodes_and_errors():
    G = nx.Graph()
    G.add_weighted_edges_from([("a", "b", 2), ("b", "c", 3), ("a", "a", 9)], weight="cost")
    cover = covered(G, weight="cost")
    assert (cover.edges(), cover.objective) == ([("a", "b"), ("b", "c")], 5)
    G.add_node("d")
    with pytest.raises(ValueError, match="vertex 'd' has no edge"):
        gm.general.edge_cover(G, weight="cost")
    with pytest.raises(ValueError, match="too large"):
        gm.general.edge_cover(([(0, 1)], [2**55]))
    for name in ("cardinality", "weigth"):
        with pytest.raises(TypeError, match=f"edge_cover got an unexpected argument '{name}'"):
            gm.general.edge_cover(([(0, 1)], [1]), **{name: "any"})
    assert covered(np.zeros((0, 0))).size == 0
