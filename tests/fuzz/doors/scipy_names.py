"""SciPy's names: `linear_sum_assignment`, also with a limit, and those of `csgraph`."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import gpumatch as gm
from tests.fuzz import containers, oracles, problems
from tests.fuzz.containers import on_host
from tests.fuzz.judgement import check_allowed, require
from tests.fuzz.problems import Problem
from tests.fuzz.trials import Trial


def linear_sum_assignment(trial: Trial) -> None:
    problem = problems.dense_problem(trial, plain=True)
    if problem.values.dtype == np.longdouble:
        return  # SciPy refuses it, and so does this
    C = containers.dense(trial, problem.matrix())
    trial.note(C=C, maximize=problem.maximize)
    _compare(problem, lambda: gm.optimize.linear_sum_assignment(C, problem.maximize))


def limited(trial: Trial) -> None:
    """`linear_sum_assignment` with a limit, alone or in a batch with itself transposed."""
    drawn = problems.dense_problem(trial, 2**16 if trial.chance(0.8) else 2**20 + 2**10)
    problem = dataclasses.replace(drawn, cardinality="full")
    is_finite = np.isfinite(problem.given_limits.astype(float)).all()
    if problem.values.dtype == np.longdouble or not problem.has_limit or not is_finite:
        return
    C, limit = containers.dense(trial, problem.matrix()), problem.limit
    trial.note(C=C, maximize=problem.maximize, cost_limit=limit)
    _compare(problem, lambda: gm.optimize.linear_sum_assignment(C, problem.maximize, limit))
    if isinstance(C, np.ndarray):
        many, limits = [C, C[:0], C], [limit, limit if np.ndim(limit) == 0 else limit[:0], limit]
        run = gm.optimize.linear_sum_assignment_batch
        _compare(problem, lambda: run(many, problem.maximize, limits)[2])


def _compare(problem: Problem, run: Any) -> None:
    best, is_infeasible = oracles.best(problem), oracles.is_infeasible(problem)
    try:
        rows, cols = (on_host(part) for part in run())
    except ValueError as exc:
        require(is_infeasible, f"a feasible problem is refused: {exc}")
        return
    require(not is_infeasible, "an infeasible problem has an assignment")
    is_size = problem.is_free or rows.size == min(problem.shape)
    require(is_size, f"{rows.size} pairs of {problem.shape}")
    require((np.diff(rows) > 0).all(), "the rows do not ascend")
    require(np.unique(cols).size == cols.size, "a column is there twice")
    check_allowed(problem, rows, cols)
    if best is None:
        return
    net, other = problem.net(rows, cols), problem.net(*best)
    allowance = 4 * problem.allowance((rows, cols), best, dual=np.inf)
    require(net <= other + allowance, f"{net!r}, but {other!r} is possible")


def csgraph(trial: Trial) -> None:
    problem = problems.sparse_problem(trial, plain=True)
    if trial.chance(0.5):
        _cardinality(trial, problem)
        return
    is_edge = problem.values != 0
    problem = problem.of_pairs(is_edge) if trial.chance(0.7) else problem
    only = ("csr", "csc", "coo", "csr_matrix", "unsorted")
    C = containers.sparse_form(
        trial, problem.rows, problem.cols, problem.values, problem.shape, only=only
    )
    trial.note(C=C, maximize=problem.maximize)
    without_zeros = problem.of_pairs(problem.values != 0)
    run = gm.csgraph.min_weight_full_bipartite_matching
    _compare(without_zeros, lambda: run(C, problem.maximize))


def _cardinality(trial: Trial, problem: Problem) -> None:
    only = ("csr", "csc", "coo", "csr_matrix", "unsorted")
    values = np.ones(problem.rows.size)
    C = containers.sparse_form(trial, problem.rows, problem.cols, values, problem.shape, only=only)
    trial.note(C=C)
    size = oracles.rank(problem)
    require(int(gm.csgraph.structural_rank(C)) == size, f"the structural rank is {size}")
    for kind in ("row", "column"):
        mates = on_host(gm.csgraph.maximum_bipartite_matching(C, kind))
        own = np.flatnonzero(mates >= 0)
        rows, cols = (mates[own], own) if kind == "row" else (own, mates[own])
        require(own.size == size, f"{own.size} pairs, but {size} exist")
        require(np.unique(mates[own]).size == own.size, "a vertex is matched twice")
        require((problem.places(rows, cols) >= 0).all(), "a pair is no edge")
