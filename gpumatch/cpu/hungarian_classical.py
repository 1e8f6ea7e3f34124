"""The classical Hungarian algorithm of Kuhn and Munkres, sequential.

A search grows trees from all unmatched rows along tight pairs, those with c_ij = u_i + v_j, which
an adjacency list holds, until it comes to an unmatched column; the one augmenting path is turned.
When the trees end, the duals of their rows rise and those of their columns fall by theta, the
least slack between a row in a tree and a column outside, and the list is made anew.

Each search takes at most m updates of O(nm), so for n <= m rows and columns it is O(n²m²) in all:
much of that where costs are spread out, for then an update makes few pairs tight.

Time instead of slack
---------------------
Let delta be the sum of theta since the search began. A row that joined a tree at time t has the
dual u_i + delta - t by now, a column that did has v_j - delta + t. With t = delta outside, the pair
is tight when ((c_ij - u_i) - v_j) + row_time[i] <= col_time[j], and an update lets delta be the
least left-hand side of a row in a tree and a column outside. So that very pair is tight then,
whatever the rounding, and its column joins: a search ends. The duals are written once a search.

The paper adds theta / 2 to all rows in trees and all columns outside, and takes as much from the
others: the same, but for a constant that rows give to columns. Here integers stay integers.

    row_cover[i]            False for rows in trees (V_r)
    col_cover[j]            True for columns in trees (V_c)
    row_time, col_time      see above
    pred[j]                 the row from which column j was reached (P_c; P_r is row_to_col, for a
                            row that is no root is reached from its mate)
    indptr, indices         the columns of each row's tight pairs (Z)
    stack                   rows in trees that wait, the next at the end
    spot                    the integers TOP (of ``stack``), ROWS, PAIRS (done by the compression)
    mark                    delta

Reference: Date, Nagi, *GPU-accelerated Hungarian algorithms for the Linear Assignment Problem*,
Parallel Computing 57, 2016, section 2.2; after Munkres, *Algorithms for the assignment and
transportation problems*, J. SIAM 5, 1957.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gpumatch.cpu.initial_reduction import BUDGET, Problem

__all__ = ["run"]

TOP, ROWS, PAIRS = range(3)
NO_PATH, SPENT = -1, -2

_kernel = njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})


def run(
    costs: Any,
    row_to_col: np.ndarray,
    col_to_row: np.ndarray,
    row_dual: np.ndarray,
    col_dual: np.ndarray,
    control: Any,
    *,
    limit: float | None,
    threads: int,
    seed: int,
) -> bool:
    """Match the rows at least cost, as `gpumatch.assignment` tells; True unless stopped.

    Each search is a phase of the statistics, with its dual ``updates``, and the seconds of the
    initial reduction, the matrix compression, the forward pass, the dual updates and the
    augmentations are recorded. One thread; the result depends on nothing but the costs.
    """
    arrays = row_to_col, col_to_row, row_dual, col_dual
    with Problem(costs, *arrays, limit=limit, threads=1) as problem:
        with control.part("initial reduction"):
            if not problem.reduce(control):
                return False
        return _Search(problem, control).solve()


class _Stopped(Exception):
    """Control asked to stop."""


class _Search:
    """The state of the search; see the module."""

    def __init__(self, problem: Problem, control: Any) -> None:
        nrows, ncols = problem.values.shape
        number = problem.col_dual.dtype
        self.problem, self.control = problem, control
        self.row_cover, self.col_cover = np.empty(nrows, bool), np.empty(ncols, bool)
        self.row_time, self.col_time = np.empty(nrows, number), np.empty(ncols, number)
        self.pred = np.empty(ncols, np.int32)
        self.indptr = np.zeros(nrows + 1, np.int64)
        self.indices = np.empty(4 * ncols, np.int32)
        self.stack = np.empty(nrows, np.int32)
        self.spot = np.zeros(3, np.int64)
        self.mark = np.zeros(1, number)
        self._slacks = (
            problem.values,
            problem.row_dual,
            problem.col_dual,
            self.row_time,
            problem.far,
        )

    def solve(self) -> bool:
        """Search and augment until every row is matched or cannot be; False when stopped."""
        problem, control = self.problem, self.control
        is_stale = True
        try:
            while (problem.row_to_col < 0).any():
                before = problem.matched
                self._cover()
                updates = 0
                while True:
                    if is_stale:
                        with control.part("matrix compression"):
                            self._compress()
                        is_stale = False
                    with control.part("forward pass"):
                        col = self._grow()
                    if col != NO_PATH:
                        break
                    with control.part("dual update"):
                        if not self._update():
                            return True
                    is_stale = True
                    updates += 1
                with control.part("dual update"):
                    self._write_duals()
                with control.part("reverse and augmentation"):
                    _augment(col, self.pred, problem.row_to_col, problem.col_to_row)
                matched = problem.matched
                control.phase(found=matched - before, matched=matched, updates=updates)
        except _Stopped:
            return False
        return True

    def _cover(self) -> None:
        """Plant a tree at each unmatched row: the optimality check's covers."""
        np.greater_equal(self.problem.row_to_col, 0, out=self.row_cover)
        self.col_cover[:] = False
        self.row_time[:] = self.col_time[:] = self.mark[0] = 0

    def _compress(self) -> None:
        """List the tight pairs of all rows."""
        self.spot[ROWS] = self.spot[PAIRS] = 0
        ncols = self.pred.size
        while not _compress(
            self._slacks, self.col_time, self.indptr, self.indices, self.spot, BUDGET
        ):
            if self.indices.size < self.spot[PAIRS] + ncols:
                self.indices = np.concatenate([self.indices, np.empty_like(self.indices)])
            self._tick()

    def _grow(self) -> int:
        """Grow the trees; the unmatched column they come to, or NO_PATH."""
        rows = np.flatnonzero(~self.row_cover)
        self.stack[: rows.size] = rows
        self.spot[TOP] = rows.size
        while True:
            col = _grow(
                self.indptr, self.indices, self.problem.col_to_row, self.row_cover, self.col_cover,
                self.row_time, self.col_time, self.pred, self.stack, self.spot, self.mark, BUDGET,
            )  # fmt: skip
            if col != SPENT:
                return int(col)
            self._tick()

    def _update(self) -> bool:
        """Raise delta by theta; False if no pair leads out of the trees."""
        least = self.problem.far
        for first, last in self.problem.blocks():
            least = _least(self._slacks, self.row_cover, self.col_cover, least, first, last)
            self._tick()
        if least == self.problem.far:
            return False
        self.mark[0] = max(self.mark[0], least)
        self.row_time[self.row_cover] = self.mark[0]
        self.col_time[~self.col_cover] = self.mark[0]
        return True

    def _write_duals(self) -> None:
        self.problem.row_dual += self.mark[0] - self.row_time
        self.problem.col_dual -= self.mark[0] - self.col_time

    def _tick(self) -> None:
        if self.control.tick(self.problem.matched):
            raise _Stopped


