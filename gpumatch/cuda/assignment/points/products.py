"""The cheapest columns of points in many dimensions at given prices, by matrix products.

A product of two matrices tells each squared distance, less the price, up to an error that is
bounded here, even by tensor cores that keep 11 bits of each factor. So it finds the columns of each
row that may be cheapest (products.cu). Their costs are computed again, by the steps of
`gpumatch.costs.points`. A row that may have other columns below its bound is computed whole.

Lists are kept. When prices change, a list is renewed only if a column that is not listed may have
come below the bound.

Device memory: two gigabytes for products, ten for a million points of thousands of coordinates,
copies of the points in float32, and some 1,500 bytes a row for its list.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

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
SHARED = 2**30
"""The same where several GPUs search at once. Python, which leads them in turns, is quick enough
for tiles of this size: with `PRODUCTS`, two GPUs took 3.0 s each for half of the products of 2**20
points that one took 4.0 s for."""
MOST_PRODUCTS = 2**31
"""The same where points are so wide that reading them would take longer than writing products."""
WARPS, LEAST = 2**13, 2**12
"""Warps that search at a time if rows are few, and the least columns that one of them reads."""
WHOLE = 2**27
"""Entries of whole rows that are computed at a time: 1 GiB."""
SQUARES = 1e-20, 1e30
"""Squares within which float32 holds all products, and loses none that counts."""
TF32 = 3
"""The mode of cuBLAS in which tensor cores multiply float32; 0 is the mode without."""
UNIT = 2.0**-53
SPLIT = 2.0**-28
"""What three numbers of 11 bits lack, at most, in shares of their sum."""
TILE = 2**26
"""Coordinates that are copied at a time: 512 MiB."""


def lines_of(costs: Costs, at_once: int = PRODUCTS) -> Tiles:
    """The search in all lines, by products if the costs are distances that these tell.

    So many products are made at a time.
    """
    points, function = costs.points, costs.device_function
    if function is not None:
        return FunctionLines(costs, function)
    if points is not None and points.metric in ("sqeuclidean", "euclidean"):
        return Products(costs, points, at_once)
    return Tiles(costs)


class Level(NamedTuple):
    """How products are computed.

    Attributes
    ----------
    number : dtype
    rounds_by : float
        What factors are rounded by, in shares of them, before they are multiplied.
    """

    number: Any
    rounds_by: float


ROUGH = Level(np.dtype(np.float32), 2.0**-11)
"""Tensor cores, which read 11 bits of float32."""
SINGLE, DOUBLE = Level(np.dtype(np.float32), 0.0), Level(np.dtype(np.float64), 0.0)


class Products(Tiles):
    """Squared distances by products of low precision, with an exact look at what is near.

    With h = 1/2 for halved distances and s the sign, the product of the lines (x, 1) and (-2 s h y,
    s h |y|^2 + offset - price) is the cost less the price, and less the row's offset and s h |x|^2,
    which is the same for all columns. For Euclidean distances, the lines are (x, 1, |x|^2) and (-2
    y, |y|^2, 1), and offset and price are put in after the root. A term other than x y is three
    numbers of 11 bits, which no level rounds.

    Products begin with `ROUGH`. If it leaves many rows in doubt, the next level is taken.
    """

    is_exact = True

    def __init__(self, costs: Costs, points: Points, at_once: int = PRODUCTS) -> None:
        super().__init__(costs)
        self.points, self.at_once = points, at_once
        self.is_root = points.metric == "euclidean"
        self.offsets = offsets_of(points)
        self.factor = 1.0 if self.is_root else points.sign * (0.5 if points.is_half else 1.0)
        # A common origin makes squares smaller. What it rounds off is in the error, too.
        width = points.rows.shape[1]
        self._middle = points.cols.mean(axis=0) if points.cols.shape[0] else cp.zeros(width)
        self._squares = tuple(_squares(side, self._middle) for side in (points.rows, points.cols))
        self._greatest = tuple(map(_largest, self._squares))
        self._of_rows = cp.zeros(costs.shape[0])
        if not self.is_root:
            self._of_rows += self.factor * self._squares[0]
        if self.offsets[0].size:
            self._of_rows += points.sign * self.offsets[0]
        size = max(_largest(points.rows), _largest(points.cols))
        self._shift = 64 * UNIT * math.sqrt(width * sum(self._greatest)) * size
        self.near: Any = None  # the columns that each row lists
        self.beyond: Any = None  # a number that no other column's cost less its price is below
        self._before = self.price  # the prices for which that holds
        # TF32 would make products of float32 less exact than the bound of their error says.
        is_exact = os.environ.get("CUPY_TF32", "0") == "0"
        self._levels = [ROUGH, SINGLE, DOUBLE] if is_exact else [ROUGH, DOUBLE]
        if not SQUARES[0] <= sum(self._greatest) <= SQUARES[1]:
            self._levels = [DOUBLE]
        self._take_next_level()

    def _take_next_level(self) -> None:
        """Multiply more exactly from now on."""
        self.level = self._levels.pop(0)
        self.near = None
        width, more = self.points.rows.shape[1], 6 if self.is_root else 3
        self._rows, self._cols = (
            _lines(side, self._middle, scale, more, self.level)
            for side, scale in ((self.points.rows, 1.0), (self.points.cols, -2 * self.factor))
        )
        if self.is_root:
            self._rows[:, width + 3 : width + 6] = _split(self._squares[0], self.level.number)
        self.set_prices(self.price)

    def set_prices(self, price: Any) -> None:
        self.price = price.copy()  # the caller's may change, and it is held against later ones
        (number, rounds_by), width, added = self.level, self.points.rows.shape[1], -price
        if self.offsets[1].size:
            added = added + self.points.sign * self.offsets[1]
        eps, largest = float(np.finfo(number).eps), sum(self._greatest)
        terms = self.factor * self._squares[1]
        if self.is_root:
            self._added = -added.astype(number)
        else:
            self._added = self._cols[:0, 0]
            terms += added
            largest += _largest(added)
        self._cols[:, width : width + 3] = _split(terms, number)
        # Of a product of w + 3 or w + 6 terms, and of factors that are rounded before.
        error = (2 * (width + 8) * eps + SPLIT) * largest + self._shift
        rounded = 2.01 * rounds_by * 2 * abs(self.factor) * math.sqrt(self._greatest[1])
        self.error = error + rounded * cp.sqrt(self._squares[0])
        most = max(abs(self.costs.low), abs(self.costs.high)) + _largest(price) + largest
        most += sum(map(_largest, self.offsets))
        # What numbers are wrong by after roots, offsets and prices.
        self.slack = cp.full(self.error.size, (16 * UNIT + 4 * eps) * most)
        if not self.is_root:
            self.slack += self.error

    def nearest(self, count: int, bound: Any) -> Any:
        """Columns whose costs less prices are nearly the least below the bounds.

        They are candidates, so tensor cores tell enough of their distances.
        """
        count = min(count, MOST, self.costs.shape[1])
        return self._near(cp.arange(self.costs.shape[0]), count, bound)[0]

    def least(self, count: int, bound: Any) -> tuple[Any, Any]:
        while True:
            self._look_again(bound)
            cols, values = self._of_lists(min(count, self.costs.shape[1]), bound)
            doubtful = cp.flatnonzero(cp.minimum(values[:, -1], bound) > self.beyond)
            if not self._levels or doubtful.size <= OFTEN * self.costs.shape[0]:
                break
            self._take_next_level()
        self._search_whole(doubtful, bound, cols, values)
        return cols, values

    def _of_lists(self, count: int, bound: Any) -> tuple[Any, Any]:
        """The cheapest listed columns of each row below its bound, and their exact numbers."""
        nrows = self.costs.shape[0]
        cols = cp.full((nrows, count), -1, np.int32)
        values = cp.full((nrows, count), math.inf)
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
        self.near[stale], last = self._near(stale, kept, none)
        # No pair that is not listed is below the last number of the row, but for the error.
        self.beyond[stale] = math.inf
        if kept < ncols:
            self.beyond[stale] = last - self.slack[stale] + self._of_rows[stale]

    def _near(self, rows: Any, kept: int, bound: Any) -> tuple[Any, Any]:
        """The columns of these rows with the least numbers, and the last of these numbers."""
        ncols, number = self.costs.shape[1], self.level.number
        multiply = rough_product if self.level.rounds_by else _product
        near = cp.full((rows.size, kept), -1, np.int32)
        low = cp.full((rows.size, kept), math.inf, number)
        moved = _above(bound + self.slack[rows] - self._of_rows[rows], number)
        error = _above(self.error[rows], number)
        wide = min(self.points.rows.shape[1] // 2, MOST_PRODUCTS // max(ncols, 1))
        step = max(1, self.at_once // max(ncols, 1), wide)
        for begin in range(0, rows.size if kept else 0, step):
            tile = slice(begin, begin + step)
            products = multiply(self._rows[rows[tile]], self._cols)
            parts = max(1, min(WARPS // products.shape[0], ncols // LEAST))
            found, limits = (near[tile], low[tile]), (error[tile], moved[tile])
            if parts == 1:
                self._find(products, 1, self.is_root, limits, *found)
                continue
            shape = products.shape[0], parts * kept
            cols, values = cp.empty(shape, np.int32), cp.empty(shape, number)
            self._find(products, parts, self.is_root, limits, cols, values)
            self._find(values, 1, False, limits, *found)
            place = near[tile]
            near[tile] = cp.where(place < 0, -1, cp.take_along_axis(cols, cp.maximum(place, 0), 1))
        return near, low[:, -1].astype(np.float64) if kept else cp.empty(rows.size)

    def _find(
        self, numbers: Any, parts: int, is_root: bool, limits: tuple[Any, Any], near: Any, low: Any
    ) -> None:
        """Write the least numbers of each part of each row, and their places."""
        nrows, ncols = numbers.shape
        number = self.level.number
        kernels_for(SOURCE, Real=number)["find_near<{Real}>"](
            (blocks_for(MOST * nrows * parts),),
            (_BLOCK,),
            (
                *(numbers, np.int32(nrows), np.int32(ncols), np.int32(parts)),  # IN
                *(np.int32(is_root), number.type(self.points.sign), limits[0], self._added),
                limits[1],
                np.int32(near.shape[1] // parts),
                *(near, low),  # OUT
            ),
        )

    def _search_whole(self, doubtful: Any, bound: Any, cols: Any, values: Any) -> None:
        """Find the cheapest columns of rows of which all costs are computed."""
        ncols, none = self.costs.shape[1], cp.zeros_like(self.price)
        step = max(1, WHOLE // ncols)
        for begin in range(0, doubtful.size, step):
            rows = doubtful[begin : begin + step]
            lines = differences_below(distances_of_rows(self.points, rows), self.price)
            own, found, costs = nearest_of(lines, math.inf, none, bound[rows], cols.shape[1])
            cols[rows], values[rows] = -1, math.inf
            cols[rows[own], ranks(own)] = found
            values[rows[own], ranks(own)] = costs


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


def _above(values: Any, number: Any) -> Any:
    """Numbers of a type that are no less than these."""
    return cp.nextafter(values.astype(number), number.type(math.inf))


def _squares(points: Any, middle: Any) -> Any:
    """The squares of the distances from the middle, without a copy of all points."""
    squares = cp.empty(points.shape[0])
    for tile in _tiles(points):
        part = points[tile] - middle
        squares[tile] = cp.einsum("ij,ij->i", part, part)
    return squares


def _lines(points: Any, middle: Any, scale: float, more: int, level: Level) -> Any:
    """The points about the middle, times a number, and so many coordinates 1 more.

    Coordinates 0 follow, so that their number is a multiple of 4: tensor cores want lines that
    begin at multiples of 16 bytes.
    """
    count, width = points.shape
    lines = cp.zeros((count, -(-(width + more) // 4) * 4), level.number)
    lines[:, width : width + more] = 1
    for tile in _tiles(points):
        part = ((points[tile] - middle) * scale).astype(level.number)
        lines[tile, :width] = _rounded(part) if level.rounds_by else part
    return lines


def _rounded(values: Any) -> Any:
    """The nearest numbers of 11 bits."""
    bits = values.view(np.uint32) + np.uint32(0x1000)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


def _tiles(points: Any) -> Iterator[slice]:
    """Ranges of points that have `TILE` coordinates in all."""
    step = max(1, TILE // points.shape[1])
    return (slice(first, first + step) for first in range(0, points.shape[0], step))


def _split(values: Any, number: Any) -> Any:
    """Three numbers each whose sum is the value; of float32, with 11 bits, so nearly its value."""
    parts = cp.zeros((values.size, 3), number)
    if number == np.float64:
        parts[:, 0] = values
        return parts
    for place in range(3):
        part = (values.astype(number).view(np.uint32) & np.uint32(0xFFFFE000)).view(number)
        parts[:, place] = part
        values = values - part
    return parts
