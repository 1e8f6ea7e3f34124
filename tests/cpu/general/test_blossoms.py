"""The forest with blossoms by itself, from any start, with any budget, and with planted faults."""

from __future__ import annotations

import inspect
import types

import numpy as np
import pytest

from gpumatch.certificates import CertificateError, verify
from gpumatch.contracts import GeneralMatchingTask
from gpumatch.cpu.general import blossoms
from gpumatch.general.graph import pattern_of
from gpumatch.results.general import GeneralMatching
from gpumatch.running.control import Control
from tests.general_graphs import (
    chain_of_triangles,
    every_graph,
    factor_critical,
    flowers,
    random_graph,
    side_by_side,
    sizes_by_subsets,
    with_parts,
)

TASK = GeneralMatchingTask


def start(graph, rng, share):
    """A matching of some edges in any order."""
    mate = np.full(graph.order, -1, np.int32)
    owners = np.repeat(np.arange(graph.order), np.diff(graph.indptr))
    for place in rng.permutation(graph.indices.size)[: int(share * graph.indices.size)]:
        u, v = owners[place], graph.indices[place]
        if mate[u] < 0 and mate[v] < 0:
            mate[u], mate[v] = v, u
    return mate


def result_of(mate, label):
    part = np.where(label > 0, TASK.OUTER, np.where(label < 0, TASK.INNER, TASK.PERFECT))
    return GeneralMatching(mate, part.astype(np.int8), nodes=None, stats={})


def searched(edges, mate=None, search=blossoms.search, **options):
    graph = pattern_of((edges, None))
    mate = np.full(graph.order, -1, np.int32) if mate is None else mate
    label = np.zeros(graph.order, np.int32)
    assert search(graph.indptr, graph.indices, mate, label, Control(), **options)
    return result_of(mate, label)


def check_sizes(graphs, orders, search=blossoms.search, rng=None, share=0.0):
    """All small graphs at once."""
    edges, firsts = side_by_side(graphs, orders)
    mate = None if rng is None else start(pattern_of((edges, None)), rng, share)
    result = searched(edges, mate, search)
    found = np.add.reduceat(result.mate >= 0, firsts) // 2
    assert np.array_equal(found, sizes_by_subsets(graphs, orders))
    verify((edges, None), result)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_every_small_graph(n):
    graphs = every_graph(n)
    check_sizes(graphs, [n] * len(graphs))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_random_small_graphs_from_any_start(share):
    rng = np.random.default_rng(int(10 * share))
    orders = rng.integers(1, 13, 1500)
    graphs = [random_graph(n, rng) for n in orders]
    check_sizes(graphs, orders, rng=rng, share=share)


def test_one_tree_is_left_to_those_who_ask_for_it():
    """A second search grows it, and both together label what one search does."""
    rng = np.random.default_rng(3)
    left = 0
    for k in range(60):
        edges, _ = with_parts(k % 4, k % 7 + 1, 20, rng) if k % 2 else (factor_critical(40, rng), 0)
        graph = pattern_of((edges, None))
        mate, label = start(graph, rng, 0.6), np.zeros(graph.order, np.int32)
        arrays = graph.indptr, graph.indices, mate, label
        assert blossoms.search(*arrays, Control(), spared=1)
        before = mate.copy()
        left += int(np.count_nonzero((mate < 0) & (label == 0)))
        assert np.count_nonzero((mate < 0) & (label == 0)) <= 1
        assert blossoms.search(*arrays, Control())
        assert np.array_equal(mate, before)
        whole = searched(edges)
        assert np.count_nonzero(mate >= 0) == 2 * whole.size
        for ours, theirs in zip(result_of(mate, label).part_ind(), whole.part_ind()):
            assert np.array_equal(ours, theirs)
    assert left > 20


@pytest.mark.parametrize("seed", range(3))
def test_nested_blossoms(seed):
    """All vertices of a factor-critical graph are outer, whatever is matched first."""
    rng = np.random.default_rng(seed)
    edges = factor_critical(400, rng)
    graph = pattern_of((edges, None))
    result = searched(edges, start(graph, rng, 1.0))
    assert result.size == graph.order // 2
    assert result.gallai_edmonds()[0].size == graph.order
    verify((edges, None), result)


@pytest.mark.parametrize("seed", range(4))
def test_the_labels_are_the_decomposition(seed):
    rng = np.random.default_rng(seed)
    edges, parts = with_parts(6 * seed, 10 * seed + 1, 40, rng)
    result = searched(edges, start(pattern_of((edges, None)), rng, 0.5))
    for found, part in zip(result.part_ind(), (TASK.OUTER, TASK.INNER, TASK.PERFECT)):
        assert np.array_equal(found, np.flatnonzero(parts == part))


@pytest.mark.parametrize("budget", [1, 3, 50])
def test_any_budget_brings_the_same_matching(budget):
    edges = factor_critical(60, np.random.default_rng(5))
    assert np.array_equal(searched(edges, budget=budget).mate, searched(edges).mate)


def test_a_search_does_not_enter_what_is_outside():
    graph = pattern_of(([(0, 1), (1, 2), (2, 3), (3, 0), (1, 3)], None))
    label = np.zeros(4, np.int32)
    label[3] = blossoms.OUTSIDE
    mate = np.full(4, -1, np.int32)
    assert blossoms.search(graph.indptr, graph.indices, mate, label, Control())
    assert mate[3] == -1
    assert label[3] == blossoms.OUTSIDE
    assert (mate >= 0).sum() == 2


