"""Copies of a caller's CSR arrays, checked for kernels that read them once.

Another thread may change the caller's arrays at any time. So a kernel copies each number and checks
the copy, and uses nothing else afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.numeric.arrays import for_kernels

__all__ = ["copy_offsets", "int32_of"]

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


def int32_of(array: Any) -> np.ndarray | None:
    """Return a contiguous vector of int32 with the same integers; None if there is none at once."""
    if type(array) is not np.ndarray or array.ndim != 1:
        return None
    if array.dtype == _INT32:
        return for_kernels(array) if array.flags.c_contiguous else array.copy()
    if array.dtype == _INT64 and (array.size == 0 or int(array.view(np.uint64).max()) < 2**31):
        return array.astype(np.int32)
    return None


@kernel
def copy_offsets(indptr, size, offsets):
    """Copy the offsets; whether they are those of a matrix with at most so many entries."""
    is_fit = indptr.size == offsets.size
    before = 0
    for row in range(offsets.size):
        offsets[row] = indptr[row]
        is_fit &= offsets[row] >= before
        before = offsets[row]
    return is_fit and offsets[0] == 0 and before <= size
