"""Alternating trees that grow from all unmatched vertices at once."""

from __future__ import annotations

import inspect
import types

import networkx as nx
import numpy as np
import pytest

from gpumatch.cpu.general import blossoms, trees
from gpumatch.general.graph import pattern_of
from gpumatch.running.control import Control
from tests.cpu.general.greedy import Ending
from tests.general_graphs import random_graph


def greedy(graph, rng):
    """A matching that lacks some edges of a maximal one."""
    mate = np.full(graph.order, -1, np.int32)
    for v in rng.permutation(graph.order).tolist():
        others = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        others = others[mate[others] < 0]
        if mate[v] < 0 and others.size and rng.random() < 0.7:
            mate[[v, others[0]]] = others[0], v
    return mate


def is_matching(graph, mate):
    ends = np.flatnonzero(mate >= 0)
    owners = np.repeat(np.arange(mate.size), np.diff(graph.indptr))
    edges = {*zip(owners.tolist(), graph.indices.tolist())}
    return np.array_equal(mate[mate[ends]], ends) and edges >= {*zip(ends, mate[ends])}


def size_of(graph):
    owners = np.repeat(np.arange(graph.order), np.diff(graph.indptr))
    return len(nx.max_weight_matching(nx.Graph([*zip(owners, graph.indices)]), True))


def searched(graph, mate, control=None, budget=2**20, outside=(), module=trees):
    is_outside = np.zeros(graph.order, bool)
    is_outside[list(outside)] = True
    control = control or Control()
    return module.search(graph.indptr, graph.indices, mate, is_outside, control, budget)


@pytest.mark.parametrize("budget", [1, 7, 2**20])
def test_bipartite_graphs_are_matched_to_the_end(monkeypatch, budget):
    """Without blossoms, the last phase leaves no augmenting path."""
    monkeypatch.setattr(trees, "PART", 2**30)
    rng = np.random.default_rng(budget)
    phases = 0
    for _ in range(60):
        n = int(rng.integers(2, 40))
        edges = random_graph(n, rng)
        graph = pattern_of((edges[(edges.sum(axis=1) % 2) == 1], None))
        if not graph.indices.size:
            continue
        mate, control = greedy(graph, rng), Control()
        before = (mate >= 0).sum() // 2
        assert searched(graph, mate, control, budget)
        assert is_matching(graph, mate)
        assert (mate >= 0).sum() // 2 == size_of(graph)
        assert sum(p["found"] for p in control.trace) == (mate >= 0).sum() // 2 - before
        phases = max(phases, len(control.trace))
    assert phases > 2


def test_any_graph_keeps_a_matching_that_blossoms_complete():
    rng, by_blossoms = np.random.default_rng(3), 0
    for _ in range(150):
        graph = pattern_of((random_graph(int(rng.integers(4, 24)), rng), None))
        if not graph.indices.size:
            continue
        mate = greedy(graph, rng)
        was_matched = mate >= 0
        assert searched(graph, mate)
        assert is_matching(graph, mate)
        assert (mate[was_matched] >= 0).all()
        size = (mate >= 0).sum() // 2
        label = np.zeros(graph.order, np.int32)
        assert blossoms.search(graph.indptr, graph.indices, mate, label, Control())
        assert (mate >= 0).sum() // 2 == size_of(graph)
        by_blossoms += (mate >= 0).sum() // 2 - size
    assert by_blossoms > 0


def test_vertices_outside_keep_their_mates():
    """Two paths lead from 0 to 5; one of them is closed."""
    edges = [(0, 1), (1, 2), (2, 5), (0, 3), (3, 4), (4, 5)]
    graph = pattern_of((np.array(edges), None))
    for closed, opened in ((1, 3), (3, 1)):
        mate = np.array([-1, 2, 1, 4, 3, -1], np.int32)
        assert searched(graph, mate, outside=[closed])
        assert mate[0] == opened
        assert mate[closed] == closed + 1
    mate = np.array([-1, 2, 1, 4, 3, -1], np.int32)
    assert searched(graph, mate, outside=[0])
    assert mate.tolist() == [-1, 2, 1, 4, 3, -1]


