"""Few columns on a device: against a linear program, against exact paths, and by all steps."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip("cupy")

import cupy as cp

from gpumatch.cpu.transport import engine
from gpumatch.cuda.transport import few_columns, prices
from gpumatch.running.control import Control
from tests.cpu.transport.problems import check, check_violator, least_cost, random_task, task_of

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]

GIVEN = ("supply", "demand", "costs", "forbidden", "row_limit")
FOUND = ("rows", "cols", "flow", "row_dual", "col_dual", "infeasible_rows")


def there(task):
    """The task with arrays of the device."""
    arrays = {name: getattr(task, name) for name in GIVEN}
    arrays = {name: None if one is None else cp.asarray(one) for name, one in arrays.items()}
    initial = None if task.initial is None else tuple(map(cp.asarray, task.initial))
    return dataclasses.replace(task, initial=initial, **arrays)


def solved(task):
    """What the device finds, on the host."""
    solution = few_columns.solve(there(task))
    found = {name: getattr(solution, name) for name in FOUND}
    found = {name: None if one is None else cp.asnumpy(one) for name, one in found.items()}
    return dataclasses.replace(solution, **found)


@pytest.fixture
def _many_steps(monkeypatch):
    """Small problems take all steps: samples, more marginal rows, longer lists, many launches."""
    for module, name, value in (
        (prices, "LEAST_ROWS", 32),
        (few_columns, "LEAST_ROWS", 32),
        (prices, "ROWS_A_COLUMN", 2),
        (prices, "RATIO", 3),
        (few_columns, "MARGINAL", 1),
        (few_columns, "SPARE_ENTRIES", 0),
        (few_columns, "LOOKS_A_LAUNCH", 3),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("limit", [True, False])
def test_small_problems_against_a_linear_program(integer, limit):
    for seed in range(24):
        size = 7 if seed % 2 else 12
        task = random_task(seed, dense=True, integer=integer, limit=limit, size=size)
        solution, least = solved(task), least_cost(task)
        cost = check(task, solution, 0 if integer else 1e-12)
        if least is None:
            check_violator(task, solution.infeasible_rows)
        else:
            assert solution.is_optimal
            assert cost == pytest.approx(least, abs=1e-7)


@pytest.mark.parametrize("number", [np.int64, np.float64])
@pytest.mark.usefixtures("_many_steps")
def test_all_steps_agree_with_paths(number):
    counts = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        nrows, ncols = rng.integers(40, 250), rng.integers(2, 9)
        costs = rng.integers(-3, rng.choice([3, 1000]), (nrows, ncols)).astype(number)
        supply = rng.integers(0, 5, nrows)
        demand = rng.integers(0, 5 * nrows // ncols, ncols)
        limits = rng.integers(0, 500, nrows).astype(number) if seed % 3 == 0 else None
        if limits is None:
            demand[0] += max(supply.sum() - demand.sum(), 0) + rng.integers(2)
        task = task_of(costs, supply, demand, limits=limits)
        solution = solved(task)
        by_paths = engine._solve_by_paths(task, engine._entries(task))
        assert solution.is_optimal
        assert check(task, solution, 1e-9) == check(task, by_paths, 1e-9)
        counts.append(solution.stats)
    for name, least in (("rounds", 2), ("steps", 9), ("paths", 3)):
        assert max(one[name] for one in counts) >= least


@pytest.mark.usefixtures("_many_steps")
def test_initial_duals_leave_no_paths():
    rng = np.random.default_rng(0)
    task = task_of(rng.random((90, 4)), rng.integers(1, 5, 90), np.full(4, 60))
    first = solved(task)
    again = solved(dataclasses.replace(task, initial=(first.row_dual, first.col_dual)))
    assert check(task, again, 1e-9) == pytest.approx(check(task, first, 1e-9), rel=1e-12)
    assert again.stats["paths"] <= 4
    wild = np.full(90, 1e9), np.array([1e9, -1e9, 3, 0])
    other = solved(dataclasses.replace(task, initial=wild))
    assert check(task, other, 1e-9) == pytest.approx(check(task, first, 1e-9), rel=1e-12)


@pytest.mark.parametrize("ticks", [0, 1, 3, 5, 8])
@pytest.mark.usefixtures("_many_steps")
def test_a_stopped_run_keeps_flow_and_duals(ticks):
    left = iter(range(ticks))
    control = Control(callback=lambda progress: next(left, None) is None)
    costs = np.random.default_rng(0).random((90, 3))
    task = task_of(costs, np.full(90, 2), np.full(3, 60), control=control)
    solution = solved(task)
    check(task, solution, 1e-12)
    assert solution.is_optimal != control.stopped
    assert solution.flow.sum() > 90


def test_masses_do_not_matter():
    rng = np.random.default_rng(1)
    costs, supply, demand = rng.random((30, 5)), rng.integers(1, 9, 30), np.full(5, 40)
    few = solved(task_of(costs, supply, demand))
    many = solved(task_of(costs, supply * 10**15, demand * 10**15))
    assert (many.flow == few.flow * 10**15).all()
    assert many.stats["paths"] == few.stats["paths"]


def test_ties_move_together():
    """All costs are equal, so few paths carry many rows."""
    task = task_of(np.zeros((300, 3), np.int64), np.ones(300), np.array([250, 40, 10]))
    solution = solved(task)
    assert check(task, solution) == 0
    assert solution.stats["paths"] <= 6


def test_sums_that_do_not_fit_are_left_to_others():
    task = there(task_of(np.full((4, 3), 2**56), np.ones(4), np.full(3, 2)))
    assert not few_columns.takes(task)
    assert few_columns.takes(dataclasses.replace(task, largest=2**50))
    assert few_columns.takes(there(task_of(np.full((4, 3), 1e300), np.ones(4), np.full(3, 2))))


@pytest.mark.parametrize("number", [np.int64, np.float64])
@pytest.mark.usefixtures("_many_steps")
def test_columns_that_must_get_something(number):
    """Lower bounds against a linear program, and what proves the flow."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        nrows, ncols = rng.integers(30, 90), rng.integers(2, 7)
        costs = rng.integers(-3, rng.choice([3, 1000]), (nrows, ncols)).astype(number)
        supply, most = rng.integers(0, 5, nrows), rng.integers(0, 60, ncols)
        least = (most * rng.random(ncols) * (rng.random(ncols) < 0.7)).astype(np.int64)
        most[0] += max(supply.sum() - most.sum(), 0) + rng.integers(9)
        least *= least.sum() <= supply.sum()
        task = dataclasses.replace(task_of(costs, supply, most), least=cp.asarray(least))
        solution = solved(task)
        u, v = solution.row_dual, solution.col_dual
        assert (u[:, None] + v <= costs + 1e-9).all()
        got = np.bincount(solution.cols, solution.flow, ncols)
        assert (np.bincount(solution.rows, solution.flow, nrows) == supply).all()
        assert ((least <= got) & (got <= most)).all()
        cost = (costs[solution.rows, solution.cols] * solution.flow).sum()
        bound = (u * supply).sum() + (v * np.where(v > 0, least, most)).sum()
        assert cost == pytest.approx(bound, rel=1e-12)
