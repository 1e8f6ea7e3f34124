"""Exact transport on the GPU: it chooses an algorithm by the form of the costs.

A dense problem of few columns is solved by `few_columns`, another dense one by `dense`, points by
`points`, and CSR by `sparse.engine`. The last three have the host end what is one step after the
other (`TransportTask.fallback`). The solution is on the device in any case.
"""

from __future__ import annotations

from gpumatch.contracts import Points
from gpumatch.contracts.transport import TransportSolution, TransportTask
from gpumatch.cuda.memory import require_memory
from gpumatch.cuda.transport import dense, few_columns, points
from gpumatch.cuda.transport.sparse import engine as sparse

__all__ = ["solve", "takes_least", "takes_points"]

NARROW = 2**8
"""Columns that are few, however few the rows are."""
RATIO = 4
"""Rows for each column from which on more columns are few."""

BYTES_A_COST = 16
"""The bytes of a pair in a matrix of floats and in a copy of it, turned or of some columns."""


def solve(task: TransportTask) -> TransportSolution:
    """Ship all supply at least cost, as `gpumatch.contracts.transport` states."""
    if task.points is not None:
        return points.solve(task, task.points)
    if _are_few(task):
        return few_columns.solve(task)
    return sparse.solve(task) if task.is_sparse else dense.solve(task)


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
