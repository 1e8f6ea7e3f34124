"""Exact transport on the GPU: it chooses an algorithm by the form of the costs.

A dense problem of few columns is solved by `few_columns`, another dense one by `dense`, and CSR by
`sparse.engine`. Integers whose sums need more than 64 bits are copied to the host, and solved there
by `TransportTask.fallback`. The solution is on the device in any case.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import cupy as cp

from gpumatch.cuda.transport import dense, few_columns
from gpumatch.cuda.transport.sparse import engine as sparse
from gpumatch.transport_contracts import TransportSolution, TransportTask

__all__ = ["solve", "solve_on_host", "takes_least"]

NARROW = 2**8
"""Columns that are few, however few the rows are."""
RATIO = 4
"""Rows for each column from which on more columns are few."""

_ARRAYS = ("supply", "demand", "costs", "forbidden", "indptr", "indices", "data", "row_limit")
_OF_SOLUTION = ("rows", "cols", "flow", "row_dual", "col_dual", "infeasible_rows")


def solve(task: TransportTask) -> TransportSolution:
    """Ship all supply at least cost, as `gpumatch.transport_contracts` states."""
    if _are_few(task):
        return few_columns.solve(task)
    try:
        return sparse.solve(task) if task.is_sparse else dense.solve(task)
    except sparse.TooLargeError:
        return solve_on_host(task)


def takes_least(task: TransportTask) -> bool:
    """True if `solve` takes the units that columns must get at least: few columns, and no limit."""
    return task.row_limit is None and _are_few(task)


def _are_few(task: TransportTask) -> bool:
    """True if there are so few columns that `few_columns` is fastest."""
    nrows, ncols = task.shape
    return (ncols <= NARROW or nrows >= RATIO * ncols) and few_columns.takes(task)


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
