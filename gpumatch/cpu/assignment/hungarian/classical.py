"""The classical Hungarian algorithm of Kuhn and Munkres, sequential.

A search grows trees from all unmatched rows along tight pairs, those with c_ij = u_i + v_j, which
are kept in adjacency lists. When it reaches an unmatched column, it augments along the one path.
When the trees end, the duals of their rows rise and those of their columns fall by theta. Theta is
the least slack between a row in a tree and a column outside. Then the lists of rows with new tight
pairs are made again. Before a search, all lists are made again if there was such an update since
they were made.

Each search takes at most n updates of O(nm), so for n <= m rows and columns it is O(n³m) at worst.
Rows that are nearest to no column outside are not looked at.

Time instead of slack
---------------------
Let delta be the sum of theta since the search began. A row that joined a tree at time t now has the
dual u_i + delta - t. So its pair with a column j outside is tight from the time
((c_ij - u_i) - v_j) + t on, which does not change during the search. An update sets delta to the
least such time. Then that very pair is tight, whatever the rounding is, and its column joins. So a
search ends. The duals are written once a search.

The paper adds theta / 2 to all rows in trees and all columns outside, and takes as much from the
others. That is the same, except for a constant that moves from rows to columns. Here integers stay
integers.

    row_cover[i]            False for rows in trees (V_r)
    col_cover[j]            True for columns in trees (V_c)
    row_time, col_time      delta when they joined
    pred[j]                 the row from which column j was reached (P_c; P_r is row_to_col, for a
                            row that is no root is reached from its mate)
    indices[begin[i]:end[i]]  the columns of row i's tight pairs (Z)
    soonest[i]              the least time of row i's pairs with columns outside, or less: it rises
                            as columns join, and is found again only when it may be theta's
    nearest[i]              the column of that pair, -1 when not known
    stack                   rows in trees that wait, the next at the end
    spot                    the integers TOP (of ``stack``), DONE (rows of the list being worked
                            on), PAIRS (in ``indices``)

Reference: Date, Nagi, *GPU-accelerated Hungarian algorithms for the Linear Assignment Problem*,
Parallel Computing 57, 2016, section 2.2; after Munkres, *Algorithms for the assignment and
transportation problems*, J. SIAM 5, 1957.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Stopped
from gpumatch.cpu.assignment.hungarian.problem import BUDGET, Problem, tight_at
from gpumatch.cpu.heartbeat import heartbeat
from gpumatch.cpu.numba_tools.compiled import vector_kernel
from gpumatch.cpu.searches.paths import turn_from

__all__ = ["run"]

TOP, DONE, PAIRS = range(3)
NO_PATH, SPENT = -1, -2
BLOCK = 64
# Columns that are looked at together, and one by one only if that finds any: some vector registers
# full, so that the loop pays, and few enough that most blocks have no tight pair.


def run(task: AssignmentTask) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped.

    The first assignments and then each search are a phase of the statistics, with its dual
    ``updates``. The seconds of both initial steps, the matrix compression, the forward pass, the
    dual updates and the augmentations are recorded. It uses one thread, and the result depends only
    on the costs.
    """
    control = task.control
    with Problem(task, threads=1) as problem:
        with control.part("initial reduction"):
            if not problem.reduce(control):
                return False
        with control.part("first assignments"):
            if not problem.match_tight(control):
                return False
        return _Search(problem, control).solve()


