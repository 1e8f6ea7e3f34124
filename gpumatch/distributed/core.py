"""The engine for dense costs in row blocks: a sparse core is solved, then all costs are priced.

Of a large matrix few pairs matter. So (Lee and Orlin, 1993)

1. each rank chooses the `FIRST` pairs of each of its rows with the least reduced costs. For this
   the columns' duals are their least slacks, if no column may stay unmatched;
2. the first rank, the root, puts the pairs of all ranks together, and solves this sparse problem;
3. each rank compares all its costs with the root's duals. Up to `MORE` pairs of a row that undercut
   them go to the root, which puts them into the core, and goes on from its pairs and duals.

It ends when no pair undercuts the duals: then these are optimal for all costs. A round reads each
rank's costs once, and the ranks meet some ten times in it, whatever the size. What does not scale
is the root's work on the core, and sending it what was chosen.

If the core has no full assignment, four times as many pairs of each row are chosen, up to `MOST`
in all. If that does not help, or `ROUNDS` do not suffice, `fallback` solves the problem: the trees
of `gpumatch.distributed.trees`.

Reference: Lee, Orlin, *QuickMatch: a very fast algorithm for the assignment problem*, MIT Sloan
working paper 3547-93, 1993.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from gpumatch.arrays import any_true, array_of
from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import SparseCosts
from gpumatch.distributed.communicator import Communicator
from gpumatch.distributed.problem import Problem

__all__ = ["FEW_ROWS", "Core"]

FIRST, MORE = 32, 16
AGAIN = 4
"""Times as many if there is no full assignment."""
MOST = 2**26
"""Pairs chosen at first, at most."""
ROUNDS = 64
FEW_ROWS = 64
"""Up to so many rows the core would be most of the matrix."""
ROOT = 0


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
        self.problem, self.world, self.own = problem, problem.world, problem.own
        self.xp = problem.own.xp
        self.solve_sparse, self.fallback = solve_sparse, fallback
        self.other: Search | None = None
        self.is_priced = False
        number = problem.row_dual.dtype
        self.best = Solution.empty(
            (problem.rows.total, problem.real), is_integer=number.kind == "i", xp=self.xp
        )
        self._keys: Any = None  # of the core's pairs, on the root
        self._weights: Any = None

    def solve(self) -> bool:
        """Match until every row is matched or cannot be; False when stopped."""
        world = self.world
        most = FIRST
        with world.step("first choice"):
            chosen = self._choose(most)
        for _ in range(ROUNDS):
            with world.step("gathering"):
                self._gather(chosen)
            with world.step("core"):
                self._solve_core()
            if world.stopped:
                return False
            if self.problem.limit is None and any_true(self.best.row_to_col < 0):
                if not self._has_more(AGAIN * most):
                    break
                most *= AGAIN
                with world.step("first choice"):
                    chosen = self._choose(most)
                continue
            with world.step("pricing"):
                chosen = self._undercutting()
                found = world.total(len(chosen[0]))
            world.control.phase(found=0, matched=self._matched(), step="pricing", added=found)
            if not found:
                self.is_priced = True
                return True
        self.other = self.fallback()
        return self.other.solve()

    def solution(self) -> Solution:
        """All mates and duals, on all ranks, on the host."""
        if self.other is not None:
            return self.other.solution()
        solution = self.best.to_host()
        if not self.is_priced:
            self.problem.col_dual[: self.problem.real] = solution.col_dual
            solution.row_dual = self.problem.least_of_rows()
        return solution

    def violator(self) -> tuple[np.ndarray, np.ndarray]:
        """As of `gpumatch.distributed.trees.Trees`: only its search finds that there is one."""
        assert self.other is not None
        return self.other.violator()

    def _has_more(self, most: int) -> bool:
        """Whether so many pairs of each row may be chosen, and are more than a quarter of it."""
        a_row = min(self.own.most, AGAIN * self.problem.real)
        return most <= a_row and most * self.problem.rows.total <= MOST

    # -- what each rank does ---------------------------------------------------------------------

    def _choose(self, most: int) -> tuple[Any, Any]:
        """The pairs of each row that are the cheapest if the columns' duals are their slacks."""
        xp, problem = self.xp, self.problem
        number = problem.row_dual.dtype
        price = xp.zeros(problem.real, number)
        bound = xp.full(self.own.count, problem.far)
        if problem.is_square:
            least = xp.zeros(self.own.count, number)
            rows, _, costs = self.own.nearest(price, bound, 1)
            least[rows] = costs
            slack = self.world.allreduce(self.own.least_of_columns(least), "min")
            price = xp.where(slack < problem.far, slack, 0)
        elif problem.limit is not None:
            bound = xp.full(self.own.count, problem.limit, number)
        self._keys = None
        return self._named(self.own.nearest(price, bound, most))

    def _undercutting(self) -> tuple[Any, Any]:
        """The pairs that undercut the duals most."""
        bound = self.xp.ascontiguousarray(self.best.row_dual[self.problem.rows.slice])
        return self._named(self.own.nearest(self.best.col_dual, bound, MORE))

    def _named(self, pairs: tuple[Any, Any, Any]) -> tuple[Any, Any]:
        """A number for each pair of the whole problem, by rows, and its costs."""
        rows, cols, costs = pairs
        rows = rows.astype(np.int64) + self.problem.rows.first
        return rows * self.problem.real + cols, costs.astype(self.problem.row_dual.dtype)

    def _gather(self, chosen: tuple[Any, Any]) -> None:
        """Put what all ranks have chosen into the root's core."""
        keys, weights = (self.world.gather(part, ROOT) for part in chosen)
        if keys is None or weights is None:
            return
        if self._keys is not None:
            keys, weights = [self._keys, *keys], [self._weights, *weights]
        every = self.xp.concatenate(keys)
        order = self.xp.argsort(every)
        self._keys, self._weights = every[order], self.xp.concatenate(weights)[order]

    # -- what the root does ----------------------------------------------------------------------

    def _solve_core(self) -> None:
        """Let all ranks have the mates and duals of an optimal assignment of the core's pairs."""
        best, world = self.best, self.world
        if world.rank == ROOT:
            self.solve_sparse(
                AssignmentTask(self._costs(), best, _Errand(world), self.problem.limit)
            )
        for name in ("row_to_col", "col_to_row", "row_dual", "col_dual"):
            setattr(best, name, world.broadcast(getattr(best, name), ROOT))
        self.problem.matched = self._matched()

    def _costs(self) -> Any:
        """The core, as a problem."""
        xp, ncols = self.xp, self.problem.real
        nrows = self.problem.rows.total
        starts = xp.arange(nrows + 1, dtype=np.int64) * ncols
        indptr = xp.searchsorted(self._keys, starts)
        cols = (self._keys % ncols).astype(np.int32)
        costs = SparseCosts((indptr, cols, self._weights, (nrows, ncols)))
        return costs.problem(maximize=False, transposed=False)

    def _matched(self) -> int:
        return int(array_of(np, self.best.row_to_col >= 0).sum())


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
