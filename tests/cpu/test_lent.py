"""Lent arrays: read, written and left as they are owned; other objects are refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numba import njit, types

from gpumatch.cpu.lent import Lent


@njit
def sum_rows(values, sums):
    for row in range(values.shape[0]):
        sums[row] = 0
        for col in range(values.shape[1]):
            sums[row] += values[row, col]


SUM_ROWS = sum_rows.compile(types.void(Lent(types.float64, 2), Lent(types.float64, 1)))


def test_arrays_are_read_and_written():
    values, sums = np.arange(6.0).reshape(2, 3), np.empty(2)
    SUM_ROWS(values, sums)
    assert sums.tolist() == [3, 12]


def test_no_owner_is_left_behind():
    values, sums = np.ones((4, 5)), np.empty(4)
    before = sys.getrefcount(values), sys.getrefcount(sums)
    for _ in range(10):
        SUM_ROWS(values, sums)
    assert (sys.getrefcount(values), sys.getrefcount(sums)) == before


@pytest.mark.parametrize("other", [3, None, [[1.0]], np.ones((1, 1), np.float32)])
def test_other_objects_are_refused(other):
    with pytest.raises(TypeError, match=r"needs an array like Lent\(float64, 2\)"):
        SUM_ROWS(other, np.empty(1))


def test_the_type_is_not_that_of_counted_arrays():
    assert Lent(types.float64, 2) == Lent(types.float64, 2)
    assert Lent(types.float64, 2) != Lent(types.float64, 1)
    assert Lent(types.float64, 2) != types.float64[:, ::1]
