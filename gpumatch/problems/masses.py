"""Supplies and demands, checked and counted in whole units, where the costs are.

Integers are units as they are. Floats become multiples of a *unit*, a power of 2:

- 1, if all of them are integers of at most 2**53 in all;
- else the least power of 2 of which the larger of both totals has at most 2**62.

A mass that is no multiple of the unit is rounded down or up, so it is off by less than a unit. The
total of a side is rounded once, and the masses that lose most are rounded up. So two sides with
equal totals have equal totals in units. A lower bound is rounded down, or is the upper bound if
both are equal.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
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

__all__ = ["MOST", "Bounds", "ManyMasses", "Masses", "masses_of", "masses_of_many"]

MOST = 2**62
"""The most units of a side."""
NEAR_HALF = 2.0**-20
"""How near a half a sum of floats may be so that its rounding decides nothing."""
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
        """True if the masses were given as integers."""
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
    if values.size and not (values.min() >= 0 and values.max() < math.inf):  # NaN is neither
        stray = first_true(~((values >= 0) & (values < math.inf)))
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
    more = _nearest(summands(lost))
    if more:
        units[xp.argsort(-lost, kind="stable")[:more]] += 1
    if lower is None:
        return Bounds(xp.zeros_like(units), units)
    least = xp.floor(lower / unit).astype(np.int64)
    return Bounds(xp.where(lower == upper, units, xp.minimum(least, units)), units)


@dataclasses.dataclass(frozen=True)
class ManyMasses(Sequence[Masses]):
    """The masses of the problems of a batch on the host, all without lower bounds.

    Attributes
    ----------
    supply, demand : int64 arrays of shape (B, N) and (B, M)
        Units. What a problem does not have is 0.
    units : list of B numbers
        What a unit of each problem is.
    dtype
        That of the caller's masses.
    sizes : int64 array of shape (B, 2)
    """

    supply: np.ndarray
    demand: np.ndarray
    units: list[float]
    dtype: Any
    sizes: np.ndarray

    def __len__(self) -> int:
        return len(self.units)

    def __getitem__(self, k: Any) -> Any:
        rows, cols = (
            Bounds(np.zeros(length, np.int64), side[k, :length])
            for side, length in zip((self.supply, self.demand), self.sizes[k].tolist())
        )
        return Masses(rows, cols, self.units[k], self.dtype)

    def in_masses(self, units: np.ndarray) -> np.ndarray:
        """Units, one row a problem, in the caller's masses."""
        if self.dtype.kind != "f":
            return units
        return (units * np.array(self.units)[:, None]).astype(self.dtype)


def masses_of_many(
    supply: Any, demand: Any, sizes: np.ndarray, shape: tuple[int, int]
) -> ManyMasses | None:
    """The masses of a batch, by operations on whole arrays; None if `masses_of` must look at each.

    That is so if some are bounds or wrong, or if there are too many units.
    """
    sides: list[np.ndarray] = []
    for given, lengths, width in zip((supply, demand), sizes.T, shape):
        values = _of_all(given, lengths, width)
        if values is None or not ((values >= 0) & (values < math.inf)).all():
            return None
        sides.append(values)
    kinds = [side.dtype for side in sides if side.dtype.kind == "f"]
    if kinds:
        floats = [side.astype(np.float64) for side in sides]
        units = _units_of_all(floats)
        if math.inf in units:
            return None
        whole = [_rounded_all(side / np.array(units)[:, None]) for side in floats]
        return ManyMasses(whole[0], whole[1], units, np.result_type(*kinds), sizes)
    if any(max(map(sum, side.tolist()), default=0) > MOST for side in sides):
        return None
    whole = [side.astype(np.int64) for side in sides]
    return ManyMasses(whole[0], whole[1], [1] * len(sizes), np.dtype(np.int64), sizes)


def _of_all(given: Any, lengths: np.ndarray, width: int) -> np.ndarray | None:
    """One side's masses of all problems: a row for each, 0 beyond its length; None if not plain."""
    count, has = len(lengths), np.arange(width) < lengths[:, None]
    if isinstance(given, list) and given and has_length(given[0]):
        parts = [np.asarray(part) for part in given if not isinstance(part, tuple)]
        if [part.shape for part in parts] != [(length,) for length in lengths.tolist()]:
            return None
        if {part.dtype.kind for part in parts} not in ({"i"}, {"f"}):
            return None
        values = np.zeros((count, width), np.result_type(*parts))
        values[has] = np.concatenate(parts)
        return values
    is_plain = isinstance(given, (int, float, np.ndarray)) and not isinstance(given, bool)
    if not is_plain:
        return None
    values = np.asarray(given)
    if values.dtype.kind not in "if" or values.ndim > 2:
        return None
    if values.ndim == 1 and not has.all():
        return None  # one array cannot fit problems of several lengths
    if values.shape not in ((), (width,), (count, 1), (count, width)):
        return None
    return np.where(has, values, values.dtype.type(0))


def _units_of_all(sides: list[np.ndarray]) -> list[float]:
    """The unit of each problem, as `_unit_of` has it; infinity if a total is none."""
    whole = np.logical_and(*((side == np.rint(side)).all(axis=1) for side in sides)).tolist()
    units = []
    for is_whole, *rows in zip(whole, *(side.tolist() for side in sides)):
        try:
            most = max(map(math.fsum, rows))
        except OverflowError:
            most = math.inf
        if is_whole and most <= WHOLE:
            units.append(1.0)
        else:
            finest = math.ldexp(1.0, math.frexp(most)[1] - 62) if most < math.inf else most
            units.append(max(finest, math.ldexp(1.0, -1074)))
    return units


def _rounded_all(scaled: np.ndarray) -> np.ndarray:
    """Masses of floats in units, as `_rounded` has them."""
    down = np.floor(scaled)
    lost = scaled - down
    units = down.astype(np.int64)
    rows = lost.any(axis=1).nonzero()[0]
    more = np.array([_nearest(row) for row in lost[rows].tolist()], np.int64)
    order = np.argsort(-lost[rows], axis=1, kind="stable")
    rounded = np.arange(scaled.shape[1]) < more[:, None]
    gains = np.zeros((rows.size, scaled.shape[1]), np.int64)
    np.put_along_axis(gains, order, rounded.astype(np.int64), axis=1)
    units[rows] += gains
    return units


def _nearest(parts: list[float]) -> int:
    """The sum of floats, rounded to the nearest integer; halves are rounded up."""
    total = math.fsum(parts)
    if abs(total % 1 - 0.5) > NEAR_HALF:
        return math.floor(total + 0.5)
    return math.floor(sum(map(Fraction, parts), Fraction(1, 2)))
