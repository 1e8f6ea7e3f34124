"""The exact end: forests of shortest paths, each path with as many units as it carries."""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Control, Stopped
from gpumatch.cuda.kernels import BLOCK, Source, blocks_for, kernels_for
from gpumatch.cuda.launches import Board, Cooperative
from gpumatch.cuda.transport.sparse.auction import NUMBERS, most_blocks
from gpumatch.cuda.transport.sparse.network import Network

__all__ = ["PATHS", "Paths", "TooLargeError"]

PATHS = Source(
    "transport/sparse/paths.cu",
    kernels=(
        "reduce_rows<{Number}>", "open_round", "plant<{Number}>", "find_distances<{Number}>",
        "find_nearest<{Number}>", "find_bound<{Number}>", "raise_duals<{Number}>",
        "ship<{Number}>",
    ),
    types={"Number": NUMBERS},
    structs=("Network<{Number}>", "Search<{Number}>", "State"),
    cooperative=True,
)  # fmt: skip

HOPS = 2**10
"""Hops of a launch: some hundredths of a second at most on large networks."""
PASSES = 3
"""How often the columns try their paths in a round."""
LARGEST = 2**59
"""The magnitude of integer duals up to which distances do not overflow."""


class TooLargeError(ArithmeticError):
    """Duals of integers have become so large that distances may overflow."""


class Paths:
    """Duals, and the rounds of paths that complete the flow of a network.

    Parameters
    ----------
    network : Network
        Its flow changes.
    price : array
        What a unit of each column costs beside the pair, of the costs' dtype. It changes.
    control : Control
    """

    def __init__(self, network: Network, price: cp.ndarray, control: Control) -> None:
        self.network, self.price, self.control = network, price, control
        self.kernels = kernels_for(PATHS, Number=price.dtype)
        self.board = Board(self.kernels.struct("State"))
        nrows, ncols = network.nrows, network.ncols
        self.row_dual = cp.empty(nrows, price.dtype)
        labels = {
            name: cp.empty(count, np.int64)
            for name, count in (
                ("row_dist", nrows), ("row_seen", nrows), ("row_pred", nrows), ("nearest", nrows),
                ("col_dist", ncols), ("col_seen", ncols), ("col_pred", ncols),
            )
        }  # fmt: skip
        queues = {
            f"{kind}_{side}": tuple(cp.empty((2, count), np.int32))
            for kind in ("narrow", "wide")
            for side, count in (("rows", nrows), ("cols", ncols))
        }
        self._row_dist = labels["row_dist"]
        self._kept = labels, queues, cp.zeros(nrows, np.int32), cp.zeros(ncols, np.int32)
        self._network = network.struct(self.kernels)
        self._search = self.kernels.struct("Search")(
            row_dual=self.row_dual,  # IN, OUT
            price=price,
            **labels,  # OUT, then IN
            **queues,
            row_stamp=self._kept[2],
            col_stamp=self._kept[3],
            state=self.board.state,  # IN, OUT
            barrier=self.board.barrier,
        )
        self._find = Cooperative(
            self.kernels, "find_distances<{Number}>", block=BLOCK, most=most_blocks(network)
        )
        self._by_vertex = blocks_for(max(nrows, ncols))
        self.rounds = self.paths = 0

    @property
    def hops(self) -> int:
        """Hops of all rounds."""
        return int(self.board.seen["hop"])

    def reduce_rows(self, *, ends_slack: bool) -> None:
        """Set the duals of rows by the prices, and end the flow of pairs that are not tight."""
        network = self.network
        self._launch(
            "reduce_rows<{Number}>", np.int32(ends_slack),
            blocks=blocks_for(network.nrows * network.lanes),
        )  # fmt: skip

    def serve(self) -> cp.ndarray | None:
        """Ship the units of all given rows; a Hall violator if that is impossible, else None.

        Raises Stopped.
        """
        network = self.network
        return self._run(0, network.given_rows, wants_all=not network.has_filler)

    def fill(self) -> None:
        """Fill all columns from the last row; raises Stopped."""
        self._run(self.network.given_rows, self.network.nrows, wants_all=True)

    def _launch(self, name: str, *arguments: Any, blocks: int | None = None) -> None:
        wanted = self._by_vertex if blocks is None else blocks
        grid = min(wanted, self.kernels.resident_blocks(name, BLOCK))
        self.kernels[name]((grid,), (BLOCK,), (self._network, self._search, *arguments))

    def _run(self, first: int, last: int, *, wants_all: bool) -> cp.ndarray | None:
        """Rounds from these rows until they have no units left."""
        seen, begun = self.board.seen, self.paths
        while True:
            self.kernels["open_round"]((1,), (1,), (self.board.state,))
            self._launch("plant<{Number}>", np.int32(first), np.int32(last))
            self._search_all()
            if not seen["roots"]:
                break
            self._launch("find_nearest<{Number}>", np.int32(wants_all))
            if not wants_all:
                self._launch("find_bound<{Number}>")
            self._launch("raise_duals<{Number}>")
            for _ in range(PASSES):
                self._launch("ship<{Number}>")
            self.board.look()
            if not seen["reached"]:
                reached = self._row_dist[: self.network.given_rows] < np.iinfo(np.int64).max
                return cp.flatnonzero(reached)
            if seen["largest"] > LARGEST:
                raise TooLargeError("duals are too large")
            if not seen["paths"]:
                self._ship_alone()
            self.rounds += 1
            self.paths += int(seen["paths"])
        self.control.phase(
            found=self.paths - begun, matched=self.network.total - int(seen["waiting"]),
            step="paths", rounds=self.rounds,
        )  # fmt: skip
        return None

    def _search_all(self) -> None:
        """Find all distances; raises Stopped."""
        seen = self.board.seen
        while True:
            before = self.hops
            self._find(self._network, self._search, np.int32(HOPS))
            self.board.look()
            waiting = int(seen["waiting"]) if seen["roots"] else 0
            if self.control.tick(self.network.total - min(waiting, self.network.total)):
                raise Stopped
            if self.hops - before < HOPS:
                return

    def _ship_alone(self) -> None:
        """Let one column after the other try its path: the first one succeeds."""
        self.kernels["ship<{Number}>"]((1,), (1,), (self._network, self._search))
        self.board.look()
        if not self.board.seen["paths"]:
            raise RuntimeError("internal error: no path carries a unit")
