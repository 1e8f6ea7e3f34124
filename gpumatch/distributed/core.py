"""The engine for costs in row blocks on GPUs: a sparse core is solved, then all costs are priced.

`gpumatch.cuda.assignment.dense.core` says how. Each rank chooses and prices pairs of its own rows,
and the first rank solves the core. The ranks meet some ten times in a round, whatever the size.
What does not scale is the root's work on the core, and sending it what was chosen.

If the core does not suffice, `Feasible` finds by a maximum matching whether there is a full
assignment at all. Then the first rank solves the problem alone, if its GPU has room for all rows
(`Whole`). If not, that takes the trees of `gpumatch.distributed.trees`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import Costs, DenseCosts, SparseCosts
from gpumatch.cuda.assignment.dense import core
from gpumatch.cuda.assignment.dense import tuning as tunings
from gpumatch.dispatch.by_device import require_device_memory
from gpumatch.distributed.communicator import Communicator
from gpumatch.distributed.forests import Forests
from gpumatch.distributed.problem import Problem

__all__ = ["FEW_ROWS", "Core", "Feasible", "Search", "Whole"]

FEW_ROWS = 64
"""Up to so many rows the core would be most of the matrix."""


class Search(Protocol):
    """An algorithm with its problem; each method is called by all ranks together.

    Attributes
    ----------
    solved_by : str
        What has matched the rows, of several searches the last.
    """

    @property
    def solved_by(self) -> str: ...
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
        own = problem.own
        own.first, own.total = problem.rows.first, problem.rows.total
        own.longest = self.world.total(own.longest, "max")
        shape = problem.rows.total, problem.real

        def costs_of(indptr: Any, indices: Any, weights: Any) -> Costs:
            costs = SparseCosts((indptr, indices, weights, shape))
            return costs.problem(maximize=False, transposed=False)

        self.core = core.Core(
            core.Share(own, problem.limit, costs_of),
            _empty(problem),
            self.world,
            solve_sparse,
            _Errand(self.world),
            tuning=replace(tunings.DEFAULT, first=tunings.DEFAULT.again),
        )

    def solve(self) -> bool:
        """Match until every row is matched or cannot be; False when stopped."""
        is_priced = self.core.solve()
        self.problem.matched = self.core.matched
        if is_priced or self.world.stopped:
            return is_priced
        self.other = self.fallback()
        return self.other.solve()

    @property
    def solved_by(self) -> str:
        return "sparse core" if self.other is None else self.other.solved_by

    def solution(self) -> Solution:
        """All mates and duals, on all ranks, on the host."""
        if self.other is not None:
            return self.other.solution()
        solution = self.core.best.to_host()
        if not self.core.is_priced:
            self.problem.col_dual[: self.problem.real] = solution.col_dual
            solution.row_dual = self.problem.least_of_rows()
            solution.has_duals = True
        return solution

    def violator(self) -> tuple[np.ndarray, np.ndarray]:
        """As of `gpumatch.distributed.trees.Trees`: only its search finds that there is one."""
        assert self.other is not None
        return self.other.violator()


class Feasible:
    """A search that is made only if a maximum matching shows that it can match all rows.

    `forests` have the allowed pairs of this rank's rows, `search` makes the search.
    """

    def __init__(self, forests: Forests, search: Callable[[], Search], is_integer: bool) -> None:
        self.forests, self.search, self.is_integer = forests, search, is_integer
        self.other: Search | None = None

    def solve(self) -> bool:
        """As of the search; also True if a row cannot be matched."""
        with self.forests.world.step("matching"):
            self.forests.start()
            if not self.forests.search():
                return False
        if self.forests.matched < self.forests.rows.total:
            return True
        self.other = self.search()
        return self.other.solve()

    @property
    def solved_by(self) -> str:
        return "maximum matching" if self.other is None else self.other.solved_by

    def violator(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows outside the matching's vertex cover, and the columns inside."""
        if self.other is not None:
            return self.other.violator()
        rows, cols = map(self._whole, self.forests.cover())
        return np.flatnonzero(~rows), np.flatnonzero(cols)

    def solution(self) -> Solution:
        """All mates and duals, on all ranks, on the host; without the search, no duals."""
        if self.other is not None:
            return self.other.solution()
        shape = self.forests.rows.total, self.forests.cols.total
        solution = Solution.empty(shape, is_integer=self.is_integer)
        solution.row_to_col, solution.col_to_row = map(self._whole, self.forests.mates())
        return solution

    def _whole(self, own: np.ndarray) -> np.ndarray:
        return np.concatenate(self.forests.world.allgather(own))


