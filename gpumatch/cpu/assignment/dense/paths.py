"""Augmenting paths in a matrix of costs, by the kernels of `searches.dense`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.contracts import Control, Costs, Entries
from gpumatch.cpu.searches import dense as dense_search
from gpumatch.cpu.searches.dense import LANES
from gpumatch.cpu.searches.paths import Paths
from gpumatch.cpu.searches.state import SCANS

__all__ = ["DensePaths"]

BIDS = 5
"""Scans in a round of bids for each unmatched row, if costs are dense.

With 1, 2, 5, 10 and 20, a uniform matrix of 1,000 rows and costs up to 10**6 takes 8,841, 8,506,
7,884, 7,850 and 8,306 scans in all. A matrix of products of two factors, where bids are in vain,
takes 2.6 % more scans with 5 than with 1, and 12 % more with 20.
"""
ROOM = 64
"""Dense prices and distances stay below this many times the largest cost, C.

Prices stay within 3 C of 0, because an unmatched column has a price within C, and no matched pair
costs its row more than that column would. So reduced costs are at most 4 C, and the sums on the way
to a distance are at most 10 C. The rest is margin.
"""


class DensePaths(Paths):
    """`Paths` in a matrix."""

    bids = BIDS
    entries: np.ndarray

    def __init__(self, entries: Entries, costs: Costs, *others: Any) -> None:
        super().__init__(entries, costs, *others)
        is_wide = self.price.dtype == np.int64
        self.values = np.require(self.entries, np.int64) if is_wide else self.entries
        number, ncols = self.price.dtype, self.price.size
        self.least = np.empty(LANES, number)
        self.dist = np.empty(ncols, number)
        self.pred = np.empty(ncols, np.int32)
        self.tree = np.empty(ncols, np.int32)
        self.reach = np.empty(ncols, number)

    @property
    def budget(self) -> int:
        return dense_search.BUDGET

    def _number(self, col_dual: np.ndarray, limit: float) -> Any:
        """int32 if it can hold some times the largest cost, because a vector holds more of them."""
        if self.entries.dtype != np.int32:
            return col_dual.dtype.type
        given = abs(col_dual).max(initial=0) if self.is_given else 0
        largest = ROOM * (max(self.costs.largest, abs(limit)) + given)
        return np.int32 if largest <= np.iinfo(np.int32).max else col_dual.dtype.type

    def part_slack_pairs(self, rounding: float) -> None:
        """Part the pairs that are not the cheapest of their rows.

        `rounding` is the share of the largest of their costs and prices by which one may miss that.
        """
        row_dual = np.empty(self.row_to_col.size, self.price.dtype)
        self.write_row_duals(row_dual)
        rows = np.flatnonzero(self.row_to_col >= 0)
        cols = self.row_to_col[rows]
        costs, price = self.costs.at(rows, cols), self.price[cols]
        largest = np.maximum(abs(costs), abs(price)).max(initial=0)
        is_slack = costs - price - row_dual[rows] > rounding * largest
        self.row_to_col[rows[is_slack]] = -1
        self.col_to_row[cols[is_slack]] = -1
        self.spot[SCANS] = self.row_to_col.size
        if not is_slack.any():
            self.row_dual = row_dual

    def _start(self, control: Control) -> bool:
        if self.costs.is_complete and self.costs.low == self.costs.high:
            return self._match_diagonal()
        return super()._start(control)

    def _match_diagonal(self) -> bool:
        """Match the diagonal: if all pairs cost the same, any choice is as good as another."""
        pairs = self.row_to_col.size
        if pairs and not (self.leaves and self.limit <= self.values[0, 0]):
            self.row_to_col[:] = self.col_to_row[:pairs] = np.arange(pairs)
        return True

    def _lower_to_minima(
        self, lowest: np.ndarray, nearest: np.ndarray, first: int, last: int
    ) -> None:
        dense_search.lower_to_minima(
            self.values,  # IN
            lowest, nearest,  # OUT
            first, last,  # IN
        )  # fmt: skip

    def _reduce_rows(self, unmatched: np.ndarray) -> bool:
        return dense_search.reduce_rows(
            self.values,  # IN
            self.price, self.row_to_col, self.col_to_row, unmatched, self.spot, self.least,  # OUT
            self.limit, self.leaves, self.far, self.bids * unmatched.size, self.budget,  # IN
        )  # fmt: skip

    def augment_some(self, unmatched: np.ndarray, budget: int) -> int:
        return dense_search.augment(
            self.values,  # IN
            (self.price, self.row_to_col, self.col_to_row),  # OUT
            unmatched,  # IN
            self.spot, self.mark, (self.dist, self.pred, self.least, self.tree, self.reach),  # OUT
            (self.limit, self.leaves, self.low, self.far), budget,  # IN
        )  # fmt: skip

    def _find_row_duals(self, row_dual: np.ndarray) -> None:
        self._find_duals_by(dense_search.row_duals, row_dual)

    def _find_fair_duals(self, row_dual: np.ndarray) -> None:
        self._find_duals_by(dense_search.fair_row_duals, row_dual)

    def _find_duals_by(self, kernel: Callable[..., None], row_dual: np.ndarray) -> None:
        for first, last in self.blocks():
            kernel(
                self.values, self.price,  # IN
                self.least,  # OUT
                self.far,  # IN
                row_dual,  # OUT
                first, last,  # IN
            )  # fmt: skip
