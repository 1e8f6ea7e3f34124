"""The double cover and Karp–Sipser of graphs that need not be bipartite."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.contracts import GeneralMatchingTask
from gpumatch.cpu.general import double_cover, karp_sipser
from gpumatch.cpu.general import matching as driver
from gpumatch.cpu.matching import engine
from gpumatch.general.graph import pattern_of
from gpumatch.running.control import Control
from tests.general_graphs import petersen, random_graph


def task_of(edges, control=None, solve_cover=engine.run):
    graph = pattern_of((edges, None))
    mate, part = np.full(graph.order, -1, np.int32), np.zeros(graph.order, np.int8)
    control = control or Control()
    return GeneralMatchingTask(graph.indptr, graph.indices, mate, part, solve_cover, control)


def is_matching(task, mate):
    ends = np.flatnonzero(mate >= 0)
    owners = np.repeat(np.arange(mate.size), np.diff(task.indptr))
    edges = {*zip(owners.tolist(), task.indices.tolist())}
    return np.array_equal(mate[mate[ends]], ends) and edges >= {*zip(ends, mate[ends])}


def test_every_path_and_odd_cycle_leaves_a_vertex():
    rng = np.random.default_rng(4)
    for _ in range(150):
        n = int(rng.integers(2, 20))
        edges = random_graph(n, rng)
        if not len(edges):
            continue
        task = task_of(edges)
        fractional = double_cover.solve(task)
        mate, outer, inner = fractional.mate, fractional.is_outer, fractional.is_inner
        assert is_matching(task, mate)
        u, v = edges.T
        assert not (outer & inner).any()
        assert not ((outer[u] & ~inner[v]) | (outer[v] & ~inner[u])).any()
        assert outer[mate[inner]].all()
        left = outer.sum() - inner.sum()
        assert (mate < 0).sum() == left + fractional.odd_cycles
        assert (mate[outer] < 0).sum() == left


def test_an_odd_cycle_leaves_one_vertex_and_an_even_one_none():
    ring = np.arange(9)
    task = task_of(np.stack([ring, (ring + 1) % 9], axis=1))
    assert double_cover.solve(task).odd_cycles == 1
    assert double_cover.solve(task_of(petersen(4, 1))).odd_cycles == 0


@pytest.mark.parametrize("budget", [1, 5])
def test_a_budget_does_not_change_the_cycles(monkeypatch, budget):
    edges = np.random.default_rng(6).integers(0, 300, (450, 2))
    whole = double_cover.solve(task_of(edges))
    monkeypatch.setattr(double_cover, "BUDGET", budget)
    parts = double_cover.solve(task_of(edges))
    assert np.array_equal(whole.mate, parts.mate)
    assert whole.odd_cycles == parts.odd_cycles


def test_a_cover_that_stops_leaves_the_best_matching():
    edges = np.random.default_rng(6).integers(0, 300, (450, 2))

    def half(cover_task):
        """A path half flipped: row 0 has lost its column, but that still names row 0."""
        cover_task.row_to_col[0] = -1
        return False

    task = task_of(edges, solve_cover=half)
    assert double_cover.solve(task) is None
    assert is_matching(task, task.mate)
    assert (task.mate >= 0).sum() > 150


def test_phases_count_edges_of_the_graph():
    control = Control()
    double_cover.solve(task_of(petersen(50, 7), control))
    assert all(phase["matched"] <= 50 for phase in control.trace)


@pytest.mark.parametrize("budget", [1, 2**20])
def test_karp_sipser_is_maximal_and_right_on_trees(budget):
    rng = np.random.default_rng(8)
    parents = np.array([rng.integers(0, v) for v in range(1, 400)])
    tree = np.stack([parents, np.arange(1, 400)], axis=1)
    task = task_of(tree)
    assert karp_sipser.run(task, budget)
    assert is_matching(task, task.mate)
    whole = task_of(tree)
    assert driver.run(whole)
    assert (task.mate >= 0).sum() == (whole.mate >= 0).sum()


def test_karp_sipser_extends_a_matching():
    edges = np.random.default_rng(9).integers(0, 200, (300, 2))
    task = task_of(edges)
    u, v = next((u, v) for u, v in edges if u != v)
    task.mate[[u, v]] = v, u
    assert karp_sipser.run(task)
    assert task.mate[u] == v
    assert is_matching(task, task.mate)
    bare = task.mate[edges] < 0
    assert not (bare.all(axis=1) & (edges[:, 0] != edges[:, 1])).any()


@pytest.mark.parametrize("ticks", [1, 2, 3])
def test_karp_sipser_stops(ticks):
    seen = []
    control = Control(callback=lambda _: seen.append(1) or len(seen) >= ticks)
    task = task_of(petersen(40, 3), control)
    assert not karp_sipser.run(task, budget=1)
    assert is_matching(task, task.mate)
