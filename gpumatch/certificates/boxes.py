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

from gpumatch.numeric.arrays import array_module

__all__ = ["near_pairs"]

LEAF = 8
"""Points of a last box, at most."""
TOGETHER, TOGETHER_ON_DEVICE = 2**14, 2**17
"""Pairs of last boxes that are looked at together: up to 2**20 pairs of points, or 2**23."""
WAITING, WAITING_ON_DEVICE = 2**16, 2**20
"""Pairs of boxes that are bounded together."""
SLACK = 512
"""What rounding may add, in shares of (d + 8) 2**-53."""
LEAST = 2.0**-1000
"""What rounding of the smallest numbers may add."""
RIDGE = 1e-9
"""What keeps a fit of points on a line from being undefined, as a share of their spread."""


def near_pairs(
    points: Any, pair: float, row_price: Any, col_price: Any
) -> Iterator[tuple[Any, Any]]:
    """Rows and columns of pairs, among which are all that cost no more than both their prices.

    `pair` is the absolute rounding of a cost. The arrays are where the points are.
    """
    if not (row_price.size and col_price.size):
        return
    xp = array_module(points.rows)
    together, at_once = (TOGETHER, WAITING) if xp is np else (TOGETHER_ON_DEVICE, WAITING_ON_DEVICE)
    signs = points.sign if points.row_offset is not None else 0.0
    offsets = [
        xp.zeros(price.size) if part is None else part * signs
        for part, price in (
            (points.row_offset, row_price),
            (points.col_offset, col_price),
        )
    ]
    rows = _Boxes(points.rows, row_price, offsets[0])
    cols = _Boxes(points.cols, col_price, offsets[1])
    scale = points.sign * (0.5 if points.is_half else 1.0)
    depth = max(rows.depth, cols.depth)
    waiting = [(0, xp.zeros(1, np.int64), xp.zeros(1, np.int64))]
    with np.errstate(all="ignore"):
        while waiting:
            level, one, other = waiting.pop()
            if one.size > at_once:
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
            for begin in range(0, one.size, together):
                part = slice(begin, begin + together)
                own, others = rows.last[one[part], :, None], cols.last[other[part], None, :]
                found = ((own >= 0) & (others >= 0)).nonzero()
                yield own[found[0], found[1], 0], others[found[0], 0, found[2]]


def _halved(rows: _Boxes, cols: _Boxes, level: int, one: Any, other: Any) -> tuple[Any, Any]:
    """The pairs of the halves of boxes; a last box has no halves."""
    xp = array_module(one)
    if level < rows.depth:
        one, other = xp.concatenate([2 * one, 2 * one + 1]), xp.concatenate([other, other])
    if level < cols.depth:
        one, other = xp.concatenate([one, one]), xp.concatenate([2 * other, 2 * other + 1])
    return one, other


class _Level(NamedTuple):
    """The boxes of a level. What has coordinates has a line for each, and a place for each box.

    `middle` and `size` are those of the box, `slope` and `most` those of the linear bound of the
    prices, and `terms` is no less than the magnitudes of what these are computed from.
    """

    middle: Any
    size: Any
    slope: Any
    most: Any
    terms: Any


