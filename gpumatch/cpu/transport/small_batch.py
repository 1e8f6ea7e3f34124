"""Small dense transport problems by compiled calls: ranges of problems, threads and memory.

Each thread takes one range after the other, and solves it in one call (`small`). It returns to
Python after each, and a range is so short that Ctrl-C is heard.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from gpumatch.contracts.batch import SOLVED, UNSOLVED
from gpumatch.contracts.transport import SmallFlows, SmallTransports
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.cpu.transport import small

__all__ = ["solve", "solve_one"]

RANGE = 2**15
"""Costs of a range, at most, or one problem's: some ten milliseconds."""
SHARES = 4
"""Ranges of each thread, at least."""
_ALL = np.ones(1, bool)


def solve(task: SmallTransports) -> SmallFlows:
    """Solve the problems of a batch, as far as the control and the kernels go."""
    count, width = len(task.takes), task.supply.shape[1]
    numbers = np.zeros((count, width + task.demand.shape[1]))
    totals, ends = np.zeros((3, count)), np.zeros((4, count), np.int64)
    totals[small.GAP], ends[small.END] = np.inf, UNSOLVED
    ranges = _ranges(task)
    found: list[Any] = [None] * len(ranges)
    places = task.places
    entries = places[:, small.ROWS] * places[:, small.COLS]
    sides = places[:, small.ROWS] + places[:, small.COLS]
    most = int(entries[task.takes].max(initial=0)), int(sides[task.takes].max(initial=0))
    ahead, solved = iter(enumerate(ranges)), [0] * task.threads
    halted = False

    def serve(worker: int) -> bool:
        nonlocal halted
        room, places_room = (
            np.empty(size, dtype)
            for size, dtype in zip(small.room_for(*most), (np.float64, np.int64))
        )
        try:
            for number, (first, last) in ahead:
                if number and worker == 0 and task.control.tick(sum(solved)):
                    halted = True
                if halted:
                    return False
                part = int(entries[first:last].sum())
                pairs, paid = np.empty((3, part), np.int64), np.empty(part)
                size = small.solve_range(
                    task.read(first, last, np.empty).astype(np.float64, copy=False),  # IN
                    places, task.supply, task.demand,  # IN
                    *task.goal, first, last,  # IN
                    room, places_room,
                    pairs, paid, numbers, totals, ends,  # OUT
                )  # fmt: skip
                found[number] = pairs[:, :size], paid[:size]
                solved[worker] += int(pairs[2, :size].sum())
        except BaseException:
            halted = True
            raise
        return True

    with Workers(task.threads, task.total) as workers:
        try:
            workers.run(serve, len(ranges))
        except BaseException:
            halted = True  # a Ctrl-C while this thread waits for the others
            raise
    parts = [part for part in found if part is not None]
    none = np.empty((3, 0), np.int64), np.empty(0)
    pairs, paid = (
        parts[0]
        if len(parts) == 1
        else [np.concatenate(part, axis=-1) for part in zip(none, *parts)]
    )
    begins = np.zeros(count + 1, np.int64)
    np.cumsum(ends[small.PAIRS], out=begins[1:])
    return SmallFlows(
        ends[small.END] == SOLVED, begins, pairs[0], pairs[1], pairs[2], paid,
        numbers[:, :width], numbers[:, width:], totals[: small.GAP], totals[small.GAP],
        ends[small.PATHS], ends[small.SCANS],
    )  # fmt: skip


def solve_one(
    costs: np.ndarray, supply: np.ndarray, demand: np.ndarray, *goal: Any
) -> SmallFlows | None:
    """The solution of one problem: its costs as a C-contiguous float64 matrix, its masses, and all
    from ``sign`` to ``largest``. None if the kernel leaves it.
    """
    nrows, ncols = costs.shape
    room, places_room = small.room_for(costs.size, nrows + ncols)
    pairs, paid = np.empty((3, costs.size), np.int64), np.empty(costs.size)
    numbers, totals, ends = np.empty((1, nrows + ncols)), np.empty((3, 1)), np.empty((4, 1), int)
    size = small.solve_range(
        costs.reshape(-1), np.array(((0, ncols, nrows, ncols),)), supply[None], demand[None],  # IN
        *goal, 0, 1,  # IN
        np.empty(room), np.empty(places_room, np.int64), pairs, paid, numbers, totals, ends,  # OUT
    )  # fmt: skip
    if ends[small.END, 0] != SOLVED:
        return None
    return SmallFlows(
        _ALL, np.array((0, size)), pairs[0, :size], pairs[1, :size], pairs[2, :size], paid[:size],
        numbers[:, :nrows], numbers[:, nrows:], totals[: small.GAP], totals[small.GAP],
        ends[small.PATHS], ends[small.SCANS],
    )  # fmt: skip


def _ranges(task: SmallTransports) -> list[tuple[int, int]]:
    """Ranges of problems to be solved."""
    takes = task.takes
    costs = max(1, min(RANGE, task.total // (SHARES * task.threads)))
    shares = task.places[:, small.START] // costs
    is_first = np.ones(len(takes), bool)
    is_first[1:] = (shares[1:] > shares[:-1]) | (takes[1:] != takes[:-1])
    bounds = itertools.pairwise([*is_first.nonzero()[0].tolist(), len(takes)])
    return [part for part in bounds if takes[part[0]]]
