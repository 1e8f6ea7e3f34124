"""Exact transport on the CPU: rows ship their supply to columns of limited demand at least cost.

Shortest augmenting paths (`search`) ship units from rows that have some left, each as much as the
path carries. At the end all pairs with flow are tight at the duals, which proves the flow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.contracts import Stopped
from gpumatch.cpu.transport import search
from gpumatch.cpu.transport.flows import Flows
from gpumatch.transport_contracts import TransportSolution, TransportTask

__all__ = ["solve"]


def solve(task: TransportTask) -> TransportSolution:
    """Ship all supply at least cost, as `gpumatch.transport_contracts` states."""
    entries = _entries(task)
    indices = entries[1]
    is_even = task.row_limit is None and int(task.supply.sum()) == int(task.demand.sum())
    price = _first_prices(task, entries, is_even=is_even)
    flows = Flows(entries, task.supply, task.demand, task.row_limit, price, task.control)
    violator, is_optimal = None, False
    try:
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


def _entries(task: TransportTask) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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


def _first_prices(task: TransportTask, entries: Any, *, is_even: bool) -> np.ndarray:
    """Prices to begin from: given ones, or the least costs of columns if all must be full, or 0."""
    _, indices, costs = entries
    ncols = task.demand.size
    if task.initial is not None and _is_sane(task.initial[1], costs, task.supply.size):
        price = task.initial[1].copy()
        return price if is_even else np.minimum(price, 0)
    if not is_even:
        return np.zeros(ncols, costs.dtype)
    far = np.iinfo(np.int64).max if task.is_integer else np.inf
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
