"""Many small dense problems, or one, with their duals: threads, ranges and memory.

A batch is divided into ranges of problems. Each thread takes one range after the other, and solves
it in one compiled call (`with_duals`). It returns to Python after each, and a range is so short
that Ctrl-C is heard.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from gpumatch.contracts.batch import BAD, SOLVED, BatchTask, Wish
from gpumatch.cpu.assignment.small import under_limits
from gpumatch.cpu.assignment.small.warm import solve_warm
from gpumatch.cpu.assignment.small.with_duals import ROWS, START, scratch_size, solve_range
from gpumatch.cpu.numba_tools.prefetch import LINE
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["run", "solve_one", "solve_one_warm"]

RANGE = 2**20
"""Costs of a range, at most, or one problem's: it ends soon enough for Ctrl-C."""
COPIED = 2**17
"""Costs of a range, at most, if they are copied: copies stay in the cache."""
SHORTEST = 2**13
"""Costs of a range that is worth a call."""
SHARES = 8
"""Ranges of each thread, at least: then none has long to wait for the others at the end."""
AT_ONCE = 128
"""Sides for which there is always memory."""
LARGE, HUGE = 2**20, 2**21
"""Bytes from which on memory begins with a huge page, and the bytes of a huge page."""


def run(task: BatchTask) -> bool:
    """Solve the problems of a batch; False if the control has stopped it."""
    control, places = task.control, task.places
    mates, numbers, totals, marks, ends = task.results
    results = mates, numbers, totals, marks if task.wish.wants_maximum else None, ends
    ranges = _ranges(task)
    rows, cols = places[task.takes, ROWS:].T
    sizes = scratch_size(np.minimum(rows, cols), np.maximum(rows, cols))
    room = int(sizes.max(initial=0))
    ahead, solved = iter(ranges), [0] * task.threads
    halted = False

    def serve(worker: int) -> bool:
        nonlocal halted
        kept = _taken()
        try:
            scratch = kept.scratch_of(room)
            for first, last in ahead:
                if worker == 0 and control.tick(sum(solved)):
                    halted = True
                if halted:
                    return False
                values = task.read(first, last, kept.range_of)
                solved[worker] += _solve(
                    values, places, task.wish, task.gates, task.largest, first, last, scratch,  # IN
                    results,  # OUT
                )  # fmt: skip
        except BaseException:
            halted = True
            raise
        finally:
            _idle.append(kept)
        return True

    with Workers(task.threads, task.total) as workers:
        try:
            return workers.run(serve, len(ranges))
        except BaseException:
            halted = True  # a Ctrl-C while this thread waits for the others
            raise


def _solve(
    values: np.ndarray,
    places: np.ndarray,
    wish: Wish,
    gates: np.ndarray | None,
    largest: float,
    first: int,
    last: int,
    scratch: np.ndarray,
    results: tuple[Any, ...],
) -> int:
    """Solve the problems of a range by the kernel for this wish; return how many pairs there are.

    There are no marks unless as many pairs as can be are wanted.
    """
    mates, numbers, totals, marks, ends = results
    sign, limit, _, most, _ = wish
    if gates is not None:
        return under_limits.solve_range(
            values, places, sign, gates, largest, first, last, scratch,  # IN
            mates, numbers, totals, ends,  # OUT
        )  # fmt: skip
    return solve_range(
        values, places, sign, limit, most, largest, first, last, scratch,  # IN
        mates, numbers, totals, marks, ends,  # OUT
    )  # fmt: skip


def solve_one(
    values: np.ndarray,
    place: np.ndarray,
    wish: Wish,
    gates: np.ndarray | None,
    largest: float,
    results: tuple[Any, ...],
) -> None:
    """Solve one problem at this place, as `run` does those of a task."""
    kept = _taken()
    _solve(values, place, wish, gates, largest, 0, 1, _scratch_for(place, kept), results)
    _idle.append(kept)


def solve_one_warm(
    values: np.ndarray,
    place: np.ndarray,
    start: tuple[np.ndarray, np.ndarray, bool],
    wish: Wish,
    gates: np.ndarray | None,
    largest: float,
    results: tuple[Any, ...],
) -> None:
    """The same from pairs and prices, if these help.

    ``start`` has the mates of the rows, the prices, and whether they may help. BAD is in ends[END]
    if they are not valid.
    """
    mates, numbers, totals, _, ends = results
    row_to_col, price, helps = start
    kept = _taken()
    scratch = _scratch_for(place, kept)
    solve_warm(
        values, place, wish.sign, helps, largest, row_to_col, price, scratch,  # IN
        mates, numbers, totals, ends,  # OUT
    )  # fmt: skip
    if ends.item(0) not in (SOLVED, BAD):
        _solve(values, place, wish, gates, largest, 0, 1, scratch, results)
    _idle.append(kept)


def _scratch_for(place: np.ndarray, kept: _Kept) -> np.ndarray:
    """Scratch for one problem."""
    _, _, rows, cols = place[0].tolist()
    if rows <= AT_ONCE >= cols:
        return kept.scratch
    return kept.scratch_of(scratch_size(min(rows, cols), max(rows, cols)))


class _Kept:
    """The memory of a thread. New memory takes as long as reading the costs of a problem."""

    def __init__(self) -> None:
        self.room = np.empty(0)
        self.scratch = _in_lines(scratch_size(AT_ONCE, AT_ONCE), self.room.dtype)

    def range_of(self, most: int) -> np.ndarray:
        """Return memory for copies of so many costs."""
        if self.room.size < most:
            self.room = _in_lines(max(most, COPIED), self.room.dtype)
        return self.room[:most]

    def scratch_of(self, size: int) -> np.ndarray:
        """Return scratch of at least this size."""
        if self.scratch.size < size:
            self.scratch = _in_lines(size, self.scratch.dtype)
        return self.scratch


_idle: list[_Kept] = []  # for the next call: the threads of a batch end with it


def _taken() -> _Kept:
    """Return memory that no other thread uses."""
    try:
        return _idle.pop()
    except IndexError:
        return _Kept()


def _in_lines(size: int, dtype: np.dtype) -> np.ndarray:
    """Memory from the begin of a cache line: else each wide vector would be in two lines.

    Large memory begins with a huge page, if the system has such: NumPy asks for them from 4 MiB on.
    Small pages lie anywhere, and those of a table may have the same few places in the cache.
    """
    length = size * dtype.itemsize
    is_large = length >= LARGE
    boundary = HUGE if is_large else LINE
    memory = np.empty(max(length + boundary, 2 * HUGE if is_large else 0), np.uint8)
    begin = -memory.ctypes.data % boundary
    return memory[begin : begin + length].view(dtype)


def _ranges(task: BatchTask) -> list[tuple[int, int]]:
    """Ranges of problems to be solved."""
    takes = task.takes
    costs = min(
        RANGE if task.in_place else COPIED, max(SHORTEST, task.total // (SHARES * task.threads))
    )
    shares = task.places[:, START] // costs
    is_first = np.ones(len(takes), bool)
    is_first[1:] = (shares[1:] > shares[:-1]) | (takes[1:] != takes[:-1])
    bounds = itertools.pairwise([*is_first.nonzero()[0].tolist(), len(takes)])
    return [part for part in bounds if takes[part[0]]]
