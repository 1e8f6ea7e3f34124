"""Rows and columns that bid for each other, on all threads: calls of the kernels of `bidding`.

Each thread lets the vertices of its own queue bid. The duals of rows and the marks of slack pairs,
which phases and searches share, are kept here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpumatch.cpu.assignment.sparse.paths import SparsePaths, transpose
from gpumatch.cpu.assignment.sparse.tuning import Tuning
from gpumatch.cpu.searches import bidding
from gpumatch.cpu.searches.state import LOW, SCANS, SPENT, Queue
from gpumatch.running.kept_memory import kept_empty

__all__ = ["Bidders"]


class Bidders:
    """The two sides of `paths`, whose prices and pairs bids change.

    Parameters
    ----------
    paths : SparsePaths
        Entries, prices and pairs.
    spread : number
        The range of the costs.
    floor : number
        A price below which bids end.
    tuning : Tuning
        How many rows each thread has, and how many entries it reads.
    beat
        What is called between two calls of kernels.

    Attributes
    ----------
    row_dual : numpy.ndarray
        The dual of each row, as its last bid left it.
    is_slack, is_slack_col : numpy.ndarray
        True for rows, and for columns, whose pairs may not be tight.
    transposed : tuple or None
        The entries in CSR by columns, once columns have bid.
    reach : number
        The most that a bid of floats adds to the dual of its bidder, unless it doubles that.
    budget : int
        Entries that a kernel reads before it returns to Python.
    """

    def __init__(
        self,
        paths: SparsePaths,
        spread: Any,
        floor: Any,
        tuning: Tuning,
        beat: Callable[[], None],
    ) -> None:
        self.paths, self.workers, self.nnz = paths, paths.workers, paths.costs.nnz
        self.spread, self.floor, self.tuning, self.beat = spread, floor, tuning, beat
        self.nrows, self.number = paths.row_to_col.size, paths.price.dtype.type
        is_integer = paths.price.dtype.kind == "i"
        self.rounding = 0.0 if is_integer else tuning.rounding
        self.reach = paths.far // 4 if is_integer else paths.far
        self.budget = min(tuning.budget, tuning.trusted // 4 * (self.nnz + self.nrows))
        self.transposed: Any = None
        self.row_dual = kept_empty(self.nrows, self.number)
        self.is_slack = np.zeros(self.nrows, bool)
        self.is_slack_col = np.zeros(paths.price.size, bool)

    @property
    def unmatched(self) -> list[np.ndarray]:
        """The unmatched rows and the unmatched columns."""
        sides = self.paths.row_to_col, self.paths.col_to_row
        return [np.flatnonzero(mates < 0) for mates in sides]

    # -- bids --------------------------------------------------------------------------------------

    def bid(
        self, waiting: np.ndarray, epsilon: Any, many: int, budget: int
    ) -> tuple[np.ndarray, bool]:
        """Let these rows bid by all threads, for a budget or until `many` are unmatched.

        Returns the rows that are unmatched, and False if a price is below the floor.
        """
        tuning = self.tuning
        threads = max(1, min(self.workers.threads, waiting.size // tuning.each))
        queues = [Queue(share) for share in np.array_split(waiting, threads)]
        shrunk = 0 if threads == 1 else waiting.size // (tuning.shrink * threads)
        budget = min(budget // threads + 1, self.budget)
        hold = partial(self._hold, queues, epsilon, max(many // threads, shrunk), budget)
        is_peaceful = self.workers.run(hold, threads)
        waiting = np.concatenate([queue.waiting for queue in queues])
        self._count(*queues)
        return waiting, is_peaceful

    def bid_while_transposing(
        self, waiting: np.ndarray, epsilon: Any, many: int
    ) -> tuple[np.ndarray, bool]:
        """Transpose the entries, while a second thread, if there is one, lets rows bid.

        Both take about as long for an entry. Returns what `bid` does.
        """
        queue, budget = Queue(waiting), min(self.nnz, self.tuning.turning)

        def work(worker: int) -> bool:
            if worker > 0:
                return self._hold([queue], epsilon, many, budget, 0)
            self.transposed = transpose(self.paths.entries, self.paths.price.size)
            return True

        is_peaceful = self.workers.run(work, 2)
        self._count(queue)
        return queue.waiting, is_peaceful

    def bid_in_turns(self, unmatched: list[np.ndarray], epsilon: Any, few: int, most: int) -> bool:
        """Let these rows and columns bid in turns until ``few`` rows are unmatched.

        It may end before, after a budget or once the entries read are `most`. False if a price is
        below the floor.
        """
        size, each, enough = unmatched[0].size, self.tuning.each_in_turns, few
        threads = max(1, min(self.workers.threads, size // each))
        rows, cols = (
            [Queue(share) for share in np.array_split(side, threads)] for side in unmatched
        )
        left, budget = np.array([size]), self.budget + 1
        if threads > 1:  # each side of each thread has its share, and few end before it
            rest = most + self.nnz - int(self.paths.spot[SCANS])
            budget = min(self.budget, rest // 2) // threads + 1
            enough = max(few, threads * each // 2)
        alternate = partial(self._alternate, rows, cols, left, epsilon, enough, budget)
        is_peaceful = self.workers.run(alternate, threads)
        self._count(*rows, *cols)
        return is_peaceful

    def raise_columns(self, epsilon: Any, most: int) -> None:
        """Let unmatched columns whose price is below 0 bid, until it is 0 or they have a row.

        It ends once the entries read are more than `most`.

        This is the reverse auction of Bertsekas and Castañon: an unmatched column must have the
        price 0, but bids of rows lowered it before its row left.
        """
        paths = self.paths
        cols = np.flatnonzero((paths.col_to_row < 0) & (paths.price < 0)).astype(np.int32)
        if not cols.size:
            return
        if self.transposed is None:
            self.transposed = transpose(paths.entries, paths.price.size)
        self.part_rows(paths.far)  # finds duals only
        queue, outcome = Queue(cols), SPENT
        while outcome == SPENT and int(paths.spot[SCANS]) <= most:
            outcome = bidding.hold(
                self.transposed,  # IN
                self._sides()[1], queue.ring,  # OUT
                epsilon, self.spread, self.reach, self.number(0), True,  # IN
                paths.far, paths.low, 0, self.budget,  # IN
            )  # fmt: skip
            self._count(queue)
        is_done = paths.col_to_row < 0
        is_done[queue.waiting] = False
        paths.price[is_done] = 0

    def _count(self, *queues: Queue) -> None:
        """Count what the queues have read."""
        for queue in queues:
            self.paths.spot[SCANS] += queue.state[SCANS]
            queue.state[SCANS] = 0
        self.beat()

    # -- duals and slack pairs ---------------------------------------------------------------------

    def price_rows(self) -> None:
        """Set the duals of rows to their least reduced costs, because all pairs are tight."""
        paths = self.paths
        if paths.row_dual is None:
            paths.write_row_duals(self.row_dual)
        else:
            self.row_dual[:] = paths.row_dual

    def mark_none(self) -> None:
        """Take note that all pairs are tight, whatever has been before."""
        self.price_rows()
        for is_slack in (self.is_slack, self.is_slack_col):
            is_slack.fill(False)

    def count_slack_pairs(self) -> int:
        """Return how many pairs may not be tight: the repair would part them."""
        return int(np.count_nonzero(self.is_slack & (self.paths.row_to_col >= 0)))

    def part_slack_pairs(self, epsilon: Any) -> np.ndarray:
        """Part the pairs whose slack exceeds epsilon for a marked vertex; return their rows."""
        was_matched = self.paths.row_to_col >= 0
        if self.transposed is not None:
            self._drop_slack(self.transposed, self._sides()[1], epsilon)
        self.part_rows(epsilon)
        return np.flatnonzero(was_matched & (self.paths.row_to_col < 0)).astype(np.int32)

    def part_rows(self, epsilon: Any) -> None:
        """Part the pairs whose slack exceeds epsilon for a marked row."""
        self._drop_slack(self.paths.entries, self._sides()[0], epsilon)

    def part_all(self, epsilon: Any) -> None:
        """Part all pairs whose slack exceeds epsilon, whatever is marked."""
        self.is_slack.fill(True)
        self.part_rows(epsilon)

    # -- calls of kernels --------------------------------------------------------------------------

    def _hold(self, queues: list[Queue], epsilon: Any, few: int, budget: int, worker: int) -> bool:
        """Let the rows of the worker's queue bid; False if a price is below the floor."""
        paths, queue = self.paths, queues[worker]
        row_dual = self.row_dual[: self.nrows if epsilon > 0 else 0]  # else nobody reads it
        outcome = bidding.hold(
            paths.entries,  # IN
            (row_dual, paths.price, paths.row_to_col, paths.col_to_row, self.is_slack),  # OUT
            queue.ring,  # OUT
            epsilon, self.spread, self.reach, paths.limit, paths.leaves,  # IN
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
            epsilon, self.spread, self.reach, paths.far, self.floor, few, budget,  # IN
        )  # fmt: skip
        return bool(outcome != LOW)

    def _sides(self) -> tuple[Any, Any]:
        """Return what rows bid with, and what columns bid with: see `bidding`."""
        paths = self.paths
        rows = self.row_dual, paths.price, paths.row_to_col, paths.col_to_row, self.is_slack
        cols = paths.price, self.row_dual, paths.col_to_row, paths.row_to_col, self.is_slack_col
        return rows, cols

    def _drop_slack(self, entries: Any, side: Any, epsilon: Any) -> None:
        """Part the marked vertices of a side from mates whose slack exceeds epsilon."""
        paths = self.paths
        limit, leaves = paths.limit, paths.leaves
        if entries is self.transposed:
            limit, leaves = self.number(0), not paths.all_match
        shares = paths.shares(0, entries[0].size - 1)

        def drop(share: int) -> None:
            bidding.drop_slack(
                entries,  # IN
                side,  # OUT
                limit, leaves, paths.far, self.number(epsilon), self.rounding,  # IN
                *shares[share],  # IN
            )  # fmt: skip

        self.workers.deal(drop, len(shares))
        self.beat()
