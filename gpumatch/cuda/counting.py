"""Count on the device, without arrays in between: the host's side of counting.cu."""

from __future__ import annotations

import cupy as cp
import numpy as np

from gpumatch.cuda.kernels import BLOCK, Source, blocks_for, kernels_for

SOURCE = Source(
    "counting.cu",
    ("count_from<{Number}>",),
    {"Number": {"uint8": "unsigned char", "int32": "int", "int64": "long long"}},
)
_DTYPES = frozenset(map(np.dtype, SOURCE.types["Number"]))


def count_from(numbers: cp.ndarray, least: int) -> int:
    """How many of the integers or bools are at least `least`."""
    if numbers.dtype == bool:
        numbers = numbers.view(np.uint8)
    elif numbers.dtype not in _DTYPES:
        numbers = numbers.astype(np.int64)
    if not numbers.flags.c_contiguous:
        numbers = cp.ascontiguousarray(numbers)
    count = cp.zeros(1, np.uint64)
    kernel = kernels_for(SOURCE, Number=numbers.dtype)["count_from<{Number}>"]
    kernel(
        (blocks_for(numbers.size),),
        (BLOCK,),
        (
            *(numbers, np.int64(numbers.size), numbers.dtype.type(least)),  # IN
            count,  # IN, OUT
        ),
    )
    return count.item()
