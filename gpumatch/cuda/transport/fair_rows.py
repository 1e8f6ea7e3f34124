"""The duals of rows that go with given duals of columns of float costs, rounded down, on a GPU."""

from __future__ import annotations

import math
from typing import Any

import cupy as cp

from gpumatch.cuda import csr
from gpumatch.cuda.assignment.dense.rows import rows_of
from gpumatch.numeric.fair_duals import differences_below

__all__ = ["write_fair_duals"]


def write_fair_duals(
    entries: Any, col_dual: cp.ndarray, row_dual: cp.ndarray, limit: float | None
) -> None:
    """Write the largest duals of the rows that no pair undercuts, and that are within the limit."""
    if isinstance(entries, tuple):
        indptr, indices, costs = entries
        row_dual.fill(math.inf)
        least = differences_below(costs.astype("float64", copy=False), col_dual[indices])
        csr.lower(row_dual, csr.owners(indptr, indices), least)
    else:
        row_dual[:] = rows_of(entries, math.inf, lambda: False).least_of_rows(col_dual)
    if limit is not None:
        cp.minimum(row_dual, limit, out=row_dual)
