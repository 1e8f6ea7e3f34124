"""The trial of the sparse engine: pairs, bids and paths from the least costs, while cheap.

If the unmatched rows have several tight columns each, a search of tight pairs matches as many rows
as it can. In a long trial, rows then bid without an epsilon, so that all pairs stay tight. If few
rows are unmatched then, they get shortest augmenting paths, as long as the paths so far tell that
all of them read few entries. If more rows are unmatched after a search of tight pairs, and the
costs have few values, they get paths as long as these match them fast.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Stopped
from gpumatch.cpu.assignment.sparse.auction import Auction
from gpumatch.cpu.assignment.sparse.paths import SparsePaths
from gpumatch.cpu.assignment.sparse.tuning import Tuning
from gpumatch.cpu.matching.completion import complete_in_phases, complete_row_by_row
from gpumatch.cpu.searches import sparse as sparse_search
from gpumatch.cpu.searches.state import DONE, FOUND, NEXT, SCANS, SPENT
from gpumatch.numeric.arrays import count_matched

__all__ = ["Trial", "can_match_all"]


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
