"""The loop of all searches that go by phases: repeat until a phase finds no augmenting path."""

from __future__ import annotations

from typing import Protocol

from gpumatch.arrays import count_matched
from gpumatch.contracts import Control, MatchingTask

__all__ = ["PhasedSearch", "run_phases"]


class PhasedSearch(Protocol):
    """A search that keeps its arrays from phase to phase."""

    @property
    def levels(self) -> int:
        """Levels of the last phase; 0 for searches that have none."""

    def phase(self, control: Control, matched: int) -> int:
        """Augment along the paths of one phase: how many, -1 if the control stopped it.

        A phase that finds none proves the matching maximum.
        """


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
