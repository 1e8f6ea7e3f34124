"""The kernels of b-matchings: small budgets, and phases after a poor start."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from gpumatch.bipartite import BipartiteGraph
from gpumatch.contracts import BMatchingTask
from gpumatch.cpu.matching import b_matching
from gpumatch.running.control import Control


def task_of(A, row_capacity, col_capacity, control=None):
    graph = BipartiteGraph(A)
    rooms = np.full(graph.nrows, row_capacity), np.full(graph.ncols, col_capacity)
    return BMatchingTask(graph, np.zeros(graph.nnz, bool), *rooms, control or Control())


def take(task, edges):
    """Take some edges, by their rows and columns."""
    for row, col in edges:
        place = int(task.graph.find(np.array([row]), np.array([col]))[0][0])
        task.is_taken[place] = True
        task.row_room[row] -= 1
        task.col_room[col] -= 1


def bound_of(task, cover, row_capacity, col_capacity):
    rows, cols = task.graph.edges()
    missed = np.count_nonzero(~cover[0][rows] & ~cover[1][cols])
    return missed + row_capacity * cover[0].sum() + col_capacity * cover[1].sum()


@pytest.mark.parametrize("budget", [1, 7, 2**24])
@pytest.mark.parametrize("capacities", [(1, 1), (2, 3), (3, 1)])
def test_any_budget_brings_the_same_edges(budget, capacities):
    rng = np.random.default_rng(7)
    A = csr_array((rng.random((40, 45)) < 0.1).astype(int))
    task, whole = (task_of(A, *capacities) for _ in range(2))
    cover = b_matching.run(task, budget)
    b_matching.run(whole)
    assert np.array_equal(task.is_taken, whole.is_taken)
    assert bound_of(task, cover, *capacities) == np.count_nonzero(task.is_taken)


def test_phases_undo_a_poor_start():
    """A ladder of rows i at columns i and i + 1: with one wrong edge each, one path is long."""
    n = 30
    A = csr_array(np.eye(n, dtype=int) + np.eye(n, k=1, dtype=int))
    control = Control()
    task = task_of(A, 1, 1, control)
    take(task, [(i, i + 1) for i in range(n - 1)])
    cover = b_matching.run(task, budget=5)
    assert task.is_taken.sum() == bound_of(task, cover, 1, 1) == n
    (phase,) = control.statistics()["trace"]
    assert (phase["found"], phase["levels"]) == (1, 2 * n - 1)


def test_a_long_row_takes_any_columns(monkeypatch):
    A = csr_array(np.ones((3, b_matching.COMPARED + 9), int))
    task = task_of(A, b_matching.COMPARED, 2)
    cover = b_matching.run(task)
    size = np.count_nonzero(task.is_taken)
    assert size == bound_of(task, cover, b_matching.COMPARED, 2) == 2 * A.shape[1]


@pytest.mark.parametrize("ticks", [1, 3, 9])
def test_a_run_that_stops_keeps_to_the_capacities(ticks):
    A = csr_array(np.ones((20, 20), int))
    seen = []
    control = Control(callback=lambda _: seen.append(1) or len(seen) >= ticks)
    task = task_of(A, 3, 3, control)
    assert b_matching.run(task, budget=1) is None
    taken = csr_array((task.is_taken.astype(int), A.indices, A.indptr), A.shape)
    assert np.array_equal(taken.sum(axis=1), 3 - task.row_room)
    assert np.array_equal(taken.sum(axis=0), 3 - task.col_room)
    assert min(task.row_room.min(), task.col_room.min()) >= 0
