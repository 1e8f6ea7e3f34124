"""What augmenting paths start from and end with, whether costs are dense or sparse.

`paths_in_dense_costs` and `paths_in_sparse_costs` have the kernels. `dense_paths` says how prices
and pairs are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpumatch.contracts import Control, Costs, Entries
from gpumatch.cpu.assignment.dense import search as dense_search
from gpumatch.cpu.assignment.search.state import HEAD, SCANS, SPENT, SPOTS
from gpumatch.numeric.arrays import count_matched
from gpumatch.running.kept_memory import kept_full

__all__ = ["Paths"]

ROUNDS = 2
"""Rounds of bids: as many as Jonker and Volgenant's."""
ADOPTIONS = 4
"""Times that given prices are repaired before they are given up: a few passes over the costs."""


class Paths(ABC):
    """The common part for dense and sparse costs; subclasses have the kernels."""

    bids: int  # scans in a round of bids, for each free row

    def __init__(
        self,
        entries: Entries,
        costs: Costs,
        row_to_col: np.ndarray,
        col_to_row: np.ndarray,
        col_dual: np.ndarray,
        limit: float | None,
    ) -> None:
        self.entries, self.costs = entries, costs
        self.row_to_col, self.col_to_row = row_to_col, col_to_row
        self.is_given = bool(col_dual.any() or (row_to_col >= 0).any())
        self.leaves = limit is not None
        number = self._number(col_dual, 0 if limit is None else limit)
        self.price = col_dual.astype(number, copy=False)  # mostly in place
        self.limit = number(0 if limit is None else limit)
        self.low, self.far = (
            (number(np.iinfo(number).min), number(np.iinfo(number).max))
            if self.price.dtype.kind == "i"
            else (number(-np.inf), number(np.inf))
        )
        self.all_match = not self.leaves and row_to_col.size == col_to_row.size
        self.minima: np.ndarray | None = None  # those of the start, while its prices stand
        self.room_for_minima: np.ndarray | None = None
        self.spot = np.zeros(SPOTS, np.int64)
        self.mark = np.zeros(2, number)

    @property
    @abstractmethod
    def budget(self) -> int:
        """Entries scanned between two returns to Python."""

    @property
    def matched(self) -> int:
        return count_matched(self.row_to_col)

    def begin(self, control: Control) -> bool:
        """Prices and pairs to begin from: those given, as far as they fit together, or new ones."""
        if self.is_given:
            self._adopt()
            return True
        return self._start(control)

    def bid(self, control: Control) -> bool:
        """Rounds of bids by the rows that are free."""
        for _ in range(ROUNDS):
            free = self.start_with_free_rows()
            if not free.size:
                break
            done = False
            while not done:
                done = self._reduce_rows(free)
                matched = self.matched
                if control.tick(matched):
                    return False
            self.record("bids", free, matched, control)
        return True

    def augment(self, control: Control) -> bool:
        """Serve all rows that are free, up to the first that has no path."""
        return self.serve(self.start_with_free_rows(), control)

    def serve(self, free: np.ndarray, control: Control) -> bool:
        """Serve these free rows, up to the first that has no path; False when stopped."""
        outcome, matched = SPENT, self.row_to_col.size - free.size
        while outcome == SPENT and free.size:
            outcome = self.augment_some(free, self.budget)
            matched = self.matched
            if control.tick(matched) and outcome == SPENT:
                return False
        self.record("paths", free, matched, control)
        return True

    def record(self, step: str, free: np.ndarray, matched: int, control: Control) -> None:
        found = matched - (self.row_to_col.size - free.size)
        control.phase(found=found, matched=matched, step=step, scans=int(self.spot[SCANS]))

    def write_duals(self, row_dual: np.ndarray, col_dual: np.ndarray) -> None:
        """Feasible duals at these prices, whatever these are; none of a column is above 0."""
        if not self.all_match:
            np.minimum(self.price, 0, out=self.price)
        elif self.price.size:
            self.lower_prices()
        col_dual[:] = self.price
        if self.minima is None:
            self.write_minima(row_dual)
        else:
            row_dual[:] = self.minima

    def lower_prices(self) -> None:
        """Move all prices by as much, so that the highest is 0."""
        top = self.price.max()
        minima, self.minima = self.minima, None  # a Ctrl-C may come in between
        self.price -= top
        if minima is not None:
            minima += top
        self.minima = minima

    def write_minima(self, minima: np.ndarray) -> None:
        """The least that a column, or taking none, costs each row at these prices."""
        self._row_minima(minima)
        if self.leaves:
            np.minimum(minima, self.limit, out=minima)

    def _number(self, col_dual: np.ndarray, limit: float) -> Any:
        """The type of prices."""
        return col_dual.dtype.type

    def start_with_free_rows(self) -> np.ndarray:
        """The rows that are to be served, whatever that does to prices."""
        self.spot[:] = 0
        self.spot[HEAD] = -1
        return np.flatnonzero(self.row_to_col < 0).astype(np.int32)

    def _adopt(self) -> None:
        """Keep the pairs that are cheapest for their rows, and the prices that fit those pairs."""
        if not self.all_match:
            np.minimum(self.price, 0, out=self.price)
        minima = np.empty(self.row_to_col.size, self.price.dtype)
        for _ in range(ADOPTIONS):
            if not self.all_match:
                self.price[self.col_to_row < 0] = 0
            self.write_minima(minima)
            rows = np.flatnonzero(self.row_to_col >= 0)
            cols = self.row_to_col[rows]
            dear = self.costs.at(rows, cols) - self.price[cols] > minima[rows]
            if not dear.any():
                return
            self.row_to_col[rows[dear]] = -1
            self.col_to_row[cols[dear]] = -1
        self.row_to_col[:] = self.col_to_row[:] = -1
        self.price[:] = 0

    def _start(self, control: Control) -> bool:
        return self._reduce_columns(control) if self.all_match else True

    def _reduce_columns(self, control: Control) -> bool:
        """Price the columns at their least costs, and give them to rows that have these costs."""
        nearest = np.zeros(self.price.size, np.int32)
        lowest = kept_full(self.price.size, self.far, self.price.dtype)
        for first, last in self._blocks():
            self._lower_to_minima(lowest, nearest, first, last)
            if control.tick(0):
                return False
        if (lowest < self.far).all():
            self.price[:] = lowest
            self._take_cheapest(nearest)
        return True

    def _take_cheapest(self, nearest: np.ndarray) -> None:
        """Match rows to columns whose least costs are theirs."""
        dense_search.take_nearest(
            nearest,  # IN
            self.row_to_col, self.col_to_row,  # OUT
        )  # fmt: skip

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Ranges of rows with about the budget's entries."""
        nrows = self.row_to_col.size
        step = max(1, self.budget * nrows // max(self.costs.nnz, 1))
        for first in range(0, nrows, step):
            yield first, min(first + step, nrows)

    @abstractmethod
    def _lower_to_minima(
        self, lowest: np.ndarray, nearest: np.ndarray, first: int, last: int
    ) -> None:
        """Lower the columns' least costs to those of rows first to last, the ``nearest`` ones."""

    @abstractmethod
    def _reduce_rows(self, free: np.ndarray) -> bool:
        """Let the free rows bid; False when the budget ends before they have."""

    @abstractmethod
    def augment_some(self, free: np.ndarray, budget: int) -> int:
        """Augment along shortest paths from the free rows; why it ended (SPENT: the budget)."""

    @abstractmethod
    def _row_minima(self, minima: np.ndarray) -> None:
        """The least reduced cost of each row."""
