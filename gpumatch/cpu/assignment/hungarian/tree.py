"""The Hungarian algorithm with alternating trees and column slacks, by one thread or several.

Trees grow from all unmatched rows at once, along tight pairs: those with c_ij = u_i + v_j. When
they reach no unmatched column, the duals of their rows rise and those of their columns fall by
theta, the least slack of the columns outside. `run` has two orders:

``search="levels"``
    Breadth-first, level by level. All threads share a wide level, by columns. When no tree grows
    further, each tree that has reached an unmatched column gives one augmenting path. This is the
    paper's parallel algorithm (4.3), which its OpenMP version runs on 1 and 8 threads.
``search="stack"``
    Depth-first. The first unmatched column gives the one augmenting path. This is the sequential
    algorithm (2.3).

O(n) searches of O(nm) each, for n <= m rows and columns. The result depends only on the costs and
``search``.

Time instead of slack
---------------------
Let delta be the sum of theta since the search began. A row that joined a tree at time t now has the
dual u_i + delta - t. So its pair with a column j outside is tight from the time
((c_ij - u_i) - v_j) + t on. ``slack[j]`` holds the least such time: the paper's slack, plus delta.
So a dual update changes only delta, and the duals are written once a search. A pair is tight
exactly when ``slack[j] <= delta``, whatever the rounding is. An update sets delta to the least
``slack`` outside, so at least one column joins. So a search has at most n updates, and ends.

The paper adds theta / 2 to all rows in trees and all columns outside, and takes as much from the
others. That is the same, except for a constant that moves from rows to columns. Here integers stay
integers.

    slack[j]     see above; ``low`` for a column in a tree, or found to be unmatched
    pred[j]      the row that ``slack[j]`` comes from (P_c; P_r is row_to_col, for a row that is
                 no root joins through its mate)
    time[i]      delta when row i joined
    root[i]      the unmatched row whose tree it is in
    rows         the rows of the trees, roots first, in the order of joining
    stack        rows still to be scanned, the next at the end (``search="stack"``)
    ends         unmatched columns found; end[i] the one that ends the path from root i
    spot         the integers FIRST, LAST (the level rows[FIRST:LAST] is still to be scanned; with
                 a stack, rows[FIRST:] have to be put there), TAIL (of ``rows``), TOP (of
                 ``stack``), ENDS (how many), LEVELS
    mark         delta

Reference: Date, Nagi, *GPU-accelerated Hungarian algorithms for the Linear Assignment Problem*,
Parallel Computing 57, 2016, sections 2.3 and 4, Algorithms 1, 2, 4, 5, 6, 9; after Lawler,
*Combinatorial Optimization: Networks and Matroids*, 1976.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

import numpy as np

from gpumatch.contracts import AssignmentTask, Control
from gpumatch.cpu.assignment.hungarian.problem import BUDGET, Problem, tight_at
from gpumatch.cpu.numba_tools.compiled import vector_kernel
from gpumatch.cpu.searches.paths import turn_from

__all__ = ["augment", "join", "nearest_time", "offer", "reverse", "run", "write_duals"]

FIRST, LAST, TAIL, TOP, ENDS, LEVELS = range(6)
BLOCK = 2048
# Columns that many rows are offered to in turn. Their prices, slacks and predecessors take 40 KiB,
# so that they stay in the nearest caches.
WIDE = 2**18  # entries that are worth waking the other threads: some tenths of a millisecond


def run(task: AssignmentTask, *, search: str = "levels") -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped.

    The first assignments and then each search are a phase of the statistics, with its dual
    ``updates``. The seconds of the initial reduction, the first assignments, the forward pass, the
    dual updates and the augmentations are recorded.
    """
    kind = {"levels": _Levels, "stack": _Stack}[search]
    control = task.control
    with Problem(task, threads=task.threads) as problem:
        with control.part("initial reduction"):
            if not problem.reduce(control):
                return False
        with control.part("first assignments"):
            if not problem.match_tight(control):
                return False
        return kind(problem).solve(control)


