"""The engine for costs that are divided among ranks: alternating trees, minima reduced.

It is the search of `gpumatch.cpu.assignment.hungarian.tree`, level by level, whose header states
the times and why it ends. Trees grow from all unmatched rows at once, so that a search gives many
augmenting paths. Rows are divided among the ranks. A level is

1. `expand`: each rank offers the columns the way through its own rows of the frontier;
2. `reduce`: the least offers are reduced over the ranks;
3. `advance`: columns that are tight join, and their mates are the next frontier. If none is tight,
   the duals rise first, or the search has ended.

All else is the same on every rank, and needs no communication: dual updates, joining, augmenting.
`Trees` asks for these steps. `gpumatch.distributed.levels` takes them on the host, and
`gpumatch.cuda.distributed.trees` on a GPU, where the host looks now and then only: in each
search after 1, 2, 4 levels and so on, up to `most`. Levels after the end of a search change
nothing, and there are fewer of them than before it.

References
----------
Date, Nagi, *GPU-accelerated Hungarian algorithms for the Linear Assignment Problem*, Parallel
Computing 57, 2016: the search; its section 5 gathers at a root what is reduced here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from gpumatch.contracts import Solution
from gpumatch.distributed.problem import Problem

__all__ = ["FOUND", "GROWING", "STUCK", "Levels", "Trees"]

GROWING, FOUND, STUCK = range(3)


class Levels(Protocol):
    """The steps of a search. All ranks take each together, and find the same.

    `plant` and `look` tell the control how far the search is. From then on nothing may fail on one
    rank alone, until all have taken their levels.

    Attributes
    ----------
    name : str
        For the statistics.
    most : int
        Levels between two looks, at most.
    """

    name: str
    most: int

    def plant(self) -> int:
        """Begin a search with all unmatched rows as roots; how many there are."""

    def expand(self) -> None:
        """Offer all columns the way through this rank's rows of the frontier."""

    def reduce(self) -> None:
        """Let ``slack`` be the least that any rank has offered."""

    def advance(self) -> None:
        """Let columns that are tight join with their mates; raise the duals if there is none."""

    def look(self) -> int:
        """Wait for the levels so far. The search is

        - FOUND if there are leaves, and no more pairs are tight;
        - STUCK if no column can join any more;
        - else GROWING.
        """

    def augment(self) -> None:
        """Write the duals, and augment one path a tree that has a leaf."""

    def counts(self) -> dict[str, int]:
        """Levels and dual updates of the search, and rows in its trees."""

    def violator(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and real columns in trees."""

    def write(self) -> None:
        """Let the problem have the mates and duals."""


class Trees:
    """The search; `levels` makes its steps of a problem with duals and first pairs."""

    def __init__(self, problem: Problem, levels: Callable[[Problem], Levels]) -> None:
        self.problem, self.world, self.make = problem, problem.world, levels

    def solve(self) -> bool:
        """Match until every row is matched or cannot be; False when stopped."""
        with self.world.step("initial reduction"):
            self.problem.reduce()
        with self.world.step("first assignments"):
            self.problem.match_tight()
        self.levels = self.make(self.problem)
        has_ended = self._search()
        self.levels.write()
        return has_ended

    @property
    def solved_by(self) -> str:
        """What has matched the rows."""
        return self.levels.name

    def solution(self) -> Solution:
        """All mates and duals, on all ranks."""
        return self.problem.solution()

    def violator(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows, and the fewer columns that they may have, if some row cannot be matched."""
        return self.levels.violator()

    def _search(self) -> bool:
        """Search and augment until every row is matched or cannot be; False when stopped."""
        levels, world, problem = self.levels, self.world, self.problem
        is_wanting = levels.plant() > 0
        while is_wanting:
            with world.step("forward pass"):
                stage = self._grow()
            if world.stopped:
                return False
            if stage == STUCK:
                return True
            counts, before = levels.counts(), problem.matched
            with world.step("reverse and augmentation"):
                levels.augment()
                is_wanting = levels.plant() > 0
            world.control.phase(found=problem.matched - before, matched=problem.matched, **counts)
        return True

    def _grow(self) -> int:
        """Take levels until the search ends or a rank wants to stop; its stage."""
        levels, ahead, stage = self.levels, 1, GROWING
        while stage == GROWING and not self.world.stopped:
            for _ in range(ahead):
                levels.expand()
                levels.reduce()
                levels.advance()
            stage = levels.look()
            ahead = min(2 * ahead, levels.most)
        return stage
