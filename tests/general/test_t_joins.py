"""`gpumatch.general.t_join` against all sets of edges."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

import gpumatch as gm
from tests.general_graphs import random_graph


def lightest(edges, weights, T, n):
    """The least weight of a T-join by all sets of edges; None if there is none."""
    is_odd = np.bincount(np.array(T, int), minlength=n)
    best = None
    for chosen in itertools.product((False, True), repeat=len(edges)):
        chosen = np.array(chosen)
        degrees = np.bincount(edges[chosen].ravel(), minlength=n)
        if np.array_equal(degrees % 2, is_odd):
            total = weights[chosen].sum()
            best = total if best is None else min(best, total)
    return best


@pytest.mark.parametrize("kind", ["whole", "negative", "floats"])
def test_random_graphs(kind):
    rng = np.random.default_rng(5)
    found = 0
    while found < 40:
        edges = random_graph(int(rng.integers(2, 8)), rng)
        if not 0 < len(edges) <= 10:
            continue
        n = int(edges.max()) + 1
        weights = {
            "whole": lambda m: rng.integers(0, 9, m),
            "negative": lambda m: rng.integers(-4, 9, m),
            "floats": lambda m: rng.random(m),
        }[kind](len(edges))
        T = np.flatnonzero(rng.random(n) < 0.5)
        best = lightest(edges, weights, T, n)
        if best is None:
            with pytest.raises(gm.InfeasibleError, match="there is no T-join"):
                gm.general.t_join((edges, weights), T)
            continue
        found += 1
        join = gm.general.t_join((edges, weights), T)
        assert join.proven
        assert gm.verify((edges, weights), join).size == join.size
        assert join.objective == pytest.approx(best, rel=1e-12)
        degrees = np.bincount(join.edges().ravel(), minlength=n)
        assert np.array_equal(np.flatnonzero(degrees % 2), T)
        pairs = {tuple(sorted(pair)): w for pair, w in zip(edges.tolist(), weights.tolist())}
        total = sum(pairs[tuple(pair)] for pair in join.edges().tolist())
        assert join.objective == pytest.approx(total, rel=1e-14)


def test_tensors_name_vertices():
    torch = pytest.importorskip("torch")
    join = gm.general.t_join(([(0, 1), (1, 2)], [1, 2]), torch.tensor([0, 2]))
    assert join.objective == 3


def test_nodes_and_errors():
    G = nx.path_graph(["a", "b", "c", "d"])
    G.add_node("e")
    join = gm.general.t_join(G, ["a", "c"])
    assert (join.edges(), join.objective) == ([("a", "b"), ("b", "c")], 2)
    assert gm.general.t_join(G, []).size == 0
    assert gm.general.t_join(G, iter(["a", "c"])).objective == 2
    assert gm.general.t_join(([(0, 1), (1, 2)], [1, 2]), {0, 2}).objective == 3
    for T in (np.ones(2, bool), np.array([[0, 1]])):
        with pytest.raises(TypeError, match="T must be a list of vertices; got an array of"):
            gm.general.t_join(([(0, 1)], [1]), T)
    with pytest.raises(TypeError, match="t_join got an unexpected argument 'maximize'"):
        gm.general.t_join(([(0, 1)], [1]), [0, 1], maximize=False)
    with pytest.raises(TypeError, match="T must be a list of vertices; got int"):
        gm.general.t_join(G, 3)
    for T, message in (
        (["x"], "'x' is no node"),
        (["a", "a"], "vertex 'a' more than once"),
        (["a", "e"], "vertex 'e' has no edge"),
        (["a"], "there is no T-join"),
    ):
        with pytest.raises(ValueError, match=message):
            gm.general.t_join(G, T)
    with pytest.raises(ValueError, match="names vertex 7 of 2"):
        gm.general.t_join(([(0, 1)], [1]), [7])