class _Trees(ABC):
    """The trees of a search; subclasses know in which order they grow."""

    def __init__(self, problem: Problem) -> None:
        nrows, ncols = problem.values.shape
        number = problem.col_dual.dtype
        self.problem = problem
        self.rows, self.root, self.end = np.empty((3, nrows), np.int32)
        self.pred, self.ends = np.empty((2, ncols), np.int32)
        self.slack = np.empty(ncols, number)
        self.time = np.empty(nrows, number)
        self.spot = np.zeros(6, np.int64)
        self.mark = np.zeros(1, number)
        duals = problem.row_dual, problem.col_dual
        self._scanned = (
            problem.values, *duals, self.time,  # IN
            self.slack, self.pred,  # OUT
            problem.far,  # IN
        )  # fmt: skip
        self._joined = (
            problem.col_to_row,  # IN
            self.slack,  # OUT
            self.pred,  # IN
            self.time, self.root, self.rows, self.ends, self.spot,  # OUT
            self.mark,  # IN; OUT for `_update`
            problem.low,  # IN
        )  # fmt: skip

    def solve(self, control: Control) -> bool:
        """Search and augment until every row is matched or cannot be; False when stopped."""
        problem = self.problem
        while True:
            roots = np.flatnonzero(problem.row_to_col < 0).astype(np.int32)
            if not roots.size:
                return True
            before = problem.matched
            self._plant(roots)
            updates = 0
            while True:
                with control.part("forward pass"):
                    if not self._grow(control):
                        return False
                if self.spot[ENDS]:
                    break
                with control.part("dual update"):
                    if not _update(self._joined, problem.far):
                        return True
                updates += 1
                if control.tick(before):
                    return False
            with control.part("dual update"):
                self._write_duals()
            with control.part("reverse and augmentation"):
                self._augment(roots)
            levels, matched = int(self.spot[LEVELS]), problem.matched
            control.phase(levels=levels, found=matched - before, matched=matched, updates=updates)
            if control.tick(matched):
                return False

    def _plant(self, roots: np.ndarray) -> None:
        self.slack[:] = self.problem.far
        self.time[roots] = 0
        self.root[roots] = roots
        self.rows[: roots.size] = roots
        self.spot[:] = 0
        self.spot[TAIL] = roots.size
        self.mark[0] = 0

    @abstractmethod
    def _grow(self, control: Control) -> bool:
        """Scan the rows that wait; False when stopped."""

    def _write_duals(self) -> None:
        problem = self.problem
        rows = self.rows[: self.spot[TAIL]]
        duals = problem.row_dual, problem.col_dual
        write_duals(
            rows, self.time, self.mark[0], problem.row_to_col,  # IN
            *duals,  # OUT
        )  # fmt: skip

    def _augment(self, roots: np.ndarray) -> None:
        problem = self.problem
        self.end[roots] = -1
        reverse(
            self.ends[: self.spot[ENDS]], self.pred, self.root,  # IN
            self.end,  # OUT
        )  # fmt: skip
        augment(
            roots, self.end, self.pred,  # IN
            problem.row_to_col, problem.col_to_row,  # OUT
        )  # fmt: skip


class _Levels(_Trees):
    """Trees that grow level by level, until no row waits."""

    def _grow(self, control: Control) -> bool:
        spot, ncols, workers = self.spot, self.slack.size, self.problem.workers
        wide = WIDE if workers.threads > 1 else self.problem.values.size + 1
        while not _grow_levels(self._scanned, self._joined, wide, BUDGET):
            count = _next_rows(spot, ncols, BUDGET)
            if count * ncols >= wide:
                rows = self.rows[spot[FIRST] : spot[FIRST] + count]
                self.problem.share(partial(offer, self._scanned, rows), 0, ncols)
                spot[FIRST] += count
                if spot[FIRST] == spot[LAST]:
                    join(self._joined)
            if control.tick(self.problem.matched):
                return False
        return True


