"""The exact end: forests of shortest paths, each path with as many units as it carries."""

from __future__ import annotations

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
    kernels=("reduce_rows<{Number}>", "run_rounds<{Number}>", "ship_alone<{Number}>"),
    types={"Number": NUMBERS},
    structs=("Network<{Number}>", "Search<{Number}>", "State"),
    cooperative=True,
)  # fmt: skip

HOPS = 2**11
"""Hops of a launch: some hundredths of a second."""
LEAST = 2.0**-1000
"""The least limit of labels of floats."""
FINEST = 2.0**-20
"""The first limit of labels, as a share of the range of costs, if no other is known."""
LARGEST = 2**59
"""The magnitude of integer duals up to which distances do not overflow."""
_BLOCK, _WIDE = PATHS.constant("kBlock"), PATHS.constant("kWide")
PLANT, SERVED, STUCK, HELD = (
    PATHS.constant(f"k{name}") for name in ("Plant", "Served", "Stuck", "Held")
)
NEAREST, ALL, FILL = (PATHS.constant(f"k{name}") for name in ("Nearest", "All", "Fill"))


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
    near : float
        The distance within which rounds look for columns at first.
    """

    def __init__(
        self, network: Network, price: cp.ndarray, control: Control, near: float = 0.0
    ) -> None:
        self.network, self.price, self.control = network, price, control
        self.kernels = kernels_for(PATHS, Number=price.dtype)
        self.board = Board(self.kernels.struct("State"))
        nrows, ncols = network.nrows, network.ncols
        self.row_dual = cp.empty(nrows, price.dtype)
        labels = {
            name: cp.empty(count, np.int64)
            for name, count in (
                ("row_dist", nrows), ("row_pred", nrows), ("nearest", nrows),
                ("col_dist", ncols), ("col_pred", ncols),
            )
        }  # fmt: skip
        queues = {
            f"{kind}_{side}": tuple(cp.empty((2, count), np.int32))
            for kind in ("narrow", "wide")
            for side, count in (("rows", nrows), ("cols", ncols))
        }
        self._row_dist = labels["row_dist"]
        longs = [
            cp.flatnonzero(cp.diff(begins) > _WIDE).astype(np.int32)
            for begins in (network.indptr, network.colptr)
        ]
        stamps = cp.zeros(nrows, np.int32), cp.zeros(ncols, np.int32)
        self._kept = labels, queues, longs, stamps
        self._network = network.struct(self.kernels)
        self._search = self.kernels.struct("Search")(
            row_dual=self.row_dual,  # IN, OUT
            price=price,
            **labels,  # OUT, then IN
            **queues,
            row_stamp=stamps[0],
            col_stamp=stamps[1],
            long_rows=longs[0],  # IN
            long_cols=longs[1],
            nlong_rows=longs[0].size,
            nlong_cols=longs[1].size,
            state=self.board.state,  # IN, OUT
            barrier=self.board.barrier,
        )
        self._run_rounds = Cooperative(
            self.kernels, "run_rounds<{Number}>", block=_BLOCK, most=most_blocks(network)
        )
        is_integer = price.dtype.kind == "i"
        limit = price.dtype.type(max(near, 1 if is_integer else LEAST))
        self.board.seen["limit"] = limit.view(np.int64)
        self.board.tell()

    @property
    def counts(self) -> dict[str, int]:
        """Paths, rounds, and hops of all rounds."""
        seen = self.board.seen
        return {
            "paths": int(seen["all_paths"]), "rounds": int(seen["rounds"]),
            "hops": int(seen["hop"]),
        }  # fmt: skip

    def reduce_rows(self, *, ends_slack: bool) -> None:
        """Set the duals of rows by the prices, and end the flow of pairs that are not tight."""
        network, name = self.network, "reduce_rows<{Number}>"
        most = self.kernels.resident_blocks(name, BLOCK)
        grid = min(blocks_for(network.nrows * network.lanes), most)
        self.kernels[name](
            (grid,), (BLOCK,),
            (
                self._network, self._search,  # IN, OUT
                np.int32(ends_slack),  # IN
            ),
        )  # fmt: skip

    def serve(self) -> cp.ndarray | None:
        """Ship the units of all given rows; a Hall violator if that is impossible, else None.

        Raises Stopped.
        """
        network = self.network
        return self._run(0, network.given_rows, NEAREST if network.has_filler else ALL)

    def fill(self) -> None:
        """Fill all columns from the last row; raises Stopped."""
        self._run(self.network.given_rows, self.network.nrows, FILL)

    def _run(self, first: int, last: int, wish: int) -> cp.ndarray | None:
        """Rounds from these rows until they have no units left."""
        seen, total = self.board.seen, self.network.total
        before, shipped = self.counts, total if wish == FILL else 0
        seen["stage"] = PLANT
        for name in ("roots", "holes", "reached", "paths", "is_cut", "bound", "waiting"):
            seen[name] = 0
        self.board.tell()
        while True:
            self._run_rounds(
                self._network, self._search,  # IN, OUT
                np.int32(first), np.int32(last), np.int32(wish), np.int32(HOPS),  # IN
            )  # fmt: skip
            self.board.look()
            if seen["roots"] and wish != FILL:
                shipped = total - int(seen["waiting"])
            if seen["stage"] == HELD:
                self._ship_alone()
            if self.control.tick(shipped):
                raise Stopped
            if seen["largest"] > LARGEST:
                raise TooLargeError("duals are too large")
            if seen["stage"] == STUCK:
                reached = self._row_dist[: self.network.given_rows] < np.iinfo(np.int64).max
                return cp.flatnonzero(reached)
            if seen["stage"] == SERVED:
                break
        after = self.counts
        self.control.phase(
            found=after["paths"] - before["paths"], matched=total, step="paths",
            rounds=after["rounds"] - before["rounds"], hops=after["hops"] - before["hops"],
        )  # fmt: skip
        return None

    def _ship_alone(self) -> None:
        """Let one column after the other try its path: the first one succeeds."""
        self.kernels["ship_alone<{Number}>"]((1,), (1,), (self._network, self._search))
        self.board.look()
        if self.board.seen["stage"] == HELD:
            raise RuntimeError("internal error: no path carries a unit")
