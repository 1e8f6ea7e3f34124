"""Floats that are integers in some unit, for which sums are exact."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.cpu.assignment.small.whole import are_whole

SIDE = 40


def look(costs, limits=None):
    """What the kernel says of a matrix, between other numbers that it must not look at."""
    rows, cols = costs.shape
    values = np.full((rows, cols + 3), 1 / 3, costs.dtype)
    values[:, :cols] = costs
    sizes = abs(costs.astype(np.float64))
    given = values.ravel(), 0, cols + 3
    found = are_whole(*given, rows, cols, sizes.min(), sizes.max(), limits)
    flat = np.ascontiguousarray(costs).ravel()
    assert found == are_whole(flat, 0, cols, rows, cols, sizes.min(), sizes.max(), limits)
    return found


def test_float32_and_numbers_without_fractions_are_whole():
    rng = np.random.default_rng(0)
    shorts = rng.random((SIDE, SIDE), np.float32) + np.float32(0.1)
    assert look(shorts)
    assert look(shorts.astype(np.float64))
    shorts[3, 4] = 0
    assert look(shorts)  # by the guess, as 0 has no unit
    assert look(-shorts)
    assert look(rng.integers(-1000, 1000, (SIDE, SIDE)).astype(np.float64))
    assert look(rng.integers(0, 9, (SIDE, SIDE)) / 8)
    shorts[5, 6] = np.inf
    assert look(shorts)


@pytest.mark.parametrize("place", [(0, 0), (0, 9), (SIDE - 1, SIDE - 1)])
def test_one_number_of_53_bits_is_found_wherever_it_is(place):
    costs = np.random.default_rng(1).integers(1, 1000, (SIDE, SIDE)).astype(np.float64)
    assert look(costs)
    costs[place] = 1 / 3
    assert not look(costs)


def test_numbers_of_very_different_sizes_are_not_whole():
    costs = np.random.default_rng(2).random((SIDE, SIDE), np.float32)
    costs[7, 7] = 2.0**-50
    assert not look(costs)
    costs[7, 7] = 2.0**40
    assert not look(costs)
    costs[7, 7] = 2.0**-20  # one more bit than the allowance for paths leaves to so many rows
    assert look(costs)
    huge = np.full((SIDE, SIDE), 2.0**1000)
    assert not look(huge)
    assert not look(np.zeros((SIDE, SIDE)))


def test_limits_must_be_multiples_of_the_same_unit():
    costs = np.random.default_rng(3).integers(1, 1000, (SIDE, SIDE)).astype(np.float64)
    assert look(costs, np.array([3.0, 2.5]))
    assert not look(costs, np.array([3.0, 0.1]))
    assert not look(costs, np.array([2.0**50]))


def test_nothing_is_read_of_a_problem_without_costs():
    """Lines are longer than three columns, and the memory may end before the first."""
    assert are_whole(np.empty(0), 0, 5, 0, 3, np.inf, 0.0, None)


def test_sums_of_whole_numbers_are_exact():
    """No sum rounds, so the duals leave nothing, and each is a multiple of the unit."""
    rng = np.random.default_rng(4)
    for shape in ((30, 30), (30, 50), (50, 30)):
        costs = rng.random((20, *shape), np.float32)
        a = gm.assign(costs, threads=1)
        assert a.proven.all()
        assert (a.gap == 0).all()
        for k, one in enumerate(a):
            gm.verify(costs[k], one)
            total = math.fsum(costs[k][one.row_ind, one.col_ind].tolist())
            assert math.fsum([*one.row_dual.tolist(), *one.col_dual.tolist()]) == total
