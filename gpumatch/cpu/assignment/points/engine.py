"""Our own engine for costs that are computed, on the CPU; `gpumatch.numeric.points` has its steps.

In few dimensions a search goes down a tree of boxes (`tree`), which looks at a small part of the
pairs. In many it computes all pairs in tiles (`lines`). If many rows of a core have no tight column
at the prices of the last round, they bid again.

If so many points are copies that their places have few pairs, these are a transport problem
(`copies`).

Memory: the core's, which is some 20 to 60 pairs a row for the clouds that were tried, and the
trees'.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.contracts import AssignmentTask, Costs, Points
from gpumatch.cpu.assignment.points import copies
from gpumatch.cpu.assignment.points import tuning as tunings
from gpumatch.cpu.assignment.points.lines import Lines, lines_of
from gpumatch.cpu.assignment.points.tree import Tree
from gpumatch.cpu.assignment.points.tuning import Tuning
from gpumatch.cpu.assignment.sparse import engine as sparse_engine
from gpumatch.cpu.assignment.sparse import tuning as sparse_tunings
from gpumatch.cpu.heartbeat import heartbeat
from gpumatch.cpu.matching.completion import complete_matching
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.numeric.arrays import count_matched
from gpumatch.numeric.points import engine as steps
from gpumatch.numeric.points.clouds import turned
from gpumatch.numeric.points.engine import PointsEngine, Run
from gpumatch.numeric.points.pairs import listed

__all__ = ["run", "takes"]


def takes(task: AssignmentTask, tuning: Tuning | None = None) -> bool:
    """True if the costs are computed, no pair is forbidden, and there are too many for a matrix."""
    tuning = tuning or tunings.DEFAULT
    return steps.takes(task, tuning) or _are_all_copies(task.costs, tuning)


def run(task: AssignmentTask, solve: Run, tuning: Tuning | None = None) -> bool | None:
    """Do as `gpumatch.contracts` states; None if the matrix is to be solved instead.

    `solve` solves the smaller problems that come up: a sample, and the rows that are unmatched.
    """
    tuning = tuning or tunings.DEFAULT
    ended = copies.run(task, tuning)
    if ended is not None or _are_all_copies(task.costs, tuning):
        return ended
    with Workers(task.threads, task.costs.nnz) as workers:
        return steps.run(_Engine(task, solve, workers, tuning))


def _are_all_copies(costs: Costs, tuning: Tuning) -> bool:
    """True if each side has one point only, but for offsets: then no matrix is needed either."""
    points = costs.points
    return (
        points is not None
        and costs.nnz > max(tuning.stored, 0)
        and bool((points.rows == points.rows[0]).all() and (points.cols == points.cols[0]).all())
    )


class _Engine(PointsEngine):
    """The steps by searches of all threads."""

    fitted_at_once = 2**15

    def __init__(self, task: AssignmentTask, solve: Run, workers: Workers, tuning: Tuning) -> None:
        self.workers = workers
        row_to_col = task.solution.row_to_col  # not self: a circle would keep all arrays for longer
        self.beat = heartbeat(task.control, lambda: count_matched(row_to_col))
        super().__init__(task, solve, tuning)

    def searches(self, costs: Costs) -> tuple[Any, Any]:
        points = costs.points
        if points is None or points.rows.shape[1] > self.tuning.in_boxes:
            return _ByLines(lines_of(costs), self.workers, self.beat), None
        rows, cols = Tree(points), Tree(turned(points))
        return (
            _ByTree(rows, cols.ids, self.workers, self.beat),
            _ByTree(cols, rows.ids, self.workers, self.beat),
        )

    def name_nearest(self, costs: Costs, searches: tuple[Any, Any], count: int) -> list[Any]:
        rows, cols = searches
        if isinstance(rows, _ByLines):  # each pair is computed once for both sides
            bounds = self.no_bound(0), self.no_bound(1)
            found, across = rows.lines.nearest(count, bounds, self.workers, self.beat)
        else:
            most = [min(count, costs.shape[1 - side]) for side in (0, 1)]
            found, _ = rows.least(most[0], self.no_bound(0))
            across, _ = cols.least(most[1], self.no_bound(1))
        return [listed(found, np), listed(across, np, turned=True)]

    def in_order(self) -> tuple[Any, Any]:
        return self.cols.tree.ids, self.rows.tree.ids

    def unmatched_of(self, core: Costs) -> tuple[Any, Any] | None:
        nrows, ncols = core.shape
        mates = np.full(nrows, -1, np.int32), np.full(ncols, -1, np.int32)
        if not complete_matching(self.task.matching(core.pattern(), *mates)):
            return None
        return np.flatnonzero(mates[0] < 0), np.flatnonzero(mates[1] < 0)

    def solve_sparse(self, task: AssignmentTask) -> bool:
        tuning = dataclasses.replace(sparse_tunings.DEFAULT, bid_again=self.tuning.bid_again)
        return sparse_engine.run(task, tuning)

    def near_known(self, points: Any, known: Any, count: int) -> Any:
        tree = Tree(Points(points, known, "sqeuclidean", False, 1.0))
        order = np.arange(points.shape[0], dtype=np.int32)
        bound = np.full(points.shape[0], np.inf)
        return tree.least(order, count, bound, self.workers)[0]


class _ByTree:
    """A search of all rows down a tree, in an order in which neighbours follow each other."""

    def __init__(
        self, tree: Tree, order: np.ndarray, workers: Workers, beat: Callable[[], None]
    ) -> None:
        self.tree, self.order, self.workers, self.beat = tree, order, workers, beat
        self.set_prices = tree.set_prices

    def least(self, count: int, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = self.order
        found, values = self.tree.least(order, count, bound[order], self.workers, self.beat)
        of_all = np.empty_like(found), np.empty_like(values)
        of_all[0][order], of_all[1][order] = found, values
        return of_all


class _ByLines:
    """A search of all rows that computes all pairs."""

    def __init__(self, lines: Lines, workers: Workers, beat: Callable[[], None]) -> None:
        self.lines, self.workers, self.beat = lines, workers, beat
        self.set_prices = lines.set_prices

    def least(self, count: int, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.lines.least(None, count, bound, self.workers, self.beat)
