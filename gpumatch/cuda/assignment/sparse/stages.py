"""Sparse integer costs whose sums need up to 62 bits, in two stages of the sparse engine.

The engine takes costs whose sums are below 2**60 (`engine.fits`). If all rows and columns must be
matched, larger ones are solved in two stages. With c(i, j) = 2**k h(i, j) + l(i, j) and
0 <= l < 2**k:

1. The costs h have optimal duals u and v. So t = h - u - v is at least 0, and 0 for the pairs of an
   assignment. At the costs r = 2**k t + l, this assignment has a total below n 2**k.
2. The costs r are solved, with t replaced by n where it is larger. A pair with such a cost is in no
   optimal assignment, because it alone costs n 2**k at least. All costs are below (n + 1) 2**k.

c and r differ by a number for each row and each column, so the second assignment is optimal for c.
Its duals are 2**k u and 2**k v, plus those of the second stage.
"""

from __future__ import annotations

import dataclasses

import cupy as cp
import numpy as np

from gpumatch.contracts import AssignmentTask, Costs
from gpumatch.cuda import csr, memory
from gpumatch.cuda.assignment.sparse import engine
from gpumatch.numeric.arrays import any_true

__all__ = ["run", "takes"]

_BITS = 3  # k
_MOST_SUM = 2**62  # of the ranges of all rows
_BYTES_AN_ENTRY = 44  # the costs of both stages, and what they are made of


def takes(costs: Costs, limit: float | None) -> bool:
    """True for sparse integers that only their size keeps from the engine.

    All rows and columns must be matched. Sums of the costs must be below 2**62.
    """
    nrows, ncols = costs.shape
    if not (costs.is_sparse and costs.is_integer and limit is None and nrows == ncols):
        return False
    sums = (nrows + 1) * (int(costs.high) - int(costs.low) + 1)
    return not engine.fits(costs, limit) and sums < _MOST_SUM and nrows < 2**27


def run(task: AssignmentTask) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    costs, solution = task.costs, task.solution
    nrows = costs.shape[0]
    indptr, indices, weights = costs.entries()
    memory.require_memory(_BYTES_AN_ENTRY * indices.size, "two stages of large costs")
    solution.row_dual >>= _BITS
    solution.col_dual >>= _BITS
    high = weights.astype(np.int64) >> _BITS
    has_ended = engine.run(task.with_costs(costs.of_pairs(indptr, indices, high)))
    row_dual, col_dual = solution.row_dual.copy(), solution.col_dual.copy()
    solution.row_dual <<= _BITS
    solution.col_dual <<= _BITS
    if not has_ended or any_true(solution.row_to_col < 0):
        return has_ended
    high -= row_dual[csr.owners(indptr, indices)]
    high -= col_dual[indices]
    rest = cp.minimum(high, np.int64(nrows))
    rest <<= _BITS
    rest |= weights & ((1 << _BITS) - 1)
    second = solution.copy()
    second.row_dual[:] = second.col_dual[:] = 0
    own = dataclasses.replace(
        task, costs=costs.of_pairs(indptr, indices, rest), solution=second, is_fresh=False
    )
    if not engine.run(own):
        return False
    solution.row_to_col[:], solution.col_to_row[:] = second.mates
    solution.row_dual += second.row_dual
    solution.col_dual += second.col_dual
    return True