def test_a_phase_that_matches_few_roots_is_the_last():
    """Stars, of whose leaves only one has a mate, beside two paths that meet."""
    leaves = [(40 * s, 40 * s + k) for s in range(4) for k in range(1, 40)]
    graph = pattern_of((np.array([*leaves, (160, 161), (161, 162), (162, 163)]), None))
    mate = np.full(graph.order, -1, np.int32)
    for one, other in [*((40 * s, 40 * s + 1) for s in range(4)), (161, 162)]:
        mate[[one, other]] = other, one
    control = Control()
    assert searched(graph, mate, control)
    assert mate[160] == 161
    assert [phase["found"] for phase in control.trace] == [1]


def test_a_search_that_stops_has_flipped_what_it_found():
    rng = np.random.default_rng(5)
    graph = pattern_of((rng.integers(0, 200, (500, 2)), None))
    sizes = set()
    for ticks in range(1, 60, 3):
        seen = []
        control = Control(callback=lambda _, seen=seen, t=ticks: seen.append(1) or len(seen) >= t)
        mate = greedy(graph, np.random.default_rng(6))
        if searched(graph, mate, control, budget=9):
            break
        assert is_matching(graph, mate)
        sizes.add(int((mate >= 0).sum()))
    assert len(sizes) > 3


# -- planted faults --------------------------------------------------------------------------------


BOUNDED = (
    "        while v != root:\n",
    "        for _ in range(100):\n            if v == root:\n                break\n",
)
"""A walk that a fault makes endless ends."""


def in_python(old="", new=""):
    """The module with a line changed, its kernels as Python functions, and phases to the end."""
    source = inspect.getsource(trees).replace("@kernel\n", "")
    assert old in source, old
    source = source.replace(old, new, 1) if old else source
    assert BOUNDED[0] in source
    source = source.replace(*BOUNDED)
    module = types.ModuleType("trees_in_python")
    exec(source, module.__dict__)
    module.prefetch = module.prefetch_range = lambda *_: None  # instructions of compiled code
    module.PART = 2**30
    return module


FAULTS = {
    "a tree meets itself": ("other >= 0 and other != root and", "other >= 0 and"),
    "inner vertices are met": ("other != root and parent[v] == _NONE and", "other != root and"),
    "a tree is met twice": (" and joint[other] == _NONE:", ":"),
    "a tree meets twice": ("if joint[tree[u]] == _NONE:", "if True:"),
    "only outer vertices change mates": ("            mate[inner] = v\n", ""),
    "the root keeps none": ("\n        mate[v] = other", ""),
    "roots are not dissolved": ("        tree[outer] = _NONE\n", ""),
    "inner vertices are not dissolved": ("            tree[mate[outer]] = _NONE", " " * 12 + "0"),
    "outside is entered": ("np.int32(_OUTSIDE)", "np.int32(_NONE)"),
    "mates do not join": ("queue[counts[_TAIL]] = w", "queue[counts[_TAIL]] = v"),
}  # fmt: skip


def is_right(module, seed=1):
    """The mates are a matching, of the most edges if the graph is bipartite; others keep theirs."""
    rng = np.random.default_rng(seed)
    for k in range(120):
        edges = random_graph(int(rng.integers(4, 60 if k % 2 else 20)), rng)
        if k % 2:
            edges = edges[(edges.sum(axis=1) % 2) == 1]
        graph = pattern_of((edges, None))
        if not graph.indices.size:
            continue
        mate = greedy(graph, rng)
        outside = np.flatnonzero(rng.random(graph.order) < 0.1)
        pairs = mate[outside]
        outside = [*outside, *pairs[pairs >= 0]]
        kept = mate[outside]
        try:
            searched(graph, mate, Ending(400), outside=outside, module=module, budget=50)
        except (IndexError, OverflowError):
            return False
        inside = np.ones(graph.order, bool)
        inside[outside] = False
        owners = np.repeat(np.arange(graph.order), np.diff(graph.indptr))
        both = inside[owners] & inside[graph.indices]
        rest = nx.Graph([*zip(owners[both], graph.indices[both])])
        is_large = not k % 2 or (mate[inside] >= 0).sum() // 2 == len(
            nx.max_weight_matching(rest, True)
        )
        if not (is_matching(graph, mate) and np.array_equal(mate[outside], kept) and is_large):
            return False
    return True


def test_the_kernels_in_python_do_as_compiled():
    assert is_right(in_python())


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen(fault):
    assert not is_right(in_python(*FAULTS[fault]))
