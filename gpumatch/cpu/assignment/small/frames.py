"""Pairs under limits of many small matrices: frames of a tracker, in a few compiled calls.

The matrices stay where they are. `locate` looks at each of a tuple and writes down its place, in a
twentieth of the time that it takes to solve one. Then threads solve one range of frames after the
other by `gpumatch.cpu.assignment.small.gated`, each in one call without the GIL. It returns to
Python after each, and a range is so short that Ctrl-C is heard.

    places[f]        ADDRESS of frame f, its ROWS and COLS, and the bytes ACROSS to the next row and
                     ALONG to the next column
    limits[f]        its limit, to be minimised
    gates            limits of all rows of all frames, one frame after the other; or none
    starts[f]        where its own begin; starts[f + 1] is their end
    begins[f]        where its pairs begin
    pairs            from 2 * begins[f] on, min(ROWS, COLS) numbers for rows and as many for columns
    counts[f]        how many of each are pairs; -1 if a number of the frame is not valid
    memory, room     scratch: a table of the values' dtype, and vectors and links in float64
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import types

from gpumatch.cpu.assignment.small.gated import MOST, match, solver
from gpumatch.cpu.assignment.small.search import (
    LINKS,
    NEAR,
    NEAR_LINKS,
    NEAR_VECTORS,
    VECTORS,
    vectors_in,
)
from gpumatch.cpu.numba_tools.compiled import short_kernel
from gpumatch.cpu.numba_tools.short_calls import (
    Borrowed,
    Held,
    array_at,
    entry_of,
    leave_gil,
    listed,
    locate,
    take_gil,
)
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.numba_tools.views import as_halves, on_stack, view
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["places_in", "places_of", "run"]

RANGE = 2**20
"""Costs of a range, at most, or one frame's: it ends soon enough for Ctrl-C."""
SHARES = 8
"""Ranges of each thread, at least: then none has long to wait for the others at the end."""
PLACE = 5
ADDRESS, ROWS, COLS, ACROSS, ALONG = range(PLACE)
SUMS = 4  # costs of all frames, of the largest one, the longest side, and strides between entries
_ZERO = np.int32(0)


