"""The auction of the sparse engine: phases of bids whose epsilon falls, and the repair after them.

Rows bid one after the other (`bidding`), each thread for the rows of its own queue. If all rows and
columns must be matched, unmatched columns bid in turns with the rows once few rows are unmatched.
They need the transposed entries, which one thread finds while another one lets rows bid.

A phase ends when few rows are unmatched. The next phase begins from its prices and pairs, but parts
pairs whose slack exceeds the new epsilon. Only vertices that `is_slack` marks can have such a pair,
but for prices that have risen while a thread read them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpumatch.contracts import Control
from gpumatch.cpu.assignment.search.bid_queue import Queue
from gpumatch.cpu.assignment.search.state import LOW, SCANS
from gpumatch.cpu.assignment.sparse import bidding
from gpumatch.cpu.assignment.sparse.paths import SparsePaths, transpose
from gpumatch.cpu.assignment.sparse.tuning import Tuning
from gpumatch.running.kept_memory import kept_empty

__all__ = ["Auction"]


class Auction:
    """Bids for the columns of `paths`, whose prices and pairs they change.

    Parameters
    ----------
    paths : SparsePaths
        Entries, prices and pairs.
    spread : number
        The range of the costs.
    floor : number
        A bound of all prices of a problem with a full assignment: below it, none exists.
    tuning : Tuning
        When phases end, and how epsilon falls.
    control, beat
        What hears of each phase, and what it is told with between two calls of kernels.

    Attributes
    ----------
    transposed : tuple or None
        The entries in CSR by columns, once columns have bid.
    row_dual : numpy.ndarray
        What each row pays for its column, or would have paid when it bid last.
    """

    def __init__(
        self,
        paths: SparsePaths,
        spread: Any,
        floor: Any,
        tuning: Tuning,
        control: Control,
        beat: Callable[[], None],
    ) -> None:
        self.paths, self.workers, self.nnz = paths, paths.workers, paths.costs.nnz
        self.spread, self.floor, self.tuning = spread, floor, tuning
        self.control, self.beat = control, beat
        self.nrows, self.number = paths.row_to_col.size, paths.price.dtype.type
        self.is_integer = paths.price.dtype.kind == "i"
        self.rounding = 0.0 if self.is_integer else tuning.rounding
        self.budget = min(tuning.budget, tuning.most * (self.nnz + self.nrows))
        self.transposed: Any = None
        self.row_dual = kept_empty(self.nrows, self.number)
        self.is_slack = np.zeros(self.nrows, bool)
        self.is_slack_col = np.zeros(paths.price.size, bool)

    def hold(self) -> None:
        """Hold phases of falling epsilon, until hardly any row must bid in the next one."""
        paths, tuning = self.paths, self.tuning
        if paths.all_match:
            self._price_rows()
        paths.row_dual = None
        finest = max(self.spread * tuning.finest, 1 if self.is_integer else 0)
        bidders = self.nrows - paths.matched
        gentle = tuning.gentle * self._typical_excess()
        epsilon = max(min(self.spread / tuning.first, gentle), finest)
        few = tuning.fewest
        while bidders > few and self._hold_phase(self.number(epsilon), few) and epsilon > finest:
            factor = tuning.factor if bidders > tuning.calm * self.nrows else tuning.factor**3
            epsilon = max(epsilon / factor, finest)
            few = min(2 * few, tuning.few)
            self._part_slack_pairs(epsilon)
            bidders = self.nrows - paths.matched

    def repair(self) -> None:
        """Part all pairs that are not tight, whatever is marked."""
        self.is_slack.fill(True)
        self._part_rows(0)

    def bid(
        self, waiting: np.ndarray, epsilon: Any, many: int, budget: int
    ) -> tuple[np.ndarray, bool]:
        """Let these rows bid by all threads, for a budget or until `many` are unmatched.

        Returns the rows that are unmatched, and whether more bids are worth their time.
        """
        tuning = self.tuning
        threads = max(1, min(self.workers.threads, waiting.size // tuning.each))
        queues = [Queue(share) for share in np.array_split(waiting, threads)]
        shrunk = 0 if threads == 1 else waiting.size // (tuning.shrink * threads)
        budget = min(budget // threads + 1, self.budget)
        hold = partial(self._hold, queues, epsilon, max(many // threads, shrunk), budget)
        is_peaceful = self.workers.run(hold, threads)
        waiting = np.concatenate([queue.waiting for queue in queues])
        return waiting, self._is_worth_it(is_peaceful, *queues)

    # -- phases ------------------------------------------------------------------------------------

    def _typical_excess(self) -> float:
        """What a row typically saves by its cheapest column, as `Tuning.gentle` says."""
        step = self.nrows // self.tuning.sample + 1
        rows, excess = self.paths.excess(np.arange(0, self.nrows, step))
        dearer = excess[excess > 0]
        if not dearer.size:
            return math.inf
        if not self.paths.all_match:
            return float(np.quantile(dearer, 1 / 4))
        second = min(2 * rows / dearer.size, 1 / 2)
        return float(np.quantile(dearer, second)) * (1 - self.paths.matched / self.nrows)

    def _hold_phase(self, epsilon: Any, few: int) -> bool:
        """Let vertices bid until few rows are unmatched; False if more bids are not worth it."""
        paths = self.paths
        free = waiting = paths.start_with_unmatched_rows()
        many, is_peaceful = few, True
        if paths.all_match:
            many = max(few, int(self.tuning.tail * self.nrows))
            if self.transposed is None:
                waiting, is_peaceful = self._bid_while_transposing(free, epsilon, many)
        is_peaceful = is_peaceful and self._bid_by_rows(waiting, epsilon, many)
        if is_peaceful and paths.all_match:
            is_peaceful = self._bid_in_turns(epsilon, few)
        if is_peaceful:
            paths.record("auction", free, paths.matched, self.control)
        return is_peaceful

    def _bid_while_transposing(
        self, waiting: np.ndarray, epsilon: Any, many: int
    ) -> tuple[np.ndarray, bool]:
        """Transpose the entries, while a second thread, if there is one, lets rows bid.

        Both take about as long for an entry.
        """
        queue, budget = Queue(waiting), min(self.nnz, self.tuning.turning)

        def work(worker: int) -> bool:
            if worker > 0:
                return self._hold([queue], epsilon, many, budget, 0)
            self.transposed = transpose(self.paths.entries, self.paths.price.size)
            return True

        is_peaceful = self.workers.run(work, 2)
        return queue.waiting, self._is_worth_it(is_peaceful, queue)

    def _bid_by_rows(self, waiting: np.ndarray, epsilon: Any, many: int) -> bool:
        """Let rows bid until no more than `many` are unmatched; False as `_hold_phase`."""
        is_worth_it = True
        while waiting.size > many and is_worth_it:
            waiting, is_worth_it = self.bid(waiting, epsilon, many, self.budget)
        return is_worth_it

    def _bid_in_turns(self, epsilon: Any, few: int) -> bool:
        """Let rows and columns bid in turns until few are unmatched; False as `_hold_phase`."""
        free, is_worth_it = self._unmatched(), True
        while free[0].size > few and is_worth_it:
            threads = max(1, min(self.workers.threads, free[0].size // self.tuning.each))
            rows, cols = (
                [Queue(share) for share in np.array_split(side, threads)] for side in free
            )
            left, budget = np.array([free[0].size]), self.budget // threads + 1
            alternate = partial(self._alternate, rows, cols, left, epsilon, few, budget)
            is_peaceful = self.workers.run(alternate, threads)
            is_worth_it = self._is_worth_it(is_peaceful, *rows, *cols)
            free = self._unmatched()
        return is_worth_it

    def _unmatched(self) -> list[np.ndarray]:
        """The unmatched rows and the unmatched columns."""
        sides = self.paths.row_to_col, self.paths.col_to_row
        return [np.flatnonzero(mates < 0) for mates in sides]

    def _is_worth_it(self, is_peaceful: bool, *queues: Queue) -> bool:
        """Count what the queues have read in this phase; False if it is a price war."""
        spot = self.paths.spot
        for queue in queues:
            spot[SCANS] += queue.state[SCANS]
            queue.state[SCANS] = 0
        self.beat()
        return is_peaceful and int(spot[SCANS]) <= self.tuning.most * self.nnz

    def _price_rows(self) -> None:
        """Set what rows pay, or must: their least reduced costs, because all pairs are tight."""
        paths = self.paths
        if paths.row_dual is None:
            paths.write_row_duals(self.row_dual)
        else:
            self.row_dual[:] = paths.row_dual

    # -- calls of kernels --------------------------------------------------------------------------

    def _hold(self, queues: list[Queue], epsilon: Any, few: int, budget: int, worker: int) -> bool:
        """Let the rows of the worker's queue bid; False if a price is below the floor."""
        paths, queue = self.paths, queues[worker]
        row_dual = self.row_dual[: self.nrows if epsilon > 0 else 0]  # else nobody reads it
        outcome = bidding.hold(
            paths.entries,  # IN
            (row_dual, paths.price, paths.row_to_col, paths.col_to_row, self.is_slack),  # OUT
            queue.ring,  # OUT
            epsilon, self.spread, paths.limit, paths.leaves,  # IN
            paths.far, self.floor, few, budget,  # IN
        )  # fmt: skip
        return bool(outcome != LOW)

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
        """Let the worker's rows and columns bid in turns; False if a price is below the floor."""
        paths = self.paths
        outcome = bidding.alternate(
            paths.entries, self.transposed,  # IN
            *self._sides(), rows[worker].ring, cols[worker].ring, left,  # OUT
            epsilon, self.spread, paths.far, self.floor, few, budget,  # IN
        )  # fmt: skip
        return bool(outcome != LOW)

    def _sides(self) -> tuple[Any, Any]:
        """What rows bid with, and what columns bid with: see `bidding`."""
        paths = self.paths
        rows = self.row_dual, paths.price, paths.row_to_col, paths.col_to_row, self.is_slack
        cols = paths.price, self.row_dual, paths.col_to_row, paths.row_to_col, self.is_slack_col
        return rows, cols

    def _part_slack_pairs(self, epsilon: Any) -> None:
        """Part the pairs whose slack exceeds epsilon for a marked row or column."""
        if self.transposed is not None:
            self._drop_slack(self.transposed, self._sides()[1], epsilon)
        self._part_rows(epsilon)

    def _part_rows(self, epsilon: Any) -> None:
        """Part the pairs whose slack exceeds epsilon for a marked row."""
        self._drop_slack(self.paths.entries, self._sides()[0], epsilon)

    def _drop_slack(self, entries: Any, side: Any, epsilon: Any) -> None:
        """Part the marked vertices of a side from mates whose slack exceeds epsilon."""
        paths = self.paths
        shares = paths.shares(0, entries[0].size - 1)

        def drop(share: int) -> None:
            bidding.drop_slack(
                entries,  # IN
                side,  # OUT
                paths.limit, paths.leaves, paths.far, self.number(epsilon), self.rounding,  # IN
                *shares[share],  # IN
            )  # fmt: skip

        self.workers.deal(drop, len(shares))
        self.beat()
