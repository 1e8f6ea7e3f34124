"""Minus the logarithms of magnitudes, with their least and greatest: host code of logarithms.cu."""

from __future__ import annotations

import cupy as cp
import numpy as np

from gpumatch.cuda.kernels import BLOCK, Source, blocks_for, kernels_for

__all__ = ["minus_logarithms"]

SOURCE = Source(
    "assignment/sparse/logarithms.cu",
    ("minus_logarithms<{Value}>",),
    {
        "Value": {
            "float32": "float",
            "float64": "double",
            "complex64": "Complex<float>",
            "complex128": "Complex<double>",
        }
    },
)
_SIGN = np.uint64(2**63)


def minus_logarithms(values: cp.ndarray) -> tuple[cp.ndarray, float, float]:
    """Minus the logarithms of the values' magnitudes, with the least and the greatest of them.

    A logarithm is infinite or NaN where a value is 0 or not finite. Then the least or the greatest
    is infinite.
    """
    is_known = values.dtype.name in SOURCE.types["Value"]
    values = cp.ascontiguousarray(values, dtype=None if is_known else np.float64)
    weights, ends = cp.empty(values.size, np.float64), cp.zeros(2, np.uint64)
    kernels_for(SOURCE, Value=values.dtype)["minus_logarithms<{Value}>"](
        (blocks_for(values.size),),
        (BLOCK,),
        (
            *(values, np.int64(values.size)),  # IN
            *(weights, ends),  # OUT
        ),
    )
    low, high = ends.get()
    return weights, _of_order(~low), _of_order(high)


def _of_order(place: np.uint64) -> float:
    """Return the number with this place in the order of numbers.cuh."""
    bits = place ^ _SIGN if place >= _SIGN else ~place
    return float(bits.view(np.float64))
