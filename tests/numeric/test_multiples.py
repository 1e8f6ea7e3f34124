"""Multiples of one number: scaled costs come back, duals stay feasible, close pairs stay close."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumatch.cpu.assignment.sparse.tuning import DEFAULT
from gpumatch.numeric.multiples import BLOCK, FINE, Units, quantum_of, round_down


@given(
    st.integers(-50, 50),
    st.sampled_from([1, 2, 6, 35]),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_duals_of_steps_become_duals_of_costs(low, unit, seed, has_limit):
    """Rounded to units, they leave no pair below them, and each row a pair at which they are."""
    rng = np.random.default_rng(seed)
    costs = low + unit * rng.integers(0, 40, (6, 8))
    limit = low + 20 * unit if has_limit else None
    extent = min(costs.min(), low + 20 * unit), max(costs.max(), low + 20 * unit)
    units = Units.of(costs.ravel(), extent, limit, 6)
    scaled, _, scaled_limit = units.scaled(costs.ravel(), np.zeros(8, np.int64), limit)
    assert (scaled_limit is None) == (limit is None)
    price = -rng.integers(0, 5 * units.scale, 8)
    row_dual = (scaled.reshape(6, 8) - price).min(axis=1)
    units.restore(row_dual, price)
    slack = costs - row_dual[:, None] - price
    assert (slack.min(axis=1) == 0).all()
    assert (price <= 0).all()
    if has_limit:
        assert (scaled_limit < scaled).tolist() == (limit < costs.ravel()).tolist()


@pytest.mark.parametrize(
    ("costs", "limit", "expected"),
    [
        ([3, 9, 15], None, (3, 6)),
        ([3, 9, 15], 5, (3, 2)),
        ([-7, 0, 7, 1], None, (-7, 1)),
        ([4, 4, 4], None, (4, 1)),
        ([*[2] * 3000, 8], None, (2, 6)),
        ([*[6] * 3000, *[12] * 10**5, 15], None, (6, 3)),
    ],
)
def test_the_unit_divides_all_costs_and_the_limit(costs, limit, expected):
    costs = np.array(costs)
    units = Units.of(costs, (costs.min(), costs.max()), limit, 10)
    assert (units.origin, units.divisor) == expected
    assert not units.is_crude


def test_steps_are_as_many_as_there_is_room_for():
    """Never so many that sums of a few times all rows' costs overflow."""
    for bits in range(0, 62):
        units = Units.of(np.array([0, 2**bits, 2**bits + 1]), (0, 2**bits + 1), None, 100)
        if units.is_crude:
            assert 2**bits * 8 * 101 > 2**60
        else:
            assert 1 <= units.scale <= FINE
            assert units.scale * (2**bits + 1) * 8 * 101 <= 2**60
            assert units.scale == FINE or 2 * units.scale * (2**bits + 1) * 8 * 101 > 2**60


@pytest.mark.parametrize(("rows", "scale"), [(4095, FINE), (4096, 2 * FINE), (10**6, 2**20)])
def test_there_are_more_steps_than_rows_if_there_is_room(rows, scale):
    """So remainders of prices leave a gap of two steps."""
    assert Units.of(np.array([0, 1, 7]), (0, 7), None, rows).scale == scale


def test_integers_lose_their_common_divisor():
    units = Units.of(np.array([100, 10**8]), (100, 10**8), None, 1000)
    assert (units.origin, units.divisor, units.scale) == (100, 10**8 - 100, FINE)
    assert Units.of(np.array([4, 10, 16]), (4, 16), 7, 9)[:2] == (4, 3)
    assert Units.of(np.array([4, 10, 16]), (4, 16), 6, 9)[:2] == (4, 2)


def test_the_divisor_is_that_of_all_costs():
    weights = np.full(5000, 8)
    weights[-1] = 11
    assert Units.of(weights, (8, 11), None, 9)[:2] == (8, 3)


def test_costs_are_divided_block_by_block():
    weights = 17 + 12 * np.arange(2 * BLOCK + 3)  # without its origin, the limit is too many steps
    weights[-2] = 17 + 18
    units = Units.of(weights, (17, int(weights.max())), None, 9)
    assert units[:2] == (17, 6)
    costs, price, limit = units.scaled(weights, np.array([-60]), 17 + 36)
    np.testing.assert_array_equal(costs, (weights - 17) // 6 * units.scale)
    assert (price, limit) == (-10 * units.scale, 6 * units.scale)


@pytest.mark.parametrize("shift", [-(10**6), 0, 10**6])
def test_prices_are_rounded_alike_wherever_they_are(shift):
    """Columns that bid have prices above 0, and their pairs stay tight, too."""
    units = Units(scale=FINE)
    rng = np.random.default_rng(1)
    price = units.scale * rng.integers(-5, 5, 40) + rng.integers(0, 100, 40) + shift
    rounded = price.copy()
    units.round_prices(rounded, np.zeros(40, np.int32))
    assert (rounded % units.scale == 0).all()
    assert (abs(rounded - price) < units.scale).all()
    apart = np.subtract.outer(price, price)
    whole = -(-apart // units.scale) * units.scale  # no less than the difference
    assert (np.subtract.outer(rounded, rounded) <= whole).all()


# -- costs of few values ---------------------------------------------------------------------------

FEW, SAMPLE = DEFAULT.few_values, DEFAULT.sample


@pytest.mark.parametrize("number", [np.int64, np.float64], ids=["integers", "floats"])
def test_pairs_within_the_widest_gap_become_tight(number):
    """If a reduced cost is greater by less than the gap, it is not greater after rounding."""
    quantum = number(64)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        price = rng.integers(-5, 1, 9) * 64 + rng.choice(rng.integers(0, 64, 3), 9)
        price = price.astype(number)
        remainders = np.unique(price % 64)
        gap = np.diff(remainders, append=remainders[0] + 64).max()
        rounded = price.copy()
        round_down(rounded, quantum)
        assert (rounded % 64 == 0).all()
        for steps in range(-6, 7):
            is_within = price[:, None] - price < 64 * steps + gap
            assert (rounded[:, None] - rounded <= 64 * steps)[is_within].all()


@pytest.mark.parametrize(
    ("values", "quantum"),
    [([3, 5, 9], 2), ([0.1, 0.4], 0.4 - 0.1), ([1, 1], None), ([0, 1, 2.5], None)],
)
def test_the_quantum_divides_all_differences(values, quantum):
    matrix = np.full((40, 40), float(values[0]))
    matrix[:, 1:20:2] = values[1]
    matrix[:5] = values[-1]
    assert quantum_of(matrix.ravel(), FEW, SAMPLE) == quantum


def test_one_odd_cost_is_no_multiple():
    """Outside the sample, too."""
    matrix = np.ones((60, 60))
    matrix[:, ::2] = 2
    assert quantum_of(matrix.ravel(), FEW, SAMPLE) == 1
    matrix[31, 1] = 1.25
    assert quantum_of(matrix.ravel(), FEW, SAMPLE) is None


def test_no_costs_have_no_quantum():
    assert quantum_of(np.empty(0), FEW, SAMPLE) is None