class _Boxes:
    """Boxes around the points of a side: the k-th of level l is halved into 2 k and 2 k + 1.

    All boxes of a level have as many points. Some points are there twice for that, which changes no
    bound.

    Attributes
    ----------
    depth : int
        The level of the last boxes.
    last : int64 array of shape (number of last boxes, at most LEAF)
        The points of each; -1 for those that are there a second time.
    """

    def __init__(self, points: Any, price: Any, offset: Any) -> None:
        xp, count = array_module(points), len(points)
        self.depth = max(0, int(np.ceil(np.log2(count / LEAF))))
        in_leaf = -(-count // (1 << self.depth))
        places = xp.arange(in_leaf << self.depth)
        more = places.size - count
        # The points that are there twice are spread, so that they do not fill boxes.
        order = xp.where(places < count, places, (places - count) * count // max(more, 1))
        lines = xp.concatenate([points.T, price[None], offset[None]])[:, order]
        ids = xp.where(places < count, places, -1)
        self._levels = []
        with np.errstate(all="ignore"):
            for level in range(self.depth + 1):
                boxes = 1 << level
                there = lines.reshape(len(lines), boxes, -1)
                low, high = there[:-2].min(axis=2), there[:-2].max(axis=2)
                self._levels.append(_level_of(there, low, high))
                if level < self.depth:
                    side = (high - low).argmax(axis=0)
                    order = there[side, xp.arange(boxes)].argsort(axis=1)
                    order += xp.arange(boxes)[:, None] * order.shape[1]
                    order = order.ravel()
                    lines, ids = lines[:, order], ids[order]
        self.last = ids.reshape(1 << self.depth, in_leaf)

    def level(self, level: int) -> _Level:
        return self._levels[min(level, self.depth)]


def _level_of(there: Any, low: Any, high: Any) -> _Level:
    """What is known of the boxes that have these ranges of the points."""
    steps, price, offset = there[:-2], there[-2], there[-1]
    middle = low + 0.5 * (high - low)
    steps = steps - middle[:, :, None]
    size = abs(steps).max(axis=2)
    values = price - offset
    slope = _slopes(steps, values)
    most = (values - (steps * slope[:, :, None]).sum(axis=0)).max(axis=1)
    terms = (abs(price) + abs(offset)).max(axis=1)
    return _Level(middle, size, slope, most, terms + abs(most) + (abs(slope) * size).sum(axis=0))


def _slopes(steps: Any, values: Any) -> Any:
    """The slopes of linear functions that fit the values of each box best."""
    xp, (width, boxes, _) = array_module(steps), steps.shape
    steps = steps - steps.mean(axis=2)[:, :, None]
    values = values - values.mean(axis=1)[:, None]
    squares, sides = xp.empty((boxes, width, width)), xp.empty((boxes, width))
    for k in range(width):
        sides[:, k] = (steps[k] * values).sum(axis=1)
        for other in range(k + 1):
            squares[:, k, other] = squares[:, other, k] = (steps[k] * steps[other]).sum(axis=1)
    spread = xp.trace(squares, axis1=1, axis2=2)
    is_fit = (spread > 0) & xp.isfinite(spread) & xp.isfinite(sides).all(axis=1)
    unit = xp.eye(width)
    squares = xp.where(is_fit[:, None, None], squares, unit)
    squares += (RIDGE * xp.where(is_fit, spread, 0.0))[:, None, None] * unit
    sides = xp.where(is_fit[:, None], sides, 0.0)
    try:
        slopes = xp.linalg.solve(squares, sides[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        return xp.zeros((width, boxes))
    return xp.ascontiguousarray(xp.where(xp.isfinite(slopes), slopes, 0.0).T)


def _are_far(
    metric: str, scale: float, pair: float, rows: _Level, one: Any, cols: _Level, other: Any
) -> Any:
    """Which pairs of boxes hold no pair of points that costs no more than its prices."""
    A, B = rows.size[:, one], cols.size[:, other]
    D, w = rows.middle[:, one] - cols.middle[:, other], A + B
    distance, gradient, above, across = _BOUNDS[metric](D, w)
    value, slope = scale * distance, scale * gradient
    excess = 0.0 if scale > 0 else -scale * above
    lost = (abs(slope - rows.slope[:, one]) * A + abs(slope + cols.slope[:, other]) * B).sum(axis=0)
    least = value - excess - rows.most[one] - cols.most[other] - lost
    terms = abs(scale) * (2 * distance + 2 * across + (abs(gradient) * w).sum(axis=0)) + excess
    terms += rows.terms[one] + cols.terms[other] + lost
    rounding = SLACK * (len(D) + 8) * 2.0**-53 * terms + 2 * pair + LEAST
    return least > rounding


# -- distances: that of D, its gradient, what concave ones lose within w, and that of w ------------


def _squared(D: Any, w: Any) -> tuple[Any, ...]:
    across = (w * w).sum(axis=0)
    return (D * D).sum(axis=0), 2 * D, across, across


def _euclidean(D: Any, w: Any) -> tuple[Any, ...]:
    (distance, gradient), (across, _) = map(_length, (D, w))
    least = array_module(D).fmin(across * (across / (2 * distance)), 2 * across)
    return distance, gradient, least, across


def _length(steps: Any) -> tuple[Any, Any]:
    """The lengths of vectors and their directions, without squares that overflow."""
    xp = array_module(steps)
    most = abs(steps).max(axis=0)
    scaled = steps / xp.where(most > 0, most, 1.0)
    length = xp.sqrt((scaled * scaled).sum(axis=0))
    return length * xp.where(most > 0, most, 1.0), scaled / xp.where(length > 0, length, 1.0)


def _cityblock(D: Any, w: Any) -> tuple[Any, ...]:
    xp = array_module(D)
    above = 2 * xp.maximum(w - abs(D), 0.0).sum(axis=0)
    return abs(D).sum(axis=0), xp.sign(D), above, w.sum(axis=0)


def _chebyshev(D: Any, w: Any) -> tuple[Any, ...]:
    xp = array_module(D)
    lines, m = xp.arange(D.shape[1]), abs(D).argmax(axis=0)
    most = abs(D)[m, lines]
    gradient = xp.zeros_like(D)
    gradient[m, lines] = xp.sign(D[m, lines])
    above = abs(D) - most + w + w[m, lines]
    above[m, lines] = 2 * (w[m, lines] - most)
    return most, gradient, xp.maximum(above.max(axis=0), 0.0), w.max(axis=0)


_BOUNDS = {
    "sqeuclidean": _squared,
    "euclidean": _euclidean,
    "cityblock": _cityblock,
    "chebyshev": _chebyshev,
}
