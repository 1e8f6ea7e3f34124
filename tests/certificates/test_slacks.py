"""Exact sums, exact signs, and prices that are made fair."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumatch.certificates import slacks
from gpumatch.certificates.slacks import (
    Prices,
    at_least,
    at_most,
    excess,
    excess_of_any,
    nearest,
    parts_of,
    sum_in_units,
    units_of,
)

HOMES = [
    pytest.param("numpy", id="host"),
    pytest.param("cupy", id="device", marks=[pytest.mark.gpu, pytest.mark.emulated]),
]
MOST = np.finfo(np.float64).max
FLOATS = st.floats(-1e300, 1e300) | st.sampled_from([5e-324, -5e-324, 1e-310, 2.0**999, 1.0])
WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)


def of_units(units):
    return Fraction(units, 2**slacks.LEAST)


@given(st.lists(FLOATS))
def test_floats_are_added_exactly(values):
    units = sum_in_units(np.array(values, np.float64))
    assert of_units(units) == sum(map(Fraction, values))
    assert nearest(units) == float(of_units(units))
    assert Fraction(at_most(units)) <= of_units(units) <= Fraction(at_least(units))
    assert at_least(units) <= math.nextafter(at_most(units), math.inf)


@given(st.lists(WHOLE))
def test_integers_are_added_exactly(values):
    assert sum_in_units(np.array(values, np.int64)) == sum(map(units_of, values))


def test_floats_are_added_a_slice_at_a_time(monkeypatch):
    monkeypatch.setattr(slacks, "ADDED", 3)
    values = [1e16, 1.0, -1e16, 1e-9, 7.0, 2.5, -0.0]
    assert nearest(sum_in_units(np.array(values))) == math.fsum(values)


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_beyond_the_largest_float_are_rounded_outward(sign):
    units = sum_in_units(np.full(2, MOST * sign))
    ends = [at_most(units), at_least(units)]
    assert ends == ([MOST, math.inf] if sign > 0 else [-math.inf, -MOST])


class NoLists(np.ndarray):
    """An array whose numbers are never made into Python's, one by one."""

    def tolist(self):
        assert self.size <= 3_000, "a list of all numbers"
        return super().tolist()


@pytest.mark.parametrize("number", [np.int8, np.int64, np.float32, np.float64])
def test_a_sum_makes_no_list_of_all_numbers(number):
    values = (np.arange(10_000) % 100).astype(number)
    assert nearest(sum_in_units(values.view(NoLists))) == 495_000


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("number", [np.bool_, np.int32, np.int64, np.float32, np.float64])
def test_sums_of_every_kind(home, number):
    xp = pytest.importorskip(home)
    drawn = np.random.default_rng(1).integers(0, 2, 100_000)
    values = xp.asarray(drawn.astype(number))
    assert sum_in_units(values) == units_of(int(drawn.sum()))
    assert sum_in_units(values[:0]) == 0
    assert sum_in_units(xp.asarray([1e16, 1.0, -1e16])) == units_of(1)


@given(st.lists(st.tuples(*[FLOATS] * 4), min_size=1, max_size=5))
def test_an_excess_has_the_sign_of_the_sum_and_is_no_less(terms):
    found = excess(list(np.array(terms).T))
    for exact, value in zip((sum(map(Fraction, part)) for part in terms), found.tolist()):
        assert (value > 0, value < 0) == (exact > 0, exact < 0)
        if exact > 0:
            assert exact <= Fraction(value) <= exact * (1 + Fraction(1, 2**46))


HUGE_OR_LEAST = st.sampled_from([MOST, -MOST, 4e301, -4e301, 1e-301, -3e-301, 5e-324, 0.0, 1.0])


