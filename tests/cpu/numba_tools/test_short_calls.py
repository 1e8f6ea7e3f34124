"""Borrowed arrays: read, written and left as they are owned; other objects are refused."""

from __future__ import annotations

import ctypes
import math
import sys

import numpy as np
import pytest
from numba import njit, types

from gpumatch.cpu.numba_tools.short_calls import (
    Borrowed,
    Held,
    array_at,
    by_strides,
    entry_of,
    leave_gil,
    listed,
    locate,
    number,
    take_gil,
)


@njit
def sum_rows(values, sums):
    for row in range(values.shape[0]):
        sums[row] = 0
        for col in range(values.shape[1]):
            sums[row] += values[row, col]


SUM_ROWS = sum_rows.compile(types.void(Borrowed(types.float64, 2), Borrowed(types.float64, 1)))


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


OTHERS = {
    "int": 3,
    "None": None,
    "list": [[1.0]],
    "another size": np.ones((1, 1), np.float32),
    "a number": np.array(1.0),
    "1 dimension": np.ones(1),
    "3 dimensions": np.ones((1, 1, 1)),
    "64 dimensions": np.ones(64 * (1,)),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_other_objects_are_refused(other):
    with pytest.raises(TypeError, match=r"needs an array like Borrowed\(float64, 2\)"):
        SUM_ROWS(other, np.empty(1))


def test_the_type_is_not_that_of_counted_arrays():
    assert Borrowed(types.float64, 2) == Borrowed(types.float64, 2)
    assert Borrowed(types.float64, 2) != Borrowed(types.float64, 1)
    assert Borrowed(types.float64, 2) != types.float64[:, ::1]


# -- what Numba does not read ----------------------------------------------------------------------


def reader(dtype):
    @njit
    def read(values, numbers):
        strided = by_strides(values)
        for k in range(values.shape[0]):
            numbers[k] = number(strided[k])

    return read.compile(types.void(Borrowed(entry_of(dtype), 1), Borrowed(types.float64, 1)))


READ_INT16 = reader(np.dtype(np.int16))


@pytest.mark.parametrize("dtype", ["<f2", ">f2"])
def test_every_float16_is_read(dtype):
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    numbers = np.empty(halves.size)
    reader(np.dtype(dtype))(halves.astype(dtype), numbers)
    assert np.array_equal(numbers, halves.astype(np.float64), equal_nan=True)
    assert np.array_equal(np.signbit(numbers), np.signbit(halves))


@pytest.mark.parametrize(
    "dtype", [*("?", "u1", "i1", "i2", "u4"), *(">i2", ">i4", ">u4", ">i8", ">f4", ">f8", "<f8")]
)
def test_either_byte_order_is_read_by_any_stride(dtype):
    values = np.array([0, 1, -3, 100, 7]).astype(dtype)
    numbers, read = np.empty(values.size), reader(np.dtype(dtype))
    for strided in (values, values[::-1], np.repeat(values, 3)[::3]):
        read(strided, numbers)
        assert numbers.tolist() == strided.astype(np.float64).tolist()


def test_every_stride_of_few_bytes_is_read():
    """No stride is taken for one that was never set, and so for a dimension that is missing."""
    memory, numbers = np.arange(400, dtype=np.int16), np.empty(3)
    for step in range(-160, 161, 2):
        strided = np.ndarray(3, np.int16, memory, offset=400, strides=(step,))
        READ_INT16(strided, numbers)
        assert numbers.tolist() == strided.tolist()


# -- the GIL ---------------------------------------------------------------------------------------

has_gil = ctypes.CFUNCTYPE(ctypes.c_int)(("PyGILState_Check", ctypes.pythonapi))


@njit
def held(leaves):
    thread = leave_gil(leaves)
    between = has_gil()
    take_gil(thread)
    return between, has_gil()


HELD = held.compile(types.UniTuple(types.int32, 2)(types.boolean))


def test_the_gil_is_left_where_it_is_asked_for():
    assert HELD(True) == (0, 1)
    assert HELD(False) == (1, 1)


# -- many arrays -----------------------------------------------------------------------------------


@njit
def sum_all(matrices, places, like, sums):
    for k in range(places.shape[0]):
        if not locate(matrices, k, places[k]):
            return k
        address, rows, cols, across, along = places[k]
        values = by_strides(array_at(like, address, rows, cols, across, along))
        sums[k] = 0
        for row in range(rows):
            for col in range(cols):
                sums[k] += values[row, col]
    return -1


SUM_ALL = sum_all.compile(
    types.int64(Held(), types.int64[:, ::1], types.float64[::1], types.float64[::1])
)


def sums_of(*matrices):
    places, sums = np.empty((len(matrices), 5), np.int64), np.full(len(matrices), math.nan)
    return SUM_ALL(matrices, places, np.empty(0), sums), places, sums


def test_held_arrays_are_located_and_read_where_they_are():
    whole = np.arange(24.0).reshape(4, 6)
    matrices = whole, whole.T, whole[::-2, 1::3], np.empty((0, 3)), np.empty((3, 0))
    owners = [sys.getrefcount(matrix) for matrix in matrices]
    wrong, places, sums = sums_of(*matrices)
    assert wrong == -1
    assert sums.tolist() == [matrix.sum() for matrix in matrices]
    for matrix, place in zip(matrices, places.tolist()):
        assert place == [matrix.ctypes.data, *matrix.shape, *matrix.strides]
    del matrix
    assert [sys.getrefcount(matrix) for matrix in matrices] == owners


@pytest.mark.parametrize("other", [3, None, np.ones(1), np.ones((1, 1, 1)), [[1.0]]], ids=repr)
def test_what_is_no_matrix_is_named(other):
    wrong, _, sums = sums_of(np.ones((2, 2)), other, np.ones((2, 2)))
    assert wrong == 1
    assert sums[0] == 4


@njit
def list_pairs(pairs, begins, counts):
    return listed(pairs, begins, counts)


LIST_PAIRS = list_pairs.compile(Held()(*3 * (types.int64[::1],)))


def test_pairs_are_listed_as_new_arrays():
    pairs, begins = np.arange(14), np.array([0, 3, 3, 7])
    found = LIST_PAIRS(pairs, begins, np.array([2, 0, -1]))
    assert type(found) is list
    assert [one if one is None else [part.tolist() for part in one] for one in found] == [
        [[0, 1], [3, 4]],
        [[], []],
        None,
    ]
    rows, cols = found[0]
    assert rows.flags.owndata
    assert cols.dtype == np.int64
    pairs[:] = 0
    assert cols.tolist() == [3, 4]
    assert LIST_PAIRS(pairs, begins[:1], np.empty(0, int)) == []


def test_lists_of_pairs_own_their_arrays():
    found = LIST_PAIRS(np.arange(4), np.array([0, 2]), np.array([2]))
    owners = sys.getrefcount(found)
    (both,) = found
    rows, _ = both
    fresh, other = [np.arange(2)], (np.arange(2), np.arange(2))
    assert owners == sys.getrefcount(fresh)
    assert sys.getrefcount(both) - 1 == sys.getrefcount(other)  # the list has it, too
    of_rows, one = sys.getrefcount(rows), other[0]
    assert of_rows == sys.getrefcount(one)
