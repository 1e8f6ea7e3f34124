"""The rows of a dense matrix on one rank or one GPU, for `dense.core` and `gpumatch.distributed`.

`ArrayRows` has the methods of a rank's rows on the CPU, by operations on whole arrays. What the
core needs often, it computes by the kernels of nearest_columns.cu. In tests, its matrix may be
NumPy's. If ``beat`` returns True, a call stops before the remaining rows.

Operations on whole arrays read tiles of `TILE` entries. An entry of a tile takes up to 32 bytes of
temporary memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpumatch.cuda.kernels import COSTS, Source, blocks_for, kernels_for
from gpumatch.numeric.arrays import array_module, array_of
from gpumatch.numeric.fair_duals import differences_below

__all__ = ["TILE", "ArrayRows", "rows_of", "use_own_device"]

NEAREST = Source(
    "assignment/dense/nearest_columns.cu",
    ("nearest_columns<{Cost}>", "least_of_rows<{Cost}>", "least_of_columns<{Cost}>"),
    {"Cost": COSTS},
)

TILE = 2**25
"""The entries of a tile: 1 GiB of temporary memory."""
ROUNDS = 3
"""The rounds in which rows that lost a column to another row of this rank try again."""
SHARES = 64
"""The most parts of the rows that blocks read for the same columns."""
_BLOCK, MOST = NEAREST.constant("kBlock"), NEAREST.constant("kMost")


def use_own_device(rank: int) -> None:
    """Select the GPU with this number, modulo the number of GPUs, for this process."""
    import cupy

    cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()


def rows_of(entries: Any, far: Any, beat: Callable[[], bool]) -> ArrayRows:
    """`ArrayRows` of a matrix."""
    return ArrayRows(entries, far, beat)


class ArrayRows:
    """Rows of a matrix, with ``far`` for forbidden pairs.

    A pair of slack s, whose row joined a tree at time t, is tight from time s + t on. Times are at
    most ``far``, which is also the time of a forbidden pair.

    The methods of levels are about few rows: `least_slacks`, `match_tight` and `offer` have all
    arrays but the matrix on the host. The arrays of the other methods are where the matrix is.

    Attributes
    ----------
    most : int
        The most pairs of a row that `nearest` finds.
    first, total : int
        The number of the first of these rows, among `total` rows of the problem.
    longest : int
        The most pairs that any row of the problem has.
    """

    most = MOST

    def __init__(self, values: Any, far: Any, beat: Callable[[], bool]) -> None:
        self.values, self.far, self.beat = values, far, beat
        self.count, self.ncols = values.shape
        self.first, self.total = 0, self.count
        self.longest = self.ncols
        self.xp = array_module(values)

    def least(self, col_dual: np.ndarray, out: np.ndarray) -> None:
        """Write the least c_ij - col_dual[j] of each row to ``out``, on the host."""
        duals = array_of(self.xp, col_dual)
        rows, cols, costs = self.nearest(duals, self.xp.full(self.count, self.far), 1)
        out[:] = self.far
        out[array_of(np, rows)] = array_of(np, costs - duals[cols])

    def at(self, rows: Any, cols: Any) -> Any:
        """Return the costs of these pairs."""
        return self.values[rows, cols]

    def nearest(self, col_dual: Any, bound: Any, most: int) -> tuple[Any, Any, Any]:
        """Return up to `most` pairs of each row, with the least c_ij - col_dual[j] below bound[i].

        The result is their rows, columns and costs, by rows, in a row the least first. Of equal
        ones, a row takes those first that follow its own place: rows begin evenly spread over the
        columns.
        """
        if not self.count or not self.ncols:
            none = self.xp.empty(0, np.int32)
            return none, none, self.xp.empty(0, self.values.dtype)
        most = min(most, self.ncols, self.most)
        look = self._nearest_here if self.xp is np else self._nearest_on_device
        cols, costs = look(col_dual, bound, most)
        found = self.xp.flatnonzero(cols.ravel() >= 0)
        return (found // most).astype(np.int32), cols.ravel()[found], costs.ravel()[found]

    def _nearest_on_device(self, col_dual: Any, bound: Any, most: int) -> tuple[Any, Any]:
        xp, values = self.xp, self.values
        cols = xp.empty((self.count, most), np.int32)
        costs = xp.empty((self.count, most), values.dtype)
        self._launch(
            "nearest_columns<{Cost}>",
            *(np.int64(self.first), np.int64(self.total)),  # IN
            *(col_dual, bound, np.int32(most)),
            *(cols, costs),  # OUT
        )
        return cols, costs

    def _nearest_here(self, col_dual: Any, bound: Any, most: int) -> tuple[Any, Any]:
        reduced = np.where(self.values < self.far, self.values - col_dual, self.far)
        starts = (self.first + np.arange(self.count)) * self.ncols // self.total
        turned = (starts[:, None] + np.arange(self.ncols)) % self.ncols
        order = np.argsort(np.take_along_axis(reduced, turned, 1), axis=1, kind="stable")
        cols = np.take_along_axis(turned, order[:, :most], 1).astype(np.int32)
        costs = np.take_along_axis(self.values, cols, 1)
        cols[np.take_along_axis(reduced, cols, 1) >= bound[:, None]] = -1
        return cols, costs

    def least_of_rows(self, col_dual: Any) -> Any:
        """Return the least c_ij - col_dual[j] of each row; `far` if all its pairs are forbidden.

        Differences of floats are rounded down.
        """
        xp, values = self.xp, self.values
        if xp is np:
            reduced = values - col_dual
            if reduced.dtype.kind == "f":
                reduced = differences_below(values.astype(reduced.dtype, copy=False), col_dual)
            reduced = np.where(values < self.far, reduced, self.far)
            return reduced.min(axis=1, initial=self.far)
        least = xp.full(self.count, self.far)
        if self.count and self.ncols:
            self._launch("least_of_rows<{Cost}>", col_dual, least)
        return least

    def least_of_columns(self, row_dual: Any) -> Any:
        """Return the least c_ij - row_dual[i] of each column.

        None of these differences may be below 0.
        """
        xp, values = self.xp, self.values
        if xp is np:
            slack = np.where(values < self.far, values - row_dual[:, None], self.far)
            return slack.min(axis=0, initial=self.far)
        least = xp.full(self.ncols, self.far)
        if self.count and self.ncols:
            kernels = kernels_for(NEAREST, Cost=values.dtype)
            kernels["least_of_columns<{Cost}>"](
                (-(-self.ncols // _BLOCK) * min(self.count, SHARES),),
                (_BLOCK,),
                (values, np.int32(self.count), np.int32(self.ncols), row_dual, least),
            )
        return least

    def _launch(self, kernel: str, *arguments: Any) -> None:
        """Launch a kernel with a block for each row, or with all blocks that are resident."""
        kernels_for(NEAREST, Cost=self.values.dtype)[kernel](
            (min(self.count, blocks_for(_BLOCK * self.count)),),
            (_BLOCK,),
            (self.values, np.int32(self.count), np.int32(self.ncols), *arguments),
        )

    def least_slacks(self, row_dual: np.ndarray, col_dual: np.ndarray, out: np.ndarray) -> None:
        """Lower ``out`` to the least slack of each column."""
        for _, times in self._tiles(np.arange(self.count), row_dual, col_dual):
            np.minimum(out, array_of(np, times.min(axis=0)), out=out)

    def match_tight(
        self,
        row_dual: np.ndarray,
        col_dual: np.ndarray,
        row_to_col: np.ndarray,
        col_to_row: np.ndarray,
    ) -> None:
        """Match unmatched rows to their first unmatched tight column. Earlier rows come first."""
        unmatched = np.flatnonzero(row_to_col < 0)
        for _ in range(ROUNDS):
            is_unmatched = array_of(self.xp, col_to_row < 0)
            wanted = np.full(self.count, -1)
            for rows, times in self._tiles(unmatched, row_dual, col_dual):
                marks = (times <= 0) & is_unmatched
                first, has_one = marks.argmax(axis=1), marks.max(axis=1)
                wanted[rows] = array_of(np, self.xp.where(has_one, first, -1))
            unmatched = unmatched[wanted[unmatched] >= 0]
            cols, first = np.unique(wanted[unmatched], return_index=True)
            row_to_col[unmatched[first]], col_to_row[cols] = cols, unmatched[first]
            unmatched = unmatched[row_to_col[unmatched] < 0]
            if not unmatched.size:
                break

    def offer(
        self,
        rows: np.ndarray,
        duals: tuple[np.ndarray, np.ndarray],
        time: np.ndarray,
        near: np.ndarray,
        before: np.ndarray,
    ) -> None:
        """Lower ``near`` to the times at which pairs of these rows become tight.

        ``before`` gets the row of each lowered time.
        """
        for part, times in self._tiles(rows, *duals, time):
            least, nearest = array_of(np, times.min(axis=0)), array_of(np, times.argmin(axis=0))
            closer = least < near
            near[closer], before[closer] = least[closer], part[nearest[closer]]

    def compress(
        self, duals: tuple[np.ndarray, np.ndarray], time: np.ndarray, delta: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how many pairs of each row are tight at `delta`, and their columns, on host."""
        counts, lists = np.zeros(self.count, np.int64), [np.empty(0, np.int32)]
        for rows, times in self._tiles(np.arange(self.count), *duals, time):
            places = self.xp.flatnonzero(times <= delta)
            which, cols = places // self.ncols, places % self.ncols
            counts[rows] = array_of(np, self.xp.bincount(which, minlength=rows.size))
            lists.append(array_of(np, cols).astype(np.int32))
        return counts, np.concatenate(lists)

    def soonest(
        self,
        duals: tuple[np.ndarray, np.ndarray],
        time: np.ndarray,
        row_cover: np.ndarray,
        col_cover: np.ndarray,
    ) -> Any:
        """Return the least time of a pair of an uncovered row and an uncovered column."""
        least, is_open = self.far, array_of(self.xp, ~col_cover)
        for _, times in self._tiles(np.flatnonzero(~row_cover), *duals, time):
            least = min(least, array_of(np, self.xp.where(is_open, times, self.far).min())[()])
        return least

    def _tiles(
        self,
        rows: np.ndarray,
        row_dual: np.ndarray,
        col_dual: np.ndarray,
        time: np.ndarray | None = None,
        to_the_end: bool = False,
    ) -> Iterator[tuple[np.ndarray, Any]]:
        """Yield some of the rows at a time, with the times at which their pairs become tight."""
        if not self.ncols:
            return
        xp, far = self.xp, self.far
        col_dual = array_of(xp, col_dual)
        step = max(1, TILE // self.ncols)
        for first in range(0, rows.size, step):
            part = rows[first : first + step]
            costs = self.values[array_of(xp, part)]
            slack = (costs - array_of(xp, row_dual[part])[:, None]) - col_dual
            since = array_of(xp, np.zeros_like(row_dual[part]) if time is None else time[part])
            is_near = (costs < far) & (slack < far - since[:, None])
            yield part, xp.where(is_near, slack + since[:, None], far)
            if self.beat() and not to_the_end:
                break
