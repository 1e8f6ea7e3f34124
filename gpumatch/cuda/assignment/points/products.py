"""The cheapest columns of points in many dimensions at given prices, by matrix products.

A product of two matrices in float32 tells each squared distance, less the price, up to an error
that is bounded here. So it finds the columns of each row that may be cheapest (products.cu). Their
costs are computed again, by the steps of `gpumatch.costs.points`. A row that may have other columns
below its bound is computed whole.

Lists are kept. When prices change, a list is renewed only if a column that is not listed may have
come below the bound.

Device memory: two gigabytes for products, copies of the points in float64 and float32, and some
1,500 bytes a row for its list.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Costs, Points
from gpumatch.cuda.assignment.points.device_functions import FunctionLines
from gpumatch.cuda.assignment.points.distances import distances_at, distances_of_rows, offsets_of
from gpumatch.cuda.assignment.points.tiles import Tiles, nearest_of, ranks
from gpumatch.cuda.kernels import Source, blocks_for, kernels_for
from gpumatch.numeric.fair_duals import differences_below

__all__ = ["Products", "lines_of"]

SOURCE = Source(
    "assignment/points/products.cu",
    ("find_near<{Real}>",),
    {"Real": {"float32": "float", "float64": "double"}},
)
_BLOCK = SOURCE.constant("kBlock")

MOST = 32
"""Columns that a row lists at most: the lanes of a warp."""
OFTEN = 1 / 16
"""The share of the rows that a search may compute whole before products of float64 are taken."""
PRODUCTS = 2**28
"""Products that are made at a time: 1 GiB in float32."""
WARPS, LEAST = 2**13, 2**12
"""Warps that search at a time if rows are few, and the least columns that one of them reads."""
WHOLE = 2**27
"""Entries of whole rows that are computed at a time: 1 GiB."""
LARGEST_SQUARE = 1e30
"""Squares up to which float32 holds all products."""
TF32 = 3
"""The mode of cuBLAS in which tensor cores multiply float32; 0 is the mode without."""
UNIT = 2.0**-53


def lines_of(costs: Costs) -> Tiles:
    """The search in all lines, by products if the costs are distances that these tell."""
    points, function = costs.points, costs.device_function
    if function is not None:
        return FunctionLines(costs, function)
    if points is not None and points.metric in ("sqeuclidean", "euclidean"):
        return Products(costs, points)
    return Tiles(costs)


class Products(Tiles):
    """Squared distances by products of float32, with an exact look at what is near.

    With h = 1/2 for halved distances and s the sign, the product of the lines (x, |x|^2, 1) and
    (-2 s h y, s h, s h |y|^2 + offset - price) is the cost less the price and less the row's
    offset. For Euclidean distances, s h is 1 and offset and price are put in after the root.
    """

    is_exact = True

    def __init__(self, costs: Costs, points: Points) -> None:
        super().__init__(costs)
        self.points = points
        self.is_root = points.metric == "euclidean"
        self.offsets = offsets_of(points)
        # A common origin makes squares smaller. What it rounds off is in the error, too.
        width = points.rows.shape[1]
        middle = points.cols.mean(axis=0) if points.cols.shape[0] else cp.zeros(width)
        rows, squares = _with_squares(points.rows - middle)
        cols, self._squares = _with_squares(points.cols - middle)
        factor = 1.0 if self.is_root else points.sign * (0.5 if points.is_half else 1.0)
        rows[:, width] = squares
        cols[:, :width] *= -2.0 * factor
        cols[:, width] = factor
        self._squares *= factor
        self._both = rows, cols
        self._largest = _largest(squares) + _largest(self._squares)
        size = max(_largest(points.rows), _largest(points.cols))
        self._shift = 64 * UNIT * math.sqrt(width * self._largest) * size
        self.near: Any = None  # the columns that each row lists
        self.beyond: Any = None  # a number that no other column's cost less its price is below
        self._before = self.price  # the prices for which that holds
        # TF32 would make products of float32 less exact than the bound of their error says.
        is_exact = os.environ.get("CUPY_TF32", "0") == "0"
        self._take(np.float32 if is_exact and self._largest < LARGEST_SQUARE else np.float64)

    def _take(self, number: Any) -> None:
        """Multiply numbers of this type from now on."""
        self.number = np.dtype(number)
        self._rows, self._cols = (side.astype(number, copy=False) for side in self._both)
        self.set_prices(self.price)

    def set_prices(self, price: Any) -> None:
        self.price = price.copy()  # the caller's may change, and it is held against later ones
        width, added = self.points.rows.shape[1], -price
        if self.offsets[1].size:
            added = added + self.points.sign * self.offsets[1]
        eps = float(np.finfo(self.number).eps)
        largest = self._largest
        if self.is_root:
            self._added = -added.astype(self.number)
            self._cols[:, width + 1] = self._squares
        else:
            self._added = self._cols[:0, 0]
            self._cols[:, width + 1] = self._squares + added
            largest += _largest(added)
        self.error = 4 * (width + 8) * largest * eps + self._shift
        most = max(abs(self.costs.low), abs(self.costs.high)) + _largest(price)
        most += sum(map(_largest, self.offsets))
        # What numbers are wrong by after roots, offsets and prices.
        self.slack = (16 * UNIT + 4 * eps) * most
        if not self.is_root:
            self.slack += self.error

    def nearest(self, count: int, bound: Any) -> Any:
        """Columns whose costs less prices are nearly the least below the bounds.

        They are candidates, so tensor cores tell enough of their distances.
        """
        count = min(count, MOST, self.costs.shape[1])
        multiply = rough_product if self.number == np.float32 else _product
        return self._near(cp.arange(self.costs.shape[0]), count, bound, multiply)[0]

    def least(self, count: int, bound: Any) -> tuple[Any, Any]:
        nrows, ncols = self.costs.shape
        count = min(count, ncols)
        cols = cp.full((nrows, count), -1, np.int32)
        values = cp.full((nrows, count), math.inf)
        self._look_again(bound)
        found = self.near.ravel().astype(np.int64)
        rows = cp.repeat(cp.arange(nrows), self.near.shape[1])
        exact = differences_below(distances_at(self.points, rows, found), self.price[found])
        is_below = cp.flatnonzero(exact < bound[rows])
        rows, found, exact = rows[is_below], found[is_below], exact[is_below]
        order = cp.lexsort(cp.stack([exact, rows.astype(np.float64)]))
        rows, found, exact = rows[order], found[order], exact[order]
        rank = ranks(rows)
        is_kept = cp.flatnonzero(rank < count)
        cols[rows[is_kept], rank[is_kept]] = found[is_kept]
        values[rows[is_kept], rank[is_kept]] = exact[is_kept]
        is_doubtful = cp.minimum(values[:, -1], bound) > self.beyond
        self._search_whole(cp.flatnonzero(is_doubtful), bound, cols, values)
        return cols, values

    def _look_again(self, bound: Any) -> None:
        """Renew the lists of the rows for which a column that is not listed may be below the bound.

        Prices that rise by an amount lower the other columns' costs less prices by no more.
        """
        nrows, ncols = self.costs.shape
        if self.near is None:
            stale = cp.arange(nrows)
            self.near = cp.empty((nrows, min(MOST, ncols)), np.int32)
            self.beyond = cp.empty(nrows)
        else:
            rise = float((self.price - self._before).max()) if ncols else 0.0
            self.beyond -= rise + 4 * UNIT * (abs(rise) + _largest(self.price))
            stale = cp.flatnonzero(self.beyond < bound)
        self._before = self.price
        kept = self.near.shape[1]
        none = cp.full(stale.size, math.inf)
        self.near[stale], last = self._near(stale, kept, none, _product)
        # No pair that is not listed is below the last number of the row, but for the error.
        self.beyond[stale] = math.inf if kept == ncols else last - self.slack
        if kept < ncols and self.offsets[0].size:
            self.beyond[stale] += self.points.sign * self.offsets[0][stale]

    def _near(
        self, rows: Any, kept: int, bound: Any, multiply: Callable[[Any, Any], Any]
    ) -> tuple[Any, Any]:
        """The columns of these rows with the least numbers, and the last of these numbers."""
        ncols = self.costs.shape[1]
        near = cp.full((rows.size, kept), -1, np.int32)
        low = cp.full((rows.size, kept), math.inf, self.number)
        moved = bound + self.slack
        if self.offsets[0].size:
            moved = moved - self.points.sign * self.offsets[0][rows]
        moved = cp.nextafter(moved.astype(self.number), self.number.type(math.inf))
        step = max(1, PRODUCTS // max(ncols, 1))
        for begin in range(0, rows.size if kept else 0, step):
            tile = slice(begin, begin + step)
            products = multiply(self._rows[rows[tile]], self._cols)
            parts = max(1, min(WARPS // products.shape[0], ncols // LEAST))
            found = near[tile], low[tile]
            if parts == 1:
                self._find(products, 1, self.is_root, moved[tile], *found)
                continue
            shape = products.shape[0], parts * kept
            cols, values = cp.empty(shape, np.int32), cp.empty(shape, self.number)
            self._find(products, parts, self.is_root, moved[tile], cols, values)
            self._find(values, 1, False, moved[tile], *found)
            place = near[tile]
            near[tile] = cp.where(place < 0, -1, cp.take_along_axis(cols, cp.maximum(place, 0), 1))
        return near, low[:, -1].astype(np.float64) if kept else cp.empty(rows.size)

    def _find(
        self, numbers: Any, parts: int, is_root: bool, bound: Any, near: Any, low: Any
    ) -> None:
        """Write the least numbers of each part of each row, and their places."""
        nrows, ncols = numbers.shape
        kernels_for(SOURCE, Real=self.number)["find_near<{Real}>"](
            (blocks_for(MOST * nrows * parts),),
            (_BLOCK,),
            (
                *(numbers, np.int32(nrows), np.int32(ncols), np.int32(parts)),  # IN
                *(np.int32(is_root), self.number.type(self.points.sign)),
                *(self.number.type(self.error), self._added, bound),
                np.int32(near.shape[1] // parts),
                *(near, low),  # OUT
            ),
        )

    def _search_whole(self, doubtful: Any, bound: Any, cols: Any, values: Any) -> None:
        """Find the cheapest columns of rows of which all costs are computed."""
        (nrows, ncols), none = self.costs.shape, cp.zeros_like(self.price)
        step = max(1, WHOLE // ncols)
        for begin in range(0, doubtful.size, step):
            rows = doubtful[begin : begin + step]
            lines = differences_below(distances_of_rows(self.points, rows), self.price)
            own, found, costs = nearest_of(lines, math.inf, none, bound[rows], cols.shape[1])
            cols[rows], values[rows] = -1, math.inf
            cols[rows[own], ranks(own)] = found
            values[rows[own], ranks(own)] = costs
        if self.number == np.float32 and doubtful.size > OFTEN * nrows:
            self._take(np.float64)
            self.near = None


def _product(rows: Any, cols: Any) -> Any:
    return rows @ cols.T


def rough_product(rows: Any, cols: Any) -> Any:
    """The products of each of some lines of float32 with each of others, by tensor cores.

    Their factors are rounded to 11 bits, and sums are those of float32.
    """
    from cupy import cublas as routines
    from cupy.cuda import device
    from cupy_backends.cuda.libs import cublas

    handle = device.get_cublas_handle()
    products = cp.empty((rows.shape[0], cols.shape[0]), rows.dtype)
    cublas.setMathMode(handle, TF32)
    try:
        routines.gemm("N", "T", rows, cols, out=products)
    finally:
        cublas.setMathMode(handle, 0)
    return products


def _largest(values: Any) -> float:
    return float(abs(values).max()) if values.size else 0.0


def _with_squares(points: Any) -> tuple[Any, Any]:
    """The points with two coordinates 1 more, and the squares of their lengths.

    Coordinates 0 follow, so that their number is a multiple of 4: tensor cores want lines that
    begin at multiples of 16 bytes.
    """
    count, width = points.shape
    lines = cp.zeros((count, -(-(width + 2) // 4) * 4))
    lines[:, :width] = points
    lines[:, width : width + 2] = 1
    return lines, cp.einsum("ij,ij->i", points, points)
