"""The host's side of frontier.cuh: the queues of a search, its first frontier, its launches."""

from __future__ import annotations

from typing import Any

import cupy as cp
import cupyx
import numpy as np

from gpumatch.cuda import kernels as module

_LEVELS_A_LAUNCH = 256  # the host looks in between: progress, time limit, Ctrl-C


class DeviceFrontier:
    """A search's queues on the current device and the cooperative kernel that expands them.

    Parameters
    ----------
    nvertices : int
        Vertices that can be queued.
    offsets_dtype : dtype
        Type of the CSR offsets.
    kernel : str
        Kernel of frontier.cu that ends with the arguments
        ``(queue, other, state, barrier, max_levels)``.
    blocks : int
        Blocks to launch, fewer where not as many are resident.

    Attributes
    ----------
    level, size : int
        The level that comes next and how many vertices it has, as of the last `search`.
    found : int array of 3
        What the visitor has found so far.
    """

    def __init__(self, nvertices: int, offsets_dtype: Any, kernel: str, blocks: int) -> None:
        self._kernels = module.kernels_for(module.FRONTIER, offsets_dtype)
        self._kernel = kernel
        self._blocks = min(blocks, self._kernels.resident_blocks(kernel))
        self._queues = cp.empty((2, max(nvertices, 1)), cp.int32)
        self._flags = cp.empty(nvertices, cp.int32)
        self._state = cp.zeros(7, cp.int32)
        self._barrier = cp.zeros(1, cp.uint32)
        self._seen = cupyx.empty_pinned(7, np.int32)

    @staticmethod
    def nbytes(nvertices: int) -> int:
        """Device memory of a frontier."""
        return 4 * 4 * nvertices

    @property
    def level(self) -> int:
        return int(self._seen[3])

    @property
    def size(self) -> int:
        return int(self._seen[self.level % 3])

    @property
    def found(self) -> np.ndarray:
        return self._seen[4:7]

    def start_from_free(self, mates: cp.ndarray, level: int) -> int:
        """Queue the unmatched vertices by stream compaction; return the kernels launched."""
        length = np.int32(mates.size)
        grid, block = (self._blocks,), (module.BLOCK,)
        self._kernels["flag_free"](grid, block, (mates, length, self._flags))
        ends = cp.cumsum(self._flags, dtype=cp.int32)
        self._kernels["start_frontier"](
            grid, block, (ends, length, np.int32(level), self._queues[level & 1], self._state)
        )
        return 3

    def search(self, *arguments: Any) -> None:
        """Expand a bounded number of levels; `level`, `size` and `found` say where that led."""
        even, odd = self._queues
        self._kernels[self._kernel](
            (self._blocks,),
            (module.BLOCK,),
            (*arguments, even, odd, self._state, self._barrier, np.int32(_LEVELS_A_LAUNCH)),
        )
        self._state.get(out=self._seen)
