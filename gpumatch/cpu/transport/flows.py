"""A flow and prices in a transport problem in CSR, and exact paths that complete it.

The arrays are those of `search`. Memory beside the entries: 28 bytes an entry of floats or int64,
once paths are searched, and 90 bytes a vertex, whatever the masses are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from gpumatch.contracts import Control, Stopped
from gpumatch.cpu import csr
from gpumatch.cpu.transport import search, state
from gpumatch.running.kept_memory import kept_empty, kept_full

__all__ = ["Flows"]

BLOCK = 2**22
"""Entries that a kernel reads between two ticks."""


class Flows:
    """A flow that pays the reduced costs of rows at the prices of columns.

    Parameters
    ----------
    entries : (indptr, indices, costs)
        CSR with int32 indices, and int64 or float64 costs.
    supply, demand : int64 arrays
    limit : array, optional
        The cost of a unit of each row that is not shipped.
    price : array
        The prices of the columns, which change in place.
    flow : int64 array, optional
        The units of each entry; none if it is not given. It changes in place.
    unshipped : int64 array, optional
        The units of each row that stay.
    control : Control
    """

    def __init__(
        self,
        entries: tuple[np.ndarray, np.ndarray, np.ndarray],
        supply: np.ndarray,
        demand: np.ndarray,
        limit: np.ndarray | None,
        price: np.ndarray,
        control: Control,
        flow: np.ndarray | None = None,
        unshipped: np.ndarray | None = None,
    ) -> None:
        self.entries, self.control, self.price = entries, control, price
        indptr, indices, costs = entries
        nrows, ncols, nnz = supply.size, demand.size, indices.size
        number: Any = costs.dtype.type
        self.limit = np.empty(0, number) if limit is None else limit
        is_integer = costs.dtype.kind == "i"
        self.low = number(np.iinfo(number).min) if is_integer else number(-np.inf)
        self.far = number(np.iinfo(number).max) if is_integer else number(np.inf)
        self.supply, self.demand = supply, demand
        self.total = int(supply.sum())
        self.reported: int | None = None  # what ticks report, if not the units of this flow
        place = np.int32 if nnz < 2**31 else np.int64
        self.flow = kept_full(nnz, 0, np.int64) if flow is None else flow
        self.unshipped = np.zeros(nrows, np.int64) if unshipped is None else unshipped
        self.unmatched = supply - self.unshipped
        self.spare = demand.copy()
        if flow is not None:
            sent = np.concatenate([[0], np.cumsum(flow)])
            self.unmatched -= sent[indptr[1:]] - sent[indptr[:-1]]
            used = np.flatnonzero(flow)
            np.subtract.at(self.spare, indices[used], flow[used])
        self._owner, self._link = kept_empty(nnz, np.int32), kept_empty(nnz, place)
        self._head = np.full(ncols, state.END, place)
        search.list_flows(entries, self._owner, self.flow, self._link, self._head)
        self._place = place
        self.spot = np.zeros(state.SPOTS, np.int64)
        self.spot[state.HEAD] = -1
        self.mark = np.zeros(state.MARKS, number)
        self.scans = self.paths = 0

    @cached_property
    def _room(self) -> tuple[np.ndarray, ...]:
        """The arrays of a search."""
        nrows, ncols, nnz = self.supply.size, self.price.size, self.flow.size
        number = self.price.dtype
        dist, pred = np.full(ncols, self.far, number), np.empty(ncols, self._place)
        via, offset = np.full(nrows, state.ABSENT, self._place), np.empty(nrows, number)
        line, (near, tree, reached) = np.empty(nrows, np.int32), np.empty((3, ncols), np.int32)
        keys, heap = kept_empty(nnz + 1, number), kept_empty(nnz + 1, np.int32)
        return dist, pred, via, offset, line, near, keys, heap, tree, reached

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What kernels change."""
        return (
            self._owner, self.flow, self._link, self._head, self.spare, self.unmatched,
            self.unshipped,
        )  # fmt: skip

    @property
    def shipped(self) -> int:
        """The units that are shipped, and those that stay."""
        return self.total - int(self.unmatched.sum())

    @property
    def counts(self) -> dict[str, int]:
        """The paths, and the entries that they have read."""
        return {"paths": self.paths, "scans": self.scans}

    def ship_tight(self) -> None:
        """Ship by tight pairs to columns that are not full; raises Stopped."""
        for rows in self._blocks():
            search.ship_tight(
                self.entries,  # IN
                self.arrays,  # OUT
                self.price, self.limit, self.far, *rows,  # IN
            )  # fmt: skip
            self.beat()

    def part_slack(self, rounding: float) -> None:
        """End the flow of pairs that are not tight but for a share that is rounding."""
        for rows in self._blocks():
            search.part_slack(
                self.entries,  # IN
                self.arrays,  # OUT
                self.price, self.limit, self.far, rounding, *rows,  # IN
            )  # fmt: skip
            self.beat()

    def serve(self, most: int | None = None) -> np.ndarray | None:
        """Ship all that waits; return the rows of a Hall violator if that cannot be, else None.

        It ends early once it has read ``most`` entries. Raises Stopped.
        """
        roots = np.flatnonzero(self.unmatched).astype(np.int32)
        budget = search.BUDGET if most is None else min(search.BUDGET, most)
        self.spot[state.NEXT], outcome = 0, state.SPENT if roots.size else state.SERVED
        while outcome == state.SPENT:
            outcome = search.augment(
                self.entries,  # IN
                self.arrays, self.price,  # OUT
                roots,  # IN
                self.spot, self.mark, self._room,  # OUT
                (self.limit, self.low, self.far), budget,  # IN
            )  # fmt: skip
            self.beat()
            if most is not None and self.spot[state.SCANS] >= most:
                break
        self.control.phase(
            found=int(self.spot[state.PATHS]) - self.paths, matched=self.shipped, step="paths",
            scans=int(self.spot[state.SCANS]) - self.scans,
        )  # fmt: skip
        self.paths, self.scans = int(self.spot[state.PATHS]), int(self.spot[state.SCANS])
        if outcome == state.STUCK:
            return np.sort(self._room[4][: self.spot[state.LINE_TAIL]]).astype(np.int64)
        return None

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Ranges of rows whose entries are read between two ticks."""
        indptr, nrows = self.entries[0], self.supply.size
        begins = np.arange(0, self.flow.size, BLOCK)
        bounds = np.unique(np.searchsorted(indptr, begins[1:]))
        return pairwise([0, *bounds[bounds < nrows].tolist(), nrows])

    def beat(self) -> None:
        """Report the units that are shipped; raises Stopped."""
        shipped = self.shipped if self.reported is None else self.reported
        if self.control.tick(shipped):
            raise Stopped

    def row_duals(self) -> np.ndarray:
        """The duals of the rows."""
        duals = np.empty(self.supply.size, self.price.dtype)
        search.row_duals(
            self.entries, self.price, self.limit, self.far,  # IN
            duals,  # OUT
            0, duals.size,  # IN
        )  # fmt: skip
        return duals

    def settle(self) -> None:
        """Give columns that are not full the price 0, by paths from them; raises Stopped.

        All rows have been served. The paths are those of the transposed problem, in which a unit
        of a column may stay at the price 0.
        """
        if not ((self.price < 0) & (self.spare > 0)).any():
            return
        indptr, indices, costs = self.entries
        ncols = self.price.size
        order = np.arange(indices.size, dtype=self._place)
        col_indptr, rows, order = csr.transpose_values(indptr, indices, order, ncols)
        duals, taken = self.row_duals(), self.spare.copy()
        is_cheap = (self.price < 0) & (self.spare > 0)
        taken[is_cheap] = 0
        other = Flows(
            (col_indptr.astype(indptr.dtype), rows, costs[order]),
            self.demand, self.supply, np.zeros(ncols, costs.dtype), duals, self.control,
            self.flow[order], taken,
        )  # fmt: skip
        other.reported = self.shipped
        try:
            other.serve()
        finally:
            self.flow[order] = other.flow
            self.price[:] = other.row_duals()
        self.price[other.unshipped > 0] = 0  # but for rounding
