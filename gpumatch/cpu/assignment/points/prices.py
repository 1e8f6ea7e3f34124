"""Prices of all points from those of a sample, by a quadratic that fits the nearest sampled points.

The prices of squared distances are smooth to second order wherever the pairs of neighbours are
neighbours. So the price of a point is read off the quadratic that fits those of the nearest sampled
points best: 6 of them on a line, 12 in the plane, 24 in three dimensions.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import Points
from gpumatch.cpu.assignment.points.tree import Tree
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["extended"]

FITTED = {1: 6, 2: 12, 3: 24}
"""Sampled points that a quadratic fits, by the number of dimensions; it has 3, 6 or 10 terms."""
RIDGE = 1e-6
"""What keeps a fit of points on a line or of equal points from being undefined."""
LINES = 2**15
"""Points that are fitted at a time."""


def extended(
    points: np.ndarray, known: np.ndarray, values: np.ndarray, workers: Workers
) -> np.ndarray:
    """The values at points, from those of known points."""
    width = points.shape[1]
    count = min(FITTED.get(width, 2 * (width + 1) * (width + 2) // 2), known.shape[0])
    near, _ = Tree(Points(points, known, "sqeuclidean", False, 1.0)).least(
        np.arange(points.shape[0], dtype=np.int32),
        count,
        np.full(points.shape[0], np.inf),
        workers,
    )
    found = np.empty(points.shape[0])
    for begin in range(0, points.shape[0], LINES):
        part = slice(begin, begin + LINES)
        found[part] = _fitted(points[part], known[near[part]], values[near[part]])
    return found


def _fitted(points: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The values of quadratics at some points, each fitted to its known neighbours."""
    steps = known - points[:, None]
    size = np.sqrt((steps**2).sum(axis=2).max(axis=1))
    steps /= np.where(size > 0, size, 1.0)[:, None, None]
    terms = _terms(steps)
    mean = values.mean(axis=1)
    turned = terms.transpose(0, 2, 1)
    squares = turned @ terms
    squares += RIDGE * np.eye(squares.shape[1])
    sides = turned @ (values - mean[:, None])[:, :, None]
    return np.linalg.solve(squares, sides)[:, 0, 0] + mean


def _terms(steps: np.ndarray) -> np.ndarray:
    """The terms of quadratics: 1, the coordinates, and the products of two."""
    width = steps.shape[2]
    parts = [np.ones(steps.shape[:2]), *(steps[:, :, k] for k in range(width))]
    parts += [
        steps[:, :, k] * steps[:, :, other] for k in range(width) for other in range(k, width)
    ]
    return np.stack(parts, axis=2)
