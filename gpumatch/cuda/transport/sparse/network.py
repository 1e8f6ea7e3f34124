"""A transport problem on the device as one whose totals agree, in CSR and by columns.

Each row gets all its supply shipped and each column is filled, by two additions:

- With limits, each row has a column of its own, which takes all its supply at the row's limit.
  Row i has the column m + i, for m columns of the given problem.
- If columns take more than the rows supply, one more row ships the rest, at no cost to any column.
  It is the last row, the filler. Its dual is the price of columns that are not full.

Entries of columns without demand are left out. Such a column gets its dual at the end.
"""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts.transport import TransportTask
from gpumatch.cuda import csr
from gpumatch.numeric.arrays import any_true

__all__ = ["Network"]

_ENTRIES_A_LANE = 2  # a lane reads so many entries of an average row at least


class Network:
    """The problem with a flow on it; the kernels' struct is in network.cuh.

    Parameters
    ----------
    task : TransportTask
        Sparse, on the device. Its total demand is positive.

    Attributes
    ----------
    nrows, ncols : int
        Of the problem with the additions.
    given_rows, given_cols : int
        Of the task.
    has_filler : bool
    total : int
        The units of the given rows.
    demand : int64 array
        The units that each column takes.
    flow, excess, room : int64 arrays
        They change.
    """

    def __init__(self, task: TransportTask) -> None:
        self.task = task
        self.given_rows, self.given_cols = task.shape
        indptr, indices, costs = self._entries()
        limit = task.row_limit
        self.total = int(task.supply.sum())
        spare = int(task.demand.sum()) - (self.total if limit is None else 0)
        self.has_filler = spare > 0
        excess, demand = task.supply, task.demand
        if limit is not None:
            indptr, indices, costs = self._with_limits(indptr, indices, costs)
            demand = cp.concatenate([demand, task.supply])
        if self.has_filler:
            cols = cp.arange(demand.size, dtype=np.int32)
            indptr = cp.concatenate([indptr, indptr[-1:] + demand.size])
            indices = cp.concatenate([indices, cols])
            costs = cp.concatenate([costs, cp.zeros(demand.size, costs.dtype)])
            excess = cp.concatenate([excess, cp.full(1, spare, np.int64)])
        self.nrows, self.ncols = excess.size, demand.size
        self.indptr, self.indices, self.costs = indptr, indices, costs
        order = cp.argsort(indices)
        self.holders = indices[order]
        self.owners = csr.owners(indptr, indices)[order]
        self.places = cp.empty(indices.size, np.int64)
        self.places[order] = cp.arange(indices.size)
        starts = cp.arange(self.ncols + 1, dtype=np.int32)
        self.colptr = cp.searchsorted(self.holders, starts).astype(np.int64, copy=False)
        self.demand = demand
        self.flow = cp.zeros(indices.size, np.int64)
        self.excess, self.room = excess.copy(), demand.copy()
        average = indices.size / max(self.nrows, 1) / _ENTRIES_A_LANE
        self.lanes = min(1 << max(int(average) - 1, 0).bit_length(), 32)

    def _entries(self) -> tuple[cp.ndarray, cp.ndarray, cp.ndarray]:
        """The entries of the task but for those of columns that take nothing."""
        task = self.task
        indptr, indices, costs = task.indptr, task.indices, task.data
        assert indptr is not None
        assert indices is not None
        assert costs is not None
        indices = indices.astype(np.int32, copy=False)
        if not any_true(task.demand == 0):
            return indptr, indices, costs
        kept = (task.demand > 0)[indices]
        before = cp.zeros(indices.size + 1, np.int64)
        cp.cumsum(kept, dtype=np.int64, out=before[1:])
        return before[indptr], indices[kept], costs[kept]

    def _with_limits(
        self, indptr: cp.ndarray, indices: cp.ndarray, costs: cp.ndarray
    ) -> tuple[cp.ndarray, cp.ndarray, cp.ndarray]:
        """The entries with a column of its own for each row."""
        rows = cp.arange(self.given_rows + 1)
        all_indptr = indptr + rows
        last = all_indptr[1:] - 1
        all_indices = cp.empty(indices.size + self.given_rows, np.int32)
        all_costs = cp.empty(all_indices.size, costs.dtype)
        all_indices[last] = self.given_cols + rows[:-1]
        all_costs[last] = self.task.row_limit
        places = cp.arange(indices.size) + csr.owners(indptr, indices)
        all_indices[places], all_costs[places] = indices, costs
        return all_indptr, all_indices, all_costs

    def ship(self, flow: cp.ndarray) -> None:
        """Begin with the units of each entry of the task. Columns without demand take none."""
        task, count = self.task, int(self.indptr[self.given_rows])
        assert task.indptr is not None
        assert task.indices is not None
        if flow.size != count:
            where = cp.arange(flow.size)
            if task.row_limit is not None:
                where += csr.owners(task.indptr, task.indices)
        else:
            where = slice(0, count)
        self.flow[self.places[:count][where]] = flow
        sent = cp.zeros(flow.size + 1, np.int64)
        cp.cumsum(flow, out=sent[1:])
        self.excess[: self.given_rows] -= cp.diff(sent[task.indptr])
        taken = cp.zeros(self.flow.size + 1, np.int64)
        cp.cumsum(self.flow, out=taken[1:])
        self.room -= cp.diff(taken[self.colptr])

    def struct(self, kernels: Any) -> np.ndarray:
        """The struct for some kernels."""
        return kernels.struct("Network")(
            indptr=self.indptr,  # IN
            indices=self.indices,
            costs=self.costs,
            places=self.places,
            colptr=self.colptr,
            owners=self.owners,
            holders=self.holders,
            nrows=self.nrows,
            ncols=self.ncols,
            lanes=self.lanes,
            flow=self.flow,  # IN, OUT
            excess=self.excess,
            room=self.room,
        )

    def column_minima(self) -> cp.ndarray:
        """The least cost of each column; 0 if it has no entries."""
        far: Any = np.iinfo(np.int64).max if self.costs.dtype.kind == "i" else np.inf
        least = cp.full(self.ncols, far, self.costs.dtype)
        csr.lower(least, self.indices, self.costs)
        return cp.where(least == far, 0, least).astype(self.costs.dtype, copy=False)

    def shipped(self) -> int:
        """The units of given rows that have a column, be it one of limits."""
        return self.total - int(self.excess[: self.given_rows].sum())

    def flow_of_entries(self) -> cp.ndarray:
        """The units of each entry of the task."""
        task, count = self.task, int(self.indptr[self.given_rows])
        assert task.indices is not None
        flow = self.flow[self.places[:count]][self.indices[:count] < self.given_cols]
        if flow.size == task.indices.size:
            return flow
        every = cp.zeros(task.indices.size, np.int64)
        every[(task.demand > 0)[task.indices]] = flow
        return every
