"""Duals that no pair undercuts, made of any duals; all sums are sums of fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from gpumatch.costs import as_costs
from gpumatch.numeric.fair_duals import difference_below, make_fair

SPREADS = {"alike": 0, "some digits": 3, "many": 12}


def problem(spread, seed, dtype=np.float64):
    """Costs of which some are forbidden, duals that exceed some by rounding or far, and mates."""
    rng = np.random.default_rng(seed)
    shape = 7, 9

    def numbers(*shape):
        return rng.integers(-9, 9, shape) / 7 * 10.0 ** rng.uniform(-spread, spread, shape)

    costs = numbers(*shape).astype(dtype)
    row_dual, col_dual = numbers(shape[0]), numbers(shape[1])
    tight = rng.integers(0, shape[1], shape[0])
    row_dual = costs[np.arange(shape[0]), tight] - col_dual[tight]
    mates = np.where(rng.random(shape[0]) < 0.6, tight, -1)
    return costs, mates, row_dual.astype(float), col_dual, numbers(shape[0])


@pytest.mark.parametrize("limits", ["none", "floats", "ints"])
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("spread", SPREADS)
def test_no_pair_undercuts_fair_duals(spread, form, limits):
    for seed in range(6):
        costs, mates, row_dual, col_dual, of_rows = problem(SPREADS[spread], seed)
        of_rows = {"none": None, "floats": of_rows, "ints": of_rows.astype(np.int64)}[limits]
        before = row_dual.copy(), col_dual.copy()
        make_fair(as_costs(form(costs)), mates, row_dual, col_dual, limits=of_rows)
        lacking = ([], [])
        for row, col in np.argwhere(costs if form is csr_array else costs < math.inf).tolist():
            cost = Fraction(costs[row, col])
            if of_rows is not None:
                cost -= Fraction(of_rows[row].item())
            assert Fraction(row_dual[row]) + Fraction(col_dual[col]) <= cost
            if Fraction(before[0][row]) + Fraction(before[1][col]) > cost:
                is_left = mates[row] < 0
                lacking[int(is_left)].append(col if is_left else row)
        for old, new, lowered in zip(before, (row_dual, col_dual), lacking):
            assert {*np.flatnonzero(new < old)} == {*lowered}
            assert (new <= old).all()


def test_pair_inside_cover_is_left():
    row_dual, col_dual = np.array([3.0, 0.5]), np.array([2.0, -1.0])
    inside = np.array([True, False]), np.array([True, False])
    make_fair(
        as_costs(np.array([[1.0, 1.0], [9.0, 9.0]])), np.array([0, 1]), row_dual, col_dual,
        inside=inside,
    )  # fmt: skip
    assert (row_dual.tolist(), col_dual.tolist()) == ([2, 0.5], [2, -1])


def test_integer_costs_beyond_floats_are_exact():
    costs = np.array([[2**60 + 1, 2**60 - 1]])
    row_dual, col_dual = np.array([2.0**60]), np.array([0.0, 0.0])
    make_fair(as_costs(costs), np.array([0]), row_dual, col_dual)
    assert row_dual.tolist() == [math.nextafter(2.0**60, 0)]


@pytest.mark.parametrize("size", [10, 2**15 + 3])
def test_difference_is_rounded_down(size):
    values = np.random.default_rng(1).random(size) * 10
    for number in (1 / 3, -7.3, 0.0):
        below = difference_below(values, number)
        exact = [Fraction(value) - Fraction(number) for value in values[-5:].tolist()]
        for found, wanted in zip(below[-5:].tolist(), exact):
            assert Fraction(found) <= wanted < Fraction(math.nextafter(found, math.inf))
    assert difference_below(np.array([math.inf]), 1.0).tolist() == [math.inf]
