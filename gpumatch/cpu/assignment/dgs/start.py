"""The start of Deep Greedy Switching: unmatched rows get columns at random, or their cheapest."""

from __future__ import annotations

from gpumatch.contracts import AssignmentTask
from gpumatch.cpu.assignment.dgs.entries import BUDGET, entry_at, places_of
from gpumatch.cpu.matching.completion import complete
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.numeric.arrays import count_matched
from gpumatch.numeric.dgs_start import any_pairs, turns

__all__ = ["start_from", "take_cheapest"]


@kernel
def take_cheapest(entries, row_to_col, col_to_row, rows, done, limit, budget):
    """Give rows[done:] the cheapest unmatched columns below ``limit``; return how many are done."""
    while done < rows.size and budget > 0:
        row = rows[done]
        first, last = places_of(entries, row)
        least, nearest = limit, -1
        for place in range(first, last):
            col, cost = entry_at(entries, row, place)
            if cost < least and col_to_row[col] < 0:
                least, nearest = cost, col
        if nearest >= 0:
            row_to_col[row], col_to_row[nearest] = nearest, row
        budget -= 1 + last - first
        done += 1
    return done


def start_from(start: str, task: AssignmentTask) -> bool:
    """Match the rows, all if there is no limit and they can be; False if stopped."""
    row_to_col, col_to_row = task.mates
    if start == "random":
        _take_any(task)
    elif not _take_cheapest(task):
        return False
    if task.limit is not None or (row_to_col >= 0).all():
        return True
    return complete(task, row_to_col, col_to_row)


def _take_any(task: AssignmentTask) -> None:
    """Give each unmatched row an unmatched column at random, if it may take it."""
    row_to_col, col_to_row = task.mates
    rows, cols = any_pairs(row_to_col, col_to_row, task.seed)
    if not task.costs.is_complete:
        is_allowed = task.costs.allows(rows, cols)
        rows, cols = rows[is_allowed], cols[is_allowed]
    row_to_col[rows], col_to_row[cols] = cols, rows


def _take_cheapest(task: AssignmentTask) -> bool:
    """Give the rows, one after the other, their cheapest unmatched columns; False if stopped."""
    costs, limit = task.costs, task.limit
    row_to_col, col_to_row = task.mates
    rows, entries = turns(row_to_col, task.seed), costs.entries()
    row_limit = costs.far if limit is None else limit
    done = 0
    while done < rows.size:
        done = take_cheapest(
            entries,  # IN
            row_to_col, col_to_row,  # OUT
            rows, done, row_limit, BUDGET,  # IN
        )  # fmt: skip
        if task.control.tick(count_matched(row_to_col)):
            return False
    return True
