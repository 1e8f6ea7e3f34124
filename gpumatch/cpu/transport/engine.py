"""Exact transport on the CPU: rows ship their supply to columns of limited demand at least cost.

A dense problem without forbidden pairs, or one of points, is solved by the network simplex method
on a core of its pairs (`dense`), and one of few columns, or of few rows, on the few rows that may
have to leave their cheapest column (`few_columns`). All others are solved in CSR: an auction
(`auction`, `bidding`) finds prices and nearly all of the flow, a few pivots of the network simplex
method make that optimal (`crossover`), and shortest augmenting paths (`flows`, `search`) ship what
is left exactly, each as much as the path carries. None unfolds a mass: the work
and the memory do not depend on how many units there are. At the end all pairs with flow are tight
at the duals, which proves the flow.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Points, Stopped
from gpumatch.contracts.transport import AllPairs, TransportSolution, TransportTask
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.cpu.transport import crossover, few_columns, search, sources
from gpumatch.cpu.transport.auction import Auction
from gpumatch.cpu.transport.crossover import Basis
from gpumatch.cpu.transport.dense import DenseProblem, rounding_of
from gpumatch.cpu.transport.few_columns import FewColumns
from gpumatch.cpu.transport.flows import Flows
from gpumatch.cpu.transport.sources import Cloud, Matrix

__all__ = ["FEW", "SMALL", "fair_rows", "solve", "takes_least", "takes_points"]

SMALL = 2**10
"""Pairs up to which a dense problem is solved by paths: there is hardly anything to gain."""
FEW = 2**12
"""Entries of CSR up to which paths alone are fast enough."""
TRIAL = 96
"""How many times paths from given duals may read all entries, before an auction begins afresh."""
FAR = 2.0**14
"""How many times greater than those in use costs of floats are so that the duals of the network
simplex method, which come near all of them, are too inexact. Paths from duals of 0 follow."""
FEW_STORED = 2**28
"""Pairs of points up to which few columns are solved in a matrix, of 2 GiB."""
WIDTH = 6
"""Coordinates up to which trees of boxes leave out most pairs of points."""
ROUNDING = 2.0**-50
"""The share of costs and prices by which a float's pair may miss being tight."""
Entries = tuple[np.ndarray, np.ndarray, np.ndarray]
Range = tuple[Any, Any]


def takes_least(task: TransportTask) -> bool:
    """True if the lower bounds of a task can be kept: there are few columns, and all pairs."""
    if task.costs is None or not _are_few(task.costs.shape):
        return False
    return _is_complete(task, Matrix(task.costs).extremes)


def takes_points(points: Points) -> bool:
    """True if these points are solved without their matrix: there are many, of few coordinates."""
    shape = points.rows.shape[0], points.cols.shape[0]
    size = shape[0] * shape[1]
    if size <= sources.STORED or points.rows.shape[1] > WIDTH:
        return False
    are_few = _are_few(shape) or _are_few(shape[::-1])
    return not are_few or size > FEW_STORED


def fair_rows(points: Points, col_dual: np.ndarray) -> np.ndarray:
    """The largest duals of the rows that no pair of these points undercuts, rounded down."""
    with Workers(1, 0) as workers:
        return Cloud(points, workers).row_minima(col_dual)


def solve(task: TransportTask) -> TransportSolution:
    """Ship all supply at least cost, as `gpumatch.contracts.transport` states."""
    if task.points is not None:
        return _solve_points(task, task.points)
    if task.pairs is not None:
        return _solve_pairs(task, task.pairs)
    if task.costs is not None and (task.costs.size > SMALL or task.least is not None):
        matrix = Matrix(task.costs)
        if _is_complete(task, matrix.extremes):
            return _solve_dense(task, matrix, matrix.extremes)
    assert task.least is None
    return _solve_by_paths(task, _entries(task))


def _are_few(shape: tuple[int, int]) -> bool:
    """True if paths between columns are fast for any number of rows."""
    return shape[1] <= few_columns.NARROW or few_columns.takes(shape)


def _is_complete(task: TransportTask, extremes: Range) -> bool:
    """True if all pairs are allowed, some mass is there, and no dual overflows."""
    costs, (low, high) = task.costs, extremes
    if costs is None or task.forbidden is not None:
        return False
    if not (task.supply.any() and task.demand.any()):
        return False
    if not task.is_integer:
        return bool(4 * max(abs(high), abs(low)) < np.inf)
    largest = max(-int(low), int(high))
    if task.row_limit is not None:
        largest = max(largest, int(np.abs(task.row_limit).max()))
    return 16 * (min(costs.shape) + 2) * largest < 2**62


