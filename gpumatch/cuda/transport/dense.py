"""Dense transport on the GPU: by a core and pricing, or with all pairs in CSR.

Small problems are solved with all their pairs. So are those with forbidden pairs, because a core of
theirs might not ship all that can be shipped. All others have a core (`core`).
"""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts.transport import TransportSolution, TransportTask
from gpumatch.cuda.assignment.dense.rows import ArrayRows
from gpumatch.cuda.assignment.points.boxes import order_of
from gpumatch.cuda.memory import require_memory
from gpumatch.cuda.transport import core
from gpumatch.cuda.transport.sparse import engine as sparse

__all__ = ["Matrix", "solve"]

LANDMARKS = 3
"""The columns by whose costs rows are ordered, and the rows by whose costs columns are."""
ENTRIES = 2**24
"""Entries that are copied at a time."""
BYTES_A_PAIR = 120
"""The memory of a pair in CSR while it is sorted."""


def solve(task: TransportTask) -> TransportSolution:
    """Ship all supply at least cost, as `gpumatch.contracts.transport` states.

    Only problems that are solved with all pairs begin from given duals.

    Raises
    ------
    gpumatch.cuda.transport.sparse.engine.TooLargeError
        Integer costs are so large that sums might overflow.
    MemoryError
        All pairs are needed, and there is no memory for them in CSR.
    """
    costs = task.costs
    assert costs is not None
    is_small = costs.size <= core.WHOLE or not (task.supply.any() and task.demand.any())
    if is_small or not _is_complete(task):
        return sparse.solve(_all_pairs(task))
    return core.solve(task, Matrix(costs))


def _is_complete(task: TransportTask) -> bool:
    """True if all pairs are allowed."""
    costs: Any = task.costs
    return task.forbidden is None and (task.is_integer or bool(cp.isfinite(costs.max())))


def _all_pairs(task: TransportTask) -> TransportTask:
    """The same problem with all allowed pairs in CSR."""
    costs: Any = task.costs
    require_memory(BYTES_A_PAIR * costs.size, "transport with all pairs")
    if task.forbidden is None and task.is_integer:
        return core.in_csr(task, cp.arange(costs.size), costs.ravel())
    allowed = cp.isfinite(costs) if task.forbidden is None else ~task.forbidden
    keys = cp.flatnonzero(allowed.ravel())
    return core.in_csr(task, keys, costs.ravel()[keys])


class Matrix:
    """The pairs of a matrix, as a `core.Source`."""

    def __init__(self, costs: Any) -> None:
        self.costs, self.shape, self.dtype = costs, costs.shape, costs.dtype
        far: Any = np.iinfo(np.int64).max if costs.dtype.kind == "i" else np.inf
        self._rows = ArrayRows(costs, costs.dtype.type(far), lambda: False)
        self.rows_at_once = ENTRIES // max(costs.shape[1], 1) + 1

    @property
    def low(self) -> Any:
        return self.costs.min()

    @property
    def largest(self) -> float:
        return max(abs(float(self.costs.min())), abs(float(self.costs.max())))

    def at(self, rows: Any, cols: Any) -> Any:
        return self.costs[rows, cols]

    def nearest(self, col_dual: Any, bound: Any, most: int) -> tuple[Any, Any]:
        return self._rows.nearest(col_dual, bound, most)[:2]

    def across(self) -> Matrix:
        """The transposed matrix, a copy."""
        return Matrix(cp.ascontiguousarray(self.costs.T))

    def conjugate(self, rows: Any, row_dual: Any) -> Any:
        """The least cost of each column less the duals of some rows."""
        some = Matrix(cp.ascontiguousarray(self.costs[rows]))
        shift = row_dual.max() - some.low  # the kernel takes no negative differences
        return some._rows.least_of_columns(row_dual - shift) - shift

    def least_of_rows(self, col_dual: Any) -> Any:
        return self._rows.least_of_rows(col_dual)

    def orders(self, seed: int) -> tuple[Any, Any]:
        """By the costs of a few columns, and of a few rows."""
        rng, (nrows, ncols) = np.random.default_rng(seed), self.shape
        cols = cp.asarray(np.sort(rng.permutation(ncols)[:LANDMARKS]))
        rows = cp.asarray(np.sort(rng.permutation(nrows)[:LANDMARKS]))
        of_rows = self.costs[:, cols].astype(np.float64)
        of_cols = cp.ascontiguousarray(self.costs[rows].T).astype(np.float64)
        return order_of(of_rows), order_of(of_cols)

    def part(self, rows: Any, cols: Any) -> Matrix:
        return Matrix(cp.ascontiguousarray(self.costs[rows[:, None], cols]))