@given(st.lists(st.tuples(*[HUGE_OR_LEAST | FLOATS] * 4), min_size=1, max_size=5))
def test_an_excess_of_any_numbers_has_the_sign_of_the_sum_and_is_no_less(terms):
    found = excess_of_any(list(np.array(terms).T))
    for exact, value in zip((sum(map(Fraction, part)) for part in terms), found.tolist()):
        assert (value > 0, value < 0) == (exact > 0, exact < 0)
        if exact > Fraction(MOST) * (1 - Fraction(1, 2**46)):
            assert value == math.inf or exact <= Fraction(value)
        elif exact > 0:
            assert exact <= Fraction(value) <= exact * (1 + Fraction(1, 2**46))


@pytest.mark.parametrize("home", HOMES)
def test_an_excess_of_huge_numbers_where_they_are(home):
    xp = pytest.importorskip(home)
    terms = [[4e301, MOST, 1e-301], [-4e301, MOST, -1e-301], [1e-301, 1.0, 5e-324]]
    found = excess_of_any([xp.asarray(np.array(term)) for term in terms])
    assert found.tolist() == [1e-301, math.inf, 5e-324]


@given(st.lists(WHOLE, min_size=1))
def test_parts_are_the_numbers(values):
    parts = parts_of(np.array(values, np.int64))
    sums = [sum(int(part[k]) for part in parts) for k in range(len(values))]
    assert sums == values


NEAR_1 = st.sampled_from([1.0, 1 + 2**-52, 1 - 2**-53, 2.0**-53, 2.0**-54, 0.5, -0.5, -1.0, 0.0])
NUMBERS = {
    "floats": (NEAR_1 | FLOATS, NEAR_1 | FLOATS, False),
    "extreme": (st.sampled_from([MOST, -MOST, 5e-324, 1.0]), FLOATS, False),
    "integers": (st.integers(-(2**60), 2**60), WHOLE, True),
    "small": (st.integers(-3, 3), st.integers(-3, 3), True),
    "mixed": (st.integers(2**54 - 3, 2**54 + 3), st.sampled_from([2.0**53, 0.5, -1.0]), True),
}


@pytest.mark.parametrize("kind", NUMBERS)
@given(data=st.data())
def test_fair_prices_are_undercut_by_nothing(kind, data):
    """Exactly the pairs that cost less than their prices are found, and by how much at most."""
    costs, duals, is_integer = NUMBERS[kind]
    c = np.array(data.draw(st.lists(costs, min_size=6, max_size=6))).reshape(2, 3)
    u, limit, v = (np.array(data.draw(st.lists(duals, min_size=n, max_size=n))) for n in (2, 2, 3))
    has_limit = data.draw(st.booleans())
    rows, cols = np.arange(2)[:, None], np.arange(3)[None, :]
    prices = Prices(
        [u, limit] if has_limit else [u], [v], abs(c).max().item(), is_integer=is_integer
    )
    found = prices.below(rows, cols, c)
    amounts = {(i, j): amount for i, j, amount in zip(*(part.tolist() for part in found))}
    for i in range(2):
        for j in range(3):
            terms = [u[i], v[j], -c[i, j]] + [limit[i]] * has_limit
            exact = sum(Fraction(term.item()) for term in terms)
            amount = amounts.get((i, j), 0)
            assert amount >= exact
            assert (exact > 0) == (amount > 0)
    inside = np.zeros((2, 3), bool)
    assert not prices.below(rows, cols, c, inside)[2].size


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("number", [np.int64, np.float64])
def test_prices_where_the_costs_are(home, number):
    xp = pytest.importorskip(home)
    c = xp.asarray(np.array([[4, 1, 3], [2, 0, 5]], number))
    u, v = (xp.asarray(np.array(part, number)) for part in ([4, 2], [0, -2, 0]))
    prices = Prices([u], [v], 5, is_integer=number is np.int64)
    found = prices.below(xp.arange(2)[:, None], xp.arange(3)[None, :], c)
    assert all(isinstance(part, np.ndarray) for part in found)
    assert [part.tolist() for part in found[:2]] == [[0, 0], [1, 2]]
    assert np.allclose(found[2], 1, rtol=1e-12)
