"""Sums of products are exact, whatever the sizes of their numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gpumatch.numeric.exact_products import product_terms


def exact(values, units, unit=1):
    pairs = zip(values.tolist(), units.tolist())
    return sum((Fraction(value) * count for value, count in pairs), Fraction(0)) * Fraction(unit)


@pytest.mark.parametrize("bits", [1, 3, 20, 40, 61])
@pytest.mark.parametrize("size", [0, 3, 1500])
def test_floats(bits, size):
    random = np.random.default_rng(bits + size)
    values = random.standard_normal(size) * 10.0 ** random.integers(-20, 20, size)
    units = random.integers(0, 2**bits, size)
    for unit in (1.0, 2.0**-62):
        terms = product_terms(values, units, unit)
        assert sum(map(Fraction, terms)) == exact(values, units, unit)


def test_floats_that_are_tiny():
    random = np.random.default_rng(1)
    values, units = random.standard_normal(50) * 1e-300, random.integers(0, 2**61, 50)
    assert product_terms(values, units, 2.0**-40) == [exact(values, units, 2**-40)]


@pytest.mark.parametrize("most", [100, 2**61])
def test_integers(most):
    random = np.random.default_rng(2)
    values, units = random.integers(-most, most, 40), random.integers(0, most, 40)
    (total,) = product_terms(values, units)
    assert type(total) is int
    assert total == exact(values, units)


def test_a_product_that_overflows_is_an_error():
    with pytest.raises(OverflowError):
        product_terms(np.array([1e300]), np.array([2**61]))
