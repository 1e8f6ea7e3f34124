"""The columns that are cheapest for each row at given prices, by computing all pairs in tiles.

Points in many dimensions go by matrix products first: a product tells each squared distance up to
an error that is bounded here, so it finds all pairs that may be below a bound. These few are
computed again, by the steps of `gpumatch.costs.points`. A line with more such pairs than are kept
is computed whole.

A search keeps what it has learnt of each row: its cheapest columns, and a bound of all others. When
it is asked again at other prices, most rows need only these columns and those whose prices have
risen most. In 64 dimensions, a pricing of 10,000 points then takes 0.03 to 0.05 s of processor
time, in place of 0.9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Costs, Points
from gpumatch.cpu.assignment.points.distances import fill_distances, offsets_of
from gpumatch.cpu.assignment.points.least import insert
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.error_free import difference_below
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.numeric.fair_duals import differences_below

__all__ = ["Lines", "lines_of"]

SPARE = 16
"""Pairs that a line keeps beyond the count that the caller wants.

Products are inexact, and what is kept tells later that no other pair is below a bound.
"""
RISEN = 32
"""One of so many columns, those whose prices have risen most, are multiplied for known rows."""
OFTEN = 1 / 16
"""The share of the lines that a search may compute whole before products of float64 are taken."""
PRODUCTS = 2**22
"""Products that are made at a time."""
WHOLE = 2**18
"""Pairs of lines that are computed whole at a time, by each thread: 2 MiB."""
LEAST_SQUARE, LARGEST_SQUARE = 1e-30, 1e30
"""Squares between which products of float32 neither overflow nor lose digits that matter."""
UNIT = 2.0**-53


def lines_of(costs: Costs) -> Lines:
    """The search in all lines, by products if the costs are distances that these tell."""
    points = costs.points
    if points is not None and points.metric in ("sqeuclidean", "euclidean"):
        return _Products(costs, points)
    return Lines(costs)


class Lines:
    """All pairs of costs, computed in tiles of rows.

    A function of the caller is called by one thread at a time. Distances are computed by all.
    """

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.price = np.zeros(costs.shape[1], np.int64 if costs.is_integer else np.float64)

    def set_prices(self, price: np.ndarray) -> None:
        """Take other prices of the columns."""
        self.price = price.astype(self.price.dtype)

    def nearest(
        self,
        count: int,
        bounds: tuple[np.ndarray, np.ndarray],
        workers: Workers,
        beat: Callable[[], None],
    ) -> tuple[np.ndarray, np.ndarray]:
        """The cheapest columns of each row and rows of each column, below their bounds.

        The order is that of inexact costs. Each pair is computed once.
        """
        nrows, ncols = self.costs.shape
        far = self.costs.far
        of_rows = np.full((nrows, min(count, ncols)), -1, np.int32)
        values = np.full(of_rows.shape, far, self.price.dtype)
        # Each thread has lists of its own for the columns.
        parts = [
            (
                np.full((ncols, min(count, nrows)), -1, np.int32),
                np.full((ncols, min(count, nrows)), far, self.price.dtype),
                bounds[1].astype(self.price.dtype),
            )
            for _ in range(self._threads(workers))
        ]

        def search(worker: int, tile: slice, products: Any) -> None:
            costs = self._inexact(tile, bounds[0], products)
            choose(costs, bounds[0][tile], of_rows[tile], values[tile])
            choose_across(costs, tile.start, *parts[worker])

        self._deal(search, workers, beat)
        if len(parts) == 1:
            return of_rows, parts[0][0]
        found = np.concatenate([part[0] for part in parts], axis=1)
        least = np.concatenate([part[1] for part in parts], axis=1)
        order = np.argsort(least, axis=1, kind="stable")[:, : min(count, nrows)]
        return of_rows, np.take_along_axis(found, order, 1)

    def least(
        self,
        rows: np.ndarray | None,
        count: int,
        bound: np.ndarray,
        workers: Workers,
        beat: Callable[[], None],
    ) -> tuple[np.ndarray, np.ndarray]:
        """The columns with the least costs less prices of all rows; see `Tree.least`."""
        nrows, ncols = self.costs.shape
        count = min(count, ncols)
        cols = np.full((nrows, count), -1, np.int32)
        values = np.full((nrows, count), self.costs.far, self.price.dtype)
        self._find(bound, cols, values, workers, beat)
        self._refine()
        return cols, values

    def _find(
        self,
        bound: np.ndarray,
        cols: np.ndarray,
        values: np.ndarray,
        workers: Workers,
        beat: Callable[[], None],
    ) -> None:
        """Write the columns with the least costs less prices of all rows, and these numbers."""

        def search(_: int, tile: slice, products: Any) -> None:
            self._search(tile, products, bound[tile], cols[tile], values[tile])

        self._deal(search, workers, beat)

    def _refine(self) -> None:
        """Be more exact from now on, if that saves time."""

    def _threads(self, workers: Workers) -> int:
        return 1 if self.costs.points is None else workers.threads

    def _deal(
        self, search: Callable[[int, slice, Any], None], workers: Workers, beat: Callable[[], None]
    ) -> None:
        """Search all tiles, in turns of the workers; the caller's thread beats."""
        tiles, threads = list(self.costs.tiles()), self._threads(workers)

        def turn(number: int) -> None:
            search(number % threads, tiles[number], None)
            if number % threads == 0:
                beat()

        if threads == 1:
            for number in range(len(tiles)):
                turn(number)
        else:
            workers.deal(turn, len(tiles))

    def _search(
        self,
        tile: slice,
        products: Any,
        bound: np.ndarray,
        cols: np.ndarray,
        values: np.ndarray,
    ) -> None:
        choose(self._reduced(self.costs.tile(tile)[2]), bound, cols, values)

    def _inexact(self, tile: slice, bound: np.ndarray, products: Any) -> np.ndarray:
        """The costs of some rows, or what puts columns and rows in nearly the same order."""
        return np.ascontiguousarray(self.costs.tile(tile)[2], self.price.dtype)

    def _reduced(self, costs: np.ndarray) -> np.ndarray:
        """The costs less prices of some rows; those of floats are rounded down."""
        if self.price.dtype.kind == "i":
            return costs - self.price
        reduced = np.array(costs, np.float64, order="C")  # a function may return its own array
        lower(reduced, self.price)
        return reduced


