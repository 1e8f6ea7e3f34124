"""Views: what they show, that they share memory, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import TypingError

from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.views import as_integers, view


@kernel
def copied(array, place, shape, found):
    """What a view shows."""
    shown = view(array, place, shape)
    for i in range(found.shape[0]):
        for j in range(found.shape[1]):
            found[i, j] = shown[i, j]
    return shown.shape, shown.strides, shown.size, shown.itemsize


@kernel
def written(array, row, count):
    """Count up in part of a row, in place."""
    shown = view(array, (row, 1), count)
    for i in range(shown.size):
        shown[i] = i + 1


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_a_view_of_two_dimensions(dtype):
    line, found = np.arange(40, dtype=dtype), np.zeros((3, 4), dtype)
    facts = copied(line, 5, (3, 4), found)
    expected = line[5:17].reshape(3, 4)
    np.testing.assert_array_equal(found, expected)
    assert facts == (expected.shape, expected.strides, expected.size, expected.itemsize)


def test_what_is_written_to_a_view_is_in_its_array():
    table = np.zeros((3, 5))
    written(table, np.int32(1), 3)
    np.testing.assert_array_equal(table, [[0] * 5, [0, 1, 2, 3, 0], [0] * 5])


@pytest.mark.parametrize(
    ("array", "row", "message"),
    [
        (np.zeros((3, 5)).T, 0, "needs a C-contiguous array"),
        (np.zeros(5), 0, "needs an index for each dimension"),
    ],
)
def test_what_has_no_view(array, row, message):
    with pytest.raises(TypingError, match=message):
        written(array, row, 1)


@kernel
def counted(array):
    """Write integers over the numbers of an array."""
    integers = as_integers(array)
    for i in range(integers.shape[0]):
        for j in range(integers.shape[1]):
            integers[i, j] = i - 2**60 * j
    return integers.strides, integers.size


@pytest.mark.parametrize("order", ["C", "F"])
def test_integers_in_the_memory_of_floats(order):
    table = np.zeros((2, 3), order=order)
    assert counted(table) == (table.strides, 6)
    expected = [[0, -(2**60), -(2**61)], [1, 1 - 2**60, 1 - 2**61]]
    np.testing.assert_array_equal(table.view(np.int64), expected)


def test_only_floats_of_64_bits_are_taken_for_integers():
    with pytest.raises(TypingError, match="needs an array of float64"):
        counted(np.zeros((2, 3), np.float32))
