"""What both Hungarian variants begin and end with: a full dense problem, and its initial reduction.

A sparse problem gets a dense matrix. If a row may go without at ``limit``, it gets an additional
column at that price. So every row must be matched, there are no fewer columns than rows, and
``far`` (inf, or the greatest int64) forbids a pair. O(nm) of memory, O(n(n + m)) with a limit.

Rows are reduced by their least cost, which is the dual of the row. Columns are then reduced by
their least entry, but only if there are as many columns as rows. Otherwise a column may stay
unmatched, and its dual must be 0. Then each row takes the first free column to which it is tight.
The paper leaves that to its first searches; its initial assignments are all those before the first
dual update.

Integers do not overflow. Let C = max |c|, and u and v the duals of rows and columns. u_i >= -C,
because it never falls. An alternating path of 2n - 1 pairs at most leads from row i to an unmatched
column, whose dual is not negative. So u_i <= (2n - 1) C, and v_j = c_ij - u_i >= -2n C for matched
columns. So slacks are at most 2(n + 1) C < 2**63. The sum in `tight_at` may exceed that, and is cut
off at ``far``, which theta, the difference of two u_i, never reaches. Given duals that are too
large are not used.

Reference: Date, Nagi, *GPU-accelerated Hungarian algorithms for the Linear Assignment Problem*,
Parallel Computing 57, 2016, section 2.2 and Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Costs
from gpumatch.cpu.assignment.either.fair_duals import write_fair_duals
from gpumatch.cpu.numba_tools.compiled import vector_kernel
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = [
    "BUDGET",
    "Problem",
    "col_minima",
    "dense_matrix",
    "far_of",
    "low_of",
    "match_tight",
    "row_minima",
    "tight_at",
]

BUDGET = 2**26
"""Entries looked at between two returns to Python: at a nanosecond or two each, about 0.1 s."""
ADOPTIONS = 4
"""Times that given prices are repaired before they are given up: a few passes over the costs."""


def dense_matrix(costs: Costs, limit: float | None) -> np.ndarray:
    """The matrix, in which each row has a column of its own for being unmatched at `limit`."""
    if limit is None:
        return costs.dense()
    nrows, ncols = costs.shape
    values = np.full((nrows, ncols + nrows), costs.far)
    costs.dense(out=values[:, :ncols])
    np.fill_diagonal(values[:, ncols:], limit)
    return values


@vector_kernel
def tight_at(cost, row_dual, col_dual, since, far):
    """The time at which a pair is tight if its row's dual rises ``since`` a time, or ``far``."""
    slack = (cost - row_dual) - col_dual
    return slack + since if cost < far and slack < far - since else far


def far_of(number: np.dtype) -> Any:
    """Return a number above all others of its type."""
    return number.type(np.iinfo(number).max if number.kind == "i" else np.inf)


def low_of(number: np.dtype) -> Any:
    """Return a number below all others of its type."""
    return number.type(np.iinfo(number).min if number.kind == "i" else -np.inf)


