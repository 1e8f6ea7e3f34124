"""A problem of sparse costs as one with as many rows as columns, all of which must be matched.

If each of n rows must have one of n columns, the problem is square already. Otherwise it is doubled
(after Ramshaw and Tarjan, *On minimum-cost assignments in unbalanced bipartite graphs*, 2012). A
copy with the sides exchanged is put beside it, and lets each vertex go without:

- row i of n has its columns at their costs; and column m + i, its copy, at the limit, if there is
  one;
- row n + j, the copy of column j of m, has column j at no cost, and the copies of all rows that
  column j may be assigned to, at no cost.

An assignment of the problem becomes a full one here, of the same cost: copies of matched vertices
are matched as these are, and all others to their copies. Back again, the pairs of rows and columns
that are no copies are an assignment. Of duals here, the sum of a vertex's dual and its copy's is a
dual there: each constraint there is the sum of two here, and both are tight for pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from gpumatch.contracts import Costs, Solution
from gpumatch.cuda import csr
from gpumatch.cuda.memory import unmatched

__all__ = ["Square"]


class Square(NamedTuple):
    """A square problem in CSR on the device.

    Attributes
    ----------
    indptr, indices, weights : arrays
        The columns of each row, in any order, and their costs; `indptr` is int64.
    low, high : int or float
        The least and the greatest cost.
    shape : (int, int)
        Of the problem that it was made from.
    is_doubled : bool
    """

    indptr: cp.ndarray
    indices: cp.ndarray
    weights: cp.ndarray
    low: float
    high: float
    shape: tuple[int, int]
    is_doubled: bool

    @classmethod
    def of(cls, costs: Costs, limit: float | None) -> Square:
        """The problem with these costs and this limit."""
        indptr, indices, weights = costs.entries()
        indptr = indptr.astype(np.int64, copy=False)
        nrows, ncols = costs.shape
        if limit is None and nrows == ncols:
            return cls(indptr, indices, weights, costs.low, costs.high, costs.shape, False)
        extra = 0 if limit is None else 1
        graph = costs.pattern()
        total = 2 * indices.size + extra * nrows + ncols
        all_indices, all_weights = cp.empty(total, np.int32), cp.zeros(total, weights.dtype)
        own = indptr + extra * cp.arange(nrows + 1)
        places = cp.arange(indices.size) + extra * csr.owners(indptr, indices)
        all_indices[places], all_weights[places] = indices, weights
        if extra:
            last = own[1:] - 1
            all_indices[last], all_weights[last] = ncols + cp.arange(nrows), limit
        copied = graph.col_indptr.astype(np.int64) + cp.arange(ncols + 1) + own[-1]
        all_indices[copied[:-1]] = cp.arange(ncols)
        of_cols = csr.owners(graph.col_indptr, graph.col_indices)
        places = cp.arange(indices.size) + of_cols + (own[-1] + 1)
        all_indices[places] = ncols + graph.col_indices
        low, high = min(costs.low, 0, limit or 0), max(costs.high, 0, limit or 0)
        all_indptr = cp.concatenate([own[:-1], copied])
        return cls(all_indptr, all_indices, all_weights, low, high, costs.shape, True)

    @staticmethod
    def bytes_needed(costs: Costs, limit: float | None) -> int:
        """Device memory while it is made."""
        nrows, ncols = costs.shape
        if limit is None and nrows == ncols:
            return 8 * nrows
        return 52 * costs.nnz + 40 * (nrows + ncols)

    @property
    def size(self) -> int:
        return self.indptr.size - 1

    def prices_of(self, col_dual: cp.ndarray) -> cp.ndarray:
        """Duals of the columns here from those there: those of copies are 0."""
        prices = cp.zeros(self.size, col_dual.dtype)
        prices[: col_dual.size] = col_dual
        return prices

    def pairs_of(self, row_to_col: cp.ndarray) -> tuple[cp.ndarray, cp.ndarray]:
        """The mates here from those there, which need not be complete."""
        mates = unmatched(self.size), unmatched(self.size)
        rows = cp.flatnonzero(row_to_col >= 0)
        cols = row_to_col[rows]
        self._match(mates, rows, cols)
        if self.is_doubled:
            nrows, ncols = self.shape
            self._match(mates, nrows + cols, ncols + rows)
        return mates

    @staticmethod
    def _match(mates: tuple[cp.ndarray, cp.ndarray], rows: cp.ndarray, cols: cp.ndarray) -> None:
        mates[0][rows], mates[1][cols] = cols, rows

    def write_back(
        self, solution: Solution, mates: tuple[cp.ndarray, cp.ndarray], duals: tuple[Any, Any]
    ) -> None:
        """Put pairs, and the duals of the columns, into the solution of the problem.

        The duals are at most 0, and 0 for columns without a mate, if all here have one.
        """
        nrows, ncols = self.shape
        row_to_col, col_to_row = mates[0][:nrows], mates[1][:ncols]
        solution.row_to_col[:] = cp.where(row_to_col < ncols, row_to_col, -1)
        solution.col_to_row[:] = cp.where(col_to_row < nrows, col_to_row, -1)
        row_dual, price = duals
        if not self.is_doubled:
            solution.col_dual[:] = price - price.max()
            return
        price = cp.minimum(price[:ncols] + row_dual[nrows:], 0)
        solution.col_dual[:] = cp.where(col_to_row < nrows, price, 0)
