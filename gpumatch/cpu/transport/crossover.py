"""From a flow that is nearly optimal to one that is, in CSR, by the network simplex method.

The auction ends with a flow whose pairs with units are hardly more than a forest, and all of them
are nearly tight. To make them exactly tight by prices of the auction, most of this flow would have
to end, and paths would ship it again. Here the forest gives the duals: all of its pairs are tight
at them. What is wrong then are a few pairs that cost less than their duals, and pivots of the
network simplex method let these in.

1. *Plant* a tree of the pairs with flow, and of arcs from rows to the root for units that wait or
   stay, and from the root to columns for demand that is not met. Pairs without flow connect its
   parts (`joining`). Along the few arcs that close cycles, flow turns until one arc of the cycle is
   empty.
2. *Sweep* (`sweeps`): let in the arcs that cost less than their ends, until there is none.

An arc to the root costs the limit of its row, or much more than all pairs where all rows must ship.
A flow that still stays in the end shows that the problem is infeasible, or that this cost is too
little. It is left to exact paths, for which all pairs with flow are tight.

Reference: Bixby, Saltzman, *Recovering an optimal LP basis from an interior point solution*,
Operations Research Letters 15, 1994.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.contracts import Control, Stopped
from gpumatch.cpu import csr
from gpumatch.cpu.transport import simplex
from gpumatch.cpu.transport.dense import dearer
from gpumatch.cpu.transport.planting import absorb, plant, replant
from gpumatch.cpu.transport.sweeps import sweep_all

__all__ = ["Basis", "takes"]

FAR = 64
"""How many times the range of the costs an arc to the root costs where all rows must ship."""
ROUNDING = 2.0**-48
"""The reduced cost of floats that is rounding, as a share of the largest magnitude."""


def takes(extremes: tuple[Any, Any], shape: tuple[int, int]) -> bool:
    """True if sums of such costs and limits along paths do not overflow."""
    largest = max(abs(float(extremes[0])), abs(float(extremes[1])))
    return 4.0 * FAR * (min(shape) + 2) * largest < 2.0**62


class Basis:
    """A tree of pairs with flow.

    Parameters
    ----------
    entries : (indptr, indices, costs)
        CSR.
    supply, demand : int64 arrays
    limit : array, optional
    flow : int64 array
        The units of each entry, within supply and demand.
    price : array
        Nearly right duals of the columns.
    control : Control

    Attributes
    ----------
    dual : array
        The duals of rows, then of columns, then of the root, after `solve`.
    """

    def __init__(
        self,
        entries: tuple[np.ndarray, np.ndarray, np.ndarray],
        supply: np.ndarray,
        demand: np.ndarray,
        limit: np.ndarray | None,
        flow: np.ndarray,
        price: np.ndarray,
        control: Control,
    ) -> None:
        indptr, indices, costs = entries
        self.control, self.size, self.price = control, indices.size, price.astype(np.float64)
        self.nrows, self.ncols = nrows, ncols = supply.size, demand.size
        self.root = root = nrows + ncols
        self.is_even = limit is None and int(supply.sum()) == int(demand.sum())
        self.entries, self.owner = entries, csr.owners(indptr, indices)
        self.has_supply, self.has_demand = supply > 0, demand > 0
        # no arcs of pairs that cannot carry anything
        kept = self.has_supply[self.owner] & self.has_demand[indices]
        self.idle, self.places = np.flatnonzero(~kept), np.flatnonzero(kept)
        owner, cols, costs, flow = self.owner[kept], indices[kept], costs[kept], flow[kept]
        number: Any = costs.dtype.type
        low, high = (costs.min(), costs.max()) if costs.size else (number(0), number(0))
        is_integer = costs.dtype.kind == "i"
        if limit is None:
            limit = np.full(nrows, dearer((low, high), FAR, is_integer=is_integer), number)
        every = np.arange(root, dtype=np.int32)
        tails, heads = every.copy(), every.copy()
        tails[nrows:] = heads[:nrows] = root
        self.arcs = (
            np.concatenate([tails, owner.astype(np.int32)]),
            np.concatenate([heads, cols.astype(np.int32) + np.int32(nrows)]),
            np.concatenate([limit, np.zeros(ncols, number), costs]),
        )
        largest = max(float(np.abs(limit).max(initial=0)), abs(float(low)), abs(float(high)))
        self.tolerance = number(0 if is_integer else ROUNDING * largest)
        self.dual = np.zeros(root + 1, number)
        self.tree: tuple[np.ndarray, ...] = (
            *np.empty((2, root + 1), np.int32), np.zeros(root + 1, np.int64),
            *np.empty((4, root + 1), np.int32),
        )  # fmt: skip
        self.state = np.zeros(simplex.STATES, np.int64)
        self.sweeps = 0
        sides = (
            supply - _sums(owner, flow, nrows), demand - _sums(cols, flow, ncols), flow
        )  # fmt: skip
        sent = np.concatenate(sides)
        self.used = np.flatnonzero(sent)
        self.units = sent[self.used]
        self.closing = plant(self.arcs, self.used, self.units, self.tree, self.dual, nrows)

    def solve(self) -> None:
        """Find a cheapest flow; raises Stopped."""
        self.used, self.units, self.closing = replant(
            self.arcs, self.arcs[0].size, self.used, self.units, self.tree, self.dual, self.price,
            self._beat,
        )  # fmt: skip
        while self.closing.size:
            self.closing = absorb(
                self.arcs, self.used, self.units, self.closing, self.tree, self.nrows
            )
            self._beat()
        self.sweeps = sweep_all(
            self.arcs, self.arcs[0].size,  # IN
            self.tree, self.dual,  # OUT
            self.nrows,  # IN
            self.state,  # OUT
            self.tolerance, self._beat,  # IN
        )  # fmt: skip
        self.control.phase(
            found=self.pivots, matched=self.shipped, step="crossover", sweeps=self.sweeps
        )

    def _beat(self) -> None:
        if self.control.tick(self.shipped):
            raise Stopped

    # -- results -----------------------------------------------------------------------------------

    @property
    def pivots(self) -> int:
        return int(self.state[simplex.PIVOTS])

    @property
    def shipped(self) -> int:
        """The units that go to columns."""
        return int(self.flow().sum())

    def flow(self) -> np.ndarray:
        """The units of each entry."""
        _, arc, sent, *_ = self.tree
        flow = np.zeros(self.arcs[0].size, np.int64)
        flow[arc[:-1]] = sent[:-1]
        flow[self.used[self.closing]] = self.units[self.closing]
        every = np.zeros(self.size, np.int64)
        every[self.places] = flow[self.root :]
        return every

    def unshipped(self) -> np.ndarray:
        """The units of each row that go to no column."""
        _, arc, sent, *_ = self.tree
        units = np.zeros(self.root, np.int64)
        of_root = arc[:-1] < self.root
        units[arc[:-1][of_root]] = sent[:-1][of_root]
        outside = self.closing[self.used[self.closing] < self.root]
        units[self.used[outside]] = self.units[outside]
        return units[: self.nrows]

    def prices(self) -> np.ndarray:
        """Duals of the columns, at which all pairs with flow are tight if `solve` has ended."""
        nrows, root = self.nrows, self.root
        _, indices, costs = self.entries
        if self.is_even and self.has_demand.any():
            self.arcs[2][:nrows] += self.dual[nrows:root][self.has_demand].max()
            simplex.refresh_duals(
                self.arcs,  # IN
                self.tree, self.dual,  # OUT
            )  # fmt: skip
        price = np.minimum(self.dual[nrows:root], 0)  # above it by rounding only
        price[~self.has_demand] = 0
        dear = self.idle[self.has_supply[self.owner[self.idle]]]
        undercut = costs[dear] - self.dual[self.owner[dear]]
        np.minimum.at(price, indices[dear], undercut)
        return price


def _sums(places: np.ndarray, units: np.ndarray, count: int) -> np.ndarray:
    """The units of each place."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, places, units)
    return sums
