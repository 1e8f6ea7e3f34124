"""What all searches that go by phases share.

`run_phases` repeats phases until one finds no augmenting path. `DisjointSearches` are the phases in
which workers search from one unmatched vertex after the other, and each search claims the far
vertices that it is the first to reach:

    claimed[v]     last phase in which far v was claimed
    next_root[0]   roots handed out; found[k] paths found by worker k
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from gpumatch.contracts import Control, MatchingTask
from gpumatch.cpu.matching.sides import Side, free_vertices
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.numeric.arrays import count_matched

__all__ = ["DisjointSearches", "PhasedSearch", "run_phases"]


class PhasedSearch(Protocol):
    """A search that keeps its arrays from phase to phase."""

    @property
    def levels(self) -> int:
        """Levels of the last phase; 0 for searches that have none."""

    def phase(self, control: Control, matched: int) -> int:
        """Augment along the paths of one phase: how many, -1 if the control stopped it.

        A phase that finds none proves the matching maximum.
        """


class DisjointSearches:
    """The arrays of searches from one side, kept from phase to phase."""

    levels = 0

    def __init__(self, side: Side, workers: Workers) -> None:
        self.side, self.workers = side, workers
        self.phases = 0
        self._claimed = np.zeros(len(side.far_mate), np.int32)
        self._roots = free_vertices(side)

    def _begin(self) -> None:
        """Begin a phase: its roots are the vertices that are still unmatched."""
        self.phases += 1
        self._roots = self._roots[self.side.mate[self._roots] < 0]

    def _search(
        self,
        kernel: Callable[[int, np.ndarray, np.ndarray], bool],
        control: Control,
        matched: int,
    ) -> int:
        """Let all workers search from the roots: the paths found, -1 if ``control`` stopped it.

        ``kernel(worker, next_root, found)`` ends early, with False, if its budget is spent.
        """
        next_root = np.zeros(1, np.int64)
        found = np.zeros(self.workers.threads, np.int64)

        def search(worker: int) -> bool:
            return kernel(worker, next_root, found)

        while not self.workers.run(search, len(self._roots)):
            if control.tick(matched + int(found.sum())):
                return -1
        return int(found.sum())


def run_phases(search: PhasedSearch, task: MatchingTask) -> bool:
    """Extend the matching to a maximum one; True unless the control stopped it."""
    control, matched = task.control, count_matched(task.row_to_col)
    found = -1
    while found:
        if control.tick(matched):
            return False
        found = search.phase(control, matched)
        if found < 0:
            return False
        matched += found
        control.phase(levels=search.levels, found=found, matched=matched)
    return True
