"""A live assignment in a dense table: its arrays, and their growth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpumatch.cpu.live.calls import on_first_call
from gpumatch.cpu.live.changes import (
    BY_COVER,
    remove_line,
    report,
    serve,
    set_cost,
    set_line,
    total_of,
)
from gpumatch.cpu.live.state import (
    BOUND,
    COUNTS,
    DUAL,
    FREE,
    LARGEST,
    LINE,
    LINES,
    LIVE,
    MARKS,
    MATE,
    NUMBERS,
    PARTNER,
    QUEUE,
    SCALARS,
    SHOWN,
    SLOTS,
    TOP,
    USED,
    WAITING,
    WAITS,
)
from gpumatch.numeric.fair_duals import differences_below

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
    proven : bool
        Whether the duals prove the pairs optimal.
    """

    mates: np.ndarray
    numbers: np.ndarray
    size: int
    objective: float
    gap: float
    proven: bool


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
    most : float
        Pairs above it are forbidden.
    largest : float
        The greatest magnitude of the costs that are loaded first, and of the limit.
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
        largest: float,
        is_exact: bool,
        is_full: bool,
    ) -> None:
        self.sign, self.mode, self.most = sign, mode, most
        self.is_exact, self.is_full = is_exact, is_full
        self._totals = np.zeros(4)
        rows, cols = (max(LEAST, size + 1) for size in shape)
        self._hold(
            self._allocate(rows, cols),
            [np.zeros((NUMBERS, size)) for size in (rows, cols)],
            [_marks(size) for size in (rows, cols)],
        )
        self.numbers[0][SCALARS, TOP] = limit
        self.numbers[0][SCALARS, LARGEST] = largest

    def _allocate(self, rows: int, cols: int) -> list[np.ndarray]:
        """Costs of so many slots, of which all pairs are forbidden."""
        return [np.full((rows, cols), np.inf), np.full((cols, rows), np.inf)]

    _made: tuple[str, ...] = ("_state", "_changing", "_whole")  # by `_hold`, and not pickled

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if name not in self._made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._hold(self.costs, self.numbers, self.marks)

    def _hold(self, costs: list[Any], numbers: list[Any], marks: list[Any]) -> None:
        self.costs, self.numbers, self.marks = costs, numbers, marks
        # The arrays as kernels for rows, and for columns, take them.
        self._state = (
            (*costs, *numbers, *marks),
            (*costs[::-1], *numbers[::-1], *marks[::-1]),
        )
        self._changing = [(*state, self.sign, self.most, self.mode) for state in self._state]
        self._whole = (
            *self._state[0], self.sign, self.mode, self.is_exact, self.is_full, BUDGET,
        )  # fmt: skip

    # -- changes -----------------------------------------------------------------------------------

    def set_line(self, side: int, slot: int, values: np.ndarray, limit: float) -> int:
        """Give a row (side 0) or column new costs; return if they fit, as `changes` says.

        If the slot is the next one, it is a new row or column. No magnitude may be above ``limit``.
        """
        return _set_line(*self._changing[side], slot, values, limit)

    def slots(self, side: int) -> int:
        """The slots that have been in use; a new row or column gets the next one."""
        return int(self.marks[side][COUNTS, SLOTS])

    def has_room(self, side: int) -> bool:
        """True if there is a next slot, and one more: a search without an end notes its root."""
        return self.slots(side) + 1 < self.marks[side].shape[1]

    def remove_line(self, side: int, slot: int) -> None:
        """Remove a row or column."""
        _remove_line(*self._state[side], slot)

    def set_cost(self, row: int, col: int, cost: float, limit: float) -> int:
        """Give a pair another cost; return if it fits."""
        return _set_cost(*self._changing[0], row, col, cost, limit)

    def grow(self, side: int) -> None:
        """Make room for twice as many rows or columns."""
        shape = [marks.shape[1] for marks in self.marks]
        shape[side] *= 2
        numbers = [np.zeros((NUMBERS, size)) for size in shape]
        marks = [_marks(size) for size in shape]
        for new, old in zip(numbers + marks, self.numbers + self.marks):
            new[:, : old.shape[1]] = old
        self._hold(self._grown(shape), numbers, marks)

    def _grown(self, shape: list[int]) -> list[np.ndarray]:
        """The costs with room for so many slots."""
        costs = self._allocate(*shape)
        for new, old in zip(costs, self.costs):
            new[: old.shape[0], : old.shape[1]] = old
        return costs

    def compact(self, side: int) -> None:
        """Give the rows or columns in use the first slots, in their order."""
        kept = self.marks[side][USED].nonzero()[0]
        count, place = kept.size, np.full(self.marks[side].shape[1], -1, np.int32)
        place[kept] = np.arange(count, dtype=np.int32)
        numbers, marks, others = self.numbers[side], self.marks[side], self.marks[1 - side]
        self._move(side, kept, place)
        for line in (DUAL, SHOWN, LINE):
            numbers[line, :count] = numbers[line, kept]
        queue = place[marks[QUEUE, : marks[COUNTS, WAITING]]]
        queue = queue[queue >= 0]
        marks[QUEUE, : queue.size] = queue
        marks[COUNTS, WAITING] = queue.size
        for line in (MATE, FREE, WAITS, USED, PARTNER):
            marks[line, :count] = marks[line, kept]
        marks[USED, count:] = marks[WAITS, count:] = 0
        marks[FREE, count:] = 1
        is_alone = marks[MATE, :count] < 0
        marks[MATE, :count][is_alone] = -1 - np.arange(count, dtype=np.int32)[is_alone]
        marks[COUNTS, SLOTS] = count
        for line in (MATE, PARTNER):
            is_named = others[line] >= 0
            others[line][is_named] = place[others[line][is_named]]

    def _move(self, side: int, kept: np.ndarray, place: np.ndarray) -> None:
        """Move the costs of the slots that are kept; ``place`` says where each goes."""
        own, other, count = self.costs[side], self.costs[1 - side], kept.size
        own[:count], own[count:] = own[kept], np.inf
        other[:, :count], other[:, count:] = other[:, kept], np.inf

    # -- results -----------------------------------------------------------------------------------

    def serve(self) -> None:
        """Serve all that wait."""
        while _serve(*self._state[0], self.mode, self.is_exact, BUDGET):
            pass

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return self.marks[0].item(COUNTS, LIVE), self.marks[1].item(COUNTS, LIVE)

    @property
    def largest(self) -> float:
        """The greatest magnitude that a cost has had."""
        return max(numbers.item(SCALARS, LARGEST) for numbers in self.numbers)

    @property
    def lines(self) -> int:
        """Lines of costs that searches have read."""
        return int(sum(numbers[SCALARS, LINES] for numbers in self.numbers))

    def total(self) -> float | None:
        """Serve all that wait, and return what the pairs cost; None if `report` must tell."""
        total = _total_of(*self._whole)
        if total == np.inf:
            return None
        return int(total) if self.is_exact else total

    def report(self) -> Report:
        """What the assignment is, if nothing waits."""
        found = self._report()
        if not found.proven and self._await_low():
            self.serve()
            found = self._report()
        return found

    def _report(self) -> Report:
        rows, cols = self.shape
        mates, numbers = np.empty(rows + cols, np.int32), np.empty(2 * rows + cols)
        _report(
            *self._state[0], self.sign, self.mode, self.is_exact, self.is_full,
            mates, numbers, self._totals,  # OUT
        )  # fmt: skip
        size, total, rest, gap = self._totals.tolist()
        objective, proven = total + rest, gap >= 0
        if self.is_exact:
            numbers, objective, gap = numbers.view(np.int64), int(total) + int(rest), int(gap)
        return Report(mates, numbers, int(size), objective, gap, proven)

    def _await_low(self) -> bool:
        """Let unmatched vertices wait whose duals are below the top; return if there are any.

        Rounding leaves a dual there, by the line that bounds it, and that line may go or change.
        """
        for numbers, marks in zip(self.numbers, self.marks):
            is_low = (marks[USED] == 1) & (marks[FREE] == 1) & (marks[MATE] < 0)
            (low,) = (is_low & (numbers[DUAL] < numbers[SCALARS, TOP])).nonzero()
            marks[QUEUE, : low.size], marks[WAITS, low] = low, 1
            marks[COUNTS, WAITING] = low.size
        return any(marks[COUNTS, WAITING] > 0 for marks in self.marks)

    def cover(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and columns of a minimum vertex cover, without a limit."""
        rows, cols = (marks[FREE][marks[USED] == 1] == 0 for marks in self.marks)
        return rows.nonzero()[0], cols.nonzero()[0]

    def violator(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and columns of a Hall violator, if the smaller side is not wholly matched."""
        rows, cols = (marks[FREE][marks[USED] == 1] == 1 for marks in self.marks)
        if rows.size <= cols.size:
            return rows.nonzero()[0], (~cols).nonzero()[0]
        return (~rows).nonzero()[0], cols.nonzero()[0]

    def values(self) -> np.ndarray:
        """The costs as they were given, of the slots in use; infinities forbid."""
        rows, cols = (marks[USED].nonzero()[0] for marks in self.marks)
        values = self.costs[0][np.ix_(rows, cols)]
        return np.negative(values, out=values) if self.sign < 0 else values

    # -- states ------------------------------------------------------------------------------------

    def reserve(self, rows: int, cols: int) -> None:
        """Take the first slots into use, for costs that are loaded next."""
        for marks, count in zip(self.marks, (rows, cols)):
            marks[USED, :count] = 1

    def load(self, costs: np.ndarray, mates: Any, duals: Any, free: Any) -> None:
        """Hold these costs, to be minimised, of the slots in use; their pairs and fair duals.

        With a limit, the duals of the rows are read off the costs.
        """
        slots = [marks[USED].nonzero()[0] for marks in self.marks]
        self._write(costs, slots)
        for side, (numbers, marks) in enumerate(zip(self.numbers, self.marks)):
            own, others = slots[side], slots[1 - side]
            numbers[DUAL, own] = duals[side]
            marks[MATE, own] = -1 - own
            is_matched = mates[side] >= 0
            marks[MATE, own[is_matched]] = others[mates[side][is_matched]]
            marks[FREE, own], marks[WAITS] = free[side], 0
            marks[COUNTS] = 0
            marks[COUNTS, LIVE] = own.size
            marks[COUNTS, SLOTS] = own[-1] + 1 if own.size else 0
            marks[COUNTS, BOUND] = own.size - int(np.count_nonzero(free[side]))
        if self.mode != BY_COVER:
            rows = self.numbers[0]
            rows[DUAL, slots[0]] = np.minimum(self._lowest(slots), rows[SCALARS, TOP])
        for numbers in self.numbers:
            numbers[SHOWN] = numbers[DUAL]

    def _write(self, costs: Any, slots: list[np.ndarray]) -> None:
        """Hold these costs of some slots, to be minimised."""
        if self.most < np.inf:
            costs = np.where(costs <= self.most, costs, np.inf)
        self.costs[0][np.ix_(*slots)] = costs
        self.costs[1][np.ix_(*slots[::-1])] = costs.T

    def _lowest(self, slots: list[np.ndarray]) -> np.ndarray:
        """The least reduced cost of each of these rows, rounded down."""
        duals = self.numbers[1][DUAL, slots[1]]
        lines = (self.costs[0][slot, slots[1]] for slot in slots[0].tolist())
        lowest = (differences_below(line, duals).min(initial=np.inf) for line in lines)
        return np.fromiter(lowest, np.float64, slots[0].size)

    def saved(self, side: int, slot: int) -> tuple[Any, ...]:
        """Copies of all but the costs, and of the costs of one row or column."""
        parts = [part.copy() for part in self.numbers + self.marks]
        return side, slot, self.line(side, slot), parts

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Go back to what was saved, if no other costs have changed."""
        side, slot, line, parts = saved
        self.put_line(side, slot, line)
        for part, old in zip(self.numbers + self.marks, parts):
            part[:] = old

    def line(self, side: int, slot: int) -> Any:
        """A copy of the costs of a row or column, for `put_line`."""
        return self.costs[side][slot].copy()

    def put_line(self, side: int, slot: int, line: Any) -> None:
        """Hold these costs again, and change nothing else."""
        self.costs[side][slot] = self.costs[1 - side][:, slot] = line


def _marks(size: int) -> np.ndarray:
    marks = np.zeros((MARKS, size), np.int32)
    marks[MATE] = -1 - np.arange(size)
    marks[PARTNER] = -1
    marks[FREE] = 1
    return marks


_STATE = "f8,2 f8,2 f8,2 f8,2 i4,2 i4,2 "
_set_line = on_first_call(globals(), "_set_line", set_line, "i8", _STATE + "f8 f8 i8 i8 f8,1 f8")
_set_cost = on_first_call(globals(), "_set_cost", set_cost, "i8", _STATE + "f8 f8 i8 i8 i8 f8 f8")
_remove_line = on_first_call(globals(), "_remove_line", remove_line, "", _STATE + "i8")
_serve = on_first_call(globals(), "_serve", serve, "i8", _STATE + "i8 b1 i8")
_total_of = on_first_call(globals(), "_total_of", total_of, "f8", _STATE + "f8 i8 b1 b1 i8")
_report = on_first_call(globals(), "_report", report, "", _STATE + "f8 i8 b1 b1 i4,1 f8,1 f8,1")
