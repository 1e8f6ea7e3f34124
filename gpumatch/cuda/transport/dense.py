"""Dense transport on the GPU: by a core of pairs that the host solves, or with all pairs in CSR.

Problems with forbidden pairs are solved with all pairs that are allowed, because a core of theirs
might not ship all that can be shipped. Of all others, the device reads the pairs, and the host
solves a core of them (`all_pairs`).
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts.transport import TransportSolution, TransportTask
from gpumatch.cuda.assignment.dense.rows import ArrayRows
from gpumatch.cuda.memory import require_memory
from gpumatch.cuda.transport.all_pairs import DevicePairs
from gpumatch.cuda.transport.host import solve_on_host
from gpumatch.cuda.transport.sparse import engine as sparse

__all__ = ["Matrix", "solve"]

WHOLE = 2**12
"""Pairs up to which their matrix is copied to the host."""
BYTES_A_PAIR = 120
"""The memory of a pair in CSR while it is sorted."""


def solve(task: TransportTask) -> TransportSolution:
    """Ship all supply at least cost, as `gpumatch.contracts.transport` states.

    Raises
    ------
    MemoryError
        All pairs are needed, and there is no memory for them in CSR.
    """
    costs: Any = task.costs
    if costs.size <= WHOLE or not (task.supply.any() and task.demand.any()):
        return solve_on_host(task)
    matrix = Matrix(costs)
    if task.forbidden is not None or not matrix.is_finite:
        return sparse.solve(_all_pairs(task))
    return solve_on_host(task, DevicePairs(matrix) if _is_small(task, matrix.extremes) else None)


def _is_small(task: TransportTask, extremes: tuple[Any, Any]) -> bool:
    """True if no dual overflows."""
    ends = [*extremes]
    if task.row_limit is not None:
        ends += [task.row_limit.min(), task.row_limit.max()]
    largest = max(abs(float(end)) for end in ends)
    if task.is_integer:
        return 32.0 * (min(task.shape) + 2) * largest < 2.0**62
    return 4 * largest < np.inf


def _all_pairs(task: TransportTask) -> TransportTask:
    """The same problem with all allowed pairs in CSR."""
    costs: Any = task.costs
    require_memory(BYTES_A_PAIR * costs.size, "transport with all pairs")
    if task.forbidden is None and task.is_integer:
        return _in_csr(task, cp.arange(costs.size), costs.ravel())
    allowed = cp.isfinite(costs) if task.forbidden is None else ~task.forbidden
    keys = cp.flatnonzero(allowed.ravel())
    return _in_csr(task, keys, costs.ravel()[keys])


def _in_csr(task: TransportTask, keys: cp.ndarray, data: cp.ndarray) -> TransportTask:
    """A problem with some pairs: their ``row * ncols + column`` in ascending order, and costs."""
    nrows, ncols = task.shape
    starts = cp.arange(nrows + 1) * ncols
    return dataclasses.replace(
        task, costs=None, forbidden=None, indptr=cp.searchsorted(keys, starts),
        indices=(keys % max(ncols, 1)).astype(np.int32), data=data,
    )  # fmt: skip


class Matrix:
    """The pairs of a matrix."""

    def __init__(self, costs: Any) -> None:
        self.costs, self.shape, self.dtype = costs, costs.shape, costs.dtype
        far: Any = np.iinfo(np.int64).max if costs.dtype.kind == "i" else np.inf
        self._rows = ArrayRows(costs, costs.dtype.type(far), lambda: False)

    @functools.cached_property
    def extremes(self) -> tuple[Any, Any]:
        return self.costs.min().get()[()], self.costs.max().get()[()]

    @property
    def is_finite(self) -> bool:
        return self.dtype.kind == "i" or bool(np.isfinite(self.extremes[1]))

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
        shift = row_dual.max() - self.extremes[0]  # the kernel takes no negative differences
        return some._rows.least_of_columns(row_dual - shift) - shift

    def least_of_rows(self, col_dual: Any) -> Any:
        return self._rows.least_of_rows(col_dual)

    def part(self, rows: Any, cols: Any) -> Matrix:
        return Matrix(cp.ascontiguousarray(self.costs[rows[:, None], cols]))

    def matrix(self) -> Any:
        return self.costs
