"""How fine an auction ends, and by which epsilons: exact values, also at their bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from gpumatch.costs import as_costs
from gpumatch.cpu.assignment.sparse.tuning import Tuning
from gpumatch.numeric.auction_schedule import (
    FACTOR,
    FINENESS,
    WARM_STEPS,
    FallingEpsilon,
    Precision,
)

INTEGERS = np.array([[-3, 5, 1], [7, 0, 2]])  # 2 rows: the scale is 4
FLOATS = INTEGERS + 0.5
GATED = np.where(FLOATS == 7.5, math.inf, FLOATS)
SPARSE = csr_array(INTEGERS)


@pytest.mark.parametrize(
    ("costs", "limit", "expected"),
    [
        # epsilon, spread, farthest, exact
        (INTEGERS, None, (1 / 4, 10, 16 * 8, True)),
        (INTEGERS, 6, (1 / 4, 14, 16 * 8, True)),
        (INTEGERS, -9, (1 / 4, 18, 16 * 10, True)),
        (INTEGERS.astype(float), None, (10 / (1024 * 2), 10, 16 * 8, False)),
        (INTEGERS, 6.5, (14 / (1024 * 2), 14, 16 * 8, False)),
        (FLOATS, None, (10 / (1024 * 2), 10, 16 * 8.5, False)),
        (FLOATS, 9.5, (19 / (1024 * 2), 19, 16 * 10.5, False)),
        (GATED, None, (11 / (1024 * 2), 11, 16 * 2 * 6.5, False)),
        (GATED, 1.0, (11 / (1024 * 2), 11, 16 * 6.5, False)),
        (SPARSE, None, (1 / 4, 14, 16 * 2 * 8, True)),
        (SPARSE, 0, (1 / 4, 14, 16 * 8, True)),
        (np.zeros((0, 0), int), None, (1 / 2, 0, 16, True)),
    ],
)
def test_how_fine_an_auction_ends(costs, limit, expected):
    precision = Precision.of(as_costs(costs), limit)
    found = precision.epsilon, precision.spread, precision.farthest, precision.is_exact
    assert found == expected
    assert precision.is_workable


@pytest.mark.parametrize("nrows", [1, 3, 4, 7])
def test_integers_are_exact_as_long_as_prices_times_the_scale_fit(nrows):
    """farthest * scale < 2**bits: below the bound and from it on."""
    scale = 2 ** nrows.bit_length()
    most = 2**30 // (16 * scale)  # largest + 1 at the bound
    for largest, is_exact in ((most - 2, True), (most - 1, False)):
        costs = as_costs(np.full((nrows, nrows), largest))
        precision = Precision.of(costs, None, bits=30)
        assert precision.is_exact is is_exact
        assert (precision.epsilon == 1 / scale) is is_exact


def test_costs_that_are_all_0_or_too_close_together_are_not_workable():
    assert not Precision.of(as_costs(np.zeros((2, 2))), None).is_workable
    wide = as_costs(csr_array(np.full((2**12, 1), 3.5)).T)
    assert Precision.of(wide, None).is_workable
    rows = 2**20  # 64 * rows * spread / 2**52 is 2**6 epsilons of spread / (1024 * rows)
    narrow = as_costs((np.arange(rows + 1), np.arange(rows), np.full(rows, 3.5), (rows, rows)))
    assert not Precision.of(narrow, None).is_workable


def test_epsilons_fall_by_a_factor_from_half_the_spread_on():
    precision = Precision(1 / 4, 64.0, 1e3, True, True)
    assert FACTOR == 8
    assert precision.schedule(is_warm=False) == [16.0, 2.0, 0.25]
    assert precision.schedule(is_warm=True) == [16.0, 2.0, 0.25]
    assert precision._replace(spread=32.0).schedule(is_warm=False) == [2.0, 0.25]
    wide = precision._replace(spread=2.0**40)
    assert wide.schedule(is_warm=True) == [16.0, 2.0, 0.25]
    assert len(wide.schedule(is_warm=True)) == WARM_STEPS + 1
    assert wide.schedule(is_warm=False)[0] == 2.0**37
    assert len(wide._replace(spread=math.inf).schedule(is_warm=False)) == 65


def test_a_coarser_auction_is_not_exact():
    precision = Precision(1 / 4, 64.0, 1e3, True, True)
    assert precision.coarsened(256) is precision
    assert precision.coarsened(1000) is precision
    coarse = precision.coarsened(100)
    assert coarse == Precision(0.64, 64.0, 1e3, False, True)


def test_the_least_epsilon_of_floats_is_two_steps_of_the_largest():
    precision = Precision.of(as_costs(np.full((3, 3), 1e9)), None)
    assert precision.spread == 0
    assert precision.epsilon == 2 * math.ulp(1e9)
    assert FINENESS == 1024


# -- an epsilon that falls, and rises after price wars ---------------------------------------------

PACE = Tuning(factor=4, factor_after_war=4, least=2.0**-10, longest=10, most=40)


def test_epsilon_falls_to_the_finest_that_matters():
    epsilon = FallingEpsilon(64.0, 1024.0, 16, PACE)
    found = [epsilon.now]
    while epsilon.fall(3.0, is_calm=False):
        found.append(epsilon.now)
    assert found == [64, 16, 4, 3]
    assert not epsilon.can_fall(3.0)
    assert epsilon.fall(0.0, is_calm=True)  # by the factor three times
    assert epsilon.now == 64 * 2.0**-10  # never below its share of the first


def test_epsilon_rises_after_wars_until_these_have_read_too_much():
    """Patience doubles only if a war is no coarser than one before."""
    epsilon = FallingEpsilon(64.0, 4096.0, 16, PACE)
    steps = []
    for _ in range(3):
        is_worth_it = epsilon.rise()
        steps.append((is_worth_it, epsilon.now, epsilon.patience, epsilon.can_rise))
        epsilon.fall(0.0, is_calm=True)
    assert steps == [(True, 1024, 10, True), (True, 256, 20, True), (True, 128, 40, True)]
    assert not epsilon.rise()
    assert (epsilon.now, epsilon.patience, epsilon.can_rise) == (4096, 80, False)
    epsilon.fall(0.0, is_calm=False)
    epsilon.begin_again()
    assert epsilon.now == 4096


def test_epsilon_rises_halfway_in_orders_of_magnitude_and_falls_slowly_from_there():
    epsilon = FallingEpsilon(1.0, 2.0**40, 16, replace(PACE, factor_after_war=2))
    found = [epsilon.now for _ in range(5) if epsilon.rise()]
    assert found == [2.0**20, 2.0**30, 2.0**35, 2.0**39, 2.0**40]
    epsilon.fall(0.0, is_calm=False)
    assert epsilon.now == 2.0**39
    huge = FallingEpsilon(2.0**900, 2.0**1000, 16, PACE)
    assert huge.rise()
    assert huge.now == pytest.approx(2.0**950)
