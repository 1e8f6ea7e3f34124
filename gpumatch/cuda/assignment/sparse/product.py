"""Assignments whose duals are scales, for maximum product matchings, on the GPU.

`gpumatch.cpu.assignment.sparse.product` does this on the CPU. The costs are minus the logarithms of
a matrix's entries, which differ by orders of magnitude. So the engine subtracts from each cost the
least cost of its column, or of its row if columns may stay unmatched. Its auctions begin at the
range of the costs.

A small matrix takes hardly longer than its launches. So each step is one launch, and the host reads
all results of a step by one copy.
"""

from __future__ import annotations

import cupy as cp
import numpy as np

from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.cuda import csr, memory
from gpumatch.cuda.assignment.sparse.engine import bytes_needed, solve_anew
from gpumatch.cuda.assignment.sparse.full import FullProblem
from gpumatch.cuda.assignment.sparse.problem import Problem, Rows
from gpumatch.cuda.kernels import BLOCK, Source, blocks_for, kernels_for

__all__ = ["run"]

SCALES = Source("assignment/sparse/scales.cu", ("count_from_least", "look_up", "settle"))

_ENDS = SCALES.constant("kEnds")
_BYTES_AN_ENTRY = 24  # memory for the reduced costs, and for making them


def run(task: AssignmentTask) -> float | None:
    """Match all rows at least cost, make the duals scales, and return the total cost.

    Returns None if a row stays unmatched. The duals of unmatched columns are undefined. The
    solution must have neither pairs nor duals.
    """
    costs, solution = task.costs, task.solution
    if costs.shape[0] == 0:
        return 0.0
    needed = bytes_needed(costs, None) + _BYTES_AN_ENTRY * costs.nnz
    memory.require_memory(needed, "the engine for sparse costs")
    given = Problem(FullProblem.of(costs, None), solution.mates)
    reduced, least = _from_least(given)
    solve_anew(reduced, None, reduced.tuning.long_trial, task.control)
    if reduced.count_unmatched():
        return None
    return _settle(given.rows, reduced, least, solution)


def _from_least(given: Problem) -> tuple[Problem, cp.ndarray]:
    """Return the problem with the least cost of each column, or row, subtracted from its costs.

    Also returns the least costs of the columns, which are 0 if those of rows are subtracted.
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
    """Write the scales, and return the total cost of the pairs."""
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
