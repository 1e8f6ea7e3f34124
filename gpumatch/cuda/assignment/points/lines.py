"""The columns that are cheapest for each row at given prices, by computing all pairs in tiles.

Points in many dimensions go by matrix products first: a product tells each squared distance up to
an error that is bounded here, so it finds all pairs that may be below a bound. These few are
computed again, by the steps of `gpumatch.costs.points`. A row with more such pairs than are kept is
computed whole.

Device memory: two tiles. Products have copies of the points in float32, too.
"""

from __future__ import annotations

import math
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Costs, Points
from gpumatch.cuda.assignment.dense.rows import ArrayRows
from gpumatch.cuda.distances import distances_at, distances_of_rows, offsets_of
from gpumatch.numeric.fair_duals import differences_below

__all__ = ["Products", "Tiles", "lines_of"]

SPARE = 8
"""Pairs that a row keeps beyond the count that the caller wants, because products are inexact."""
OFTEN = 1 / 16
"""The share of the rows that a search may compute whole before products of float64 are taken."""
PRODUCTS = 2**28
"""Products that are made at a time: 1 GiB in float32."""
WHOLE = 2**27
"""Entries of whole rows that are computed at a time: 1 GiB."""
LARGEST_SQUARE = 1e30
"""Squares up to which float32 holds all products."""
UNIT = 2.0**-53


def lines_of(costs: Costs) -> Tiles:
    """The search in all lines, by products if the costs are distances that these tell."""
    points = costs.points
    if points is not None and points.metric in ("sqeuclidean", "euclidean"):
        return Products(costs, points)
    return Tiles(costs)


