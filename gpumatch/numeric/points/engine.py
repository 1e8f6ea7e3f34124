"""Our own engine for costs that are computed: few pairs first, then proof by pricing.

Most pairs of points never matter. So

1. *Candidates*: each row names its nearest columns, and each column its nearest rows. If all must
   be matched, the columns are first moved and scaled so that both clouds have one mean and one
   variance. For squared distances that changes no optimum: sum of |x - y|**2 is a constant less
   twice the sum of x y. To be maximised, they are reflected. With a limit, only pairs within it
   count.
2. *Prices of a sample*: if the candidates leave rows without a column, a sample of a quarter of
   both sides is solved in the same way. It has one of each four neighbours, so a cluster with more
   rows than columns has more rows in the sample, too. Its prices are extended to all points
   (`extension`), and each row and column names its cheapest partners at these. What is still
   unmatched gets the pairs of an optimal assignment of just these rows and columns. If the clouds
   are far apart or of unlike width, prices of distances are taken from a sample in any case. For
   squared distances these candidates are so good that they are the only ones in the plane, and
   where the nearest leave many rows.
3. *Core*: the engine for sparse costs solves the candidates, from the prices of the sample or those
   of the last round.
4. *Pricing*: a search for each row finds the columns that cost less than their duals allow, among
   all columns. What it finds joins the core, and step 3 follows. If it finds nothing, no pair
   undercuts the duals: the assignment is optimal.

Each round adds pairs, so there are finitely many. If the core comes to hold a large share of all
pairs, the matrix is made, as long as it fits, and the engine for matrices solves that.

The CPU and the GPU each have searches, an engine for sparse costs and one for matchings of their
own: `gpumatch.cpu.assignment.points` and `gpumatch.cuda.assignment.points`.

References
----------
Lee, Orlin, *Solving large dense assignment problems by column generation*, 1993.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Costs, Points, Solution, Stopped
from gpumatch.numeric.arrays import any_true, array_module, array_of
from gpumatch.numeric.points.clouds import alike, are_apart
from gpumatch.numeric.points.extension import Prices, extended, extended_along_tears
from gpumatch.numeric.points.pairs import Pairs, listed
from gpumatch.numeric.points.tuning import Tuning

__all__ = ["PointsEngine", "Run", "Search", "run", "takes"]

Run = Callable[[AssignmentTask], bool]


class Search(Protocol):
    """The cheapest columns of rows at prices of the columns."""

    def set_prices(self, price: Any) -> None:
        """Take other prices of the columns."""

    def least(self, count: int, bound: Any) -> tuple[Any, Any]:
        """For each row, at most so many columns with the least costs less prices below its bound.

        Returns a line for each row: the columns, least first, -1 where there is none, and the costs
        less prices, rounded down, or inf.
        """


def takes(task: AssignmentTask, tuning: Tuning) -> bool:
    """True if the costs are computed, no pair is forbidden, and there are too many for a matrix."""
    costs = task.costs
    is_many = costs.nnz > tuning.stored
    return costs.is_computed and costs.is_complete and is_many and costs.low < costs.high


def run(engine: PointsEngine) -> bool | None:
    """Do as `gpumatch.contracts` states; None if the matrix is to be solved instead."""
    solution = engine.task.solution
    solution.has_duals = solution.are_fair = False
    try:
        is_done = engine.run()
    except Stopped:
        if engine.priced is not None:
            solution.assign_from(engine.priced)
            solution.has_duals = solution.are_fair = True
        return False
    if not is_done:
        return None
    solution.has_duals = solution.are_fair = True
    return True


class PointsEngine(ABC):
    """The steps, on the arrays of a solution.

    Parameters
    ----------
    task : AssignmentTask
    solve : callable
        It solves the smaller problems that come up: a sample, and the rows that are unmatched.
    tuning : Tuning

    Attributes
    ----------
    own : Solution
        The task's arrays. Its flags are those of the core.
    priced : Solution or None
        The pairs and duals at the last pricing, lowered so that no pair undercuts them. A run that
        stops returns them, with a gap that is true.
    """

    def __init__(self, task: AssignmentTask, solve: Run, tuning: Tuning) -> None:
        self.task, self.solve, self.tuning = task, solve, tuning
        self.costs, self.control, self.xp = task.costs, task.control, task.costs.xp
        self.own = Solution(*task.solution.mates, *task.solution.duals)
        self.must_match_all = task.limit is None and self.costs.shape[0] == self.costs.shape[1]
        self.pairs, self.rounds = Pairs(self.costs), 0
        self.priced: Solution | None = None
        self.are_apart = self.must_match_all and self.can_sample() and are_apart(self.costs.points)

    # -- what each side has of its own -----------------------------------------------------------

    @abstractmethod
    def searches(self, costs: Costs) -> tuple[Any, Any]:
        """The search of the rows, and that of the columns; None for this if it shares nothing."""

    @abstractmethod
    def name_nearest(self, costs: Costs, searches: tuple[Any, Any], count: int) -> list[Any]:
        """The nearest columns of each row, and rows of each column, as lists of pairs."""

    @functools.cached_property
    def both(self) -> tuple[Any, Any]:
        """The searches of the costs. They are made when they are needed: they take memory."""
        return self.searches(self.costs)

    @property
    def rows(self) -> Any:
        """The search of all rows for columns."""
        return self.both[0]

    @functools.cached_property
    def cols(self) -> Any:
        """The search of all columns for rows."""
        return self.both[1] or self.searches(self.costs.transpose())[0]

    @property
    def is_exact(self) -> bool:
        """True if no pair below a bound is missed by rounding."""
        return True

    @abstractmethod
    def in_order(self) -> tuple[Any, Any]:
        """Rows and columns, each in an order in which neighbours follow each other."""

    @abstractmethod
    def unmatched_of(self, core: Costs) -> tuple[Any, Any] | None:
        """Rows and columns that a maximum matching of the core leaves; None if stopped."""

    @abstractmethod
    def solve_sparse(self, task: AssignmentTask) -> bool:
        """Solve the core from the duals so far; False if stopped."""

    @abstractmethod
    def near_known(self, points: Any, known: Any, count: int) -> Any:
        """So many of the known points that are nearest to each point."""

    def settle(self) -> None:  # noqa: B027  # most searches are exact
        """Lower the duals of rows if pricing may have missed what rounding hides."""

    fitted_at_once: int
    """Points whose prices are fitted at a time."""

    # -- the steps -------------------------------------------------------------------------------

    def run(self) -> bool:
        """Take all steps; False if the core has become too large. Raises Stopped."""
        with self.control.part("candidates"):
            is_enough = not self.samples_first() and self.nearest_suffice()
        if not is_enough:
            with self.control.part("sample"):
                if self.can_sample():
                    self.add_priced(*self.prices_of_sample())
                if self.pairs.keys.size:
                    self.join_unmatched()
        if not self.pairs.keys.size:  # rounding has left nothing near: the rest would begin anew
            return False
        while self.pairs.keys.size <= self.tuning.share * self.costs.nnz:
            with self.control.part("core"):
                self.solve_core()
            with self.control.part("pricing"):
                if self.add_undercutting() == 0:
                    self.settle()
                    return True
        return False

    # -- candidates ------------------------------------------------------------------------------

    def nearest_suffice(self) -> bool:
        """Add the nearest of each side, and what is given; True if no row is left.

        If they leave many rows, and prices are smooth, those of a sample tell all that is needed,
        and the nearest are forgotten.
        """
        self.add_nearest()
        self.add_given()
        if self.task.limit is not None:
            return True
        if self.are_apart:
            return False
        if self.has_matching():
            return True
        few = self.tuning.useless * self.costs.shape[0]
        if self.can_sample() and self.is_smooth and self.unmatched[0].size > few:
            self.pairs = Pairs(self.costs)
            self.add_given()
        return False

    def add_nearest(self) -> None:
        """Let each row and each column name its nearest."""
        points = self.costs.points
        count = self.tuning.nearest_of_many if self.computes_all_pairs else self.tuning.nearest
        is_enough = False
        if points is not None and self.must_match_all:
            costs = self.costs.of_points(alike(points))
            self.pairs.add(*self.name_nearest(costs, self.searches(costs), count))
            is_enough = self.is_smooth or self.are_apart or points.sign < 0
        if not is_enough:
            self.pairs.add(*self.name_nearest(self.costs, self.both, count))

    def add_given(self) -> None:
        """Add the pairs that the caller has given, and the cheapest at the given prices."""
        given = self.own
        matched = self.xp.flatnonzero(given.row_to_col >= 0)
        if matched.size:
            self.pairs.add((matched, given.row_to_col[matched]))
        if any_true(given.col_dual != 0):
            self.rows.set_prices(given.col_dual)
            found = self.rows.least(self.tuning.given, self.no_bound(0))
            self.pairs.add(listed(found[0], self.xp))

    def no_bound(self, side: int) -> Any:
        """Bounds of costs for all rows or all columns: just above the limit, if there is one."""
        far, limit = self.costs.far, self.task.limit
        if limit is not None:
            far = limit + 1 if self.costs.is_integer else np.nextafter(limit, np.inf)
        return self.xp.full(self.costs.shape[side], far, self.own.row_dual.dtype)

    # -- what is unmatched -----------------------------------------------------------------------

    def has_matching(self) -> bool:
        """Find what a maximum matching of the core leaves unmatched; True if no row is."""
        unmatched = self.unmatched_of(self.pairs.as_costs())
        if unmatched is None:
            raise Stopped
        self.unmatched = unmatched
        return bool(unmatched[0].size == 0)

    def is_in_boxes(self, points: Points) -> bool:
        """True if points are so few-dimensional that searches go by boxes."""
        return bool(points.rows.shape[1] <= self.tuning.in_boxes)

    @property
    def computes_all_pairs(self) -> bool:
        """True if searches do, rather than to go down boxes."""
        points = self.costs.points
        return points is None or not self.is_in_boxes(points)

    def can_sample(self) -> bool:
        """True if prices of a sample can tell better candidates."""
        points = self.costs.points
        return (
            points is not None
            and points.rows.shape[1] <= min(3, self.tuning.in_boxes)
            and min(self.costs.shape) >= self.tuning.least_sampled
        )

    @property
    def is_smooth(self) -> bool:
        """True if prices of neighbours are alike to second order."""
        points = self.costs.points
        return self.must_match_all and points is not None and points.metric == "sqeuclidean"

    def samples_first(self) -> bool:
        """True if prices of a sample tell all candidates, and no others are given."""
        given, points = self.own, self.costs.points
        if points is None or not (self.is_smooth and self.can_sample()):
            return False
        if any_true(given.row_to_col >= 0) or any_true(given.col_dual != 0):
            return False
        is_large = min(self.costs.shape) >= 2 * self.tuning.least_sampled
        return bool(is_large and points.rows.shape[1] <= self.tuning.sampled_first)

    def prices_of_sample(self) -> tuple[Prices, Prices]:
        """The duals of a solved sample, extended to all rows and columns."""
        rng = np.random.default_rng(self.task.seed)
        nrows, ncols = self.costs.shape
        some = nrows // self.tuning.sampled
        in_order = self.in_order()
        rows = _spread(in_order[0], some, rng)
        cols = _spread(in_order[1], ncols * some // nrows, rng)
        part, points = self.solved(rows, cols), self.costs.points
        assert points is not None
        how = self.near_known, self.fitted_at_once
        if not self.is_smooth:
            return (
                extended(points.rows, rows, part.row_dual, *how),
                extended(points.cols, cols, part.col_dual, *how),
            )
        partners = points.cols[cols[part.row_to_col]], points.rows[rows[part.col_to_row]]
        scale = points.sign * (0.5 if points.is_half else 1.0)
        return (
            extended_along_tears(points.rows, rows, part.row_dual, partners[0], scale, *how),
            extended_along_tears(points.cols, cols, part.col_dual, partners[1], scale, *how),
        )

    def add_priced(self, of_rows: Prices, of_cols: Prices) -> None:
        """Add the cheapest columns of each row and rows of each column at these prices.

        They are also the prices that the core is solved from, unless the caller has given others.
        A torn point also gets the cheapest partners of known points in other branches: prices are
        not right enough to tell which branch it takes.
        """
        count = self.tuning.priced
        self.rows.set_prices(of_cols.values)
        self.cols.set_prices(of_rows.values)
        found = self.rows.least(count, self.no_bound(0))[0]
        across = self.cols.least(count, self.no_bound(1))[0]
        self.pairs.add(
            listed(found, self.xp),
            listed(across, self.xp, turned=True),
            self._shared(of_rows, found),
            self._shared(of_cols, across)[::-1],
        )
        self.has_matching()
        if not any_true(self.own.col_dual != 0):
            self.own.col_dual[:] = of_cols.values

    def _shared(self, prices: Prices, found: Any) -> tuple[Any, Any]:
        """Pairs of torn points with what known points in other branches have found."""
        theirs = found[prices.known, : self.tuning.shared]
        line, place = self.xp.nonzero(theirs >= 0)
        return prices.torn[line], theirs[line, place].astype(np.int64)

    def join_unmatched(self) -> None:
        """Add pairs of unmatched rows and columns, so that the core has a full assignment."""
        rows, cols = self.unmatched
        if rows.size <= self.tuning.few and rows.size * cols.size <= self.costs.nnz // 16:
            self.pairs.add((self.xp.repeat(rows, cols.size), self.xp.tile(cols, rows.size)))
            return
        size = rows.size
        if size > self.costs.shape[0] // 2:
            # Copies of points name the same few partners. Parts of at most half the rows end it.
            size = min(self.tuning.part, (size + 1) // 2)
            if self.costs.points is not None and self.is_in_boxes(self.costs.points):
                rows, cols = map(_in_order_of, (rows, cols), self.in_order())
        for begin in range(0, rows.size, max(size, 1)):
            own, others = rows[begin : begin + size], cols[begin : begin + size]
            if size == rows.size:
                others = cols
            self.pairs.add((own, others[self.solved(own, others).row_to_col]))

    def solved(self, rows: Any, cols: Any) -> Solution:
        """An optimal assignment of some rows and columns; raises Stopped."""
        part = self.costs.restricted(rows, cols)
        solution = Solution.empty(part.shape, is_integer=part.is_integer, xp=self.xp)
        task = dataclasses.replace(
            self.task, costs=part, solution=solution, control=_Inner(self.control), is_fresh=True
        )
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
        if not self.solve_sparse(task):
            raise Stopped

    def add_undercutting(self) -> int:
        """Add the pairs that cost less than their duals allow; return how many there are.

        If they lack no more than rounding, the duals of their rows are lowered instead. Where all
        pairs are computed anyway, the first pricing adds the cheapest of each row, if any pair
        lacks something: many of these would be undercut by the next duals.
        """
        own, tuning, xp = self.own, self.tuning, self.xp
        self.rows.set_prices(own.col_dual)
        if self.rounds == 0 and self.computes_all_pairs:
            found, values = self.rows.least(tuning.ahead, self.no_bound(0))
            short = xp.flatnonzero((found[:, 0] >= 0) & (values[:, 0] < own.row_dual))
        else:
            found, values = self.rows.least(tuning.added, own.row_dual)
            short = xp.flatnonzero(found[:, 0] >= 0)
        new = 0
        if short.size and self._is_rounding(own.row_dual[short] - values[short, 0]):
            own.row_dual[short] = values[short, 0]
        elif short.size:
            parts = [listed(found, xp)]
            if self.rounds >= tuning.by_rows and short.size > self.costs.shape[0] // 8:
                # Rows that all name the same columns would take a round for each few of these.
                self.cols.set_prices(own.row_dual)
                found = self.cols.least(tuning.added, own.col_dual)[0]
                parts.append(listed(found, xp, turned=True))
            new = self.pairs.add(*parts)
        if new and self.is_exact:
            self.keep_priced(short, values[short, 0])
        matched = int(xp.count_nonzero(own.row_to_col >= 0))
        self.rounds += 1
        self.control.phase(
            found=0,
            matched=matched,
            step="pricing",
            round=self.rounds,
            undercut=int(short.size),
            pairs=int(self.pairs.keys.size),
        )
        if self.control.tick(matched) and new:
            raise Stopped
        return new

    def keep_priced(self, short: Any, least: Any) -> None:
        """Keep pairs and duals, those of rows that are undercut lowered to what they allow."""
        self.priced = self.own.copy()
        self.priced.row_dual[short] = least

    def _is_rounding(self, lacks: Any) -> bool:
        """True if these amounts are no more than what rounding leaves."""
        own, xp = self.own, self.xp
        matched = xp.flatnonzero(own.row_to_col >= 0)
        if self.costs.is_integer or not matched.size:
            return False
        largest = float(abs(self.costs.at(matched, own.row_to_col[matched])).max())
        return float(lacks.max()) <= self.tuning.rounding * largest


class _Inner:
    """The control of a problem within another one, whose time is a part of the outer problem's."""

    def __init__(self, control: Control) -> None:
        self._outer = control
        self.tick, self.phase, self.seconds = control.tick, control.phase, control.seconds

    @property
    def stopped(self) -> bool:
        return self._outer.stopped

    @stopped.setter
    def stopped(self, is_stopped: bool) -> None:
        self._outer.stopped = is_stopped

    def part(self, name: str) -> AbstractContextManager[None]:
        """Add no time: the part of the outer problem has it."""
        return contextlib.nullcontext()


def _in_order_of(some: Any, order: Any) -> Any:
    """Some vertices, in an order of all of them."""
    xp = array_module(order)
    place = xp.empty(order.size, np.int64)
    place[order] = xp.arange(order.size)
    return some[xp.argsort(place[some])]


def _spread(ids: Any, count: int, rng: np.random.Generator) -> Any:
    """So many of the points, in order: a random one from each of as many runs along their order.

    So each box of neighbours has its share of the sample.
    """
    bounds = np.arange(count + 1) * ids.size // max(count, 1)
    chosen = ids[array_of(array_module(ids), rng.integers(bounds[:-1], bounds[1:]))]
    chosen.sort()
    return chosen
