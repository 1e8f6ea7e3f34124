"""Exact transport in CSR on the GPU.

The problem becomes one whose totals agree (`network`). An auction of lots (`auction`) finds prices
and most of the flow. Forests of shortest paths (`paths`) ship the rest exactly, each path as much
as it carries. Neither unfolds a mass. Integers are exact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from gpumatch.contracts import Stopped
from gpumatch.contracts.transport import TransportSolution, TransportTask
from gpumatch.cuda import csr
from gpumatch.cuda.memory import require_memory
from gpumatch.cuda.transport.sparse.auction import Auction, Tuning
from gpumatch.cuda.transport.sparse.network import Network
from gpumatch.cuda.transport.sparse.paths import FINEST, LARGEST, Paths, TooLargeError
from gpumatch.numeric.arrays import any_true

__all__ = ["FEW", "Start", "TooLargeError", "solve"]

BYTES_AN_ENTRY = 80
"""The memory of an entry, beside the task's own, while entries are sorted by columns."""
FEW = 2**10
"""Entries up to which paths alone are fast enough."""


class Start(NamedTuple):
    """What is known of the solution.

    Attributes
    ----------
    col_dual : array
        Duals of the columns, none of them above 0 unless all columns must be full.
    flow : int64 array
        Units of each entry. Those that are too dear at the duals are taken back.
    epsilon : float
        How much too dear a unit is, on average: the first epsilon of the auction. There is no
        auction if it is 0.
    """

    col_dual: cp.ndarray
    flow: cp.ndarray
    epsilon: float


def solve(
    task: TransportTask, start: Start | None = None, tuning: Tuning | None = None
) -> TransportSolution:
    """Ship all supply at least cost, as `gpumatch.contracts.transport` states.

    A start is for tasks in which each column has a demand.

    Raises
    ------
    TooLargeError
        Costs are so large that the sums of a path might overflow.
    MemoryError
        There is no memory for the entries by columns.
    """
    assert task.data is not None
    if not int(task.supply.sum()) or not int(task.demand.sum()) or not task.data.size:
        return _without_shipping(task)
    require_small(task)
    size = task.data.size + 2 * task.supply.size + task.demand.size
    require_memory(BYTES_AN_ENTRY * size, "sparse transport")
    network = Network(task)
    counts: dict[str, Any] = {"paths": 0, "rounds": 0, "hops": 0, "bidding_rounds": 0}
    price = _first_price(network, start)
    has_auction = task.initial is None and network.indices.size > FEW
    first_epsilon = None
    if start is not None:
        network.ship(start.flow)
        first_epsilon, has_auction = start.epsilon, has_auction and start.epsilon > 0
    paths, violator = None, None
    is_optimal, near = False, _first_reach(network)
    try:
        if has_auction:
            bids = Auction(network, price.astype(np.float64), task.control, tuning)
            try:
                near = bids.run(first_epsilon)
            finally:
                counts["bidding_rounds"] = bids.rounds
                _take_prices(price, bids.price)
        paths = Paths(network, price, task.control, near)
        paths.reduce_rows(ends_slack=True)
        violator = paths.serve()
        if violator is None:
            if network.has_filler:
                paths.fill()
            is_optimal = True
    except Stopped:
        pass
    if paths is not None:
        counts.update(paths.counts)
    row_dual, col_dual = _duals(network, paths, price, is_optimal=is_optimal)
    return TransportSolution(
        *network.pairs(), row_dual, col_dual, is_optimal, violator, stats=counts
    )  # fmt: skip


def require_small(task: TransportTask) -> None:
    """Raise TooLargeError if the sums of a path might overflow."""
    assert task.data is not None
    ends = [task.data.min(), task.data.max()]
    if task.row_limit is not None and task.row_limit.size:
        ends += [task.row_limit.min(), task.row_limit.max()]
    largest = max(abs(end.item()) for end in ends)
    bound = 2.0**62 if task.is_integer else 2.0**1020
    if not 16.0 * (min(task.shape) + 2) <= bound / max(float(largest), 1.0):
        raise TooLargeError("costs are too large for sums of 64 bits on the GPU")


