"""Our own engine for costs on the CPU: an auction for the prices, exact paths for the proof.

Sparse costs go through four steps. Each leaves what the next needs:

1. *Trial*: the least costs, and the pairs that they make, as `sparse_paths` finds them. If the rows
   that are left may choose among several cheapest columns each, as many as can be are matched to
   such columns, by the searches of matchings. In a long trial, rows then bid without an epsilon,
   so that all pairs stay tight. If few rows are left then, they get shortest augmenting paths. If
   these are expected to read few entries, that is all. If it is doubtful that all rows may have
   columns, a few phases of searches now tell, or searches from one row after the other; if they
   would read too much, a maximum matching does.
2. *Auction*, from the trial's prices and pairs: free rows bid one after the other, with an epsilon
   that falls from what a row typically pays more for another column than its cheapest (`bidding`).
   If all rows and columns must be matched, the free columns bid in turns with the rows once few
   rows wait: else the last rows of a phase would take as many bids as all others. A phase ends when
   hardly any wait, and what is left goes on into the next, with the pairs that cost an end more
   than the next epsilon too much. Only ends whose last bid had to go epsilon further are asked. At
   the end nearly all rows have a column, at prices within the last epsilon of optimal ones.
3. *Repair*: all rows are asked, and pairs that are not exactly tight are parted. These are few,
   because a bid higher than epsilon leaves the bidder's pair tight.
4. *Paths*: exact shortest augmenting paths for the rows that are left, by several threads as long
   as they are not in each other's way. They are short, since the prices are nearly right. Only the
   last rows of a large matrix may be far from any free column, if all must be matched. Their paths
   grow from both ends (`two_sided_paths`). If columns may stay free, then so do those whose price
   the auction has lowered although they are free now: each searches for its own augmenting path, in
   the transposed matrix, or for the price 0.

So the result is exact: no epsilon is left in it. Floats are taken as they are, and a pair counts as
tight if it is but for rounding. Integers lose their common divisor, and are multiplied by a power
of two, so that bids may differ by less than 1, which breaks most ties. After the auction their
prices are rounded down to units again. If v_k <= v_j + y for an integer y, that holds for the
rounded ones, too: tight pairs stay tight. Pairs within epsilon of it mostly become so.

Memory beside the costs: 12 bytes an entry, 20 if costs are integers, and 51 a vertex; while all
tight pairs are matched, 4 more an entry and 28 a vertex; with the transposed matrix of bids in
turns, 12 more an entry, and with that of step 4, 24; 4 a column if threads search at once, and 12
for each thread; 24 an entry and 34 a vertex for paths from both ends.

References
----------
Bertsekas, *Auction algorithms for network flow problems*, Computational Optimization and
Applications 1, 1992.
Duff, Koster, *On algorithms for permuting large entries to the diagonal of a sparse matrix*, SIAM
J. Matrix Analysis 22, 2001.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpumatch.contracts import AssignmentTask, Costs, Stopped
from gpumatch.cpu import csr
from gpumatch.cpu.assignment.search.bid_queue import Queue
from gpumatch.cpu.assignment.search.state import FOUND, HEAD, LOW, NEXT, SCANS, SPENT
from gpumatch.cpu.assignment.sparse import bidding
from gpumatch.cpu.assignment.sparse import search as sparse_search
from gpumatch.cpu.assignment.sparse import tuning as tunings
from gpumatch.cpu.assignment.sparse.feasibility import (
    complete,
    complete_in_phases,
    complete_row_by_row,
)
from gpumatch.cpu.assignment.sparse.paths import FirstPairs, SparsePaths
from gpumatch.cpu.assignment.sparse.scaled_integers import Units
from gpumatch.cpu.assignment.sparse.tuning import Tuning
from gpumatch.cpu.assignment.sparse.two_sided_search import TwoSidedPaths
from gpumatch.cpu.heartbeat import heartbeat
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.numeric.arrays import count_matched
from gpumatch.running.kept_memory import kept_empty

__all__ = ["run", "run_exactly", "run_for_prices"]


def run(task: AssignmentTask, tuning: Tuning | None = None) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    with Workers(task.threads, task.costs.nnz) as workers:
        engine = _Engine(task, workers, tuning or tunings.DEFAULT)
        try:
            engine.run()
        except Stopped:
            return False
        finally:
            engine.write()
    return True


def run_exactly(task: AssignmentTask, tuning: Tuning | None = None) -> bool:
    """Do as `run` does from given prices, without an allowance for rounding."""
    return run(task, replace(tuning or tunings.DEFAULT, rounding=0.0))


def run_for_prices(
    task: AssignmentTask, workers: Workers, tuning: Tuning | None = None
) -> FirstPairs | None:
    """Match the rows after a long trial; of the duals, find only those of the columns.

    If prices are given, they are those of a trial, at which all given pairs are tight, and the
    auction comes next.

    Returns the pairs of the start, if it has come to any; raises Stopped.
    """
    tuning = tuning or tunings.DEFAULT
    engine = _Engine(task, workers, replace(tuning, trial=tuning.long_trial))
    engine.paths.keeps_first = True
    try:
        if engine.is_given:
            engine.go_on()
        else:
            engine.run()
    finally:
        engine.write_prices()
    return engine.paths.first


class _Engine:
    """The state of a solution; its prices are in units of the scaled costs."""

    def __init__(self, task: AssignmentTask, workers: Workers, tuning: Tuning) -> None:
        self.tuning = tuning
        self.costs, self.solution, self.control = task.costs, task.solution, task.control
        self.workers = workers
        col_dual, limit = task.solution.col_dual, task.limit
        self.is_given = bool(col_dual.any())
        indptr, indices, weights = task.costs.entries()
        self.is_integer = col_dual.dtype.kind == "i"
        low, high = _extent(task.costs, limit)
        self.units = Units()
        if self.is_integer:
            self.units = Units.of(weights, (low, high), limit, self.nrows)
        (low, high), _, _ = self.units.scaled(np.array([low, high]), col_dual, limit)
        weights, col_dual, limit = self.units.scaled(weights, col_dual, limit)
        self.is_even = low == high and limit is None  # whatever the pairs are
        if not (self.is_given or self.is_even):
            for mates in task.mates:
                mates.fill(-1)
        self.paths = SparsePaths(
            (indptr, indices, weights), task.costs, *task.mates, col_dual, limit, workers=workers
        )
        self.paths.room_for_minima = task.solution.row_dual
        self.paths.looks_ahead = tuning.trial.looks_ahead
        self.number = self.paths.price.dtype.type
        self.spread = self.number(high - low)
        self.task = task
        self.floor = -(self.nrows + 1) * max(-low, high)
        self.turned: Any = None  # the entries by columns, once there are bids in turns
        self.row_price = kept_empty(self.nrows, self.number)
        self.is_slack = np.zeros(self.nrows, bool)
        self.is_slack_col = np.zeros(self.paths.price.size, bool)
        self.budget = min(self.tuning.budget, self.tuning.most * (task.costs.nnz + self.nrows))
        self.rounding = 0.0 if self.is_integer else self.tuning.rounding
        paths = self.paths  # not self: a circle of references would keep all arrays for longer
        self.beat = heartbeat(self.control, lambda: paths.matched)
        self.is_settled = True

    @property
    def nrows(self) -> int:
        return self.solution.row_to_col.size

    def run(self) -> None:
        """All steps; raises Stopped."""
        if self.is_given:
            self.is_settled = False
            if not self.paths.all_match:
                np.minimum(self.paths.price, 0, out=self.paths.price)
            self._finish()
        elif self.is_even:
            if not complete(self.task, *self.task.mates):
                raise Stopped
        elif not self._try_paths():
            self.go_on()

    def go_on(self) -> None:
        """The steps after the trial; raises Stopped."""
        if self.paths.all_match:
            self.paths.lower_prices()
        if self._can_match_all():
            self._hold_auction()
            self._round_prices()
            self._finish()

    def _finish(self) -> None:
        """Paths for all that are left."""
        if self._serve_rows() and not self.paths.all_match:
            self._serve_cols()

    def write(self) -> None:
        """The duals of the prices, in the units of the costs."""
        self.write_prices()
        duals = self.solution.duals
        self.paths.write_duals(*duals)
        self.units.restore(*duals)
        self.solution.has_duals = True

    def write_prices(self) -> None:
        """Those of the columns, in the units of this engine."""
        price, mates = self.paths.price, self.solution.col_to_row
        if not (self.paths.all_match or self.is_settled):
            price[mates < 0] = 0
        self.solution.col_dual[:] = price

    # -- the trial ---------------------------------------------------------------------------------

    def _try_paths(self) -> bool:
        """Pairs, bids and paths from the least costs, while cheap; whether that was all."""
        paths, control = self.paths, self.control
        if not paths.begin(control):
            raise Stopped
        free = paths.start_with_free_rows()
        if free.size and self._have_choice(free):
            if not paths.match_all_tight(control, self.workers):
                raise Stopped
            free = paths.start_with_free_rows()
        needs_paths = self.units.is_crude or self.spread == 0
        if self.tuning.trial.bids and not needs_paths:
            free = self._bid_honestly(free)
        if self._try_to_serve(free, needs_paths):
            return True
        paths.leave_search()
        return False

    def _bid_honestly(self, free: np.ndarray) -> np.ndarray:
        """Bids without an epsilon by the free rows, while these serve some; what is left."""
        paths, degree = self.paths, 1 + self.costs.nnz // self.nrows
        waiting, is_worth_it = free, True
        if free.size:
            paths.minima = None
        while waiting.size and is_worth_it:
            before, most = waiting.size, self.tuning.trial.bids * degree * waiting.size
            most += int(paths.spot[SCANS])
            while waiting.size and is_worth_it and paths.spot[SCANS] < most:
                rest = most - int(paths.spot[SCANS])
                waiting, is_worth_it = self._bid(waiting, self.number(0), 0, rest)
            is_worth_it &= waiting.size <= self.tuning.served * before
        if free.size:
            paths.record("bids", free, paths.matched, self.control)
            free = paths.start_with_free_rows()
        return free

    def _try_to_serve(self, free: np.ndarray, needs_paths: bool) -> bool:
        """Paths for the free rows, while they are cheap; whether all are served that can be."""
        paths, control = self.paths, self.control
        is_small = self.costs.nnz <= self.tuning.small
        few = free.size if is_small else self.tuning.trial.unmatched * self.nrows
        reads = max(self.tuning.trial.reads, self.tuning.small_reads if is_small else 0)
        step, most = (
            max(int(self.tuning.step * self.costs.nnz), self.tuning.small) + 1,
            reads * self.costs.nnz,
        )
        outcome = SPENT if free.size else FOUND
        is_cheap = needs_paths or free.size <= few
        while outcome == SPENT and is_cheap:
            outcome = paths.augment_some(free, min(step, sparse_search.BUDGET))
            self.beat()
            scans, served = int(paths.spot[SCANS]), int(paths.spot[NEXT]) + 1
            is_cheap = needs_paths or scans * free.size <= most * served
        paths.record("trial", free, paths.matched, control)
        return outcome != SPENT

    def _have_choice(self, rows: np.ndarray) -> bool:
        """Whether these rows have several tight columns each, by a sample of them."""
        own, excess = self.paths.excess(rows[:: rows.size // self.tuning.sample + 1])
        return bool(np.count_nonzero(excess == 0) >= self.tuning.choice * own)

    def _can_match_all(self) -> bool:
        """Whether all rows may have columns; if that is doubtful, matchings tell."""
        if not self.task.may_be_infeasible:
            return True
        mates = [side.copy() for side in self.solution.mates]
        matching = self.task.matching(self.task.costs.pattern(), *mates)
        is_middle = self.costs.nnz <= self.tuning.middle
        complete_rest = complete_in_phases if is_middle else complete_row_by_row
        if not complete_rest(matching, self.tuning.patience if is_middle else 1):
            raise Stopped
        if count_matched(mates[0]) == self.nrows:
            return True
        for side, found in zip(self.solution.mates, mates):
            side[:] = found
        return False

    # -- the auction -------------------------------------------------------------------------------

    def _hold_auction(self) -> None:
        """Auctions of falling epsilon, until few rows are parted for the next."""
        self.is_settled = False
        if self.paths.all_match:
            self._price_rows()
        self.paths.minima = None
        finest = max(self.spread * self.tuning.finest, 1 if self.is_integer else 0)
        bidders = self.nrows - self.paths.matched
        epsilon = max(
            min(self.spread / self.tuning.first, self.tuning.gentle * self._typical_excess()),
            finest,
        )
        few = self.tuning.fewest
        while bidders > few and self._hold_phase(self.number(epsilon), few) and epsilon > finest:
            factor = (
                self.tuning.factor
                if bidders > self.tuning.calm * self.nrows
                else self.tuning.factor**3
            )
            epsilon = max(epsilon / factor, finest)
            few = min(2 * few, self.tuning.few)
            self._part_slack_pairs(epsilon)
            bidders = self.nrows - self.paths.matched

    def _typical_excess(self) -> float:
        """What dearer columns cost rows more than their cheapest: see `Tuning.gentle`."""
        rows, excess = self.paths.excess(
            np.arange(0, self.nrows, self.nrows // self.tuning.sample + 1)
        )
        dearer = excess[excess > 0]
        if not dearer.size:
            return math.inf
        if not self.paths.all_match:
            return float(np.quantile(dearer, 1 / 4))
        second = min(2 * rows / dearer.size, 1 / 2)
        return float(np.quantile(dearer, second)) * (1 - self.paths.matched / self.nrows)

    def _hold_phase(self, epsilon: Any, few: int) -> bool:
        """Let the free rows bid until few are left; False if that is not worth it any more."""
        paths = self.paths
        free = waiting = paths.start_with_free_rows()
        many, is_peaceful = few, True
        if paths.all_match:
            many = max(few, int(self.tuning.tail * self.nrows))
            if self.turned is None:
                waiting, is_peaceful = self._bid_while_turning(free, epsilon, many)
        is_peaceful = is_peaceful and self._bid_by_rows(waiting, epsilon, many)
        if is_peaceful and paths.all_match:
            is_peaceful = self._bid_in_turns(epsilon, few)
        if is_peaceful:
            paths.record("auction", free, paths.matched, self.control)
        return is_peaceful

    def _bid_by_rows(self, waiting: np.ndarray, epsilon: Any, many: int) -> bool:
        """Let rows bid until no more than so many are left."""
        is_worth_it = True
        while waiting.size > many and is_worth_it:
            waiting, is_worth_it = self._bid(waiting, epsilon, many, self.budget)
        return is_worth_it

    def _bid_while_turning(
        self, waiting: np.ndarray, epsilon: Any, many: int
    ) -> tuple[np.ndarray, bool]:
        """Find the entries by columns, while another thread lets rows bid if there is one.

        Both take about as long for an entry.
        """
        queue, budget = Queue(waiting), min(self.costs.nnz, self.tuning.turning)

        def work(worker: int) -> bool:
            if worker > 0:
                return self._hold([queue], epsilon, many, budget, 0)
            self.turned = _transpose(self.paths.entries, self.paths.price.size)
            return True

        is_peaceful = self.workers.run(work, 2)
        return queue.waiting, self._is_worth_it(is_peaceful, queue)

    def _bid(
        self, waiting: np.ndarray, epsilon: Any, many: int, budget: int
    ) -> tuple[np.ndarray, bool]:
        """Bids of all threads, a while; which rows are left, and whether to go on is worth it."""
        threads = max(1, min(self.workers.threads, waiting.size // self.tuning.each))
        queues = [Queue(share) for share in np.array_split(waiting, threads)]
        few = max(
            many // threads, 0 if threads == 1 else waiting.size // (self.tuning.shrink * threads)
        )
        budget = min(budget // threads + 1, self.budget)
        hold = partial(self._hold, queues, epsilon, few, budget)
        is_peaceful = self.workers.run(hold, threads)
        waiting = np.concatenate([queue.waiting for queue in queues])
        return waiting, self._is_worth_it(is_peaceful, *queues)

    def _bid_in_turns(self, epsilon: Any, few: int) -> bool:
        """Let the free rows and the free columns bid, by all threads, until few are left."""
        free, is_worth_it = self._free(), True
        while free[0].size > few and is_worth_it:
            threads = max(1, min(self.workers.threads, free[0].size // self.tuning.each))
            rows, cols = (
                [Queue(share) for share in np.array_split(side, threads)] for side in free
            )
            left, budget = np.array([free[0].size]), self.budget // threads + 1
            alternate = partial(self._alternate, rows, cols, left, epsilon, few, budget)
            is_peaceful = self.workers.run(alternate, threads)
            is_worth_it = self._is_worth_it(is_peaceful, *rows, *cols)
            free = self._free()
        return is_worth_it

    def _free(self) -> list[np.ndarray]:
        """The free rows and the free columns."""
        return [np.flatnonzero(mates < 0) for mates in self.solution.mates]

    def _alternate(
        self,
        rows: list[Queue],
        cols: list[Queue],
        left: np.ndarray,
        epsilon: Any,
        few: int,
        budget: int,
        worker: int,
    ) -> bool:
        """Let the worker's rows and columns bid in turns; False if a price is too low."""
        paths = self.paths
        outcome = bidding.alternate(
            *paths.entries, *self.turned,  # IN
            self.row_price, paths.price, paths.row_to_col, paths.col_to_row,  # OUT
            self.is_slack, self.is_slack_col,  # OUT
            rows[worker].rows, rows[worker].state, cols[worker].rows, cols[worker].state,  # OUT
            left,  # OUT
            epsilon, self.spread, paths.far, self.floor, few, budget,  # IN
        )  # fmt: skip
        return bool(outcome != LOW)

    def _is_worth_it(self, is_peaceful: bool, *queues: Queue) -> bool:
        """Whether the auction may go on, by its prices and the entries looked at in this phase."""
        spot = self.paths.spot
        for queue in queues:
            spot[SCANS] += queue.state[SCANS]
            queue.state[SCANS] = 0
        self.beat()
        return is_peaceful and int(spot[SCANS]) <= self.tuning.most * self.costs.nnz

    def _hold(self, queues: list[Queue], epsilon: Any, few: int, budget: int, worker: int) -> bool:
        """Let the rows of the worker's queue bid; False if a price is too low."""
        paths, queue = self.paths, queues[worker]
        row_price = self.row_price[: self.nrows if epsilon > 0 else 0]  # else no one asks for it
        outcome = bidding.hold(
            *paths.entries,  # IN
            row_price, paths.price, paths.row_to_col, paths.col_to_row, self.is_slack,  # OUT
            queue.rows, queue.state,  # OUT
            epsilon, self.spread, paths.limit, paths.leaves,  # IN
            paths.far, self.floor, few, budget,  # IN
        )  # fmt: skip
        return bool(outcome != LOW)

    def _price_rows(self) -> None:
        """What rows pay, or must: the least, because pairs are tight."""
        paths = self.paths
        if paths.minima is None:
            paths.write_minima(self.row_price)
        else:
            self.row_price[:] = paths.minima

    def _part_slack_pairs(self, epsilon: Any) -> None:
        """Part the pairs that cost an end over epsilon more than it must, and that is marked."""
        if self.turned is not None:
            paths = self.paths
            self._drop_slack(
                self.turned, (paths.price, self.row_price), (paths.col_to_row, paths.row_to_col),
                self.is_slack_col, epsilon,
            )  # fmt: skip
        self._part_rows(epsilon)

    def _part_rows(self, epsilon: Any) -> None:
        """Part the marked rows from columns that cost them over epsilon more than they must."""
        paths = self.paths
        self._drop_slack(
            paths.entries, (self.row_price, paths.price), (paths.row_to_col, paths.col_to_row),
            self.is_slack, epsilon,
        )  # fmt: skip

    def _drop_slack(
        self, entries: Any, prices: Any, mates: Any, is_slack: np.ndarray, epsilon: Any
    ) -> None:
        """The same for the side whose entries are given, and whose prices and mates come first."""
        paths = self.paths
        shares = paths.shares(0, is_slack.size)

        def drop(share: int) -> None:
            bidding.drop_slack(
                *entries,  # IN
                *prices, *mates, is_slack,  # OUT
                paths.limit, paths.leaves, paths.far, self.number(epsilon), self.rounding,  # IN
                *shares[share],  # IN
            )  # fmt: skip

        self.workers.deal(drop, len(shares))
        self.beat()

    def _round_prices(self) -> None:
        """Round integer prices down to the units of the costs, from where they are most apart.

        A pair within epsilon of being tight is tight then, unless its column's fraction of a unit
        is at one end of the circle of fractions, and that of a column as cheap at the other.
        """
        scale, price = self.units.scale, self.paths.price
        matched = price[self.solution.col_to_row >= 0]
        if scale == 1 or not matched.size:
            return
        fractions = np.flatnonzero(np.bincount(matched % scale, minlength=scale))
        gaps = np.diff(fractions, append=fractions[0] + scale)
        first = fractions[(gaps.argmax() + 1) % fractions.size]
        rise = (scale - first) % scale
        price[:] = np.minimum((price + rise) // scale * scale, 0)

    # -- exact paths -------------------------------------------------------------------------------

    def _serve_rows(self) -> bool:
        """Exact paths for all rows that are left; False if one has none."""
        paths = self.paths
        self.is_slack.fill(True)
        self._part_rows(0)
        if not paths.match_tight(self.control):
            raise Stopped
        if self.turned is not None and self.costs.nnz >= self.tuning.two_sided_entries:
            self._serve_from_both_ends()
        elif not paths.augment(self.control):
            raise Stopped
        return paths.leaves or paths.matched == self.nrows

    def _serve_from_both_ends(self) -> None:
        """Exact paths from the rows alone until few are left, then from free columns, too."""
        paths = self.paths
        free = paths.start_with_free_rows()
        many = (
            free[: -self.tuning.two_sided_rows]
            if free.size > self.tuning.two_sided_all
            else free[:0]
        )
        outcome = SPENT
        while outcome == SPENT and many.size:
            outcome = paths.augment_some(many, paths.budget)
            self.beat()
        if many.size:
            paths.write_minima(self.row_price)
        both = TwoSidedPaths(
            (paths.entries, self.turned), (self.row_price, paths.price), self.solution.mates,
            paths.far, self.workers,
        )  # fmt: skip
        both.serve(self.control)
        paths.spot[SCANS] += both.scans
        paths.record("paths", free, paths.matched, self.control)

    def _serve_cols(self) -> None:
        """Paths for the columns that are free at a price below 0, until there are none."""
        paths = self.paths
        row_dual, col_to_row = self.solution.row_dual, self.solution.col_to_row
        if not paths.leaves:
            paths.price -= paths.price.max()
        roots = np.flatnonzero((col_to_row < 0) & (paths.price < 0)).astype(np.int32)
        if roots.size:
            paths.write_minima(row_dual)
            entries = _transpose(paths.entries, paths.price.size)
            mates = col_to_row, self.solution.row_to_col
            turned = SparsePaths(entries, self.costs, *mates, row_dual, self.number(0))
            turned.spot[:] = 0
            turned.spot[HEAD] = -1
            if not turned.serve(roots, self.control):
                raise Stopped
            row_dual[:] = turned.price
            turned.write_minima(paths.price)
            paths.price[col_to_row < 0] = 0  # but for rounding
        self.is_settled = True


def _extent(costs: Costs, limit: Any) -> tuple[Any, Any]:
    """The least and the greatest of costs and limit."""
    ends = [] if limit is None else [limit]
    if costs.nnz:
        ends += [costs.low, costs.high]
    return (min(ends), max(ends)) if ends else (0, 0)


def _transpose(entries: Any, ncols: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The entries by columns, in arrays of the same types, so that a kernel is compiled once."""
    indptr, indices, weights = entries
    offsets, rows, turned = csr.transpose_values(indptr, indices, weights, ncols)
    return offsets.astype(indptr.dtype, copy=False), rows, turned
