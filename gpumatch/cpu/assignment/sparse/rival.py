"""Shortest augmenting paths that take turns with an auction that reads much.

Nothing tells in advance how long an auction takes. Costs with ties, clusters, and costs that differ
by many orders of magnitude can let its rows outbid each other through phase after phase. Paths from
the columns' least costs need no epsilon, and the first of them tell about how much all will read.
So once the auction has read all entries some times, these paths begin, with prices and pairs of
their own. A turn ends as soon as they seem to read more than half of what the auction has, and the
next one comes when that has read half as much again. So the paths cost a third of all readings if
the auction is the better way, and both together read a few times as much as the paths if these are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpumatch.contracts import Control, Stopped
from gpumatch.cpu.assignment.search.state import FOUND, NEXT, SCANS, SPENT
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
        self.told = 0, 0  # entries read and rows served, as the control has heard

    @property
    def has_won(self) -> bool:
        return self.outcome == FOUND

    def wins(self) -> bool:
        """Take a turn if one is due; True if that, or one before, has matched all rows."""
        reads = self.leader.scanned / max(self.leader.costs.nnz, 1)
        if self.outcome == SPENT and reads >= self.due:
            self.due = 1.5 * reads
            self._augment(reads / 2)
        return self.has_won

    def _augment(self, allowed: float) -> None:
        """Augment until the paths have read all entries so often, or seem hopeless."""
        paths = self._begin() if self.paths is None else self.paths
        rows, nnz, tuning = self.rows, paths.costs.nnz, self.tuning
        step = max(int(tuning.step * nnz), tuning.small) + 1
        outcome = SPENT if rows.size else FOUND
        while outcome == SPENT and int(paths.spot[SCANS]) <= allowed * nnz:
            if paths.expected_readings(rows.size, tuning.growth) > tuning.hopeless * allowed:
                break
            outcome = paths.augment_some(rows, step)
            self.beat()
        self.outcome = outcome
        scans, served = int(paths.spot[SCANS]), int(paths.spot[NEXT])
        self.control.phase(
            found=served - self.told[1], matched=paths.matched, step="rival",
            scans=scans - self.told[0],
        )  # fmt: skip
        self.told = scans, served

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
