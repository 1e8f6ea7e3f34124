"""What `short_calls` leans on is found to be there, and found missing where it is."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from gpumatch import optimize
from gpumatch.cpu.assignment.small import pairs_only
from gpumatch.cpu.numba_tools import self_test

checked_anew = self_test.short_calls_work.__wrapped__


def test_this_numba_has_all():
    assert checked_anew()


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("FIELDS", ("parent", "meminfo", *self_test.FIELDS[2:])),
        ("FIELDS", self_test.FIELDS[:-1]),
        ("FIELDS", (*self_test.FIELDS, "device")),
        ("ADAPT", "numba_adopt_ndarray"),
        ("NEW", "numba_ndarray_newer"),
        ("_look", None),
    ],
    ids=["order", "more fields", "fewer fields", "no adapt", "no new", "no compiler"],
)
def test_what_is_missing_is_noticed(name, other, monkeypatch):
    monkeypatch.setattr(self_test, name, other)
    assert not checked_anew()


def test_arrays_that_arrive_otherwise_are_noticed():
    def look(values, seen):
        seen[0] = [*values.shape, *values.strides]
        return tuple(row.copy() for row in values[:2])

    def transposed(values, seen):
        return look(values.T[:, :6], seen)

    def shared(values, seen):
        seen[0] = [*values.shape, *values.strides]
        return tuple(values[:2])

    seen = np.zeros((1, 4), np.int64)
    assert self_test._looks_right(look, self_test.VALUES, seen)
    assert not self_test._looks_right(transposed, self_test.VALUES, seen)
    assert not self_test._looks_right(shared, self_test.VALUES, seen)


# -- without it ------------------------------------------------------------------------------------


@pytest.fixture
def nothing_met(monkeypatch):
    """`gpumatch.optimize` before its first call."""
    monkeypatch.setattr(optimize, "_SOLVERS", {})
    optimize._pairs_only.cache_clear()
    yield
    optimize._pairs_only.cache_clear()


def test_assign_serves_where_the_check_fails(nothing_met, monkeypatch):
    monkeypatch.setattr(pairs_only, "short_calls_work", lambda: False)
    rows, cols = optimize.linear_sum_assignment(np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    assert (rows.tolist(), cols.tolist()) == ([0, 1, 2], [1, 0, 2])
    assert not optimize._SOLVERS


def test_assign_serves_where_the_module_cannot_be_imported(nothing_met, monkeypatch):
    name = "gpumatch.cpu.assignment.small.pairs_only"
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(name)  # else the package hands out the module that it has
    monkeypatch.setitem(sys.modules, "gpumatch.cpu.numba_tools.short_calls", None)
    rows, cols = optimize.linear_sum_assignment(np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    assert (rows.tolist(), cols.tolist()) == ([0, 1, 2], [1, 0, 2])
    assert name not in sys.modules
