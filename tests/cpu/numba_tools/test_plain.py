"""What takes the place of atomics and views does the same, with documented parts of Numba alone."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from numba import njit

from gpumatch.cpu.numba_tools.plain import (
    as_bytes,
    as_halves,
    as_integers,
    cas,
    fetch_add,
    load,
    on_stack,
    prefetch,
    prefetch_far,
    prefetch_range,
    store,
    view,
)


@njit
def change(numbers, index):
    """Use each atomic; what they return."""
    swapped = cas(numbers, index, 8, 3), cas(numbers, index, 8, 4)
    before = fetch_add(numbers, index, 2)
    read = load(numbers, index)
    store(numbers, index, -read)
    return swapped, before, read


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
@pytest.mark.parametrize("step", [1, 2])
def test_atomics(dtype, step):
    memory = np.array([8] * 6, dtype)
    assert change(memory[::step], 2) == ((True, False), 3, 5)
    expected = [8] * 6
    expected[2 * step] = -5
    assert memory.tolist() == expected


@njit(nogil=True)
def count(counter, times):
    for _ in range(times):
        fetch_add(counter, 0, 1)


def test_threads_lose_no_increment():
    counter = np.zeros(1, np.int64)
    count(counter, 0)  # compiled before the threads meet
    threads = [threading.Thread(target=count, args=(counter, 200_000)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter[0] == 800_000


@njit
def fetch(array):
    prefetch(array, 10**9)
    prefetch_far(array, -1)
    prefetch_range(array, 0, 10**9)
    return array.sum()


def test_prefetches_change_nothing():
    assert fetch(np.arange(4)) == 6


@njit
def seen(array, place, shape):
    return view(array, place, shape)


LINE = np.arange(24.0)


@pytest.mark.parametrize(
    ("array", "place", "shape", "expected"),
    [
        (LINE, 5, 3, LINE[5:8]),
        (LINE, 5, (np.int32(3), 4), LINE[5:17].reshape(3, 4)),
        (LINE, 0, (2, 3, 4), LINE.reshape(2, 3, 4)),
        (LINE, (7,), (3,), LINE[7:10]),
        (LINE.reshape(4, 6), (1, np.int32(2)), 3, LINE[8:11]),
        (LINE.reshape(4, 6), (1, 0), (3, 2), LINE[6:12].reshape(3, 2)),
        (LINE.reshape(2, 3, 4), (1, 2, 1), 3, LINE[21:24]),
        (LINE, 24, 0, LINE[:0]),
        (LINE, 0, -1, LINE[:0]),
    ],
    ids=["vector", "matrix", "cube", "tuples", "row", "of matrix", "of cube", "empty", "less"],
)
def test_views(array, place, shape, expected):
    shown = seen(array, place, shape)
    np.testing.assert_array_equal(shown, expected)
    assert shown.flags.c_contiguous
    assert shown.base is not None
    shown[...] = -1
    assert (array == -1).sum() == expected.size
    LINE[:] = np.arange(24)


@njit
def as_others(numbers):
    as_integers(numbers)[1] = 2**62
    as_halves(numbers)[5] = 2**30
    as_bytes(numbers)[7] = 0x40


def test_the_memory_of_numbers_is_read_as_integers():
    numbers = np.zeros(3)
    as_others(numbers)
    assert numbers.tolist() == [2.0, 2.0, 2.0]


@njit
def room(number, rounds):
    total = number - number
    for k in range(rounds):
        made = on_stack(number, 4)
        made[3] += k
        total += made[3]
    return total, made.itemsize, made.size


@pytest.mark.parametrize("number", [1.5, np.int32(2), 3])
def test_rooms(number):
    assert room(number, 3) == (3 * number + 3, np.asarray(number).itemsize, 4)
