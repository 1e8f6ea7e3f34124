"""The GPU's assignment engine: alternating trees while they find columns, else the auction.

Which of the two is fast is a matter of the costs. Where most rows have a good column of their own,
trees match half of the rows in a search or two, and are up to ten times as fast as the auction.
Where all rows want the same few columns, or any that are far away, nearly every row needs a search
of its own, n² levels in all, and the auction is ten to fifty times as fast. Nobody can tell
beforehand, but a short time of trees does: then the auction begins anew, for the prices of trees
cut short do it no good. The gap that it may leave is closed by trees from its prices.

It has no kernels and no memory of its own: hungarian.py and auction.py have.
"""

from __future__ import annotations

from typing import Any

from gpumatch.cuda import auction, hungarian
from gpumatch.cuda.costs import on_device
from gpumatch.cuda.hungarian import Patience

__all__ = ["run"]

_STEPS_FOR_HALF = 2048  # or one a row, if that is more
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
    solution = row_to_col, col_to_row, row_dual, col_dual
    costs = on_device(costs)
    patience = patience_for(costs.shape[0])
    if hungarian.run_tree(costs, *solution, control, patience=patience, **options):
        return True
    if control.stopped:
        return False
    begin_anew(*solution)
    try:
        return auction.run(costs, *solution, control, **options)
    except MemoryError:
        begin_anew(*solution)
        return hungarian.run_tree(costs, *solution, control, **options)


def patience_for(nrows: int) -> Patience:
    """How long trees are given."""
    return Patience(max(_STEPS_FOR_HALF, nrows), _STEPS_FOR_HALF + _STEPS_A_ROW * nrows)


def begin_anew(row_to_col: Any, col_to_row: Any, row_dual: Any, col_dual: Any) -> None:
    row_to_col[:] = col_to_row[:] = -1
    row_dual[:] = col_dual[:] = 0
