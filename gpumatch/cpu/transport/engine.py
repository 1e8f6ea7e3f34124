"""Exact transport on the CPU: rows ship their supply to columns of limited demand at least cost.

A dense problem without forbidden pairs is solved by the network simplex method on a core of its
pairs (`dense`), and one of few columns on the few rows that may have to leave their cheapest column
(`few_columns`). All others are solved in CSR: an auction with lots of columns (`auction`,
`bidding`) finds prices and most of the flow, and shortest augmenting paths (`flows`, `search`) ship
the rest exactly, each as much as the path carries. Neither unfolds a mass: the work and the memory
do not depend on how many units there are. At the end all pairs with flow are tight at the duals,
which proves the flow.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from gpumatch.contracts import Stopped
from gpumatch.cpu.transport import candidates, few_columns, search
from gpumatch.cpu.transport.auction import Auction
from gpumatch.cpu.transport.dense import DenseProblem
from gpumatch.cpu.transport.few_columns import FewColumns
from gpumatch.cpu.transport.flows import Flows
from gpumatch.transport_contracts import TransportSolution, TransportTask

__all__ = ["FEW", "SMALL", "solve"]

SMALL = 2**10
"""Pairs up to which a dense problem is solved by paths: there is hardly anything to gain."""
FEW = 2**12
"""Entries of CSR up to which paths alone are fast enough."""
FAR = 2.0**14
"""How many times greater than those in use costs of floats are so that the duals of the network
simplex method, which come near all of them, are too inexact. Paths from duals of 0 follow."""
ROUNDING = 2.0**-50
"""The share of costs and prices by which a float's pair may miss being tight."""
Entries = tuple[np.ndarray, np.ndarray, np.ndarray]


def solve(task: TransportTask) -> TransportSolution:
    """Ship all supply at least cost, as `gpumatch.transport_contracts` states."""
    if task.costs is not None and task.costs.size > SMALL and _is_complete(task):
        return _solve_dense(task, task.costs)
    return _solve_by_paths(task, _entries(task))


def _is_complete(task: TransportTask) -> bool:
    """True if all pairs are allowed, some mass is there, and no dual overflows."""
    costs = task.costs
    if costs is None or task.forbidden is not None:
        return False
    if not (task.supply.any() and task.demand.any()):
        return False
    if not task.is_integer:
        return bool(4 * max(abs(costs.max()), abs(costs.min())) < np.inf)
    largest = max(-int(costs.min()), int(costs.max()))
    if task.row_limit is not None:
        largest = max(largest, int(np.abs(task.row_limit).max()))
    return 16 * (min(costs.shape) + 2) * largest < 2**62


# -- dense -----------------------------------------------------------------------------------------


def _solve_dense(task: TransportTask, costs: np.ndarray) -> TransportSolution:
    """Solve the problem of the rows and columns with masses, and find duals of the others."""
    rows, cols = np.flatnonzero(task.supply), np.flatnonzero(task.demand)
    limit, given = task.row_limit, None if task.initial is None else task.initial[1]
    if given is not None and not _is_sane(given, costs, task.supply.size):
        given = None
    part = costs
    if rows.size < task.supply.size or cols.size < task.demand.size:
        part = costs[rows[:, None], cols]
        limit = None if limit is None else limit[rows]
        given = None if given is None else given[cols]
    masses = task.supply[rows], task.demand[cols]
    problem: DenseProblem | FewColumns
    if limit is None and few_columns.takes(part.shape):
        problem = FewColumns(part, *masses, task.control, task.seed)
    else:
        problem = DenseProblem(part, *masses, limit, task.control, task.seed)
    is_optimal = problem.solve(given)
    col_dual = np.full(task.demand.size, problem.far, costs.dtype)
    if cols.size < task.demand.size:
        candidates.conjugate(
            costs, rows, problem.row_dual,  # IN
            col_dual,  # OUT
        )  # fmt: skip
        np.minimum(col_dual, 0, out=col_dual)
    col_dual[cols] = problem.col_dual
    row_dual = problem.row_dual
    if part is not costs:
        row_dual = np.empty(task.supply.size, costs.dtype)
        candidates.row_minima(
            costs, col_dual,  # IN
            row_dual, np.empty_like(col_dual),  # OUT
        )  # fmt: skip
        if task.row_limit is not None:
            np.minimum(row_dual, task.row_limit, out=row_dual)
    used_rows, used_cols, flow = problem.flow()
    used_rows, used_cols = rows[used_rows], cols[used_cols]
    if is_optimal and not task.is_integer and flow.size:
        used = np.average(np.abs(costs[used_rows, used_cols]), weights=flow)
        if 0 < used * FAR < max(abs(costs.max()), abs(costs.min())):
            nothing = np.zeros_like(row_dual), np.zeros_like(col_dual)
            return _solve_by_paths(dataclasses.replace(task, initial=nothing), _entries(task))
    order = np.lexsort((used_cols, used_rows))
    return TransportSolution(
        used_rows[order], used_cols[order], flow[order], row_dual.copy(), col_dual, is_optimal,
        stats=problem.counts,
    )  # fmt: skip


# -- CSR -------------------------------------------------------------------------------------------


def _solve_by_paths(task: TransportTask, entries: Entries) -> TransportSolution:
    indices = entries[1]
    is_even = task.row_limit is None and int(task.supply.sum()) == int(task.demand.sum())
    price = _first_prices(task, entries, is_even=is_even)
    limit, control = task.row_limit, task.control
    flow = unshipped = violator = None
    is_optimal = is_stopped = False
    if task.initial is None and indices.size > FEW:
        auction = Auction(
            entries, task.supply, task.demand, limit, price, control, is_even=is_even
        )  # fmt: skip
        try:
            auction.run()
        except Stopped:
            is_stopped = True
        price = auction.prices(price.dtype)
        flow, unshipped = auction.flow, auction.unshipped
    flows = Flows(entries, task.supply, task.demand, limit, price, control, flow, unshipped)
    try:
        if not is_stopped:
            flows.part_slack(0.0 if task.is_integer else ROUNDING)
            flows.ship_tight()
            violator = flows.serve()
            if violator is None:
                flows.settle()
                is_optimal = True
    except Stopped:
        pass
    price -= max(price.max(initial=0), 0)
    used = np.flatnonzero(flows.flow)
    rows = np.searchsorted(entries[0], used, side="right") - 1
    return TransportSolution(
        rows.astype(np.int64), indices[used].astype(np.int64), flows.flow[used],
        flows.row_duals(), price, is_optimal, violator, flows.counts,
    )  # fmt: skip


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
    if task.initial is not None and _is_sane(task.initial[1], costs, task.supply.size):
        price = task.initial[1].copy()
        return price if is_even else np.minimum(price, 0)
    if not is_even:
        return np.zeros(ncols, costs.dtype)
    far: Any = np.iinfo(np.int64).max if task.is_integer else np.inf
    price = np.full(ncols, far, costs.dtype)
    search.column_minima(indices, costs, price)
    price[price == far] = 0
    return price


def _is_sane(price: np.ndarray, costs: np.ndarray, nrows: int) -> bool:
    """True if given prices differ by no more than prices of a shortest path may."""
    if not price.size or not costs.size:
        return False
    largest = max(abs(float(costs.min())), abs(float(costs.max())))
    return bool(np.abs(price.astype(np.float64)).max() <= 2.0 * (nrows + 1) * largest)
