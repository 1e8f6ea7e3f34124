"""The heavier parts of two matchings.

The edges that are in one of two matchings only make paths and cycles, in which both take turns. On
each of them either matching may be kept, whatever is kept elsewhere. So the heavier half of each is
kept, and the result weighs at least as much as either matching (up to the rounding of sums of
floats).

A part of more than `LONGEST` edges keeps the first matching, so that a step takes a bounded time. A
path is followed from its smaller end, and a cycle from its smallest vertex along the second
matching, so that the sums, and the result, are always the same. O(vertices).

Encodings
    mate, entry          of the first matching (`suitor.match`), and at the end of the result
    other, other_entry   of the second
    decided[v]           1 once the part of v has been followed
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["LONGEST", "keep_better"]

LONGEST = 2**16
"""The most edges of a part that may change: following it takes a hundredth of a second."""
_RANGE = 2**20  # vertices a call


@kernel
def _gain(first, by_other, longest, weights, mate, entry, other, other_entry, decided):
    """By how much the second matching is heavier on a part; below 0 or 0 if it may not change."""
    v, edges = first, 0
    gain = weights[0] - weights[0]
    while True:
        decided[v] = 1
        following = other[v] if by_other else mate[v]
        if following < 0:
            break
        if by_other:
            gain += weights[other_entry[v]]
        else:
            gain -= weights[entry[v]]
        by_other = not by_other
        edges += 1
        v = following
        if v == first:
            break
    return gain if edges <= longest else weights[0] - weights[0]


@kernel
def _exchange(first, by_other, mate, entry, other, other_entry):
    """Give the part of a vertex to the second matching."""
    v = first
    while True:
        following = other[v] if by_other else mate[v]
        mate[v], entry[v] = other[v], other_entry[v]
        by_other = not by_other
        v = following
        if v < 0 or v == first:
            break


@kernel
def _keep_better(begin, end, cycles, longest, weights, mate, entry, other, other_entry, decided):
    """Follow the paths that have an end in a range of vertices, or the cycles that begin there."""
    for v in range(begin, end):
        is_end = mate[v] < 0 or other[v] < 0
        if mate[v] == other[v] or decided[v] or is_end == cycles:
            continue
        by_other = other[v] >= 0
        gain = _gain(v, by_other, longest, weights, mate, entry, other, other_entry, decided)
        if gain > 0:
            _exchange(v, by_other, mate, entry, other, other_entry)


def keep_better(
    weights: np.ndarray,
    matching: tuple[np.ndarray, np.ndarray],
    other: tuple[np.ndarray, np.ndarray],
    beat: Callable[[], bool],
) -> None:
    """Give each part of two matchings, as `suitor.match` returns them, to the heavier of them.

    Parameters
    ----------
    weights : int64 or float64 array
        Of the entries.
    matching, other : (mate, entry)
        The first is changed in place. It is a matching also if `beat` stops the run.
    """
    if not len(weights):
        return
    count = len(matching[0])
    decided = np.zeros(count, np.uint8)
    for cycles in (False, True):
        for begin in range(0, count, _RANGE):
            _keep_better(
                begin, min(begin + _RANGE, count), cycles, LONGEST, weights,  # IN
                *matching, *other, decided,  # IN, OUT
            )  # fmt: skip
            if beat():
                return
