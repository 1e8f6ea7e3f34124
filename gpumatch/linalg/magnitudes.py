"""Magnitudes of a matrix's values as costs, whatever numbers they are.

Those of complex64 are found in float64, and those of complex numbers without squares. Integers stay
integers as long as their sums fit. Where magnitudes are too large to be summed, sums take them
times a power of 2, and a bottleneck, which only compares them, takes their order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpumatch.costs import TOO_LARGE
from gpumatch.numeric.arrays import array_module

__all__ = ["comparable", "summable"]

_MOST = 1000
"""The greatest exponent of sums, with room for prices."""


def summable(values: Any, n: int) -> Any:
    """Magnitudes times a power of 2, of which n can be summed: in int64, or else in float64.

    Integers whose sums do not fit are rounded to float64.
    """
    magnitudes = _magnitudes(values)
    if _fits(magnitudes, n):
        return _signed(magnitudes)
    if magnitudes.dtype.kind in "iu":
        return magnitudes.astype(np.float64)
    down = _exponent(max(abs(part).max().item() for part in _parts(values)), n) + 1 - _MOST
    return _magnitudes(values, down).astype(np.float64)


def comparable(values: Any, n: int) -> Any:
    """Magnitudes, or their places among all if `summable` would change them."""
    magnitudes = _magnitudes(values)
    if _fits(magnitudes, n):
        return _signed(magnitudes)
    if values.dtype.kind != "c":
        return _ranks(magnitudes)
    # A magnitude may be beyond the range of the parts.
    xp = array_module(values)
    is_beyond = ~xp.isfinite(magnitudes)
    ranks = _ranks(xp.where(is_beyond, 0, magnitudes))
    return xp.where(is_beyond, ranks.size + _ranks(_magnitudes(values, 2)), ranks)


def _parts(values: Any) -> tuple[Any, ...]:
    """The real and the imaginary parts, or the values, in float64 at least."""
    parts = (values.real, values.imag) if values.dtype.kind == "c" else (values,)
    return tuple(part.astype(np.result_type(part.dtype, np.float64), copy=False) for part in parts)


def _magnitudes(values: Any, down: int = 0) -> Any:
    """The magnitudes times ``2.0**-down``; those of integers exactly, in int64 or uint64."""
    if values.dtype == np.int64:
        return abs(values).view(np.uint64)  # that of -2**63 overflows to the same bits
    if values.dtype == np.uint64:
        return values
    if values.dtype.kind in "biu":
        return abs(values.astype(np.int64))
    xp = array_module(values)
    parts = [xp.ldexp(part, -down) if down else part for part in _parts(values)]
    with np.errstate(over="ignore"):
        return xp.hypot(*parts) if len(parts) == 2 else abs(parts[0])


def _fits(magnitudes: Any, n: int) -> bool:
    """True if n of these can be summed as they are."""
    largest = magnitudes.max().item() if magnitudes.size else 0
    if magnitudes.dtype.kind in "iu":
        return (n + 1) * largest < TOO_LARGE
    is_double = magnitudes.dtype.itemsize == 8
    return is_double and math.isfinite(largest) and _exponent(largest, n) <= _MOST


def _signed(magnitudes: Any) -> Any:
    return magnitudes.astype(np.int64) if magnitudes.dtype.kind == "u" else magnitudes


def _exponent(largest: Any, n: int) -> int:
    """The exponent of a bound of the sum of n numbers up to the largest, eight times."""
    return int(np.frexp(largest)[1]) + (8 * (n + 1)).bit_length()


def _ranks(values: Any) -> Any:
    """The place of each value among the distinct ones."""
    return array_module(values).unique(values, return_inverse=True)[1].astype(np.int64)
