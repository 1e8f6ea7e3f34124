"""Assignments whose duals are scales: what maximum product matchings need, on the GPU.

As `gpumatch.cpu.assignment.product` has it. The costs are minus the logarithms of a matrix's
entries, which go over orders of magnitude. So the engine counts them from the least of their
column, or of their row if columns may stay free. Its auctions begin at the range of the costs.
"""

from __future__ import annotations

import cupy as cp

from gpumatch.contracts import AssignmentTask
from gpumatch.cuda import csr, memory
from gpumatch.cuda.assignment.sparse.engine import LONG, Problem, bytes_needed, solve
from gpumatch.cuda.assignment.sparse.full import FullProblem

__all__ = ["run"]

_BYTES_AN_ENTRY = 24  # costs from the least, and the vertices and numbers that they are made of


def run(task: AssignmentTask) -> float | None:
    """Match all rows at least cost, and make the duals scales; the total, None if a row is left.

    Duals of columns that are left are undefined.
    """
    costs, solution = task.costs, task.solution
    if costs.shape[0] == 0:
        return 0.0
    needed = bytes_needed(costs, None) + _BYTES_AN_ENTRY * costs.nnz
    memory.require_memory(needed, "the engine for sparse costs")
    given = Problem(FullProblem.of(costs, None))
    reduced, least = _from_least(given)
    solve(reduced, task, LONG)
    if reduced.count_free_rows():
        return None
    solution.row_to_col[:], solution.col_to_row[:] = reduced.mates
    price, paid = reduced.col_dual + least, given.paid(solution.row_to_col)
    of_mates = price[solution.row_to_col]
    shift = (_middle(of_mates) - _middle(paid - of_mates)) / 2
    cp.subtract(price, shift, out=solution.col_dual)
    of_mates -= shift
    cp.subtract(paid, of_mates, out=solution.row_dual)
    return float(paid.sum())


def _from_least(problem: Problem) -> tuple[Problem, cp.ndarray | float]:
    """The problem with costs from the least of their column or row, and that of the columns."""
    full, (nrows, ncols) = problem.full, problem.full.shape
    if nrows == ncols:
        problem.reduce_columns()
        least, vertices = problem.col_dual, full.indices
    else:
        problem.reduce_rows()
        least, vertices = problem.row_dual, csr.owners(full.indptr, full.indices)
    weights = full.weights - least[vertices]
    high = float(weights.max()) if weights.size else 0.0
    reduced = Problem(full._replace(weights=weights, low=0.0, high=high))
    return reduced, least if nrows == ncols else 0.0


def _middle(values: cp.ndarray) -> cp.ndarray:
    return (values.min() + values.max()) / 2
