"""A live assignment of points: coordinates, pairs, duals, and boxes around the points.

It has the methods of `tables.Table`. All pairs are allowed, so all vertices of a side are free, or
none is: without a limit, the smaller side is bound; the rows if both are equal. So the class is
decided when changes are served, and where it changes, duals move by one number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.contracts import Points
from gpumatch.cpu.assignment.points.distances import METRICS, distances_at
from gpumatch.cpu.assignment.points.tree import LEVELS
from gpumatch.cpu.live.boxes import TYPES, Boxes
from gpumatch.cpu.live.calls import on_first_call
from gpumatch.cpu.live.changes import AT_LIMIT, BY_COVER, FIT, INVALID, TOO_LARGE
from gpumatch.cpu.live.near import fair_duals, serve_point
from gpumatch.cpu.live.reports import report_of, slots_in_use
from gpumatch.cpu.live.state import (
    COUNTS,
    DUAL,
    LARGEST,
    LINE,
    LINES,
    MARKS,
    MATE,
    NUMBERS,
    SCALARS,
    SHOWN,
    SLOTS,
    TOP,
    USED,
)
from gpumatch.cpu.live.tables import Report

__all__ = ["PointTable"]

LEAST = 16
"""Slots of a side at least."""
LISTED, ASKED = 24, 4
"""Nearest points that a point keeps; those that it asks for in a search."""
SURE = 2.0**21
"""Roundings of the largest dual, by the total, that need no proof: this is right to 2**-30 then,
with four roundings of half a unit for each vertex that a search has scanned."""
NEVER = -(2**62)
"""The epoch of a list that has not been made."""


class PointTable:
    """Points, pairs and duals. Slots go up: a new point gets the next one."""

    is_exact = False  # distances are floats

    def __init__(
        self,
        sides: tuple[np.ndarray, np.ndarray],
        metric: str,
        *,
        sign: float,
        mode: int,
        limit: float,
        is_full: bool,
    ) -> None:
        self.sign, self.mode, self.is_full = sign, mode, is_full
        self.metric, self.width = metric, sides[0].shape[1]
        self.numbers, self.marks, self.points = [], [], []
        self.lists: list[tuple[np.ndarray, ...]] = []
        self.boxes: list[Boxes | None] = [None, None]
        self.is_fresh = [False, False]  # whether boxes have read all duals that have risen
        self.fallen = [0, 0]  # duals that have fallen since
        self.epoch = [0, 0]  # how often duals have risen, or points have come
        self.searches = 0
        self.settled = 0.0  # vertices that had been scanned when duals last proved the pairs
        self.waiting: list[dict[int, None]] = [{}, {}]
        self.is_bound = 0  # the side whose vertices must be matched, without a limit
        for points in sides:
            used, room = points.shape[0], max(LEAST, points.shape[0])
            self.points.append(np.zeros((room, self.width)))
            self.points[-1][:used] = points
            self.numbers.append(_numbers(room))
            self.marks.append(_marks(0, room))
            self.marks[-1][USED, :used] = 1
            self.marks[-1][COUNTS, SLOTS] = used
            self.lists.append(_lists(room))
        self.shape = (sides[0].shape[0], sides[1].shape[0])
        self.numbers[0][SCALARS, TOP] = limit
        self._make_heap()

    def _make_heap(self) -> None:
        room = max(points.shape[0] for points in self.points)
        self.heap = (
            np.zeros(2 * room), np.zeros(2 * room, np.int32),
            np.zeros(2 * LEVELS, np.int64), np.zeros(2 * LEVELS),
        )  # fmt: skip
        self.first = np.zeros(1, np.int32), np.zeros(1)  # the nearest point of one

    # -- changes -----------------------------------------------------------------------------------

    def slots(self, side: int) -> int:
        return int(self.marks[side][COUNTS, SLOTS])

    def has_room(self, side: int) -> bool:
        return self.slots(side) < self.points[side].shape[0]

    def set_line(self, side: int, slot: int, point: np.ndarray, limit: float) -> int:
        """Put a row or column to another point, or a new one into the next slot."""
        for number in point.tolist():
            if not abs(number) <= limit:
                return TOO_LARGE if np.isfinite(point).all() else INVALID
        marks, numbers = self.marks[side], self.numbers[side]
        if slot == marks[COUNTS, SLOTS]:
            marks[COUNTS, SLOTS] += 1
            marks[USED, slot], marks[MATE, slot] = 1, -1 - slot
            self._count(side, 1)
        else:
            self._part(side, slot)
            self._drop(side, slot)
        self.points[side][slot] = point
        numbers[DUAL, slot] = numbers[SHOWN, slot] = -np.inf
        self.lists[side][MADE][slot] = NEVER
        boxes = self.boxes[side]
        if boxes is not None and not boxes.add_loose(slot):
            self.boxes[side] = None
        self.waiting[side][slot] = None
        return FIT

    def remove_line(self, side: int, slot: int) -> None:
        self._part(side, slot)
        self._drop(side, slot)
        self.marks[side][USED, slot] = 0
        self._count(side, -1)
        self.numbers[side][DUAL, slot] = self.numbers[side][SHOWN, slot] = -np.inf
        self.waiting[side].pop(slot, None)

    def _count(self, side: int, more: int) -> None:
        rows, cols = self.shape
        self.shape = (rows + more, cols) if side == 0 else (rows, cols + more)

    def _part(self, side: int, slot: int) -> None:
        mate = int(self.marks[side][MATE, slot])
        if mate >= 0:
            self.marks[side][MATE, slot] = -1 - slot
            self.marks[1 - side][MATE, mate] = -1 - mate
            self.numbers[side][LINE, slot] = self.numbers[1 - side][LINE, mate] = 0.0
            self.waiting[1 - side].setdefault(mate, None)

    def _drop(self, side: int, slot: int) -> None:
        boxes = self.boxes[side]
        if boxes is not None:
            boxes.drop(slot)

    def grow(self, side: int) -> None:
        room = self.points[side].shape[0]
        self.points[side] = np.concatenate([self.points[side], np.zeros((room, self.width))])
        self.numbers[side] = np.concatenate([self.numbers[side], _numbers(room)], axis=1)
        self.marks[side] = np.concatenate([self.marks[side], _marks(room, 2 * room)], axis=1)
        self.lists[side] = tuple(map(np.concatenate, zip(self.lists[side], _lists(room))))
        self.boxes[side] = None
        self._make_heap()

    def compact(self, side: int) -> None:
        """Give the points in use the first slots, in their order."""
        kept = self.marks[side][USED].nonzero()[0]
        count, numbers, marks = kept.size, self.numbers[side], self.marks[side]
        place = np.full(marks.shape[1], -1, np.int32)
        place[kept] = np.arange(count, dtype=np.int32)
        self.points[side][:count] = self.points[side][kept]
        numbers[:SCALARS, :count] = numbers[:SCALARS, kept]
        for line in (MATE, USED):
            marks[line, :count] = marks[line, kept]
        marks[USED, count:] = 0
        is_alone = marks[MATE, :count] < 0
        marks[MATE, :count][is_alone] = -1 - np.arange(count, dtype=np.int32)[is_alone]
        marks[COUNTS, SLOTS] = count
        numbers[LINE, count:] = 0.0
        numbers[DUAL, count:] = numbers[SHOWN, count:] = -np.inf
        others = self.marks[1 - side]
        is_matched = others[MATE] >= 0
        others[MATE][is_matched] = place[others[MATE][is_matched]]
        self.waiting[side] = {int(place[slot]): None for slot in self.waiting[side]}
        self.lists[side][MADE][:] = NEVER
        self._forget(side)

    def _forget(self, side: int) -> None:
        """Have boxes made anew, and the lists of the other side."""
        self.boxes[side] = None
        self.epoch[side] += 1

    # -- paths -------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Serve all that wait."""
        self._choose_class()
        if len(self.waiting[0]) + len(self.waiting[1]) > 1:
            for side in (0, 1):
                for slot in self.waiting[side]:
                    self._begin(side, slot)
        while self.waiting[0] or self.waiting[1]:
            side = 0 if self.waiting[0] else 1
            slot = next(iter(self.waiting[side]))
            if self._is_unsettled(side, slot):
                self._serve(side, slot)
            self.waiting[side].pop(slot, None)

    def _serve(self, side: int, slot: int) -> None:
        boxes = self._fresh_boxes(1 - side)
        self.searches += 1
        self.fallen[1 - side] += _serve_point(
            *self._sides(side), *boxes.arrays, slot, self._is_free(side), self._top(side),
            METRICS[self.metric], self.sign, self.epoch[1 - side], self.searches,
            *self.lists[side], *self.heap,
        )  # fmt: skip
        self._rise(side)

    def _rise(self, side: int) -> None:
        """Note that duals have risen."""
        self.is_fresh[side] = False
        self.epoch[side] += 1

    def _sides(self, side: int) -> tuple[Any, ...]:
        other = 1 - side
        return (
            self.points[side], self.points[other], self.numbers[side], self.numbers[other],
            self.marks[side], self.marks[other],
        )  # fmt: skip

    def _top(self, side: int) -> float:
        return float(self.numbers[side][SCALARS, TOP])

    def _is_free(self, side: int) -> bool:
        return self.mode != BY_COVER or side != self.is_bound

    def _is_unsettled(self, side: int, slot: int) -> bool:
        numbers = self.numbers[side]
        if self.marks[side][MATE, slot] >= 0:
            return False
        is_new = numbers[DUAL, slot] == -np.inf
        return is_new or not self._is_free(side) or numbers[DUAL, slot] < self._top(side)

    def _choose_class(self) -> None:
        """Bind the smaller side, or the rows. The duals of the other are to be 0 at most."""
        rows, cols = self.shape
        if self.mode != BY_COVER or (rows > cols) == self.is_bound:
            return
        self.is_bound = int(rows > cols)
        free = 1 - self.is_bound
        is_known = self.numbers[free][DUAL] > -np.inf
        move = self.numbers[free][DUAL, is_known].max(initial=-np.inf)
        if move > -np.inf:
            self.numbers[free][DUAL] -= move
            self.numbers[self.is_bound][DUAL] += move
        for side in (0, 1):
            self.numbers[side][SHOWN] = self.numbers[side][DUAL]
            self.numbers[side][SCALARS, LARGEST] += abs(move) if move > -np.inf else 0.0
            is_known = self.numbers[side][DUAL] > -np.inf
            for slot in (is_known & (self.marks[side][MATE] < 0)).nonzero()[0].tolist():
                self.waiting[side].setdefault(slot, None)
            self._rise(side)

    def _fresh_boxes(self, side: int) -> Boxes:
        """The boxes of a side, which know its duals."""
        boxes, duals = self.boxes[side], self.numbers[side][DUAL]
        if boxes is None:
            self.boxes[side] = boxes = Boxes(
                self.points[side], duals, self.marks[side][USED].nonzero()[0]
            )
        elif not self.is_fresh[side] or self.fallen[side] > boxes.ids.size:
            boxes.take(duals)
        else:
            return boxes
        self.is_fresh[side], self.fallen[side] = True, 0
        return boxes

    def _begin(self, side: int, slot: int) -> None:
        """Set the dual of a point that has come."""
        numbers = self.numbers[side]
        if numbers[DUAL, slot] > -np.inf:
            return
        value = float(self._fair_duals(side, np.array([slot]))[0])
        dual = min(value, self._top(side)) if self._is_free(side) else value
        numbers[DUAL, slot] = numbers[SHOWN, slot] = dual if dual < np.inf else 0.0
        self._rise(side)

    def _fair_duals(self, side: int, slots: np.ndarray) -> np.ndarray:
        """The duals of these vertices, as high as no pair undercuts."""
        duals = np.empty(slots.size)
        own, other, _, numbers2, _, _ = self._sides(side)
        fair_duals(
            own, other, numbers2, self._fresh_boxes(1 - side).arrays, slots,
            METRICS[self.metric], self.sign, *self.heap[-2:], *self.first, duals,  # OUT
        )  # fmt: skip
        return duals

    # -- results -----------------------------------------------------------------------------------

    def total(self) -> float | None:
        """Serve all that wait, and return what the pairs cost; None if `report` must tell."""
        self.serve()
        if self.mode == AT_LIMIT:
            return None
        total = self.sign * float(self.numbers[0][LINE, : self.slots(0)].sum())
        largest = max(numbers.item(SCALARS, LARGEST) for numbers in self.numbers)
        roundings = self._lines() - self.settled + sum(self.shape)
        return total if roundings * largest <= SURE * abs(total) else None

    def _lines(self) -> float:
        """The vertices that searches have scanned."""
        return sum(numbers.item(SCALARS, LINES) for numbers in self.numbers)

    def report(self) -> Report:
        """What the assignment is, if nothing waits."""
        found = self._report()
        if not found.proven and self.mode == BY_COVER:
            self._lower_duals()
            found = self._report()
        if found.proven:
            self._settle()
        return found

    def _settle(self) -> None:
        """Note that these duals prove these pairs, whatever has been rounded before."""
        self.settled = self._lines()
        for numbers in self.numbers:
            known = numbers[DUAL][numbers[DUAL] > -np.inf]
            numbers[SCALARS, LARGEST] = np.abs(known).max(initial=0.0)

    def _lower_duals(self) -> None:
        """Serve each pair anew, from the free side first.

        A dual of the bound side may have risen for a vertex of the free side that is gone now. Then
        duals are larger than all costs, and so is their rounding. A pair that is parted gets the
        greatest dual on the free side that the other pairs leave it.
        """
        free, bound = 1 - self.is_bound, self.is_bound
        is_low = (self.marks[free][MATE] >= 0) & (self.numbers[free][DUAL] < self._top(free))
        for slot in is_low.nonzero()[0].tolist():
            mate = int(self.marks[free][MATE, slot])
            if mate < 0:
                continue
            self._part(free, slot)
            self.numbers[bound][DUAL, mate] = self.numbers[bound][SHOWN, mate] = -np.inf
            self.is_fresh[bound] = False
            self._serve(free, slot)
            self.serve()

    def _report(self) -> Report:
        """What the assignment is: duals of rows are read off the boxes."""
        used, top = slots_in_use(self), self._top(0) if self._is_free(0) else np.inf
        lowest = self._fair_duals(0, used[0])
        if self.mode == AT_LIMIT:
            self._join(used, lowest <= top)
        return report_of(self, np.minimum(lowest, top), self._paid(*used)[1], top)

    def _paid(self, rows: np.ndarray, cols: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which rows are matched, and what their pairs cost, with the caller's sign."""
        mates = self.marks[0][MATE, rows]
        is_matched = mates >= 0
        return is_matched, self._costs_of(rows[is_matched], mates[is_matched])

    def _costs_of(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        points = Points(self.points[0], self.points[1], self.metric, False, 1.0, None, None)
        return distances_at(points, rows, cols.astype(np.int64))

    def _join(self, used: tuple[np.ndarray, np.ndarray], is_tight: np.ndarray) -> None:
        """Match unmatched rows and columns whose pair costs the limit."""
        rows = used[0][is_tight & (self.marks[0][MATE, used[0]] < 0)]
        cols = used[1][self.marks[1][MATE, used[1]] < 0]
        for row in rows.tolist():
            costs = self.sign * self._costs_of(np.full(cols.size, row), cols)
            at = (costs <= self._top(0)).nonzero()[0]
            if at.size:
                col = int(cols[at[0]])
                self.marks[0][MATE, row], self.marks[1][MATE, col] = col, row
                self.numbers[0][LINE, row] = self.numbers[1][LINE, col] = costs[at[0]]
                cols = np.delete(cols, at[0])

    def cover(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and columns of a minimum vertex cover: the smaller side."""
        rows, cols = self.shape
        return np.arange(rows if rows <= cols else 0), np.arange(cols if rows > cols else 0)

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """The points of the rows and of the columns in use."""
        rows, cols = (points[used] for points, used in zip(self.points, slots_in_use(self)))
        return rows, cols

    # -- states ------------------------------------------------------------------------------------

    def load(self, mates: Any, duals: Any) -> None:
        """Hold these pairs and duals of the slots in use. Nothing waits then."""
        used = slots_in_use(self)
        for side, (numbers, marks) in enumerate(zip(self.numbers, self.marks)):
            own, is_matched = used[side], mates[side] >= 0
            numbers[DUAL, own] = numbers[SHOWN, own] = duals[side]
            marks[MATE, own] = -1 - own
            marks[MATE, own[is_matched]] = used[1 - side][mates[side][is_matched]]
            numbers[LINE] = 0.0
        is_matched, paid = self._paid(*used)
        rows = used[0][is_matched]
        for numbers, own in zip(self.numbers, (rows, self.marks[0][MATE, rows])):
            numbers[LINE, own] = self.sign * paid
        self.is_bound = int(self.shape[0] > self.shape[1])
        self.waiting = [{}, {}]
        self._settle()
        for side in (0, 1):
            self._forget(side)

    def saved(self, side: int, slot: int) -> tuple[Any, ...]:
        """Copies of all that a change may touch."""
        arrays = [part.copy() for part in self.numbers + self.marks]
        waiting = [dict(part) for part in self.waiting]
        return (
            side,
            slot,
            self.points[side][slot].copy(),
            arrays,
            waiting,
            self.is_bound,
            self.shape,
        )

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Go back to what was saved."""
        side, slot, point, arrays, self.waiting, self.is_bound, self.shape = saved
        self.points[side][slot] = point
        for part, old in zip(self.numbers + self.marks, arrays):
            part[:] = old
        self.lists[side][MADE][slot] = NEVER
        for own in (0, 1):
            self._forget(own)


def _numbers(room: int) -> np.ndarray:
    numbers = np.zeros((NUMBERS, room))
    numbers[DUAL] = numbers[SHOWN] = -np.inf
    return numbers


def _marks(first: int, last: int) -> np.ndarray:
    marks = np.zeros((MARKS, last - first), np.int32)
    marks[MATE] = -1 - np.arange(first, last)
    return marks


def _lists(room: int) -> tuple[np.ndarray, ...]:
    """What `near` keeps of each vertex, from ``near`` to ``next``."""
    return (
        np.zeros((room, LISTED), np.int32), np.zeros((room, LISTED)), np.zeros((room, LISTED)),
        np.full(room, NEVER), np.zeros((room, ASKED), np.int32), np.zeros((room, ASKED)),
        np.full(room, NEVER), np.zeros(room), np.zeros(room, np.int32),
    )  # fmt: skip


MADE = 3
_serve_point = on_first_call(
    globals(),
    "_serve_point",
    serve_point,
    "i8",
    "f8,2 f8,2 f8,2 f8,2 i4,2 i4,2 " + TYPES
    + "i8 b1 f8 i8 f8 i8 i8 i4,2 f8,2 f8,2 i8,1 i4,2 f8,2 i8,1 f8,1 i4,1 f8,1 i4,1 i8,1 f8,1",
)  # fmt: skip
