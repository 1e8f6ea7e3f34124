"""Supplies and demands, checked and counted in whole units, where the costs are.

Integers are units as they are. Floats become multiples of a *unit*, a power of 2:

- 1, if all of them are integers of at most 2**53 in all;
- else the least power of 2 of which the larger of both totals has at most 2**62.

A mass that is no multiple of the unit is rounded down or up, so it is off by less than a unit. The
total of a side is rounded once, and those masses are rounded up that lose most. So two sides with
equal totals have equal totals in units. A lower bound is rounded down, or is the upper bound if
both are equal.
"""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from gpumatch.numeric.arrays import (
    any_true,
    array_module,
    array_of,
    as_array,
    first_true,
    has_length,
)
from gpumatch.numeric.exact_sums import summands

__all__ = ["MOST", "Bounds", "Masses", "masses_of"]

MOST = 2**62
"""The most units of a side."""
WHOLE = 2.0**53
"""float64 holds all integers up to this."""


class Bounds(NamedTuple):
    """How many units each vertex of a side must have at least, and may have at most: int64."""

    lower: Any
    upper: Any

    @property
    def total(self) -> int:
        """The most units of all vertices together."""
        return sum(summands(self.upper))

    @property
    def has_lower(self) -> bool:
        return any_true(self.lower != 0)

    def at(self, vertices: Any) -> Bounds:
        """The bounds of some vertices."""
        return Bounds(self.lower[vertices], self.upper[vertices])


class Masses(NamedTuple):
    """The bounds of both sides, what a unit is, and the dtype of the caller's masses."""

    rows: Bounds
    cols: Bounds
    unit: float
    dtype: Any

    @property
    def are_whole(self) -> bool:
        """Whether the masses were given as integers."""
        return isinstance(self.unit, int)


def masses_of(supply: Any, demand: Any, shape: tuple[int, int], xp: Any = np) -> Masses:
    """The masses of a caller in arrays of `xp`, which is NumPy or CuPy.

    Errors name the argument and the first number that is wrong.

    Raises
    ------
    TypeError, ValueError
        If an argument is no number, no array with one number for each vertex, or no pair of bounds
        of these; if a mass is below 0 or not finite, a lower bound is above the upper one, or the
        masses of a side add up to too much.
    """
    sides = [
        _side(mass, name, length, vertex, xp)
        for mass, name, length, vertex in zip(
            (supply, demand), ("supply", "demand"), shape, ("row", "column")
        )
    ]
    given = [part for _, upper, lower in sides for part in (upper, lower) if part is not None]
    if all(part.dtype.kind != "f" for part in given):
        rows, cols = (_integers(*side) for side in sides)
        return Masses(rows, cols, 1, np.dtype(np.int64))
    kinds = [part.dtype for part in given if part.dtype.kind == "f"]
    floats = [
        (name, upper.astype(np.float64), None if lower is None else lower.astype(np.float64))
        for name, upper, lower in sides
    ]
    unit = _unit_of(floats)
    rows, cols = (_rounded(upper, lower, unit) for _, upper, lower in floats)
    return Masses(rows, cols, unit, np.result_type(*kinds))


def _side(mass: Any, name: str, length: int, vertex: str, xp: Any) -> tuple[str, Any, Any]:
    """The name of an argument, its upper bounds, and its lower bounds; None without."""
    if not isinstance(mass, tuple):
        return name, _numbers(mass, name, length, vertex, xp), None
    if len(mass) != 2:
        raise ValueError(f"{name} as a tuple must be (lower, upper); got {len(mass)} parts")
    lower = _numbers(mass[0], f"{name}[0]", length, vertex, xp)
    upper = _numbers(mass[1], f"{name}[1]", length, vertex, xp)
    above = first_true(lower > upper)
    if above is not None:
        raise ValueError(
            f"the bounds of {name} must be (lower, upper): those of {vertex} {above} are "
            f"{lower[above]} and {upper[above]}"
        )
    return name, upper, lower


def _numbers(mass: Any, name: str, length: int, vertex: str, xp: Any) -> Any:
    """One number for each vertex, as int64, uint64 or floats, checked."""
    if isinstance(mass, (bool, np.bool_)):
        raise TypeError(f"{name} must be a number, or one for each {vertex}; got {mass!r}")
    if isinstance(mass, int) and abs(mass) > MOST:
        raise ValueError(f"{name} is {mass}, more than 2**62 units")
    if not has_length(mass) and not hasattr(mass, "ndim") and not isinstance(mass, Real):
        raise TypeError(f"{name} must be a number, or one for each {vertex}; got {mass!r}")
    values = array_of(xp, as_array(mass, name))
    if values.size == 0 and values.dtype.kind == "f" and not hasattr(mass, "dtype"):
        values = values.astype(np.int64)  # [] says nothing of its type
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be real numbers; got dtype {values.dtype}")
    if values.ndim == 0:
        values = xp.full(length, values.item(), values.dtype)
    if values.shape != (length,):
        raise ValueError(
            f"{name} must be a number, or {length} numbers, one for each {vertex}; "
            f"got the shape {values.shape}"
        )
    stray = first_true(~((values >= 0) & (values < math.inf)))
    if stray is not None:
        raise ValueError(
            f"{name}[{stray}] is {values[stray]}: masses must be finite and at least 0"
        )
    return values


def _integers(name: str, upper: Any, lower: Any | None) -> Bounds:
    total = sum(summands(upper.astype(np.int64) if upper.dtype.kind == "b" else upper))
    if total > MOST:
        raise ValueError(f"{name} adds up to {total} units, more than 2**62")
    whole = upper.astype(np.int64)
    xp = array_module(whole)
    return Bounds(xp.zeros_like(whole) if lower is None else lower.astype(np.int64), whole)


def _unit_of(sides: list[tuple[str, Any, Any | None]]) -> float:
    """The unit of masses of floats."""
    totals = []
    for name, upper, _ in sides:
        try:
            totals.append(math.fsum(summands(upper)))
        except OverflowError:
            totals.append(math.inf)
        if totals[-1] == math.inf:
            raise ValueError(f"{name} adds up to more than float64 holds")
    most = max(totals)
    every = [part for _, upper, lower in sides for part in (upper, lower) if part is not None]
    if most <= WHOLE and not any(any_true(part != _rint(part)) for part in every):
        return 1.0
    return max(math.ldexp(1.0, math.frexp(most)[1] - 62), math.ldexp(1.0, -1074))


def _rint(values: Any) -> Any:
    return array_module(values).rint(values)


def _rounded(upper: Any, lower: Any | None, unit: float) -> Bounds:
    """Masses of floats in units."""
    xp = array_module(upper)
    scaled = upper / unit  # exact: the unit is a power of 2, and no more than the greatest mass
    down = xp.floor(scaled)
    lost = scaled - down
    units = down.astype(np.int64)
    more = math.floor(sum(map(Fraction, summands(lost)), Fraction(1, 2)))
    if more:
        units[xp.argsort(-lost, kind="stable")[:more]] += 1
    if lower is None:
        return Bounds(xp.zeros_like(units), units)
    least = xp.floor(lower / unit).astype(np.int64)
    return Bounds(xp.where(lower == upper, units, xp.minimum(least, units)), units)
