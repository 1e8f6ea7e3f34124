"""Assignment by a sparse core: solve a few pairs of each row, then price all costs.

In a large matrix few pairs matter (Lee and Orlin, 1993). So the search has three steps:

1. Choose some pairs of each row with the least reduced costs. This needs duals of the columns:
   their least slacks if no column may stay unmatched, else 0; or better ones, from `others`.
2. Solve this sparse core by an algorithm for sparse costs.
3. Price all costs: find the pairs with a negative slack at the duals of the core. A few of them in
   each row (`more` of the tuning) join the core. Solve it again, from its pairs and duals.

The search ends when no slack is negative. Then the duals are optimal for all costs. A round reads
the costs once.

If the core has no full assignment, or very many slacks are negative, the search begins again with
the next duals. With the last duals, it chooses four times as many pairs of each row instead, up to
`most` pairs in all.

The rows may be divided among ranks (`gpumatch.distributed.core`). Each rank chooses and prices
pairs of its own rows. The first rank, the root, solves the core. A single device is `Alone`.

Reference: Lee, Orlin, *QuickMatch: a very fast algorithm for the assignment problem*, MIT Sloan
working paper 3547-93, 1993.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Costs, Solution
from gpumatch.cuda.assignment.dense import tuning as tunings
from gpumatch.cuda.assignment.dense.tuning import Tuning
from gpumatch.numeric.arrays import any_true, array_module

__all__ = ["BYTES_A_PAIR", "Alone", "Core", "Ranks", "Rows", "Share"]

ROOT = 0
"""The rank that solves the core."""
BYTES_A_PAIR = 128
"""The memory for each pair while pairs are chosen and gathered, without that of the solver."""


class Rows(Protocol):
    """The rows of the matrix on one rank; `ArrayRows` documents each member."""

    first: int
    count: int
    far: Any
    most: int
    longest: int

    def nearest(self, col_dual: Any, bound: Any, most: int) -> tuple[Any, Any, Any]: ...
    def at(self, rows: Any, cols: Any) -> Any: ...
    def least_of_rows(self, col_dual: Any) -> Any: ...
    def least_of_columns(self, row_dual: Any) -> Any: ...


class Ranks(Protocol):
    """The ranks that share the rows; `gpumatch.distributed.communicator` documents them."""

    rank: int

    @property
    def control(self) -> Control: ...
    @property
    def stopped(self) -> bool: ...
    def step(self, name: str) -> AbstractContextManager[None]: ...
    def gather(self, array: Any, root: int = 0) -> list[Any] | None: ...
    def broadcast(self, array: Any, root: int = 0) -> Any: ...
    def allreduce(self, array: Any, how: str) -> Any: ...
    def total(self, number: Any, how: str = "sum") -> Any: ...


class Alone:
    """A rank that has all rows."""

    rank = ROOT

    def __init__(self, control: Control) -> None:
        self._control = control

    @property
    def control(self) -> Control:
        return self._control

    @property
    def stopped(self) -> bool:
        return self._control.stopped

    def step(self, name: str) -> AbstractContextManager[None]:
        return self._control.part(name)

    def gather(self, array: Any, root: int = ROOT) -> list[Any]:
        return [array]

    def broadcast(self, array: Any, root: int = ROOT) -> Any:
        return array

    def allreduce(self, array: Any, how: str) -> Any:
        return array

    def total(self, number: Any, how: str = "sum") -> Any:
        return number


class Share(NamedTuple):
    """The rows of one rank, with the data of the problem that all ranks have.

    Attributes
    ----------
    own : Rows
        The rows of this rank.
    limit : int or float, optional
        As of an `AssignmentTask`.
    costs_of : callable
        ``costs_of(indptr, indices, weights)`` makes the `Costs` of the core.
    """

    own: Rows
    limit: float | None
    costs_of: Callable[[Any, Any, Any], Costs]


class Core:
    """The search by a sparse core.

    Parameters
    ----------
    share : Share
    best : Solution
        The pairs and duals of all rows to begin from, and the result at the end, on every rank. Its
        arrays are of the library of the rows.
    ranks : Ranks
    solve_sparse : callable
        An algorithm for sparse costs on the device of the rows. It is called on the root.
    control : Control
        The control of that algorithm.
    others : sequence of callables
        Each call writes better duals into `best`. They are called in order, as far as needed.
    tuning : Tuning, optional
        How many pairs of each row are chosen, and when a choice of duals is given up.
    """

    def __init__(
        self,
        share: Share,
        best: Solution,
        ranks: Ranks,
        solve_sparse: Callable[[AssignmentTask], bool],
        control: Control,
        others: Sequence[Callable[[], None]] = (),
        tuning: Tuning | None = None,
    ) -> None:
        self.share, self.own, self.best, self.ranks = share, share.own, best, ranks
        self.solve_sparse, self.control = solve_sparse, control
        self.others, self.tuning = others, tuning or tunings.DEFAULT
        self.xp = array_module(best.row_to_col)
        self.nrows, self.ncols = best.row_to_col.size, best.col_to_row.size
        self.must_match = share.limit is None
        self.is_square = self.must_match and self.nrows == self.ncols
        self.is_priced = False
        self._keys: Any = None  # row * ncols + column of the core's pairs, on the root
        self._weights: Any = None

    @property
    def rows(self) -> slice:
        """The range of this rank's rows among all rows."""
        return slice(self.own.first, self.own.first + self.own.count)

    def solve(self) -> bool:
        """Match the rows; True if the duals prove the result, False if stopped or given up."""
        ranks = self.ranks
        self.best.has_duals = self.best.are_fair = False
        with ranks.step("first duals"):
            col_dual = self._first_duals()
        if self._solve_from(col_dual, self.tuning.first, is_last=not self.others):
            return True
        for find in self.others:
            if ranks.stopped:
                return False
            with ranks.step("better duals"):
                find()
                if ranks.stopped:
                    return False
                col_dual = self._tightened()
            if self._solve_from(col_dual, self.tuning.again, is_last=find is self.others[-1]):
                return True
        return False

    def _solve_from(self, col_dual: Any, most: int, *, is_last: bool) -> bool:
        """Solve with `most` pairs of each row, chosen by these duals of the columns."""
        ranks, tuning = self.ranks, self.tuning
        chosen = self._choose(col_dual, most)
        for _ in range(tuning.rounds):
            with ranks.step("gathering"):
                self._gather(chosen)
            with ranks.step("core"):
                is_solved = self._solve_core()
            if ranks.stopped:
                return False
            if not is_solved:
                if not (is_last and self._has_more(tuning.growth * most)):
                    return False
                most *= tuning.growth
                chosen = self._choose(col_dual, most)
                continue
            with ranks.step("pricing"):
                chosen = self._undercutting()
                found = ranks.total(len(chosen[0]))
            ranks.control.phase(found=0, matched=self.matched, step="pricing", added=found)
            if not found:
                self.is_priced = self.best.has_duals = True
                return True
            if found > tuning.too_many * self.nrows and not is_last:
                return False
        return False

    def settle(self) -> None:
        """Lower the duals of this rank's rows until no slack is negative.

        Before pricing, the duals of the core are feasible for its own pairs only. Pricing finds
        slacks of floats up to rounding.
        """
        is_integer = self.best.row_dual.dtype.kind == "i"
        if self.is_priced and is_integer:
            return
        xp, best, limit = self.xp, self.best, self.share.limit
        if self.is_square:
            best.col_dual -= best.col_dual.max()
        else:
            xp.minimum(best.col_dual, 0, out=best.col_dual)
        least = self.own.least_of_rows(best.col_dual)
        if limit is not None:
            least = xp.minimum(least, best.row_dual.dtype.type(limit))
        best.row_dual[self.rows] = xp.where(least < self.own.far, least, 0)
        best.has_duals = best.are_fair = True

    @property
    def matched(self) -> int:
        return self.xp.flatnonzero(self.best.row_to_col >= 0).size

    def _has_more(self, most: int) -> bool:
        """True if `most` pairs of each row may be chosen, which is at most four times its pairs."""
        a_row = min(self.own.most, self.tuning.growth * self.own.longest)
        return most <= a_row and most * self.nrows <= self.tuning.most

    # -- what each rank does ---------------------------------------------------------------------

    def _first_duals(self) -> Any:
        """Return the first duals of the columns.

        They are the given ones if any is not 0. Otherwise they are the least slacks if no column
        may stay unmatched, else 0.
        """
        xp, given = self.xp, self.best.col_dual
        if any_true(given != 0):
            return given.copy()
        col_dual = xp.zeros(self.ncols, given.dtype)
        if self.is_square:
            col_dual = self._least_slacks(col_dual, col_dual.dtype.type(0))
        return col_dual

    def _tightened(self) -> Any:
        """Return the column duals of the solution, raised until each column has a tight pair.

        An auction may leave columns with duals so low that all their slacks are positive.
        """
        col_dual = self.best.col_dual
        if self.is_square:
            col_dual -= col_dual.max()
            col_dual[:] = self._least_slacks(col_dual, col_dual.min())
        return col_dual.copy()

    def _least_slacks(self, col_dual: Any, lowest: Any) -> Any:
        """Return the least slack of each column, at the largest row duals that column duals allow.

        A column without pairs keeps its dual. No given dual is below `lowest`.
        """
        xp, own = self.xp, self.own
        least = own.least_of_rows(col_dual)
        least = xp.where(least < own.far, least + lowest, 0)
        slack = self.ranks.allreduce(own.least_of_columns(least), "min")
        return xp.where(slack < own.far, slack + lowest, col_dual)

    def _choose(self, col_dual: Any, most: int) -> tuple[Any, Any]:
        """Return the pairs of each row with the least reduced costs, and those of the matching."""
        xp, own = self.xp, self.own
        with self.ranks.step("first choice"):
            bound = xp.full(own.count, own.far)
            if not self.must_match:
                bound = xp.full(own.count, self.share.limit, col_dual.dtype)
            rows, cols, costs = own.nearest(col_dual, bound, most)
            mates = self.best.row_to_col[self.rows]
            matched = xp.flatnonzero(mates >= 0)
            matched_costs = own.at(matched, mates[matched])
            pairs = (rows, matched), (cols, mates[matched]), (costs, matched_costs)
            self._keys = None
            return self._named(tuple(map(xp.concatenate, pairs)))

    def _undercutting(self) -> tuple[Any, Any]:
        """Return the pairs with the most negative slacks."""
        bound = self.xp.ascontiguousarray(self.best.row_dual[self.rows])
        return self._named(self.own.nearest(self.best.col_dual, bound, self.tuning.more))

    def _named(self, pairs: Any) -> tuple[Any, Any]:
        """Return the keys and the costs of pairs, by rows."""
        rows, cols, costs = pairs
        rows = rows.astype(np.int64) + self.own.first
        return rows * self.ncols + cols, costs.astype(self.best.row_dual.dtype)

    def _gather(self, chosen: tuple[Any, Any]) -> None:
        """Put the pairs that all ranks have chosen into the root's core."""
        keys, weights = (self.ranks.gather(part, ROOT) for part in chosen)
        if keys is None or weights is None:
            return
        if self._keys is not None:
            keys, weights = [self._keys, *keys], [self._weights, *weights]
        every = self.xp.concatenate(keys)
        order = self.xp.argsort(every)
        every = every[order]
        is_first = self.xp.ones(every.size, bool)
        is_first[1:] = every[1:] != every[:-1]
        self._keys, self._weights = every[is_first], self.xp.concatenate(weights)[order[is_first]]

    # -- what the root does ----------------------------------------------------------------------

    def _solve_core(self) -> bool:
        """Solve the core, and send its mates and duals to all ranks.

        Return True if the core has an assignment of all rows that must be matched.
        """
        best, ranks = self.best, self.ranks
        is_solved = False
        if ranks.rank == ROOT and self._reaches_enough():
            costs = self._costs()
            own = Solution(*best.mates, *best.duals)  # its has_duals is about the core alone
            task = AssignmentTask(costs, own, self.control, self.share.limit)
            is_solved = self.solve_sparse(task)
            is_solved = is_solved and not (self.must_match and any_true(best.row_to_col < 0))
        for name in ("row_to_col", "col_to_row", "row_dual", "col_dual"):
            setattr(best, name, ranks.broadcast(getattr(best, name), ROOT))
        return bool(ranks.total(int(is_solved), "max"))

    def _reaches_enough(self) -> bool:
        """True if the core's pairs are in as many columns as there are rows to match."""
        if not self.must_match:
            return True
        is_reached = self.xp.zeros(self.ncols, bool)
        is_reached[self._keys % self.ncols] = True
        return self.xp.flatnonzero(is_reached).size >= self.nrows

    def _costs(self) -> Costs:
        """Return the costs of the core."""
        xp = self.xp
        starts = xp.arange(self.nrows + 1, dtype=np.int64) * self.ncols
        indptr = xp.searchsorted(self._keys, starts)
        cols = (self._keys % self.ncols).astype(np.int32)
        return self.share.costs_of(indptr, cols, self._weights)