@pytest.mark.parametrize("ticks", [1, 2, 5])
def test_a_search_that_stops_leaves_a_matching(ticks):
    edges = chain_of_triangles(200)
    graph = pattern_of((edges, None))
    seen = []
    control = Control(callback=lambda _: seen.append(1) or len(seen) >= ticks)
    mate, label = np.full(graph.order, -1, np.int32), np.zeros(graph.order, np.int32)
    assert not blossoms.search(graph.indptr, graph.indices, mate, label, control, budget=40)
    ends = np.flatnonzero(mate >= 0)
    assert 0 < ends.size < graph.order - 1
    assert np.array_equal(mate[mate[ends]], ends)


def test_a_search_that_gives_up_leaves_a_matching():
    edges = chain_of_triangles(200)
    graph = pattern_of((edges, None))
    mate, label = np.full(graph.order, -1, np.int32), np.zeros(graph.order, np.int32)
    arrays, control = (graph.indptr, graph.indices, mate), Control()
    assert not blossoms.search(*arrays, label, control, budget=40, share=0.01)
    ends = np.flatnonzero(mate >= 0)
    assert 0 < ends.size < graph.order - 1
    assert np.array_equal(mate[mate[ends]], ends)
    assert not control.stopped
    assert blossoms.search(*arrays, 0 * label, control, budget=40, share=2.0)
    assert (mate >= 0).sum() == graph.order // 2 * 2


def test_numbers_of_walks_begin_again(monkeypatch):
    """After 2**31 walks no old stamp may count. Kernels have constants, so this runs in Python."""
    plain = in_python(("_MOST_WALKS = 2**31 - 1", "_MOST_WALKS = 3"))
    edges = flowers(3, 5)
    result = searched(edges, search=plain.search)
    assert result.size == searched(edges).size
    verify((edges, None), result)


# -- planted faults --------------------------------------------------------------------------------


def in_python(*changes):
    """The module with some of its lines changed, and its kernels as Python functions."""
    source = inspect.getsource(blossoms).replace("@kernel\n", "")
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    module = types.ModuleType("blossoms_in_python")
    exec(source, module.__dict__)
    module.prefetch = module.prefetch_range = lambda *_: None  # instructions of compiled code
    return module


FAULTS = {
    "no blossoms": ("            _shrink(s, t, forest", "            0 and _shrink(s, t, forest"),
    "one side is absorbed": ("    _absorb(t, s, top,", "    0 and _absorb(t, s, top,"),
    "bridges the wrong way round": (
        "forest.near[w], forest.far[w] = near, far", "forest.near[w], forest.far[w] = far, near"
    ),
    "absorbed vertices are not scanned": (
        "            _scan(s, indptr", "            s % 2 and _scan(s, indptr"
    ),
    "a tree is not dissolved": ("        forest.place[forest.vertex[t]] = 0", "        pass"),
    "inner vertices are not dissolved": (
        "in range(_ROOT, counts[_TOP])", "in range(_ROOT, counts[_TOP], 2)"
    ),
    "a tree without a path is dissolved": (
        "        if counts[_TAIL] > 0:  # of a tree that stays\n",
        "        if counts[_TAIL] > 0:\n"
        "            forest.place[forest.vertex[forest.queue[:counts[_TAIL]]]] = 0\n",
    ),
    "a path counts as three roots": ("counts[_OPEN] -= 2", "counts[_OPEN] -= 3"),
    "the root is not dissolved": ("in range(_ROOT, counts", "in range(_ROOT + 1, counts"),
    "stamps of an earlier tree count": ("= -1, s, 0\n", "= -1, s, forest.far[s]\n"),
    "a segment of a path is lost": ("            waiting -= 1\n            path[waiting, 0]",
                                    "            path[waiting - 1, 0]"),
}  # fmt: skip


BOUNDED = (
    (
        "    while True:\n        if one >= 0:",
        "    for _ in range(10**3):\n        if one >= 0:",
    ),
    (
        "    while group[s] >= 0:\n",
        "    for _ in range(10**3):\n        if group[s] < 0:\n            break\n",
    ),
)
"""Loops that a fault makes endless end with a wrong value, or with none. Others fill an array."""


def small_graphs():
    rng = np.random.default_rng(11)
    orders = rng.integers(5, 13, 150)
    return [random_graph(n, rng) for n in orders], orders


def test_the_kernels_in_python_do_as_compiled():
    graphs, orders = small_graphs()
    check_sizes(graphs, orders, in_python().search)


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen(fault):
    """By the checker, wherever the size or the matching is wrong."""
    search = in_python(FAULTS[fault], *BOUNDED).search
    rng = np.random.default_rng(12)
    graphs, _ = small_graphs()
    graphs += [rng.integers(0, n, (m, 2)) for n in (300, 3000) for m in (n, 5 * n // 4, 2 * n)]
    seen = 0
    for edges in filter(len, graphs):
        if seen and len(edges) > 100:
            break
        size = searched(edges).size
        try:
            result = searched(edges, search=search)
            certificate = verify((edges, None), result)
        except (CertificateError, IndexError, TypeError):
            seen += 1
            continue
        assert certificate.size == size
    assert seen > 0
