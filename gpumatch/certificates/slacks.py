"""Prices that nothing undercuts: bounds that are true as numbers, whatever the prices were.

Costs are to be minimised here. A row i has a price u_i, a column j a price v_j, and a pair that is
allowed a cost c_ij. Prices are *fair* if u_i + v_j <= c_ij for every allowed pair.

Theorem. Let u and v be any finite numbers. For each pair that costs less than its prices, let
e_ij >= u_i + v_j - c_ij be a number at least as large as what is missing. Subtract from one end of
each such pair, its row or its column, the largest e_ij that was moved there. Then the prices are
fair.

Proof. No price rises, and each pair has lost e_ij at one end. ∎

So nothing is asked of the prices that a result brings: wrong ones prove less. It remains to find
each pair that costs less, to round e_ij up, and to add without rounding.

Finding them. Let U_i >= u_i and V_j >= v_j be floats. If c - u - v < 0, then c - U < V, and because
rounding is monotone, fl(c - U) <= fl(V) = V. So the pairs with fl(c - U) <= V are all that need a
closer look (`Prices.below`). One subtraction and one comparison find these.

Looking closely. The sum of a few floats is an expansion: floats whose sum it is, found by
error-free transformations (Knuth's two-sum). With rounding to even it is nonadjacent, so the sum of
its components has the sign of the exact sum, even when it is added up in floats, and is wrong by
less than 2**-48 of itself (`excess`). Reference: Shewchuk, *Adaptive precision floating-point
arithmetic and fast robust geometric predicates*, Discrete Comput. Geom. 18, 1997, theorem 10.

Encodings
---------
units : int
    An exact number, in units of the least float, 2**-1074. Every float and every int is a whole
    number of them.
parts : list of float64 arrays
    Numbers as sums: a float array as itself; int64 beyond 2**53 as their upper and lower halves.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from gpumatch.numeric.arrays import array_module, array_of

LEAST = 1074  # the least float is 2**-LEAST
ADDED = 2**25  # floats added at a time: their halves of 27 bits sum up to less than 2**53
FEW = 32  # numbers that are added one by one in less time, on the host
HALF = 32
EXACT = 2**53  # float64 holds all integers below
HUGE, SHRINK = 2.0**1000, 2.0**-60  # from here on, numbers are scaled so that no sum overflows
ROUNDING = 2.0**-48  # of the sum of an expansion


# -- exact sums ------------------------------------------------------------------------------------


def units_of(number: float) -> int:
    """A finite Python number in units."""
    if isinstance(number, int):
        return number << LEAST
    numerator, denominator = number.as_integer_ratio()
    return numerator << (LEAST + 1 - denominator.bit_length())  # it is a power of two


def sum_in_units(values: Any) -> int:
    """The exact sum of an array of finite numbers, added where they are."""
    if values.size == 0:
        return 0
    if values.size <= FEW and isinstance(values, np.ndarray):
        return sum(map(units_of, values.tolist()))
    if values.dtype.kind != "f":
        return whole_sum(values.astype(np.int64, copy=False)) << LEAST
    total = 0
    for begin in range(0, values.size, ADDED):
        for number, exponent in _by_exponent(values[begin : begin + ADDED]):
            places = exponent + LEAST  # if below 0, so many bits are 0
            total += number << places if places >= 0 else number >> -places
    return total


def nearest(units: int) -> float:
    """The nearest float; inf or -inf beyond the largest."""
    try:
        return units / (1 << LEAST)
    except OverflowError:
        return math.inf if units > 0 else -math.inf


def at_most(units: int) -> float:
    """The greatest float that is no more; never inf."""
    number = nearest(units)
    if number == math.inf:
        return math.nextafter(math.inf, 0.0)
    if number > -math.inf and units_of(number) > units:
        number = math.nextafter(number, -math.inf)
    return number


def at_least(units: int) -> float:
    """The least float that is no less; never -inf."""
    return 0.0 - at_most(-units)


def whole_sum(values: Any) -> int:
    """The sum of int64 numbers; their halves do not overflow."""
    return (int((values >> HALF).sum()) << HALF) + int((values & (2**HALF - 1)).sum())


def _by_exponent(values: Any) -> list[tuple[int, int]]:
    """The exact sum of floats, as numbers times powers of two: (number, exponent).

    Each float is an integer of 53 bits times a power of two. Those with the same power are added,
    in halves.
    """
    xp = array_module(values)
    mantissas, exponents = xp.frexp(values.astype(np.float64, copy=False))
    least = int(exponents.min())
    whole, places = (mantissas * 2.0**53).astype(np.int64), exponents - least
    high = xp.bincount(places, weights=(whole >> 26).astype(np.float64)).tolist()
    low = xp.bincount(places, weights=(whole & (2**26 - 1)).astype(np.float64)).tolist()
    sums = [(int(above) << 26) + int(below) for above, below in zip(high, low)]
    return [(number, least + k - 53) for k, number in enumerate(sums) if number]


# -- exact signs -----------------------------------------------------------------------------------


def excess(terms: list[Any]) -> Any:
    """The sum of some arrays, with its exact sign; where it is above 0, rounded up.

    No number may be beyond `HUGE`.
    """
    total = sum_of(terms)
    return total + abs(total) * ROUNDING


def excess_of_any(terms: list[Any]) -> Any:
    """The same for any finite numbers; a sum may be inf.

    Sums with a number beyond `HUGE` are those of all numbers times `SHRINK`. Few of these sums have
    one that this would round, below 2**-962; they are added in units.
    """
    if max(map(most, terms)) < HUGE:
        return excess(terms)
    xp = array_module(terms[0])
    scale = xp.where(functools.reduce(xp.maximum, map(abs, terms)) >= HUGE, SHRINK, 1.0)
    scaled = [term * scale for term in terms]
    with np.errstate(over="ignore"):
        total = excess(scaled) / scale
    is_rounded = [part / scale != term for part, term in zip(scaled, terms)]
    at = functools.reduce(xp.logical_or, is_rounded).nonzero()[0]
    if at.size:
        sums = zip(*(array_of(np, term[at]).tolist() for term in terms))
        total[at] = array_of(xp, np.array([at_least(sum(map(units_of, one))) for one in sums]))
    return total


def sum_of(terms: list[Any]) -> Any:
    """The sum of some arrays, with its exact sign, and within a unit in the last place."""
    expansion = terms[:1]  # the least component first
    for term in terms[1:]:
        grown = []
        for component in expansion:
            term, error = two_sum(term, component)
            grown.append(error)
        expansion = [*grown, term]
    total = expansion[0]
    for component in expansion[1:]:
        total = total + component
    return total


def two_sum(one: Any, other: Any) -> tuple[Any, Any]:
    """The rounded sum and what was rounded off."""
    total = one + other
    part = total - one
    return total, (one - (total - part)) + (other - part)


def parts_of(values: Any) -> list[Any]:
    """Float64 arrays whose sum the numbers are, exactly."""
    if values.dtype.kind == "f":
        return [values.astype(np.float64, copy=False)]
    if most(values) <= EXACT:
        return [values.astype(np.float64)]
    high = (values >> HALF).astype(np.float64) * 2.0**HALF
    return [high, (values & (2**HALF - 1)).astype(np.float64)]


def most(values: Any) -> Any:
    """The greatest magnitude, as a Python number; 0 of nothing."""
    return max(abs(values.min().item()), abs(values.max().item())) if values.size else 0


def _rounded_up(parts: list[Any]) -> Any:
    """Floats that are no less than the sum of the parts, and not -inf."""
    total = parts[0]
    xp = array_module(total)
    for part in parts[1:]:
        with np.errstate(over="ignore", invalid="ignore"):
            total, error = two_sum(total, part)
        total = xp.where(error > 0, xp.nextafter(total, math.inf), total)
        total = xp.maximum(total, np.finfo(np.float64).min)
    return total


def as_floats_up(values: Any) -> Any:
    """int64 numbers that are at least 0 as floats that are no less; floats as they are."""
    if values.dtype.kind == "f":
        return values
    xp = array_module(values)
    return xp.where(values > 0, xp.nextafter(values.astype(np.float64), math.inf), 0.0)


class Prices:
    """Prices of rows and columns, held against costs.

    Parameters
    ----------
    rows, cols : lists of arrays
        int64, or float64 and finite; a price is the sum of its numbers in all arrays of the list.
    largest : int or float
        No finite cost has a greater magnitude.
    is_integer : bool
        Whether costs will be int64; float64 if not.

    Attributes
    ----------
    dtype : dtype
        What amounts are rounded up to: int64 if nothing is rounded, or float64.
    """

    def __init__(
        self, rows: list[Any], cols: list[Any], largest: float, *, is_integer: bool
    ) -> None:
        given = [*rows, *cols]
        magnitudes = [largest, *map(most, given)]
        is_whole = is_integer and all(part.dtype.kind != "f" for part in given)
        self.is_exact = is_whole and sum(magnitudes) < 2**63
        self.dtype = np.int64 if self.is_exact else np.float64
        if self.is_exact:
            self._row, self._col = sum(rows[1:], rows[0]), sum(cols[1:], cols[0])
            return
        self._is_rounded = is_integer and largest >= EXACT
        self._excess = excess_of_any if max(magnitudes) >= HUGE else excess
        self._row_parts = [part for array in rows for part in parts_of(array)]
        self._col_parts = [part for array in cols for part in parts_of(array)]
        self._row, self._col = _rounded_up(self._row_parts), _rounded_up(self._col_parts)

    @property
    def above(self) -> tuple[Any, Any]:
        """The prices of the rows and the columns as single numbers, which are no less."""
        return self._row, self._col

    def below(
        self, rows: Any, cols: Any, costs: Any, allowed: Any = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pairs of a tile that cost less than their prices, and by how much at most.

        The arrays broadcast. They are where the prices are, and the results on the host. A pair of
        cost inf costs no less. If `allowed` has marks, only pairs that are marked count.
        """
        if self.is_exact:
            marks = costs - self._row[rows] < self._col[cols]
        else:
            least = costs.astype(np.float64, copy=False)
            if self._is_rounded:
                least = array_module(least).nextafter(least, -math.inf)
            with np.errstate(over="ignore"):
                marks = least - self._row[rows] <= self._col[cols]
        if allowed is not None:
            marks &= allowed
        rows, cols, costs = _picked(marks, rows, cols, costs)
        amounts = self._missing(rows, cols, costs)
        found = (amounts > 0).nonzero()[0]
        rows, cols, amounts = (array_of(np, part[found]) for part in (rows, cols, amounts))
        return rows, cols, amounts

    def _missing(self, rows: Any, cols: Any, costs: Any) -> Any:
        """By how much pairs cost less than their prices, with the exact sign and rounded up."""
        if self.is_exact:
            return self._row[rows] + self._col[cols] - costs
        terms = [-part for part in parts_of(costs)]
        terms += [part[rows] for part in self._row_parts]
        terms += [part[cols] for part in self._col_parts]
        return self._excess(terms)