class _Search:
    """The state of the search; see the module."""

    def __init__(self, problem: Problem, control: Control) -> None:
        nrows, ncols = problem.values.shape
        number = problem.col_dual.dtype
        self.problem, self.control = problem, control
        self.matched = problem.matched
        self._beat = heartbeat(control, lambda: problem.matched)
        self.row_cover, self.col_cover = np.empty(nrows, bool), np.empty(ncols, bool)
        self.row_time, self.soonest = np.empty((2, nrows), number)
        self.col_time = np.empty(ncols, number)
        self.begin, self.end = np.empty((2, nrows), np.int64)
        self.nearest, self.stack = np.empty((2, nrows), np.int32)
        self.pred = np.empty(ncols, np.int32)
        self.indices = np.empty(4 * ncols, np.int32)
        self.spot = np.zeros(3, np.int64)
        self.delta = np.zeros(1, number)
        duals = problem.row_dual, problem.col_dual
        self._slacks = problem.values, *duals, self.row_time, self.col_cover, problem.far

    def solve(self) -> bool:
        """Search and augment until every row is matched or cannot be; False when stopped."""
        is_stale = True
        try:
            while (self.problem.row_to_col < 0).any():
                before = self.matched
                self._plant()
                if is_stale:
                    self._compress_all()
                updates = 0
                col = self._grow()
                while col == NO_PATH:
                    if not self._update():
                        return True
                    updates += 1
                    self._beat()
                    self._compress(self.stack[: self.spot[TOP]])
                    col = self._grow()
                is_stale = updates > 0
                self._augment(col)
                self.matched = self.problem.matched
                found = self.matched - before
                self.control.phase(found=found, matched=self.matched, updates=updates)
                self._beat()
        except Stopped:
            return False
        return True

    def _plant(self) -> None:
        """Check optimality: cover the matched rows, and let each other row wait as a root."""
        np.greater_equal(self.problem.row_to_col, 0, out=self.row_cover)
        self.col_cover[:] = False
        self.row_time[:] = self.col_time[:] = self.delta[:] = 0
        self.soonest[:] = self.problem.low
        self.nearest[:] = -1
        roots = np.flatnonzero(~self.row_cover)
        self.stack[: roots.size] = roots
        self.spot[TOP] = roots.size

    def _compress_all(self) -> None:
        self.spot[PAIRS] = 0
        self._compress(np.arange(self.begin.size, dtype=np.int32))

    def _compress(self, rows: np.ndarray) -> None:
        """List again the tight pairs of these rows with columns outside."""
        ncols = self.pred.size
        with self.control.part("matrix compression"):
            self.spot[DONE] = 0
            while not _compress(
                self._slacks, self.delta, rows,  # IN
                self.begin, self.end, self.indices, self.spot,  # OUT
                BUDGET,  # IN
            ):  # fmt: skip
                if self.indices.size < self.spot[PAIRS] + ncols:
                    self.indices = np.concatenate([self.indices, np.empty_like(self.indices)])
                self._beat()

    def _grow(self) -> int:
        """Grow the trees from the rows that wait; the unmatched column reached, or NO_PATH."""
        with self.control.part("forward pass"):
            while True:
                col = _grow(
                    self.begin, self.end, self.indices, self.problem.col_to_row,  # IN
                    self.row_cover, self.col_cover, self.row_time, self.col_time,  # OUT
                    self.pred, self.stack, self.spot,  # OUT
                    self.delta, BUDGET,  # IN
                )  # fmt: skip
                if col != SPENT:
                    return int(col)
                self._beat()

    def _update(self) -> bool:
        """Raise delta by theta, so that rows with new tight pairs wait; False if nothing can."""
        with self.control.part("dual update"):
            while not _update(
                self._slacks,  # IN
                self.delta,  # OUT
                self.row_cover,  # IN
                self.soonest, self.nearest, self.stack, self.spot,  # OUT
                BUDGET,  # IN
            ):  # fmt: skip
                self._beat()
        return bool(self.spot[TOP])

    def _augment(self, col: int) -> None:
        """Write the duals, and augment along the path that ends in ``col``."""
        problem = self.problem
        with self.control.part("dual update"):
            problem.row_dual += np.where(self.row_cover, 0, self.delta - self.row_time)
            problem.col_dual -= np.where(self.col_cover, self.delta - self.col_time, 0)
        with self.control.part("reverse and augmentation"):
            turn_from(
                col, self.pred,  # IN
                problem.row_to_col, problem.col_to_row,  # OUT
            )  # fmt: skip