class _Products(Lines):
    """Squared distances by products of float32, with an exact look at what is near."""

    def __init__(self, costs: Costs, points: Points) -> None:
        super().__init__(costs)
        self.points = points
        self.offsets = offsets_of(points)
        # A common origin makes squares smaller. What it rounds off is in the error, too.
        width = points.rows.shape[1]
        middle = points.cols.mean(axis=0) if points.cols.shape[0] else np.zeros(width)
        rows, squares = _with_squares(points.rows - middle)
        cols, others = _with_squares(points.cols - middle)
        # The product of a line (x, |x|^2, 1) and a line (-2 y, 1, |y|^2) is |x - y|^2.
        rows[:, width] = squares
        cols[:, :width] *= -2.0
        cols[:, width + 1] = others
        largest = squares.max(initial=0) + others.max(initial=0)
        size = max(abs(side).max(initial=0.0) for side in (points.rows, points.cols))
        self._both, self.whole = (rows, cols), 0
        self._known: list[_Known] = []
        self._shift = 64 * UNIT * np.sqrt(width * largest) * size
        self._scale = 8 * (width + 8) * largest
        is_in_range = LEAST_SQUARE < largest < LARGEST_SQUARE
        self._take(np.float32 if is_in_range else np.float64)

    def _refine(self) -> None:
        if self.number == np.float32 and self.whole > OFTEN * self.costs.shape[0]:
            self._take(np.float64)
        self.whole = 0

    def _take(self, number: Any) -> None:
        """Multiply numbers of this type from now on."""
        self.number = number
        self.rows, self.cols = (side.astype(number, copy=False) for side in self._both)
        self.error = self._scale * np.finfo(number).eps / 2 + self._shift

    def _deal(
        self, search: Callable[[int, slice, Any], None], workers: Workers, beat: Callable[[], None]
    ) -> None:
        """Search all rows. The threads of BLAS multiply, and the workers look at the products."""
        self._multiply(self.rows, self.cols, search, workers, beat)

    def _multiply(
        self,
        rows: np.ndarray,
        cols: np.ndarray,
        search: Callable[[int, slice, Any], None],
        workers: Workers,
        beat: Callable[[], None],
    ) -> None:
        """Multiply some lines by others, and search the products in ranges of these rows."""
        step = max(workers.threads, PRODUCTS // max(cols.shape[0], 1))
        for begin in range(0, rows.shape[0], step):
            products = rows[begin : begin + step] @ cols.T

            def turn(worker: int, begin: int = begin, products: Any = products) -> None:
                count = products.shape[0]
                first, last = (count * k // workers.threads for k in (worker, worker + 1))
                search(worker, slice(begin + first, begin + last), products[first:last])

            workers.deal(turn, workers.threads)
            beat()

    def _inexact(self, tile: slice, bound: np.ndarray, products: Any) -> np.ndarray:
        p, squares = self.points, products
        row_offset, col_offset = self.offsets
        if max(abs(part).max(initial=0) for part in self.offsets) > LARGEST_SQUARE:
            squares = squares.astype(np.float64, copy=False)  # float32 would be infinite
        if row_offset.size or bool((bound < np.inf).any()):  # else the order is that of squares
            np.maximum(squares, 0, out=squares)
            if p.metric == "euclidean":
                np.sqrt(squares, out=squares)
            if p.is_half:
                squares *= 0.5
            if row_offset.size:
                squares += (row_offset[tile, None] + col_offset).astype(squares.dtype)
        if p.sign < 0:
            np.negative(squares, out=squares)
        return squares

    def _find(
        self,
        bound: np.ndarray,
        cols: np.ndarray,
        values: np.ndarray,
        workers: Workers,
        beat: Callable[[], None],
    ) -> None:
        """Find the least bounds. Rows that know enough of the last search take few products.

        A search keeps the columns of the least bounds of each row, and the bound of all others. A
        row needs no new products if that bound, less the largest rise of a price, is at least the
        bound of this call: then no other column is below it.
        """
        left = np.ones(cols.shape[0], bool)
        known, self._known = self._known, []
        for one in known:
            one = self._answered(one, bound, cols, values, workers, beat)
            if one.rows.size:
                left[one.rows] = False
                self._known.append(one)
        asked = np.flatnonzero(left)
        if asked.size:
            self._known.append(self._asked(asked, bound, cols, values, workers, beat))

    def _asked(
        self,
        rows: np.ndarray,
        bound: np.ndarray,
        cols: np.ndarray,
        values: np.ndarray,
        workers: Workers,
        beat: Callable[[], None],
    ) -> _Known:
        """Search all columns of some rows, and write what is found; return what is known then."""
        p, count, ncols = self.points, cols.shape[1], self.costs.shape[1]
        kept = min(count + SPARE, ncols)
        near = np.full((rows.size, kept), -1, np.int32)
        below = np.full(near.shape, np.inf)
        row_offset, col_offset = self.offsets

        def search(_: int, part: slice, products: Any) -> None:
            ids = rows[part]
            choose_near(
                products, self.error, p.metric == "euclidean",  # IN
                0.5 if p.is_half else 1.0, p.sign,  # IN
                row_offset[ids] if row_offset.size else row_offset, col_offset, self.price,  # IN
                self._slack(), np.full(ids.size, np.inf),  # IN
                near[part], below[part],  # OUT
            )  # fmt: skip
            self._write(ids, near[part], below[part] < bound[ids, None], bound, cols, values)
            # No pair that was not kept is below the last number of the line.
            last = below[part, -1]
            is_full = (kept < ncols) & (last < bound[ids]) & (values[ids, -1] > last)
            self._search_whole(ids[is_full], bound, cols, values)
            self.whole += int(np.count_nonzero(is_full))

        mine = self.rows if rows.size == self.rows.shape[0] else self.rows[rows]
        self._multiply(mine, self.cols, search, workers, beat)
        floor = below[:, -1].copy() if kept < ncols else np.full(rows.size, np.inf)
        return _Known(rows, near, below, floor, self.price.copy())

    def _search_whole(
        self, rows: np.ndarray, bound: np.ndarray, cols: np.ndarray, values: np.ndarray
    ) -> None:
        """Write what is found for some rows of which all costs are computed."""
        p, step = self.points, max(1, WHOLE // self.costs.shape[1])
        for begin in range(0, rows.size, step):
            some = rows[begin : begin + step]
            own = p._replace(
                rows=p.rows[some], row_offset=None if p.row_offset is None else p.row_offset[some]
            )
            reduced = self._reduced(fill_distances(own, 0, some.size))
            found = np.full((some.size, cols.shape[1]), -1, np.int32)
            least = np.full(found.shape, np.inf)
            choose(reduced, bound[some], found, least)
            cols[some], values[some] = found, least

    def _answered(
        self,
        known: _Known,
        bound: np.ndarray,
        cols: np.ndarray,
        values: np.ndarray,
        workers: Workers,
        beat: Callable[[], None],
    ) -> _Known:
        """Write what is found for those of the known rows that need no search of all columns.

        Return what is known of these. Columns whose prices have risen most are multiplied.
        """
        rises = -differences_below(known.price, self.price)
        rise, risen = 0.0, np.flatnonzero(rises > 0)
        few = rises.size // RISEN
        if risen.size > few:
            rise = float(np.partition(rises, rises.size - few - 1)[rises.size - few - 1])
            risen = np.flatnonzero(rises > rise)
        known = known.of(differences_below(known.floor, rise) >= bound[known.rows])
        if risen.size and known.rows.size:
            known = known.of(
                self._multiplied(known.rows, risen, bound, cols, values, workers, beat)
            )
        is_risen = np.zeros(rises.size, bool)
        is_risen[risen] = True
        is_near = differences_below(known.below, rises[known.near]) < bound[known.rows, None]
        is_near &= ~is_risen[known.near] & (known.near >= 0)
        self._write(known.rows, known.near, is_near, bound, cols, values)
        return known

    def _multiplied(
        self,
        rows: np.ndarray,
        others: np.ndarray,
        bound: np.ndarray,
        cols: np.ndarray,
        values: np.ndarray,
        workers: Workers,
        beat: Callable[[], None],
    ) -> np.ndarray:
        """Write what is found in few columns for some rows; which rows have no more of these."""
        p, kept = self.points, min(cols.shape[1] + SPARE, others.size)
        near = np.full((rows.size, kept), -1, np.int32)
        below = np.full(near.shape, np.inf)
        row_offset, col_offset = self.offsets
        if col_offset.size:
            row_offset, col_offset = row_offset[rows], col_offset[others]

        def search(_: int, part: slice, products: Any) -> None:
            choose_near(
                products, self.error, p.metric == "euclidean",  # IN
                0.5 if p.is_half else 1.0, p.sign,  # IN
                row_offset[part], col_offset, self.price[others],  # IN
                self._slack(), bound[rows[part]],  # IN
                near[part], below[part],  # OUT
            )  # fmt: skip

        self._multiply(self.rows[rows], self.cols[others], search, workers, beat)
        is_whole = (near[:, -1] < 0) | (kept == others.size)
        found = np.where(near >= 0, others[near], -1).astype(np.int32)
        self._write(rows, found, (near >= 0) & is_whole[:, None], bound, cols, values)
        return is_whole

    def _write(
        self,
        rows: np.ndarray,
        near: np.ndarray,
        are_near: np.ndarray,
        bound: np.ndarray,
        cols: np.ndarray,
        values: np.ndarray,
    ) -> None:
        """Compute the pairs of some rows that are marked, and add them to what is written."""
        own, place = are_near.nonzero()
        if not own.size:
            return
        ids, others = rows[own], near[own, place]
        exact = differences_below(self.costs.at(ids, others), self.price[others])
        are_below = exact < bound[ids]
        ids, others, exact = ids[are_below], others[are_below], exact[are_below]
        touched = np.unique(ids)
        before, place = np.nonzero(cols[touched] >= 0)
        ids = np.concatenate([touched[before], ids])
        others = np.concatenate([cols[touched][before, place], others])
        exact = np.concatenate([values[touched][before, place], exact])
        order = np.lexsort((exact, ids))
        ids, others, exact = ids[order], others[order], exact[order]
        place = np.arange(ids.size) - np.searchsorted(ids, ids)
        is_kept = place < cols.shape[1]
        cols[touched], values[touched] = -1, np.inf
        cols[ids[is_kept], place[is_kept]] = others[is_kept]
        values[ids[is_kept], place[is_kept]] = exact[is_kept]

    def _slack(self) -> float:
        """What rounding may add when roots, offsets and prices are put together."""
        most = max(abs(self.costs.low), abs(self.costs.high)) + abs(self.price).max(initial=0)
        return 16 * UNIT * (most + sum(abs(part).max(initial=0) for part in self.offsets))


class _Known(NamedTuple):
    """What is known of some rows from a search at other prices.

    Attributes
    ----------
    rows : int64 array
    near, below : arrays with a line for each row
        Columns, and numbers that are no more than their costs less prices. -1 and inf: no column.
    floor : float64 array
        No more than the cost less price of any other column.
    price : float64 array
        These prices.
    """

    rows: np.ndarray
    near: np.ndarray
    below: np.ndarray
    floor: np.ndarray
    price: np.ndarray

    def of(self, kept: np.ndarray) -> _Known:
        """What is known of the marked rows."""
        if kept.all():
            return self
        rows, near, below, floor, price = self
        return _Known(rows[kept], near[kept], below[kept], floor[kept], price)


def _with_squares(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points with two coordinates 1 more, and the squares of their lengths."""
    lines = np.ones((points.shape[0], points.shape[1] + 2))
    lines[:, :-2] = points
    return lines, np.einsum("ij,ij->i", points, points)


# -- kernels ---------------------------------------------------------------------------------------


@kernel
def lower(values, price):
    """Subtract prices from the costs of some rows, rounded down."""
    for row in range(values.shape[0]):
        for col in range(values.shape[1]):
            values[row, col] = difference_below(values[row, col], price[col])


@kernel
def choose(reduced, bound, cols, values):
    """Write the least values of each line that are below its bound, and their columns."""
    for row in range(reduced.shape[0]):
        most = bound[row]
        for col in range(reduced.shape[1]):
            value = reduced[row, col]
            if value >= most:
                continue
            most = min(most, insert(value, col, values[row], cols[row]))


@kernel
def choose_across(costs, first, cols_found, values, most):
    """Do as `choose` does for columns: of some rows, the first of which has this number.

    ``most`` has a bound for each column, which falls.
    """
    for row in range(costs.shape[0]):
        for col in range(costs.shape[1]):
            value = costs[row, col]
            if value >= most[col]:
                continue
            most[col] = min(most[col], insert(value, first + row, values[col], cols_found[col]))


@kernel
def choose_near(
    squares, error, is_root, scale, sign, row_offset, col_offset, price, slack, bound, cols, values
):
    """Do as `choose` does for squared distances that are wrong by ``error`` at most.

    What is compared is no more than the cost less the price.
    """
    has_offsets = row_offset.size > 0
    for row in range(squares.shape[0]):
        most = bound[row]
        for col in range(squares.shape[1]):
            value = max(np.float64(squares[row, col]) - sign * error, 0.0)
            if is_root:
                value = np.sqrt(value)
            value *= scale
            if has_offsets:
                value += row_offset[row] + col_offset[col]
            value = sign * value - price[col] - slack
            if value >= most:
                continue
            most = min(most, insert(value, col, values[row], cols[row]))
