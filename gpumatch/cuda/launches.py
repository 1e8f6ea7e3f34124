"""Launch searches in bounded pieces, on as many blocks as the device holds at once.

A search is a cooperative kernel that makes a bounded number of steps a launch, and leaves its
position on a `Board`. The host looks in between, for progress, time limits and Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cupy as cp
import cupyx
import numpy as np

from gpumatch.contracts import Control
from gpumatch.cuda.kernels import BLOCK, Kernels
from gpumatch.cuda.structs import Struct, address

__all__ = ["Board", "Cooperative", "record_seconds"]

# Bytes of a line of the L2 cache. Blocks that wait ask for the barrier all the time. In one line
# with the sizes that others push to, they made GPUBFS-WR's queue up to 1.3 times as slow.
_LINE = 128
_SHOWN_RECORDS = 64  # of a trace: most searches have fewer, and need no other copy


class Cooperative:
    """A kernel that holds all its blocks on the device at once, because they wait for each other.

    Parameters
    ----------
    name : str
        As the source names it.
    block, shared : int
        Threads of a block, and bytes of its memory that the launch sets.
    most : int, optional
        Blocks at most: fewer wait less at a barrier.
    """

    def __init__(
        self,
        kernels: Kernels,
        name: str,
        *,
        block: int = BLOCK,
        shared: int = 0,
        most: int | None = None,
    ) -> None:
        resident = kernels.resident_blocks(name, block, shared)
        self.blocks = resident if most is None else max(1, min(most, resident))
        self._function, self._block, self._shared = kernels[name], block, shared

    def __call__(self, *arguments: Any) -> None:
        self._function((self.blocks,), (self._block,), arguments, shared_mem=self._shared)


class Board:
    """What a kernel leaves for the host and for its next launch: state, barrier and trace.

    Parameters
    ----------
    state : Struct
        All zeros at first.
    trace : (int, int)
        Records that the trace has room for, and integers in each.

    Attributes
    ----------
    seen : structured scalar
        The state that the host has seen last. What the host writes here, `tell` copies to the
        device.
    state, barrier, trace : pointers
        For the structs of kernels. The barrier is one of grid.cuh.
    """

    def __init__(self, state: Struct, trace: tuple[int, int] = (0, 0)) -> None:
        barrier = -(-state.dtype.itemsize // _LINE) * _LINE
        begin = barrier + _LINE
        self._room, self._width = trace
        self._array = cp.zeros(begin + 4 * self._room * self._width, np.uint8)
        self._shown = self._array[: begin + 4 * min(self._room, _SHOWN_RECORDS) * self._width]
        self._pinned = cupyx.zeros_pinned(self._shown.size, np.uint8)
        self._begin = begin
        self.seen: np.void = self._pinned[: state.dtype.itemsize].view(state.dtype)[0]
        self.state, self.barrier = address(self._array), address(self._array, barrier)
        self.trace = address(self._array, begin)

    def look(self) -> None:
        """Wait for what was launched, and read its state."""
        self._shown.get(out=self._pinned)

    def tell(self) -> None:
        """Put `seen`, as the host has changed it, onto the device, where nothing runs."""
        self._shown.set(self._pinned)

    def clear(self) -> None:
        """Set the state on the device back to zeros."""
        self._array.data.memset_async(0, self.seen.nbytes)

    def records(self, count: int) -> list[list[int]]:
        """The first records of the trace, as many as asked for and there is room for."""
        size = 4 * min(count, self._room) * self._width
        if self._begin + size <= self._pinned.size:
            kept = self._pinned[self._begin : self._begin + size]
        else:
            kept = self._array[self._begin : self._begin + size].get()
        return kept.view(np.int32).reshape(-1, self._width).tolist()


def record_seconds(control: Control, parts: Iterable[str], nanoseconds: np.ndarray) -> None:
    """Add the time that a kernel has spent in each of its parts."""
    for part, spent in zip(parts, nanoseconds.tolist()):
        control.seconds[part] = control.seconds.get(part, 0.0) + spent * 1e-9
