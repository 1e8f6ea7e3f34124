"""Slacks of integers and of floats, short and long: the least, the tight, and back in units."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gpumatch.reference.exact_slacks import Slacks
from graphs import costs

shapes = st.tuples(st.integers(1, 6), st.integers(0, 4)).map(lambda s: (s[0], s[0] + s[1]))
matrices = st.one_of(
    hnp.arrays(np.int64, shapes, elements=st.integers(-3, 3)),
    hnp.arrays(np.int64, shapes, elements=st.integers(-(2**58), 2**58)),
    hnp.arrays(np.float64, shapes, elements=st.floats(-1e3, 1e3)),
    hnp.arrays(np.float64, shapes, elements=st.sampled_from([0.1, 0.1 + 2**-56, 1e300, 1e-300])),
)


def with_duals(matrix, seed, tile):
    """Slacks with forbidden pairs and duals as large as costs; the same one by one, or None."""
    rng = np.random.default_rng(seed)
    is_allowed = rng.random(matrix.shape) < 0.9
    slacks = Slacks(matrix, is_allowed, tile)
    numbers = slacks.all().tolist()
    largest = max((abs(number) for number in slacks.all()[is_allowed].tolist()), default=0)
    row_dual, col_dual = (
        [int(k) * largest // 8 for k in rng.integers(-8, 9, size)] for size in matrix.shape
    )
    slacks.row_dual[:], slacks.col_dual[:] = row_dual, col_dual
    exact = [
        [
            number - u - v if allowed else None
            for number, v, allowed in zip(line, col_dual, is_allowed[row])
        ]
        for row, (line, u) in enumerate(zip(numbers, row_dual))
    ]
    return slacks, exact


@given(matrix=matrices, seed=st.integers(0, 99), tile=st.sampled_from([1, 7, 1 << 15]))
def test_what_is_least_is_exact(matrix, seed, tile):
    slacks, exact = with_duals(matrix, seed, tile)
    rng = np.random.default_rng(seed)
    rows, cols = (
        np.flatnonzero(rng.permutation(size) <= rng.integers(size)) for size in matrix.shape
    )
    least, nearest = slacks.least_of_columns(rows, cols)
    for col, number, row in zip(cols.tolist(), least.tolist(), nearest.tolist()):
        allowed = [exact[row][col] for row in rows if exact[row][col] is not None]
        if allowed:
            first = next(row for row in rows if exact[row][col] == min(allowed))
            assert (number, row) == (min(allowed), first)
        else:
            assert number >= slacks.far
    for row, number in zip(rows.tolist(), slacks.least_of_rows(rows, cols).tolist()):
        allowed = [exact[row][col] for col in cols if exact[row][col] is not None]
        assert number == min(allowed) if allowed else number >= slacks.far


@given(matrix=matrices, seed=st.integers(0, 99), tile=st.sampled_from([1, 7, 1 << 15]))
def test_tight_pairs_are_those_of_slack_zero(matrix, seed, tile):
    slacks, _ = with_duals(matrix, seed, tile)
    slacks.row_dual[:] = 0
    slacks.col_dual[:] = 0
    least, _ = slacks.least_of_columns(np.arange(matrix.shape[0]), np.arange(matrix.shape[1]))
    slacks.col_dual[:] = np.where(least < slacks.far, least, 0)
    tight = slacks.tight_pairs().tolist()
    assert tight == [k for k, slack in enumerate(slacks.all().ravel()) if slack == 0]


@pytest.mark.parametrize(
    ("matrix", "is_long"),
    [
        (costs.uniform_integer(50, seed=1), False),
        (costs.uniform_float(10, seed=1), False),
        (2.0**900 * costs.two_cost(50, seed=1), False),
        (costs.geom2(50, seed=1), True),
        (np.array([[2**60, 1]]), True),
        (np.array([[1e300, 1e-300]]), True),
    ],
)
def test_numbers_are_even_exact_and_no_longer_than_need_be(matrix, is_long):
    slacks = Slacks(matrix, np.ones(matrix.shape, bool))
    numbers = slacks.all()
    assert slacks.dtype == (object if is_long else np.int64)
    assert (numbers % 2 == 0).all()
    assert np.array(slacks.in_units(numbers.ravel())).tolist() == matrix.ravel().tolist()
    unit = {
        Fraction(value) / Fraction(number)
        for value, number in zip(matrix.ravel().tolist(), numbers.ravel().tolist())
        if number
    }
    assert len(unit) == 1


def test_forbidden_pairs_may_cost_anything():
    matrix = np.array([[1.0, math.inf], [math.inf, 2.0]])
    slacks = Slacks(matrix, np.isfinite(matrix))
    assert slacks.all().diagonal().tolist() == [2, 4]
    assert (slacks.all()[[0, 1], [1, 0]] >= slacks.far).all()


@pytest.mark.parametrize("seed", range(20))
def test_slacks_that_floats_can_not_tell_apart(seed):
    """Costs and duals are 2**58 and more; slacks are below what floats of that size resolve."""
    rng = np.random.default_rng(seed)
    row_dual, col_dual = rng.integers(2**57, 2**58, 6), rng.integers(2**57, 2**58, 9)
    small = rng.integers(0, 20, (6, 9))
    slacks = Slacks(row_dual[:, None] + col_dual + small, np.ones((6, 9), bool))
    slacks.row_dual += 2 * row_dual
    slacks.col_dual += 2 * col_dual
    assert slacks.dtype == object
    rows, cols = np.array([0, 2, 3, 5]), np.arange(1, 9)
    least, nearest = slacks.least_of_columns(rows, cols)
    part = 2 * small[rows][:, cols]
    assert least.tolist() == part.min(axis=0).tolist()
    assert nearest.tolist() == rows[part.argmin(axis=0)].tolist()
    assert slacks.least_of_rows(rows, cols).tolist() == part.min(axis=1).tolist()
    assert slacks.tight_pairs().tolist() == np.flatnonzero(small == 0).tolist()
