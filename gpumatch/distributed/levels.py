"""The levels of divided alternating trees with all but the costs on the host.

`gpumatch.distributed.trees` says what they are for. The offers that are reduced are those of all
columns at once, or those that are less than before, with their rows, if these are few. Of columns
that join, if they were among all, the ranks that have offered the least say through which row.

    near[j]     the least time that this rank has offered; ``low`` for a column in a tree
    before[j]   the own row that it comes from
    slack[j]    the least of all ranks' ``near[j]``; ``low`` for a column in a tree
    pred[j]     the row that it comes from, if ``has_pred[j]``, and always when the column joins
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from gpumatch.distributed.problem import Problem
from gpumatch.distributed.trees import FOUND, GROWING, STUCK

__all__ = ["HostLevels"]

NOBODY = np.iinfo(np.int32).max


class HostLevels:
    """As `gpumatch.distributed.trees.Levels`; `kernels` has what a rank computes by itself."""

    name = "trees"
    most = 1

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
        self.spot, self.mark = np.zeros(6, np.int64), np.zeros(1, number)
        self._joined = (
            problem.col_to_row,  # IN
            self.slack,  # OUT
            self.pred,  # IN
            self.time, self.root, self.rows, self.ends, self.spot,  # OUT
            self.mark, problem.low,  # IN
        )  # fmt: skip

    def plant(self) -> int:
        problem, kernels = self.problem, self.kernels
        problem.count()
        self.roots = np.flatnonzero(problem.row_to_col < 0).astype(np.int32)
        self.slack[:] = self.near[:] = problem.far
        self.time[self.roots] = 0
        self.root[self.roots] = self.roots
        self.rows[: self.roots.size] = self.roots
        self.spot[:] = 0
        self.spot[kernels.TAIL] = self.roots.size
        self.mark[0] = self.updates = self.whole = 0
        self.stage = GROWING
        problem.beat()
        return self.roots.size

    def expand(self) -> None:
        """Offer columns the way through this rank's rows of the frontier, and each row its own."""
        problem, spot, kernels = self.problem, self.spot, self.kernels
        part = problem.rows.slice
        level = self.rows[spot[kernels.FIRST] : spot[kernels.TAIL]]
        spot[kernels.FIRST] = spot[kernels.TAIL]
        spot[kernels.LEVELS] += 1
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

    def reduce(self) -> None:
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

    def advance(self) -> None:
        problem, kernels = self.problem, self.kernels
        nearest = kernels.nearest_time(self.slack, problem.low, problem.far)
        if nearest > self.mark[0]:
            if self.spot[kernels.ENDS] or nearest == problem.far:
                self.stage = FOUND if self.spot[kernels.ENDS] else STUCK
                return
            self.mark[0] = nearest
            self.updates += 1
        self._join()
        if self.spot[kernels.FIRST] == self.spot[kernels.TAIL]:  # only leaves have joined
            self.stage = FOUND

    def look(self) -> int:
        self.problem.beat()
        return self.stage

    def augment(self) -> None:
        problem, kernels = self.problem, self.kernels
        kernels.write_duals(
            self.rows[: self.spot[kernels.TAIL]], self.time, self.mark[0], problem.row_to_col,  # IN
            problem.row_dual, problem.col_dual,  # OUT
        )  # fmt: skip
        self.end[self.roots] = -1
        kernels.reverse(
            self.ends[: self.spot[kernels.ENDS]], self.pred, self.root,  # IN
            self.end,  # OUT
        )  # fmt: skip
        kernels.augment(
            self.roots, self.end, self.pred,  # IN
            problem.row_to_col, problem.col_to_row,  # OUT
        )  # fmt: skip

    def counts(self) -> dict[str, int]:
        """Levels and dual updates of the search, rows in trees, and reductions of all columns."""
        return {
            "levels": int(self.spot[self.kernels.LEVELS]),
            "updates": self.updates,
            "rows": int(self.spot[self.kernels.TAIL]),
            "whole": self.whole,
        }

    def violator(self) -> tuple[np.ndarray, np.ndarray]:
        rows = np.sort(self.rows[: self.spot[self.kernels.TAIL]])
        cols = np.flatnonzero(self.slack[: self.problem.real] == self.problem.low)
        return rows, cols

    def write(self) -> None:
        """They are there."""

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
