"""How the checkers count, on the host and on a device."""

from __future__ import annotations

import numpy as np
import pytest

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
