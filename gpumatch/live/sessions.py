"""An assignment that is kept while its costs change.

A `Session` knows rows and columns by their ids, checks what it gets, and makes snapshots. What it
keeps is a table of `gpumatch.cpu.live`, which knows slots.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.assignment import assign
from gpumatch.costs import as_costs
from gpumatch.dispatch.arguments import check_one_of, checked_flag
from gpumatch.live.one_thread import OneThread, alone, in_use
from gpumatch.problems.cardinality import InfeasibleError
from gpumatch.problems.request import CARDINALITIES, Cardinality, checked_limit
from gpumatch.results.assignment import Assignment
from gpumatch.running.interrupts import InterruptsHeld

with InterruptsHeld():
    from gpumatch.cpu.live.changes import FIT
    from gpumatch.cpu.live.tables import Report
    from gpumatch.problems.live import Wish, live_costs, report_of

__all__ = ["Prices", "Session", "Snapshot"]


class Snapshot(Assignment):
    """The assignment of a session at one time. Later changes do not touch it.

    It is an `Assignment` of the matrix that `Session.costs` returned at that time.

    Attributes
    ----------
    row_ids, col_ids : int64 arrays of length nrows, ncols
        The id of each row and of each column of the arrays. They increase.
    """

    row_ids: np.ndarray
    col_ids: np.ndarray

    @property
    def pairs(self) -> dict[int, int]:
        """The id of the column of each matched row, by the id of the row."""
        rows, cols = self.row_ids[self.row_ind], self.col_ids[self.col_ind]
        return dict(zip(rows.tolist(), cols.tolist()))


class Session(OneThread):
    """An assignment problem that changes, with its optimum kept.

    Parameters
    ----------
    C : two-dimensional array, sparse matrix, or whatever else `assign` takes on the host
        The costs to begin with: boolean, integer or floating, of any shape, (0, 0) included.
        ``inf`` (``-inf`` to be maximised) forbids a pair, and so does what a sparse matrix does not
        store.
        The session keeps two dense tables of float64: 16 bytes for each pair. Of a sparse matrix it
        keeps the allowed pairs alone: 36 bytes each, and room for as many again at most; some 100
        bytes a row or column. Of `PointCosts` it keeps points, some 600 bytes each, and lists of
        nearest ones. There a row or column is a point, so ``costs`` below are its coordinates, and
        no single cost can be set.
    maximize, cardinality, cost_limit
        As for `assign`. The limit is one number. With ``"maximum"``, costs beyond the limit are
        held as forbidden.

    Attributes
    ----------
    shape : (int, int)
        The numbers of rows and columns now.
    row_ids, col_ids : int64 arrays
        The ids of the rows and the columns now, in increasing order.
    maximize, cardinality, cost_limit
        The arguments.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong. If costs are integers, (n + 1) max|c| must be below 2**49 for n
        vertices of the smaller side; floats must be below 2**1000.

    Notes
    -----
    Rows and columns have ids: those of C are 0, 1, and so on. A new one gets the next number. No
    id is used again, and none changes when others go.

    A change costs a scan of its line; of sparse costs, of all lines that it has allowed pairs with.
    If it parts a pair, `solve` finds a path, or two, in O(nm) at worst; in random matrices of n
    rows it reads about the square root of n lines at each end of the path
    (docs/algorithms/live.md). Changes before a `solve` wait for it together.

    Integers are exact. The gap of floats is rigorous, as that of `assign`. If rounding ever leaves
    more than a proof may have, the session solves the problem afresh.

    A session is for one thread at a time; a call from another one raises a RuntimeError. It
    pickles, with its state.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> s = gm.Session([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    >>> s.solve().objective
    5
    >>> s.price_of.set_cost(0, 1, 9), s.objective
    (1, 5)
    >>> s.set_cost(0, 1, 9)
    >>> new = s.add_row([1, 1, 1])
    >>> s.remove_row(1)
    >>> a = s.solve()
    >>> a.objective, a.pairs
    (6, {0: 2, 2: 1, 3: 0})
    >>> print(gm.verify(s.costs(), a))
    optimal: 3 pairs of total 6, and dual prices of total 6, checked on 9 pairs; the gap is 0
    """

    def __init__(
        self,
        C: Any,
        *,
        maximize: bool = False,
        cardinality: Cardinality = "full",
        cost_limit: float | None = None,
    ) -> None:
        super().__init__()
        self.maximize = checked_flag(maximize, "maximize")
        check_one_of("cardinality", cardinality, CARDINALITIES)
        self.cardinality = cardinality
        costs = as_costs(C)
        self.cost_limit = checked_limit(cost_limit, costs.is_integer, maximize)
        self._wish = Wish(maximize, cardinality, self.cost_limit)
        self._ids = tuple({i: i for i in range(size)} for size in costs.shape)
        self._next = list(costs.shape)
        self._arrays: list[np.ndarray | None] = [None, None]
        self._kind = live_costs(costs, self._wish)
        self._table: Any = self._kind.table()
        self._load()
        self._report: Report | None = None

    # -- what there is -----------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._ids[0]), len(self._ids[1])

    @property
    def row_ids(self) -> np.ndarray:
        return self._ids_of(0)

    @property
    def col_ids(self) -> np.ndarray:
        return self._ids_of(1)

    def _ids_of(self, side: int) -> np.ndarray:
        ids = self._arrays[side]
        if ids is None:
            ids = np.fromiter(self._ids[side], np.int64, len(self._ids[side]))
            ids.flags.writeable = False
            self._arrays[side] = ids
        return ids

    def __repr__(self) -> str:
        rows, cols = self.shape
        return f"Session({rows} rows, {cols} columns, cardinality {self.cardinality!r})"

    @alone
    def costs(self) -> Any:
        """The costs now, with a row for each of `row_ids` and a column for each of `col_ids`.

        Returns
        -------
        int64 or float64 array of shape `shape`, or scipy.sparse.csr_array
            The costs of a session of sparse ones are sparse, and integers of which some are
            forbidden are, too; forbidden floats of others are infinite.
        """
        return self._kind.costs(self._table)

    # -- changes -----------------------------------------------------------------------------------

    @alone
    def set_cost(self, row: int, col: int, cost: float) -> None:
        """Give a pair another cost; allow it, if it was forbidden.

        Raises
        ------
        KeyError
            If there is no such row or column.
        TypeError, ValueError
            If the cost is not valid.
        """
        self._set_cost(self._slot(0, row), self._slot(1, col), cost)

    @alone
    def forbid(self, row: int, col: int) -> None:
        """Forbid a pair. `set_cost` allows it again."""
        self._set_cost(self._slot(0, row), self._slot(1, col), self._wish.forbidden)

    def set_row(self, row: int, costs: Any) -> None:
        """Give a row new costs: an array with one for each of `col_ids`, in their order.

        Raises
        ------
        KeyError
            If there is no such row.
        TypeError, ValueError
            If the costs are not valid. Then nothing changes.
        """
        self._change_line(0, row, costs)

    def set_col(self, col: int, costs: Any) -> None:
        """Give a column new costs: an array with one for each of `row_ids`, in their order."""
        self._change_line(1, col, costs)

    @alone
    def add_row(self, costs: Any) -> int:
        """Add a row, whose costs are as those of `set_row`; return its id."""
        return self._add_line(0, costs)

    @alone
    def add_col(self, costs: Any) -> int:
        """Add a column, whose costs are as those of `set_col`; return its id."""
        return self._add_line(1, costs)

    @alone
    def remove_row(self, row: int) -> None:
        """Remove a row. The ids of the others stay, and its own is not used again."""
        self._remove_line(0, row)

    @alone
    def remove_col(self, col: int) -> None:
        """Remove a column. The ids of the others stay, and its own is not used again."""
        self._remove_line(1, col)

    # -- results -----------------------------------------------------------------------------------

    @property
    def objective(self) -> float:
        """The total cost of an optimal assignment now, without a snapshot and its proof.

        Raises
        ------
        InfeasibleError
            As `solve`.
        """
        if not self._lock.acquire(False):
            raise in_use()
        try:
            total = self._table.total() if self._report is None else None
            return self._reported().objective if total is None else total
        finally:
            self._lock.release()

    @alone
    def solve(self) -> Snapshot:
        """Return an optimal assignment of the problem as it is now.

        Returns
        -------
        Snapshot
            An `Assignment` of the matrix that `costs` returns, which has the ids in `row_ids` and
            `col_ids`.

        Raises
        ------
        InfeasibleError
            If no full assignment exists. It has the ids of the rows and columns that show it. The
            session can go on: later changes may make it feasible again.
        """
        began = time.perf_counter()
        report = self._reported()
        nrows, ncols = self.shape
        mates, numbers = report.mates.copy(), report.numbers.copy()
        row_to_col, paid = mates[:nrows], numbers[nrows + ncols :]
        size = report.size
        found = Snapshot(
            row_to_col,
            mates[nrows:],
            numbers[:nrows],
            numbers[nrows : nrows + ncols],
            pair_costs=paid if size == nrows else paid[row_to_col >= 0],
            objective=report.objective,
            gap=report.gap,
            proven=report.proven,
            maximize=self.maximize,
            cardinality=self.cardinality,
            cost_limit=self.cost_limit,
            cover=self._table.cover() if self.cardinality == "maximum" else None,
            size=size,
            stats={
                "algorithm": "session",
                "backend": "cpu",
                "seconds": {"search": time.perf_counter() - began},
            },
        )
        found.row_ids, found.col_ids = self._ids_of(0), self._ids_of(1)
        return found

    @property
    def price_of(self) -> Prices:
        """What a change would cost: ``s.price_of.set_row(i, costs)``, and so on for each change.

        Its methods have the names and the arguments of those that change the session. They return
        by how much the objective would grow, and change nothing: ``inf`` (``-inf`` to be maximised)
        if no full assignment would exist.
        """
        return Prices(self)

    # -- inside ------------------------------------------------------------------------------------

    def _slot(self, side: int, name: int) -> int:
        try:
            return self._ids[side][name]
        except (KeyError, TypeError):
            what = ("row", "column")[side]
            raise KeyError(f"there is no {what} with the id {name!r}") from None

    def _set_cost(self, row: int, col: int, cost: Any) -> None:
        kind = self._kind
        value = kind.cost(cost)
        self._changed(self._table.set_cost(row, col, value, kind.most), value)

    def _change_line(self, side: int, name: int, costs: Any) -> None:
        """Give a row or column new costs. This and `objective` take a third of a microsecond less
        than they would by `alone`."""
        if not self._lock.acquire(False):
            raise in_use()
        try:
            self._set_line(side, self._slot(side, name), costs)
        finally:
            self._lock.release()

    def _set_line(self, side: int, slot: int, costs: Any) -> None:
        kind = self._kind
        values = kind.values(costs, len(self._ids[1 - side]), side)
        self._changed(self._table.set_line(side, slot, values, kind.most), values)

    def _add_line(self, side: int, costs: Any) -> int:
        slot = self._fill_line(side, costs)
        name = self._next[side]
        self._next[side] += 1
        self._ids[side][name] = slot
        self._arrays[side] = None
        return name

    def _fill_line(self, side: int, costs: Any) -> int:
        """Put a row or column into the next slot, and return that."""
        values = self._kind.values(costs, len(self._ids[1 - side]), side)
        self._make_room(side)
        slot = self._table.slots(side)
        self._changed(self._table.set_line(side, slot, values, self._kind.most), values)
        return slot

    def _changed(self, fit: int, values: Any) -> None:
        """Forget what was known before a change; raise an error if its costs were not fit."""
        if fit != FIT:
            raise self._kind.error(fit, values)
        self._report = None

    def _make_room(self, side: int) -> None:
        """See that there is a slot, and that sums stay in their range."""
        more = (size + (own == side) for own, size in enumerate(self.shape))
        self._kind.set_range(self._table, *more)
        if self._table.has_room(side):
            return
        names = self._ids[side]
        if 2 * len(names) <= self._table.slots(side):
            self._table.compact(side)
            names.update(zip(names, range(len(names))))
        else:
            self._table.grow(side)

    def _remove_line(self, side: int, name: int) -> None:
        self._table.remove_line(side, self._slot(side, name))
        del self._ids[side][name]
        self._arrays[side] = self._report = None

    def _reported(self) -> Report:
        """The state after all changes, served and proven."""
        if self._report is None:
            self._report = self._served()
        if self._lacks_pairs(self._report):
            rows, cols = self._table.violator()
            raise InfeasibleError(self._ids_of(0)[rows], self._ids_of(1)[cols])
        return self._report

    def _served(self) -> Report:
        self._table.serve()
        report = self._kind.report(self._table)
        if not report.proven:  # rounding has added up, or integers have drifted
            a = self._load()
            report = self._kind.report(self._table)
            if not report.proven:
                report = report_of(a)
        return report

    def _load(self) -> Assignment:
        """Solve the problem afresh, and hold the result."""
        solve: Any = functools.partial(
            assign, maximize=self.maximize, cost_limit=self.cost_limit, backend="cpu"
        )
        return self._kind.load(self._table, solve)

    def _lacks_pairs(self, report: Report) -> bool:
        return self._table.is_full and report.size < min(self._table.shape)

    @alone
    def _price(self, side: int, name: Any, change: Callable[[int], Any]) -> float:
        """What a change of one row or column, or a new one, adds to the objective."""
        report = self._reported()
        if name is None:
            self._make_room(side)
            slot = self._table.slots(side)
        else:
            slot = self._slot(side, name)
        before = self._table.saved(side, slot)
        try:
            change(slot)
            total = self._table.total()
            if total is None:
                after = self._served()
                total = self._wish.forbidden if self._lacks_pairs(after) else after.objective
        finally:
            self._table.restore(before)
            self._report = report
        return total - report.objective


class Prices:
    """What changes of a session would cost; see `Session.price_of`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def set_cost(self, row: int, col: int, cost: float) -> float:
        """What `Session.set_cost` would add to the objective."""
        s = self._session
        return s._price(0, row, lambda slot: s._set_cost(slot, s._slot(1, col), cost))

    def forbid(self, row: int, col: int) -> float:
        """What `Session.forbid` would add to the objective."""
        return self.set_cost(row, col, self._session._wish.forbidden)

    def set_row(self, row: int, costs: Any) -> float:
        """What `Session.set_row` would add to the objective."""
        return self._session._price(0, row, lambda slot: self._session._set_line(0, slot, costs))

    def set_col(self, col: int, costs: Any) -> float:
        """What `Session.set_col` would add to the objective."""
        return self._session._price(1, col, lambda slot: self._session._set_line(1, slot, costs))

    def add_row(self, costs: Any) -> float:
        """What `Session.add_row` would add to the objective."""
        return self._session._price(0, None, lambda _: self._session._fill_line(0, costs))

    def add_col(self, costs: Any) -> float:
        """What `Session.add_col` would add to the objective."""
        return self._session._price(1, None, lambda _: self._session._fill_line(1, costs))

    def remove_row(self, row: int) -> float:
        """What `Session.remove_row` would add to the objective."""
        return self._session._price(0, row, lambda slot: self._session._table.remove_line(0, slot))

    def remove_col(self, col: int) -> float:
        """What `Session.remove_col` would add to the objective."""
        return self._session._price(1, col, lambda slot: self._session._table.remove_line(1, slot))
