"""What is asked of arrays, on the host and on a device."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.arrays import any_true, count_matched, count_true

HOMES = [pytest.param("numpy", id="host"), pytest.param("cupy", id="device", marks=pytest.mark.gpu)]
EVERY_HOME = pytest.mark.parametrize("home", HOMES)


@pytest.mark.parametrize("places", [[], [0], [4_999], [1, 77, 2_500]])
@pytest.mark.parametrize("length", [5_000, 70_000])
@EVERY_HOME
def test_marks_are_found_and_counted(home, length, places):
    xp = pytest.importorskip(home)
    marks = xp.zeros(length, bool)
    marks[xp.asarray(places, np.int64)] = True
    assert any_true(marks) is bool(places)
    assert count_true(marks) == len(places)
    assert count_true(~marks) == length - len(places)


@EVERY_HOME
def test_no_array_is_too_short(home):
    xp = pytest.importorskip(home)
    assert any_true(xp.zeros(0, bool)) is False
    assert count_true(xp.zeros(0, bool)) == 0
    assert count_matched(xp.zeros(0, np.int32)) == 0


@EVERY_HOME
def test_marks_of_unmatched_vertices_do_not_count(home):
    xp = pytest.importorskip(home)
    assert count_matched(xp.asarray([3, -1, 0, -2, 7], np.int32)) == 3
