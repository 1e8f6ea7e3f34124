"""Iterative refinement of the solutions of a system, each right-hand side by itself.

A step solves for what the equations have left, and adds that. Its backward error tells how good a
solution is: for equation i

    |b - A x|_i / (|A| |x| + |b|)_i,

of which the greatest counts. No scaling of rows or columns changes it.

- What an equation has left is not solved for once its backward error is no more than the rounding
  of one number. So other equations have their turn, even if their numbers are smaller by more than
  the range of float64.
- The terms of an equation may be so small that nothing helps: its unknowns are 0 but for rounding.
  Arioli, Demmel and Duff compare what such an equation has left with what its terms might be. If
  the greatest backward error is of no use, a step is a success by that measure, too.
- Refinement ends when a step has not halved the greatest backward error. But as long as that is of
  no use, it goes on for some steps: where unknowns differ by hundreds of orders of magnitude, the
  rounding of large ones covers small ones, and each step uncovers some orders.
- An equation that holds NaN or an infinity holds up no other, and the best solution is kept.

Reference: Arioli, Demmel, Duff, *Solving sparse linear systems with sparse backward error*, SIAM J.
Matrix Anal. Appl. 10(2), 1989.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["ROUNDING", "Equations", "Sides", "exponents", "refined", "times_power"]

ROUNDING = float(np.finfo(np.float64).eps)
NEVER = -(2**28)
"""The exponent of 0."""

_STEPS = 10  # at most; the second is seldom needed
_USELESS = 1e-8  # a backward error: half of the digits are lost
_SMALL = 1000  # times n roundings of what an equation's terms might be: smaller ones are small
_HALF = 600  # the exponent that a matrix and its unknowns each give off if products overflow
_TINY = 2.0**-900  # products so small may underflow, or their parts


class Sides(NamedTuple):
    """Right-hand sides, one a column: ``values * 2.0**power``."""

    values: np.ndarray
    power: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> Sides:
        return cls(values, np.zeros(values.shape, np.int32))

    def columns(self, which: np.ndarray) -> Sides:
        return Sides(self.values[:, which], self.power[:, which])


class Equations:
    """A system of float64 or complex128, and how far from its solution something is.

    Parameters
    ----------
    matrix : sparse array
        It holds no zeros.
    row_power, col_power : int32 arrays, optional
        Times 2 to these powers, rows and columns have entries up to about 1.
    """

    def __init__(
        self, matrix: Any, row_power: np.ndarray | None = None, col_power: np.ndarray | None = None
    ) -> None:
        self.matrix, self._magnitudes = matrix, abs(matrix)
        self._powers = row_power, col_power

    def left(self, x: np.ndarray, right: Sides) -> tuple[Sides, np.ndarray]:
        """``b - A x``, and ``|A| |x| + |b|`` by its powers."""
        side = times_power(right.values, right.power) if right.power.any() else right.values
        rest, size = side - self.matrix @ x, self._magnitudes @ abs(x) + abs(side)
        power = np.zeros(rest.shape, np.int32)
        is_finite = np.isfinite(size)  # it is at least the residual
        if not is_finite.all():
            self._halve(x, right, (rest, size, power), ~is_finite, _HALF)
        if self._least * _least(x) < _TINY:
            self._halve(x, right, (rest, size, power), size < _TINY, -_HALF)
        return Sides(rest, power), size

    def _halve(
        self, x: np.ndarray, right: Sides, to: tuple[np.ndarray, ...], where: np.ndarray, half: int
    ) -> None:
        """Write the residual and its size with the matrix and x times ``2.0**-half``.

        What underflows by that is nothing beside the others there. What overflows meets a 0.
        """
        rows = np.flatnonzero(where.any(axis=1))
        if rows.size:
            matrix, halved = self.matrix.tocsr()[rows] * 2.0**-half, x * 2.0**-half
            matrix.data[~np.isfinite(matrix.data)] = 0
            side = times_power(right.values[rows], right.power[rows] - 2 * half)
            sizes = abs(matrix) @ abs(halved) + abs(side)
            for values, own in zip(to, (side - matrix @ halved, sizes, 2 * half)):
                values[rows] = np.where(where[rows], own, values[rows])

    @functools.cached_property
    def _least(self) -> float:
        return _least(self._magnitudes.data)

    def errors(self, x: np.ndarray, right: Sides) -> np.ndarray:
        """The backward error of each equation and column."""
        left, size = self.left(x, right)
        return _ratio(left.values, size)

    def guarded(self, x: np.ndarray, left: Sides, size: np.ndarray) -> np.ndarray:
        """The greatest backward error of each column if small terms count as what they might be.

        That is the largest entry of the equation times the largest unknown, both as they are or
        both scaled, whichever is less.
        """
        rows, of_unknowns = self._magnitudes.tocsr().max(axis=1), exponents(x)
        power = exponents(rows.toarray().reshape(-1, 1)) + of_unknowns.max(axis=0, initial=NEVER)
        row_power, col_power = self._powers
        if row_power is not None and col_power is not None:
            of_unknowns -= col_power[:, None]
            scaled = of_unknowns.max(axis=0, initial=NEVER) - row_power[:, None]
            power = np.minimum(power, scaled)
        possible = np.ldexp(1.0, power - left.power)
        is_small = size <= _SMALL * x.shape[0] * ROUNDING * possible
        return _greatest(_ratio(left.values, np.where(is_small, size + possible, size)))


Solve = Callable[[Sides], tuple[np.ndarray, np.ndarray]]
"""Gives solutions for right-hand sides, infinite where the second array marks them as too large."""


def refined(equations: Equations, right: Sides, solve: Solve) -> np.ndarray:
    """The solutions by ``solve``, refined: the best of each column."""
    x, beyond = _split(*solve(right))
    columns = np.arange(x.shape[1])
    left, size = equations.left(x, right)
    errors = _ratio(left.values, size)
    is_lost = ~np.isfinite(errors)
    errors[is_lost] = 0
    best, least = x.copy(), _greatest(errors)
    goes_on = least > ROUNDING
    for _ in range(_STEPS):
        if not goes_on.any():
            break
        columns, x = columns[goes_on], x[:, goes_on]
        wanting = np.where(errors > ROUNDING, left.values, 0)[:, goes_on]
        change, over = _split(*solve(Sides(wanting, left.power[:, goes_on])))
        x = x + change
        side = right.columns(columns)
        left, size = equations.left(x, side)
        errors = _ratio(left.values, size)
        errors[is_lost[:, columns]] = 0
        greatest = _greatest(errors)
        is_better = greatest < least[columns]
        is_held_up = ~is_better & (greatest <= 2 * least[columns]) & (greatest > _USELESS)
        if is_held_up.any():
            before, same = best[:, columns[is_held_up]], side.columns(is_held_up)
            first = equations.guarded(before, *equations.left(before, same))
            now = x[:, is_held_up], left.columns(is_held_up), size[:, is_held_up]
            is_better[is_held_up] = equations.guarded(*now) < first
        is_halved = greatest <= least[columns] / 2
        better = columns[is_better]
        best[:, better], beyond[:, better] = x[:, is_better], over[:, is_better]
        least[better] = greatest[is_better]
        goes_on = (greatest > ROUNDING) & (is_halved | (greatest > _USELESS))
        goes_on &= np.isfinite(greatest)
    return np.where((beyond != 0) & (least > _USELESS), beyond, best)


def _split(values: np.ndarray, is_beyond: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values in range, and those beyond it; 0 for the others.

    Rounding may have made an unknown so large that the equations hardly tell. With 0 for it, they
    may be solved as well.
    """
    beyond = np.zeros_like(values)
    if is_beyond.any():
        beyond[is_beyond] = values[is_beyond]
        values = np.where(is_beyond, 0, values)
    return values, beyond


