"""Join unmatched rows and columns whose pair costs no more than a bound, on the host.

`gpumatch.problems.at_limit` says why. Threads mark the rows that have such a pair, which are none
for most costs. The marked rows then take, in their order, the first such column that is still
unmatched.

    entries       a matrix, or CSR, as in `gpumatch.contracts`
    row_to_col    the column of each row, -1 for none; col_to_row likewise
    floor[j]      what column j costs at least: the greatest number if it is matched, else the least
    marks[i]      whether row i has a pair within the bound

No row is marked at the greatest number, which costs of a problem do not reach.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.contracts import Entries
from gpumatch.cpu.assignment.either.entries import by_entries, count_entries
from gpumatch.cpu.numba_tools.compiled import vector_kernel
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.numba_tools.views import view
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["join", "join_listed"]

BLOCK = 2**18
"""Entries that a thread reads between two looks at Python."""
AT_ONCE = 8
"""Entries that are read in the time of one edge of a graph, by vectors."""


def join(
    entries: Entries, bound: Any, row_to_col: np.ndarray, col_to_row: np.ndarray, threads: int
) -> None:
    """Join what the bound allows, until nothing more can be joined."""
    nrows, size = row_to_col.size, count_entries(entries)
    marks, number = np.zeros(nrows, bool), np.asarray(bound).dtype
    least, greatest = _ends(number)
    floor = np.where(col_to_row < 0, least, greatest).astype(number)
    step = max(1, BLOCK * nrows // max(size, 1))
    read = int(np.count_nonzero(row_to_col < 0)) * size // nrows

    def look(block: int) -> None:
        first = block * step
        last = min(first + step, nrows)
        mark_rows(entries, bound, row_to_col, floor, first, last, marks)

    with Workers(threads, read // AT_ONCE) as workers:
        workers.deal(look, -(-nrows // step))
    if marks.any():
        join_rows(entries, bound, marks, row_to_col, col_to_row)


def _ends(number: np.dtype) -> tuple[Any, Any]:
    """Return the least and the greatest number of a dtype."""
    if number.kind == "f":
        return -np.inf, np.inf
    return np.iinfo(number).min, np.iinfo(number).max


@vector_kernel
def join_listed(rows, cols, row_to_col, col_to_row):
    """Join pairs that are listed, as far as both are unmatched."""
    for k in range(rows.size):
        row, col = rows[k], cols[k]
        if row_to_col[row] < 0 and col_to_row[col] < 0:
            row_to_col[row] = col
            col_to_row[col] = row


@vector_kernel
def mark_rows(entries, bound, row_to_col, floor, first, last, marks):
    """Mark the unmatched rows that have an unmatched column within the bound."""
    for row in range(first, last):
        if row_to_col[row] < 0:
            marks[row] = _has(entries, row, bound, floor)


@vector_kernel
def join_rows(entries, bound, marks, row_to_col, col_to_row):
    """Let the marked rows take the first column that they may."""
    for row in range(marks.size):
        if marks[row]:
            col = _first(entries, row, bound, col_to_row)
            if col >= 0:
                row_to_col[row] = col
                col_to_row[col] = row


@vector_kernel
def _has_dense(values, row, bound, floor):
    costs, least = view(values, (row, 0), values.shape[1]), greater(values[row, 0], floor[0])
    for col in range(costs.size):
        least = lesser(least, greater(costs[col], floor[col]))
    return least <= bound


@vector_kernel
def _has_stored(entries, row, bound, floor):
    indptr, indices, weights = entries
    has = False
    for place in range(indptr[row], indptr[row + 1]):
        has |= (weights[place] <= bound) & (floor[indices[place]] <= bound)
    return has


@vector_kernel
def _first_dense(values, row, bound, mates):
    for col in range(values.shape[1]):
        if values[row, col] <= bound and mates[col] < 0:
            return col
    return -1


@vector_kernel
def _first_stored(entries, row, bound, mates):
    indptr, indices, weights = entries
    for place in range(indptr[row], indptr[row + 1]):
        if weights[place] <= bound and mates[indices[place]] < 0:
            return np.int64(indices[place])
    return np.int64(-1)


_has = by_entries(_has_dense, _has_stored)
_first = by_entries(_first_dense, _first_stored)
