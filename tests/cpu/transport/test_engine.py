"""The CPU engine of transport against a linear program, and what holds for all it solves."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

from gpumatch.cpu.transport import auction, dense, engine
from gpumatch.cpu.transport.dense import Tuning
from gpumatch.cpu.transport.sources import Matrix
from gpumatch.running.control import Control
from tests.cpu.transport.problems import (
    check,
    check_violator,
    least_cost,
    no_duals,
    random_task,
    task_of,
)

SMALL_STEPS = Tuning(whole=0, features=2, row_arcs=2, col_arcs=1, more_arcs=2, loose=0)
CASES = [
    (dense, integer, limit)
    for dense in (True, False)
    for integer in (True, False)
    for limit in (False, True)
]


@pytest.mark.parametrize(("dense", "integer", "limit"), CASES)
def test_small_problems_against_a_linear_program(dense, integer, limit):
    for seed in range(60):
        task = random_task(seed, dense=dense, integer=integer, limit=limit)
        solution, least = engine.solve(task), least_cost(task)
        cost = check(task, solution, 0 if integer else 1e-12)
        if least is None:
            check_violator(task, solution.infeasible_rows)
        else:
            assert solution.is_optimal
            assert solution.infeasible_rows is None
            assert cost == pytest.approx(least, abs=1e-7)


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("limit", [True, False])
def test_small_dense_problems_by_a_core(monkeypatch, integer, limit):
    """The network simplex method with the least core, against a linear program."""
    monkeypatch.setattr(engine, "SMALL", 0)
    monkeypatch.setattr(dense, "DEFAULT", SMALL_STEPS)
    for seed in range(60):
        task = random_task(
            seed, dense=True, integer=integer, limit=limit, size=14 if seed % 2 else 7, allow=True
        )
        solution = engine.solve(task)
        assert solution.is_optimal
        assert check(task, solution, 0 if integer else 1e-12) == pytest.approx(
            least_cost(task), abs=1e-7
        )


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("limit", [True, False])
def test_auctions_before_the_paths(monkeypatch, integer, limit):
    monkeypatch.setattr(engine, "FEW", 0)
    for seed in range(120):
        most = 6 if seed % 2 else 10**9
        task = random_task(seed, dense=False, integer=integer, limit=limit, most=most, size=9)
        alone = engine.solve(dataclasses.replace(task, initial=no_duals(task)))
        solution = engine.solve(task)
        cost = check(task, solution, 0 if integer else 1e-12)
        assert solution.is_optimal == alone.is_optimal
        if solution.is_optimal:
            assert cost == pytest.approx(check(task, alone, 0 if integer else 1e-12), rel=1e-12)
        else:
            check_violator(task, solution.infeasible_rows)


def test_lots_need_more_room(monkeypatch):
    """An auction whose lots do not fit makes room, and goes on."""
    monkeypatch.setattr(engine, "FEW", 0)
    monkeypatch.setattr(auction, "LOTS", 0)
    rng = np.random.default_rng(0)
    costs, supply = rng.integers(0, 99, (30, 6)), rng.integers(1, 99, 30)
    demand = np.full(6, supply.sum() // 6 + 1)
    task = task_of(costs, supply, demand, dense=False)
    assert check(task, engine.solve(task)) == pytest.approx(least_cost(task))


def test_groups_tell_points_from_random_costs():
    """Points have a core, and small matrices without structure have all pairs as arcs."""
    rng, masses = np.random.default_rng(0), np.full(150, 3)
    points = rng.random((2, 150, 2))
    distances = ((points[0][:, None] - points[1]) ** 2).sum(axis=2)
    arcs = []
    for costs in (distances, rng.random((150, 150))):
        problem = dense.DenseProblem(Matrix(costs), masses, masses, None, Control())
        assert problem.solve()
        arcs.append(problem.counts["arcs"])
    assert arcs[0] < 150 * 30 < 150 * 150 < arcs[1]


@pytest.mark.parametrize("scale", [1e-300, 1e-85, 1e300])
def test_floats_of_any_magnitude_have_a_core(monkeypatch, scale):
    """Neither the auction nor an arc to the root drowns costs, or goes beyond float64."""
    monkeypatch.setattr(dense, "DEFAULT", SMALL_STEPS)
    rng = np.random.default_rng(0)
    points = rng.integers(0, 9, (2, 40, 2))
    costs = ((points[0][:, None] - points[1]) ** 2).sum(axis=2)
    masses = np.full(40, 2**55)
    least = check(task_of(costs, masses, masses), engine.solve(task_of(costs, masses, masses)))
    task = task_of(costs * scale, masses, masses)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = engine.solve(task)
    with np.errstate(over="ignore"):  # of the total, which is found below
        check(task, solution, 1e-12 * scale)
    units = solution.flow / 2**55
    found = (costs[solution.rows, solution.cols] * units).sum()
    assert found == pytest.approx(least / 2**55, rel=1e-12)


@pytest.mark.parametrize("top", [1, 5, 10**9])
def test_levels_end_where_all_pairs_do(top):
    """Groups of groups, a core and pricing give what the paths give, for points in the plane."""
    rng = np.random.default_rng(top)
    points = rng.random((2, 90, 2))
    costs = np.sqrt(((points[0][:, None] - points[1]) ** 2).sum(axis=2))
    supply, demand = rng.integers(1, top + 1, (2, 90))
    demand[0] += max(supply.sum() - demand.sum(), 0)
    supply[0] += max(demand.sum() - supply.sum(), 0)
    task = task_of(costs, supply, demand)
    problem = dense.DenseProblem(Matrix(costs), supply, demand, None, Control(), tuning=SMALL_STEPS)
    assert problem.solve()
    rows, cols, flow = problem.flow()
    by_paths = check(task, engine._solve_by_paths(task, engine._entries(task)), 1e-12)
    assert (costs[rows, cols] * flow).sum() == pytest.approx(by_paths, rel=1e-12)


def test_costs_of_many_magnitudes():
    """Costs far above those in use leave no rounding in the duals of the others."""
    rng = np.random.default_rng(0)
    costs = 10.0 ** rng.uniform(-6, 9, (40, 40))
    task = task_of(costs, np.full(40, 2), np.full(40, 2))
    solution = engine.solve(task)
    cost = check(task, solution, 1e-9 * costs[solution.rows, solution.cols].max())
    bound = (task.supply * solution.row_dual).sum() + (task.demand * solution.col_dual).sum()
    assert cost == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize("shape", [(1, 1500), (1500, 1), (3, 600), (600, 3)])
@pytest.mark.parametrize("limit", [True, False])
def test_narrow_matrices(shape, limit):
    rng = np.random.default_rng(0)
    costs = rng.integers(0, 99, shape).astype(float)
    supply, demand = rng.integers(0, 9, shape[0]), rng.integers(0, 9, shape[1])
    demand[0] += max(supply.sum() - demand.sum(), 0)
    limits = rng.integers(0, 50, shape[0]).astype(float) if limit else None
    task = task_of(costs, supply, demand, limits=limits)
    solution = engine.solve(task)
    again = engine.solve(dataclasses.replace(task, initial=(solution.row_dual, solution.col_dual)))
    by_paths = engine._solve_by_paths(task, engine._entries(task))
    assert check(task, solution, 1e-9) == check(task, by_paths, 1e-9) == check(task, again, 1e-9)


def test_ties_do_not_cycle():
    """Equal costs and masses make every pivot degenerate."""
    costs = np.zeros((40, 40), np.int64)
    costs[:20, :20] = 1
    task = task_of(costs, np.full(40, 2), np.full(40, 2))
    assert check(task, engine.solve(task)) == 0


def test_masses_do_not_matter():
    """Searches ship bottlenecks: as many do for units as for their billions."""
    rng = np.random.default_rng(0)
    costs, supply, demand = rng.random((12, 9)), rng.integers(1, 9, 12), rng.integers(9, 15, 9)
    few = engine.solve(task_of(costs, supply, demand))
    many = engine.solve(task_of(costs, supply * 10**9, demand * 10**9))
    assert (many.flow == few.flow * 10**9).all()
    assert many.stats["paths"] == few.stats["paths"]


def test_initial_duals_need_no_paths():
    task = random_task(1, dense=False, integer=True, limit=False)
    first = engine.solve(task)
    again = engine.solve(dataclasses.replace(task, initial=(first.row_dual, first.col_dual)))
    assert check(task, again) == check(task, first)
    assert again.stats["paths"] <= first.stats["paths"]


@pytest.mark.parametrize("ticks", range(6))
@pytest.mark.parametrize("size", [9, 40])
def test_a_stopped_run_keeps_flow_and_duals(monkeypatch, size, ticks):
    monkeypatch.setattr(dense, "DEFAULT", SMALL_STEPS)
    rng, left = np.random.default_rng(0), iter(range(ticks))
    control = Control(callback=lambda progress: next(left, None) is None)
    masses = np.full(size, 3)
    task = task_of(rng.random((size, size)), masses, masses, control=control)
    solution = engine.solve(task)
    check(task, solution, 1e-12)
    assert solution.is_optimal != control.stopped
    assert solution.infeasible_rows is None


@pytest.mark.parametrize("ticks", range(0, 60, 4))
def test_a_stopped_run_loses_no_unit(ticks):
    """Units of pairs that close cycles of the first tree, and are not in it yet, are flow."""
    rng, left = np.random.default_rng(0), iter(range(ticks))
    control = Control(callback=lambda progress: next(left, None) is None)
    costs = (rng.integers(0, 3, (40, 1)) + rng.integers(0, 3, 40)).astype(float)
    masses, tuning = np.full(40, 3), SMALL_STEPS._replace(auction=dense.Phases(budget=1))
    problem = dense.DenseProblem(Matrix(costs), masses, masses, None, control, tuning=tuning)
    problem.solve()
    assert problem.flow()[2].sum() == problem.shipped


@pytest.mark.parametrize("trial", [0, 10**6])
def test_duals_that_lead_nowhere_are_dropped(monkeypatch, trial):
    """If paths from given duals read too much, an auction begins afresh."""
    monkeypatch.setattr(engine, "FEW", 0)
    monkeypatch.setattr(engine, "TRIAL", trial)
    by_auction = 0
    for seed in range(40):
        task = random_task(seed, dense=False, integer=True, limit=seed % 2 == 0, size=12)
        wrong = np.random.default_rng(seed).integers(-40, 40, task.shape[1])
        given = dataclasses.replace(task, initial=(np.zeros(task.shape[0], np.int64), wrong))
        solution, cold = engine.solve(given), engine.solve(task)
        assert check(task, solution) == check(task, cold)
        assert solution.is_optimal == cold.is_optimal
        assert (solution.infeasible_rows is None) == (cold.infeasible_rows is None)
        by_auction += "pivots" in solution.stats
    assert (by_auction > 10) == (trial == 0)
