"""The GPU's assignment engine: alternating trees while they find columns, else the auction.

Sparse costs have an engine of their own, `sparse`. This is for all others.

It depends on the costs which of the two is fast. If most rows have a good column of their own,
trees match nine rows in ten within a few searches, and were up to 24 times as fast as the auction.
If all rows want the same few columns, or any that are far away, nearly every row needs its own
search, with n² levels in all, and the auction is up to fifty times as fast. This is not known
beforehand, but growing trees for a short time shows it (bench/results/assignment-h200.json).

The auction then begins from no prices, because its scaling depends on starting coarse. Trees from
its prices close the gap that it may leave. If the auction is stopped before it has as many pairs as
the trees had, the result has the pairs of the trees.

The engine has no kernels and no device memory of its own. It uses those of hungarian.py and
auction.py.
"""

from __future__ import annotations

import contextlib

from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.cuda.assignment import auction, hungarian
from gpumatch.cuda.assignment.hungarian import Patience
from gpumatch.cuda.assignment.sparse import engine as sparse
from gpumatch.cuda.counting import count_matched

__all__ = ["run"]

_STEPS_FOR_MOST = 2048  # or one a row, if that is more
_STEPS_A_ROW = 16


def run(task: AssignmentTask) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    if sparse.takes(task.costs, task.limit):
        return sparse.run(task)
    if _grow_trees(task):
        return True
    if task.control.stopped:
        return False
    trees = task.solution.copy()
    task.solution.clear()
    ended, has_room = False, False
    try:
        with contextlib.suppress(MemoryError):
            ended = auction.run(task)
            has_room = True
    finally:
        if not ended and _pairs(task.solution) < _pairs(trees):
            task.solution.assign_from(trees)
    return ended if has_room else hungarian.run_tree(task)


def patience_for(nrows: int) -> Patience:
    """How long trees may grow."""
    return Patience(max(_STEPS_FOR_MOST, nrows), _STEPS_FOR_MOST + _STEPS_A_ROW * nrows)


def _grow_trees(task: AssignmentTask) -> bool:
    """Whether trees end in time, and have room for the matrix that they make of sparse costs."""
    try:
        return hungarian.run_tree(task, patience=patience_for(task.costs.shape[0]))
    except MemoryError:
        if task.costs.has_matrix:
            raise
    return False


def _pairs(solution: Solution) -> int:
    return count_matched(solution.row_to_col)
