"""How the checkers count, on the host and on a device."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumatch.certificates import base
from gpumatch.certificates.base import count_of, total_of

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


FINITE = st.floats(-1e300, 1e300) | st.sampled_from([5e-324, -5e-324, 1e-310, 2.0**1000, 1.0])


@given(st.lists(FINITE))
def test_floats_are_added_exactly_and_rounded_once(values):
    assert total_of(np.array(values, np.float64)) == float(sum(map(Fraction, values)))


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_are_added_exactly(values):
    assert total_of(np.array(values, np.int64)) == sum(values)
    assert total_of(np.array(values, object)) == sum(values)


def test_floats_are_added_a_slice_at_a_time(monkeypatch):
    monkeypatch.setattr(base, "ADDED", 3)
    values = [1e16, 1.0, -1e16, 1e-9, 7.0, 2.5, -0.0]
    assert total_of(np.array(values)) == math.fsum(values)


@pytest.mark.parametrize("values", [[math.nan, 1.0], [math.inf, 1.0], [math.inf, -math.inf]])
def test_the_sum_of_what_is_not_finite_is_not_either(values):
    assert not math.isfinite(total_of(np.array(values)))


class NoLists(np.ndarray):
    """An array whose numbers are never made into Python's, one by one."""

    def tolist(self):
        assert self.size <= 3_000, "a list of all numbers"
        return super().tolist()


@pytest.mark.parametrize("number", [np.int8, np.int64, np.float32, np.float64])
def test_a_sum_makes_no_list_of_all_numbers(number):
    values = (np.arange(10_000) % 100).astype(number)
    assert total_of(values.view(NoLists)) == 495_000


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("number", [np.bool_, np.int32, np.int64, np.float32, np.float64])
def test_sums_of_every_kind(home, number):
    xp = pytest.importorskip(home)
    values = xp.asarray(np.random.default_rng(1).integers(0, 2, 100_000).astype(number))
    expected = int(count_of(values != 0))
    assert total_of(values) == expected
    assert total_of(values[:0]) == 0
    assert isinstance(total_of(values), float if values.dtype.kind == "f" else int)
    tiny = xp.asarray([1e16, 1.0, -1e16])
    assert total_of(tiny) == 1.0