# -- dense -----------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """The problem of the rows and columns with masses; `initial` has duals of both, or is None."""

    source: AllPairs
    supply: np.ndarray
    demand: np.ndarray
    limit: np.ndarray | None
    least: np.ndarray | None
    initial: tuple[np.ndarray, np.ndarray] | None
    tolerance: float


class _Shipped(NamedTuple):
    """Its solution: the duals, the flow by rows and columns, and the counts of the run."""

    is_optimal: bool
    row_dual: np.ndarray
    col_dual: np.ndarray
    flow: tuple[np.ndarray, np.ndarray, np.ndarray]
    counts: dict[str, int]


def _solve_points(task: TransportTask, points: Points) -> TransportSolution:
    """Solve a problem of points without their matrix."""
    with Workers(task.threads, math.prod(task.shape)) as workers:
        return _solve_pairs(task, Cloud(points, workers))


def _solve_pairs(task: TransportTask, pairs: AllPairs) -> TransportSolution:
    """Solve a problem of all pairs that are no matrix here."""
    if task.supply.any() and task.demand.any():
        return _solve_dense(task, pairs, pairs.extremes)
    return _nothing_shipped(task, pairs)


def _nothing_shipped(task: TransportTask, pairs: AllPairs) -> TransportSolution:
    """The empty flow, where one side has no mass, with duals.

    Columns without demand are full, so their duals are so low that no row is worth less than its
    limit.
    """
    limit, col_dual = task.row_limit, np.zeros(task.demand.size, pairs.dtype)
    if limit is not None and not task.demand.any():
        col_dual[:] = min(pairs.extremes[0] - limit.max(), 0)
    row_dual = pairs.row_minima(col_dual)
    if limit is not None:
        row_dual = np.minimum(row_dual, limit)
    none = np.empty(0, np.int64)
    return TransportSolution(none, none, none, row_dual, col_dual, True)


def _solve_dense(task: TransportTask, source: AllPairs, extremes: Range) -> TransportSolution:
    """Solve the problem of the rows and columns with masses, and find duals of the others."""
    rows, cols = np.flatnonzero(task.supply), np.flatnonzero(task.demand)
    initial = task.initial
    if initial is not None and not all(
        _is_sane(side, extremes, min(source.shape)) for side in initial
    ):
        initial = None
    part = _Part(
        source, task.supply, task.demand, task.row_limit, task.least, initial,
        rounding_of(extremes, is_integer=task.is_integer),
    )  # fmt: skip
    if rows.size < task.supply.size or cols.size < task.demand.size:
        some = source.part(rows, cols)
        some = Matrix(some) if isinstance(some, np.ndarray) else some
        part = _Part(
            some, task.supply[rows], task.demand[cols],
            None if part.limit is None else part.limit[rows],
            None if part.least is None else part.least[cols],
            None if initial is None else (initial[0][rows], initial[1][cols]), part.tolerance,
        )  # fmt: skip
    found = _ship(part, task)
    row_dual, col_dual = found.row_dual, found.col_dual
    if cols.size < task.demand.size:
        col_dual = source.conjugate(rows, row_dual, lambda: None)
        np.minimum(col_dual, 0, out=col_dual)
        col_dual[cols] = found.col_dual
    if part.source is not source:
        row_dual = source.row_minima(col_dual)
        if task.row_limit is not None:
            np.minimum(row_dual, task.row_limit, out=row_dual)
    used_rows, used_cols, flow = rows[found.flow[0]], cols[found.flow[1]], found.flow[2]
    is_exact = task.is_integer or task.least is not None
    if found.is_optimal and not is_exact and flow.size:
        used = np.average(np.abs(source.at(used_rows, used_cols)), weights=flow / flow.sum())
        if 0 < used * FAR < max(abs(extremes[1]), abs(extremes[0])):
            costs = source.matrix()
            if costs is not None:
                nothing = np.zeros_like(row_dual), np.zeros_like(col_dual)
                task = dataclasses.replace(task, initial=nothing, costs=costs, pairs=None)
                return _solve_by_paths(task, _entries(task))
    return TransportSolution(
        used_rows, used_cols, flow, row_dual.copy(), col_dual.copy(), found.is_optimal,
        stats=found.counts,
    )  # fmt: skip


