"""Sparse costs with given duals: the engine solves them at the costs less these duals.

If all rows and columns must be matched, the costs less a number for each row and each column have
the same optimal assignments. Their range is that of what the duals are wrong by, and the epsilons
of auctions and the bounds of trees follow from it.

If the given pairs are tight in nearly all rows, trees end it soon. If they are tight in all but one
in some hundred rows, even long trees are better than auctions, which begin anew for all rows.
Otherwise floats are solved in two stages:

1. Reduced costs are rounded down to multiples of epsilon, a small share of their range. Rows that
   must go far, from regions of too many rows to those of too many columns, go in this stage. Many
   paths have equal distances there, so few searches serve many rows.
2. The duals of the first stage are subtracted, too. What it has matched costs less than epsilon
   now, so most paths are short.

Device memory: that of the engine, and 44 bytes an entry.
"""

from __future__ import annotations

import dataclasses
import math

import cupy as cp
import numpy as np

from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.cuda import csr, memory
from gpumatch.cuda.assignment.sparse import engine
from gpumatch.cuda.assignment.sparse.problem import write_fair_rows
from gpumatch.cuda.assignment.sparse.tuning import DEFAULT, Trial
from gpumatch.numeric.arrays import any_true

__all__ = ["run"]

_FEW = 1 / 32  # the share of rows without a tight pair up to which there is one stage
_FEWEST = 1 / 512  # the share up to which the trial is long
_LONG = Trial(bids=0, unmatched=_FEW, looks=2**13, rest=1 / 1000)
_BITS = 14  # epsilon is the range of the reduced costs divided by 2**14
_SPAN = 4  # epsilons that paths of the second stage are long, at most: most of them
_NOTHING = 2.0**-50  # what rounding may leave of tight pairs, in shares of the largest cost
_BYTES_AN_ENTRY = 44


def run(task: AssignmentTask) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    costs, solution, limit = task.costs, task.solution, task.limit
    nrows, ncols = costs.shape
    if limit is not None or nrows != ncols or not engine.has_duals(task):
        return engine.run(task)
    memory.require_memory(_BYTES_AN_ENTRY * costs.nnz, "costs less given duals")
    indptr, indices, weights = costs.entries()
    rows = csr.owners(indptr, indices)
    write_fair_rows(costs, solution)
    less = weights - solution.row_dual[rows]
    less -= solution.col_dual[indices]
    if costs.is_integer and not engine.fits(costs.of_pairs(indptr, indices, less), None):
        return engine.run(task)
    least = 0 if costs.is_integer else _NOTHING * max(abs(costs.low), abs(costs.high))
    less[less <= least] = 0  # what was tight is tight again: rounding has no say
    tight = cp.count_nonzero((indices == solution.row_to_col[rows]) & (less == 0))
    span, trial = math.inf, DEFAULT.trial
    try:
        if tight >= (1 - _FEWEST) * nrows:
            trial = _LONG
        if not costs.is_integer and tight < (1 - _FEW) * nrows:
            epsilon = math.ldexp(less.max().item(), -_BITS)
            span = _SPAN * epsilon
            own = _solve(task, cp.floor(less / epsilon).astype(np.int64), trial)
            if own is None or any_true(own.row_to_col < 0):
                return own is not None
            less -= (own.row_dual * epsilon)[rows]
            less -= (own.col_dual * epsilon)[indices]
            less[less <= least] = 0
            solution.col_dual += own.col_dual * epsilon
        own = _solve(task, less, trial, span)
        if own is None:
            return False
        solution.col_dual += own.col_dual
        return True
    finally:
        solution.col_dual -= solution.col_dual.max()
        write_fair_rows(costs, solution)
        solution.has_duals = solution.are_fair = True


def _solve(
    task: AssignmentTask, weights: cp.ndarray, trial: Trial, span: float = math.inf
) -> Solution | None:
    """Solve for other costs of the pairs, from the pairs so far; None if stopped."""
    indptr, indices, _ = task.costs.entries()
    costs = task.costs.of_pairs(indptr, indices, weights)
    own = Solution.empty(costs.shape, is_integer=costs.is_integer, xp=cp)
    own.row_to_col[:], own.col_to_row[:] = task.solution.mates
    ended = engine.run(
        dataclasses.replace(task, costs=costs, solution=own, is_fresh=False),
        span=span,
        tuning=dataclasses.replace(DEFAULT, trial=trial),
    )
    task.solution.row_to_col[:], task.solution.col_to_row[:] = own.mates
    return own if ended else None
