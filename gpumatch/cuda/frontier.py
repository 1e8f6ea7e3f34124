"""The host's side of frontier.cuh: the queues of a search, its first frontier, its launches."""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from gpumatch.cuda.kernels import Kernels
from gpumatch.cuda.launches import Board, Cooperative

__all__ = ["KERNELS", "LEVELS_A_LAUNCH", "STRUCTS", "DeviceFrontier"]

KERNELS = ("start_frontier",)
"""What each source of a search has in addition to its search."""
STRUCTS = ("SearchState", "Frontier")

LEVELS_A_LAUNCH = 256
"""The host looks in between: progress, time limit, Ctrl-C."""


class DeviceFrontier:
    """A search's queues on the current device and the cooperative kernel that expands them.

    Parameters
    ----------
    kernels : Kernels
        Of a source that has `KERNELS` and `STRUCTS`.
    search : str
        Its kernel that ends with the arguments ``(frontier, max_levels)``.
    nvertices : int
        Vertices that can be queued.
    blocks : int, optional
        Blocks to launch, fewer if not as many are resident; by default all that are resident.

    Attributes
    ----------
    level, size : int
        The level that comes next and how many vertices it has, as of the last `search`.
    found : int array of 3
        What the visitor has found so far.
    """

    def __init__(
        self, kernels: Kernels, search: str, nvertices: int, blocks: int | None = None
    ) -> None:
        self._kernels = kernels
        self._search = Cooperative(kernels, search, most=blocks)
        self._queues = cp.empty((2, max(nvertices, 1)), cp.int32)
        self._start = Cooperative(kernels, "start_frontier", most=blocks)
        self._counts = cp.empty(self._start.blocks, cp.int32)
        self._board = Board(kernels.struct("SearchState"))
        self._frontier = kernels.struct("Frontier")(
            items=self._queues,
            state=self._board.state,
            barrier=self._board.barrier,
            counts=self._counts,
        )

    @staticmethod
    def nbytes(nvertices: int) -> int:
        """Device memory of a frontier."""
        return 2 * 4 * nvertices

    @property
    def level(self) -> int:
        return int(self._board.seen["level"])

    @property
    def size(self) -> int:
        return int(self._board.seen["sizes"][self.level % 3])

    @property
    def found(self) -> np.ndarray:
        return self._board.seen["found"]

    def start_from_free(self, mates: cp.ndarray, level: int) -> int:
        """Queue the unmatched vertices by stream compaction; return the kernels launched."""
        self._start(
            *(mates, np.int32(mates.size), np.int32(level)),  # IN
            self._frontier,  # OUT
        )
        return 1

    def search(self, *arguments: Any, levels: int = LEVELS_A_LAUNCH) -> None:
        """Expand a bounded number of levels, and update `level`, `size` and `found`."""
        self._search(
            *arguments,
            self._frontier,  # IN, OUT
            np.int32(levels),  # IN
        )
        self._board.look()