def _ship(part: _Part, task: TransportTask) -> _Shipped:
    """Choose between the two ways for matrices: by all rows and columns, or by the few."""
    source, shape, initial = part.source, part.source.shape, part.initial
    if isinstance(source, Matrix):
        if part.least is not None or few_columns.takes(shape):
            few = FewColumns(
                source.costs, part.supply, part.demand, part.limit, task.control, task.seed,
                least=part.least, tolerance=part.tolerance,
            )  # fmt: skip
            is_optimal = few.solve(None if initial is None else initial[1])
            return _Shipped(is_optimal, few.row_dual, few.col_dual, few.flow(), few.counts)
        if few_columns.takes(shape[::-1]):
            return _ship_turned(part, source.costs, task)
    problem = DenseProblem(
        source, part.supply, part.demand, part.limit, task.control, task.seed
    )  # fmt: skip
    is_optimal = problem.solve(None if initial is None else initial[1])
    rows, cols, flow = problem.flow()
    order = np.lexsort((cols, rows))
    sent = rows[order], cols[order], flow[order]
    return _Shipped(is_optimal, problem.row_dual, problem.col_dual, sent, problem.counts)


def _ship_turned(part: _Part, costs: np.ndarray, task: TransportTask) -> _Shipped:
    """Solve a problem of few rows as one of few columns.

    A column may keep what it has left for nothing, which is its limit there. Rows must ship all, so
    their supply is a lower bound, too. If they have limits, costs are less these, and there is no
    lower bound.
    """
    is_even = part.limit is None and int(part.supply.sum()) == int(part.demand.sum())
    number = costs.dtype
    if part.limit is not None:
        costs = costs - part.limit[:, None]
    few = FewColumns(
        np.ascontiguousarray(costs.T), part.demand, part.supply,
        None if is_even else np.zeros(part.demand.size, number), task.control, task.seed,
        least=part.supply if part.limit is None else None, tolerance=part.tolerance,
    )  # fmt: skip
    initial = None if part.initial is None else part.initial[0]
    if initial is not None and part.limit is not None:
        initial = initial - part.limit
    is_optimal = few.solve(initial)
    row_dual, col_dual = few.col_dual, few.row_dual
    if is_even:
        top = col_dual.max()
        row_dual, col_dual = row_dual + top, col_dual - top
    elif part.limit is not None:
        row_dual = row_dual + part.limit
    cols, rows, flow = few.flow()
    order = np.argsort(rows, kind="stable")
    sent = rows[order], cols[order], flow[order]
    return _Shipped(is_optimal, row_dual, col_dual, sent, few.counts)


# -- CSR -------------------------------------------------------------------------------------------


def _solve_by_paths(task: TransportTask, entries: Entries) -> TransportSolution:
    """Solve in CSR: by paths from given duals, if few entries are read, else from an auction."""
    size = entries[1].size
    is_even = task.row_limit is None and int(task.supply.sum()) == int(task.demand.sum())
    price = _first_prices(task, entries, is_even=is_even)
    if size <= FEW:
        return _completed(task, entries, _Start(price))
    if task.flow is not None:
        sent = np.add.reduceat(np.append(task.flow, 0), entries[0][:-1])
        sent[np.diff(entries[0]) == 0] = 0
        unshipped = np.zeros_like(sent) if task.row_limit is None else task.supply - sent
        start = _Start(price, task.flow, unshipped)
        return _completed(task, entries, _crossed(task, entries, start))
    if task.initial is not None:
        start = _Start(price, most=TRIAL * size)
        found = _completed(task, entries, start)
        if found.is_optimal or found.infeasible_rows is not None or task.control.stopped:
            return found
        task = dataclasses.replace(task, initial=None)
        price = _first_prices(task, entries, is_even=is_even)
    return _completed(task, entries, _auctioned(task, entries, price, is_even=is_even))


class _Start(NamedTuple):
    """Prices and flow that paths begin from, and how many entries these may read."""

    price: np.ndarray
    flow: np.ndarray | None = None
    unshipped: np.ndarray | None = None
    is_stopped: bool = False
    counts: dict[str, int] = {}  # noqa: RUF012  # nobody changes it
    most: int | None = None


