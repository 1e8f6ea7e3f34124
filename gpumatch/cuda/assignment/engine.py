"""The GPU's assignment engine: alternating trees while they find columns, else the auction.

Which of the two is fast is a matter of the costs. Where most rows have a good column of their own,
trees match nine rows in ten within a few searches, and were up to 24 times as fast as the auction.
Where all rows want the same few columns, or any that are far away, nearly every row needs a search
of its own, n² levels in all, and the auction is up to fifty times as fast. Nobody can tell
beforehand, but a short time of trees does (bench/results/assignment-h200.json).

The auction then begins anew, for its scaling rests on starting coarse. The gap that it may leave is
closed by trees from its prices. Stopped before it has as many pairs as the trees had, it leaves
theirs.

It has no kernels of its own: hungarian.py and auction.py have. Nor has it memory on the device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from gpumatch.arrays import count_matched
from gpumatch.cuda.assignment import auction, hungarian
from gpumatch.cuda.assignment.costs import Solution, moved_to_device
from gpumatch.cuda.assignment.hungarian import Patience

__all__ = ["run"]

_STEPS_FOR_MOST = 2048  # or one a row, if that is more
_STEPS_A_ROW = 16


def run(
    costs: Any,
    row_to_col: Any,
    col_to_row: Any,
    row_dual: Any,
    col_dual: Any,
    control: Any,
    **options: Any,
) -> bool:
    """Match the rows at least cost, as `gpumatch.assignment` tells; True unless stopped."""
    solution = Solution(row_to_col, col_to_row, row_dual, col_dual)
    costs = moved_to_device(costs)
    if _grow_trees(costs, solution, control, options):
        return True
    if control.stopped:
        return False
    trees = Solution(*(array.copy() for array in solution))
    _begin_anew(solution)
    ended, has_room = False, False
    try:
        with contextlib.suppress(MemoryError):
            ended = auction.run(costs, *solution, control, **options)
            has_room = True
    finally:
        if not ended and count_matched(row_to_col) < count_matched(trees.row_to_col):
            for array, of_trees in zip(solution, trees):
                array[:] = of_trees
    return ended if has_room else hungarian.run_tree(costs, *solution, control, **options)


def patience_for(nrows: int) -> Patience:
    """How long trees are given."""
    return Patience(max(_STEPS_FOR_MOST, nrows), _STEPS_FOR_MOST + _STEPS_A_ROW * nrows)


def _grow_trees(costs: Any, solution: Solution, control: Any, options: Mapping[str, Any]) -> bool:
    """Whether trees end in time, and have room for the matrix that they make of sparse costs."""
    patience = patience_for(costs.shape[0])
    try:
        return hungarian.run_tree(costs, *solution, control, patience=patience, **options)
    except MemoryError:
        if not costs.is_sparse:
            raise
    return False


def _begin_anew(solution: Solution) -> None:
    solution.row_to_col[:] = solution.col_to_row[:] = -1
    solution.row_dual[:] = solution.col_dual[:] = 0