def _first_price(network: Network, start: Start | None) -> cp.ndarray:
    """Prices to begin from: given ones, or those of the least costs if all columns must be full."""
    task = network.task
    known = start.col_dual if start is not None else task.initial and task.initial[1]
    if known is not None and network.costs.size:
        given = -known
        largest = float(abs(given).max()) if given.size else 0.0
        span = 2.0 * (task.shape[0] + 1) * float(abs(network.costs).max())
        if largest <= min(span, float(LARGEST) / 4):
            price = cp.zeros(network.ncols, network.costs.dtype)
            price[: network.given_cols] = cp.maximum(given, 0) if network.has_filler else given
            return price
    if network.has_filler:
        return cp.zeros(network.ncols, network.costs.dtype)
    return -network.column_minima()


def _first_reach(network: Network) -> float:
    """How far paths look at first, if nothing else is known: a share of the range of costs."""
    costs = network.costs
    return (float(costs.max()) - float(costs.min())) * FINEST if costs.size else 0.0


def _take_prices(price: cp.ndarray, found: cp.ndarray) -> None:
    """Take the prices of the auction; integers are rounded up, which keeps tight pairs tight."""
    if price.dtype.kind == "f":
        price[:] = found
    elif float(abs(found).max()) < LARGEST / 4:
        price[:] = cp.ceil(found).astype(np.int64)


def _duals(
    network: Network, paths: Paths | None, price: cp.ndarray, *, is_optimal: bool
) -> tuple[cp.ndarray, cp.ndarray]:
    """Feasible duals of the given rows and columns."""
    task = network.task
    given = price[: network.given_cols]
    takes = task.demand > 0
    if network.has_filler:
        level = price.min() if paths is None else cp.minimum(paths.row_dual[-1], price.min())
    else:
        level = given[takes].min()
    col_dual = cp.where(takes, cp.minimum(level - given, 0), 0)
    if is_optimal and network.has_filler:
        col_dual[network.fillings() > 0] = 0
    price[:] = 0
    price[: network.given_cols] = -col_dual
    last = Paths(network, price, task.control) if paths is None else paths
    last.reduce_rows(ends_slack=False)
    row_dual = last.row_dual[: network.given_rows].copy()
    if any_true(~takes):
        _lower_to_slack(task, row_dual, col_dual, ~takes)
    return row_dual, col_dual


def _lower_to_slack(
    task: TransportTask, row_dual: cp.ndarray, col_dual: cp.ndarray, which: cp.ndarray
) -> None:
    """Lower the duals of some columns so that no pair of theirs undercuts the rows' duals."""
    assert task.indptr is not None
    assert task.indices is not None
    assert task.data is not None
    used = cp.flatnonzero(which[task.indices])
    rows = csr.owners(task.indptr, task.indices)[used]
    csr.lower(col_dual, task.indices[used], task.data[used] - row_dual[rows])


def _without_shipping(task: TransportTask) -> TransportSolution:
    """The solution of a problem in which nothing can be shipped."""
    assert task.indptr is not None
    assert task.indices is not None
    assert task.data is not None
    nrows, ncols = task.shape
    none, limit = cp.zeros(0, np.int64), task.row_limit
    row_dual = cp.zeros(nrows, task.dtype) if limit is None else limit.copy()
    col_dual = cp.zeros(ncols, task.dtype)
    is_idle = limit is not None or not int(task.supply.sum())
    violator = None if is_idle else cp.flatnonzero(task.supply > 0)
    if task.data.size:
        if not any_true(task.demand > 0):
            _lower_to_slack(task, row_dual, col_dual, task.demand == 0)
        else:
            csr.lower(row_dual, csr.owners(task.indptr, task.indices), task.data)
    return TransportSolution(none, none, none, row_dual, col_dual, is_idle, violator)
