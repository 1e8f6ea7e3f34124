"""Our own engine for sparse costs on the CPU: an auction for the prices, exact paths for the proof.

It takes four steps, each from the prices and pairs of the one before:

1. *Trial* (`trial`): rows take columns at the least costs. If the unmatched rows have several
   cheapest columns each, a search of matchings serves as many of them as it can. In a long trial,
   rows then bid without an epsilon, so that all pairs stay tight. If few rows are unmatched, they
   get shortest augmenting paths. If these are expected to read few entries, the trial is all. If a
   full assignment may not exist, phases of searches or searches from single rows tell now; if they
   would read too much, a maximum matching tells. If columns may stay unmatched, rows bid and get
   paths, however many are unmatched, if the first paths promise to read few entries.
2. *Auction* (`auction`): unmatched rows bid one after the other, with an epsilon that falls from
   what a row typically saves by its cheapest column (`bidding`). If all rows and columns must be
   matched, the unmatched columns bid in turns with the rows once few rows are unmatched: else the
   last rows of a phase would take as many bids as all other rows. A phase ends when hardly any row
   is unmatched. If bids take long, searches for all unmatched rows at once (`joint_search`) help
   them. If a phase becomes a price war, epsilon rises before it falls again. Rows that are
   unmatched enter the next phase, with the rows and columns of pairs whose slack exceeds the next
   epsilon. Only a vertex whose last bid had to go epsilon further can have such a pair. At the end
   nearly all rows have a column, at prices within the last epsilon of optimal ones. Once it has
   read much, shortest augmenting paths from the trial's pairs take turns with it (`trial.Rival`).
3. *Repair*: pairs that are not exactly tight are parted. They are few, because a bid higher than
   epsilon leaves the pair of its bidder tight.
4. *Paths* (`last_paths`): the unmatched rows get exact shortest augmenting paths, from several
   threads as long as these do not meet. The paths are short, because the prices are nearly right.
   If they are not, exact searches for all rows at once or a finer epsilon come first. The last rows
   of a large matrix may be far from any unmatched column, if all columns must be matched. Their
   paths grow from both ends (`two_sided_search`). If columns may stay unmatched, some unmatched
   columns have a price below 0, which the auction gave them. Each of them gets an augmenting path
   in the transposed matrix, or the price 0.

The result is exact: no epsilon is left in it. Floats are taken as they are, and a pair counts as
tight if it is tight but for rounding. Integers lose their least one and
their common divisor, and are multiplied by a power of two (`numeric.multiples`), so that bids may
differ by less than costs do, which breaks most ties. After the auction, prices are rounded down to
multiples of that power again. If v_k <= v_j + y for a multiple y, that holds for rounded prices,
too: tight pairs stay tight, and most pairs within epsilon become tight.

Memory beside the costs, at the peak, of floats on one thread: 24 bytes an entry and 26 a vertex if
all rows and columns must be matched, 48 and 56 with paths from both ends, and 36 and 36 if columns
may stay unmatched. Integers take up to 8 more an entry and 12 more a vertex. Threads that search at
once take 4 bytes a column, and each of them 12 a column. A rival takes 12 an entry and 40 a vertex.

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
from typing import Any

import numpy as np

from gpumatch.contracts import AssignmentTask, Costs, Stopped
from gpumatch.cpu.assignment.sparse import tuning as tunings
from gpumatch.cpu.assignment.sparse.auction import Auction
from gpumatch.cpu.assignment.sparse.last_paths import LastPaths
from gpumatch.cpu.assignment.sparse.paths import FirstPairs, SparsePaths
from gpumatch.cpu.assignment.sparse.trial import Rival, Trial, Won, can_match_all
from gpumatch.cpu.assignment.sparse.tuning import Tuning
from gpumatch.cpu.heartbeat import heartbeat
from gpumatch.cpu.matching.completion import complete
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.numeric.multiples import Units

__all__ = ["run", "run_exactly", "run_for_prices"]

SAFE = 2**58
"""The largest magnitude of prices from which searches start, if costs are too large for steps.

A search adds less than 2**62 to it.
"""


def run(task: AssignmentTask, tuning: Tuning | None = None) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped."""
    tuning = tuning or tunings.DEFAULT
    with Workers(task.threads, _shared_entries(task, tuning)) as workers:
        engine = _Engine(task, workers, tuning)
        try:
            engine.run()
        except Stopped:
            return False
        finally:
            engine.write()
    return True


