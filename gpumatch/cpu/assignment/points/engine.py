"""Our own engine for costs that are computed, on the CPU: few pairs first, then proof by pricing.

Most pairs of points never matter. So

1. *Candidates*: each row names its nearest columns, and each column its nearest rows. If all must
   be matched, the columns are first moved and scaled so that both clouds have one mean and one
   variance. For squared distances that changes no optimum: sum of |x - y|**2 is a constant less
   twice the sum of x y. To be maximised, they are reflected. With a limit, only pairs within it
   count.
2. *Prices of a sample*: if the candidates leave rows without a column, a sample of a quarter of
   both sides is solved in the same way. It has one of each four neighbours, so a cluster with more
   rows than columns has more rows in the sample, too. Its prices are extended to all points
   (`prices`), and each row and column names its cheapest partners at these. What is still unmatched
   gets the pairs of an optimal assignment of just these rows and columns. If the clouds are far
   apart or of unlike width, prices of distances are taken from a sample in any case.
3. *Core*: the engine for sparse costs solves the candidates, from the prices of the sample or those
   of the last round. If many rows have no tight column at these prices, they bid again.
4. *Pricing*: a search for each row finds the columns that cost less than their duals allow, among
   all columns. In few dimensions it goes down a tree of boxes (`tree`), which looks at a small part
   of the pairs; in many it computes all pairs in tiles (`lines`). What it finds joins the core, and
   step 3 follows. If it finds nothing, no pair undercuts the duals: the assignment is optimal.

Each round adds pairs, so there are finitely many. If the core comes to hold a large share of all
pairs, the matrix is made, as long as it fits, and the engine for matrices solves that.

Memory: the core's, which is some 20 to 60 pairs a row for the clouds that were tried, and the
trees'.

References
----------
Lee, Orlin, *Solving large dense assignment problems by column generation*, 1993.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.contracts import AssignmentTask, Costs, Points, Solution, Stopped
from gpumatch.cpu.assignment.points import tuning as tunings
from gpumatch.cpu.assignment.points.core import Pairs, listed, unmatched_of
from gpumatch.cpu.assignment.points.lines import lines_of
from gpumatch.cpu.assignment.points.prices import extended
from gpumatch.cpu.assignment.points.tree import Tree, frame_of
from gpumatch.cpu.assignment.points.tuning import Tuning
from gpumatch.cpu.assignment.sparse import engine as sparse_engine
from gpumatch.cpu.assignment.sparse import tuning as sparse_tunings
from gpumatch.cpu.heartbeat import heartbeat
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.numeric.arrays import count_matched

__all__ = ["run", "takes"]

Run = Callable[[AssignmentTask], bool]


def takes(task: AssignmentTask, tuning: Tuning | None = None) -> bool:
    """True if the costs are computed, no pair is forbidden, and there are too many for a matrix."""
    costs, tuning = task.costs, tuning or tunings.DEFAULT
    is_many = costs.nnz > tuning.stored
    return costs.is_computed and costs.is_complete and is_many and costs.low < costs.high


def run(task: AssignmentTask, solve: Run, tuning: Tuning | None = None) -> bool | None:
    """Do as `gpumatch.contracts` states; None if the matrix is to be solved instead.

    `solve` solves the smaller problems that come up: a sample, and the rows that are unmatched.
    """
    solution = task.solution
    solution.has_duals = solution.are_fair = False
    with Workers(task.threads, task.costs.nnz) as workers:
        engine = _Engine(task, solve, workers, tuning or tunings.DEFAULT)
        try:
            is_done = engine.run()
        except Stopped:
            return False
    if not is_done:
        return None
    solution.has_duals = solution.are_fair = True
    return True


class _Engine:
    """The steps, on the arrays of a solution."""

    def __init__(self, task: AssignmentTask, solve: Run, workers: Workers, tuning: Tuning) -> None:
        self.task, self.solve, self.workers, self.tuning = task, solve, workers, tuning
        self.costs, self.control = task.costs, task.control
        # Its flags are those of the core. What a run leaves when it stops proves nothing.
        self.own = Solution(*task.solution.mates, *task.solution.duals)
        self.must_match_all = task.limit is None and self.costs.shape[0] == self.costs.shape[1]
        own = self.own  # not self: a circle of references would keep all arrays for longer
        self.beat = heartbeat(self.control, lambda: count_matched(own.row_to_col))
        self.rows, self.cols = _searches(self.costs, tuning)
        self.pairs, self.rounds = Pairs(self.costs), 0
        self.are_apart = self.must_match_all and self.can_sample() and _are_apart(self.costs.points)

    def run(self) -> bool:
        """Take all steps; False if the core has become too large. Raises Stopped."""
        self.choose_candidates()
        if self.task.limit is None and (self.are_apart or not self.has_matching()):
            if self.can_sample():
                self.add_priced(*self.prices_of_sample())
            self.join_unmatched()
        while self.pairs.keys.size <= self.tuning.share * self.costs.nnz:
            self.solve_core()
            if self.add_undercutting() == 0:
                return True
        return False

    # -- candidates ------------------------------------------------------------------------------

    def choose_candidates(self) -> None:
        """Name the nearest of each side, and what the caller has given."""
        count, points = self.tuning.nearest, self.costs.points
        if points is None or points.rows.shape[1] > self.tuning.in_boxes:
            count = self.tuning.nearest_of_many
        is_enough = self.are_apart
        if points is not None and self.must_match_all:
            costs = self.costs.of_points(_alike(points))
            self._add_nearest(*_searches(costs, self.tuning), count)
            is_enough = is_enough or points.metric == "sqeuclidean" or points.sign < 0
        if not is_enough:
            self._add_nearest(self.rows, self.cols, count)
        given = self.own
        matched = np.flatnonzero(given.row_to_col >= 0)
        if matched.size:
            self.pairs.add((matched, given.row_to_col[matched]))
        if given.col_dual.any():
            self.rows.set_prices(given.col_dual)
            found = self._least(self.rows, self.tuning.priced, self._no_bound(0))
            self.pairs.add(listed(found[0]))

    def _add_nearest(self, rows: Any, cols: Any, count: int) -> None:
        """Add the nearest columns of each row, and the nearest rows of each column."""
        if not isinstance(rows, Tree):
            bounds = self._no_bound(0), self._no_bound(1)
            found, turned = rows.nearest(count, bounds, self.workers, self.beat)
            self.pairs.add(listed(found), listed(turned, turned=True))
            return
        sides = []
        for side, (search, turned) in enumerate(((rows, False), (cols, True))):
            most = min(count, self.costs.shape[1 - side])
            near, _ = self._least(search, most, self._no_bound(side))
            sides.append(listed(near, turned=turned))
        self.pairs.add(*sides)

    def _no_bound(self, side: int) -> np.ndarray:
        """Bounds of costs for all rows or all columns: just above the limit, if there is one."""
        far, limit = self.costs.far, self.task.limit
        if limit is not None:
            far = limit + 1 if self.costs.is_integer else np.nextafter(limit, np.inf)
        return np.full(self.costs.shape[side], far)

    def _least(self, search: Any, count: int, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What a search finds, by rows or by columns."""
        if not isinstance(search, Tree):
            return search.least(None, count, bound, self.workers, self.beat)
        order = search.asked
        found, values = search.least(order, count, bound[order], self.workers, self.beat)
        of_all = np.empty_like(found), np.empty_like(values)
        of_all[0][order], of_all[1][order] = found, values
        return of_all

    # -- what is unmatched -----------------------------------------------------------------------

    def has_matching(self) -> bool:
        """Find what a maximum matching of the core leaves unmatched; True if no row is."""
        core = self.pairs.as_costs()
        unmatched = unmatched_of(self.task, core)
        if unmatched is None:
            raise Stopped
        self.unmatched = unmatched
        return unmatched[0].size == 0

    def can_sample(self) -> bool:
        """True if prices of a sample can tell better candidates."""
        points = self.costs.points
        return (
            points is not None
            and self.cols is not None
            and points.rows.shape[1] <= 3
            and min(self.costs.shape) >= self.tuning.least_sampled
        )

    def prices_of_sample(self) -> tuple[np.ndarray, np.ndarray]:
        """The duals of a solved sample, extended to all rows and columns."""
        rng = np.random.default_rng(self.task.seed)
        nrows, ncols = self.costs.shape
        some = nrows // self.tuning.sampled
        rows = _spread(self.cols.ids, some, rng)
        cols = _spread(self.rows.ids, ncols * some // nrows, rng)
        part = self._solved(rows, cols)
        assert self.costs.points is not None
        own, other = self.costs.points.rows, self.costs.points.cols
        return (
            extended(own, own[rows], part.row_dual, self.workers),
            extended(other, other[cols], part.col_dual, self.workers),
        )

    def add_priced(self, row_price: np.ndarray, col_price: np.ndarray) -> None:
        """Add the cheapest columns of each row and rows of each column at these prices.

        They are also the prices that the core is solved from, unless the caller has given others.
        """
        count = self.tuning.priced_apart if self.are_apart else self.tuning.priced
        self.rows.set_prices(col_price)
        self.cols.set_prices(row_price)
        found = self._least(self.rows, count, self._no_bound(0))[0]
        turned = self._least(self.cols, count, self._no_bound(1))[0]
        self.pairs.add(listed(found), listed(turned, turned=True))
        self.has_matching()
        if not self.own.col_dual.any():
            self.own.col_dual[:] = col_price

    def join_unmatched(self) -> None:
        """Add pairs of unmatched rows and columns, so that the core has a full assignment."""
        rows, cols = self.unmatched
        if rows.size <= self.tuning.few and rows.size * cols.size <= self.costs.nnz // 16:
            self.pairs.add((np.repeat(rows, cols.size), np.tile(cols, rows.size)))
        elif rows.size:
            mates = self._solved(rows, cols).row_to_col
            self.pairs.add((rows, cols[mates]))

    def _solved(self, rows: np.ndarray, cols: np.ndarray) -> Solution:
        """An optimal assignment of some rows and columns; raises Stopped."""
        part = self.costs.restricted(rows, cols)
        solution = Solution.empty(part.shape, is_integer=part.is_integer)
        task = dataclasses.replace(self.task, costs=part, solution=solution, is_fresh=True)
        if not self.solve(task):
            raise Stopped
        return solution

    # -- core and pricing ------------------------------------------------------------------------

    def solve_core(self) -> None:
        """Solve the core from the prices so far; raises Stopped."""
        core = self.pairs.as_costs()
        task = dataclasses.replace(
            self.task, costs=core, solution=self.own, is_fresh=False, may_be_infeasible=False
        )
        tuning = dataclasses.replace(sparse_tunings.DEFAULT, bid_again=self.tuning.bid_again)
        if not sparse_engine.run(task, tuning):
            raise Stopped

    def add_undercutting(self) -> int:
        """Add the pairs that cost less than their duals allow; return how many there are.

        If they lack no more than rounding, the duals of their rows are lowered instead.
        """
        own, tuning = self.own, self.tuning
        self.rows.set_prices(own.col_dual)
        found, values = self._least(self.rows, tuning.added, own.row_dual)
        short = np.flatnonzero(found[:, 0] >= 0)
        new = 0
        if short.size and self._is_rounding(own.row_dual[short] - values[short, 0]):
            own.row_dual[short] = values[short, 0]
        elif short.size:
            new = self.pairs.add(listed(found))
        matched = count_matched(own.row_to_col)
        self.rounds += 1
        self.control.phase(
            found=0,
            matched=matched,
            step="pricing",
            round=self.rounds,
            undercut=int(short.size),
            pairs=self.pairs.keys.size,
        )
        if self.control.tick(matched) and new:
            raise Stopped
        return new

    def _is_rounding(self, lacks: np.ndarray) -> bool:
        """True if these amounts are no more than what rounding leaves."""
        own = self.own
        matched = np.flatnonzero(own.row_to_col >= 0)
        if self.costs.is_integer or not matched.size:
            return False
        largest = abs(self.costs.at(matched, own.row_to_col[matched])).max()
        return bool(lacks.max() <= self.tuning.rounding * largest)


# -- searches and geometry -------------------------------------------------------------------------


def _searches(costs: Costs, tuning: Tuning) -> tuple[Any, Any]:
    """The search of all rows for columns, and that of all columns for rows, if it is another."""
    points = costs.points
    if points is None or points.rows.shape[1] > tuning.in_boxes:
        return lines_of(costs), None
    rows, cols = Tree(points), Tree(_turned(points))
    rows.asked, cols.asked = cols.ids, rows.ids
    return rows, cols


def _spread(ids: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """So many of the points, in order: a random one from each of as many runs along their tree.

    So each box of the tree has its share of the sample.
    """
    bounds = np.arange(count + 1) * ids.size // max(count, 1)
    return np.sort(ids[rng.integers(bounds[:-1], bounds[1:])])


def _turned(points: Points) -> Points:
    """The points with rows and columns changed."""
    return points._replace(
        rows=points.cols,
        cols=points.rows,
        row_offset=points.col_offset,
        col_offset=points.row_offset,
    )


def _are_apart(points: Points | None) -> bool:
    """True if nearest points are hardly ever partners, even when both clouds are made alike.

    That is so for distances if the clouds are far apart or of unlike width. `_alike` changes no
    optimum of squared distances. Prices of other metrics are not smooth, and many optima tie.
    """
    if points is None or points.metric != "euclidean" or points.sign < 0:
        return False
    return frame_of(points._replace(metric="sqeuclidean")) is not None


def _alike(points: Points) -> Points:
    """The points with the columns moved and scaled so that both clouds are alike.

    The squared distances of the result have the optimal assignments that those of the points have,
    if all rows and columns are matched. If costs are negated, the columns are reflected.
    """
    rows, cols = points.rows, points.cols
    spread = [float(side.var(axis=0).sum()) for side in (rows, cols)]
    scale = np.sqrt(spread[0] / spread[1]) if min(spread) > 0 else 1.0
    moved = (cols - cols.mean(axis=0)) * (scale * points.sign) + rows.mean(axis=0)
    return Points(rows, moved, "sqeuclidean", False, 1.0)
