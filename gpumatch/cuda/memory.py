"""Memory on the device: whether there is enough before a launch, and its first contents."""

from __future__ import annotations

import cupy as cp
import numpy as np

__all__ = ["require_memory", "set_unmatched", "unmatched"]


def require_memory(nbytes: int, purpose: str) -> None:
    """Raise MemoryError, before anything is launched, if the device cannot give `nbytes`.

    CuPy's pool may hold its memory in pieces. So the bytes are allocated in one piece, and left to
    the pool. If necessary, the pool first gives back the memory that it does not use.
    """
    if _is_to_be_had(nbytes):
        return
    device, pool = cp.cuda.Device(), cp.get_default_memory_pool()
    pool.free_all_blocks()
    if _is_to_be_had(nbytes):
        return
    free = device.mem_info[0] + pool.free_bytes()
    if pool.get_limit() > 0:
        free = max(0, min(free, pool.get_limit() - pool.used_bytes()))
    pieces = " in pieces" if nbytes <= free else ""
    raise MemoryError(f"{purpose} needs {nbytes} bytes on GPU {device.id}; {free} are free{pieces}")


def _is_to_be_had(nbytes: int) -> bool:
    try:
        cp.cuda.alloc(nbytes)
    except (MemoryError, OverflowError):  # more than 64 bits can hold
        return False
    return True


def unmatched(count: int) -> cp.ndarray:
    """The mates of this many vertices, none of which has one: -1 each."""
    mates = cp.empty(count, np.int32)
    set_unmatched(mates)
    return mates


def set_unmatched(mates: cp.ndarray) -> None:
    """Take the mates from all vertices."""
    mates.data.memset_async(0xFF, mates.nbytes)  # a third of the time of cupy.full
