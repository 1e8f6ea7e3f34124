"""Count the matched vertices of a side, without an array in between: see counting.cu."""

from __future__ import annotations

import cupy as cp
import numpy as np

from gpumatch.cuda.kernels import BLOCK, Source, blocks_for, kernels_for

SOURCE = Source(
    "counting.cu",
    ("count_matched<{Mate}>",),
    {"Mate": {"int32": "int", "int64": "long long"}},
)
_DTYPES = frozenset(map(np.dtype, SOURCE.types["Mate"]))


def count_matched(mates: cp.ndarray) -> int:
    """How many of a side's mates are vertices, not -1 or another mark below 0."""
    if mates.dtype not in _DTYPES:
        mates = mates.astype(np.int64)
    mates = cp.ascontiguousarray(mates)
    count = cp.zeros(1, np.uint64)
    kernels_for(SOURCE, Mate=mates.dtype)["count_matched<{Mate}>"](
        (blocks_for(mates.size),),
        (BLOCK,),
        (
            *(mates, np.int64(mates.size)),  # IN
            count,  # IN, OUT
        ),
    )
    return count.item()