def places_of(frames: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the places of matrices in memory.

    Raises
    ------
    ValueError
        If one has not two dimensions.
    """
    places = np.empty((len(frames), PLACE), np.int64)
    wrong = _locator()(frames, places)
    if wrong >= 0:
        dimensions = frames[wrong].ndim
        raise ValueError(f"problem {wrong}: the costs must have 2 dimensions, not {dimensions}")
    return places


def places_in(stack: np.ndarray) -> np.ndarray:
    """Return the places of the matrices of an array of three dimensions."""
    count, rows, cols = stack.shape
    apart, across, along = stack.strides
    places = np.empty((count, PLACE), np.int64)
    _spreader()(places, stack.ctypes.data, apart, rows, cols, across, along)
    return places


def run(
    places: np.ndarray,
    dtype: np.dtype,
    maximize: bool,
    limits: np.ndarray,
    gates: np.ndarray,
    threads: int,
) -> list[tuple[np.ndarray, np.ndarray] | None] | None:
    """Solve the frames; return rows and columns of the pairs of each, or None if a cost is wrong.

    The caller holds the arrays in which the places are. The result is None if there is no kernel
    for frames of this dtype and at these places.
    """
    if solver(dtype) is None:
        return None
    count = len(places)
    begins, starts = np.empty(count + 1, np.int64), np.zeros(count + 1, np.int64)
    sums = np.empty(SUMS, np.int64)
    _planner()(places, gates.size > 0, dtype.itemsize, begins, starts, sums)
    total, largest, longest, odd = sums.tolist()
    if largest > MOST or odd > 0:
        return None
    pairs, counts = np.empty(2 * begins.item(count), np.int64), np.empty(count, np.int64)
    solve = _solver(dtype)
    firsts = _firsts(places, total, threads)
    ahead = iter(list(zip(firsts, [*firsts[1:], count])))
    halted = False

    def serve(_: int) -> bool:
        nonlocal halted
        room = np.empty((VECTORS + LINKS) * longest if longest > NEAR else 0)
        memory = np.empty(largest, dtype)
        try:
            for first, last in ahead:
                if halted:
                    return False
                solve(
                    places, maximize, limits, gates, starts, first, last,  # IN
                    memory, room, begins,  # IN
                    pairs, counts,  # OUT
                )  # fmt: skip
        except BaseException:
            halted = True  # a Ctrl-C: the other threads end after the range that they have
            raise
        return True

    with Workers(threads, total) as workers:
        try:
            workers.run(serve, len(firsts))
        except BaseException:
            halted = True  # a Ctrl-C while this thread waits for the others
            raise
    found: list[tuple[np.ndarray, np.ndarray] | None] = _lister()(pairs, begins, counts)
    return found


def _firsts(places: np.ndarray, total: int, threads: int) -> list[int]:
    """The first frames of the ranges that threads take in turns."""
    if threads == 1 and total <= RANGE:
        return [0] if len(places) else []
    sizes = places[:, ROWS] * places[:, COLS]
    share = max(1, min(RANGE, total // (SHARES * threads)))
    firsts: list[int] = np.flatnonzero(np.diff(sizes.cumsum() // share, prepend=-1)).tolist()
    return firsts


@functools.cache
def _planner() -> Any:
    """The kernel `_plan`."""
    integers = Borrowed(types.int64, 1)
    return _plan.compile(
        types.void(
            Borrowed(types.int64, 2), types.boolean, types.int64, integers, integers, integers
        )
    )


@functools.cache
def _spreader() -> Any:
    """The kernel `_spread`."""
    return _spread.compile(types.void(Borrowed(types.int64, 2), *6 * (types.int64,)))


@functools.cache
def _solver(dtype: np.dtype) -> Any:
    """The kernel for frames of a dtype."""
    numbers, integers = Borrowed(types.float64, 1), Borrowed(types.int64, 1)
    return _solve.compile(
        types.void(
            Borrowed(types.int64, 2), types.boolean, numbers, numbers, integers,
            types.int64, types.int64, Borrowed(entry_of(dtype), 1), numbers, integers, integers,
            integers,
        )
    )  # fmt: skip


@functools.cache
def _locator() -> Any:
    """``locate(frames, places)``, the number of a frame that is no matrix, or -1."""
    return _locate.compile(types.int64(Held(), Borrowed(types.int64, 2)))


@functools.cache
def _lister() -> Any:
    """``list_pairs(pairs, begins, counts)``, the pairs of each frame."""
    return _list_pairs.compile(Held()(*3 * (Borrowed(types.int64, 1),)))


@short_kernel
def _list_pairs(pairs, begins, counts):
    """List the pairs of each frame."""
    return listed(pairs, begins, counts)


@short_kernel
def _spread(places, address, apart, rows, cols, across, along):
    """Write the places of matrices that are so many bytes apart."""
    for frame in range(places.shape[0]):
        places[frame, ADDRESS] = address + frame * apart
        places[frame, ROWS], places[frame, COLS] = rows, cols
        places[frame, ACROSS], places[frame, ALONG] = across, along


@short_kernel
def _plan(places, has_gates, itemsize, begins, starts, sums):
    """Write where the pairs and the limits of each frame begin, and the sums."""
    begins[0] = starts[0] = 0
    total, largest, longest, odd = 0, 0, 0, 0
    for frame in range(places.shape[0]):
        rows, cols = places[frame, ROWS], places[frame, COLS]
        begins[frame + 1] = begins[frame] + lesser(rows, cols)
        starts[frame + 1] = starts[frame] + (rows if has_gates else 0)
        total += rows * cols
        largest = greater(largest, rows * cols)
        longest = greater(longest, greater(rows, cols))
        odd += places[frame, ACROSS] % itemsize != 0
        odd += places[frame, ALONG] % itemsize != 0
    sums[0], sums[1], sums[2], sums[3] = total, largest, longest, odd


@short_kernel
def _locate(frames, places):
    """Write the places of the frames."""
    for frame in range(places.shape[0]):
        if not locate(frames, frame, view(places, (frame, 0), PLACE)):
            return frame
    return -1


@short_kernel
def _solve(
    places, maximize, limits, gates, starts, first, last, memory, room, begins, pairs, counts
):
    """Name the pairs of the frames from ``first`` to ``last``."""
    near_vectors, near_links = on_stack(0.0, NEAR_VECTORS), on_stack(_ZERO, NEAR_LINKS)
    thread = leave_gil(True)
    for frame in range(first, last):
        rows, cols = places[frame, ROWS], places[frame, COLS]
        short, longest = lesser(rows, cols), greater(rows, cols)
        if longest <= NEAR:
            vectors = vectors_in(near_vectors, longest)
            links = view(near_links, 0, (LINKS, longest))
        else:
            vectors = view(room, 0, (VECTORS, longest))
            links = view(as_halves(room), 2 * VECTORS * longest, (LINKS, longest))
        across, along = places[frame, ACROSS], places[frame, ALONG]
        values = array_at(memory, places[frame, ADDRESS], rows, cols, across, along)
        own = view(gates, starts[frame], starts[frame + 1] - starts[frame])
        found = view(pairs, 2 * begins[frame], (2, short))
        counts[frame] = match(values, maximize, limits[frame], own, memory, vectors, links, found)
    take_gil(thread)
