"""Assignments whose duals are scales: what maximum product matchings need, on the GPU.

As `gpumatch.cpu.assignment.sparse.product` has it. The costs are minus the logarithms of a matrix's
entries, which go over orders of magnitude. So the engine counts them from the least of their
column, or of their row if columns may stay free. Its auctions begin at the range of the costs.

A small matrix takes hardly longer than its launches. So there is one for each step, and each answer
that the host waits for comes in one piece.
"""

from __future__ import annotations

import cupy as cp
import numpy as np

from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.cuda import csr, memory
from gpumatch.cuda.assignment.sparse.engine import LONG, Problem, Rows, bytes_needed, solve_anew
from gpumatch.cuda.assignment.sparse.full import FullProblem
from gpumatch.cuda.kernels import BLOCK, Source, blocks_for, kernels_for

__all__ = ["run"]

SCALES = Source("assignment/sparse/scales.cu", ("count_from_least", "look_up", "settle"))

_ENDS = SCALES.constant("kEnds")
_BYTES_AN_ENTRY = 24  # costs from the least, and the vertices and numbers that they are made of


def run(task: AssignmentTask) -> float | None:
    """Match all rows at least cost, and make the duals scales; the total, None if a row is left.

    Duals of columns that are left are undefined. The solution holds neither pairs nor prices.
    """
    costs, solution = task.costs, task.solution
    if costs.shape[0] == 0:
        return 0.0
    needed = bytes_needed(costs, None) + _BYTES_AN_ENTRY * costs.nnz
    memory.require_memory(needed, "the engine for sparse costs")
    given = Problem(FullProblem.of(costs, None), solution.mates)
    reduced, least = _from_least(given)
    solve_anew(reduced, None, LONG, task.control)
    if reduced.count_free_rows():
        return None
    return _settle(given.rows, reduced, least, solution)


def _from_least(given: Problem) -> tuple[Problem, cp.ndarray]:
    """The problem with costs from the least of their column or row, and that of the columns.

    It is 0 if they are counted from that of their row.
    """
    full, is_square = given.full, given.full.shape[0] == given.full.shape[1]
    if is_square:
        given.reduce_columns()
        least, vertices = given.col_dual, full.indices
    else:
        given.reduce_rows()
        least, vertices = given.row_dual, csr.owners(full.indptr, full.indices)
    weights, greatest = cp.empty(full.weights.size), cp.zeros(1)
    kernels_for(SCALES)["count_from_least"](
        (blocks_for(weights.size),),
        (BLOCK,),
        (
            *(full.weights, vertices, least, np.int64(weights.size)),  # IN
            *(weights, greatest),  # OUT
        ),
    )
    high = greatest.item()
    reduced = full._replace(weights=weights, low=0.0, high=high, is_reduced=is_square)
    return Problem(reduced, given.mates), least if is_square else given.col_dual


def _settle(rows: Rows, reduced: Problem, least: cp.ndarray, solution: Solution) -> float:
    """Write the scales; the total of what rows pay."""
    shape, prices = reduced.full.shape, (reduced.col_dual, least)
    kernels, launch = kernels_for(SCALES), ((rows.blocks,), (BLOCK,))
    ends, sums, total = cp.zeros(_ENDS, np.uint64), cp.empty(rows.blocks), cp.empty(1)
    kernels["look_up"](
        *launch,
        (
            *(rows.struct, solution.row_to_col, *prices),  # IN
            *(solution.row_dual, ends, sums),  # OUT
        ),
    )
    kernels["settle"](
        *launch,
        (
            *(solution.row_to_col, *prices, *map(np.int32, shape)),  # IN
            *(ends, sums, np.int32(sums.size)),
            *(solution.row_dual, solution.col_dual, total),  # OUT
        ),
    )
    return total.item()
