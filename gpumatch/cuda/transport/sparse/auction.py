"""The auction before the host's pivots: phases of lots with an epsilon that falls.

It works with prices of float64, whatever the costs are, because pivots make its result exact. The
first epsilon is the range of the costs, the last one a share of what a row typically saves by its
cheapest column. A phase ends when few rows bid, because the last rows would take most of the
rounds. Its flow enters the next phase, but for pairs that cost a row more than epsilon too much.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from gpumatch.contracts import Control, Stopped
from gpumatch.cuda.kernels import BLOCK, Source, blocks_for, kernels_for
from gpumatch.cuda.launches import Board, Cooperative
from gpumatch.cuda.transport.sparse.network import Network

__all__ = ["AUCTION", "NUMBERS", "Auction", "Tuning", "most_blocks"]

NUMBERS = {"int64": "long long", "float64": "double"}
AUCTION = Source(
    "transport/sparse/auction.cu",
    kernels=("find_savings<{Cost}>", "begin_phase<{Cost}>", "hold_rounds<{Cost}>"),
    types={"Cost": NUMBERS},
    structs=("Network<{Cost}>", "Auction", "State"),
    cooperative=True,
)

_ENTRIES_A_BLOCK = 2**10
"""Of small networks: blocks wait less at a barrier if they are few."""


def most_blocks(network: Network) -> int:
    """Blocks at most whose threads wait for each other."""
    return max(int(network.flow.size) // _ENTRIES_A_BLOCK, 16)


class Tuning(NamedTuple):
    """What the phases decide by."""

    sample: int = 2**12
    """Rows that tell what a row typically saves."""
    factor: float = 6
    """From one epsilon to the next."""
    fine: float = 1 / 32
    """The last epsilon, as a share of the typical saving."""
    finest: float = 2.0**-40
    """The least epsilon, as a share of the largest magnitude of costs."""
    few: float = 1 / 1024
    """The share of the rows that may bid at the end of a phase. Each of them may cost the host many
    pivots: 30,000 rows of a network left 5,700 with 1/128, and 640 with 1/2048."""
    a_launch: int = 2**9
    """Rounds of a launch: some milliseconds."""
    given: float = 1 / 64
    """The last epsilon at least, as a share of a first one that is given."""
    launches: int = 16
    """Launches of a phase at most. If the first one needs more, the auction ends."""


class Auction:
    """Lots, bidders and prices.

    Parameters
    ----------
    network : Network
        Its flow changes.
    price : float64 array
        The prices to begin from. They change.
    control : Control
    """

    def __init__(
        self,
        network: Network,
        price: cp.ndarray,
        control: Control,
        tuning: Tuning | None = None,
    ) -> None:
        self.network, self.price, self.control = network, price, control
        self.tuning = tuning or Tuning()
        self.kernels = kernels_for(AUCTION, Cost=network.costs.dtype)
        self.board = Board(self.kernels.struct("State"))
        nrows, ncols = network.given_rows, network.ncols
        self._bidders = cp.empty((2, nrows), np.int32)
        self._full, self._stamp = cp.empty(ncols, np.int32), cp.zeros(ncols, np.int32)
        self._offers = cp.empty(network.flow.size, np.float64)
        costs = network.costs[: int(network.indptr[nrows])]
        low, high = (float(costs.min()), float(costs.max())) if costs.size else (0.0, 0.0)
        self.spread, self.largest = high - low, max(abs(low), abs(high))
        self._hold = Cooperative(
            self.kernels, "hold_rounds<{Cost}>", block=BLOCK, most=most_blocks(network)
        )
        self.phases = 0

    @property
    def rounds(self) -> int:
        """Rounds of bids in all phases."""
        return int(self.board.seen["round"])

    def run(self, epsilon: float | None = None) -> float:
        """Hold all phases, the first one with this epsilon; raises Stopped.

        Without a first epsilon it is the range of the costs. Returns the last one.
        """
        tuning = self.tuning
        if not 0 < self.spread < np.inf:
            return 0.0
        finest = max(tuning.finest * self.largest, tuning.fine * self._typical_saving())
        if epsilon is None:
            epsilon = self.spread
        else:
            finest = max(finest, tuning.given * epsilon)
            epsilon = min(epsilon, self.spread)
        while self._hold_phase(max(epsilon, finest)) and epsilon > finest:
            epsilon /= tuning.factor
        return max(epsilon, finest)

    def _typical_saving(self) -> float:
        """The median of what the second cheapest column costs a row more than the cheapest."""
        nrows = self.network.given_rows
        step = nrows // self.tuning.sample + 1
        savings = cp.empty(-(-nrows // step), np.float64)
        self._launch("find_savings<{Cost}>", self.price, np.int32(nrows), np.int32(step), savings)
        found = savings.get()
        found = found[np.isfinite(found) & (found > 0)]
        return float(np.median(found)) if found.size else self.spread

    def _launch(self, name: str, *arguments: Any) -> None:
        network = self.network
        most = self.kernels.resident_blocks(name, BLOCK)
        blocks = min(blocks_for(network.given_rows * network.lanes), most)
        network_struct = network.struct(self.kernels)
        self.kernels[name]((blocks,), (BLOCK,), (network_struct, *arguments))

    def _hold_phase(self, epsilon: float) -> bool:
        """Hold the phase of an epsilon; False if another one is of no use."""
        network, tuning, seen = self.network, self.tuning, self.board.seen
        nrows = network.given_rows
        if network.has_filler:
            self.price[network.room > 0] = 0
        auction = self.kernels.struct("Auction")(
            price=self.price,  # IN, OUT
            offers=self._offers,
            demand=network.demand,  # IN
            bidders=tuple(self._bidders),  # OUT, then IN
            full=self._full,
            stamp=self._stamp,
            epsilon=epsilon,  # IN
            jump=self.spread + epsilon,
            state=self.board.state,  # IN, OUT
            barrier=self.board.barrier,
        )
        seen["nbidders"][:] = seen["nfull"][:] = 0
        self.board.tell()
        begun = int(seen["round"])
        self._launch("begin_phase<{Cost}>", auction, np.int32(nrows))
        few, bidders = int(tuning.few * nrows), nrows
        for _ in range(tuning.launches):
            self._hold(
                network.struct(self.kernels), auction,  # IN, OUT
                np.int32(few), np.int32(tuning.a_launch),  # IN
            )  # fmt: skip
            self.board.look()
            bidders = int(seen["nbidders"][int(seen["round"]) & 1])
            shipped = network.shipped()
            if self.control.tick(shipped):
                raise Stopped
            if bidders <= few:
                break
        self.control.phase(
            found=nrows - bidders, matched=shipped, step="auction", epsilon=epsilon,
            rounds=self.rounds - begun,
        )  # fmt: skip
        self.phases += 1
        return bidders <= few or self.phases > 1
