"""A tree of boxes around points, and the columns that are cheapest for each row at given prices.

The tree is a complete binary one. Node 1 is the root, the children of node t are 2 t and 2 t + 1.
The k-th node of level l holds the points from (k m) >> l to ((k + 1) m) >> l, in the order of the
tree, for m points; so no bounds are stored. A node has its box, the largest price of its points,
and the least and the greatest of their offsets.

A search for the row x goes down into the child whose bound is less, and leaves out each node whose
bound is not below what it has found. The bound of a node is computed by the steps of
`gpumatch.costs.points`, from the point of the box that is nearest to x in each coordinate (farthest
if costs are negated), and all these steps are monotone. So the bound is no more than any of the
node's computed costs less their prices, as numbers: rounding leaves out no pair.

Squared distances of clouds that are far apart, of unlike width, or to be maximised, differ little
within a box for their size, so bounds would leave out little. Such points have a `Frame`: others in
their place, whose squared distances differ from the costs by a number for each row and one for each
column. Boxes are those of the frame. It is rounded, so its bounds are lowered by a margin that no
rounding exceeds, and pairs that these leave are computed by the steps of the costs.

Where columns serve rows that are far away, prices fall along the way to these nearly as much as
costs grow. So a node whose prices are taken for equal is hardly ever left out. Under distances and
squared ones, a linear function is fitted to the prices of each node. Squared distances less this
function have their least value in a box coordinate by coordinate (`sloped_square_of`). Distances
less it are convex (`sloped_bound_of`). These bounds are rounded, too, and are lowered by a margin.

    box[t, 0], box[t, 1]   the least and greatest coordinates of node t
    added[t, 0], [t, 1]    the least and greatest offset
    top[t]                 the largest price
    slope[t], rest[t]      of the linear function, and the largest price less its value
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpumatch.contracts import Points
from gpumatch.cpu.assignment.points.distances import (
    LARGEST_ROOT,
    LEAST_ROOT,
    METRICS,
    SCALE,
    cost_of,
    near_root,
    offsets_of,
)
from gpumatch.cpu.assignment.points.least import insert
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.error_free import difference_below
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.numeric.points.clouds import frame_of

__all__ = ["Tree"]

LEAF = 12
"""Points of a leaf, at most."""
LEVELS = 48
"""A path down the tree is shorter: 2**31 points have fewer levels."""
RIDGE = 1e-9
"""What keeps a fit of points on a line from being undefined, as a share of their spread."""
ROUNDING = 2.0**-44
"""What rounding may add to a bound of squares, as a share of all magnitudes that are added up."""
TINY = 2.0**-1060
"""What roundings of subnormal numbers may add to a bound."""
BATCH = 2**11
"""Rows that a thread serves between two looks at Python: some hundredths of a second."""


class Tree:
    """The points of the columns in boxes, and prices of these columns.

    Parameters
    ----------
    points : Points
        Those of the columns are in the tree; the rows ask.

    Attributes
    ----------
    ids : int32 array
        The columns in the order of the tree.
    asked : int32 array
        The rows in an order in which neighbours follow each other, so that caches help.
    """

    def __init__(self, points: Points) -> None:
        self.points = points
        cols = points.cols
        count, width = cols.shape
        self.levels = max(0, math.ceil(math.log2(max(count, 1) / LEAF)))
        nodes = 2 ** (self.levels + 1)
        self.ids = np.arange(count, dtype=np.int32)
        self.box = np.empty((nodes, 2, width))
        self.frame = frame_of(points)
        self.is_framed = self.frame is not None
        shown = points if self.frame is None else self.frame.points
        split(shown.cols, self.ids, self.levels, self.box)
        self.cols, self.shown_rows, self.shown_cols = (
            cols[self.ids],
            shown.rows,
            shown.cols[self.ids],
        )
        row_offset, col_offset = offsets_of(points)
        self.row_offset = row_offset
        self.col_offset = col_offset[self.ids] if col_offset.size else col_offset
        self.added = np.zeros((nodes, 2))
        if col_offset.size:
            raise_nodes(self.col_offset, self.levels, self.added[:, 1])
            raise_nodes(-self.col_offset, self.levels, self.added[:, 0])
            np.negative(self.added[:, 0], out=self.added[:, 0])
        self.asked = np.arange(points.rows.shape[0], dtype=np.int32)
        self.steepest = 1.0 if points.metric == "euclidean" else math.inf  # slope of prices
        has_squares = self.is_framed or (points.metric == "sqeuclidean" and points.sign > 0)
        self.can_slope = has_squares or (points.metric == "euclidean" and points.sign > 0)
        self.nodes = nodes
        most = [float(abs(side).max(initial=0)) for side in (points.rows, cols)]
        added = [float(abs(side).max(initial=0)) for side in (row_offset, col_offset)]
        self.size = 4 * math.sqrt(width) * sum(most) + sum(added)
        self.price, self.top = np.zeros(count), np.zeros(nodes)
        self.set_prices(np.zeros(count))

    def set_prices(self, price: np.ndarray) -> None:
        """Take other prices of the columns."""
        self.price = price[self.ids]
        self.shown_price = self.price
        if self.frame is not None:
            self.shown_price = self.price - self.frame.of_cols[self.ids]
        raise_nodes(self.shown_price, self.levels, self.top)
        width = self.cols.shape[1]
        is_sloped = self.can_slope and (self.is_framed or price.any())
        nodes = self.nodes if is_sloped else 0  # without prices, boxes alone tell as much
        self.slope, self.rest = np.zeros((nodes, width)), np.zeros(nodes)
        if is_sloped:
            fit_slopes(
                self.shown_cols, self.shown_price, self.levels, self.box, self.steepest,  # IN
                self.slope, self.rest, np.empty((width, width + 2)),  # OUT
            )  # fmt: skip

    def least(
        self,
        rows: np.ndarray,
        count: int,
        bound: np.ndarray,
        workers: Workers,
        beat: Any = lambda: None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The columns with the least costs less prices of these rows, which are below the bounds.

        Returns the columns, least first, -1 where there is none, and the costs less prices, rounded
        down, or inf; both have a line for each row.
        """
        cols = np.full((rows.size, count), -1, np.int32)
        values = np.full((rows.size, count), np.inf)
        p, frame = self.points, self.frame
        if frame is None:
            shift = np.empty(0)
            error = 64 * (p.rows.shape[1] + 8) * 2.0**-53
            margin = error * (self.size + abs(self.price).max(initial=0)) + TINY
            shown_metric, shown_scale, shown_sign = (
                METRICS[p.metric],
                0.5 if p.is_half else 1.0,
                p.sign,
            )
        else:
            shift = frame.of_rows
            margin = frame.error * (frame.size + abs(self.price).max(initial=0))
            shown_metric, shown_scale, shown_sign = 0, 1.0, 1.0

        def search(block: int) -> None:
            first = block * BATCH
            least(
                rows[first : first + BATCH], p.rows, self.row_offset,  # IN
                self.cols, self.col_offset, self.price, self.box, self.added, self.top,  # IN
                self.levels, METRICS[p.metric], 0.5 if p.is_half else 1.0, p.sign,  # IN
                self.shown_rows, self.shown_cols, self.shown_price,  # IN
                shown_metric, shown_scale, shown_sign,  # IN
                self.slope, self.rest, shift, margin, 0.0 if frame is None else frame.error,  # IN
                bound[first : first + BATCH],  # IN
                np.empty(LEVELS, np.int64), np.empty(LEVELS),
                cols[first : first + BATCH], values[first : first + BATCH],  # OUT
            )  # fmt: skip
            if block % workers.threads == 0:
                beat()

        workers.deal(search, -(-rows.size // BATCH))
        found = cols >= 0
        cols[found] = self.ids[cols[found]]
        return cols, values


# -- the tree --------------------------------------------------------------------------------------


@kernel
def split(points, ids, levels, box):
    """Order the points along the tree: each node is halved across its longest side."""
    count, width = points.shape
    for level in range(levels + 1):
        for k in range(1 << level):
            first, last = (k * count) >> level, ((k + 1) * count) >> level
            node = (1 << level) + k
            side, longest = 0, -1.0
            for axis in range(width):
                low, high = np.inf, -np.inf
                for place in range(first, last):
                    x = points[ids[place], axis]
                    low = min(low, x)
                    high = max(high, x)
                box[node, 0, axis] = low
                box[node, 1, axis] = high
                if high - low > longest:
                    side, longest = axis, high - low
            if level < levels:
                middle = ((2 * k + 1) * count) >> (level + 1)
                part(points, ids, side, first, last - 1, middle)


@kernel
def part(points, ids, side, first, last, middle):
    """Order a range so that no point before ``middle`` is behind one after it (Hoare)."""
    while first < last:
        pivot = points[ids[(first + last) >> 1], side]
        low, high = first, last
        while low <= high:
            while points[ids[low], side] < pivot:
                low += 1
            while points[ids[high], side] > pivot:
                high -= 1
            if low <= high:
                ids[low], ids[high] = ids[high], ids[low]
                low += 1
                high -= 1
        if middle <= high:
            last = high
        elif middle >= low:
            first = low
        else:
            return


@kernel
def raise_nodes(values, levels, top):
    """Write the greatest value of each node's points."""
    count = values.size
    for k in range(1 << levels):
        most = -np.inf
        for place in range((k * count) >> levels, ((k + 1) * count) >> levels):
            most = max(most, values[place])
        top[(1 << levels) + k] = most
    for node in range((1 << levels) - 1, 0, -1):
        top[node] = max(top[2 * node], top[2 * node + 1])


@kernel
def fit_slopes(points, price, levels, box, steepest, slope, rest, memory):
    """Fit a linear function to the prices of each node; write its slope, and what exceeds it most.

    The function is 0 in the middle of the box. Prices of distances have no slope above 1.
    """
    count, width = points.shape
    squares, middle, sides = memory[:, 2:], memory[:, 0], memory[:, 1]
    for node in range(1, 2 << levels):
        level = 0
        while node >= 2 << level:
            level += 1
        k = node - (1 << level)
        first, last = (k * count) >> level, ((k + 1) * count) >> level
        middle[:] = 0.0
        mean = 0.0
        for place in range(first, last):
            mean += price[place] / (last - first)
            for axis in range(width):
                middle[axis] += points[place, axis] / (last - first)
        squares[:] = 0.0
        sides[:] = 0.0
        for place in range(first, last):
            for axis in range(width):
                step = points[place, axis] - middle[axis]
                sides[axis] += step * (price[place] - mean)
                for other in range(axis + 1):
                    squares[axis, other] += step * (points[place, other] - middle[other])
        solve_lower(squares, sides)
        length = 0.0
        for axis in range(width):
            length += sides[axis] * sides[axis]
        if not length < 1e12 * steepest:
            length = 0.0
            sides[:] = 0.0
        shrink = 1.0 / max(np.sqrt(length) / steepest, 1.0)
        for axis in range(width):
            slope[node, axis] = shrink * sides[axis]
        most = -np.inf
        for place in range(first, last):
            value = price[place]
            magnitude = abs(value)
            for axis in range(width):
                center = 0.5 * (box[node, 0, axis] + box[node, 1, axis])
                rise = slope[node, axis] * (points[place, axis] - center)
                value -= rise
                magnitude += abs(rise)
            most = max(most, value + ROUNDING * magnitude)
        rest[node] = most


@kernel
def solve_lower(squares, sides):
    """Solve for a few unknowns by Cholesky's method; the lower half of the matrix is given."""
    width = sides.size
    ridge = 0.0
    for k in range(width):
        ridge += RIDGE * squares[k, k]
    for k in range(width):
        squares[k, k] += ridge
        for j in range(k + 1):
            total = squares[k, j]
            for i in range(j):
                total -= squares[k, i] * squares[j, i]
            if j < k:
                squares[k, j] = total / squares[j, j] if squares[j, j] > 0 else 0.0
            else:
                squares[k, k] = np.sqrt(max(total, 0.0))
    for k in range(width):
        for j in range(k):
            sides[k] -= squares[k, j] * sides[j]
        sides[k] = sides[k] / squares[k, k] if squares[k, k] > 0 else 0.0
    for k in range(width - 1, -1, -1):
        for j in range(k + 1, width):
            sides[k] -= squares[j, k] * sides[j]
        sides[k] = sides[k] / squares[k, k] if squares[k, k] > 0 else 0.0


# -- searches --------------------------------------------------------------------------------------


@kernel
def step_of(x, box, node, k, sign):
    """Return the least difference from a coordinate in the box; the greatest if the sign is -1."""
    if sign > 0:
        return max(max(box[node, 0, k] - x, x - box[node, 1, k]), 0.0)
    return max(box[node, 1, k] - x, x - box[node, 0, k])


@kernel
def scaled_root_of(X, row, box, node, sign, root):
    """Do as `scaled_root` of `distances` does, for the point that bounds a box."""
    is_small = root <= LEAST_ROOT
    factor = SCALE if is_small else 1 / SCALE
    total = 0.0
    for k in range(X.shape[1]):
        step = step_of(X[row, k], box, node, k, sign) * factor
        total += step * step
    return near_root(np.sqrt(total) / factor, is_small)


@kernel
def bound_of(X, row, box, node, metric, scale, sign, has_offsets, offset, added):
    """No more than any cost of a point in the box; costs are negated if the sign is -1."""
    total = 0.0
    for k in range(X.shape[1]):
        step = step_of(X[row, k], box, node, k, sign)
        if metric <= 1:
            total += step * step
        elif metric == 2:
            total += step
        else:
            total = max(total, step)
    if metric == 1:
        total = np.sqrt(total)
        is_least = total == 0 and sign > 0  # then no distance is below it
        if not (is_least or LEAST_ROOT < total < LARGEST_ROOT):
            total = scaled_root_of(X, row, box, node, sign, total)
    total *= scale
    if has_offsets:
        total += offset + (added[node, 0] if sign > 0 else added[node, 1])
    return sign * total


@kernel
def sloped_bound_of(X, row, box, node, scale, slope, rest):
    """No more than any distance less price of a point in the box, but for rounding.

    The distance from x less the linear part of the prices is convex. So it is nowhere below its
    tangent plane at the middle of the box.
    """
    total = 0.0
    for k in range(X.shape[1]):
        step = 0.5 * (box[node, 0, k] + box[node, 1, k]) - X[row, k]
        total += step * step
    total = np.sqrt(total)
    if 0 < total <= LEAST_ROOT or total >= LARGEST_ROOT:
        return -np.inf  # its squares may have lost digits
    bound = scale * total - rest[node]
    inverse = scale / total if total > 0 else 0.0
    for k in range(X.shape[1]):
        step = 0.5 * (box[node, 0, k] + box[node, 1, k]) - X[row, k]
        half = 0.5 * (box[node, 1, k] - box[node, 0, k])
        bound -= abs(step * inverse - slope[node, k]) * half
    return bound


@kernel
def sloped_square_of(X, row, box, node, scale, slope, rest, offset):
    """No more than any squared distance and offset less price of a point in the box.

    A square less the linear part of the prices is least where its derivative is 0, or at the end of
    the box that is nearest to that.
    """
    total = offset - rest[node]
    magnitude = abs(offset) + abs(rest[node])
    for k in range(X.shape[1]):
        low, high = box[node, 0, k], box[node, 1, k]
        y = min(max(X[row, k] + 0.5 * slope[node, k] / scale, low), high)
        square = scale * (X[row, k] - y) ** 2
        rise = slope[node, k] * (y - 0.5 * (low + high))
        total += square - rise
        magnitude += square + abs(rise)
    return total - ROUNDING * magnitude - TINY


@kernel
def least(
    rows, X, row_offset, Y, col_offset, price, box, added, top, levels, metric, scale, sign,
    shown_X, shown_Y, shown_price, shown_metric, shown_scale, shown_sign, slope, rest, shift,
    margin, error,
    bound, nodes, bounds, cols, values,
):  # fmt: skip
    """Write the places of the columns with the least costs less prices of some rows.

    If there is a frame, ``shift`` has a number for each row.
    """
    count = Y.shape[0]
    has_offsets, is_framed = row_offset.size > 0, shift.size > 0
    has_shown_offsets = has_offsets and not is_framed
    has_slopes, is_square = rest.size > 0, shown_metric == 0
    for number in range(rows.size):
        row = rows[number]
        offset = row_offset[row] if has_offsets else 0.0
        most = bound[number]
        limit = most
        if is_framed:
            limit = most - shift[row]
            limit += margin + error * (abs(most) + abs(shift[row]))
        waiting = 1
        nodes[0] = 1
        bounds[0] = -np.inf
        while waiting:
            waiting -= 1
            if bounds[waiting] >= limit:
                continue
            node = nodes[waiting]
            if has_slopes and not is_square:
                steep = sloped_bound_of(X, row, box, node, scale, slope, rest)
                if has_offsets:
                    steep += offset + added[node, 0]
                if steep - margin >= limit:
                    continue
            if node < 1 << levels:
                left, right = 2 * node, 2 * node + 1
                if has_slopes and is_square:
                    here, there = 0.0, 0.0
                    if has_shown_offsets:
                        here, there = offset + added[left, 0], offset + added[right, 0]
                    one = sloped_square_of(shown_X, row, box, left, shown_scale, slope, rest, here)
                    two = sloped_square_of(
                        shown_X, row, box, right, shown_scale, slope, rest, there
                    )
                else:
                    one = bound_of(
                        shown_X, row, box, left, shown_metric, shown_scale, shown_sign,
                        has_shown_offsets, offset, added,
                    )  # fmt: skip
                    two = bound_of(
                        shown_X, row, box, right, shown_metric, shown_scale, shown_sign,
                        has_shown_offsets, offset, added,
                    )  # fmt: skip
                    one = difference_below(one, top[left])
                    two = difference_below(two, top[right])
                if one <= two:
                    left, right, one, two = right, left, two, one
                if one < limit:
                    nodes[waiting], bounds[waiting] = left, one
                    waiting += 1
                if two < limit:
                    nodes[waiting], bounds[waiting] = right, two
                    waiting += 1
                continue
            k = node - (1 << levels)
            for place in range((k * count) >> levels, ((k + 1) * count) >> levels):
                if is_framed:
                    shown = cost_of(shown_X, row, shown_Y, place, 0, 1.0, 1.0, False, 0.0, 0.0)
                    if shown - shown_price[place] >= limit:
                        continue
                other = col_offset[place] if has_offsets else 0.0
                cost = cost_of(
                    X, row, Y, place, metric, scale, sign, has_offsets, offset, other
                )  # fmt: skip
                value = difference_below(cost, price[place])
                if value >= most:
                    continue
                last = insert(value, place, values[number], cols[number])
                if last < most:
                    most = last
                    limit = most
                    if is_framed:
                        limit = most - shift[row]
                        limit += margin + error * (abs(most) + abs(shift[row]))
