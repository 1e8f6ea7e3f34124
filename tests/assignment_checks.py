"""What answers of assignment are compared with, and what must hold of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array

from gpumatch import InfeasibleError, verify


def optimum(matrix: np.ndarray, maximize: bool = False) -> Any:
    """The total by SciPy; of integers, summed as such."""
    rows, cols = linear_sum_assignment(matrix.astype(np.float64), maximize)
    return matrix[rows, cols].sum(dtype=np.float64 if matrix.dtype.kind == "f" else np.int64)


def sparse(matrix: np.ndarray) -> csr_array:
    """The finite entries, zeros too."""
    rows, cols = np.isfinite(matrix).nonzero()
    return coo_array((matrix[rows, cols], (rows, cols)), shape=matrix.shape).tocsr()


def close(one: float, other: float) -> bool:
    """Whether two totals differ by rounding alone."""
    return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-300)


def check_violator(allowed: np.ndarray, exc: InfeasibleError) -> None:
    """The larger of the error's two sets has no neighbours but the smaller."""
    rows, cols = exc.rows, exc.cols
    nrows, ncols = allowed.shape
    if nrows > ncols:
        rows, cols, allowed = cols, rows, allowed.T
    assert rows.size > cols.size
    assert not np.delete(allowed, cols, axis=1)[rows].any()


def check_proof(costs, a):
    """What an exact algorithm has found is proven, unless no duals in float64 prove it.

    So it is where duals are far greater than what the pairs cost: they are rounded by more than
    that allows. Then the gap says by how much.
    """
    verify(costs, a, optimal=a.proven)
    values = np.abs(costs.data if hasattr(costs, "tocoo") else np.asarray(costs))
    assert a.proven or 0 < a.gap <= 1e-12 * values[values < math.inf].max()


def check_limit(costs, a, limit):
    """No row and column are both unmatched whose pair is within the limit, or within its row's.

    Costs are a matrix, or sparse, which forbids what it does not store.
    """
    sign = -1 if a.maximize else 1
    if not isinstance(costs, np.ndarray):
        coo, costs = costs.tocoo(), np.full(costs.shape, sign * np.inf)
        costs[coo.row, coo.col] = coo.data
    limits = np.broadcast_to(np.asarray(limit, float), costs.shape[:1])
    rows, cols = (np.asarray(mates) < 0 for mates in (a.row_to_col, a.col_to_row))
    own = sign * costs[np.ix_(rows, cols)].astype(float)
    assert not (own <= sign * limits[rows, None]).any()
