"""Costs by a sparse core: some pairs of each row are solved, then all costs are priced.

Of a large matrix few pairs matter. So (Lee and Orlin, 1993)

1. some pairs of each row with the least reduced costs are chosen. For this the columns need duals:
   their least slacks if no column may stay unmatched, else 0; or better ones, from `others`;
2. this sparse problem is solved, by an algorithm for sparse costs;
3. all costs are compared with its duals. Up to `MORE` pairs of a row that undercut them join the
   core, and it is solved again, from the pairs and duals that it has.

It ends when no pair undercuts the duals: then these are optimal for all costs. A round reads the
costs once.

If the core has no full assignment, or very many pairs undercut its duals, it begins again from
the next duals. With the last ones, four times as many pairs of each row are chosen, up to `MOST`
in all.

The rows may be divided among ranks (`gpumatch.distributed.core`). Each chooses and prices pairs of
its own rows, and the first rank, the root, solves the core. One device alone is a rank of one:
`Alone`.

Reference: Lee, Orlin, *QuickMatch: a very fast algorithm for the assignment problem*, MIT Sloan
working paper 3547-93, 1993.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Costs, Solution
from gpumatch.numeric.arrays import any_true, array_module

__all__ = ["BYTES_A_PAIR", "FIRST", "Alone", "Core", "Ranks", "Rows", "Share"]

FIRST, MORE = 32, 16
TOO_MANY = 4
"""Pairs a row that undercut the duals: these are so bad that others are better."""
AGAIN = 4
"""Times as many if there is no full assignment."""
MOST = 2**26
"""Pairs chosen at first, at most."""
ROUNDS = 64
ROOT = 0
BYTES_A_PAIR = 128
"""Of memory while pairs are chosen and put into the core, beside the solver's own."""


class Rows(Protocol):
    """Rows of the matrix that one rank has, as `ArrayRows` says of each name."""

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
    """Those who share the rows, as `gpumatch.distributed.communicator` has them."""

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
    """The rows of a rank, and what all ranks know of the problem.

    Attributes
    ----------
    own : Rows
    limit : int or float, optional
        As of an `AssignmentTask`.
    costs_of : callable
        The costs of the core from its CSR: (indptr, indices, weights).
    """

    own: Rows
    limit: float | None
    costs_of: Callable[[Any, Any, Any], Costs]


