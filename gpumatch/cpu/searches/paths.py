"""What augmenting paths start from and end with, whether costs are dense or sparse.

The files `paths.py` and `candidate_paths.py` of `cpu/assignment` call the kernels. `searches.dense`
says what holds of prices and pairs. The price of a column is its dual. The dual of a row is its
least reduced cost, or the limit if that is less.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpumatch.contracts import Control, Costs, Entries
from gpumatch.cpu.numba_tools.compiled import kernel, vector_kernel
from gpumatch.cpu.numba_tools.error_free import difference_below
from gpumatch.cpu.searches.state import HEAD, KEPT, NEXT, SCANS, SPENT, SPOTS
from gpumatch.numeric.arrays import count_matched
from gpumatch.running.kept_memory import kept_full

__all__ = ["Paths", "bid", "take_nearest", "turn", "turn_from"]

ROUNDS = 2
"""Rounds of bids, as many as those of Jonker and Volgenant."""
ADOPTIONS = 4
"""Passes over the costs that may repair given prices before these are given up."""


class Paths(ABC):
    """The part that dense and sparse costs share; subclasses call the kernels."""

    bids: int  # scans in a round of bids, for each unmatched row
    unit = 1  # entries of a scan that is told

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
        self.row_dual: np.ndarray | None = None  # of the start, while its prices stand
        self.row_dual_memory: np.ndarray | None = None  # where the start may write these
        self.spot = np.zeros(SPOTS, np.int64)
        self.scanned = 0  # entries read by the phases that were recorded
        self.told = 0  # those of them that `spot` counts yet
        self.mark = np.zeros(2, number)

    @property
    @abstractmethod
    def budget(self) -> int:
        """Entries read between two returns to Python."""

    @property
    def matched(self) -> int:
        return count_matched(self.row_to_col)

    def begin(self, control: Control) -> bool:
        """Adopt given prices and pairs as far as they fit, or make new ones; False if stopped."""
        if self.is_given:
            self._adopt()
            return True
        return self._start(control)

    def bid(self, control: Control) -> bool:
        """Let the unmatched rows bid, in a few rounds; False if stopped."""
        for _ in range(ROUNDS):
            unmatched = self.start_with_unmatched_rows()
            if not unmatched.size:
                break
            done = False
            while not done:
                done = self._reduce_rows(unmatched)
                matched = self.matched
                if control.tick(matched):
                    return False
            self.record("bids", unmatched, matched, control)
        return True

    def augment(self, control: Control) -> bool:
        """Serve all unmatched rows, up to the first that has no path; False if stopped."""
        return self.serve(self.start_with_unmatched_rows(), control)

    def serve(self, unmatched: np.ndarray, control: Control) -> bool:
        """Serve these unmatched rows, up to the first that has no path; False if stopped."""
        outcome, matched = SPENT, self.row_to_col.size - unmatched.size
        while outcome == SPENT and unmatched.size:
            outcome = self.augment_some(unmatched, self.budget)
            matched = self.matched
            if control.tick(matched) and outcome == SPENT:
                return False
        self.record("paths", unmatched, matched, control)
        return True

    def record(self, step: str, unmatched: np.ndarray, matched: int, control: Control) -> None:
        """Tell the control of a phase that has begun with these unmatched rows."""
        found = matched - (self.row_to_col.size - unmatched.size)
        scans = int(self.spot[SCANS]) * self.unit
        self.scanned += scans
        self.told = int(self.spot[SCANS])
        control.phase(found=found, matched=matched, step=step, scans=scans)

    def write_duals(self, row_dual: np.ndarray, col_dual: np.ndarray) -> None:
        """Write feasible duals at these prices, whatever these are; no column has one above 0.

        They are fair, as `gpumatch.contracts` states.
        """
        if not self.all_match:
            np.minimum(self.price, 0, out=self.price)
        if row_dual.dtype.kind == "f":
            self._write_fair_duals(row_dual)
        else:
            if self.all_match and self.price.size:
                self.lower_prices()
            if self.row_dual is None:
                self.write_row_duals(row_dual)
            else:
                row_dual[:] = self.row_dual
        col_dual[:] = self.price

    def _write_fair_duals(self, row_dual: np.ndarray) -> None:
        """Write the duals of the rows, rounded down, and lower the prices if all must be matched.

        The start may have duals of the rows, rounded to nearest. Those of 0 are exact.
        """
        is_known, top = self.row_dual is not None, 0.0
        if is_known:
            row_dual[:] = self.row_dual
        else:
            row_dual.fill(self.far)
        if self.all_match and self.price.size:
            top = self.price.max()
            if not is_known:
                self.price -= top
        self._find_fair_duals(row_dual)
        if is_known and top:
            self.row_dual = None  # a Ctrl-C may come in between
            lower_all(self.price, top)
            lower_all(row_dual, -top)
        if self.leaves:
            np.minimum(row_dual, self.limit, out=row_dual)

    def lower_prices(self) -> None:
        """Move all prices by one number, so that the highest is 0."""
        top = self.price.max()
        row_dual, self.row_dual = self.row_dual, None  # a Ctrl-C may come in between
        self.price -= top
        if row_dual is not None:
            row_dual += top
        self.row_dual = row_dual

    def write_row_duals(self, row_dual: np.ndarray) -> None:
        """Write the dual of each row at these prices."""
        self._find_row_duals(row_dual)
        if self.leaves:
            np.minimum(row_dual, self.limit, out=row_dual)

    def _number(self, col_dual: np.ndarray, limit: float) -> Any:
        """Return the type of prices."""
        return col_dual.dtype.type

    def start_with_unmatched_rows(self) -> np.ndarray:
        """Reset the state of searches, and return the unmatched rows."""
        self.spot[:] = self.told = 0
        self.spot[HEAD] = -1
        return np.flatnonzero(self.row_to_col < 0).astype(np.int32)

    def _adopt(self) -> None:
        """Keep the pairs that are cheapest for their rows, and the prices that fit those pairs."""
        if not self.all_match:
            np.minimum(self.price, 0, out=self.price)
        row_dual = np.empty(self.row_to_col.size, self.price.dtype)
        for _ in range(ADOPTIONS):
            if not self.all_match:
                self.price[self.col_to_row < 0] = 0
            self.write_row_duals(row_dual)
            rows = np.flatnonzero(self.row_to_col >= 0)
            cols = self.row_to_col[rows]
            dear = self.costs.at(rows, cols) - self.price[cols] > row_dual[rows]
            if not dear.any():
                return
            self.row_to_col[rows[dear]] = -1
            self.col_to_row[cols[dear]] = -1
        self.row_to_col[:] = self.col_to_row[:] = -1
        self.price[:] = 0

    def _start(self, control: Control) -> bool:
        return self._reduce_columns(control) if self.all_match else True

    def _reduce_columns(self, control: Control) -> bool:
        """Price columns at their least costs, and match rows that have these; False if stopped."""
        nearest = np.zeros(self.price.size, np.int32)
        lowest = kept_full(self.price.size, self.far, self.price.dtype)
        for first, last in self.blocks():
            self._lower_to_minima(lowest, nearest, first, last)
            if control.tick(0):
                return False
        if (lowest < self.far).all():
            self.price[:] = lowest
            self._take_cheapest(nearest)
        return True

    def _take_cheapest(self, nearest: np.ndarray) -> None:
        """Match rows to columns whose least costs they have."""
        take_nearest(
            nearest,  # IN
            self.row_to_col, self.col_to_row,  # OUT
        )  # fmt: skip

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows that have about as many entries as the budget."""
        nrows = self.row_to_col.size
        step = max(1, self.budget * nrows // max(self.costs.nnz, 1))
        for first in range(0, nrows, step):
            yield first, min(first + step, nrows)

    @abstractmethod
    def _lower_to_minima(
        self, lowest: np.ndarray, nearest: np.ndarray, first: int, last: int
    ) -> None:
        """Lower the least costs of columns to those in these rows; note the ``nearest`` rows."""

    @abstractmethod
    def _reduce_rows(self, unmatched: np.ndarray) -> bool:
        """Let unmatched rows bid; False if the budget ends before they have."""

    @abstractmethod
    def augment_some(self, unmatched: np.ndarray, budget: int) -> int:
        """Augment along shortest paths from these rows; return why it ended."""

    @abstractmethod
    def _find_row_duals(self, row_dual: np.ndarray) -> None:
        """Write the least reduced cost of each row."""

    @abstractmethod
    def _find_fair_duals(self, row_dual: np.ndarray) -> None:
        """Write the same for floats, rounded down. Rows whose dual is 0 may keep it."""


# -- kernels that dense and sparse searches share --------------------------------------------------


@kernel
def lower_all(values, number):
    """Subtract a number from floats, rounded down."""
    for k in range(values.size):
        values[k] = difference_below(values[k], number)


@vector_kernel
def take_nearest(nearest, row_to_col, col_to_row):
    """Match each row to the first column whose nearest row it is."""
    for col in range(nearest.size):
        row = nearest[col]
        if row_to_col[row] < 0:
            row_to_col[row] = col
            col_to_row[col] = row


@vector_kernel
def bid(
    row, one, col, two, other, price, row_to_col, col_to_row, unmatched, spot, limit, leaves, far
):
    """Give ``row`` its cheapest column, and lower its price until the second is as cheap.

    The row that loses the column bids next. A row that loses it on a tie waits in unmatched[:KEPT].
    ``row`` waits there too if the price is too coarse to fall, or if there is no second column.
    """
    if leaves and limit <= one:
        return
    if leaves and limit < two:
        two, other = limit, -1
    loser = col_to_row[col] if col >= 0 else row
    lowered = price[col] - (two - one) if two < far else price[col]
    falls = lowered < price[col]
    if falls:
        price[col] = lowered
    elif loser >= 0 and (one < two or other < 0):
        unmatched[spot[KEPT]] = row
        spot[KEPT] += 1
        return
    elif loser >= 0:
        col = other
        loser = col_to_row[col]
    row_to_col[row] = col
    col_to_row[col] = row
    if loser < 0:
        return
    row_to_col[loser] = -1
    if falls:
        spot[NEXT] -= 1
        unmatched[spot[NEXT]] = loser
    else:
        unmatched[spot[KEPT]] = loser
        spot[KEPT] += 1


@vector_kernel
def turn(root, col, row, pred, row_to_col, col_to_row):
    """Flip the path from ``root``, whose last step takes ``row`` from its column to ``col``.

    If ``col`` is -1, the row takes no column.
    """
    while True:
        previous = row_to_col[row]
        row_to_col[row] = col
        if col >= 0:
            col_to_row[col] = row
        if row == root:
            return
        col = previous
        row = pred[col]


@vector_kernel
def turn_from(col, pred, row_to_col, col_to_row):
    """Flip the path that ends in ``col``, back to the unmatched row in which it begins."""
    while col >= 0:
        row = pred[col]
        previous = row_to_col[row]
        row_to_col[row] = col
        col_to_row[col] = row
        col = previous
