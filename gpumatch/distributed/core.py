"""The engine for dense costs in row blocks: a sparse core is solved, then all costs are priced.

`gpumatch.cuda.assignment.core` says how. Each rank chooses and prices pairs of its own rows, and
the first rank solves the core. The ranks meet some ten times in a round, whatever the size. What
does not scale is the root's work on the core, and sending it what was chosen.

If the core does not suffice, `fallback` solves the problem: the trees of
`gpumatch.distributed.trees`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from gpumatch.contracts import AssignmentTask, Costs, Solution
from gpumatch.costs import SparseCosts
from gpumatch.cuda.assignment import core
from gpumatch.distributed.communicator import Communicator
from gpumatch.distributed.problem import Problem

__all__ = ["FEW_ROWS", "Core"]

FEW_ROWS = 64
"""Up to so many rows the core would be most of the matrix."""


class Search(Protocol):
    """What solves the problem if the core does not."""

    def solve(self) -> bool: ...
    def violator(self) -> tuple[Any, Any]: ...
    def solution(self) -> Solution: ...


class Core:
    """The search; `solve_sparse` is an algorithm for sparse costs, where the rows are.

    Arrays of vertices are those of the library of the rows: of NumPy, or of CuPy.
    """

    def __init__(
        self,
        problem: Problem,
        solve_sparse: Callable[[AssignmentTask], bool],
        fallback: Callable[[], Search],
    ) -> None:
        self.problem, self.world, self.fallback = problem, problem.world, fallback
        self.other: Search | None = None
        own, is_integer = problem.own, problem.row_dual.dtype.kind == "i"
        own.first, own.total = problem.rows.first, problem.rows.total
        shape = problem.rows.total, problem.real

        def costs_of(indptr: Any, indices: Any, weights: Any) -> Costs:
            costs = SparseCosts((indptr, indices, weights, shape))
            return costs.problem(maximize=False, transposed=False)

        self.core = core.Core(
            core.Share(own, problem.limit, costs_of),
            Solution.empty(shape, is_integer=is_integer, xp=own.xp),
            self.world,
            solve_sparse,
            _Errand(self.world),
        )

    def solve(self) -> bool:
        """Match until every row is matched or cannot be; False when stopped."""
        is_priced = self.core.solve()
        self.problem.matched = self.core.matched
        if is_priced or self.world.stopped:
            return is_priced
        self.other = self.fallback()
        return self.other.solve()

    def solution(self) -> Solution:
        """All mates and duals, on all ranks, on the host."""
        if self.other is not None:
            return self.other.solution()
        solution = self.core.best.to_host()
        if not self.core.is_priced:
            self.problem.col_dual[: self.problem.real] = solution.col_dual
            solution.row_dual = self.problem.least_of_rows()
        return solution

    def violator(self) -> tuple[np.ndarray, np.ndarray]:
        """As of `gpumatch.distributed.trees.Trees`: only its search finds that there is one."""
        assert self.other is not None
        return self.other.violator()


class _Errand:
    """The control of what the root does alone: it tells no rank to stop before they meet again."""

    def __init__(self, world: Communicator) -> None:
        self.world = world
        self.stopped = False
        self.seconds = world.control.seconds

    def tick(self, matched: int) -> bool:
        self.stopped = self.world.wants_to_stop(matched)
        return self.stopped

    def phase(self, *, found: int, matched: int, levels: int = 0, **more: Any) -> None:
        self.world.control.phase(found=found, matched=matched, levels=levels, **more)

    def part(self, name: str) -> AbstractContextManager[None]:
        return self.world.control.part(name)
