"""What is asked of arrays, on the host and on a device."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.arrays import any_true, first_true
from gpumatch.homes import count_matched

HOMES = [pytest.param("numpy", id="host"), pytest.param("cupy", id="device", marks=pytest.mark.gpu)]
EVERY_HOME = pytest.mark.parametrize("home", HOMES)


@pytest.mark.parametrize("places", [[], [0], [4_999], [1, 77, 2_500]])
@pytest.mark.parametrize("length", [5_000, 70_000])
@EVERY_HOME
def test_marks_are_found(home, length, places):
    xp = pytest.importorskip(home)
    marks = xp.zeros(length, bool)
    marks[xp.asarray(places, np.int64)] = True
    assert any_true(marks) is bool(places)
    assert first_true(marks) == (places[0] if places else None)


@EVERY_HOME
def test_no_array_is_too_short(home):
    xp = pytest.importorskip(home)
    assert any_true(xp.zeros(0, bool)) is False
    assert first_true(xp.zeros(0, bool)) is None
    assert count_matched(xp.zeros(0, np.int32)) == 0


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
@EVERY_HOME
def test_marks_of_unmatched_vertices_do_not_count(home, dtype):
    xp = pytest.importorskip(home)
    assert count_matched(xp.asarray([3, -1, 0, -2, 7], dtype)) == 3


@EVERY_HOME
def test_what_lies_apart_is_counted(home):
    xp = pytest.importorskip(home)
    assert count_matched(xp.arange(-50_000, 50_000)[::-4]) == 12_500


@pytest.mark.gpu
def test_counting_on_a_device_takes_no_memory_to_speak_of():
    cp = pytest.importorskip("cupy")
    pool, mates = cp.get_default_memory_pool(), cp.arange(-1_000_000, 1_000_000, dtype=np.int32)
    count_matched(mates)
    pool.free_all_blocks()
    limit = pool.get_limit()
    try:
        pool.set_limit(size=pool.total_bytes() + 2**16)
        assert count_matched(mates) == 1_000_000
    finally:
        pool.set_limit(size=limit)