def _auctioned(
    task: TransportTask, entries: Entries, price: np.ndarray, *, is_even: bool
) -> _Start:
    """Prices and flow by an auction and pivots."""
    auction = Auction(
        entries, task.supply, task.demand, task.row_limit, price, task.control, is_even=is_even
    )  # fmt: skip
    is_stopped = False
    try:
        auction.run()
    except Stopped:
        is_stopped = True
    start = _Start(auction.prices(price.dtype), auction.flow, auction.unshipped, is_stopped)
    return start if is_stopped else _crossed(task, entries, start)


def _crossed(task: TransportTask, entries: Entries, start: _Start) -> _Start:
    """The start made optimal by pivots, if they do not overflow."""
    limit, control = task.row_limit, task.control
    if not crossover.takes(_extremes(task, entries), task.shape):
        return start
    price, is_stopped = start.price, False
    assert start.flow is not None
    basis = Basis(entries, task.supply, task.demand, limit, start.flow, start.price, control)
    try:
        basis.solve()
        price = basis.prices()
    except Stopped:
        is_stopped = True
    unshipped = basis.unshipped() if limit is not None else np.zeros_like(task.supply)
    counts = {"pivots": basis.pivots, "sweeps": basis.sweeps}
    return _Start(price, basis.flow(), unshipped, is_stopped, counts)


def _completed(task: TransportTask, entries: Entries, start: _Start) -> TransportSolution:
    """The solution by paths; neither optimal nor infeasible if they end before it is there."""
    price, violator, is_optimal = start.price, None, False
    flows = Flows(
        entries, task.supply, task.demand, task.row_limit, price, task.control, start.flow,
        start.unshipped,
    )  # fmt: skip
    try:
        if not start.is_stopped:
            flows.part_slack(0.0 if task.is_integer else ROUNDING)
            flows.ship_tight()
            violator = flows.serve(start.most)
            if violator is None and flows.shipped == flows.total:
                flows.settle()
                is_optimal = True
    except Stopped:
        pass
    price -= max(price.max(initial=0), 0)
    used = np.flatnonzero(flows.flow)
    rows = np.searchsorted(entries[0], used, side="right") - 1
    return TransportSolution(
        rows.astype(np.int64), entries[1][used].astype(np.int64), flows.flow[used],
        flows.row_duals(), price, is_optimal, violator, {**start.counts, **flows.counts},
    )  # fmt: skip


def _extremes(task: TransportTask, entries: Entries) -> Range:
    """The least and the greatest of costs and limits; there are entries."""
    ends: list[Any] = [entries[2].min(), entries[2].max()]
    if task.row_limit is not None and task.row_limit.size:
        ends += [task.row_limit.min(), task.row_limit.max()]
    return min(ends), max(ends)


def _entries(task: TransportTask) -> Entries:
    """The costs in CSR."""
    if task.costs is None:
        assert task.indptr is not None
        assert task.indices is not None
        assert task.data is not None
        return task.indptr, task.indices, task.data
    costs = task.costs
    allowed = np.isfinite(costs) if costs.dtype.kind == "f" else np.ones(costs.shape, bool)
    if task.forbidden is not None:
        allowed &= ~task.forbidden
    indptr = np.zeros(costs.shape[0] + 1, np.int64)
    np.cumsum(allowed.sum(axis=1), out=indptr[1:])
    return indptr, np.nonzero(allowed)[1].astype(np.int32), costs[allowed]


def _first_prices(task: TransportTask, entries: Entries, *, is_even: bool) -> np.ndarray:
    """Prices to begin from: given ones, or the least costs of columns if all must be full, or 0."""
    _, indices, costs = entries
    ncols = task.demand.size
    if (
        task.initial is not None
        and costs.size
        and _is_sane(task.initial[1], (costs.min(), costs.max()), task.supply.size)
    ):
        price = task.initial[1].copy()
        return price if is_even else np.minimum(price, 0)
    if not is_even:
        return np.zeros(ncols, costs.dtype)
    far: Any = np.iinfo(np.int64).max if task.is_integer else np.inf
    price = np.full(ncols, far, costs.dtype)
    search.column_minima(indices, costs, price)
    price[price == far] = 0
    return price


def _is_sane(price: np.ndarray, extremes: Range, count: int) -> bool:
    """True if given prices differ by no more than prices of a shortest path may."""
    largest = max(abs(float(extremes[0])), abs(float(extremes[1])))
    return bool(np.abs(price.astype(np.float64)).max(initial=0) <= 2.0 * (count + 1) * largest)
