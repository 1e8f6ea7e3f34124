"""Cheapest flows between bounds, each made from the one problem of `gpumatch.contracts.transport`.

An algorithm knows rows that ship all their units, or pay a limit for each that stays, and columns
of limited demand. `Shipper.ship` hands it such a problem. Some algorithms keep lower bounds of
columns, too. `Shipper.ship_within` makes all other lower bounds from that problem, by a network
without a limit whose two sides have equal totals:

- A column with lower bound l and upper bound h becomes two: the *need*, of l units, and the
  *spare*, of h - l. A dummy row ships what the columns lack. It reaches spares only, at cost 0, so
  the rows themselves must fill each need.
- With a limit, a row becomes two in the same way. A dummy column takes what does not go. It is
  reached by spare rows, at the cost of the limit, and by the dummy row, at cost 0.

Of a complete matrix, the network forbids no pair if it can do without (`_far_cost`).

Duals come back as follows. All of them are shifted so that the dual of the dummy row is 0. Then
spares have duals of at most 0, and a vertex gets the larger dual of its two parts. Both parts have
the same pairs, so the larger dual is feasible too. The bound that `gpumatch.problems.transport`
states is then no less than that of the network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Costs, Points
from gpumatch.contracts.transport import (
    TransportSolution,
    TransportSolver,
    TransportTask,
)
from gpumatch.costs import TOO_LARGE
from gpumatch.numeric.arrays import any_true, array_module, exactly
from gpumatch.numeric.exact_sums import summands
from gpumatch.numeric.units import merged, order_of
from gpumatch.problems.cardinality import InfeasibleError
from gpumatch.problems.masses import Bounds
from gpumatch.running.control import Control

__all__ = ["Found", "InfeasibleMassesError", "Shipper", "total_of"]


Duals = tuple[Any, Any]
ROOM = 2.0**1000
"""Sums of floats up to this are far from overflow."""


class InfeasibleMassesError(InfeasibleError):
    """No flow meets what rows and columns must have.

    Attributes
    ----------
    rows, cols : int arrays
        A Hall violator and its neighbours: either rows that must ship more than all columns take
        that they may use, or columns that must get more than all rows have that may use them.
    needed, available : int or float
        What the one side must have, and what the other side has, in the caller's masses.
    by_rows : bool
        True if the rows are those that must have more.
    problem : int, optional
        The number of the problem in a batch.
    """

    def __init__(
        self,
        rows: Any,
        cols: Any,
        needed: float,
        available: float,
        by_rows: bool = True,
        problem: int | None = None,
    ) -> None:
        many, few = (rows, cols) if by_rows else (cols, rows)
        sides = ("rows", "columns") if by_rows else ("columns", "rows")
        ValueError.__init__(
            self,
            ("" if problem is None else f"problem {problem}: ")
            + f"the masses are infeasible: {len(many)} {sides[0]} must have {needed} in all, "
            f"but the {len(few)} {sides[1]} that they may use have {available} only",
        )
        self.rows, self.cols, self.problem = rows, cols, problem
        self.needed, self.available, self.by_rows = needed, available, by_rows

    def of_problem(self, k: int) -> InfeasibleMassesError:
        """Return this error as that of problem k of a batch."""
        by_rows = self.by_rows
        return type(self)(self.rows, self.cols, self.needed, self.available, by_rows, k)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = self.rows, self.cols, self.needed, self.available, self.by_rows, self.problem
        return type(self), parts


class Found(NamedTuple):
    """A flow of a problem, and its duals.

    Attributes
    ----------
    rows, cols, flow : int64 arrays
        The pairs with flow, by row and column, and their units.
    row_dual, col_dual : arrays
    has_ended : bool
        True if the algorithm has ended by itself, so that the flow is optimal.
    lacking : (rows, cols, needed, available, by_rows), optional
        The arguments of an `InfeasibleMassesError`, in units, if there is no such flow.
    """

    rows: Any
    cols: Any
    flow: Any
    row_dual: Any
    col_dual: Any
    has_ended: bool
    lacking: tuple[Any, Any, int, int, bool] | None = None


class Shipper:
    """Solves problems by an algorithm, and adds up what it counts.

    Attributes
    ----------
    counts : dict
    may_use_far, has_used_far : bool
        Whether pairs of a network may have finite costs in place of being forbidden, and whether a
        result comes from such a network. Duals of floats are as exact as the largest cost there.
    """

    def __init__(
        self,
        solve: TransportSolver,
        control: Control,
        threads: int,
        seed: int,
        fallback: TransportSolver | None = None,
        takes_least: Callable[[TransportTask], bool] | None = None,
    ) -> None:
        self._solve, self._control = solve, control
        self._threads, self._seed, self._fallback = threads, seed, fallback
        self._takes_least = takes_least
        self.counts: dict[str, Any] = {}
        self.may_use_far = True
        self.has_used_far = False

    def ship(
        self,
        costs: Costs,
        supply: Any,
        demand: Any,
        limit: float | None = None,
        initial: Duals | None = None,
    ) -> Found:
        """The cheapest flow. Without a limit, the rows ship all.

        Computed costs are points, which the algorithm takes.
        """
        if costs.is_computed:
            entries: Any = costs.points
        else:
            entries = costs.entries() if costs.is_sparse else costs.dense()
            entries = _wide(entries, np.dtype(np.int64 if costs.is_integer else np.float64))
        found = self._run(entries, supply, demand, limit, initial, largest=costs.largest)
        lacking = None
        if found.infeasible_rows is not None:
            rows = found.infeasible_rows
            cols = _reached(costs, rows, by_rows=True)
            lacking = rows, cols, total_of(supply[rows]), total_of(demand[cols]), True
        return _found(found, lacking)

    def ship_most(self, costs: Costs, supply: Any, demand: Any) -> Found:
        """The largest flow, whatever it costs. A unit that stays costs 1, so all duals are whole.

        Rows with a dual of at least 1, and columns with one of at most -1, are a cut: these rows
        reach no other columns, and no other row uses these columns.
        """
        forbidden, xp = None, costs.xp
        if costs.is_sparse:
            indptr, indices, weights = costs.entries()
            entries = _wide((indptr, indices, xp.zeros(weights.size, np.int64)), np.int64)
        else:
            values = costs.dense()
            entries = xp.zeros(values.shape, np.int64)
            forbidden = None if costs.is_integer else ~(values < np.inf)
        return _found(self._run(entries, supply, demand, 1, forbidden=forbidden, largest=1))

    def ship_within(
        self,
        costs: Costs,
        rows: Bounds,
        cols: Bounds,
        limit: float | None = None,
        initial: Duals | None = None,
    ) -> Found:
        """The cheapest flow between bounds. Without a limit, the rows ship their upper bounds."""
        spare = total_of(cols.upper)
        if limit is None:
            spare -= total_of(rows.upper)
            if not (cols.has_lower and spare):
                return self.ship(costs, rows.upper, cols.upper, initial=initial)
        if limit is None or not rows.has_lower:
            flow = self._without_network(costs, rows.upper, cols, limit, initial)
            if flow is not None:
                return flow
        far_cost = _far_cost(costs, rows, cols, limit) if self.may_use_far else None
        for far in (far_cost, None):
            network = _Network(costs, rows, cols, limit, spare, far)
            found = self._run(
                network.entries,
                network.supply,
                network.demand,
                None,
                None if initial is None else network.duals_of(*initial),
                forbidden=network.forbidden,
                largest=max(costs.largest, abs(far or 0), abs(limit or 0)),
            )
            if not (found.is_optimal and network.uses_far(found)):
                self.has_used_far |= far is not None
                break
        return network.in_vertices(found)

    def _without_network(
        self,
        costs: Costs,
        supply: Any,
        cols: Bounds,
        limit: float | None,
        initial: Duals | None,
    ) -> Found | None:
        """The flow by an algorithm that takes lower bounds of columns; None if it cannot be."""
        if self._takes_least is None or total_of(cols.lower) > total_of(supply):
            return None
        entries = costs.entries() if costs.is_sparse else costs.dense()
        dtype = np.dtype(np.int64 if costs.is_integer else np.float64)
        task = self._task(
            _wide(entries, dtype), supply, cols.upper, limit, initial,
            largest=costs.largest, least=cols.lower,
        )  # fmt: skip
        if not self._takes_least(task):
            return None
        found = self._solved(task)
        return _found(found) if found.infeasible_rows is None else None

    def _run(self, *arguments: Any, **options: Any) -> TransportSolution:
        """The solution of a task, whose arguments are those of `_task`."""
        return self._solved(self._task(*arguments, **options))

    def _task(
        self,
        entries: Any,
        supply: Any,
        demand: Any,
        limit: float | None = None,
        initial: Duals | None = None,
        forbidden: Any = None,
        *,
        largest: float,
        least: Any = None,
    ) -> TransportTask:
        xp = array_module(supply)
        form: dict[str, Any]
        if isinstance(entries, Points):
            form, dtype = {"points": entries}, np.dtype(np.float64)
        elif isinstance(entries, tuple):
            form, dtype = dict(zip(("indptr", "indices", "data"), entries)), entries[2].dtype
        else:
            form, dtype = {"costs": entries, "forbidden": forbidden}, entries.dtype
        return TransportTask(
            supply,
            demand,
            self._control,
            row_limit=None if limit is None else xp.full(supply.size, limit, dtype),
            initial=initial,
            least=least,
            threads=self._threads,
            seed=self._seed,
            largest=max(largest, abs(limit or 0)),
            fallback=self._fallback,
            **form,
        )

    def _solved(self, task: TransportTask) -> TransportSolution:
        with self._control.part("search"):
            found = self._solve(task)
        for name, value in found.stats.items():
            before = self.counts.get(name)
            is_count = isinstance(value, (int, float)) and isinstance(before, (int, float))
            self.counts[name] = before + value if is_count else value
        return found


def _far_cost(costs: Costs, rows: Bounds, cols: Bounds, limit: float | None) -> Any:
    """A cost in place of forbidding a pair in the network of a complete matrix; None if none is.

    Algorithms are faster where no pair is forbidden. If totals allow all needs to be met, a unit on
    such a pair can change its column with another one. Apart from this pair, that costs at most the
    difference of two costs, or with a limit a cost or the limit more. So no such pair carries
    anything if it costs more than that.
    """
    if costs.is_sparse or not costs.is_complete:
        return None
    least = 0 if limit is None else total_of(rows.lower)
    if least > total_of(cols.upper) or total_of(cols.lower) > total_of(rows.upper):
        return None
    far = costs.high - costs.low
    if limit is not None:
        far = max(far, abs(costs.high)) + abs(limit)
    if costs.is_integer:
        far = int(far) + 1
        return far if (2 * min(costs.shape) + 2) * max(far, costs.largest) < TOO_LARGE else None
    far = far * (1 + 2.0**-20)
    return far if far < ROOM / (min(costs.shape) + 1) else None


class _Network:
    """The network of `ship_within`: its costs, supplies and demands, and the way back.

    A pair that the network forbids costs `far`, unless that is None.
    """

    def __init__(
        self,
        costs: Costs,
        rows: Bounds,
        cols: Bounds,
        limit: float | None,
        spare: int,
        far: float | None,
    ) -> None:
        self.far, xp = far, costs.xp
        self.xp = xp
        self.costs, self.rows, self.cols, self.limit = costs, rows, cols, limit
        if limit is None:
            count = rows.upper.size
            self.row_of, row_units = xp.arange(count), rows.upper
            self.row_is_need = xp.ones(count, bool)
        else:
            self.row_of, row_units, self.row_is_need = _parts_of(rows)
        self.col_of, col_units, self.col_is_need = _parts_of(cols)
        sink = [] if limit is None else [total_of(rows.upper)]
        self.supply, self.demand = (
            xp.concatenate([units, xp.array(more, np.int64)])
            for units, more in ((row_units, [spare]), (col_units, sink))
        )
        self.dtype = np.dtype(np.int64 if costs.is_integer else np.float64)
        self.forbidden: Any = None
        self.entries: Any = self._sparse() if costs.is_sparse else self._dense()

    def duals_of(self, row_dual: np.ndarray, col_dual: np.ndarray) -> Duals:
        """Duals of the network by those of rows and columns, where the dummy row has the dual 0."""
        xp = array_module(row_dual)
        of_rows, of_cols = row_dual[self.row_of], col_dual[self.col_of]
        none = xp.zeros(1, of_rows.dtype)
        of_cols = xp.where(self.col_is_need, of_cols, xp.minimum(of_cols, 0))
        if self.limit is not None:
            of_rows = xp.where(self.row_is_need, of_rows, xp.minimum(of_rows, self.limit))
            of_cols = xp.concatenate([of_cols, none])
        return xp.concatenate([of_rows, none]), of_cols

    def _dense(self) -> Any:
        xp, nrows, ncols = self.xp, self.row_of.size, self.col_of.size
        is_integer = self.costs.is_integer
        values = xp.zeros((self.supply.size, self.demand.size), self.dtype)
        values[:nrows, :ncols] = self.costs.dense()[self.row_of[:, None], self.col_of]
        forbidden = xp.zeros(values.shape, bool)
        forbidden[nrows, :ncols] = self.col_is_need
        if self.limit is not None:
            values[:nrows, ncols] = self.limit
            forbidden[:nrows, ncols] = self.row_is_need
        if is_integer and self.far is None:
            self.forbidden = forbidden
        else:
            values[forbidden] = np.inf if self.far is None else self.far
        return values

    def uses_far(self, found: TransportSolution) -> bool:
        """True if a pair that costs `far` carries anything."""
        nrows, ncols = self.row_of.size, self.col_of.size
        if self.far is None:
            return False
        xp, ends = self.xp, (found.rows, found.cols)
        is_need = [
            xp.append(marks, xp.zeros(1, bool))[xp.minimum(end, marks.size)]
            for marks, end in zip((self.row_is_need, self.col_is_need), ends)
        ]
        of_dummy = (ends[0] == nrows) & is_need[1]
        return any_true(of_dummy | ((ends[1] == ncols) & is_need[0]))

    def _sparse(self) -> tuple[Any, Any, Any]:
        xp, nrows, ncols = self.xp, self.row_of.size, self.col_of.size
        own, cols, weights = self.costs.tile(slice(0, self.costs.shape[0]))
        row_parts = _numbers_of(self.row_of, self.row_is_need, self.costs.shape[0])
        col_parts = _numbers_of(self.col_of, self.col_is_need, self.costs.shape[1])
        found = []
        for part in row_parts:
            for other in col_parts:
                here, there = part[own], other[cols]
                kept = (here >= 0) & (there >= 0)
                found.append((here[kept], there[kept], weights[kept]))
        spares = (~self.col_is_need).nonzero()[0]
        found.append((xp.full(spares.size, nrows), spares, xp.zeros(spares.size)))
        if self.limit is not None:
            optional = (~self.row_is_need).nonzero()[0]
            found.append(
                (optional, xp.full(optional.size, ncols), xp.full(optional.size, self.limit))
            )
            found.append((xp.array([nrows]), xp.array([ncols]), xp.zeros(1)))
        rows, cols = (xp.concatenate([part[side] for part in found]) for side in (0, 1))
        data = xp.concatenate([part[2].astype(self.dtype) for part in found])
        order = order_of(rows, cols)
        indptr = xp.zeros(self.supply.size + 1, np.int64)
        xp.cumsum(xp.bincount(rows, minlength=self.supply.size), out=indptr[1:])
        return indptr, cols[order].astype(np.int32), data[order]

    def in_vertices(self, found: TransportSolution) -> Found:
        """The flow and the duals of the caller's rows and columns."""
        nrows, ncols = self.row_of.size, self.col_of.size
        is_real = (found.rows < nrows) & (found.cols < ncols)
        rows, cols, flow = merged(
            self.row_of[found.rows[is_real]],
            self.col_of[found.cols[is_real]],
            found.flow[is_real],
        )
        shift = found.row_dual[nrows]
        of_rows = found.row_dual[:nrows] - shift
        if self.limit is not None:
            optional = ~self.row_is_need
            of_rows[optional] = self.xp.minimum(of_rows[optional], self.limit)
        of_cols = found.col_dual[:ncols] + shift
        lacking = None if found.infeasible_rows is None else self._lacking(found.infeasible_rows)
        return Found(
            rows,
            cols,
            flow,
            _larger(of_rows, self.row_of, self.row_is_need, self.costs.shape[0]),
            _larger(of_cols, self.col_of, self.col_is_need, self.costs.shape[1]),
            found.is_optimal,
            lacking,
        )

    def _lacking(self, parts: Any) -> tuple[Any, Any, int, int, bool]:
        """What the violator of the network says of rows and columns."""
        nrows = self.row_of.size
        own = parts[parts < nrows]
        if own.size == parts.size:  # only needs count: spares have the dummy column
            rows = self.xp.unique(self.row_of[own[self.row_is_need[own]]])
            cols = _reached(self.costs, rows, by_rows=True)
            least = self.rows.upper if self.limit is None else self.rows.lower
            return rows, cols, total_of(least[rows]), total_of(self.cols.upper[cols]), True
        is_met = self.xp.zeros(
            self.costs.shape[1], bool
        )  # the dummy row reaches all that is no need
        is_met[_reached(self.costs, self.xp.unique(self.row_of[own]), by_rows=True)] = True
        cols = (~is_met & (self.cols.lower > 0)).nonzero()[0]
        rows = _reached(self.costs, cols, by_rows=False)
        needed = total_of(self.cols.lower[cols])
        return rows, cols, needed, total_of(self.rows.upper[rows]), False


