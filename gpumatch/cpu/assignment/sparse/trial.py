"""Paths of the sparse engine that need no epsilon: tried before the auction, then beside it.

*Trial*. Rows take columns at the least costs. If the unmatched rows have several tight columns
each, a search of tight pairs matches as many rows as it can. In a long trial, rows then bid without
an epsilon, so that all pairs stay tight. If few rows are unmatched then, they get shortest
augmenting paths, as long as the paths so far tell that all of them read few entries. If more rows
are unmatched after a search of tight pairs, and the costs have few values, they get paths as long
as these match them fast.

*Rival*. Nothing tells in advance how long an auction takes. Costs with ties, clusters, and costs
that differ by many orders of magnitude can let its rows outbid each other through phase after
phase. So once the auction has read all entries a few times, paths go on from copies of the trial's
pairs and prices, and take turns with the auction. Each side tells what it expects to read yet:

- The auction knows how fast the waiting rows of its first phase get fewer (`auction`). The phases
  that follow mostly read half as much. It is taken to read at least half as much again as it has,
  and as much again at most, and after a price war.
- Searches get longer as fewer columns are unmatched: at random, the search from the last of k rows
  reads a k-th of all that it can reach, so that the readings grow as the logarithm of the unmatched
  rows falls. On 228 square problems of `bench adversary` they grow as the power 1.3 of that. After
  one reading, half of them expect 0.7 to 2.9 times what they will read in all.

Paths begin when three quarters of what the auction expects are four readings. Paths go on while
they expect to read three quarters of what the auction does, at most. An entry takes them twice the
time, or more if most entries lead to columns by a shorter way than before, as in squared distances
of points on a line: a bid looks at an entry, but a search puts its column into a heap. So readings
of paths count for more there (`_cost`).

Where whole groups of rows want columns far away, the first paths of each group read all of the
group, and the others are short. The same holds if costs have hardly any values: then nearly all
columns tie. So once paths have been long, what they expect means nothing, and
they read half as much again as the auction. Long paths whose readings count for much more are no
sign of groups: on a line, all are long. Other paths may read a 64th of what the auction has read,
to learn what to expect.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Stopped
from gpumatch.cpu.assignment.sparse.auction import Auction
from gpumatch.cpu.assignment.sparse.paths import SparsePaths
from gpumatch.cpu.assignment.sparse.tuning import Tuning
from gpumatch.cpu.matching.completion import complete_in_phases, complete_row_by_row
from gpumatch.cpu.searches import sparse as sparse_search
from gpumatch.cpu.searches.state import DONE, FOUND, NEXT, PUSHED, SCANS, SPENT, STUCK
from gpumatch.numeric.arrays import count_matched

__all__ = ["Rival", "Trial", "Won", "can_match_all"]


class Trial:
    """What is tried before an auction.

    Parameters
    ----------
    paths : SparsePaths
        Entries, prices and pairs.
    auction : Auction
        What lets rows bid.
    tuning : Tuning
        How long the trial goes on.
    control, beat
        What hears of each phase, and what it is told with between two calls of kernels.
    needs_paths : bool
        True if an auction cannot serve these costs, so that paths must, however long they are.
    """

    def __init__(
        self,
        paths: SparsePaths,
        auction: Auction,
        tuning: Tuning,
        control: Control,
        beat: Callable[[], None],
        *,
        needs_paths: bool,
    ) -> None:
        self.paths, self.auction, self.tuning = paths, auction, tuning
        self.control, self.beat, self.needs_paths = control, beat, needs_paths
        self.nrows, self.nnz = paths.row_to_col.size, paths.costs.nnz
        self.effort = tuning.trial if paths.all_match else tuning.trial_with_spare

    def run(self) -> bool:
        """Try pairs, bids and paths; True if no further row can be matched. Raises Stopped."""
        paths, control = self.paths, self.control
        if not paths.begin(control):
            raise Stopped
        unmatched = paths.start_with_unmatched_rows()
        have_choice = bool(unmatched.size) and self._have_choice(unmatched)
        if have_choice:
            if not paths.match_all_tight(control, paths.workers):
                raise Stopped
            unmatched = paths.start_with_unmatched_rows()
        if self.effort.bids and not self.needs_paths:
            if not (paths.all_match or self.nnz <= self.tuning.small):
                if self._serve(unmatched, self.tuning.probe, 0):
                    return True
                if self._expected(unmatched.size) > self.effort.reads:
                    return False
                unmatched = paths.start_with_unmatched_rows()
            unmatched = self._bid(unmatched)
        elif have_choice and not self._are_few(unmatched) and self.auction.quantum:
            return self._serve_groups(unmatched)
        return self._try_to_serve(unmatched)

    def _have_choice(self, rows: np.ndarray) -> bool:
        """True if these rows have several tight columns each, to judge by a sample."""
        count, excess = self.paths.excess(rows[:: rows.size // self.tuning.sample + 1])
        return bool(np.count_nonzero(excess == 0) >= self.tuning.choice * count)

    def _bid(self, unmatched: np.ndarray) -> np.ndarray:
        """Let rows bid without an epsilon; return the unmatched rows.

        If columns may stay unmatched, chains of bids read less than rounds, but nobody fetches
        ahead what they read. So they are for matrices that fit into the caches.
        """
        paths = self.paths
        if paths.all_match or self.nnz > self.tuning.chained:
            return self._bid_honestly(unmatched)
        if not paths.bid(self.control):
            raise Stopped
        return paths.start_with_unmatched_rows()

    def _bid_honestly(self, unmatched: np.ndarray) -> np.ndarray:
        """Let rows bid without an epsilon, while this serves many; return the unmatched rows."""
        paths, tuning, degree = self.paths, self.tuning, 1 + self.nnz // self.nrows
        waiting, is_worth_it, zero = unmatched, True, paths.price.dtype.type(0)
        if unmatched.size:
            paths.row_dual = None
        while waiting.size and is_worth_it:
            before, most = waiting.size, self.effort.bids * degree * waiting.size
            most += int(paths.spot[SCANS])
            while waiting.size and is_worth_it and paths.spot[SCANS] < most:
                rest = most - int(paths.spot[SCANS])
                waiting, outcome = self.auction.bid(waiting, zero, 0, rest)
                is_worth_it = outcome == DONE
            is_worth_it &= waiting.size <= tuning.served * before
        if unmatched.size:
            paths.record("bids", unmatched, paths.matched, self.control)
            unmatched = paths.start_with_unmatched_rows()
        return unmatched

    def _try_to_serve(self, unmatched: np.ndarray) -> bool:
        """Augment from these rows while it is cheap; True if all are served that can be."""
        tuning = self.tuning
        most = max(self.effort.reads, (self.nnz <= tuning.small) * tuning.small_reads)
        return self._serve(unmatched, tuning.step if self._are_few(unmatched) else 0, most)

    def _are_few(self, unmatched: np.ndarray) -> bool:
        """True if paths may serve so many rows, or must."""
        is_small = self.nnz <= self.tuning.small
        few = unmatched.size if is_small else self.effort.unmatched * self.nrows
        return self.needs_paths or unmatched.size <= few

    def _serve(self, unmatched: np.ndarray, step: float, most: float) -> bool:
        """Augment while paths are expected to read all entries no more often than `most`.

        They are judged each time after they have read the share `step` of them; nothing is done if
        it is 0.
        """
        outcome, is_cheap = SPENT if unmatched.size else FOUND, step > 0
        while outcome == SPENT and is_cheap:
            outcome = self._augment(unmatched, step)
            is_cheap = self.needs_paths or self._expected(unmatched.size) <= most
        return self._end(outcome, unmatched)

    def _serve_groups(self, unmatched: np.ndarray) -> bool:
        """Augment in costs of few values, after a maximum matching in tight pairs.

        Whole groups of rows want fewer columns there. The first path of a group reads all of it,
        but moves all its prices by the same step of costs, so that most of the other paths are
        short. If the unmatched rows do not get fewer that fast, all these paths are undone.
        """
        paths, rows = self.paths, unmatched.size
        arrays = paths.price, paths.row_to_col, paths.col_to_row
        before, row_dual = [array.copy() for array in arrays], paths.row_dual
        outcome, is_fast = SPENT, True
        while outcome == SPENT and is_fast:
            outcome = self._augment(unmatched, self.tuning.step)
            is_fast = self._serves_groups(rows)
        if outcome == SPENT:
            for array, old in zip(arrays, before):
                array[:] = old
            paths.row_dual = row_dual
        return self._end(outcome, unmatched)

    def _serves_groups(self, rows: int) -> bool:
        """True if few enough of these rows are unmatched for what paths have read."""
        tuning, spot = self.tuning, self.paths.spot
        reads, unmatched = int(spot[SCANS]) / self.nnz, rows - int(spot[NEXT])
        few = 2 * rows / 4 ** min(reads, tuning.group_steps)
        is_early = reads < tuning.group_first
        return is_early or (unmatched <= max(few, tuning.few_paths) and reads < tuning.group_reads)

    def _augment(self, unmatched: np.ndarray, step: float) -> int:
        """Augment until this share of all entries is read; return the outcome."""
        budget = max(int(step * self.nnz), self.tuning.small) + 1
        outcome = self.paths.augment_some(unmatched, min(budget, sparse_search.BUDGET))
        self.beat()
        return outcome

    def _end(self, outcome: int, unmatched: np.ndarray) -> bool:
        """Record the paths; True if all rows are served that can be."""
        self.paths.record("trial", unmatched, self.paths.matched, self.control)
        if outcome == SPENT:
            self.paths.leave_search()
        return outcome != SPENT

    def _expected(self, rows: int) -> float:
        return self.paths.expected_readings(rows, self.tuning.growth)


def can_match_all(task: AssignmentTask, tuning: Tuning) -> bool:
    """Return if a full assignment exists; if not, match as many rows as can be.

    A maximum matching decides, if the task may be infeasible. Raises Stopped.
    """
    if not task.may_be_infeasible:
        return True
    mates = [side.copy() for side in task.mates]
    matching = task.matching(task.costs.pattern(), *mates)
    is_middle = task.costs.nnz <= tuning.middle
    complete_rest = complete_in_phases if is_middle else complete_row_by_row
    if not complete_rest(matching, tuning.patience if is_middle else 1):
        raise Stopped
    if count_matched(mates[0]) == mates[0].size:
        return True
    for side, found in zip(task.mates, mates):
        side[:] = found
    return False


# -- the rival -------------------------------------------------------------------------------------


class Won(Exception):
    """All rows are matched: nothing is left to do for what the rival took turns with."""


class Rival:
    """The paths; none before `enter`.

    Parameters
    ----------
    leader : SparsePaths
        The entries, prices and pairs of the auction, whose readings tell when a turn is due.
    tuning : Tuning
        How much the paths may read.
    control, heartbeat
        What hears of each turn, and what it is told with between two calls of kernels.

    Attributes
    ----------
    are_long : bool
        True once paths that are not dear have read so much for each row that what they expect
        means nothing; from the beginning if the costs have hardly any values.
    """

    def __init__(
        self,
        leader: SparsePaths,
        tuning: Tuning,
        control: Control,
        heartbeat: Callable[[], None],
    ) -> None:
        self.leader, self.tuning, self.control = leader, tuning, control
        self.heartbeat = heartbeat
        self.paths: SparsePaths | None = None
        self.rows = np.empty(0, np.int32)
        self.are_long = False
        self.told = 0, 0  # entries read and rows served, as the control has heard

    def enter(self) -> None:
        """Take copies of prices and pairs, which are exact: all pairs are tight."""
        leader = self.leader
        mates = leader.row_to_col.copy(), leader.col_to_row.copy()
        limit = leader.limit if leader.leaves else None
        self.paths = SparsePaths(leader.entries, leader.costs, *mates, leader.price.copy(), limit)
        self.rows = self.paths.start_with_unmatched_rows()
        self.are_long = self._are_tied()
        self.told = 0, 0

    def _are_tied(self) -> bool:
        """True if the costs have hardly any values, to judge by a sample."""
        weights = self.leader.entries[2]
        sample = weights[:: weights.size // self.tuning.sample + 1]
        return bool(np.unique(sample).size <= self.tuning.hardly_any)

    def beat(self) -> None:
        """Take a turn if one is due, between two calls of the auction's kernels.

        Raises Stopped, and Won if all rows are matched.
        """
        self.heartbeat()
        paths, outcome = self.paths, SPENT
        if paths is None or not self._may_read(paths):
            return
        step = max(int(self.tuning.probe * paths.costs.nnz), self.tuning.small) + 1
        while outcome == SPENT and self._may_read(paths):
            outcome = paths.augment_some(self.rows, step)
            self.heartbeat()
        scans, served = int(paths.spot[SCANS]), int(paths.spot[NEXT])
        self.control.phase(
            found=served - self.told[1], matched=paths.matched, step="rival",
            scans=scans - self.told[0],
        )  # fmt: skip
        self.told = scans, served
        if outcome == FOUND:
            raise Won
        if outcome == STUCK:
            self.paths = None

    def _may_read(self, paths: SparsePaths) -> bool:
        """True if paths expect to need little, or have read less than their share."""
        tuning, leader = self.tuning, self.leader
        theirs = leader.readings
        if theirs < tuning.rival_reads or not self.rows.size:
            return False
        ahead = min(max(leader.expected - theirs, theirs / 2), theirs)
        own, most = self._cost(paths), tuning.promising * ahead
        if not own:
            return most >= tuning.worthwhile
        if own <= tuning.dear * paths.readings:
            self.are_long |= int(paths.spot[NEXT]) <= tuning.long_paths * paths.readings
        share = tuning.long_share if self.are_long else tuning.probed
        return own <= theirs * (tuning.boldest if self._ahead(paths) <= most else share)

    def _ahead(self, paths: SparsePaths) -> float:
        """The readings that paths expect to need yet, as `_cost` counts them."""
        nrows, ncols = paths.row_to_col.size, paths.price.size
        spare = 1 + ncols - nrows + (nrows if paths.leaves else 0)
        rows = self.rows.size
        left = rows - max(int(paths.spot[NEXT]), 0.5)
        times = math.log((rows + spare) / spare) / math.log((rows + spare) / (left + spare))
        return self._cost(paths) * (times**self.tuning.growth - 1)

    def _cost(self, paths: SparsePaths) -> float:
        """What paths have read, in readings that take twice as long as those of the auction."""
        tuning, scans = self.tuning, int(paths.spot[SCANS])
        degree = paths.costs.nnz / paths.row_to_col.size
        pushed = tuning.a_push * int(paths.spot[PUSHED]) / max(scans, 1)
        takes = (1 + tuning.a_row / degree + pushed) / (1 + tuning.a_bid / degree)
        return paths.readings * max(takes / tuning.usual, 1.0)

    def hand_over(self) -> None:
        """Put the prices and pairs in the place of the auction's; tell what that has read."""
        leader, paths = self.leader, self.paths
        assert paths is not None
        unmatched = np.flatnonzero(leader.row_to_col < 0)
        leader.record("given up", unmatched, leader.matched, self.control)
        leader.price[:] = paths.price
        leader.row_to_col[:], leader.col_to_row[:] = paths.row_to_col, paths.col_to_row
        leader.row_dual = None
