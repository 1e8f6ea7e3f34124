"""What is known of distances before one is computed: their extent, their rounding, their scale.

`gpumatch.costs.points` has the formulas. Its steps are monotone, so they give bounds of all costs
when they are applied to the boxes that hold the points.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Points, Rounding
from gpumatch.costs.base import Extent, row_tiles
from gpumatch.numeric.arrays import array_of

__all__ = ["DEGREES", "Magnitudes", "added_by_offsets", "extent_of_points", "rounding_of"]

UNIT = 2.0**-53
SAFE_STEP = 2.0**-511  # the square of a difference from here on is a normal float
NORMAL = 2.0**-1022  # the least float that is not subnormal
LEAST_ROOT, LARGEST_ROOT = 2.0**-450, 2.0**500  # between, a root is that of squares as they are
SCALE = 2.0**600  # of differences under smaller roots; those under larger ones are divided by it
EXTREME = 480  # magnitude of exponents beyond which algorithms are shown no points
DEGREES = {"sqeuclidean": 2, "euclidean": 1, "cityblock": 1, "chebyshev": 1}
"""By which power of a factor costs grow if all coordinates are multiplied by it."""


class Magnitudes(NamedTuple):
    """What is known of the magnitudes of all coordinates.

    Attributes
    ----------
    exponent : int
        The power of 2 above the largest magnitude.
    step : float
        A number of which all coordinates are multiples; inf if all are 0.
    """

    exponent: int
    step: float

    @classmethod
    def of(cls, *sides: Any) -> Magnitudes:
        largest = max(float(abs(side).max()) if side.size else 0.0 for side in sides)
        return cls(math.frexp(largest)[1], min(map(_least_step, sides)))

    @property
    def may_lose_squares(self) -> bool:
        """True if a distance that is not 0 may be so small or so large that it must be scaled."""
        return self.step <= LEAST_ROOT or self.exponent > EXTREME

    def divided(self, exponent: int) -> Magnitudes:
        step = self.step if math.isinf(self.step) else math.ldexp(self.step, -exponent)
        return Magnitudes(self.exponent - exponent, step)


def _least_step(points: Any) -> float:
    """A number of which all coordinates are multiples, if it is not below the least float."""
    least = math.inf
    for tile in row_tiles(points):
        sizes = abs(points[tile])
        sizes = sizes[sizes > 0]
        least = min(least, float(sizes.min()) if sizes.size else math.inf)
    return least if math.isinf(least) else math.ulp(least)


def added_by_offsets(points: Points) -> float:
    """The sum of the magnitudes of all offsets."""
    return sum(
        float(abs(part).sum())
        for part in (points.row_offset, points.col_offset)
        if part is not None and part.size
    )


def rounding_of(metric: str, points: Points, step: float) -> Rounding:
    """How far computed costs may be from the exact ones; docs/algorithms/correctness.md proves it.

    `step` is a number of which all given coordinates are multiples.
    """
    d = points.rows.shape[1]
    share = (d + 6 if points.row_offset is not None else d + 3) * UNIT
    if metric == "cosine":
        return Rounding(share, 5 * (d + 8) * UNIT, added_by_offsets(points))
    pair = 0.0
    if step < SAFE_STEP and metric == "sqeuclidean":
        pair = (d + 2) * 2.0**-1074
    elif step < NORMAL and metric == "euclidean":
        pair = 2.0**-1074  # of a root that is subnormal
    return Rounding(share, pair, added_by_offsets(points))


def extent_of_points(points: Points) -> Extent:
    """Bounds of the computed costs, from the boxes of both sides, by steps that are monotone."""
    X, Y, metric, is_half, sign, row_offset, col_offset = points
    if not (X.shape[0] and Y.shape[0]):
        return Extent(0.0, 0.0, 0.0)
    (low_x, high_x), (low_y, high_y) = (
        (array_of(np, part.min(axis=0)), array_of(np, part.max(axis=0))) for part in (X, Y)
    )
    with np.errstate(over="ignore"):
        near = np.maximum(np.maximum(low_x - high_y, low_y - high_x), 0.0)
        far = np.maximum(high_x - low_y, high_y - low_x)
        ends = [_accumulated(metric, steps) * (0.5 if is_half else 1.0) for steps in (near, far)]
    if row_offset is not None:
        ends = [
            end + (getattr(row_offset, which)().item() + getattr(col_offset, which)().item())
            for end, which in zip(ends, ("min", "max"))
        ]
    low, high = ends if sign > 0 else (-ends[1], -ends[0])
    return Extent(low, high, max(abs(low), abs(high)))


def _accumulated(metric: str, steps: np.ndarray) -> float:
    """The distance with these differences, by the same steps as each cost."""
    if metric == "chebyshev":
        return float(steps.max())
    if metric == "cityblock":
        return float(np.add.accumulate(steps)[-1])
    total = float(np.add.accumulate(steps * steps)[-1])
    if metric != "euclidean":
        return total
    root = math.sqrt(total)
    if root <= LEAST_ROOT:
        return min(_root_of(steps, SCALE), LEAST_ROOT)
    return max(_root_of(steps, 1 / SCALE), LARGEST_ROOT) if root >= LARGEST_ROOT else root


def _root_of(steps: np.ndarray, scale: float) -> float:
    """The root of the sum of squares, computed of multiples."""
    scaled = steps * scale
    return math.sqrt(float(np.add.accumulate(scaled * scaled)[-1])) / scale
