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

    box[t, 0], box[t, 1]   the least and greatest coordinates of node t
    added[t, 0], [t, 1]    the least and greatest offset
    top[t]                 the largest price
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpumatch.contracts import Points
from gpumatch.cpu.distances import METRICS, cost_of, offsets_of
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.error_free import difference_below
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["Tree"]

LEAF = 12
"""Points of a leaf, at most."""
LEVELS = 48
"""A path down the tree is shorter: 2**31 points have fewer levels."""
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
        split(cols, self.ids, self.levels, self.box)
        self.cols = cols[self.ids]
        row_offset, col_offset = offsets_of(points)
        self.row_offset = row_offset
        self.col_offset = col_offset[self.ids] if col_offset.size else col_offset
        self.added = np.zeros((nodes, 2))
        if col_offset.size:
            raise_nodes(self.col_offset, self.levels, self.added[:, 1])
            raise_nodes(-self.col_offset, self.levels, self.added[:, 0])
            np.negative(self.added[:, 0], out=self.added[:, 0])
        self.asked = np.arange(points.rows.shape[0], dtype=np.int32)
        self.price, self.top = np.zeros(count), np.zeros(nodes)

    def set_prices(self, price: np.ndarray) -> None:
        """Take other prices of the columns."""
        self.price = price[self.ids]
        raise_nodes(self.price, self.levels, self.top)

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
        p = self.points

        def search(block: int) -> None:
            first = block * BATCH
            least(
                rows[first : first + BATCH], p.rows, self.row_offset,  # IN
                self.cols, self.col_offset, self.price, self.box, self.added, self.top,  # IN
                self.levels, METRICS[p.metric], 0.5 if p.is_half else 1.0, p.sign,  # IN
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


# -- searches --------------------------------------------------------------------------------------


@kernel
def bound_of(X, row, box, node, metric, scale, sign, has_offsets, offset, added):
    """No more than any cost of a point in the box; costs are negated if the sign is -1."""
    total = 0.0
    for k in range(X.shape[1]):
        x = X[row, k]
        if sign > 0:
            step = max(box[node, 0, k] - x, x - box[node, 1, k])
            step = max(step, 0.0)
        else:
            step = max(box[node, 1, k] - x, x - box[node, 0, k])
        if metric <= 1:
            total += step * step
        elif metric == 2:
            total += step
        else:
            total = max(total, step)
    if metric == 1:
        total = np.sqrt(total)
    total *= scale
    if has_offsets:
        total += offset + (added[node, 0] if sign > 0 else added[node, 1])
    return sign * total


@kernel
def least(
    rows, X, row_offset, Y, col_offset, price, box, added, top, levels, metric, scale, sign, bound,
    nodes, bounds, cols, values,
):  # fmt: skip
    """Write the places of the columns with the least costs less prices of some rows."""
    count, keep = Y.shape[0], cols.shape[1]
    has_offsets = row_offset.size > 0
    for number in range(rows.size):
        row = rows[number]
        offset = row_offset[row] if has_offsets else 0.0
        most = bound[number]
        waiting = 1
        nodes[0] = 1
        bounds[0] = -np.inf
        while waiting:
            waiting -= 1
            if bounds[waiting] >= most:
                continue
            node = nodes[waiting]
            if node < 1 << levels:
                left, right = 2 * node, 2 * node + 1
                one = bound_of(
                    X, row, box, left, metric, scale, sign, has_offsets, offset, added
                )  # fmt: skip
                two = bound_of(
                    X, row, box, right, metric, scale, sign, has_offsets, offset, added
                )  # fmt: skip
                one = difference_below(one, top[left])
                two = difference_below(two, top[right])
                if one <= two:
                    left, right, one, two = right, left, two, one
                if one < most:
                    nodes[waiting], bounds[waiting] = left, one
                    waiting += 1
                if two < most:
                    nodes[waiting], bounds[waiting] = right, two
                    waiting += 1
                continue
            k = node - (1 << levels)
            for place in range((k * count) >> levels, ((k + 1) * count) >> levels):
                other = col_offset[place] if has_offsets else 0.0
                cost = cost_of(
                    X, row, Y, place, metric, scale, sign, has_offsets, offset, other
                )  # fmt: skip
                value = difference_below(cost, price[place])
                if value >= most:
                    continue
                at = keep - 1
                while at > 0 and values[number, at - 1] > value:
                    values[number, at] = values[number, at - 1]
                    cols[number, at] = cols[number, at - 1]
                    at -= 1
                values[number, at] = value
                cols[number, at] = place
                if values[number, keep - 1] < most:
                    most = values[number, keep - 1]
