"""Which pairs of points may cost no more than their prices, by boxes around neighbours.

The points of each side are halved across their longest side, again and again, until few are left.
Two boxes, one of each side, are left out if all their pairs cost more than their prices; else both
are halved, and the pairs of the last boxes are looked at one by one.

Bound. Take a box around rows x = p + a and one around columns y = q + b, with their middles p and
q, and |a| <= A, |b| <= B in each coordinate. Let D = p - q. The cost is F(x - y), a distance f
times a number s, which is negative for costs to be maximised; offsets are taken off the prices.
Prices have linear bounds within a box, u(x) <= α + k a and v(y) <= β + l b, whatever the slopes k
and l are. If g is a sub-gradient of F in D, and

    F(D + e)  >=  F(D) + g e - h   for all |e| <= A + B,

then F(x - y) - u(x) - v(y) is at least

    F(D) - h - α - β - |g - k| A - |g + l| B.

Distances are convex, so h = 0 if s > 0. Otherwise, with w = A + B and n the norm,

    sqeuclidean   |D + e|^2 = |D|^2 + 2 D e + |e|^2, so h = |s| |w|^2
    euclidean     |D + e| <= |D| + g e + |e|^2 / (2 |D|), and also <= |D| + g e + 2 |e|
    cityblock     |D_k + e_k| <= |D_k| + sign(D_k) e_k + 2 max(0, w_k - |D_k|) in each coordinate
    chebyshev     with the coordinate m in which |D| is largest: what the others, or the other sign,
                  may have above |D_m| + sign(D_m) e_m, that is at most
                  max(0, |D_k| - |D_m| + w_k + w_m) over all k, for k = m without |D_k|

Slopes are fitted, so what is lost is of second order in the size of boxes, where prices are smooth.

Rounding. All numbers are computed in float64. Each is wrong by a few units in the last place of the
terms that it is a sum of, and so is each computed cost (`Rounding`). A pair of boxes is left out
only if its bound exceeds all of this together: `SLACK` (d + 8) 2**-53 times the sum of the
magnitudes of all terms. If anything overflows, nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

__all__ = ["near_pairs"]

LEAF = 8
"""Points of a last box, at most."""
TOGETHER = 2**14
"""Pairs of last boxes that are looked at together: 2**20 pairs of points."""
WAITING = 2**16
"""Pairs of boxes that are bounded together."""
SLACK = 512
"""What rounding may add, in shares of (d + 8) 2**-53."""
LEAST = 2.0**-1000
"""What rounding of the smallest numbers may add."""
RIDGE = 1e-9
"""What keeps a fit of points on a line from being undefined, as a share of their spread."""


def near_pairs(
    points: Any, pair: float, row_price: np.ndarray, col_price: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows and columns of pairs, among which are all that cost no more than both their prices.

    `pair` is the absolute rounding of a cost.
    """
    if not (row_price.size and col_price.size):
        return
    signs = points.sign if points.row_offset is not None else 0.0
    offsets = [
        np.zeros(len(price)) if part is None else part * signs
        for part, price in (
            (points.row_offset, row_price),
            (points.col_offset, col_price),
        )
    ]
    rows = _Boxes(points.rows, row_price, offsets[0])
    cols = _Boxes(points.cols, col_price, offsets[1])
    scale = points.sign * (0.5 if points.is_half else 1.0)
    depth = max(rows.depth, cols.depth)
    waiting = [(0, np.zeros(1, np.int64), np.zeros(1, np.int64))]
    with np.errstate(all="ignore"):
        while waiting:
            level, one, other = waiting.pop()
            if one.size > WAITING:
                half = one.size // 2
                waiting.append((level, one[:half], other[:half]))
                waiting.append((level, one[half:], other[half:]))
                continue
            sides = rows.level(level), cols.level(level)
            kept = ~_are_far(points.metric, scale, pair, sides[0], one, sides[1], other)
            one, other = one[kept], other[kept]
            if level < depth:
                if one.size:
                    waiting.append((level + 1, *_halved(rows, cols, level, one, other)))
                continue
            for begin in range(0, one.size, TOGETHER):
                part = slice(begin, begin + TOGETHER)
                own, others = rows.last[one[part], :, None], cols.last[other[part], None, :]
                found = ((own >= 0) & (others >= 0)).nonzero()
                yield own[found[0], found[1], 0], others[found[0], 0, found[2]]


