"""Exact sums of many numbers, on the host or the device, by operations on whole arrays.

An array becomes a few Python numbers with exactly the sum of the array. The numbers of several
arrays are then added by `sum` (int) or `math.fsum` (float), which rounds once. So the result is
that of `math.fsum` of all numbers, whatever cancels, and in any order.

Integers are split into halves of 32 bits, whose sums fit into 64 bits.

Floats are split by Rump, Ogita and Oishi's extraction. Let all |x_i| be at most 2**e, and let s be
2**(e + b), where 2**b >= n + 2 for n numbers. Then q_i = (x_i + s) - s is a multiple of s / 2**53
and at most s / 2**b in magnitude. So the q_i are added without rounding, in any order. The
remainders x_i - q_i are exact too, and at most s / 2**53. The extraction is repeated with the
remainders until all are 0. Each round removes 53 - b bits, so numbers of similar magnitude need two
or three rounds.

Reference: Rump, Ogita, Oishi, *Accurate floating-point summation part I: faithful rounding*,
SIAM J. Scientific Computing 31, 2008, section 3.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from gpumatch.numeric.arrays import array_of

__all__ = ["magnitude", "nearer", "summands", "times"]

FEW = 1024
"""The length of arrays on the host up to which a list of their numbers is made faster than sums."""
MANY = 2**13
"""The number of floats on the host that are added at a time.

Their temporaries fit into the nearest caches. 20,000 floats take 0.10 ms so, and 0.33 at once.
"""
FEW_ON_DEVICE = 2**15
"""The length of arrays on a GPU up to which a copy to the host is faster than some 50 launches."""


def nearer(values: Any) -> Any:
    """The array. If it is short and on a device, a copy on the host."""
    is_short = not isinstance(values, np.ndarray) and values.size <= FEW_ON_DEVICE
    return array_of(np, values) if is_short else values


def magnitude(values: Any) -> float:
    """The largest magnitude in an array; 0 if it is empty."""
    return max(abs(float(values.max())), abs(float(values.min()))) if values.size else 0.0


def summands(values: Any, few: int = FEW) -> list[Any]:
    """A few ints or floats with exactly the sum of the array.

    Parameters
    ----------
    values : array of integers or floats, NumPy or CuPy
        The array has fewer than 2**31 numbers.
    few : int
        The length up to which the result is a list of all of them.
    """
    values = nearer(values)
    if values.size <= few:
        return values.tolist()
    if values.dtype.kind in "iu":
        return _halves(values)
    if not isinstance(values, np.ndarray) or values.size <= MANY:
        return _extracted(values)
    values = values.ravel()
    blocks = (values[begin : begin + MANY] for begin in range(0, values.size, MANY))
    parts = [part for block in blocks for part in _extracted(block)]
    return _extracted(np.array(parts)) if parts else []


def times(number: Any, count: int) -> list[Any]:
    """One or two numbers with exactly the sum of the number, taken so often."""
    if isinstance(number, int):
        return [number * count]
    product = number * count
    return [product, float(Fraction(number) * count - Fraction(product))]


def _halves(values: Any) -> list[int]:
    if values.dtype != np.uint64:  # whose upper halves are not signed
        values = values.astype(np.int64, copy=False)
    return [int((values >> 32).sum()) << 32, int((values & 0xFFFFFFFF).sum())]


def _extracted(values: Any) -> list[float]:
    rest = values.astype(np.float64)
    bits = (rest.size + 1).bit_length()
    largest = magnitude(rest)
    if not largest < math.ldexp(1.0, 1023 - bits):
        return rest.tolist()  # the step would be infinite
    parts = []
    while largest > 0:
        step = math.ldexp(1.0, math.frexp(largest)[1] + bits)
        high = rest + step
        high -= step
        rest -= high
        parts.append(float(high.sum()))
        largest = magnitude(rest)
    return parts
