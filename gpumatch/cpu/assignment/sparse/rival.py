"""Shortest augmenting paths that take turns with an auction that reads much.

Nothing tells in advance how long an auction takes. Costs with ties, clusters, and costs that differ
by many orders of magnitude can let its rows outbid each other through phase after phase. Paths from
the columns' least costs need no epsilon, and the first of them tell about how much all will read.
So once the auction has read all entries some times, these paths begin, with prices and pairs of
their own. A turn ends as soon as they seem to read more than the auction has, and the next one
comes when that has read twice as much. So both read a few times as much as the better way, at most.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpumatch.contracts import Control, Stopped
from gpumatch.cpu.assignment.search.state import FOUND, SPENT
from gpumatch.cpu.assignment.sparse.paths import SparsePaths
from gpumatch.cpu.assignment.sparse.tuning import Tuning

__all__ = ["Rival"]


class Rival:
    """The paths, which begin with the first turn.

    Parameters
    ----------
    leader : SparsePaths
        The entries, prices and pairs of the auction.
    tuning : Tuning
        When the first turn is due.
    control, beat
        What hears of each turn, and what it is told with between two calls of kernels.

    Attributes
    ----------
    has_won : bool
        True once all rows are matched that can be.
    """

    def __init__(
        self, leader: SparsePaths, tuning: Tuning, control: Control, beat: Callable[[], None]
    ) -> None:
        self.leader, self.tuning, self.control, self.beat = leader, tuning, control, beat
        self.paths: SparsePaths | None = None
        self.rows = np.empty(0, np.int32)
        self.due, self.outcome = float(tuning.rival_reads), SPENT

    @property
    def has_won(self) -> bool:
        return self.outcome == FOUND

    def wins(self) -> bool:
        """Take a turn if one is due; True if that, or one before, has matched all rows."""
        reads = self.leader.scanned / max(self.leader.costs.nnz, 1)
        if self.outcome == SPENT and reads >= self.due:
            self.due = 2 * reads
            self._augment(reads)
        return self.has_won

    def _augment(self, allowed: float) -> None:
        """Augment while all paths seem to read the entries no more often. Raises Stopped."""
        paths = self._begin() if self.paths is None else self.paths
        rows, step = self.rows, max(int(self.tuning.step * paths.costs.nnz), self.tuning.small) + 1
        outcome = SPENT if rows.size else FOUND
        while outcome == SPENT and self._expected(paths) <= allowed:
            outcome = paths.augment_some(rows, step)
            self.beat()
        self.outcome = outcome
        paths.record("rival", rows, paths.matched, self.control)

    def _expected(self, paths: SparsePaths) -> float:
        return paths.expected_readings(self.rows.size, self.tuning.growth)

    def _begin(self) -> SparsePaths:
        """Start from the columns' least costs, and let rows bid. Raises Stopped."""
        leader = self.leader
        mates = np.full_like(leader.row_to_col, -1), np.full_like(leader.col_to_row, -1)
        limit = leader.limit if leader.leaves else None
        self.paths = paths = SparsePaths(
            leader.entries, leader.costs, *mates, np.zeros_like(leader.price), limit
        )
        if not (paths.begin(self.control) and paths.bid(self.control)):
            raise Stopped
        self.rows = paths.start_with_unmatched_rows()
        return paths

    def hand_over(self) -> None:
        """Put the prices and pairs in the place of the auction's, if the paths have won."""
        if not self.has_won or self.paths is None:
            return
        leader, paths = self.leader, self.paths
        leader.price[:] = paths.price
        leader.row_to_col[:], leader.col_to_row[:] = paths.row_to_col, paths.col_to_row
        leader.row_dual = None