def _halved(
    rows: _Boxes, cols: _Boxes, level: int, one: np.ndarray, other: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of the halves of boxes; a last box has no halves."""
    if level < rows.depth:
        one, other = np.concatenate([2 * one, 2 * one + 1]), np.tile(other, 2)
    if level < cols.depth:
        one, other = np.tile(one, 2), np.concatenate([2 * other, 2 * other + 1])
    return one, other


class _Level(NamedTuple):
    """The boxes of a level, in arrays with a line for each.

    `middle` and `size` are those of the box, `slope` and `most` those of the linear bound of the
    prices, and `terms` is no less than the magnitudes of what these are computed from.
    """

    middle: np.ndarray
    size: np.ndarray
    slope: np.ndarray
    most: np.ndarray
    terms: np.ndarray


class _Boxes:
    """Boxes around the points of a side: the k-th of level l is halved into 2 k and 2 k + 1.

    Attributes
    ----------
    depth : int
        The level of the last boxes.
    last : int64 array of shape (number of last boxes, LEAF)
        The points of each, and -1 if they are fewer.
    """

    def __init__(self, points: np.ndarray, price: np.ndarray, offset: np.ndarray) -> None:
        count = len(points)
        self.depth = max(0, int(np.ceil(np.log2(count / LEAF))))
        order = np.arange(count)
        self._levels = []
        with np.errstate(all="ignore"):
            for level in range(self.depth + 1):
                bounds = (np.arange((1 << level) + 1) * count) >> level
                there = points[order]
                low, high = (
                    end.reduceat(there, bounds[:-1], axis=0) for end in (np.minimum, np.maximum)
                )
                self._levels.append(
                    _level_of(there, price[order], offset[order], bounds, low, high)
                )
                if level < self.depth:
                    side = (high - low).argmax(axis=1)
                    boxes = np.repeat(np.arange(1 << level), np.diff(bounds))
                    along = there[np.arange(count), side[boxes]]
                    order = order[np.lexsort((along, boxes))]
        places, ends = bounds[:-1, None] + np.arange(LEAF), bounds[1:, None]
        self.last = np.where(places < ends, order[np.minimum(places, count - 1)], -1)

    def level(self, level: int) -> _Level:
        return self._levels[min(level, self.depth)]


def _level_of(
    points: np.ndarray,
    price: np.ndarray,
    offset: np.ndarray,
    bounds: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> _Level:
    """What is known of the boxes that have these ranges of the points."""
    starts, counts = bounds[:-1], np.diff(bounds)
    middle = low + 0.5 * (high - low)
    steps = points - np.repeat(middle, counts, axis=0)
    size = np.maximum.reduceat(abs(steps), starts, axis=0)
    values = price - offset
    slope = _slopes(steps, values, starts, counts)
    rest = values - (steps * np.repeat(slope, counts, axis=0)).sum(axis=1)
    most = np.maximum.reduceat(rest, starts)
    terms = np.maximum.reduceat(abs(price) + abs(offset), starts)
    return _Level(middle, size, slope, most, terms + abs(most) + (abs(slope) * size).sum(axis=1))


def _slopes(
    steps: np.ndarray, values: np.ndarray, starts: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """The slopes of linear functions that fit values best, for each range of the points."""
    width = steps.shape[1]
    means = np.add.reduceat(values, starts) / counts
    centers = np.add.reduceat(steps, starts, axis=0) / counts[:, None]
    steps, values = steps - np.repeat(centers, counts, axis=0), values - np.repeat(means, counts)
    squares = np.empty((starts.size, width, width))
    for k in range(width):
        for other in range(k + 1):
            squares[:, k, other] = np.add.reduceat(steps[:, k] * steps[:, other], starts)
            squares[:, other, k] = squares[:, k, other]
    sides = np.add.reduceat(steps * values[:, None], starts, axis=0)
    spread = np.trace(squares, axis1=1, axis2=2)
    is_fit = (spread > 0) & np.isfinite(spread) & np.isfinite(sides).all(axis=1)
    squares[~is_fit] = np.eye(width)
    squares += (RIDGE * np.where(is_fit, spread, 0.0))[:, None, None] * np.eye(width)
    sides[~is_fit] = 0
    try:
        slopes = np.linalg.solve(squares, sides[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        return np.zeros((starts.size, width))
    return np.where(np.isfinite(slopes), slopes, 0.0)


def _are_far(
    metric: str, scale: float, pair: float,
    rows: _Level, one: np.ndarray, cols: _Level, other: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Which pairs of boxes hold no pair of points that costs no more than its prices."""
    A, B = rows.size[one], cols.size[other]
    D, w = rows.middle[one] - cols.middle[other], A + B
    distance, gradient, above, across = _BOUNDS[metric](D, w)
    value, slope = scale * distance, scale * gradient
    excess = np.zeros_like(distance) if scale > 0 else -scale * above
    lost = (abs(slope - rows.slope[one]) * A + abs(slope + cols.slope[other]) * B).sum(axis=1)
    least = value - excess - rows.most[one] - cols.most[other] - lost
    terms = abs(scale) * (2 * distance + 2 * across + (abs(gradient) * w).sum(axis=1)) + excess
    terms += rows.terms[one] + cols.terms[other] + lost
    rounding = SLACK * (D.shape[1] + 8) * 2.0**-53 * terms + 2 * pair + LEAST
    return least > rounding


# -- distances: that of D, its gradient, what concave ones lose within w, and that of w ------------


def _squared(D: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
    across = (w * w).sum(axis=1)
    return (D * D).sum(axis=1), 2 * D, across, across


def _euclidean(D: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
    (distance, gradient), (across, _) = map(_length, (D, w))
    return distance, gradient, np.fmin(across * (across / (2 * distance)), 2 * across), across


def _length(steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lengths of vectors and their directions, without squares that overflow."""
    most = abs(steps).max(axis=1)
    shown = np.where(most > 0, most, 1.0)
    scaled = steps / shown[:, None]
    length = np.sqrt((scaled * scaled).sum(axis=1))
    return length * shown, scaled / np.where(length > 0, length, 1.0)[:, None]


def _cityblock(D: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
    above = 2 * np.maximum(w - abs(D), 0.0).sum(axis=1)
    return abs(D).sum(axis=1), np.sign(D), above, w.sum(axis=1)


def _chebyshev(D: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
    lines, m = np.arange(len(D)), abs(D).argmax(axis=1)
    most = abs(D)[lines, m]
    gradient = np.zeros_like(D)
    gradient[lines, m] = np.sign(D[lines, m])
    above = abs(D) - most[:, None] + w + w[lines, m, None]
    above[lines, m] = 2 * (w[lines, m] - most)
    return most, gradient, np.maximum(above.max(axis=1), 0.0), w.max(axis=1)


_BOUNDS = {
    "sqeuclidean": _squared,
    "euclidean": _euclidean,
    "cityblock": _cityblock,
    "chebyshev": _chebyshev,
}
