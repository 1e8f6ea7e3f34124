"""The gap is rounded up, and one rule says what is proven."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from gpumatch.certificates.gaps import allowance_of as allowance_of_the_checker
from gpumatch.numeric.exact_sums import times
from gpumatch.numeric.gaps import FINE, allowance_of, check_duals, proof_of


def proof(terms, pairs=1, *, has_ended=True, largest=1.0, dual=1.0, **more):
    return proof_of(
        terms, pairs, has_ended=has_ended, is_integer=False,
        largest=lambda: largest, largest_dual=lambda: dual, **more,
    )  # fmt: skip


def test_gap_is_the_least_float_above():
    rng = np.random.default_rng(2)
    for _ in range(50):
        terms = (rng.standard_normal(9) * 10.0 ** rng.uniform(-9, 0, 9)).tolist()
        terms.append(abs(sum(terms)) + 1e-3)
        gap, exact = proof(terms).gap, sum(map(Fraction, terms))
        assert Fraction(math.nextafter(gap, -math.inf)) < exact <= Fraction(gap)


@pytest.mark.parametrize("numbers", [(10, 1.0, 1.0), (10, 1.0, 5.0), (3, 2.0, 1e9), (0, 1.0, 1.0)])
def test_allowance_is_that_of_the_checker(numbers):
    assert allowance_of(*numbers) == allowance_of_the_checker(*numbers)


def test_what_is_proven():
    allowed = allowance_of(2, 3.0, 5.0)
    above = math.nextafter(allowed, 1.0)
    assert proof([allowed], 2, largest=3.0, dual=5.0).proven
    assert not proof([above], 2, largest=3.0, dual=5.0).proven
    assert not proof([allowed], 2, has_ended=False, largest=3.0, dual=5.0).proven
    assert proof([0.0], 0, has_ended=False).proven


def test_coarse_gap_is_above_what_costs_alone_allow():
    gap = allowance_of(2, 1.0, 4.0)
    assert proof([gap], 2, dual=4.0, objective=gap / FINE / 2).is_coarse
    assert not proof([gap], 2, dual=4.0, objective=gap / FINE).is_coarse
    assert not proof([allowance_of(2, 1.0, 0.0)], 2, dual=4.0, objective=0.0).is_coarse


def test_a_negative_gap_is_a_fault():
    with pytest.raises(RuntimeError, match="costs 1e-300 less than its duals allow"):
        proof([1.0, -1.0, -1e-300])
    check_duals([-1e-16], 1, 1.0)
    with pytest.raises(RuntimeError, match="costs 1e-14 less"):
        check_duals([-1e-14], 1, 1.0)


@pytest.mark.parametrize("number", [0.1, -1e290, 5e-324, 3, 2.0**-1060])
def test_product_is_exact(number):
    assert sum(map(Fraction, times(number, 2**31 - 1))) == Fraction(number) * (2**31 - 1)
