"""Quadratics that are fitted to known points."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.numeric.points.quadratics import fitted, fitted_count


def extended(points, known, values):
    steps = points[:, None] - known
    near = np.argsort((steps * steps).sum(axis=2), axis=1)[:, : fitted_count(points.shape[1])]
    return fitted(points, known, values, near, at_once=7)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_quadratics_are_extended_as_they_are(d):
    rng = np.random.default_rng(9)
    known, points = rng.normal(size=(400, d)), rng.normal(size=(50, d)) * 0.5

    def smooth(at):
        return 3 + at.sum(axis=1) - (at**2).sum(axis=1) + at[:, 0] * at[:, -1]

    np.testing.assert_allclose(extended(points, known, smooth(known)), smooth(points), atol=1e-3)


def test_equal_points_have_one_price():
    found = extended(np.ones((3, 2)), np.ones((20, 2)), np.full(20, 7.0))
    np.testing.assert_allclose(found, 7.0)
