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


@pytest.mark.parametrize("nrows", [9, 11, 40, 81])
def test_a_sample_takes_no_row_twice(nrows):
    masses = np.full(nrows, 2**62 // nrows), np.full(2, 2**61)
    few = few_columns.FewColumns(np.ones((nrows, 2)), *masses, None, Control())
    assert not few.takes_all
    sample = few._some_rows()
    assert sample.size == few.sample
    assert (np.diff(sample) > 0).all()
    assert sample[-1] < nrows


def test_most_rows_are_never_in_a_tree():
    rng = np.random.default_rng(0)
    task = task_of(rng.random((3000, 4)), np.ones(3000), np.full(4, 750))
    solution = engine.solve(task)
    check(task, solution, 1e-12)
    assert solution.stats["marginal"] < 1000


@pytest.mark.parametrize("limit", [True, False])
@pytest.mark.parametrize("number", [np.int64, np.float64])
def test_lower_bounds_agree_with_a_linear_program(number, limit):
    """Columns at a lower bound may have a dual above 0, and the duals prove the least cost."""
    has_price = False
    for seed in range(12):
        rng = np.random.default_rng(seed)
        costs = rng.integers(-3, rng.choice([9, 50]), (rng.integers(3, 20), 3)).astype(number)
        supply = rng.integers(1, 5, len(costs))
        least = rng.integers(0, supply.sum() // 3 + 1, 3)
        most = least + rng.integers(1, 9, 3)
        most[0] += max(supply.sum() - most.sum(), 0)
        most[1] += supply.sum() if seed % 3 == 0 else 0
        initial = (np.zeros(supply.size), rng.integers(-4, 1, 3)) if seed % 2 else None
        if initial is not None:
            initial = tuple(dual.astype(number) for dual in initial)
        limits = rng.integers(-3, 30, supply.size).astype(number) if limit else None
        task = task_of(costs, supply, most, limits=limits, least=least, initial=initial)
        assert engine.takes_least(task)
        solution = engine.solve(task)
        rows, cols, flow = solution.rows, solution.cols, solution.flow
        sent, got = np.bincount(rows, flow, supply.size), np.bincount(cols, flow, 3)
        assert (sent <= supply).all()
        assert ((least <= got) & (got <= most)).all()
        assert limit or (sent == supply).all()
        u, v = solution.row_dual, solution.col_dual
        assert (u[:, None] + v <= costs).all()
        assert (v[got < most] >= 0).all()
        assert (v[got > least] <= 0).all()
        has_price |= (v > 0).any()
        cost = (costs[rows, cols] * flow).sum()
        if limits is not None:
            assert (u <= limits).all()
            cost += (limits * (supply - sent)).sum()
        assert cost == (u * supply).sum() + (v * np.where(v > 0, least, most)).sum()
    assert has_price


def test_a_column_that_gets_all_units_is_not_full():
    """Its demand is greater, so the dual below 0 that it is given is none of an optimum."""
    costs, least = np.array([[3, -4]]), np.array([0, 3])
    given = np.zeros(1, np.int64), np.array([0, -2])
    solution = engine.solve(
        task_of(costs, np.array([3]), np.array([1, 4]), least=least, initial=given)
    )
    assert solution.flow.tolist() == [3]
    assert (solution.row_dual.tolist(), solution.col_dual.tolist()) == ([-4], [0, 0])


@pytest.mark.parametrize("spare", [0, 7])
def test_few_rows_are_few_columns_of_the_transposed_problem(spare):
    rng = np.random.default_rng(spare)
    costs, demand = rng.random((3, 400)), rng.integers(1, 4, 400)
    supply = np.full(3, (demand.sum() - spare) // 3)
    supply[0] += demand.sum() - spare - supply.sum()
    task = task_of(costs, supply, demand)
    solution = engine.solve(task)
    by_paths = engine._solve_by_paths(task, engine._entries(task))
    assert check(task, solution, 1e-9) == pytest.approx(check(task, by_paths, 1e-9), rel=1e-12)
    assert solution.stats["marginal"] > 0
    again = engine.solve(task_of(costs, supply, demand, initial=_duals(solution)))
    assert again.stats["paths"] <= solution.stats["paths"] // 2


def _duals(solution):
    return solution.row_dual, solution.col_dual


def test_last_duals_leave_few_paths():
    """Clusters whose centers have moved a little begin from the prices of the last step."""
    rng = np.random.default_rng(0)
    points, centers = rng.random((2000, 2)), rng.random((4, 2))
    demand, paths = np.full(4, 500), []
    initial = None
    for _ in range(2):
        costs = ((points[:, None] - centers) ** 2).sum(axis=2)
        task = task_of(costs, np.ones(2000), demand, initial=initial)
        solution = engine.solve(task)
        paths.append(solution.stats["paths"])
        initial, centers = _duals(solution), centers + 0.001
    assert paths[1] < paths[0] / 4


@pytest.mark.parametrize("many", [True, False])
def test_pivots_and_paths_agree(monkeypatch, many):
    """More columns than are narrow take pivots, unless there are many rows for each."""
    monkeypatch.setattr(few_columns, "NARROW", 2)
    monkeypatch.setattr(few_columns, "MANY", 3 if many else 2**7)
    rng = np.random.default_rng(0)
    task = task_of(rng.random((60, 5)), np.full(60, 2), np.full(5, 24))
    solution = engine.solve(task)
    by_paths = engine._solve_by_paths(task, engine._entries(task))
    assert check(task, solution, 1e-9) == pytest.approx(check(task, by_paths, 1e-9), rel=1e-12)
    assert (solution.stats["paths"] > 0) == many
    assert (solution.stats["pivots"] > 0) != many


@pytest.mark.parametrize("ticks", range(6))
def test_a_stopped_run_has_feasible_duals(ticks):
    left = iter(range(ticks))
    control = Control(callback=lambda progress: next(left, None) is None)
    costs = np.random.default_rng(0).random((90, 3))
    task = task_of(costs, np.ones(90), np.full(3, 30), control=control)
    solution = engine.solve(task)
    check(task, solution, 1e-12)
    assert solution.is_optimal != control.stopped
    assert 30 <= solution.flow.sum() <= 90
