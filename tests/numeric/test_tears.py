"""Prices of points near tears, where some rows of a cluster leave it and others stay."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.numeric.points.extension import extended, extended_along_tears
from gpumatch.numeric.points.quadratics import fitted_count

SCALE = 0.5


def near_known(points, known, count):
    steps = points[:, None] - known
    return np.argsort((steps * steps).sum(axis=2), axis=1)[:, :count]


def torn_map(d, branches):
    """Prices and partners of points: each goes to the branch whose function is least.

    The functions are the costs of a linear map for each branch, so a price has the derivative that
    the partner tells.
    """
    rng = np.random.default_rng(d)
    shrink, shifts = 0.75, 4 * rng.normal(size=(branches, d))  # a branch maps x to shrink x + shift

    def of(points):
        squares = (points * points).sum(axis=1)[:, None]
        values = SCALE * ((1 - shrink) * squares - 2 * points @ shifts.T)
        which = values.argmin(axis=1)
        return values.min(axis=1), shrink * points + shifts[which], which

    return of


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("branches", [1, 2, 3])
def test_prices_are_right_on_both_sides_of_a_tear(d, branches):
    rng = np.random.default_rng(20 + d)
    points = rng.random((1500, d)) - 0.5
    some = rng.permutation(1500)[:500]
    of = torn_map(d, branches)
    values, _, which = of(points)
    known, partners, _ = of(points[some])
    prices = extended_along_tears(points, some, known, partners, SCALE, near_known, 400)
    plain = extended(points, some, known, near_known, 400)
    spacing = 500 ** (-1 / d)
    rounding = 4e-6  # of ridges, in shares of the values
    assert abs(prices.values - values).max() < 0.2 * spacing**2 + rounding
    if len(np.unique(which)) > 1:
        assert abs(plain.values - values).max() > 2 * spacing**2 + 4 * rounding
        assert (which[prices.torn] != which[prices.known]).mean() > 0.4
        assert np.isin(prices.known, some).all()
        near = np.sqrt(((points[prices.torn] - points[prices.known]) ** 2).sum(axis=1))
        assert near.max() < 4 * fitted_count(d) * spacing
    else:
        assert not prices.torn.size
        np.testing.assert_array_equal(prices.values, plain.values)
        assert not plain.torn.size


def test_copies_and_few_points_have_prices():
    points, some = np.ones((6, 2)), np.arange(3)
    partners = np.array([[0.0, 0], [9, 9], [0, 9]])
    prices = extended_along_tears(points, some, np.ones(3), partners, 1.0, near_known, 4)
    assert np.isfinite(prices.values).all()
    assert prices.torn.size
