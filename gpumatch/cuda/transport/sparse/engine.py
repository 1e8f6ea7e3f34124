"""Exact transport in CSR on the GPU: an auction on the device, and a few pivots on the host.

The problem becomes one whose totals agree (`network`). An auction of lots (`auction`) finds prices
and nearly all of the flow, by many threads. What makes that optimal is little, and one step after
the other, so the host does it (`TransportTask.fallback`), from the flow and the prices. No mass is
unfolded, and integers are exact.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Stopped
from gpumatch.contracts.transport import TransportSolution, TransportTask
from gpumatch.cuda.memory import require_memory
from gpumatch.cuda.transport.host import solve_on_host
from gpumatch.cuda.transport.sparse.auction import Auction, Tuning
from gpumatch.cuda.transport.sparse.network import Network

__all__ = ["FEW", "solve"]

BYTES_AN_ENTRY = 80
"""The memory of an entry, beside the task's own, while entries are sorted by columns."""
FEW = 2**15
"""Entries up to which the host alone is as fast."""
LARGEST = 2.0**62
"""Prices of integers stay below this."""


def solve(task: TransportTask, tuning: Tuning | None = None) -> TransportSolution:
    """Ship all supply at least cost, as `gpumatch.contracts.transport` states.

    Raises
    ------
    MemoryError
        There is no memory for the entries by columns.
    """
    if not _has_auction(task):
        return solve_on_host(task)
    size = task.data.size + 2 * task.supply.size + task.demand.size
    require_memory(BYTES_AN_ENTRY * size, "sparse transport")
    network = Network(task)
    price = cp.zeros(network.ncols) if network.has_filler else -_column_minima(network)
    bids = Auction(network, price, task.control, tuning)
    with contextlib.suppress(Stopped):
        bids.run()
    col_dual = _in_costs(-bids.price[: network.given_cols], task.dtype)
    given = cp.zeros(task.supply.size, task.dtype), col_dual
    found = solve_on_host(
        dataclasses.replace(task, initial=given, flow=network.flow_of_entries())
    )  # fmt: skip
    return dataclasses.replace(found, stats={"bidding_rounds": bids.rounds, **found.stats})


def _has_auction(task: TransportTask) -> bool:
    """True if an auction is of use: nothing is known, there is enough to do, no price overflows."""
    data: Any = task.data
    if data.size <= FEW or task.initial is not None:
        return False
    if not (int(task.supply.sum()) and int(task.demand.sum())):
        return False
    ends = [data.min(), data.max()]
    if task.row_limit is not None and task.row_limit.size:
        ends += [task.row_limit.min(), task.row_limit.max()]
    largest = max(abs(float(end)) for end in ends)
    bound = LARGEST if task.is_integer else 2.0**1020
    return 16.0 * (min(task.shape) + 2) * max(largest, 1.0) <= bound


def _column_minima(network: Network) -> cp.ndarray:
    """The least costs of columns, to begin from if all of them must be full."""
    return network.column_minima().astype(np.float64)


def _in_costs(dual: cp.ndarray, dtype: Any) -> cp.ndarray:
    """Duals of columns in the dtype of costs; integers are rounded down: tight pairs stay tight."""
    return cp.floor(dual).astype(dtype) if np.dtype(dtype).kind == "i" else dual
