"""The rows of sparse costs on one rank, for `gpumatch.distributed`, on a GPU.

`CsrRows` has the methods of `ArrayRows` that a core needs, by operations on whole arrays, for a
tile of rows at a time. In tests, its arrays may be NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.contracts import Costs
from gpumatch.numeric.arrays import array_of

__all__ = ["CsrRows"]


class CsrRows:
    """Rows of sparse costs. Pairs that are not stored are forbidden.

    Attributes
    ----------
    most : int
        The most pairs of a row that `nearest` finds.
    first, total, longest
        As of `ArrayRows`.
    """

    most = 2**10

    def __init__(self, costs: Costs, far: Any) -> None:
        self.costs, self.far, self.xp = costs, far, costs.xp
        self.count, self.ncols = costs.shape
        self.first, self.total = 0, self.count
        indptr = costs.entries()[0]
        self.longest = int((indptr[1:] - indptr[:-1]).max()) if self.count else 0

    def at(self, rows: Any, cols: Any) -> Any:
        """The costs of these pairs."""
        return self.costs.at(rows, cols)

    def nearest(self, col_dual: Any, bound: Any, most: int) -> tuple[Any, Any, Any]:
        """The pairs with the least c_ij - col_dual[j] below bound[i] of each row, at most `most`.

        The result is their rows, columns and costs, by rows. Of equal ones, a row takes those first
        that follow its own place: rows begin evenly spread over the columns.
        """
        tiles = [
            self._nearest_in(tile, col_dual, bound, most)
            for tile in (*self.costs.tiles(), slice(0, 0))
        ]
        rows, cols, costs = map(self.xp.concatenate, zip(*tiles))
        return rows, cols, costs

    def _nearest_in(self, tile: slice, col_dual: Any, bound: Any, most: int) -> tuple[Any, ...]:
        xp = self.xp
        rows, cols, costs = self.costs.tile(tile)
        reduced = costs - col_dual[cols]
        below = xp.flatnonzero(reduced < bound[rows])
        rows, cols, costs, reduced = (part[below] for part in (rows, cols, costs, reduced))
        starts = xp.searchsorted(rows, xp.arange(tile.start, tile.stop, dtype=rows.dtype))
        places = xp.arange(rows.size) - starts[rows - tile.start]  # positions within the rows
        if (places >= most).any():
            own = (self.first + rows.astype(np.int64)) * self.ncols // self.total
            turned = (cols - own) % self.ncols
            order = xp.lexsort(xp.stack([turned, reduced, rows]))[places < most]
            rows, cols, costs = rows[order], cols[order], costs[order]
        return rows, cols, costs

    def least_of_rows(self, col_dual: Any) -> Any:
        """The least c_ij - col_dual[j] of each row; `far` if all its pairs are forbidden."""
        least = self.xp.full(self.count, self.far)
        for tile in self.costs.tiles():
            rows, cols, costs = self.costs.tile(tile)
            self._lower(least[tile], rows - tile.start, costs - col_dual[cols])
        return least

    def least(self, col_dual: np.ndarray, out: np.ndarray) -> None:
        """Write the least c_ij - col_dual[j] of each row to ``out``, on the host."""
        out[:] = array_of(np, self.least_of_rows(array_of(self.xp, col_dual)))

    def least_of_columns(self, row_dual: Any) -> Any:
        """The least c_ij - row_dual[i] of each column."""
        least = self.xp.full(self.ncols, self.far)
        for tile in self.costs.tiles():
            rows, cols, costs = self.costs.tile(tile)
            self._lower(least, cols, costs - row_dual[rows])
        return least

    def _lower(self, least: Any, places: Any, values: Any) -> None:
        if self.xp is np:
            np.minimum.at(least, places, values)
            return
        from gpumatch.cuda.csr import lower

        lower(least, places, values)
