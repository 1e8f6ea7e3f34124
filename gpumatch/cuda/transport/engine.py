"""Exact transport on the GPU: it chooses an algorithm by the form of the costs.

A dense problem of few columns is solved by `few_columns`, another dense one by `dense`, points by
`points`, and CSR by `sparse.engine`. Integers whose sums need more than 64 bits are copied to the
host, and solved there by `TransportTask.fallback`. The solution is on the device in any case.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import cupy as cp

from gpumatch.contracts import Points
from gpumatch.contracts.transport import TransportSolution, TransportTask
from gpumatch.cuda.memory import require_memory
from gpumatch.cuda.transport import dense, few_columns, points
from gpumatch.cuda.transport.sparse import engine as sparse

__all__ = ["solve", "solve_on_host", "takes_least", "takes_points"]

NARROW = 2**8
"""Columns that are few, however few the rows are."""
RATIO = 4
"""Rows for each column from which on more columns are few."""

BYTES_A_COST = 16
"""The bytes of a pair in a matrix of floats and in a copy of it, turned or of some columns."""

_ARRAYS = ("supply", "demand", "costs", "forbidden", "indptr", "indices", "data", "row_limit")
_OF_SOLUTION = ("rows", "cols", "flow", "row_dual", "col_dual", "infeasible_rows")


def solve(task: TransportTask) -> TransportSolution:
    """Ship all supply at least cost, as `gpumatch.contracts.transport` states."""
    if task.points is not None:
        return points.solve(task, task.points)
    if _are_few(task):
        return few_columns.solve(task)
    try:
        return sparse.solve(task) if task.is_sparse else dense.solve(task)
    except sparse.TooLargeError:
        return solve_on_host(task)


def takes_least(task: TransportTask) -> bool:
    """True if `solve` takes the units that columns must get at least: few columns, and no limit."""
    return task.row_limit is None and _are_few(task)


def takes_points(given: Points) -> bool:
    """True if `solve` is to get these points, rather than their matrix.

    Few columns are solved in a matrix if there is memory for it.
    """
    nrows, ncols = given.rows.shape[0], given.cols.shape[0]
    if nrows * ncols <= points.STORED or not points.takes(given):
        return False
    if ncols > few_columns.MOST or not _is_narrow(nrows, ncols):
        return True
    try:
        require_memory(BYTES_A_COST * nrows * ncols, "the matrix of points")
    except MemoryError:
        return True
    return False


def _are_few(task: TransportTask) -> bool:
    """True if there are so few columns that `few_columns` is fastest."""
    return _is_narrow(*task.shape) and few_columns.takes(task)


def _is_narrow(nrows: int, ncols: int) -> bool:
    return ncols <= NARROW or nrows >= RATIO * ncols


def solve_on_host(task: TransportTask) -> TransportSolution:
    """Copy the problem to the host, and let `task.fallback` solve it there.

    Raises
    ------
    NotImplementedError
        If the task has no such algorithm.
    """
    if task.fallback is None:
        raise NotImplementedError("no algorithm of the GPU takes this problem")
    arrays: dict[str, Any] = {name: _on_host(getattr(task, name)) for name in _ARRAYS}
    if task.initial is not None:
        arrays["initial"] = tuple(map(_on_host, task.initial))
    found = task.fallback(dataclasses.replace(task, **arrays))
    arrays = {name: getattr(found, name) for name in _OF_SOLUTION}
    arrays = {name: None if one is None else cp.asarray(one) for name, one in arrays.items()}
    return dataclasses.replace(found, **arrays)


def _on_host(array: Any) -> Any:
    return None if array is None else cp.asnumpy(array)
