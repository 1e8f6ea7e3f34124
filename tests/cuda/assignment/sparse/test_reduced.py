"""Sparse costs with given duals, solved at the costs less these duals, on the device."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import SparseCosts
from gpumatch.running.control import Control

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]
cp = pytest.importorskip("cupy")

from gpumatch.cuda.assignment.sparse import engine, reduced  # noqa: E402  it imports cupy


def costs_of(n, dtype, seed, degree=4):
    """Random pairs and a permutation, and the optimum."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([np.repeat(np.arange(n), degree), np.arange(n)])
    cols = np.concatenate([rng.integers(0, n, n * degree), rng.permutation(n)])
    keys = np.unique(rows * n + cols)
    values = rng.normal(size=keys.size) * 100
    values = values.astype(dtype)
    values[values == 0] = 1  # so that all that is 0 is forbidden
    matrix = csr_array((values, (keys // n, keys % n)), shape=(n, n))
    return SparseCosts(matrix).to_device(), matrix, gm.assign(matrix, backend="cpu")


def solve(costs, price, pairs=None, control=None):
    solution = Solution.empty(costs.shape, is_integer=costs.is_integer, xp=cp)
    solution.col_dual[:] = cp.asarray(price)
    if pairs is not None:
        solution.row_to_col[:] = cp.asarray(pairs)
        solution.col_to_row[:] = cp.asarray(np.argsort(pairs).astype(np.int32))
    task = AssignmentTask(costs, solution, control or Control())
    return reduced.run(task), solution


def check(matrix, best, solution):
    """The pairs are optimal, and the duals prove it, rounding apart."""
    cols = solution.row_to_col.get()
    dense = np.where(matrix.toarray() != 0, matrix.toarray(), np.inf)
    assert sorted(cols) == list(range(len(cols)))
    assert dense[np.arange(len(cols)), cols].sum() == pytest.approx(best.objective, rel=1e-12)
    row_dual, col_dual = solution.row_dual.get(), solution.col_dual.get()
    assert (dense - row_dual[:, None] >= col_dual).all()
    total = row_dual.sum() + col_dual.sum()
    assert total == pytest.approx(best.objective, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("kind", ["far", "near", "optimal"])
def test_given_duals_change_no_optimum(kind, dtype):
    for seed in range(3):
        costs, matrix, best = costs_of(60, dtype, seed)
        rng = np.random.default_rng(seed)
        noise = {"far": 1e4, "near": 3, "optimal": 0}[kind]
        price = best.col_dual + (rng.normal(size=60) * noise).astype(dtype)
        pairs = best.row_to_col if kind == "optimal" else None
        ended, solution = solve(costs, price, pairs)
        assert ended
        check(matrix, best, solution)


def test_floats_with_many_rows_to_match_have_two_stages(monkeypatch):
    made, run = [], engine.run

    def note(task, span, tuning):
        made.append((task.costs, span))
        trials.append(tuning.trial)
        return run(task, span, tuning)

    trials: list = []
    monkeypatch.setattr(engine, "run", note)
    costs, matrix, best = costs_of(60, np.float64, 1)
    _, solution = solve(costs, best.col_dual + 1000 * (np.arange(60) % 7))
    check(matrix, best, solution)
    (first, _), (_, span) = made
    assert first.is_integer
    assert 0 < span < 10
    made.clear()
    solve(costs, best.col_dual, best.row_to_col)
    assert [stage.is_integer for stage, _ in made] == [False]
    assert trials[0] == trials[1]
    assert trials[2].looks > trials[0].looks  # nearly all pairs are tight: no auction is in sight


def test_integers_whose_reduced_costs_are_too_large_are_solved_as_they_are(monkeypatch):
    costs, matrix, best = costs_of(30, np.int64, 2)
    made, run = [], engine.run
    monkeypatch.setattr(engine, "run", lambda task, **how: made.append(task) or run(task, **how))
    price = np.where(np.arange(30) < 15, 0, -(2**57))
    ended, solution = solve(costs, price)
    assert ended
    assert made[0].costs is costs
    assert matrix[np.arange(30), solution.row_to_col.get()].sum() == best.objective


@pytest.mark.parametrize("ticks", [1, 2, 4])
def test_a_run_that_stops_leaves_feasible_duals(ticks):
    costs, matrix, best = costs_of(60, np.float64, 3)
    calls = []

    def stop(progress):
        calls.append(1)
        return len(calls) >= ticks

    _, solution = solve(costs, best.col_dual + 50 * np.arange(60), None, Control(callback=stop))
    dense = np.where(matrix.toarray() != 0, matrix.toarray(), np.inf)
    assert solution.has_duals
    assert (dense - solution.row_dual.get()[:, None] >= solution.col_dual.get()).all()


def test_infeasible_costs_are_told():
    matrix = costs_of(40, np.float64, 4)[1].toarray()
    matrix[:, :20][25:] = 0
    matrix[20:25, :20] = 0
    costs = SparseCosts(csr_array(matrix)).to_device()
    ended, solution = solve(costs, -np.arange(40.0))
    assert ended
    assert (solution.row_to_col.get() < 0).any()
    with pytest.raises(gm.InfeasibleError):
        gm.assign(costs)
