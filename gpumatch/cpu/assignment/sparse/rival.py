"""Shortest augmenting paths that take turns with an auction that reads much.

Nothing tells in advance how long an auction takes. Costs with ties, clusters, and costs that differ
by many orders of magnitude can let its rows outbid each other through phase after phase. Paths from
the pairs and prices before the auction need no epsilon. So once the auction has read all entries a
few times, paths begin, with prices and pairs of their own. Each side tells what it expects to read
yet:

- The auction knows how fast the waiting rows of its first phase get fewer (`auction`). The phases
  that follow mostly read half as much. It is taken to read at least half as much again as it has,
  and as much again at most, and after a price war.
- Searches get longer as fewer columns are unmatched: at random, the search from the last of k rows
  reads a k-th of all that it can reach, so that the readings grow as the logarithm of the unmatched
  rows falls. On 228 square problems of `bench adversary` they grow as the power 1.3 of that. After
  one reading, half of them expect 0.7 to 2.9 times what they will read in all.

Paths begin when three quarters of what the auction expects are four readings. Paths go on while
they expect to read three quarters of what the auction does, at most. An entry
takes them twice the time.

Where whole groups of rows want columns far away, the first paths of each group read all of the
group, and the others are short. So once paths have been long, what they expect means nothing, and
they read as much as the auction does. Other paths may read a 64th of that, to learn what to expect.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gpumatch.contracts import Control
from gpumatch.cpu.assignment.sparse.paths import SparsePaths
from gpumatch.cpu.assignment.sparse.tuning import Tuning
from gpumatch.cpu.searches.state import FOUND, NEXT, SCANS, SPENT, STUCK

__all__ = ["Rival", "Won"]


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
        True once paths have read so much for each row that what they expect means nothing.
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
        self.told = 0, 0

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
        own, most = paths.readings, tuning.promising * ahead
        if not own:
            return most >= tuning.worthwhile
        self.are_long |= int(paths.spot[NEXT]) <= tuning.long_paths * own
        share = 1 if self.are_long else tuning.probed
        return own <= theirs * (tuning.boldest if self._ahead(paths) <= most else share)

    def _ahead(self, paths: SparsePaths) -> float:
        """The readings that paths expect to need yet."""
        nrows, ncols = paths.row_to_col.size, paths.price.size
        spare = 1 + ncols - nrows + (nrows if paths.leaves else 0)
        rows = self.rows.size
        left = rows - max(int(paths.spot[NEXT]), 0.5)
        times = math.log((rows + spare) / spare) / math.log((rows + spare) / (left + spare))
        return paths.readings * (times**self.tuning.growth - 1)

    def hand_over(self) -> None:
        """Put the prices and pairs in the place of the auction's; tell what that has read."""
        leader, paths = self.leader, self.paths
        assert paths is not None
        unmatched = np.flatnonzero(leader.row_to_col < 0)
        leader.record("given up", unmatched, leader.matched, self.control)
        leader.price[:] = paths.price
        leader.row_to_col[:], leader.col_to_row[:] = paths.row_to_col, paths.col_to_row
        leader.row_dual = None