def total_of(units: Any) -> int:
    """The sum of units, as a Python int."""
    return sum(summands(units))


def _found(solution: TransportSolution, lacking: Any = None) -> Found:
    return Found(
        solution.rows,
        solution.cols,
        solution.flow,
        solution.row_dual,
        solution.col_dual,
        solution.is_optimal,
        lacking,
    )


def _wide(entries: Any, dtype: Any) -> Any:
    """A matrix or CSR arrays, with costs of this dtype."""
    if isinstance(entries, tuple):
        indptr, indices, weights = entries
        return indptr.astype(np.int64, copy=False), indices, weights.astype(dtype, copy=False)
    return exactly(entries, dtype)


def _parts_of(bounds: Bounds) -> tuple[Any, Any, Any]:
    """The vertex of each part, its units, and marks of needs. Each vertex has a part."""
    xp = array_module(bounds.upper)
    needs = bounds.lower.nonzero()[0]
    room = bounds.upper - bounds.lower
    spares = ((room > 0) | (bounds.upper == 0)).nonzero()[0]
    of = xp.concatenate([needs, spares])
    units = xp.concatenate([bounds.lower[needs], room[spares]])
    return of, units, xp.arange(of.size) < needs.size


def _numbers_of(of: Any, is_need: Any, length: int) -> list[Any]:
    """The number of each vertex's need, and that of its spare; -1 without."""
    found, xp = [], array_module(of)
    for marks in (is_need, ~is_need):
        numbers = xp.full(length, -1)
        numbers[of[marks]] = marks.nonzero()[0]
        found.append(numbers)
    return found


def _larger(duals: Any, of: Any, is_need: Any, length: int) -> Any:
    """The larger dual of the parts of each vertex."""
    xp = array_module(duals)
    low = np.iinfo(np.int64).min if duals.dtype.kind == "i" else -np.inf
    found = xp.full(length, low, duals.dtype)
    for marks in (is_need, ~is_need):  # a vertex has one part of each kind at most
        parts = of[marks]
        found[parts] = xp.maximum(found[parts], duals[marks])
    return found


def _reached(costs: Costs, vertices: Any, *, by_rows: bool) -> Any:
    """The columns of some rows, or the rows of some columns, in order."""
    xp, (nrows, ncols) = costs.xp, costs.shape
    marks = xp.zeros(nrows if by_rows else ncols, bool)
    marks[vertices] = True
    found = xp.zeros(ncols if by_rows else nrows, bool)
    for tile in costs.tiles():
        rows, cols, values = costs.tile(tile)
        allowed = values < np.inf
        if by_rows:
            allowed &= marks[rows]
            found[xp.broadcast_to(cols, allowed.shape)[allowed]] = True
        else:
            allowed &= marks[cols]
            found[xp.broadcast_to(rows, allowed.shape)[allowed]] = True
    return found.nonzero()[0]
