"""Karp–Sipser matching of any graph: a vertex of degree 1 takes its only neighbour.

As `gpumatch.cpu.matching.karp_sipser`, with one side instead of two: the words ``live`` and the
piles are those of that module, and all vertices are written as themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpumatch.contracts import GeneralMatchingTask
from gpumatch.cpu.matching.karp_sipser import (
    NEIGHBOURS,
    ONE,
    best_neighbour,
    by_degree,
    enter,
    retire,
    retire_matched,
)
from gpumatch.cpu.matching.sides import BUDGET, blocks
from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["run"]

_VERTEX = 0  # the form of a vertex on the piles: itself


@kernel
def _match(indptr, indices, order, budget, mate, live, piles, heights, progress):
    """Match until nothing is left (True) or the budget is spent; progress: order read, matched."""
    work = 0
    while work < budget:
        work += 1
        if heights[0] > 0:
            heights[0] -= 1
            v = piles[0, heights[0]]
        elif heights[1] > 0:
            heights[1] -= 1
            v = piles[1, heights[1]]
        elif progress[0] < len(order):
            v = order[progress[0]]
            progress[0] += 1
        else:
            return True
        vertex = np.int64(v)
        if mate[vertex] >= 0 or live[vertex] < ONE:
            continue
        if live[vertex] >> 32 == 1:
            other = live[vertex] & NEIGHBOURS
        else:
            other = best_neighbour(vertex, indptr, indices, live, mate)
        mate[vertex] = other
        mate[other] = vertex
        progress[1] += 1
        work += retire(vertex, indptr, indices, _VERTEX, live, piles, heights)
        work += retire(other, indptr, indices, _VERTEX, live, piles, heights)
    return False


def run(task: GeneralMatchingTask, budget: int = BUDGET) -> bool:
    """Extend the matching to a maximal one; True unless ``control`` stopped it. One thread."""
    lists, mate, control = (task.indptr, task.indices), task.mate, task.control
    n = mate.size
    live, piles, heights = np.empty(n, np.int64), np.empty((2, n), np.int32), np.zeros(2, np.int64)
    progress = np.array([0, np.count_nonzero(mate >= 0) // 2], np.int64)
    for first, last in blocks(task.indptr):
        if control.tick(int(progress[1])):
            return False
        enter(
            first, last, *lists, _VERTEX,  # IN
            live, piles, heights,  # OUT
        )  # fmt: skip
    if progress[1]:
        for first, last in blocks(task.indptr):
            if control.tick(int(progress[1])):
                return False
            retire_matched(
                first, last, mate, *lists, _VERTEX,  # IN
                live, piles, heights,  # OUT
            )  # fmt: skip
    for order in _orders(task, live):
        while not _match(
            *lists, order, budget,  # IN
            mate, live, piles, heights, progress,  # OUT
        ):  # fmt: skip
            if control.tick(int(progress[1])):
                return False
        progress[0] = 0
    return True


def _orders(task: GeneralMatchingTask, live: np.ndarray) -> Iterator[np.ndarray]:
    """First none, so that only what is on the piles is matched; then all vertices that are left."""
    yield np.empty(0, np.int32)
    yield by_degree(task.mate, live, task.seed)