class Core:
    """The search.

    Parameters
    ----------
    share : Share
    best : Solution
        With the mates and duals to begin from, of all rows. It has the result in the end, on all
        ranks, in arrays of the library of the rows.
    ranks : Ranks
    solve_sparse : callable
        An algorithm for sparse costs, where the rows are; called on the root.
    control : Control
        For that algorithm.
    others : sequence of callables
        What finds better duals to begin from, one after the other, and puts them into `best`.
    first : int
        Pairs of each row that are chosen by the first duals.
    """

    def __init__(
        self,
        share: Share,
        best: Solution,
        ranks: Ranks,
        solve_sparse: Callable[[AssignmentTask], bool],
        control: Control,
        others: Sequence[Callable[[], None]] = (),
        first: int = FIRST,
    ) -> None:
        self.share, self.own, self.best, self.ranks = share, share.own, best, ranks
        self.solve_sparse, self.control = solve_sparse, control
        self.others, self.first = others, first
        self.xp = array_module(best.row_to_col)
        self.nrows, self.ncols = best.row_to_col.size, best.col_to_row.size
        self.must_match = share.limit is None
        self.is_square = self.must_match and self.nrows == self.ncols
        self.is_priced = False
        self._keys: Any = None  # of the core's pairs, on the root
        self._weights: Any = None

    @property
    def rows(self) -> slice:
        """This rank's, of all rows."""
        return slice(self.own.first, self.own.first + self.own.count)

    def solve(self) -> bool:
        """Match the rows; True if the duals prove it, False when stopped or given up."""
        ranks = self.ranks
        self.best.has_duals = False
        with ranks.step("first duals"):
            price = self._first_duals()
        if self._solve_from(price, self.first, is_last=not self.others):
            return True
        for find in self.others:
            if ranks.stopped:
                return False
            with ranks.step("better duals"):
                find()
                if ranks.stopped:
                    return False
                price = self._tightened()
            if self._solve_from(price, FIRST, is_last=find is self.others[-1]):
                return True
        return False

    def _solve_from(self, price: Any, most: int, *, is_last: bool) -> bool:
        """The same from so many pairs of each row, chosen by these duals."""
        ranks = self.ranks
        chosen = self._choose(price, most)
        for _ in range(ROUNDS):
            with ranks.step("gathering"):
                self._gather(chosen)
            with ranks.step("core"):
                is_solved = self._solve_core()
            if ranks.stopped:
                return False
            if not is_solved:
                if not (is_last and self._has_more(AGAIN * most)):
                    return False
                most *= AGAIN
                chosen = self._choose(price, most)
                continue
            with ranks.step("pricing"):
                chosen = self._undercutting()
                found = ranks.total(len(chosen[0]))
            ranks.control.phase(found=0, matched=self.matched, step="pricing", added=found)
            if not found:
                self.is_priced = self.best.has_duals = True
                return True
            if found > TOO_MANY * self.nrows and not is_last:
                return False
        return False

    def settle(self) -> None:
        """Lower the duals of this rank's rows until no pair undercuts them, if they are not proven.

        Those of a core that is not priced bound nothing but its own pairs.
        """
        if self.is_priced:
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
        best.has_duals = True

    @property
    def matched(self) -> int:
        return self.xp.flatnonzero(self.best.row_to_col >= 0).size

    def _has_more(self, most: int) -> bool:
        """Whether so many pairs of each row may be chosen, and are more than a quarter of it."""
        a_row = min(self.own.most, AGAIN * self.own.longest)
        return most <= a_row and most * self.nrows <= MOST

    # -- what each rank does ---------------------------------------------------------------------

    def _first_duals(self) -> Any:
        """Those given; else, if no column may stay unmatched, their least slacks; else 0."""
        xp, given = self.xp, self.best.col_dual
        if any_true(given != 0):
            return given.copy()
        price = xp.zeros(self.ncols, given.dtype)
        if self.is_square:
            price = self._least_slacks(price, price.dtype.type(0))
        return price

    def _tightened(self) -> Any:
        """The duals of the solution, raised so far that each column has a tight pair.

        A search for prices may leave columns that are too dear for all rows.
        """
        price = self.best.col_dual
        if self.is_square:
            price -= price.max()
            price[:] = self._least_slacks(price, price.min())
        return price.copy()

    def _least_slacks(self, price: Any, lowest: Any) -> Any:
        """The least slack of each column at the rows' duals that these of the columns allow.

        A column without pairs keeps its dual. None of the given ones is below `lowest`.
        """
        xp, own = self.xp, self.own
        least = own.least_of_rows(price)
        least = xp.where(least < own.far, least + lowest, 0)
        slack = self.ranks.allreduce(own.least_of_columns(least), "min")
        return xp.where(slack < own.far, slack + lowest, price)

    def _choose(self, price: Any, most: int) -> tuple[Any, Any]:
        """The pairs of each row that are the cheapest at these duals, and those it has."""
        xp, own = self.xp, self.own
        with self.ranks.step("first choice"):
            bound = xp.full(own.count, own.far)
            if not self.must_match:
                bound = xp.full(own.count, self.share.limit, price.dtype)
            rows, cols, costs = own.nearest(price, bound, most)
            mates = self.best.row_to_col[self.rows]
            matched = xp.flatnonzero(mates >= 0)
            paid = own.at(matched, mates[matched])
            pairs = (rows, matched), (cols, mates[matched]), (costs, paid)
            self._keys = None
            return self._named(tuple(map(xp.concatenate, pairs)))

    def _undercutting(self) -> tuple[Any, Any]:
        """The pairs that undercut the duals most."""
        bound = self.xp.ascontiguousarray(self.best.row_dual[self.rows])
        return self._named(self.own.nearest(self.best.col_dual, bound, MORE))

    def _named(self, pairs: Any) -> tuple[Any, Any]:
        """A number for each pair of the whole problem, by rows, and its costs."""
        rows, cols, costs = pairs
        rows = rows.astype(np.int64) + self.own.first
        return rows * self.ncols + cols, costs.astype(self.best.row_dual.dtype)

    def _gather(self, chosen: tuple[Any, Any]) -> None:
        """Put what all ranks have chosen into the root's core."""
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
        """Let all ranks have the mates and duals of an optimal assignment of the core's pairs.

        True if there is one.
        """
        best, ranks = self.best, self.ranks
        is_solved = False
        if ranks.rank == ROOT and self._reaches_enough():
            costs = self._costs()
            own = Solution(*best.mates, *best.duals)  # what it says of its duals is of the core
            task = AssignmentTask(costs, own, self.control, self.share.limit)
            is_solved = self.solve_sparse(task)
            is_solved = is_solved and not (self.must_match and any_true(best.row_to_col < 0))
        for name in ("row_to_col", "col_to_row", "row_dual", "col_dual"):
            setattr(best, name, ranks.broadcast(getattr(best, name), ROOT))
        return bool(ranks.total(int(is_solved), "max"))

    def _reaches_enough(self) -> bool:
        """Whether the core's pairs are in as many columns as there are rows to be matched."""
        if not self.must_match:
            return True
        is_reached = self.xp.zeros(self.ncols, bool)
        is_reached[self._keys % self.ncols] = True
        return self.xp.flatnonzero(is_reached).size >= self.nrows

    def _costs(self) -> Costs:
        """The core, as a problem."""
        xp = self.xp
        starts = xp.arange(self.nrows + 1, dtype=np.int64) * self.ncols
        indptr = xp.searchsorted(self._keys, starts)
        cols = (self._keys % self.ncols).astype(np.int32)
        return self.share.costs_of(indptr, cols, self._weights)