class _Stack(_Trees):
    """Trees that grow at the row that joined last, until an unmatched column is found."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.stack = np.empty_like(self.rows)

    def _grow(self, control: Control) -> bool:
        while not _grow_stack(self._scanned, self._joined, self.stack, BUDGET):
            if control.tick(self.problem.matched):
                return False
        self.spot[ENDS] = min(self.spot[ENDS], 1)
        return True


@vector_kernel
def _grow_levels(scanned, joined, wide, budget):
    """Scan level after level to the end (True), or to a ``wide`` one or the end of the budget."""
    _, slack, _, _, _, rows, _, spot, _, _ = joined
    while spot[FIRST] < spot[TAIL]:
        if spot[FIRST] == spot[LAST]:
            spot[LAST] = spot[TAIL]
            spot[LEVELS] += 1
        count = _next_rows(spot, slack.size, budget)
        if budget <= 0 or count * slack.size >= wide:
            return False
        offer(scanned, rows[spot[FIRST] : spot[FIRST] + count], 0, slack.size)
        spot[FIRST] += count
        budget -= count * slack.size
        if spot[FIRST] == spot[LAST]:
            join(joined)
    return True


@vector_kernel
def _next_rows(spot, ncols, budget):
    """Return how many rows of the level the budget allows."""
    return min(spot[LAST] - spot[FIRST], max(1, budget // ncols))


@vector_kernel
def _grow_stack(scanned, joined, stack, budget):
    """Scan the row on top of the stack until a path ends or none is left (True)."""
    _, slack, _, _, _, rows, _, spot, _, _ = joined
    while True:
        while spot[FIRST] < spot[TAIL]:
            stack[spot[TOP]] = rows[spot[FIRST]]
            spot[FIRST] += 1
            spot[TOP] += 1
        if spot[ENDS] > 0 or spot[TOP] == 0:
            return True
        if budget <= 0:
            return False
        spot[TOP] -= 1
        top = stack[spot[TOP] : spot[TOP] + 1]
        budget -= slack.size
        offer(scanned, top, 0, slack.size)
        join(joined)


@vector_kernel
def offer(scanned, rows, begin, end):
    """Offer columns begin to end the way through each of ``rows``."""
    values, row_dual, col_dual, time, slack, pred, far = scanned
    for left in range(begin, end, BLOCK):
        right = min(left + BLOCK, end)
        # Slices of one length compile to vector instructions.
        price, near, before = col_dual[left:right], slack[left:right], pred[left:right]
        for k in range(rows.size):
            row = rows[k]
            line, dual, since = values[row, left:right], row_dual[row], time[row]
            for col in range(price.size):
                there = tight_at(line[col], dual, price[col], since, far)
                closer = there < near[col]
                near[col] = there if closer else near[col]
                before[col] = row if closer else before[col]


@vector_kernel
def join(joined):
    """Let columns whose pair is tight join with their mates; put unmatched ones among the ends."""
    col_to_row, slack, pred, time, root, rows, ends, spot, mark, low = joined
    delta = mark[0]
    for col in range(slack.size):
        if slack[col] > delta or slack[col] == low:
            continue
        slack[col] = low
        row = col_to_row[col]
        if row < 0:
            ends[spot[ENDS]] = col
            spot[ENDS] += 1
        else:
            time[row] = delta
            root[row] = root[pred[col]]
            rows[spot[TAIL]] = row
            spot[TAIL] += 1


@vector_kernel
def _update(joined, far):
    """Raise delta by theta, and let columns join (Algorithm 9); False if none ever can."""
    _, slack, _, _, _, _, _, _, mark, low = joined
    nearest = nearest_time(slack, low, far)
    if nearest == far:
        return False
    mark[0] = nearest
    join(joined)
    return True


@vector_kernel
def nearest_time(slack, low, far):
    """Return the least ``slack`` of a column outside the trees, or ``far``."""
    nearest = far
    for col in range(slack.size):
        known = slack[col] if slack[col] > low else far
        nearest = known if known < nearest else nearest
    return nearest


@vector_kernel
def write_duals(rows, time, delta, row_to_col, row_dual, col_dual):
    """Raise the duals of rows in trees, and lower those of their mates, by delta since joining."""
    for k in range(rows.size):
        row = rows[k]
        rise = delta - time[row]
        row_dual[row] += rise
        if row_to_col[row] >= 0:
            col_dual[row_to_col[row]] -= rise


@vector_kernel
def reverse(ends, pred, root, end):
    """Choose one end for each tree: as among the paper's threads, the last wins (Algorithm 5)."""
    for k in range(ends.size):
        end[root[pred[ends[k]]]] = ends[k]


@vector_kernel
def augment(roots, end, pred, row_to_col, col_to_row):
    """Augment along the chosen paths (Algorithm 6), from their ends."""
    for k in range(roots.size):
        turn_from(end[roots[k]], pred, row_to_col, col_to_row)
