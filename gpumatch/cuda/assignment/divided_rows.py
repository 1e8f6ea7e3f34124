"""What one rank computes from the costs of its rows, for `gpumatch.distributed`, on a GPU.

`ArrayRows` does what the rows of a rank on the CPU do, by operations on whole arrays. The numbers
of rows and columns stay on the host: a call sends those of its rows and the prices of the columns,
and takes a number and a row for each column back. With a matrix of NumPy it runs on the CPU, for
tests. A call that ``beat`` tells to stop leaves out what is left.

Rows are looked at in tiles of `TILE` entries, each of which takes 32 bytes while that lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpumatch.arrays import array_module, array_of

__all__ = ["TILE", "ArrayRows", "rows_of", "use_own_device"]

TILE = 2**25
"""Entries looked at at a time: 1 GiB."""
ROUNDS = 3
"""Rounds in which rows of this rank that want one column try again."""


def use_own_device(rank: int) -> None:
    """Let this process use the GPU with the number of the rank among those of its machine."""
    import cupy

    cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()


def rows_of(entries: Any, far: Any, beat: Callable[[], bool]) -> ArrayRows:
    """The rows of a matrix."""
    return ArrayRows(entries, far, beat)


class ArrayRows:
    """Rows of a matrix, with ``far`` for forbidden pairs.

    A row that joined a tree at time t has a pair with slack s, which is tight from the time s + t
    on: not above ``far``, and `far` for a forbidden pair.

    All other arrays are on the host.
    """

    def __init__(self, values: Any, far: Any, beat: Callable[[], bool]) -> None:
        self.values, self.far, self.beat = values, far, beat
        self.count, self.ncols = values.shape
        self.xp = array_module(values)

    def least(self, col_dual: np.ndarray, out: np.ndarray) -> None:
        """The least of c_ij - col_dual[j] of each row."""
        out[:] = self.far
        every = np.arange(self.count)
        for rows, times in self._tiles(every, np.zeros_like(out), col_dual, to_the_end=True):
            out[rows] = array_of(np, times.min(axis=1))

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
        """Give free rows the first free column that is tight; the first that wants it has it."""
        waiting = np.flatnonzero(row_to_col < 0)
        for _ in range(ROUNDS):
            is_free = array_of(self.xp, col_to_row < 0)
            wanted = np.full(self.count, -1)
            for rows, times in self._tiles(waiting, row_dual, col_dual):
                marks = (times <= 0) & is_free
                first, has_one = marks.argmax(axis=1), marks.max(axis=1)
                wanted[rows] = array_of(np, self.xp.where(has_one, first, -1))
            waiting = waiting[wanted[waiting] >= 0]
            cols, first = np.unique(wanted[waiting], return_index=True)
            row_to_col[waiting[first]], col_to_row[cols] = cols, waiting[first]
            waiting = waiting[row_to_col[waiting] < 0]
            if not waiting.size:
                break

    def offer(
        self,
        rows: np.ndarray,
        duals: tuple[np.ndarray, np.ndarray],
        time: np.ndarray,
        near: np.ndarray,
        before: np.ndarray,
    ) -> None:
        """Lower ``near`` to the times at which pairs of these rows are tight; ``before``: whose."""
        for part, times in self._tiles(rows, *duals, time):
            least, nearest = array_of(np, times.min(axis=0)), array_of(np, times.argmin(axis=0))
            closer = least < near
            near[closer], before[closer] = least[closer], part[nearest[closer]]

    def _tiles(
        self,
        rows: np.ndarray,
        row_dual: np.ndarray,
        col_dual: np.ndarray,
        time: np.ndarray | None = None,
        to_the_end: bool = False,
    ) -> Iterator[tuple[np.ndarray, Any]]:
        """Some of the rows at a time, and when their pairs are tight."""
        if not self.ncols:
            return
        xp, far = self.xp, self.far
        price = array_of(xp, col_dual)
        step = max(1, TILE // self.ncols)
        for first in range(0, rows.size, step):
            part = rows[first : first + step]
            costs = self.values[array_of(xp, part)]
            slack = (costs - array_of(xp, row_dual[part])[:, None]) - price
            since = array_of(xp, np.zeros_like(row_dual[part]) if time is None else time[part])
            is_near = (costs < far) & (slack < far - since[:, None])
            yield part, xp.where(is_near, slack + since[:, None], far)
            if self.beat() and not to_the_end:
                break
