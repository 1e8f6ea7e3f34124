"""Views: what they show, that they share memory, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import TypingError

from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.views import as_bytes, as_halves, as_integers, on_stack, view


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


@kernel
def halved(array):
    """Count up in the halves of numbers."""
    halves = as_halves(array)
    for k in range(halves.size):
        halves[k] = k
    return halves.size, halves.itemsize


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_halves_in_the_memory_of_numbers(dtype):
    numbers = np.zeros(3, dtype)
    assert halved(numbers) == (6, 4)
    np.testing.assert_array_equal(numbers.view(np.int32), range(6))


@kernel
def counted_bytes(array):
    """Add up the bytes of numbers."""
    total = 0
    for byte in as_bytes(array):
        total += byte
    return total, as_bytes(array).size


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_bytes_in_the_memory_of_numbers(dtype):
    numbers = np.arange(5).astype(dtype)
    assert counted_bytes(numbers) == (numbers.view(np.uint8).sum(), numbers.nbytes)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 3)), "needs a C-contiguous vector"),
        (np.zeros(6)[::2], "needs a C-contiguous vector"),
        (np.zeros(6, np.float32), "needs numbers of 8 bytes"),
    ],
)
def test_what_has_no_halves(array, message):
    with pytest.raises(TypingError, match=message):
        halved(array)


@kernel
def stacked(number, rounds):
    """Fill vectors on the stack: the sum of one, and where both are."""
    one, other = on_stack(number, 7), on_stack(number, 7)
    for _ in range(rounds):
        again = on_stack(number, 3)
        for k in range(3):
            again[k] = 100
        for k in range(one.size):
            one[k] = number
            other[k] = 0
    total = number - number
    for k in range(one.size):
        total += one[k]
    return total, one.itemsize, one.ctypes.data, other.ctypes.data


@pytest.mark.parametrize("number", [1.5, np.int32(2)])
def test_vectors_on_the_stack_lie_apart_from_the_begin_of_a_line(number):
    total, size, *places = stacked(number, 3)
    assert (total, size) == (7 * number, np.asarray(number).itemsize)
    assert [place % 64 for place in places] == [0, 0]
    assert abs(places[0] - places[1]) >= 7 * size
