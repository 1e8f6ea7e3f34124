"""Paths by whole lines that an auction has replaced, and that go on if it takes too long.

What a trial of paths has read tells what the others will read, but not what an auction would. Costs
with ties, and clusters, can let its rows outbid each other for long. So the engine keeps the prices
and pairs of the trial. Whenever the auction has taken as long as the paths seem to need in all,
these go on, until they have ended or seem to need longer than that. So the engine takes about twice
the time of the better of the two at most.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np

from gpumatch.contracts import Control
from gpumatch.cpu.assignment.dense.paths import DensePaths
from gpumatch.cpu.searches.state import NEXT, SCANS, SPENT

__all__ = ["Rival"]

LONGER = 1.5
"""How many times as long the paths ahead are as the last ones, which were longer than the first."""


class Rival:
    """The paths of the last trial by whole lines; none before `keep`.

    Attributes
    ----------
    paths : DensePaths or None
        Pairs and prices of their own.
    """

    def __init__(self) -> None:
        self.paths: DensePaths | None = None
        self._free = np.empty(0, np.int32)
        self._read = self._ahead = 0.0
        self._half = self._mark = 0, 0  # read and served at some time

    def keep(self, paths: DensePaths, ahead: float) -> None:
        """Take paths that seem to read so many lines yet; they must not search on themselves."""
        self._read, self._ahead = 0.0, LONGER * ahead * paths.price.size
        self.paths = kept = copy(paths)
        kept.price = paths.price.copy()
        kept.row_to_col, kept.col_to_row = paths.row_to_col.copy(), paths.col_to_row.copy()
        kept.spot, kept.mark, kept.unit = paths.spot.copy(), paths.mark.copy(), paths.price.size
        self._free = kept.start_with_unmatched_rows()

    def goes_on(self, allowed: float) -> bool:
        """True if the paths seem to read no more than so many entries in all."""
        return self.paths is not None and self._read + self._ahead <= allowed

    def wins(self, allowed: float, step: int, control: Control, beat: Callable[[], None]) -> bool:
        """Augment for so many lines at a time, while `goes_on`; True if the paths have ended.

        All rows are matched then, or one of them has no path.
        """
        outcome, paths = SPENT, self.paths
        while paths is not None and outcome == SPENT and self.goes_on(allowed):
            outcome = paths.augment_some(self._free, step)
            beat()
            self._judge(int(paths.spot[SCANS]) * paths.price.size, int(paths.spot[NEXT]))
        if paths is None or outcome == SPENT:
            return False
        paths.record("paths", self._free, paths.matched, control)
        return True

    def _judge(self, read: int, served: int) -> None:
        """Judge what is ahead by all paths, and by those since half as many were served.

        The last paths are longer than the first.
        """
        if served >= 2 * self._mark[1]:
            self._half, self._mark = self._mark, (read, served)
        rates = (read / (served + 1), (read - self._half[0]) / (served - self._half[1] + 1))
        self._read, self._ahead = read, LONGER * max(rates) * (self._free.size - served)