def _shared_entries(task: AssignmentTask, tuning: Tuning) -> int:
    """The entries by which threads are shared out; few of a small square matrix."""
    nrows, ncols = task.costs.shape
    is_small = task.limit is None and nrows == ncols < tuning.shared_rows
    return task.costs.nnz // tuning.unshared if is_small else task.costs.nnz


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
    long = replace(tuning, trial=tuning.long_trial, trial_with_spare=tuning.long_trial)
    engine = _Engine(task, workers, long)
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
    """The four steps on the state of a solution; its prices are in steps (`numeric.multiples`)."""

    def __init__(self, task: AssignmentTask, workers: Workers, tuning: Tuning) -> None:
        self.task, self.solution, self.control = task, task.solution, task.control
        self.tuning, self.workers = tuning, workers
        col_dual, limit = task.solution.col_dual, task.limit
        self.nrows = task.solution.row_to_col.size
        self.is_given = bool(col_dual.any())
        indptr, indices, weights = task.costs.entries()
        low, high = _extent(task.costs, limit)
        self.units = Units()
        if col_dual.dtype.kind == "i":
            self.units = Units.of(weights, (low, high), limit, self.nrows)
        low, high = self.units.steps(np.array([low, high]))
        weights, col_dual, limit = self.units.scaled(weights, col_dual, limit)
        self.is_even = low == high and limit is None  # whatever the pairs are
        if not (self.is_given or self.is_even):
            for mates in task.mates:
                mates.fill(-1)
        self.paths = paths = SparsePaths(
            (indptr, indices, weights), task.costs, *task.mates, col_dual, limit, workers=workers
        )
        paths.row_dual_memory = task.solution.row_dual
        paths.looks_ahead = tuning.trial.looks_ahead
        self.number = paths.price.dtype.type
        spread, floor = self.number(high - low), -(self.nrows + 1) * max(-low, high)
        if self.units.is_crude:
            floor = max(floor, -SAFE)
        # `beat` holds paths, not self: a circle of references would keep all arrays for longer.
        beat = heartbeat(self.control, lambda: paths.matched)
        self.rival = Rival(paths, tuning, self.control, beat)
        self.beat = self.rival.beat
        self.auction = Auction(paths, spread, floor, tuning, self.control, self.beat)
        self.trial = Trial(
            paths, self.auction, tuning, self.control, self.beat,
            needs_paths=bool(spread == 0),
        )  # fmt: skip
        self.last_paths = LastPaths(task, paths, self.auction, tuning, self.beat)
        self.can_bid = not (self.is_given or self.units.is_crude)
        self.is_settled = True  # True if unmatched columns have the price 0, where they must

    def run(self) -> None:
        """Take all steps; raises Stopped."""
        if self.is_given:
            self.is_settled = False
            if not self.paths.all_match:
                np.minimum(self.paths.price, 0, out=self.paths.price)
            elif self._should_bid_again():
                self.paths.lower_prices()
                self._hold_auction()
            self._repair_and_augment()
        elif self.is_even:
            if not complete(self.task, *self.task.mates):
                raise Stopped
        elif not self.trial.run():
            self.go_on()

    def go_on(self) -> None:
        """Take the steps after the trial; raises Stopped."""
        paths = self.paths
        if paths.all_match:
            paths.lower_prices()
        if can_match_all(self.task, self.tuning):
            self.is_settled = False
            self._race()

    def _race(self) -> None:
        """Hold the auction and what follows it, while its rival has not won; raises Stopped.

        Auctions from given prices have no rival: what they may read is known to be little.
        """
        self.rival.enter()
        try:
            self._hold_auction()
            if not self.auction.is_infeasible:
                self._repair_and_augment()
        except Won:
            self.rival.hand_over()
            self.is_settled = True

    def _should_bid_again(self) -> bool:
        """True if so many rows have no tight column at given prices that they had better bid.

        Pairs that are not tight are parted. Raises Stopped.
        """
        if self.tuning.bid_again >= 1:
            return False
        self.auction.repair()
        if not self.paths.match_tight(self.control):
            raise Stopped
        few = max(self.tuning.bid_again * self.nrows, self.tuning.few)
        return not self.units.is_crude and self.nrows - self.paths.matched > few

    def _hold_auction(self) -> None:
        """Hold the auction. If crude prices come near an overflow, those before it are kept."""
        price = self.paths.price
        before = price.copy() if self.units.is_crude else price
        self.auction.hold()
        if self.units.is_crude and price.size and max(-price.min(), price.max()) > SAFE:
            price[:] = before

    def write(self) -> None:
        """Write the duals of the prices, as costs."""
        self.write_prices()
        duals = self.solution.duals
        self.paths.write_duals(*duals)
        self.units.restore(*duals)
        self.solution.has_duals = self.solution.are_fair = True

    def write_prices(self) -> None:
        """Write the prices of the columns, in steps."""
        price, mates = self.paths.price, self.solution.col_to_row
        if not (self.paths.all_match or self.is_settled):
            price[mates < 0] = 0
        self.solution.col_dual[:] = price

    # -- repair, and exact paths -------------------------------------------------------------------

    def _repair_and_augment(self) -> None:
        """Part pairs that are not tight, and match all rows and columns along shortest paths.

        If paths of columns would read much, columns bid before them.
        """
        paths, last, auction = self.paths, self.last_paths, self.auction
        self._serve_rows()
        if not (paths.all_match or paths.leaves or paths.matched == self.nrows):
            return
        if not (paths.all_match or last.serve_cols(is_watched=self.can_bid)):
            auction.hold_reverse()
            self._serve_rows()
            last.serve_cols(is_watched=False)
        self.is_settled = True

    def _serve_rows(self) -> None:
        """Match all rows along shortest paths. If these would read much, epsilon falls before.

        It falls on only if it has fallen: a price war may have raised it in the meantime.
        """
        last, auction, reached = self.last_paths, self.auction, math.inf
        self._repair()
        while not last.serve_rows(
            is_watched=self.can_bid and auction.can_fall and auction.epsilon.now < reached
        ):
            reached = auction.epsilon.now
            auction.hold_finer(last.rows)
            self._repair()

    def _repair(self) -> None:
        """Part pairs that are not tight."""
        self.units.round_prices(self.paths.price, self.paths.col_to_row)
        self.auction.repair()


def _extent(costs: Costs, limit: Any) -> tuple[Any, Any]:
    """Return the least and the greatest of costs and limit."""
    ends = [] if limit is None else [limit]
    if costs.nnz:
        ends += [costs.low, costs.high]
    return (min(ends), max(ends)) if ends else (0, 0)