class Whole:
    """The whole problem, solved by the first rank alone, if it has room for all rows.

    `costs` are those of this rank's rows, and `solve` is the engine of one rank, where they are.
    Without room, `search` makes a search that needs none.
    """

    def __init__(
        self,
        problem: Problem,
        costs: Costs,
        solve: Callable[[AssignmentTask], bool],
        search: Callable[[], Search],
    ) -> None:
        self.problem, self.costs, self.world = problem, costs, problem.world
        self.run, self.search = solve, search
        self.best = _empty(problem)
        self.other: Search | None = None

    def solve(self) -> bool:
        """As of the other searches; all rows can be matched."""
        if self._has_room():
            with self.world.step("gathering of all rows"):
                costs = self._gathered()
            with self.world.step("one rank"):
                has_ended = self._solve_at_root(costs)
            if has_ended or self.world.stopped:
                return has_ended
        self.other = self.search()
        return self.other.solve()

    @property
    def solved_by(self) -> str:
        return "one rank" if self.other is None else self.other.solved_by

    def violator(self) -> tuple[np.ndarray, np.ndarray]:
        """As of the search: there is none before."""
        assert self.other is not None
        return self.other.violator()

    def solution(self) -> Solution:
        """All mates and duals, on all ranks, on the host."""
        return self.best.to_host() if self.other is None else self.other.solution()

    def _has_room(self) -> bool:
        """True if the root has memory for all costs, twice while they are put together."""
        nbytes, has_room = self.world.total(int(self.costs.nbytes)), True
        if self.world.rank == core.ROOT and self.costs.on_device:
            try:
                require_device_memory(2 * nbytes, "all rows on one rank")
            except MemoryError:
                has_room = False
        return bool(self.world.total(int(has_room), "min"))

    def _gathered(self) -> Costs | None:
        """The costs of all rows, on the root."""
        xp, entries = self.problem.own.xp, self.costs.entries()
        if not isinstance(entries, tuple):
            dtype = np.result_type(*self.world.share(entries.dtype))
            values = self.world.gather(entries.astype(dtype, copy=False))
            return None if values is None else DenseCosts(xp.concatenate(values))
        indptr, *parts = entries
        every = [self.world.gather(part) for part in (indptr[1:] - indptr[:-1], *parts)]
        if self.world.rank != core.ROOT:
            return None
        lengths, indices, weights = (xp.concatenate(part) for part in every if part is not None)
        starts = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(lengths, dtype=np.int64)])
        shape = self.problem.rows.total, self.problem.real
        return SparseCosts((starts, indices, weights, shape))

    def _solve_at_root(self, costs: Costs | None) -> bool:
        """Let all ranks have the root's mates and duals; False when stopped, or short of memory."""
        best, world, has_ended = self.best, self.world, False
        if costs is not None:
            with contextlib.suppress(MemoryError):
                given = costs.problem(maximize=False, transposed=False)
                task = AssignmentTask(given, best, _Errand(world), self.problem.limit)
                has_ended = self.run(task)
        for name in ("row_to_col", "col_to_row", "row_dual", "col_dual"):
            setattr(best, name, world.broadcast(getattr(best, name), core.ROOT))
        best.has_duals = bool(world.total(int(best.has_duals), "max"))  # only the root's may be
        return bool(world.total(int(has_ended), "max"))


def _empty(problem: Problem) -> Solution:
    """No pairs, and prices of 0, where the rows are."""
    is_integer = problem.row_dual.dtype.kind == "i"
    shape = problem.rows.total, problem.real
    return Solution.empty(shape, is_integer=is_integer, xp=problem.own.xp)


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
