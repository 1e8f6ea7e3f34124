"""Results by rows: new arrays of NumPy's own; without rows, None or the number of columns."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numba import njit, types
from numba.core.runtime import _nrt_python, rtsys

from gpumatch.cpu.numba_tools.short_calls import Rows


@njit
def count_up(rows, length):
    table = np.empty((rows, length), np.int64)
    for k in range(table.size):
        table.flat[k] = k
    return table


@pytest.fixture(scope="module")
def by_rows():
    return count_up.compile(Rows(types.int64, 2)(types.int64, types.int64))


@pytest.mark.parametrize("length", [0, 1, 5])
def test_a_result_is_its_rows(by_rows, length):
    one, other = np.empty(1), np.empty(1)
    owners = [sys.getrefcount(row) for row in (one, other)]  # how many Python counts may differ
    first, second = by_rows(2, length)
    assert [sys.getrefcount(row) for row in (first, second)] == owners
    assert first.tolist() == [*range(length)]
    assert second.tolist() == [*range(length, 2 * length)]
    for row in (first, second):
        assert type(row) is np.ndarray
        assert row.dtype == np.int64
        assert row.flags.owndata
        assert row.flags.carray


def test_the_columns_tell_why_there_are_no_rows(by_rows):
    assert by_rows(0, 0) is None
    reason = by_rows(0, 5)
    assert (type(reason), reason) == (int, 5)


def test_the_types_differ():
    assert Rows(types.int64, 2) == Rows(types.int64, 2)
    assert Rows(types.int64, 2) != Rows(types.int64, 3)
    assert Rows(types.int64, 2) != types.int64[:, :]


@pytest.fixture
def allocations():
    """How many of Numba's allocations have not been freed."""
    was_on = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()

    def left():
        stats = rtsys.get_allocation_stats()
        return stats.alloc - stats.free, stats.mi_alloc - stats.mi_free

    yield left
    if not was_on:
        _nrt_python.memsys_disable_stats()


@pytest.mark.parametrize("rows", [0, 2])
def test_the_array_itself_is_freed(by_rows, allocations, rows):
    before = allocations()
    for _ in range(100):
        by_rows(rows, 5)
    assert allocations() == before
