"""Exact sums of many numbers, on the host or the device, by operations on whole arrays.

An array is made into a few numbers of Python that have the same sum, exactly. Those of several
arrays are then added by `sum` (int) or `math.fsum` (float), which rounds once. So the result is
that of `math.fsum` of all numbers, whatever cancels, and in any order.

Integers are split into halves of 32 bits, whose sums fit 64 bits.

Floats are split by Rump, Ogita and Oishi's extraction. Let no |x_i| be above 2**e, and let s be
2**(e + b), where 2**b >= n + 2 for n numbers. Then q_i = (x_i + s) - s is a multiple of s / 2**53
and at most s / 2**b in magnitude. So the q_i are added without rounding, in any order. The rest of
each, x_i - q_i, is exact too, and at most s / 2**53. The same is done with the rests until all are
0. Each round takes 53 - b bits off, so numbers of similar magnitude need two or three rounds.

Reference: Rump, Ogita, Oishi, *Accurate floating-point summation part I: faithful rounding*,
SIAM J. Scientific Computing 31, 2008, section 3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpumatch.numeric.arrays import array_of

__all__ = ["magnitude", "nearer", "summands"]

FEW = 1024
"""Numbers on the host up to which a list of them all is made faster than whole arrays are added."""
MANY = 2**15
"""Floats on the host that are added at a time: what is made of them stays in a cache."""
FEW_ON_DEVICE = 2**15
"""Numbers on a GPU up to which a copy of them takes less time than the launches of some 50 kernels.
"""


def nearer(values: Any) -> Any:
    """The array, or a copy on the host of one on a device that is short enough for that."""
    is_short = not isinstance(values, np.ndarray) and values.size <= FEW_ON_DEVICE
    return array_of(np, values) if is_short else values


def magnitude(values: Any) -> float:
    """The largest magnitude in an array; 0 if it is empty."""
    return max(abs(float(values.max())), abs(float(values.min()))) if values.size else 0.0


def summands(values: Any) -> list[Any]:
    """A few ints or floats whose exact sum is that of the array.

    Parameters
    ----------
    values : array of integers or floats, NumPy or CuPy
        Fewer than 2**31.
    """
    values = nearer(values)
    if values.size <= FEW:
        return values.tolist()
    if values.dtype.kind in "iu":
        return _halves(values)
    if not isinstance(values, np.ndarray) or values.size <= MANY:
        return _extracted(values)
    values = values.ravel()
    blocks = (values[begin : begin + MANY] for begin in range(0, values.size, MANY))
    parts = [part for block in blocks for part in _extracted(block)]
    return _extracted(np.array(parts)) if parts else []


def _halves(values: Any) -> list[int]:
    if values.dtype != np.uint64:  # whose upper halves are not signed
        values = values.astype(np.int64, copy=False)
    return [int((values >> 32).sum()) << 32, int((values & 0xFFFFFFFF).sum())]


def _extracted(values: Any) -> list[float]:
    rest = values.astype(np.float64)
    bits = (rest.size + 1).bit_length()
    largest = float(abs(rest).max())
    if not largest < math.ldexp(1.0, 1023 - bits):
        return rest.tolist()  # the step would be infinite
    parts = []
    while largest > 0:
        step = math.ldexp(1.0, math.frexp(largest)[1] + bits)
        high = (rest + step) - step
        rest -= high
        parts.append(float(high.sum()))
        largest = float(abs(rest).max())
    return parts
