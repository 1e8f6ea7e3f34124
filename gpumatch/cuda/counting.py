"""Count on the device, without arrays in between: the host's side of counting.cu."""

from __future__ import annotations

import cupy as cp
import numpy as np

from gpumatch.cuda import kernels as module

_DTYPES = frozenset(map(np.dtype, module.COUNTING.types))


def count_from(numbers: cp.ndarray, least: int) -> int:
    """How many of the integers or bools are at least `least`."""
    if numbers.dtype == bool:
        numbers = numbers.view(np.uint8)
    elif numbers.dtype not in _DTYPES:
        numbers = numbers.astype(np.int64)
    if not numbers.flags.c_contiguous:
        numbers = cp.ascontiguousarray(numbers)
    count = cp.zeros(1, np.uint64)
    module.kernels_for(module.COUNTING, numbers.dtype)["count_from<{Number}>"](
        (module.blocks_for(numbers.size),),
        (module.BLOCK,),
        (numbers, np.int64(numbers.size), numbers.dtype.type(least), count),
    )
    return count.item()
