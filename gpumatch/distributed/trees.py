"""The engine for costs that are divided among ranks: alternating trees, minima reduced.

It is the search of `gpumatch.cpu.assignment.hungarian_tree`, level by level, whose header states
the arrays and why it ends. Trees grow from all unmatched rows at once, so that a search gives many
augmenting paths. Rows are divided among the ranks, and each rank offers the columns the way through
its own rows of a level. Then

1. the least offers are reduced over the ranks: those of all columns at once, or those that are less
   than before, with their rows, if these are few;
2. of the columns that join now, if they were among all, the ranks that have offered the least say
   through which row.

All else is the same on every rank, and needs no communication: dual updates, joining, augmenting.

    near[j]     the least time that this rank has offered; ``low`` for a column in a tree
    before[j]   the own row that it comes from
    slack[j]    the least of all ranks' ``near[j]``
    pred[j]     the row that it comes from, if ``has_pred[j]``, and always when the column joins

References
----------
Date, Nagi, *GPU-accelerated Hungarian algorithms for the Linear Assignment Problem*, Parallel
Computing 57, 2016: the search; its section 5 gathers at a root what is reduced here.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from gpumatch.contracts import Solution
from gpumatch.distributed.problem import Problem

__all__ = ["Trees"]

NOBODY = np.iinfo(np.int32).max


class Trees:
    """The trees of a search; `kernels` has what a rank computes by itself."""

    def __init__(self, problem: Problem, kernels: ModuleType) -> None:
        nrows, ncols = problem.row_to_col.size, problem.col_to_row.size
        number = problem.col_dual.dtype
        self.problem, self.world, self.kernels = problem, problem.world, kernels
        self.rows, self.root, self.end = np.empty((3, nrows), np.int32)
        self.pred, self.ends = np.empty((2, ncols), np.int32)
        self.slack = np.empty(ncols, number)
        self.time = np.zeros(nrows, number)
        self.near = np.empty(problem.real, number)
        self.before = np.empty(problem.real, np.int32)
        self.has_pred = np.zeros(problem.real, bool)
        self.whole = 0  # reductions of all columns
        self.spot, self.mark = np.zeros(6, np.int64), np.zeros(1, number)
        self._joined = (
            problem.col_to_row,  # IN
            self.slack,  # OUT
            self.pred,  # IN
            self.time, self.root, self.rows, self.ends, self.spot,  # OUT
            self.mark, problem.low,  # IN
        )  # fmt: skip

    def solve(self) -> bool:
        """Match until every row is matched or cannot be; False when stopped."""
        with self.world.step("initial reduction"):
            self.problem.reduce()
        with self.world.step("first assignments"):
            self.problem.match_tight()
        return self._search()

    def solution(self) -> Solution:
        """All mates and duals, on all ranks."""
        return self.problem.solution()

    def _search(self) -> bool:
        """Search and augment until every row is matched or cannot be; False when stopped."""
        problem, world = self.problem, self.world
        while True:
            roots = np.flatnonzero(problem.row_to_col < 0).astype(np.int32)
            if not roots.size:
                return True
            if world.stopped:
                return False
            before = problem.matched
            self._plant(roots)
            updates = 0
            while True:
                with world.step("forward pass"):
                    self._grow()
                if self.spot[self.kernels.ENDS]:
                    break
                if world.stopped:
                    return False
                with world.step("dual update"):
                    if not self._update():
                        return True
                updates += 1
            with world.step("dual update"):
                self._write_duals()
            with world.step("reverse and augmentation"):
                self._augment(roots)
            matched = problem.count()
            world.control.phase(
                levels=int(self.spot[self.kernels.LEVELS]),
                found=matched - before,
                matched=matched,
                updates=updates,
                rows=int(self.spot[self.kernels.TAIL]),
                whole=self.whole,
            )
            world.tick(matched)

    def violator(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows, and the fewer columns that they may have, if some row cannot be matched."""
        rows = np.sort(self.rows[: self.spot[self.kernels.TAIL]])
        cols = np.flatnonzero(self.slack[: self.problem.real] == self.problem.low)
        return rows, cols

    def _plant(self, roots: np.ndarray) -> None:
        kernels = self.kernels
        self.slack[:] = self.near[:] = self.problem.far
        self.time[roots] = 0
        self.root[roots] = roots
        self.rows[: roots.size] = roots
        self.spot[:] = 0
        self.spot[kernels.TAIL] = roots.size
        self.mark[0] = self.whole = 0

    def _grow(self) -> None:
        """Scan level after level, until no row waits or a rank wants to stop."""
        kernels, spot = self.kernels, self.spot
        while spot[kernels.FIRST] < spot[kernels.TAIL] and not self.world.stopped:
            level = self.rows[spot[kernels.FIRST] : spot[kernels.TAIL]]
            spot[kernels.FIRST] = spot[kernels.TAIL]
            spot[kernels.LEVELS] += 1
            self._offer(level)
            self._reduce()
            self._join()
            self.problem.beat()

    def _offer(self, level: np.ndarray) -> None:
        """Offer all columns the way through this rank's rows, and each row its own column."""
        problem, part = self.problem, self.problem.rows.slice
        own = level[(level >= part.start) & (level < part.stop)] - np.int32(part.start)
        problem.own.offer(
            own, (problem.row_dual[part], problem.col_dual[: problem.real]),  # IN
            self.time[part],  # IN
            self.near, self.before,  # OUT
        )  # fmt: skip
        if problem.limit is not None:
            cols = problem.real + level
            self.slack[cols] = problem.limit - problem.row_dual[level] + self.time[level]
            self.pred[cols] = level

    def _reduce(self) -> None:
        """Let ``slack`` be the least that any rank has offered, by the shorter of two messages."""
        real, world = self.problem.real, self.world
        lower = np.flatnonzero(self.near < self.slack[:real])
        counts = world.counts(lower.size)
        if 2 * counts.sum() >= real:
            self.whole += 1
            least = world.allreduce(self.near, "min", counts)
            self.has_pred[least < self.slack[:real]] = False
            self.slack[:real] = least
        elif counts.any():
            rows = self.before[lower].astype(np.int64) + self.problem.rows.first
            offers = np.column_stack([self.near[lower].view(np.int64), rows << 32 | lower])
            self._take(np.concatenate(world.allgather(offers, counts)))

    def _take(self, offers: np.ndarray) -> None:
        """Lower ``slack`` by offers (time, row and column); of equal ones the least row's."""
        times = np.ascontiguousarray(offers[:, 0]).view(self.slack.dtype)
        rows, cols = offers[:, 1] >> 32, offers[:, 1] & 0xFFFFFFFF
        order = np.lexsort((rows, times, cols))
        best = order[np.unique(cols[order], return_index=True)[1]]
        cols = cols[best]
        self.slack[cols], self.pred[cols] = times[best], rows[best]
        self.has_pred[cols] = True

    def _join(self) -> None:
        """Let columns whose pair is tight join with their mates."""
        slack, low = self.slack[: self.problem.real], self.problem.low
        cols = np.flatnonzero((slack <= self.mark[0]) & (slack != low))
        asked = cols[~self.has_pred[cols]]
        if asked.size:
            rows = self.before[asked] + np.int32(self.problem.rows.first)
            rows[self.near[asked] != slack[asked]] = NOBODY
            self.pred[asked] = self.world.allreduce(rows, "min")
        self.near[cols] = low
        self.kernels.join(self._joined)

    def _update(self) -> bool:
        """Raise delta by theta, and let columns join; False if none ever can."""
        problem = self.problem
        nearest = self.kernels.nearest_time(self.slack, problem.low, problem.far)
        if nearest == problem.far:
            return False
        self.mark[0] = nearest
        self._join()
        return True

    def _write_duals(self) -> None:
        problem = self.problem
        rows = self.rows[: self.spot[self.kernels.TAIL]]
        self.kernels.write_duals(
            rows, self.time, self.mark[0], problem.row_to_col,  # IN
            problem.row_dual, problem.col_dual,  # OUT
        )  # fmt: skip

    def _augment(self, roots: np.ndarray) -> None:
        problem, kernels = self.problem, self.kernels
        self.end[roots] = -1
        kernels.reverse(
            self.ends[: self.spot[self.kernels.ENDS]], self.pred, self.root,  # IN
            self.end,  # OUT
        )  # fmt: skip
        kernels.augment(
            roots, self.end, self.pred,  # IN
            problem.row_to_col, problem.col_to_row,  # OUT
        )  # fmt: skip
