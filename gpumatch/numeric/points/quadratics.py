"""Prices of all points from those of a sample, by a quadratic that fits the nearest sampled points.

The prices of squared distances are smooth to second order wherever the pairs of neighbours are
neighbours. So the price of a point is read off the quadratic that fits those of the nearest sampled
points best: 6 of them on a line, 12 in the plane, 24 in three dimensions.
"""

from __future__ import annotations

from typing import Any

from gpumatch.numeric.arrays import array_module

__all__ = ["fitted", "fitted_count"]

FITTED = {1: 6, 2: 12, 3: 24}
"""Sampled points that a quadratic fits, by the number of dimensions; it has 3, 6 or 10 terms."""
RIDGE = 1e-6
"""What keeps a fit of points on a line or of equal points from being undefined."""


def fitted_count(width: int) -> int:
    """The sampled points that a quadratic in so many dimensions fits."""
    return FITTED.get(width, 2 * (width + 1) * (width + 2) // 2)


def fitted(points: Any, known: Any, values: Any, near: Any, at_once: int) -> Any:
    """The values at points, from those of known points.

    Parameters
    ----------
    near : int array of shape (points, count)
        The known points that are near each point.
    at_once : int
        Points that are fitted at a time; memory is some 2,000 bytes each.
    """
    found = array_module(points).empty(points.shape[0])
    for begin in range(0, points.shape[0], at_once):
        part = slice(begin, begin + at_once)
        found[part] = _fitted(points[part], known[near[part]], values[near[part]])
    return found


def _fitted(points: Any, known: Any, values: Any) -> Any:
    """The values of quadratics at some points, each fitted to its known neighbours."""
    xp = array_module(points)
    steps = known - points[:, None]
    size = xp.sqrt((steps**2).sum(axis=2).max(axis=1))
    steps /= xp.where(size > 0, size, 1.0)[:, None, None]
    terms = _terms(steps)
    mean = values.mean(axis=1)
    turned = terms.transpose(0, 2, 1)
    squares = turned @ terms
    squares += RIDGE * xp.eye(squares.shape[1])
    sides = turned @ (values - mean[:, None])[:, :, None]
    return xp.linalg.solve(squares, sides)[:, 0, 0] + mean


def _terms(steps: Any) -> Any:
    """The terms of quadratics: 1, the coordinates, and the products of two."""
    xp, width = array_module(steps), steps.shape[2]
    parts = [xp.ones(steps.shape[:2]), *(steps[:, :, k] for k in range(width))]
    parts += [
        steps[:, :, k] * steps[:, :, other] for k in range(width) for other in range(k, width)
    ]
    return xp.stack(parts, axis=2)
