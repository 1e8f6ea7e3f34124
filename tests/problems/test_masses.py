"""Masses become whole units: integers as they are, floats off by less than one each."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gpumatch.problems.masses import MOST, masses_of


def test_integers_are_units():
    m = masses_of(2, np.array([1, 3], np.uint8), (3, 2))
    assert (m.rows.upper.tolist(), m.cols.upper.tolist()) == ([2, 2, 2], [1, 3])
    assert (m.unit, m.dtype, m.rows.total, m.rows.has_lower) == (1, np.int64, 6, False)


def test_only_a_tuple_means_bounds():
    m = masses_of((1, [2, 3]), [4, 5], (2, 2))
    assert (m.rows.lower.tolist(), m.rows.upper.tolist()) == ([1, 1], [2, 3])
    assert m.rows.has_lower
    assert m.rows.at(np.array([1])).upper.tolist() == [3]


def test_integers_as_floats_are_units():
    m = masses_of(np.array([2.0, 1.0], np.float32), 1, (2, 3))
    assert (m.unit, m.dtype, m.rows.upper.tolist()) == (1.0, np.float32, [2, 1])


@pytest.mark.parametrize("scale", [1, 1e-9, 1e12])
@pytest.mark.parametrize("seed", range(3))
def test_floats_are_off_by_less_than_a_unit(seed, scale):
    random = np.random.default_rng(seed)
    supply = random.random(40) * scale
    m = masses_of(supply, (supply.min() * 0.3, random.permutation(supply)), (40, 40))
    assert m.rows.total == m.cols.total
    assert MOST // 2 < m.rows.total <= MOST
    assert np.frexp(m.unit)[0] == 0.5
    exact = [Fraction(mass) / Fraction(m.unit) for mass in supply.tolist()]
    assert all(abs(a - b) < 1 for a, b in zip(exact, m.rows.upper.tolist()))
    assert (m.cols.lower <= m.cols.upper).all()


def test_equal_bounds_stay_equal():
    mass = np.random.default_rng(0).random(9)
    m = masses_of((mass, mass), 1.0, (9, 9))
    assert (m.rows.lower == m.rows.upper).all()


@pytest.mark.parametrize(
    ("supply", "kind", "text"),
    [
        ([1, -1], ValueError, r"supply\[1\] is -1"),
        ([1.0, np.nan], ValueError, r"supply\[1\] is nan"),
        ([1.0, np.inf], ValueError, r"supply\[1\] is inf"),
        ([1, 2, 3], ValueError, "supply must be a number, or 2 numbers"),
        ([[1, 2]], ValueError, "got the shape"),
        ("many", TypeError, "supply must be"),
        (True, TypeError, "supply must be a number"),
        ([1j, 1], TypeError, "supply must be real numbers"),
        (([2, 2], [3, 1]), ValueError, "those of row 1 are 2 and 1"),
        ((1, 2, 3), ValueError, "as a tuple must be"),
        ((-1, 2), ValueError, r"supply\[0\]\[0\] is -1"),
        ([MOST, 1], ValueError, "supply adds up to"),
        (2**70, ValueError, "more than 2"),
        ([1e308, 1e308], ValueError, "supply adds up to more than float64 holds"),
    ],
)
def test_wrong_masses_are_refused(supply, kind, text):
    with pytest.raises(kind, match=text):
        masses_of(supply, 1, (2, 2))
