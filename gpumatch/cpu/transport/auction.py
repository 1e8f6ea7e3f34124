"""The auction before the exact paths: phases of bids with an epsilon that falls.

It works on float64 copies of costs and prices, whatever these are, because paths make its result
exact. The first epsilon is the range of the costs, at which the last rows soon reach columns that
are far. The last one is a small share of what a row typically saves by its cheapest column. A phase
ends when hardly any row waits, or when it has read so much that it is a price war. The flow of
a phase enters the next one, but for the pairs whose slack exceeds the next epsilon.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Control, Stopped
from gpumatch.cpu import csr
from gpumatch.cpu.transport import bidding
from gpumatch.running.kept_memory import kept_empty, kept_full

__all__ = ["Auction", "Tuning"]

LOTS = 2
"""Lots for each vertex in the first room for them."""


class Tuning(NamedTuple):
    """What the phases decide by."""

    budget: int = 2**22
    """Entries that a kernel reads before it returns to Python: a tenth of a second."""
    sample: int = 2**10
    """Rows that tell what a row typically saves."""
    factor: float = 8
    """From one epsilon to the next."""
    fine: float = 2.0**-4
    """The last epsilon, as a share of the typical saving: few pivots are needed from there on."""
    few: float = 1 / 64
    """The share of the rows that may wait at the end of a phase."""
    longest: int = 64
    """How many times a phase may read all entries. If the first one does, the auction ends."""
    finest: float = 2.0**-40
    """The least epsilon, as a share of the largest magnitude of costs."""


class Auction:
    """Lots, bidders and prices.

    Parameters
    ----------
    entries : (indptr, indices, costs)
    supply, demand : int64 arrays
    limit : array, optional
    price : array
        The prices to begin from. It is read only.
    is_even : bool
        True if all columns must be full, so that the level of prices does not matter.
    control : Control
    tuning : Tuning
    flow : int64 array, optional
        The units of each entry to begin with, within supply and demand.
    epsilon : float, optional
        The first epsilon; the range of the costs without it.
    is_whole : bool
        False if the units are none of the caller's, who is not told of them.
    """

    def __init__(
        self,
        entries: tuple[np.ndarray, np.ndarray, np.ndarray],
        supply: np.ndarray,
        demand: np.ndarray,
        limit: np.ndarray | None,
        price: np.ndarray,
        control: Control,
        *,
        is_even: bool,
        tuning: Tuning | None = None,
        flow: np.ndarray | None = None,
        epsilon: float | None = None,
        is_whole: bool = True,
    ) -> None:
        indptr, indices, costs = entries
        self.entries = indptr, indices, costs.astype(np.float64, copy=False)
        self.owner, self.control = csr.owners(indptr, indices), control
        self.is_even, self.is_whole = is_even, is_whole
        self.tuning = tuning or Tuning()
        self.price = price.astype(np.float64)
        self.supply, self.total = supply, int(supply.sum())
        self.unmatched, self.spare = supply.copy(), demand.copy()
        self.unshipped = np.zeros_like(supply)
        self.limit = np.empty(0) if limit is None else limit.astype(np.float64)
        self.flow = kept_full(indices.size, 0, np.int64) if flow is None else flow
        if flow is not None:
            np.subtract.at(self.unmatched, self.owner, flow)
            np.subtract.at(self.spare, indices, flow)
        self.top = np.empty(demand.size, np.int32)
        self.queue = np.empty(1 << int(supply.size).bit_length(), np.int32)
        self.state = np.zeros(bidding.STATES, np.int64)
        self.lots = self._room_for(LOTS * (supply.size + demand.size) + 1)
        ends = np.concatenate([costs[:1], self.limit, [costs.min(), costs.max()]])
        self.spread = float(ends.max() - ends.min())
        self.largest = float(np.abs(ends).max())
        self.epsilon = self.spread if epsilon is None else min(epsilon, self.spread)
        self.phases = 0

    def _room_for(self, count: int) -> tuple[np.ndarray, ...]:
        return (
            kept_empty(count, np.int32), kept_empty(count, np.int64), kept_empty(count, np.float64),
            kept_empty(count, np.int32), kept_empty(count, np.int32),
        )  # fmt: skip

    def prices(self, dtype: np.dtype[Any]) -> np.ndarray:
        """The prices, of integers rounded down: tight pairs of rounded prices stay tight."""
        price = self.price if self.is_even else np.minimum(self.price, 0)
        return np.floor(price).astype(dtype) if dtype.kind == "i" else price

    @property
    def _shipped(self) -> int:
        """The units that are told to the caller."""
        return self.total - int(self.unmatched.sum()) if self.is_whole else 0

    @property
    def _sides(self) -> tuple[np.ndarray, ...]:
        return self.price, self.spare, self.unmatched, self.unshipped, self.top

    def run(self) -> None:
        """Hold all phases; raises Stopped."""
        tuning, epsilon = self.tuning, self.epsilon
        finest = max(tuning.finest * self.largest, tuning.fine * self._typical_saving())
        if not self.spread > 0:
            return
        while self._hold(max(epsilon, finest)) and epsilon > finest:
            epsilon /= tuning.factor

    def _typical_saving(self) -> float:
        """The median of what the second cheapest column costs a row more than the cheapest."""
        rows = np.arange(0, self.supply.size, self.supply.size // self.tuning.sample + 1)
        rows = rows[self.supply[rows] > 0]
        savings = np.empty(rows.size, np.float64)
        bidding.find_savings(
            self.entries, self.price, rows,  # IN
            savings,  # OUT
        )  # fmt: skip
        positive = savings[savings > 0]
        return float(np.median(positive)) if positive.size else self.spread

    def _hold(self, epsilon: float) -> bool:
        """Hold the phase of an epsilon; False if another one is of no use."""
        tuning, nrows = self.tuning, self.supply.size
        terms = epsilon, self.spread + epsilon, -(nrows + 2) * 2 * (self.largest + epsilon), np.inf
        read, few = int(self.state[bidding.READ]), int(tuning.few * nrows)
        self._begin(terms)
        outcome = bidding.LONG
        begun = int(self.state[bidding.ROWS])
        while outcome in (bidding.LONG, bidding.FULL):
            outcome = bidding.hold(
                self.entries, self.owner,  # IN
                self._sides, self.lots, self.queue, self.state,  # OUT
                self.limit, terms, few, tuning.budget,  # IN
            )  # fmt: skip
            if self.control.tick(self._shipped):
                self._collect()
                raise Stopped
            if outcome == bidding.FULL:
                self._collect()
                self.lots = self._room_for(2 * self.lots[0].size)
                self._begin(terms)
            spent = int(self.state[bidding.READ]) - read
            if spent > tuning.longest * self.flow.size:
                break
        self._collect()
        self.control.phase(
            found=begun - int(self.state[bidding.ROWS]),
            matched=self._shipped, step="auction", epsilon=epsilon,
            scans=int(self.state[bidding.READ]) - read,
        )  # fmt: skip
        self.phases += 1
        return outcome == bidding.CALM or (outcome == bidding.LONG and self.phases > 1)

    def _begin(self, terms: tuple[float, float, float, float]) -> None:
        """Make lots of the flow, as far as its slack is within epsilon."""
        if not self.is_even:
            self.price[self.spare > 0] = 0
        bidding.start_lots(self.lots, self.top, self.state)
        bidding.hold_on(
            self.entries,  # IN
            self._sides, self.lots, self.queue, self.state,  # OUT
            self.limit, terms,  # IN
            self.flow,  # OUT
        )  # fmt: skip

    def _collect(self) -> None:
        """Write the units of all lots as flow."""
        room = np.empty(self.lots[0].size + 1, np.int32)
        bidding.collect(self.lots, self.top, self.flow, room, self.top.size)