def exponents(values: np.ndarray) -> np.ndarray:
    """The exponents of finite numbers, so that they are less than 2 to these; else `NEVER`."""
    sizes = abs(values) if values.dtype.kind != "c" else np.maximum(*map(abs, _parts(values)))
    found = np.frexp(sizes)[1]
    found[(sizes == 0) | ~np.isfinite(sizes)] = NEVER
    return found


def times_power(values: np.ndarray, power: Any) -> np.ndarray:
    """The values times powers of 2, rounded only at the ends of the range."""
    if values.dtype.kind != "c":
        return np.ldexp(values, power)
    result = np.empty(np.broadcast_shapes(values.shape, np.shape(power)), values.dtype)
    result.real, result.imag = (np.ldexp(part, power) for part in _parts(values))
    return result


def _parts(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values.real, values.imag


def _least(values: np.ndarray) -> float:
    """The least magnitude that is not 0."""
    sizes = abs(values)
    return float(sizes.min(where=sizes > 0, initial=np.inf))


def _ratio(left: np.ndarray, size: np.ndarray) -> np.ndarray:
    return abs(left) / np.where(size == 0, 1, size)


def _greatest(errors: np.ndarray) -> np.ndarray:
    """Of each column; inf if one is not finite."""
    return np.where(np.isfinite(errors), errors, np.inf).max(axis=0, initial=0)