class Shortfalls:
    """By how much prices must fall, at most, so that no pair costs less than its prices.

    What a pair lacks is moved into its row if that is matched, else into its column.

    Attributes
    ----------
    lowered : list of two arrays on the host
        By how much each row and each column falls.
    worst : tuple, optional
        The most that a pair lacks, and its row and column.
    """

    def __init__(self, shape: tuple[int, int], dtype: Any = np.float64) -> None:
        self.lowered = [np.zeros(length, dtype) for length in shape]
        self.worst: tuple[Any, int, int] | None = None

    def add(
        self, is_matched: np.ndarray, rows: np.ndarray, cols: np.ndarray, amounts: np.ndarray
    ) -> None:
        """Add pairs, as `Prices.below` returns them; `is_matched` marks rows."""
        if not amounts.size:
            return
        into_row = is_matched[rows]
        np.maximum.at(self.lowered[0], rows[into_row], amounts[into_row])
        np.maximum.at(self.lowered[1], cols[~into_row], amounts[~into_row])
        at = amounts.argmax()
        if self.worst is None or amounts[at] > self.worst[0]:
            self.worst = amounts[at], int(rows[at]), int(cols[at])

    def share(self, stand_ins: Iterable[Any]) -> None:
        """Lower each row, and each column, as far as the one that was looked at in its place."""
        for side, stand_in in enumerate(stand_ins):
            self.lowered[side] = self.lowered[side][array_of(np, stand_in)]


def _picked(marks: Any, rows: Any, cols: Any, costs: Any) -> tuple[Any, Any, Any]:
    """Rows, columns and costs of the marked pairs of a tile."""
    at = marks.ravel().nonzero()[0]
    if marks.ndim == 1:
        return rows[at], cols[at], costs[at]
    across = marks.shape[1]
    at = at // across, at % across
    return rows[at[0], 0], cols[0, at[1]], costs[at]
