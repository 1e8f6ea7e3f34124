"""How the checkers count, on the host and on a device."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.certificates.base import count_of

HOMES = [
    pytest.param("numpy", id="host"),
    pytest.param("cupy", id="device", marks=[pytest.mark.gpu, pytest.mark.emulated]),
]


@pytest.mark.parametrize("home", HOMES)
def test_marks_are_counted(home):
    xp = pytest.importorskip(home)
    marks = xp.arange(100_000) % 3 == 0
    assert count_of(marks) == 33_334
    assert count_of(~marks) == 66_666
    assert count_of(marks[::2]) == 16_667
    assert count_of(marks.reshape(50, 2_000)) == 33_334
    assert count_of(xp.zeros(0, bool)) == 0
    assert count_of(xp.asarray(np.ones((1, 3), bool))) == 3


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_narrow_integers_are_widened_before_a_sign(dtype):
    """-128 has no opposite in int8, and no number of uint8 but 0 has one there."""
    ends = np.iinfo(dtype)
    C = np.array([[ends.min, ends.max, 3], [ends.max, 5, 0], [7, 9, ends.max]], dtype)
    best = gm.assign(C, maximize=True)
    gm.verify(C, gm.alternatives(C, best, within=3))
    gm.verify(C, gm.assign(C, objective="lexicographic", maximize=True))
