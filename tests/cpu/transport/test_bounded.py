"""Paths between bounds of pairs, rows and columns, against a linear program."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from gpumatch.contracts.transport import BoundedTask
from gpumatch.cpu.transport import bounded
from gpumatch.running.control import Control


def random_task(seed, control=None):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 7, 2)
    allowed = rng.random((n, m)) < rng.choice([0.3, 0.6, 1])
    costs = rng.integers(-6, 8, (n, m)) if seed % 2 else rng.normal(size=(n, m))
    upper = rng.integers(0, 7, n + m)
    lower = (upper * rng.random(n + m) * rng.choice([0, 0.3, 1])).astype(np.int64)
    rows, cols = allowed.nonzero()
    return BoundedTask(
        lower,
        upper,
        np.append(0, allowed.sum(1).cumsum()),
        cols.astype(np.int32),
        costs[rows, cols],
        rng.integers(0, 4, rows.size),
        rng.integers(-9, 9, m).astype(costs.dtype),
        control or Control(),
    )


def ends_of(task):
    rows = np.repeat(np.arange(task.shape[0]), np.diff(task.indptr))
    ends = np.zeros((task.lower.size, rows.size + 1))  # one more variable, which is 0
    ends[rows, np.arange(rows.size)] = ends[task.shape[0] + task.indices, np.arange(rows.size)] = 1
    return rows, ends


def check(task, found):
    """Check the flow and the conditions of the duals; return the cost."""
    rows, ends = ends_of(task)
    sums, n = ends[:, :-1] @ found.flow, task.shape[0]
    dual = np.concatenate([found.row_dual, found.col_dual])
    slack = task.data - dual[rows] - dual[n + task.indices]
    assert ((found.flow >= 0) & (found.flow <= task.capacity)).all()
    assert (sums <= task.upper).all()
    if found.is_optimal:
        assert (slack[found.flow < task.capacity] >= -1e-9).all()
        assert (slack[found.flow > 0] <= 1e-9).all()
        assert (sums >= task.lower).all()
        assert (dual[sums > task.lower] <= 1e-9).all()
        assert (dual[sums < task.upper] >= -1e-9).all()
    return (found.flow * task.data).sum()


def test_random_problems_agree_with_a_linear_program():
    outcomes = set()
    for seed in range(150):
        task = random_task(seed)
        found = bounded.solve(task)
        rows, ends = ends_of(task)
        n = task.shape[0]
        least = linprog(
            np.append(task.data, 0),
            A_ub=np.concatenate([ends, -ends]),
            b_ub=np.concatenate([task.upper, -task.lower]),
            bounds=[*((0, most) for most in task.capacity), (0, 0)],
        )
        outcomes.add(found.violator is None or found.violator[2])
        if found.violator is None:
            assert found.is_optimal
            assert check(task, found) == pytest.approx(least.fun, abs=1e-8)
            continue
        assert least.status == 2
        of_rows, of_cols, by_rows = found.violator
        own, other = np.isin(rows, of_rows), np.isin(task.indices, of_cols)
        need, have = (of_rows, n + of_cols) if by_rows else (n + of_cols, of_rows)
        out = own & ~other if by_rows else other & ~own
        room = task.upper[have].sum() + task.capacity[out].sum()
        assert task.lower[need].sum() > room
    assert outcomes == {True, False}


@pytest.mark.parametrize("budget", [1, 7])
def test_a_search_goes_on_after_each_budget(budget, monkeypatch):
    monkeypatch.setattr(bounded, "BUDGET", budget)
    for seed in range(0, 40):
        calls = []
        task = random_task(seed, Control(callback=calls.append))
        found = bounded.solve(task)
        monkeypatch.setattr(bounded, "BUDGET", 2**22)
        again = bounded.solve(random_task(seed))
        monkeypatch.setattr(bounded, "BUDGET", budget)
        assert found.flow.tolist() == again.flow.tolist()
        assert found.row_dual.tolist() == again.row_dual.tolist()


def test_a_stopped_run_keeps_its_flow_between_the_bounds(monkeypatch):
    monkeypatch.setattr(bounded, "BUDGET", 5)
    shipped = 0
    for seed in range(40):
        left = iter(range(4))
        control = Control(callback=lambda progress, left=left: next(left, None) is None)
        task = random_task(seed, control)
        found = bounded.solve(task)
        check(task, found)
        if control.stopped:
            assert not found.is_optimal
            shipped += found.flow.sum()
    assert shipped > 0


def test_most_units_go_where_they_are_cheapest_at_once():
    """Paths are for what columns get beyond their bounds, not for each unit of a row."""
    rng = np.random.default_rng(0)
    n, m = 400, 8
    lower = np.concatenate([np.full(n, 3), np.zeros(m, np.int64)])
    upper = np.concatenate([np.full(n, 3), np.full(m, 3 * n // m)])
    costs = rng.random((n, m))
    task = BoundedTask(
        lower, upper, np.arange(0, n * m + 1, m), np.tile(np.arange(m, dtype=np.int32), n),
        costs.ravel(), np.ones(n * m, np.int64), np.zeros(m), Control(),
    )  # fmt: skip
    found = bounded.solve(task)
    best = np.sort(costs, axis=1)[:, :3].sum()
    assert found.is_optimal
    assert best <= check(task, found) < 1.05 * best
    assert found.stats["paths"] < 3 * n / 8
