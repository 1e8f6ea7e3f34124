"""Sparse costs as a problem in which every row must be matched.

Without a limit, they are such a problem already. With a limit, each row gets a column of its own,
whose cost is the limit. A row that is matched to it is unmatched in the given problem. Row i has
the column m + i, for m columns of the given problem.
"""

from __future__ import annotations

from typing import NamedTuple

import cupy as cp
import numpy as np

from gpumatch.contracts import Costs
from gpumatch.cuda import csr

__all__ = ["FullProblem"]


class FullProblem(NamedTuple):
    """A problem in CSR on the device, whose rows must all be matched.

    Attributes
    ----------
    indptr, indices, weights : arrays
        The columns of each row, in any order, and their costs; `indptr` is int64.
    low, high : int or float
        The least and the greatest cost.
    shape : (int, int)
        The numbers of rows and columns. There are no fewer columns than rows.
    given : int
        The number of columns of the given problem, which come first.
    is_reduced : bool
        True if the least cost of each column is known to be 0.
    """

    indptr: cp.ndarray
    indices: cp.ndarray
    weights: cp.ndarray
    low: float
    high: float
    shape: tuple[int, int]
    given: int
    is_reduced: bool = False

    @classmethod
    def of(cls, costs: Costs, limit: float | None) -> FullProblem:
        """Return the problem with these costs and this limit."""
        indptr, indices, weights = costs.entries()
        indptr = indptr.astype(np.int64, copy=False)
        nrows, ncols = costs.shape
        if limit is None:
            return cls(indptr, indices, weights, costs.low, costs.high, costs.shape, ncols)
        rows = cp.arange(nrows + 1)
        all_indptr = indptr + rows
        last = all_indptr[1:] - 1
        all_indices = cp.empty(indices.size + nrows, np.int32)
        all_weights = cp.empty(indices.size + nrows, weights.dtype)
        all_indices[last], all_weights[last] = ncols + rows[:-1], limit
        places = cp.arange(indices.size) + csr.owners(indptr, indices)
        all_indices[places], all_weights[places] = indices, weights
        low, high = min(costs.low, limit), max(costs.high, limit)
        shape = nrows, ncols + nrows
        return cls(all_indptr, all_indices, all_weights, low, high, shape, ncols)

    @staticmethod
    def bytes_needed(costs: Costs, limit: float | None) -> int:
        """Return the device memory that making it takes."""
        nrows = costs.shape[0]
        return 8 * nrows if limit is None else 48 * costs.nnz + 64 * nrows

    def duals_of(self, col_dual: cp.ndarray) -> cp.ndarray:
        """Return the duals of all columns from those of the given ones.

        Rows' own columns have dual 0.
        """
        duals = cp.zeros(self.shape[1], col_dual.dtype)
        duals[: self.given] = col_dual
        return duals
