"""The CPU engine of transport against a linear program, and what holds for all it solves."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from gpumatch.cpu.transport import engine
from gpumatch.running.control import Control
from tests.cpu.transport.problems import check, check_violator, least_cost, random_task, task_of

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


def test_a_stopped_run_keeps_flow_and_duals():
    rng = np.random.default_rng(0)
    control = Control(callback=lambda progress: True)
    task = task_of(rng.random((9, 9)), np.full(9, 3), np.full(9, 3), control=control)
    solution = engine.solve(task)
    check(task, solution)
    assert not solution.is_optimal
    assert solution.infeasible_rows is None
