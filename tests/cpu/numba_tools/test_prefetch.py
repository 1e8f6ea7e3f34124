"""A prefetch reads nothing and changes nothing, whatever the item's type, wherever it is."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from gpumatch.cpu.numba_tools.prefetch import (
    LINE,
    LINES,
    prefetch,
    prefetch_far,
    prefetch_range,
)


@njit
def fetch_and_sum(array, ahead):
    total = array[0]
    for i in range(1, array.size):
        prefetch(array, i + ahead)
        total += array[i]
    return total


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.float64])
@pytest.mark.parametrize("ahead", [0, 7, 10**9, -(10**9)])
def test_the_array_stays_as_it_is(dtype, ahead):
    array = np.arange(20).astype(dtype)
    assert fetch_and_sum(array, ahead) == 190
    assert np.array_equal(array, np.arange(20))


@njit
def fetch_range_and_sum(array, first, last):
    prefetch_range(array, first, last)
    return array.sum()


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.float64])
@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, -1), (3, 19), (0, 10**9), (10**9, 0)])
def test_a_range_stays_as_it_is(dtype, first, last):
    """Even one that is empty or ends far beyond the array; the call comes back soon."""
    array = np.arange(20).astype(dtype)
    assert fetch_range_and_sum(array, first, last) == 190
    assert np.array_equal(array, np.arange(20))


def test_a_range_is_fetched_line_by_line():
    """The loop's step is a line's items, and its end no more than so many lines away."""
    fetch_range_and_sum(np.arange(3.0), 0, 2)
    code = next(iter(fetch_range_and_sum.inspect_llvm().values()))
    assert code.count("call void @llvm.prefetch") >= 2  # in the loop, and of the last item
    assert f"{LINES * LINE // 8}" in code


@njit
def fetch_far_and_sum(array, ahead):
    prefetch_far(array, ahead)
    return array.sum()


@pytest.mark.parametrize("ahead", [0, 10**9, -(10**9)])
def test_what_is_fetched_for_later_stays_as_it_is(ahead):
    assert fetch_far_and_sum(np.arange(20), ahead) == 190


@pytest.mark.parametrize(("function", "caches"), [(fetch_and_sum, 3), (fetch_far_and_sum, 2)])
def test_it_is_in_the_code(function, caches):
    """With the cache that LLVM is to choose: 3 is the nearest."""
    function(np.arange(3.0), 1)
    codes = [code for code in function.inspect_llvm().values() if "llvm.prefetch" in code]
    assert codes
    assert all(f"i32 0, i32 {caches}, i32 1)" in code for code in codes)


def test_only_rows_of_numbers_are_fetched():
    with pytest.raises(TypingError, match="one-dimensional"):
        fetch_and_sum(np.zeros((2, 2)), 0)
