"""A live assignment whose costs are sparse: a table that keeps cells of allowed pairs alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpumatch.cpu.live.cells import (
    add_cell,
    bind_all,
    clear_line,
    note_pairs,
    remove_line,
    serve,
    set_cost,
    set_line,
)
from gpumatch.cpu.live.changes import DRIFT
from gpumatch.cpu.live.reports import report_of, slots_in_use
from gpumatch.cpu.live.state import DIST, DUAL, LINE, MATE, SCALARS, TOP, USED
from gpumatch.cpu.live.tables import Report, Table
from gpumatch.numeric.fair_duals import differences_below
from gpumatch.numeric.gaps import FINE, allowance_of

__all__ = ["SparseTable"]

LEAST_CELLS = 64
BUDGET = 2**22
"""Cells that a call reads before it returns to Python: some tenths of a second."""


class SparseTable(Table):
    """Cells of allowed pairs, pairs and duals; `cells` says how they are kept.

    A cell takes 36 bytes, and there are at most twice as many as have been in use at a time. A
    vertex takes some 100 bytes.
    """

    def _allocate(self, rows: int, cols: int) -> list[np.ndarray]:
        self.ends = np.zeros((2, 0), np.int32)
        self.after, self.cost = np.zeros((2, 0), np.int32), np.zeros(0)
        self.free = np.array([-1, 0], np.int32)
        self._add_cells(LEAST_CELLS)
        return [np.full(size, -1, np.int32) for size in (rows, cols)]

    _made = ("seen", "keys", "heap")

    def _hold(self, costs: list[Any], numbers: list[Any], marks: list[Any]) -> None:
        self.costs, self.numbers, self.marks = costs, numbers, marks
        for each in numbers:
            each[DIST] = np.inf
        self.seen = np.empty(max(each.shape[1] for each in numbers), np.int32)
        self._make_heap()

    def _make_heap(self) -> None:
        self.keys, self.heap = np.empty(self.cost.size), np.empty(self.cost.size, np.int32)

    def _add_cells(self, more: int) -> None:
        """Make more free cells."""
        first, last = self.cost.size, self.cost.size + more
        after = np.zeros((2, more), np.int32)
        after[0] = np.arange(first + 1, last + 1)
        after[0, -1] = self.free[0]
        self.ends = np.concatenate([self.ends, np.zeros((2, more), np.int32)], axis=1)
        self.after = np.concatenate([self.after, after], axis=1)
        self.cost = np.concatenate([self.cost, np.full(more, np.inf)])
        self.free[:] = first, self.free[1] + more
        self._make_heap()

    def _need_cells(self, count: int) -> None:
        if self.free[1] < count:
            self._add_cells(max(self.cost.size, count))

    def _sides(self, side: int) -> tuple[Any, ...]:
        """Lists, numbers and marks: those of a side first."""
        parts = self.costs, self.numbers, self.marks
        return tuple(part[at] for part in parts for at in (side, 1 - side))

    @property
    def _cells(self) -> tuple[Any, ...]:
        return self.ends, self.after, self.cost, self.free

    # -- changes -----------------------------------------------------------------------------------

    def set_line(self, side: int, slot: int, values: np.ndarray, limit: float) -> int:
        self._need_cells(int(np.isfinite(values).sum()))
        return set_line(
            *self._sides(side), *self._cells, side, slot, values, self.sign, limit, self.most,
            self.mode,
        )  # fmt: skip

    def set_cost(self, row: int, col: int, cost: float, limit: float) -> int:
        self._need_cells(1)
        return set_cost(
            *self._sides(0), *self._cells, 0, row, col, cost, self.sign, limit, self.most,
            self.mode,
        )  # fmt: skip

    def remove_line(self, side: int, slot: int) -> None:
        head, head2, numbers, _, marks, marks2 = self._sides(side)
        remove_line(head, head2, numbers, marks, marks2, *self._cells, side, slot)

    def _grown(self, shape: list[int]) -> list[np.ndarray]:
        heads = [np.full(size, -1, np.int32) for size in shape]
        for new, old in zip(heads, self.costs):
            new[: old.size] = old
        return heads

    def _move(self, side: int, kept: np.ndarray, place: np.ndarray) -> None:
        heads = self.costs[side]
        heads[: kept.size] = heads[kept]
        heads[kept.size :] = -1
        self.ends[side] = place[self.ends[side]]

    # -- results -----------------------------------------------------------------------------------

    def serve(self) -> None:
        while serve(
            *self._sides(0), *self._cells[:3], self.mode, self.is_exact, self.keys, self.heap,
            self.seen, BUDGET,
        ):  # fmt: skip
            pass

    def total(self) -> float | None:
        self.serve()
        rows = (self.marks[0][MATE, : self.slots(0)] >= 0).nonzero()[0]
        paid = self.numbers[0][LINE, rows]
        if self.is_full and paid.size < min(self.shape):
            return None
        if self.is_exact:
            return int(self.sign) * int(paid.astype(np.int64).sum()) if self._is_small() else None
        total = math.fsum(paid)
        return self.sign * total if self._is_within(rows, paid, total) else None

    def _is_within(self, rows: np.ndarray, paid: np.ndarray, total: float) -> bool:
        """True if pairs and duals of floats leave, by their rounded sum, what a proof may have."""
        duals = [numbers[DUAL] for numbers in self.numbers]
        gap = ((paid - duals[1][self.marks[0][MATE, rows]]) - duals[0][rows]).sum()
        for own, numbers, marks in zip(duals, self.numbers, self.marks):
            gap += (numbers[SCALARS, TOP] - own[(marks[USED] == 1) & (marks[MATE] < 0)]).sum()
        used = max(abs(paid).max(initial=0), abs(self.numbers[0][SCALARS, TOP]))
        largest = max(abs(own).max(initial=0) for own in duals)
        fine, coarse = (allowance_of(rows.size, used, most) for most in (0.0, largest))
        return bool(gap <= max(fine, min(coarse, FINE * abs(total))))

    def _is_small(self) -> bool:
        """True if integers are exact."""
        return all(abs(numbers[DUAL]).max(initial=0) < DRIFT for numbers in self.numbers)

    def _report(self) -> Report:
        if self.is_full:
            side = int(self.shape[0] <= self.shape[1])
            bind_all(*self._sides(side)[0:1], *self._sides(side)[2:], *self._cells[:3], side)
        rows, _ = slots_in_use(self)
        matched = rows[self.marks[0][MATE, rows] >= 0]
        paid = self.sign * self.numbers[0][LINE, matched]
        top = self.numbers[0][SCALARS, TOP]
        found = report_of(self, self.numbers[0][DUAL, rows], paid, top)
        return found if self._is_small() or not self.is_exact else found._replace(proven=False)

    def csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Offsets, columns and costs, as they were given, of the slots in use."""
        places = [np.cumsum(marks[USED]) - 1 for marks in self.marks]
        (cells,) = np.isfinite(self.cost).nonzero()
        rows, cols = (place[ends[cells]] for place, ends in zip(places, self.ends))
        order = np.lexsort((cols, rows))
        indptr = np.zeros(self.shape[0] + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=self.shape[0]), out=indptr[1:])
        return indptr, cols[order], self.sign * self.cost[cells[order]]

    # -- states ------------------------------------------------------------------------------------

    def _write(self, costs: Any, slots: list[np.ndarray]) -> None:
        """Hold the cells of these sparse costs, to be minimised."""
        counts = np.diff(costs.indptr)
        ends = [slots[0].repeat(counts), slots[1][costs.indices]]
        weights = np.asarray(costs.weights, np.float64)
        allowed = (weights < np.inf) & (weights <= self.most)
        ends, weights = [each[allowed] for each in ends], weights[allowed]
        self.costs = self._allocate(*(each.size for each in self.costs))
        self._need_cells(weights.size)
        count = weights.size
        self.ends[:, :count], self.cost[:count] = ends, weights
        self.free[:] = count if count < self.cost.size else -1, self.cost.size - count
        for side in (0, 1):
            order = np.argsort(ends[side], kind="stable").astype(np.int32)
            last = np.diff(ends[side][order], append=-1) != 0
            self.after[side, order] = np.where(last, -1, np.roll(order, -1))
            first = np.diff(ends[side][order], prepend=-1) != 0
            self.costs[side][ends[side][order[first]]] = order[first]

    def load(self, costs: Any, mates: Any, duals: Any, free: Any) -> None:
        super().load(costs, mates, duals, free)
        head, _, numbers, numbers2, marks, _ = self._sides(0)
        note_pairs(head, numbers, numbers2, marks, *self._cells[:3], 0)

    def _lowest(self, slots: list[np.ndarray]) -> np.ndarray:
        least = np.full(self.costs[0].size, np.inf)
        cells = np.isfinite(self.cost)
        rows, cols = self.ends[:, cells]
        below = differences_below(self.cost[cells], self.numbers[1][DUAL, cols])
        np.minimum.at(least, rows, below)
        return least[slots[0]]

    def line(self, side: int, slot: int) -> Any:
        others, costs, cell = [], [], int(self.costs[side][slot])
        while cell >= 0:
            others.append(int(self.ends[1 - side, cell]))
            costs.append(float(self.cost[cell]))
            cell = int(self.after[side, cell])
        return others, costs

    def put_line(self, side: int, slot: int, line: Any) -> None:
        heads = self.costs[side], self.costs[1 - side]
        clear_line(*heads, *self._cells, side, slot)
        self._need_cells(len(line[0]))
        for other, cost in zip(*line):
            add_cell(*heads, *self._cells, side, slot, other, cost)
