"""Exact sums of units and what they cost, and masses in units, for the checker of flows.

Sums of products are exact. Numbers are split into parts of 32 bits, and units into digits of 21, so
that float64 and int64 hold their products, and Python's integers add these up.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np

from gpumatch.certificates.base import CertificateError
from gpumatch.certificates.slacks import FEW, LEAST, whole_sum
from gpumatch.numeric.arrays import array_of

__all__ = [
    "LEAST_FLOAT",
    "MOST",
    "check_masses",
    "exact_bounds",
    "products",
    "rounded_up",
    "spread",
]

MOST = 2**62  # units of a side
LEAST_FLOAT = Fraction(1, 2**LEAST)  # products with masses may have bits below
DIGIT = 21  # bits of units that are multiplied at a time


# -- numbers ---------------------------------------------------------------------------------------


def products(values: Any, units: Any) -> Fraction:
    """The exact sum of products of numbers and whole units, which are at least 0."""
    if values.dtype.kind != "f":
        return Fraction(_whole_products(values.astype(np.int64, copy=False), units))
    mantissas, exponents = np.frexp(values.astype(np.float64, copy=False))
    whole = (mantissas * 2.0**53).astype(np.int64)
    order = np.argsort(exponents, kind="stable")
    whole, units, exponents = whole[order], units[order], exponents[order]
    begins = np.flatnonzero(np.diff(exponents, prepend=exponents[:1] - 1))
    total = 0
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), exponents.size]):
        part = _whole_products(whole[begin:end], units[begin:end])
        total += part << (int(exponents[begin]) + LEAST)
    return Fraction(total) / (1 << (LEAST + 53))


def _whole_products(values: Any, units: Any) -> int:
    """The exact sum of products of int64 numbers and units.

    Numbers are split into parts of 32 bits, and units into digits of 21: products have 53 bits.
    """
    if values.size <= FEW:
        return sum(map(operator.mul, values.tolist(), units.tolist()))
    total, most = 0, int(units.max())
    for part, place in ((values >> 32, 32), (values & (2**32 - 1), 0)):
        for shift in range(0, max(most.bit_length(), 1), DIGIT):
            digit = (units >> shift) & ((1 << DIGIT) - 1)
            total += whole_sum(part * digit) << (place + shift)
    return total


def rounded_up(number: Fraction) -> float:
    """The least float that is no less."""
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.nextafter(math.inf, 0.0)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < number else nearest


def check_masses(name: str, given: Any, bounds: tuple[Any, Any], unit: float) -> None:
    """Check that bounds in units are these masses, each off by less than a unit."""
    parts = given if isinstance(given, tuple) else (np.int64(0), given)
    for mass, units in zip(parts, bounds):
        if _are_near(mass, units, unit):
            continue
        part = _exact(name, mass)
        exact = _spread_one(part, units.size)
        if len(exact) != units.size:
            raise CertificateError(f"{name} has {len(exact)} numbers for {units.size} vertices")
        for vertex, (mass, count) in enumerate(zip(exact, units.tolist())):
            off = abs(mass / Fraction(unit) - count)
            if off >= 1 or (off and isinstance(unit, int)):
                raise CertificateError(
                    f"{name} {vertex} is {float(mass)}, but the result has {count * unit}"
                )


def _are_near(masses: Any, units: Any, unit: float) -> bool:
    """True if each mass is clearly off by less than a unit; by nothing from units that are 1."""
    values = array_of(np, masses.detach() if hasattr(masses, "detach") else masses)
    if values.shape not in ((), units.shape) or values.dtype.char not in "?bBhHiIlqefd":
        return False
    with np.errstate(over="ignore"):
        scaled = values if values.dtype.kind != "f" and unit == 1 else values / np.float64(unit)
    if not bool(((scaled >= 0) & (scaled <= MOST)).all()):
        return False
    down, up = (np.asarray(part(scaled)).astype(np.int64) for part in (np.floor, np.ceil))
    is_near = (
        (down == units) & (up == units)
        if isinstance(unit, int)
        else ((down == units) | (up == units))
    )
    return bool(is_near.all())


def exact_bounds(name: str, given: Any) -> list[Any]:
    """Lower and upper bounds of masses as exact numbers: one, or a list of them."""
    lower, upper = given if isinstance(given, tuple) else (0, given)
    return [_exact(name, lower), _exact(name, upper)]


def _exact(name: str, masses: Any) -> Any:
    if hasattr(masses, "detach"):
        masses = masses.detach()  # a tensor, which may ask for a gradient
    values = array_of(np, masses)
    if values.dtype.kind not in "biuf":
        raise CertificateError(f"{name} must be numbers; got {values.dtype}")
    exact = [
        Fraction(*value.as_integer_ratio()) if values.dtype.kind == "f" else Fraction(int(value))
        for value in values.ravel()
    ]
    return exact if values.ndim else exact[0]


def spread(sides: list[Any], length: int) -> list[Any]:
    return [_spread_one(part, length) for part in sides]


def _spread_one(part: Any, length: int) -> list[Fraction]:
    return part if isinstance(part, list) else [part] * length