class Problem:
    """A full problem with feasible duals and a matching of pairs that are tight, up to rounding.

    Attributes
    ----------
    values : (n, m) array
        The costs, ``far`` for forbidden pairs.
    row_to_col, col_to_row, row_dual, col_dual : arrays
        The state to work on; a column from ``real`` on stands for going without.
    low, far
        Below and above all numbers, in the dtype of the duals.
    workers : Workers
        Threads to share work with. Leaving the problem as a context closes them.

    Notes
    -----
    However the context is left, the caller's arrays get the state. The row duals are made again
    from the column duals, so that no pair undercuts them.
    """

    def __init__(self, task: AssignmentTask, *, threads: int) -> None:
        row_to_col, col_to_row = task.mates
        col_dual = task.solution.col_dual
        self._given, self._limit = task.solution, task.limit
        self.values = dense_matrix(task.costs, task.limit)
        self._largest = max(task.costs.largest, abs(task.limit or 0))
        nrows, ncols = self.values.shape
        number = col_dual.dtype
        self.real = col_to_row.size
        self.is_square = nrows == ncols
        self.row_to_col = row_to_col.copy()
        self.col_to_row = np.full(ncols, -1, np.int32)
        self.col_to_row[: self.real] = col_to_row
        self.row_dual = np.zeros(nrows, number)
        self.col_dual = np.zeros(ncols, number)
        self.col_dual[: self.real] = col_dual
        self.far = far_of(number)
        self.low = low_of(number)
        self.workers = Workers(threads, self.values.size)

    def __enter__(self) -> Problem:
        self.workers.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.workers.__exit__(*exception)
        (row_to_col, col_to_row), (row_dual, col_dual) = self._given.mates, self._given.duals
        row_to_col[:] = np.where(self.row_to_col < self.real, self.row_to_col, -1)
        rows = np.flatnonzero(row_to_col >= 0)
        col_to_row[:] = -1
        col_to_row[row_to_col[rows]] = rows
        if not self.is_square:
            np.minimum(self.col_dual, 0, out=self.col_dual)
        elif col_dual.size:
            self.col_dual -= self.col_dual.max()
        col_dual[:] = self.col_dual[: self.real]
        if row_dual.dtype.kind == "f":
            write_fair_duals(self.values, self.col_dual, row_dual, self._limit)
        else:
            row_minima(
                self.values, self.col_dual, self.far,  # IN
                row_dual,  # OUT
                0, row_dual.size,  # IN
            )  # fmt: skip
        self._given.has_duals = self._given.are_fair = True

    @property
    def matched(self) -> int:
        """Rows that are matched to columns of the caller."""
        mates = self.row_to_col
        return int(np.count_nonzero((mates >= 0) & (mates < self.real)))

    def reduce(self, control: Control) -> bool:
        """Make the duals feasible, keeping given pairs that stay tight; False when stopped."""
        if self._may_overflow():
            self.col_dual[:] = 0
        if not self.is_square:
            np.minimum(self.col_dual, 0, out=self.col_dual)
        for _ in range(ADOPTIONS):
            if not self.is_square:
                self.col_dual[self.col_to_row < 0] = 0
            if not self._reduce_rows(control):
                return False
            if not self._drop_slack_pairs():
                return self._reduce_columns(control)
        self.row_to_col[:] = self.col_to_row[:] = -1
        self.col_dual[:] = 0
        return self._reduce_rows(control) and self._reduce_columns(control)

    def match_tight(self, control: Control) -> bool:
        """Match rows to columns as far as tight pairs are free; False when stopped."""
        before = self.matched
        state = self.values, self.row_dual, self.col_dual, self.far
        for rows in self.blocks():
            match_tight(
                *state,  # IN
                self.row_to_col, self.col_to_row,  # OUT
                *rows,  # IN
            )  # fmt: skip
            if control.tick(self.matched):
                return False
        matched = self.matched
        control.phase(found=matched - before, matched=matched, updates=0)
        return True

    def _may_overflow(self) -> bool:
        """True if sums from the given duals might overflow integers."""
        if self.col_dual.dtype.kind == "f" or not self.col_dual.size:
            return False
        most = max(-int(self.col_dual.min()), int(self.col_dual.max()))
        return (self.row_to_col.size + 1) * self._largest + most >= 2**62

    def _reduce_rows(self, control: Control) -> bool:
        state = self.values, self.col_dual, self.far, self.row_dual  # the last is OUT
        for first, last in self.blocks():
            self.share(partial(row_minima, *state), first, last)
            if control.tick(self.matched):
                return False
        return True

    def _drop_slack_pairs(self) -> bool:
        rows = np.flatnonzero(self.row_to_col >= 0)
        cols = self.row_to_col[rows]
        is_slack = self.values[rows, cols] - self.col_dual[cols] > self.row_dual[rows]
        self.row_to_col[rows[is_slack]] = -1
        self.col_to_row[cols[is_slack]] = -1
        return bool(is_slack.any())

    def _reduce_columns(self, control: Control) -> bool:
        if not self.is_square:
            return True
        least = np.full_like(self.col_dual, self.far)
        state = self.values, self.row_dual, self.col_dual, self.far, least  # the last is OUT
        for rows in self.blocks():
            self.share(partial(col_minima, *state, *rows), 0, least.size)
            if control.tick(self.matched):
                return False
        np.add(self.col_dual, least, out=self.col_dual, where=least < self.far)
        return True

    def blocks(self) -> list[tuple[int, int]]:
        """Ranges of rows with about `BUDGET` entries."""
        nrows, ncols = self.values.shape
        step = max(1, BUDGET // max(ncols, 1))
        return [(first, min(first + step, nrows)) for first in range(0, nrows, step)]

    def share(self, kernel: Callable[[int, int], object], first: int, last: int) -> None:
        """Call ``kernel(begin, end)`` on every worker's part of the range."""
        count = self.workers.threads

        def part(worker: int) -> bool:
            begin, end = (first + (last - first) * k // count for k in (worker, worker + 1))
            kernel(begin, end)
            return True

        self.workers.run(part, count)


@vector_kernel
def row_minima(values, col_dual, far, least, first, last):
    """The least of c_ij - col_dual[j] in rows first to last."""
    for row in range(first, last):
        line = values[row]
        lowest = far
        for col in range(col_dual.size):
            there = line[col] - col_dual[col] if line[col] < far else far
            lowest = there if there < lowest else lowest
        least[row] = lowest


@vector_kernel
def col_minima(values, row_dual, col_dual, far, least, first, last, begin, end):
    """Lower ``least`` to the least slack in columns begin to end of rows first to last."""
    for row in range(first, last):
        line, dual = values[row], row_dual[row]
        for col in range(begin, end):
            there = tight_at(line[col], dual, col_dual[col], 0, far)
            least[col] = there if there < least[col] else least[col]


@vector_kernel
def match_tight(values, row_dual, col_dual, far, row_to_col, col_to_row, first, last):
    """Give rows first to last, where free, the first free column that is tight."""
    for row in range(first, last):
        if row_to_col[row] >= 0:
            continue
        line, dual = values[row], row_dual[row]
        for col in range(col_dual.size):
            if col_to_row[col] < 0 and tight_at(line[col], dual, col_dual[col], 0, far) <= 0:
                row_to_col[row] = col
                col_to_row[col] = row
                break
