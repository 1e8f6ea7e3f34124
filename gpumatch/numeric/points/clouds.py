"""Two clouds of points: whether they are alike, and other points in their place that are.

Squared distances of clouds that are far apart, of unlike width, or to be maximised, differ little
within a box for their size, so bounds of boxes would leave out little. Such points have a `Frame`:
others in their place, whose squared distances differ from the costs by a number for each row and
one for each column.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gpumatch.contracts import Points
from gpumatch.numeric.arrays import array_module

__all__ = ["Frame", "alike", "are_apart", "frame_of", "turned"]

TILE = 2**26
"""Coordinates that are looked at at a time: 512 MiB."""
ALIKE = 0.1
"""How unlike two clouds may be without a frame: squared distance of the means by the variance, and
logarithm of the ratio of their widths."""


def turned(points: Points) -> Points:
    """The points with rows and columns changed."""
    return points._replace(
        rows=points.cols,
        cols=points.rows,
        row_offset=points.col_offset,
        col_offset=points.row_offset,
    )


def are_apart(points: Points | None) -> bool:
    """True if nearest points are hardly ever partners, even when both clouds are made alike.

    That is so for distances if the clouds are far apart or of unlike width. `alike` changes no
    optimum of squared distances. Prices of other metrics are not smooth, and many optima tie.
    """
    if points is None or points.metric != "euclidean" or points.sign < 0:
        return False
    return frame_of(points._replace(metric="sqeuclidean")) is not None


def alike(points: Points) -> Points:
    """The points with the columns moved and scaled so that both clouds are alike.

    The squared distances of the result have the optimal assignments that those of the points have,
    if all rows and columns are matched. If costs are negated, the columns are reflected. It pays
    even for clouds of one kind: the means of 200,000 uniform points differ by half of their
    spacing, and candidates of the moved points leave half as many pairs to pricing.
    """
    middles = [_mean(side) for side in (points.rows, points.cols)]
    moved = points.cols - middles[1]  # in place from here on: there may be no memory for copies
    spread = [_spread(*part) for part in zip((points.rows, points.cols), middles)]
    moved *= points.sign * (math.sqrt(spread[0] / spread[1]) if min(spread) > 0 else 1.0)
    moved += middles[0]
    return Points(points.rows, moved, "sqeuclidean", False, 1.0)


def _mean(points: Any) -> Any:
    """The mean of the points, as a product: sums along columns take a device ten times as long."""
    xp = array_module(points)
    return xp.full(points.shape[0], 1 / points.shape[0]) @ points


def _spread(points: Any, middle: Any) -> float:
    """The mean square of the distances from the middle, without a copy of all points."""
    count, width = points.shape
    rows, total = max(1, TILE // width), 0.0
    for first in range(0, count, rows):
        steps = (points[first : first + rows] - middle).reshape(-1)
        total += float(steps @ steps)
    return total / count


class Frame(NamedTuple):
    """Points in the place of others.

    Attributes
    ----------
    points : Points
        Their squared distances are the costs less `of_rows` and less `of_cols`, but for rounding.
    of_rows, of_cols : float64 arrays
    size : float
        The sum of the largest magnitudes that were added up.
    error : float
        What rounding may leave, in shares of the magnitudes.
    """

    points: Points
    of_rows: Any
    of_cols: Any
    size: float
    error: float


def frame_of(points: Points) -> Frame | None:
    """A frame in which both clouds are alike, for squared distances; None if they are already.

    With x and y less the means, t the difference of the means and any s,

        |x - y + t|^2 = |x - s y|^2 / s + (1 - 1/s) |x|^2 + (1 - s) |y|^2 + 2 t x - 2 t y + |t|^2.

    A negative s is for costs that are negated.
    """
    if points.metric != "sqeuclidean" or not (points.rows.shape[0] and points.cols.shape[0]):
        return None
    xp = array_module(points.rows)
    middles = points.rows.mean(axis=0), points.cols.mean(axis=0)
    rows, cols = points.rows - middles[0], points.cols - middles[1]
    spread = [float((side * side).sum(axis=1).mean()) for side in (rows, cols)]
    apart = middles[0] - middles[1]
    distance = float((apart * apart).sum())
    if not min(spread) > 0:
        return None
    ratio = math.sqrt(spread[0] / spread[1])
    is_alike = distance <= ALIKE * spread[0] and abs(math.log(ratio)) <= ALIKE
    if is_alike and points.sign > 0:
        return None
    scale, half = ratio * points.sign, 0.5 if points.is_half else 1.0
    root = math.sqrt(half / ratio)
    squares = xp.einsum("ij,ij->i", rows, rows), xp.einsum("ij,ij->i", cols, cols)
    along = rows @ apart, cols @ apart
    of_rows = half * ((1 - 1 / scale) * squares[0] + 2 * along[0] + distance)
    of_cols = half * ((1 - scale) * squares[1] - 2 * along[1])
    added = 0.0
    if points.row_offset is not None:
        of_rows, of_cols = of_rows + points.row_offset, of_cols + points.col_offset
        added = float(abs(points.row_offset).max()) + float(abs(points.col_offset).max())
    most = [float(part.max()) for part in squares]
    size = (
        (2 + abs(1 - 1 / scale)) * most[0]
        + (2 + ratio + abs(1 - scale)) * most[1]
        + most[0] / ratio
    )
    size += 2 * math.sqrt(distance) * (math.sqrt(most[0]) + math.sqrt(most[1])) + distance + added
    moved = [float(abs(middle).max()) + math.sqrt(part) for middle, part in zip(middles, most)]
    size += 4 * max(moved) * math.sqrt(rows.shape[1] * sum(most)) * (1 + ratio + 1 / ratio)
    shown = Points(rows * root, cols * (scale * root), "sqeuclidean", False, 1.0)
    error = 64 * (rows.shape[1] + 8) * 2.0**-53
    return Frame(shown, of_rows * points.sign, of_cols * points.sign, size, error)
