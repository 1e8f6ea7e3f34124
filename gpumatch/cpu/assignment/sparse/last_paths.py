"""Exact paths after the auction: they end with all rows and columns served, at exact duals.

Rows get their paths one by one. The first paths tell how much all of them read. If that is too much
and all rows and columns must be matched, exact joint searches (`joint_search`) match as many rows
as have paths in one forest. If they match few, a finer epsilon is better. If there is none, paths
and joint searches take turns: the next turn belongs to the way that has matched more rows for what
it has read. So all paths together read about twice as much as the better way.

In a large matrix whose columns must all be matched, the last paths grow from both ends
(`two_sided_search`). If columns may stay unmatched, those whose price is below 0 get paths in the
transposed matrix, once all rows are served.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from gpumatch.contracts import AssignmentTask, Stopped
from gpumatch.cpu.assignment.sparse.auction import Auction
from gpumatch.cpu.assignment.sparse.joint_search import JointSearch
from gpumatch.cpu.assignment.sparse.paths import SparsePaths, transpose
from gpumatch.cpu.assignment.sparse.tuning import Tuning
from gpumatch.cpu.assignment.sparse.two_sided_search import TwoSidedPaths
from gpumatch.cpu.searches.state import HEAD, NEXT, SCANS, SPENT, STUCK

__all__ = ["LastPaths"]

FINE = 2.0**-1000
"""The unit of floats in an exact search: greater lengths are not rounded to multiples of it."""


class LastPaths:
    """Paths that serve all rows, then all columns. All pairs are tight before and after.

    Parameters
    ----------
    task : AssignmentTask
        The problem, and its solution.
    paths : SparsePaths
        Entries, prices and pairs.
    auction : Auction
        What has transposed the entries, and has memory for the duals of rows.
    tuning : Tuning
        How much paths may read.
    beat
        What is called between two calls of kernels.
    """

    def __init__(
        self,
        task: AssignmentTask,
        paths: SparsePaths,
        auction: Auction,
        tuning: Tuning,
        beat: Callable[[], None],
    ) -> None:
        self.task, self.paths, self.auction = task, paths, auction
        self.tuning, self.control, self.beat = tuning, task.control, beat
        self.nnz = paths.costs.nnz
        is_small = self.nnz <= tuning.small
        self.step = min(max(int(tuning.step * self.nnz), tuning.small), paths.budget) + 1
        self.most = math.inf if is_small else tuning.watched
        self.unit = paths.price.dtype.type(1 if paths.price.dtype.kind == "i" else FINE)
        self.rows = np.empty(0, np.int32)
        self.is_stuck = False  # True once a row has no path
        self.has_duals = True  # True if the auction's duals of the rows are up to date
        self.single_rate = self.joint_rate = math.inf  # rows matched for each entry read

    @cached_property
    def search(self) -> JointSearch:
        """Exact joint searches."""
        bidders = self.auction.bidders
        return JointSearch(
            self.paths, bidders.row_dual, bidders.is_slack, self.tuning, is_exact=True
        )

    # -- rows --------------------------------------------------------------------------------------

    def serve_rows(self, *, is_watched: bool) -> bool:
        """Augment from all unmatched rows; False if it is watched, and a finer epsilon is better.

        Nothing else is done once a row has no path.
        """
        if not self.paths.match_tight(self.control):
            raise Stopped
        self.rows = self.paths.start_with_unmatched_rows()
        if not self.rows.size:
            self.paths.record("paths", self.rows, self.paths.matched, self.control)
        self._serve_singly(self.most)
        if self._are_many and self.paths.all_match:
            found = self.rows.size
            while self._are_many and found >= self.tuning.slow * self.rows.size:
                found = self._search_jointly()
            self._serve_singly(self.most)
        if self._are_many and is_watched:
            return False
        while self._are_many and self.paths.all_match:
            self._take_turn()
        self._serve_singly()
        if self.rows.size and not self.is_stuck:
            self._serve_from_both_ends()
        return True

    @property
    def _are_many(self) -> bool:
        """True if more rows are unmatched than get paths one by one in any case."""
        is_many = self._single_rows.size > self.tuning.few_paths
        return is_many and not self.auction.is_too_fine

    @property
    def _single_rows(self) -> np.ndarray:
        """The unmatched rows that get paths one by one, or none once a row has no path.

        If the last paths grow from both ends, these are all but the last rows.
        """
        tuning, rows = self.tuning, self.rows
        is_large = (
            self.nnz >= tuning.two_sided_entries and self.auction.bidders.transposed is not None
        )
        if self.is_stuck or (is_large and rows.size <= tuning.two_sided_all):
            return rows[:0]
        return rows[: -tuning.two_sided_rows] if is_large else rows

    def _serve_singly(self, readings: float = math.inf, most: float = math.inf) -> None:
        """Augment from one row after the other, but for those whose paths grow from both ends.

        It ends if all rows are expected to read all entries more than `readings` times, or once
        they have read them `most` times.
        """
        paths, outcome = self.paths, SPENT
        rows = self._single_rows
        paths.start_with_unmatched_rows()
        step = paths.budget if readings == most == math.inf else self.step
        is_cheap = rows.size > 0
        while outcome == SPENT and is_cheap:
            outcome = paths.augment_some(rows, step)
            self.beat()
            scans, served = int(paths.spot[SCANS]), int(paths.spot[NEXT])
            is_expected = scans * rows.size <= readings * self.nnz * (served + 1)
            is_cheap = is_expected and scans <= most * self.nnz
        if rows.size:
            served = int(paths.spot[NEXT])
            paths.leave_search()
            self.is_stuck = outcome == STUCK
            self.single_rate = served * paths.workers.threads / max(int(paths.spot[SCANS]), 1)
            paths.record("paths", self.rows, paths.matched, self.control)
            self.rows = self.rows[served:]
            self.has_duals = False

    def _search_jointly(self) -> int:
        """Match as many rows as one search can, and return how many: 0 if one has no path."""
        paths = self.paths
        paths.start_with_unmatched_rows()
        found = self.search.round(self.unit, self.beat)
        self.joint_rate = found / max(int(paths.spot[SCANS]), 1)
        self.is_stuck = not found
        paths.record("search", self.rows, paths.matched, self.control)
        self.rows = paths.start_with_unmatched_rows()
        self.has_duals = False
        return found

    def _take_turn(self) -> None:
        """Match rows in the way that has matched more of them for what it has read last."""
        if self.single_rate > self.joint_rate:
            self._serve_singly(most=1.0)
        else:
            self._search_jointly()

    def _serve_from_both_ends(self) -> None:
        """Augment from both ends until all rows are matched, or one has no path."""
        paths, row_dual = self.paths, self.auction.bidders.row_dual
        paths.start_with_unmatched_rows()
        if not self.has_duals:
            paths.write_row_duals(row_dual)
        both = TwoSidedPaths(
            (paths.entries, self.auction.bidders.transposed), (row_dual, paths.price),
            self.task.solution.mates, paths.far, paths.workers, self.tuning,
        )  # fmt: skip
        both.serve(self.control)
        paths.spot[SCANS] += both.scans
        paths.record("paths", self.rows, paths.matched, self.control)

    # -- columns -----------------------------------------------------------------------------------

    def serve_cols(self, *, is_watched: bool) -> bool:
        """Augment from the unmatched columns whose price is below 0, until there are none.

        False if it is watched, and columns had better bid.
        """
        paths, solution = self.paths, self.task.solution
        row_dual, col_to_row = solution.row_dual, solution.col_to_row
        if not paths.leaves:
            paths.price -= paths.price.max()
        roots = np.flatnonzero((col_to_row < 0) & (paths.price < 0)).astype(np.int32)
        if not roots.size:
            return True
        paths.write_row_duals(row_dual)
        entries, zero = self.auction.bidders.transposed, paths.price.dtype.type(0)
        if entries is None:
            entries = transpose(paths.entries, paths.price.size)
        mates = col_to_row, solution.row_to_col
        transposed = SparsePaths(entries, self.task.costs, *mates, row_dual, zero)
        transposed.spot[:] = 0
        transposed.spot[HEAD] = -1
        outcome, is_cheap, most = SPENT, True, self.most if is_watched else math.inf
        try:
            while outcome == SPENT and is_cheap:
                outcome = transposed.augment_some(roots, self.step)
                self.beat()
                scans, served = int(transposed.spot[SCANS]), int(transposed.spot[NEXT]) + 1
                is_cheap = scans * roots.size <= most * self.nnz * served
        finally:
            transposed.leave_search()
            transposed.record("paths", roots, transposed.matched, self.control)
            paths.scanned += transposed.scanned
        row_dual[:] = transposed.price
        transposed.write_row_duals(paths.price)
        if outcome == SPENT:
            return False
        paths.price[col_to_row < 0] = 0  # but for rounding
        return True
