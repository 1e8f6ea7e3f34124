"""Memory on the device: whether it is there, before anything is launched, and how it begins."""

from __future__ import annotations

import cupy as cp
import numpy as np

__all__ = ["require_memory", "unmatched"]


def require_memory(nbytes: int, purpose: str) -> None:
    """Raise MemoryError, before anything is launched, when the device can't give `nbytes`.

    What CuPy's pool holds may lie in pieces. So the bytes are taken in one, and left to the pool;
    if need be, the pool gives back before what lies idle.
    """
    if _is_to_be_had(nbytes):
        return
    device, pool = cp.cuda.Device(), cp.get_default_memory_pool()
    pool.free_all_blocks()
    if _is_to_be_had(nbytes):
        return
    free = device.mem_info[0] + pool.free_bytes()
    if pool.get_limit() > 0:
        free = min(free, pool.get_limit() - pool.used_bytes())
    pieces = " in pieces" if nbytes <= free else ""
    raise MemoryError(f"{purpose} needs {nbytes} bytes on GPU {device.id}; {free} are free{pieces}")


def _is_to_be_had(nbytes: int) -> bool:
    try:
        cp.cuda.alloc(nbytes)
    except (MemoryError, OverflowError):  # more than 64 bits can count
        return False
    return True


def unmatched(count: int) -> cp.ndarray:
    """The mates of so many vertices while they have none: -1 each."""
    mates = cp.empty(count, np.int32)
    mates.data.memset_async(0xFF, mates.nbytes)  # a third of what cupy.full takes
    return mates