class Tiles:
    """All pairs of costs, computed in tiles of rows."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.price = cp.zeros(costs.shape[1], np.int64 if costs.is_integer else np.float64)

    def set_prices(self, price: Any) -> None:
        """Take other prices of the columns."""
        self.price = price.astype(self.price.dtype)

    def least(self, count: int, bound: Any) -> tuple[Any, Any]:
        """As of a `Search`. Costs less prices of floats are rounded to nearest."""
        (nrows, ncols), far = self.costs.shape, self.costs.far
        count = min(count, ncols)
        cols = cp.full((nrows, count), -1, np.int32)
        values = cp.full((nrows, count), far, self.price.dtype)
        for tile in self.costs.tiles():
            line = cp.ascontiguousarray(self.costs.tile(tile)[2], self.price.dtype)
            found = _nearest(line, far, self.price, bound[tile], count)
            _place(*found, self.price, cols[tile], values[tile])
        return cols, values

    def least_of_rows(self) -> Any:
        """The least cost less price of each row, rounded down."""
        least = cp.full(self.costs.shape[0], self.costs.far, self.price.dtype)
        for tile in self.costs.tiles():
            line = cp.ascontiguousarray(self.costs.tile(tile)[2], self.price.dtype)
            least[tile] = ArrayRows(line, self.costs.far, lambda: False).least_of_rows(self.price)
        return least


def _nearest(line: Any, far: Any, price: Any, bound: Any, count: int) -> tuple[Any, Any, Any]:
    """Rows, columns and costs of the least costs less prices below the bounds, by rows."""
    return ArrayRows(line, far, lambda: False).nearest(price, cp.ascontiguousarray(bound), count)


def _place(rows: Any, found: Any, costs: Any, price: Any, cols: Any, values: Any) -> None:
    """Write what was found, by rows and least first, into a line for each row."""
    rank = cp.arange(rows.size) - cp.searchsorted(rows, rows)
    cols[rows, rank] = found
    values[rows, rank] = costs - price[found]


class Products(Tiles):
    """Squared distances by products of float32, with an exact look at what is near."""

    def __init__(self, costs: Costs, points: Points) -> None:
        super().__init__(costs)
        self.points = points
        self.offsets = offsets_of(points)
        # A common origin makes squares smaller. What it rounds off is in the error, too.
        width = points.rows.shape[1]
        middle = points.cols.mean(axis=0) if points.cols.shape[0] else cp.zeros(width)
        rows, squares = _with_squares(points.rows - middle)
        cols, others = _with_squares(points.cols - middle)
        # The product of a line (x, |x|^2, 1) and a line (-2 y, 1, |y|^2) is |x - y|^2.
        rows[:, width] = squares
        cols[:, :width] *= -2.0
        cols[:, width + 1] = others
        largest = _largest(squares) + _largest(others)
        size = max(_largest(points.rows), _largest(points.cols))
        self._both, self.whole = (rows, cols), 0
        self._shift = 64 * UNIT * math.sqrt(width * largest) * size
        self._scale = 8 * (width + 8) * largest
        self._take(np.float32 if largest < LARGEST_SQUARE else np.float64)

    def _take(self, number: Any) -> None:
        """Multiply numbers of this type from now on."""
        self.number = number
        self.rows, self.cols = (side.astype(number, copy=False) for side in self._both)
        self.error = self._scale * float(np.finfo(number).eps) / 2 + self._shift

    def least(self, count: int, bound: Any) -> tuple[Any, Any]:
        nrows, ncols = self.costs.shape
        count = min(count, ncols)
        cols = cp.full((nrows, count), -1, np.int32)
        values = cp.full((nrows, count), math.inf)
        across = self.cols.T
        step = max(1, PRODUCTS // max(ncols, 1))
        for begin in range(0, nrows, step):
            tile = slice(begin, begin + step)
            below = self._below(self.rows[tile] @ across, tile)
            self._search(begin, below, bound[tile], cols[tile], values[tile])
        if self.number == np.float32 and self.whole > OFTEN * nrows:
            self._take(np.float64)
        self.whole = 0
        return cols, values

    def _below(self, squares: Any, tile: slice) -> Any:
        """What is no more than the costs without offsets, in place of products."""
        p = self.points
        squares -= self.number(p.sign * self.error)
        cp.maximum(squares, 0, out=squares)
        if p.metric == "euclidean":
            cp.sqrt(squares, out=squares)
        if p.is_half:
            squares *= self.number(0.5)
        if p.sign < 0:
            cp.negative(squares, out=squares)
        return squares

    def _search(self, first: int, below: Any, bound: Any, cols: Any, values: Any) -> None:
        """Find the cheapest columns of some rows, by numbers that are no more than their costs."""
        p, count, ncols = self.points, cols.shape[1], self.costs.shape[1]
        kept = min(count + SPARE, ncols)
        row_offset, col_offset = self.offsets
        price = self.price
        # Offsets of rows move the bounds, and those of columns the prices.
        moved, slack = bound, self._slack()
        if row_offset.size:
            price = price - p.sign * col_offset
            moved = bound - p.sign * row_offset[first : first + below.shape[0]]
        own, others, low = _nearest(below, math.inf, price, moved + slack, kept)
        costs = distances_at(p, own + np.int64(first), others)
        exact = differences_below(costs, self.price[others])
        rank = cp.arange(own.size) - cp.searchsorted(own, own)
        near = cp.full((below.shape[0], kept), -1, np.int32)
        near[own, rank] = others
        least = cp.full(near.shape, math.inf)
        least[own, rank] = cp.where(exact < bound[own], exact, math.inf)
        order = cp.argsort(least, axis=1)[:, :count]
        values[:] = cp.take_along_axis(least, order, 1)
        cols[:] = cp.where(values < math.inf, cp.take_along_axis(near, order, 1), -1)
        if kept == ncols:
            return
        # No pair that was not kept is below the last number of the line.
        is_last = rank == kept - 1
        full, last = own[is_last], others[is_last]
        beyond = low[is_last] - price[last] - slack
        if row_offset.size:
            beyond += p.sign * row_offset[first + full]
        doubtful = full[cp.minimum(values[full, -1], bound[full]) > beyond]
        self.whole += int(doubtful.size)
        for begin in range(0, doubtful.size, max(1, WHOLE // ncols)):
            part = doubtful[begin : begin + max(1, WHOLE // ncols)]
            self._search_whole(first, part, bound, cols, values)

    def _search_whole(self, first: int, rows: Any, bound: Any, cols: Any, values: Any) -> None:
        """Do as `_search` for rows of which all costs are computed."""
        lines = distances_of_rows(self.points, rows + first)
        lines = differences_below(lines, self.price)
        found = cp.full((rows.size, cols.shape[1]), -1, np.int32)
        least = cp.full(found.shape, math.inf)
        none = cp.zeros_like(self.price)
        _place(
            *_nearest(lines, math.inf, none, bound[rows], cols.shape[1]),
            none, found, least,
        )  # fmt: skip
        cols[rows], values[rows] = found, least

    def _slack(self) -> float:
        """What rounding may add when roots, offsets and prices are put together."""
        most = max(abs(self.costs.low), abs(self.costs.high)) + _largest(self.price)
        most += sum(map(_largest, self.offsets))
        return 16 * UNIT * most + 4 * float(np.finfo(self.number).eps) * self._root_size()

    def _root_size(self) -> float:
        """The largest number that the type of the products rounds after they are made."""
        return max(abs(self.costs.low), abs(self.costs.high)) + sum(map(_largest, self.offsets))


def _largest(values: Any) -> float:
    return float(abs(values).max()) if values.size else 0.0


def _with_squares(points: Any) -> tuple[Any, Any]:
    """The points with two coordinates 1 more, and the squares of their lengths."""
    lines = cp.ones((points.shape[0], points.shape[1] + 2))
    lines[:, :-2] = points
    return lines, cp.einsum("ij,ij->i", points, points)
