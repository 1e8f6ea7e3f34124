"""Few columns: samples, marginal rows and readings against exact paths."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.cpu.transport import engine, few_columns
from gpumatch.running.control import Control
from tests.cpu.transport.problems import check, task_of


@pytest.fixture(autouse=True)
def _samples_of_few_rows(monkeypatch):
    monkeypatch.setattr(few_columns, "LEAST", 8)
    monkeypatch.setattr(few_columns, "RATIO", 3)
    monkeypatch.setattr(engine, "SMALL", 0)


@pytest.mark.parametrize("number", [np.int64, np.float64])
def test_few_columns_agree_with_paths(number):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        nrows, ncols = rng.integers(20, 90), rng.integers(2, 6)
        costs = rng.integers(-3, rng.choice([3, 1000]), (nrows, ncols)).astype(number)
        supply, demand = rng.integers(0, 5, nrows), rng.integers(0, 5, ncols)
        demand[0] += max(supply.sum() - demand.sum(), 0) + rng.integers(2)
        task = task_of(costs, supply, demand)
        assert few_columns.takes(costs.shape)
        solution = engine.solve(task)
        by_paths = engine._solve_by_paths(task, engine._entries(task))
        tolerance = 0 if task.is_integer else 1e-9
        assert solution.is_optimal
        assert check(task, solution, tolerance) == check(task, by_paths, tolerance)


def test_most_rows_are_never_in_a_tree():
    rng = np.random.default_rng(0)
    task = task_of(rng.random((3000, 4)), np.ones(3000), np.full(4, 750))
    solution = engine.solve(task)
    check(task, solution, 1e-12)
    assert solution.stats["marginal"] < 1000


@pytest.mark.parametrize("ticks", range(6))
def test_a_stopped_run_has_feasible_duals(ticks):
    left = iter(range(ticks))
    control = Control(callback=lambda progress: next(left, None) is None)
    costs = np.random.default_rng(0).random((90, 3))
    task = task_of(costs, np.ones(90), np.full(3, 30), control=control)
    solution = engine.solve(task)
    check(task, solution, 1e-12)
    assert solution.is_optimal != control.stopped
    assert solution.flow.sum() > 60  # what fits into the cheapest columns
