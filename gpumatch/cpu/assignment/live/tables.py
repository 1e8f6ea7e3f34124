"""A live assignment in a dense table: its arrays, and their growth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpumatch.cpu.assignment.live.changes import (
    BY_COVER,
    compiled,
    remove_line,
    report,
    serve,
    set_cost,
    set_line,
)
from gpumatch.cpu.assignment.live.state import (
    BOUND,
    COUNTS,
    DUAL,
    FREE,
    MARKS,
    MATE,
    NUMBERS,
    PARTNER,
    SCALARS,
    SHOWN,
    SLOTS,
    TOP,
    USED,
)

__all__ = ["Report", "Table"]

LEAST = 16
"""Slots of a side at least."""
BUDGET = 2**27
"""Entries that a call reads before it returns to Python: some tenths of a second."""


class Report(NamedTuple):
    """What is known of the assignment now; arrays go by the slots in use, in their order.

    Attributes
    ----------
    mates : int32 array
        Of the rows, then of the columns.
    numbers : float64 array, or int64 if costs are integers
        The duals of the rows (less the limit) and of the columns, and what the rows' pairs cost.
    size : int
        The number of pairs.
    objective, gap : int or float
        The gap is -1 if it is too large for a proof.
    """

    mates: np.ndarray
    numbers: np.ndarray
    size: int
    objective: float
    gap: float


class Table:
    """Costs, pairs and duals. Slots go up: a new row or column gets the next one.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns that there is to be room for.
    sign : float
        -1 if costs are to be maximised.
    mode : int
        Of `changes`.
    limit : float
        What a row that may be unmatched costs.
    is_exact, is_full : bool
        Whether costs are integers, and whether the whole smaller side is to be matched.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        *,
        sign: float,
        mode: int,
        limit: float,
        most: float,
        is_exact: bool,
        is_full: bool,
    ) -> None:
        self.sign, self.mode, self.most = sign, mode, most
        self.is_exact, self.is_full = is_exact, is_full
        rows, cols = (max(LEAST, size) for size in shape)
        self._hold(
            [np.full((rows, cols), np.inf), np.full((cols, rows), np.inf)],
            [np.zeros((NUMBERS, size)) for size in (rows, cols)],
            [_marks(size) for size in (rows, cols)],
        )
        self.numbers[0][SCALARS, TOP] = limit

    def _hold(self, costs: list[Any], numbers: list[Any], marks: list[Any]) -> None:
        self.costs, self.numbers, self.marks = costs, numbers, marks
        # The arrays as kernels for rows, and for columns, take them.
        self._state = (
            (*costs, *numbers, *marks),
            (*costs[::-1], *numbers[::-1], *marks[::-1]),
        )

    # -- changes -----------------------------------------------------------------------------------

    def set_line(self, side: int, slot: int, values: np.ndarray, largest: float) -> int:
        """Give a row (side 0) or column new costs; return if they fit, as `changes` says."""
        return _set_line(
            *self._state[side], slot, values, self.sign, largest, self.most, self.mode
        )  # fmt: skip

    def add_line(self, side: int, values: np.ndarray, largest: float) -> int:
        """Put a row or column into the next slot; return if its costs fit."""
        slot = int(self.marks[side][COUNTS, SLOTS])
        if slot == self.costs[side].shape[0]:
            self._grow(side)
        return self.set_line(side, slot, values, largest)

    def remove_line(self, side: int, slot: int) -> None:
        """Remove a row or column."""
        _remove_line(*self._state[side], slot)

    def set_cost(self, row: int, col: int, cost: float, largest: float) -> int:
        """Give a pair another cost; return if it fits."""
        return _set_cost(
            *self._state[0], row, col, cost, self.sign, largest, self.most, self.mode
        )  # fmt: skip

    def _grow(self, side: int) -> None:
        """Make room for twice as many rows or columns."""
        shape = list(self.costs[0].shape)
        shape[side] *= 2
        costs = [np.full(shape, np.inf), np.full(shape[::-1], np.inf)]
        numbers = [np.zeros((NUMBERS, size)) for size in shape]
        marks = [_marks(size) for size in shape]
        for new, old in zip(costs + numbers + marks, self.costs + self.numbers + self.marks):
            new[: old.shape[0], : old.shape[1]] = old
        self._hold(costs, numbers, marks)

    def compact(self, side: int) -> None:
        """Give the rows or columns in use the first slots, in their order."""
        kept = self.marks[side][USED].nonzero()[0]
        count, place = kept.size, np.full(self.marks[side].shape[1], -1, np.int32)
        place[kept] = np.arange(count, dtype=np.int32)
        numbers, marks, others = self.numbers[side], self.marks[side], self.marks[1 - side]
        self.costs[side][:count] = self.costs[side][kept]
        self.costs[side][count:] = np.inf
        self.costs[1 - side][:, :count] = self.costs[1 - side][:, kept]
        self.costs[1 - side][:, count:] = np.inf
        for line in (DUAL, SHOWN):
            numbers[line, :count] = numbers[line, kept]
        for line in (MATE, FREE, USED, PARTNER):
            marks[line, :count] = marks[line, kept]
        marks[USED, count:] = 0
        is_alone = marks[MATE, :count] < 0
        marks[MATE, :count][is_alone] = -1 - np.arange(count, dtype=np.int32)[is_alone]
        marks[COUNTS, SLOTS] = count
        for line in (MATE, PARTNER):
            is_named = others[line] >= 0
            others[line][is_named] = place[others[line][is_named]]

    # -- results -----------------------------------------------------------------------------------

    def serve(self) -> None:
        """Serve all that wait."""
        while _serve(*self._state[0], self.mode, self.is_exact, BUDGET):
            pass

    def report(self, rows: int, cols: int) -> Report:
        """What the assignment of so many rows and columns is, if nothing waits."""
        mates, numbers = np.empty(rows + cols, np.int32), np.empty(2 * rows + cols)
        totals = np.empty(4)
        _report(
            *self._state[0], self.sign, self.mode, self.is_exact, self.is_full,
            mates, numbers, totals,  # OUT
        )  # fmt: skip
        size, total, rest, gap = totals.tolist()
        if self.is_exact:
            return Report(
                mates, numbers.view(np.int64), int(size), int(total) + int(rest), int(gap)
            )
        return Report(mates, numbers, int(size), total + rest, gap)

    def violator(self, rows: int, cols: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows and columns of a Hall violator, if the smaller side is not wholly matched."""
        free = [marks[FREE][marks[USED] == 1] == 1 for marks in self.marks]
        if rows <= cols:
            return free[0].nonzero()[0], (~free[1]).nonzero()[0]
        return (~free[0]).nonzero()[0], free[1].nonzero()[0]

    def values(self) -> np.ndarray:
        """The costs as they were given, of the slots in use; infinities forbid."""
        rows, cols = (marks[USED].nonzero()[0] for marks in self.marks)
        values = self.costs[0][np.ix_(rows, cols)]
        return np.negative(values, out=values) if self.sign < 0 else values

    # -- states ------------------------------------------------------------------------------------

    def load(self, costs: np.ndarray, mates: Any, duals: Any, free: Any) -> None:
        """Hold these costs, to be minimised, of the slots in use; their pairs and fair duals."""
        slots = [marks[USED].nonzero()[0] for marks in self.marks]
        self.costs[0][np.ix_(*slots)] = costs
        self.costs[1][np.ix_(*slots[::-1])] = costs.T
        for side, (numbers, marks) in enumerate(zip(self.numbers, self.marks)):
            own, others = slots[side], slots[1 - side]
            numbers[DUAL, own] = numbers[SHOWN, own] = duals[side]
            marks[MATE, own] = -1 - own
            is_matched = mates[side] >= 0
            marks[MATE, own[is_matched]] = others[mates[side][is_matched]]
            marks[FREE, own] = free[side]
            marks[COUNTS] = 0
            marks[COUNTS, SLOTS] = own[-1] + 1 if own.size else 0
            marks[COUNTS, BOUND] = own.size - int(np.count_nonzero(free[side]))

    def reserve(self, rows: int, cols: int) -> None:
        """Take the first slots into use, for costs that are loaded next."""
        for marks, count in zip(self.marks, (rows, cols)):
            marks[USED, :count] = 1

    def saved(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Copies of all but the costs."""
        return [part.copy() for part in self.numbers], [part.copy() for part in self.marks]

    def restore(self, saved: tuple[list[np.ndarray], list[np.ndarray]]) -> None:
        """Go back to what was saved. The costs must be the same again."""
        for part, old in zip(self.numbers + self.marks, [*saved[0], *saved[1]]):
            part[:] = old


def _marks(size: int) -> np.ndarray:
    marks = np.zeros((MARKS, size), np.int32)
    marks[MATE] = -1 - np.arange(size)
    marks[PARTNER] = -1
    marks[FREE] = 1
    return marks


_set_line, _set_cost, _remove_line, _serve, _report = map(
    compiled, (set_line, set_cost, remove_line, serve, report)
)