@_kernel
def _compress(slacks, col_time, indptr, indices, spot, budget):
    """List the tight pairs of the rows left, as far as budget and room go; True at the end."""
    values, row_dual, col_dual, row_time, far = slacks
    row, pairs = spot[ROWS], spot[PAIRS]
    while row < row_dual.size and pairs + col_dual.size <= indices.size and budget > 0:
        line, dual, since = values[row], row_dual[row], row_time[row]
        for col in range(col_dual.size):
            there = ((line[col] - dual) - col_dual[col]) + since
            if there <= col_time[col] and line[col] < far:
                indices[pairs] = col
                pairs += 1
        row += 1
        indptr[row] = pairs
        budget -= col_dual.size
    spot[ROWS], spot[PAIRS] = row, pairs
    return row == row_dual.size


@_kernel
def _grow(
    indptr, indices, col_to_row, row_cover, col_cover, row_time, col_time, pred, stack, spot, mark,
    budget,
):  # fmt: skip
    """Grow the trees from the rows on the stack: an unmatched column, NO_PATH or SPENT."""
    top = spot[TOP]
    while top > 0:
        if budget <= 0:
            spot[TOP] = top
            return SPENT
        top -= 1
        row = stack[top]
        budget -= 1 + indptr[row + 1] - indptr[row]
        for k in range(indptr[row], indptr[row + 1]):
            col = indices[k]
            if col_cover[col]:
                continue
            pred[col] = row
            mate = col_to_row[col]
            if mate < 0:
                return col
            stack[top] = mate
            top += 1
            row_cover[mate] = False
            col_cover[col] = True
            row_time[mate] = col_time[col] = mark[0]
    return NO_PATH


@_kernel
def _least(slacks, row_cover, col_cover, least, first, last):
    """The least time at which a row in a tree and a column outside are tight, or ``least``."""
    values, row_dual, col_dual, row_time, far = slacks
    for row in range(first, last):
        if row_cover[row]:
            continue
        line, dual, since = values[row], row_dual[row], row_time[row]
        for col in range(col_dual.size):
            there = ((line[col] - dual) - col_dual[col]) + since
            there = there if line[col] < far and not col_cover[col] else far
            least = there if there < least else least
    return least


@_kernel
def _augment(col, pred, row_to_col, col_to_row):
    """Turn the path that ends in ``col``."""
    while col >= 0:
        row = pred[col]
        following = row_to_col[row]
        row_to_col[row] = col
        col_to_row[col] = row
        col = following
