"""The gap of a small problem, as a sum of slacks."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from gpumatch.cpu.assignment.small.proof import add_up_pairs
from gpumatch.cpu.numba_tools.compiled import vector_kernel

TABLE = np.array([[2.0, 5.0, 9.0], [4.0, 1.0, 9.0]])
"""Rows 0 and 1 with three columns. Their cheapest pairs are (0, 0) and (1, 1)."""


@vector_kernel
def _add_up(table, mate, number, limits, starts, is_whole, paid):
    return add_up_pairs(
        table, mate, number, 0, 2, 3, limits, starts, is_whole, False, -1.0, paid
    )  # fmt: skip


def add_up(pairs, rows, cols, limit=math.inf, is_exact=True, starts=(0, 0, 0)):
    mate, number = np.full(5, -1, np.int32), np.array([*rows, *cols], np.float64)
    for row, col in pairs:
        mate[row], mate[2 + col] = col, row
    bases = None, None
    if limit < math.inf:
        bases = np.full(2, limit), np.array(starts, np.float64)
    paid = np.zeros(2)
    found = _add_up(TABLE, mate, number, *bases, is_exact, paid)
    assert paid.tolist() == [-TABLE[row, mate[row]] if mate[row] >= 0 else 0 for row in range(2)]
    return found


@pytest.mark.parametrize("is_exact", [True, False])
def test_the_gap_is_what_duals_leave_of_pairs_and_unmatched_vertices(is_exact):
    both = [(0, 0), (1, 1)]
    for pairs, rows, cols, limit, total, gap in (
        (both, (2, 1), (0, 0, 0), math.inf, 3, 0),
        (both, (2, 0.5), (0, 0, 0), math.inf, 3, 0.5),  # a pair
        (both, (2, 2), (0, -1, 0), math.inf, 3, 0),
        (both, (2, 1), (0, 0, -4), math.inf, 3, 4),  # an unmatched column
        (both, (-1, -2), (0, 0, 0), 3.0, 3, 0),
        (both[:1], (-1, 0), (0, 0, 0), 3.0, 2, 0),
        (both[:1], (-1, -2), (0, 0, 0), 3.0, 2, 2),  # an unmatched row
    ):
        size, high, low, found, is_proven = add_up(pairs, rows, cols, limit, is_exact)
        assert (size, high + low) == (len(pairs), total)
        assert gap <= found <= gap * (1 + 2.0**-29)
        assert is_proven == (gap == 0)
    *_, found, is_proven = add_up(both, (1, -1), (0, 0, 0), 0.0, is_exact, (1, 2, 3))
    assert found == 0  # duals of columns are less what these begin with
    assert is_proven


def test_duals_that_leave_rounding_only_prove_floats():
    unit = 2.0**-52
    for less, is_proven in ((8 * unit, True), (2.0**-40, False)):
        *_, gap, proven = add_up([(0, 0), (1, 1)], (2 - less, 1), (0, 0, 0), is_exact=False)
        assert gap >= less
        assert proven == is_proven
    assert not add_up([(0, 0), (1, 1)], (2 - 8 * unit, 1), (0, 0, 0), is_exact=True)[-1]


def test_the_gap_is_rounded_up():
    """The sum of the slacks is between two floats."""
    *_, gap, _ = add_up([(0, 0), (1, 1)], (1, 1 - 2.0**-53), (0, 0, 0), is_exact=False)
    assert Fraction(1) + Fraction(2.0**-53) <= Fraction(gap)
