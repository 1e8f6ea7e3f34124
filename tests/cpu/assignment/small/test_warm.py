"""A small problem begun from another's assignment: rows that keep their columns, and answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import gpumatch as gm
from gpumatch.cpu.assignment.small import batch
from gpumatch.cpu.assignment.small.search import COL, LINKS, PRICE, VECTORS
from gpumatch.cpu.assignment.small.warm import LOOSE, _match
from gpumatch.problems import one_problem


def matched_anew(costs, a):
    """How many rows could not keep their columns, or -1; checks those that are found then."""
    size = len(costs)
    vectors, links = np.empty((VECTORS, size)), np.empty((LINKS, size), np.int32)
    vectors[PRICE] = a.col_dual
    found = np.empty((2, size), np.int64)
    loose = _match(costs, vectors, links, found, a.row_to_col.astype(np.int64))
    if loose >= 0:
        best = costs[linear_sum_assignment(costs)].sum()
        assert math.isclose(costs[np.arange(size), found[COL]].sum(), best, rel_tol=1e-12)
        assert (
            costs - vectors[PRICE]
            >= (costs - vectors[PRICE])[np.arange(size), found[COL]][:, None] - 1e-9
        ).all()
    return loose


def drawn(rng, size, integral=True):
    return (
        rng.integers(0, 1000, (size, size)).astype(float) if integral else rng.random((size, size))
    )


@pytest.mark.parametrize("size", [1, 2, 9, 50, 120])
def test_rows_that_have_not_changed_keep_their_columns(size):
    rng = np.random.default_rng(size)
    costs = drawn(rng, size)
    a = gm.assign(costs)
    assert matched_anew(costs, a) == 0
    for row in range(0, size if size > LOOSE else 0, 7):
        forbidden = costs.copy()
        forbidden[row, a.row_to_col[row]] = math.inf
        assert matched_anew(forbidden, a) == 1


def test_no_more_rows_are_matched_anew_than_have_changed():
    rng = np.random.default_rng(3)
    for _ in range(20):
        costs = drawn(rng, 60)
        a = gm.assign(costs)
        changed = rng.choice(60, 6, replace=False)
        costs[changed] = drawn(rng, 60)[changed]
        assert 0 <= matched_anew(costs, a) <= 6


def test_what_does_not_help_is_told_before_any_path():
    rng = np.random.default_rng(4)
    costs = drawn(rng, 40)
    other = gm.assign(drawn(rng, 40))
    assert matched_anew(costs, other) == -1
    nothing = costs.copy()
    nothing[3] = math.inf
    assert matched_anew(nothing, gm.assign(costs)) == -1


@pytest.mark.parametrize("integral", [True, False])
@pytest.mark.parametrize("maximize", [False, True])
def test_the_answer_is_proven_and_the_same(integral, maximize, monkeypatch):
    def refuse(*args):
        raise AssertionError("the general way was taken")

    monkeypatch.setattr(one_problem, "solve", refuse)
    rng = np.random.default_rng(5)
    for _ in range(40):
        rows, cols = rng.integers(1, 50, 2).tolist()
        cols = rows if rng.random() < 0.7 else cols
        costs = (
            rng.integers(-50, 50, (rows, cols)) if integral else rng.standard_normal((rows, cols))
        )
        before = gm.assign(costs, maximize=maximize)
        changed = costs.copy()
        places = rng.random(costs.shape) < rng.choice([0, 0.01, 0.1, 1])
        changed[places] = rng.integers(-50, 50, places.sum())
        mates = np.full(rows, -1)
        mates[: min(rows, cols)] = rng.permutation(cols)[: min(rows, cols)]
        for initial in (before, mates, mates.astype(np.int32), np.full(rows, -1)):
            for how in ({}, {"cost_limit": 20}, {"cardinality": "maximum"}, {"cardinality": "any"}):
                if integral is False and "cost_limit" in how:
                    how = {"cost_limit": 0.3}
                cold = gm.assign(changed, maximize=maximize, **how)
                warm = gm.assign(changed, maximize=maximize, initial=initial, **how)
                assert warm.proven
                assert math.isclose(warm.objective, cold.objective, rel_tol=1e-12, abs_tol=1e-12)
                assert warm.size == cold.size or cold.cardinality == "any" or "cost_limit" in how
                gm.verify(changed, warm)


def test_an_infeasible_problem_is_told_with_its_violator():
    costs = np.random.default_rng(6).random((20, 20))
    a = gm.assign(costs)
    costs[[2, 5, 7]] = math.inf
    costs[[2, 5, 7], 3:5] = 0.5
    with pytest.raises(gm.InfeasibleError) as told:
        gm.assign(costs, initial=a)
    assert sorted(told.value.rows.tolist()) == [2, 5, 7]
    assert sorted(told.value.cols.tolist()) == [3, 4]


def test_costs_that_are_not_valid_are_told():
    costs = np.random.default_rng(6).random((20, 20))
    a = gm.assign(costs)
    costs[3, 3] = math.nan
    with pytest.raises(ValueError, match="NaN"):
        gm.assign(costs, initial=a)


def test_memory_to_work_in_is_kept_for_the_next_call():
    costs = np.random.default_rng(7).random((150, 150))
    a = gm.assign(costs)
    gm.assign(costs, initial=a)
    kept = len(batch._idle)
    for _ in range(3):
        gm.assign(costs, initial=a)
    assert len(batch._idle) == kept
