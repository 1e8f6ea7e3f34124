"""Exact sums of products of numbers and whole units, by operations on whole arrays.

The cost of a flow is such a sum: what a pair costs, times the units that it carries. As in
`gpumatch.numeric.exact_sums`, an array becomes a few Python numbers with exactly its sum.

The arrays are on the host or on a device. Integers are multiplied in 64 bits if the sum fits into
these, else as Python ints on the host.

A float is split into two, of 26 and 27 bits, and the units into digits of 21 bits. A product of two
such parts has at most 48 bits, so float64 holds it, unless it is too small. If a product is too
small, the sum is computed as a fraction instead, because it may have bits below the least float.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np

from gpumatch.numeric.arrays import any_true
from gpumatch.numeric.exact_sums import nearer, summands

__all__ = ["product_terms"]

LOW = np.int64(-(1 << 27))
"""A mask that leaves 26 bits of a float's mantissa."""
DIGIT = 21
"""Bits of a digit of the units."""
SMALL = 2.0**-1000
"""Products from here on have no bit below the least float."""


def product_terms(values: Any, units: Any, unit: float = 1) -> list[Any]:
    """A few numbers with exactly the sum of values times units times `unit`.

    They are one int, floats, or one Fraction.

    Parameters
    ----------
    values : int64 or float64 array
        Finite numbers.
    units : int64 array
        At least 0.
    unit : int or float
        1 for integers; a power of 2 for floats.

    Raises
    ------
    OverflowError
        If a product of floats is beyond float64.
    """
    if values.size == 0:
        return []
    values, units = nearer(values), nearer(units)
    if values.dtype.kind != "f":
        return [_whole(values, units)]
    values = values.astype(np.float64, copy=False)
    top = int(units.max())
    high = (values.view(np.int64) & LOW).view(np.float64)
    parts = [high, values - high] if top > 1 else [values]  # a power of 2 times 1 is exact
    terms: list[Any] = []
    for shift in range(0, max(top.bit_length(), 1), DIGIT):
        digit = ((units >> shift) & ((1 << DIGIT) - 1)).astype(np.float64) * (2.0**shift * unit)
        for part in parts:
            with np.errstate(over="ignore", under="ignore"):
                product = part * digit
            size = abs(product)
            is_small = size < SMALL
            if any_true(is_small) and any_true(is_small & (part != 0) & (digit != 0)):
                return [_as_fraction(values, units, unit)]
            if not float(size.max()) < math.inf:
                raise OverflowError("a product is beyond the range of float64")
            terms += summands(product)
    return terms


def _whole(values: Any, units: Any) -> int:
    most = max(abs(int(values.max())), abs(int(values.min())))
    if most * sum(summands(units)) < 2**63:
        return int(values.dot(units))
    return sum(map(operator.mul, values.tolist(), units.tolist()))


def _as_fraction(values: Any, units: Any, unit: float) -> Fraction:
    """The sum of the products."""
    total = sum(map(operator.mul, map(Fraction, values.tolist()), units.tolist()), Fraction(0))
    return total * Fraction(unit)