@vector_kernel
def _compress(slacks, delta, rows, begin, end, indices, spot, budget):
    """Work on the remaining rows while budget and room last; True at the end."""
    values, row_dual, col_dual, row_time, col_cover, far = slacks
    done, pairs = spot[DONE], spot[PAIRS]
    while done < rows.size and pairs + col_dual.size <= indices.size and budget > 0:
        row = rows[done]
        dual, since = row_dual[row], row_time[row]
        begin[row] = pairs
        for first in range(0, col_dual.size, BLOCK):
            last = first + BLOCK
            block = values[row, first:last], col_dual[first:last], col_cover[first:last]
            if _has_tight(block, dual, since, far, delta[0]):
                line, price, covered = block
                for k in range(line.size):
                    there = tight_at(line[k], dual, price[k], since, far)
                    if there <= delta[0] and not covered[k]:
                        indices[pairs] = first + k
                        pairs += 1
        end[row] = pairs
        done += 1
        budget -= col_dual.size
    spot[DONE], spot[PAIRS] = done, pairs
    return done == rows.size


@vector_kernel
def _grow(
    begin, end, indices, col_to_row, row_cover, col_cover, row_time, col_time, pred, stack, spot,
    delta, budget,
):  # fmt: skip
    """Grow the trees from the rows on the stack: an unmatched column, NO_PATH or SPENT."""
    top = spot[TOP]
    while top > 0:
        if budget <= 0:
            spot[TOP] = top
            return SPENT
        top -= 1
        row = stack[top]
        budget -= 1 + end[row] - begin[row]
        for k in range(begin[row], end[row]):
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
            row_time[mate] = col_time[col] = delta[0]
    return NO_PATH


@vector_kernel
def _update(slacks, delta, row_cover, soonest, nearest, stack, spot, budget):
    """Raise delta by theta, and put the rows that are due on the stack, none if nothing is near.

    False when the budget is spent before theta is known.
    """
    _, _, col_dual, _, col_cover, far = slacks
    theta_at = far
    for row in range(row_cover.size):
        while not row_cover[row] and soonest[row] < far and soonest[row] <= theta_at:
            if nearest[row] >= 0 and not col_cover[nearest[row]]:
                theta_at = soonest[row]
                break
            if budget <= 0:
                return False
            soonest[row], nearest[row] = _soonest_pair(slacks, row)
            budget -= col_dual.size
    spot[TOP] = 0
    if theta_at < far:
        delta[0] = max(delta[0], theta_at)
        for row in range(row_cover.size):
            if not row_cover[row] and soonest[row] <= delta[0]:
                stack[spot[TOP]] = row
                spot[TOP] += 1
    return True


@vector_kernel
def _soonest_pair(slacks, row):
    """Return the least time of the row's pairs with columns outside, and the first such column."""
    values, row_dual, col_dual, row_time, col_cover, far = slacks
    dual, since = row_dual[row], row_time[row]
    soonest, nearest = far, -1
    for first in range(0, col_dual.size, BLOCK):
        last = first + BLOCK
        block = values[row, first:last], col_dual[first:last], col_cover[first:last]
        if _has_tight(block, dual, since, far, soonest):
            line, price, covered = block
            for k in range(line.size):
                there = tight_at(line[k], dual, price[k], since, far)
                if there < soonest and not covered[k]:
                    soonest, nearest = there, first + k
    return soonest, nearest


@vector_kernel
def _has_tight(block, dual, since, far, time):
    """True if a row's pair with one of these columns, if outside, is tight by that time."""
    line, price, covered = block
    count = 0
    for k in range(line.size):  # no branches: it compiles to vector instructions
        count += (tight_at(line[k], dual, price[k], since, far) <= time) & (not covered[k])
    return count > 0
