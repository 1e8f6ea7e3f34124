"""Costs that are multiples of one number, and prices that are rounded to multiples of it.

`Units` counts integers in steps, because an auction needs bids that differ by less than the costs
do. The cost c is ``(c - origin) // divisor * scale`` steps, and so is the limit. A price of a
column is a difference of costs, so it is ``price // divisor * scale`` steps: the duals of rows
alone contain the origin.

If costs have few values, be they integers or floats, all their differences are small multiples of
one number, the *quantum*. An epsilon that is far below it changes nothing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpumatch.running.kept_memory import kept_empty

__all__ = ["BLOCK", "FINE", "Units", "quantum_of", "round_down"]

FINE = 2**12
"""The largest factor by which integers are multiplied, unless there are as many rows.

It is greater than their number then: the pairs of an auction whose epsilon is a step are tight
after prices are rounded.
"""
SAMPLE = 2**10
"""Costs whose common divisor is computed first, because it mostly is 1."""
BLOCK = 2**16
"""Costs that are divided together, in a cache."""


class Units(NamedTuple):
    """How the engine counts integer costs.

    Attributes
    ----------
    origin : int
        The least cost, or the limit if that is less.
    divisor : int
        The greatest common divisor of all costs and the limit, less the origin.
    scale : int
        The steps of one divisor, a power of two.
    is_crude : bool
        True if the costs are so large that steps would overflow. Then a step is a cost of 1.
    """

    origin: int = 0
    divisor: int = 1
    scale: int = 1
    is_crude: bool = False

    @classmethod
    def of(cls, weights: np.ndarray, extent: tuple[int, int], limit: Any, nrows: int) -> Units:
        """Find the greatest divisor, and as many steps as there is room for.

        The extent is that of the costs and the limit together.
        """
        low, high = map(int, extent)
        divisor = 0 if limit is None else int(limit) - low
        divisor = math.gcd(divisor, int(np.gcd.reduce(weights[:SAMPLE] - low, initial=0)))
        divisor = max(int(_common_divisor(weights, low, divisor)), 1)
        room = 2**60 // (8 * (nrows + 1) * max((high - low) // divisor, 1))
        if room == 0:
            return cls(is_crude=True)
        most = max(FINE, 2 ** nrows.bit_length())
        return cls(low, divisor, min(most, 2 ** (room.bit_length() - 1)))

    @property
    def are_costs(self) -> bool:
        """True if a step is a cost of 1."""
        return self == Units() or self.is_crude

    def steps(self, cost: Any) -> Any:
        """Return a cost, or an array of costs, in steps."""
        return cost if self.are_costs else (cost - self.origin) // self.divisor * self.scale

    def scaled(self, weights: Any, price: Any, limit: Any) -> tuple[Any, Any, Any]:
        """Return costs, prices of columns and the limit in steps."""
        if self.are_costs:
            return weights, price, limit
        costs = kept_empty(weights.shape, weights.dtype)
        for first in range(0, weights.size, BLOCK):
            part = costs[first : first + BLOCK]
            np.subtract(weights[first : first + BLOCK], self.origin, out=part)
            if self.divisor != 1:
                part //= self.divisor
            part *= self.scale
        limit = None if limit is None else self.steps(limit)
        return costs, price // self.divisor * self.scale, limit

    def round_prices(self, price: np.ndarray, col_to_row: np.ndarray) -> None:
        """Round prices down to multiples of `scale`, from where they are farthest apart.

        A pair within epsilon of being tight is tight then, unless its column's remainder
        is at one end of the circle of remainders, and that of a column as cheap at the other. If
        there are more steps than matched columns, the two ends are two steps apart at least.
        """
        matched = price[col_to_row >= 0]
        if self.scale == 1 or not matched.size:
            return
        remainders = np.flatnonzero(np.bincount(matched % self.scale, minlength=self.scale))
        gaps = np.diff(remainders, append=remainders[0] + self.scale)
        first = remainders[(gaps.argmax() + 1) % remainders.size]
        rise = (self.scale - first) % self.scale
        price[:] = (price + rise) // self.scale * self.scale

    def restore(self, row_dual: np.ndarray, col_dual: np.ndarray) -> None:
        """Turn duals in steps into those of the costs: columns round down, and rows round up.

        Costs are whole multiples of `scale`, so no sum of two duals rises above its cost.
        """
        if self.are_costs:
            return
        col_dual[:] = col_dual // self.scale * self.divisor
        row_dual[:] = self.origin - (-row_dual // self.scale) * self.divisor  # rounds up


def _common_divisor(weights: np.ndarray, low: int, divisor: int) -> int:
    """Return the greatest common divisor of ``divisor`` and of all weights less ``low``."""
    for first in range(0, weights.size, BLOCK):
        if divisor == 1:
            break
        rest = weights[first : first + BLOCK] - low
        if divisor:
            rest -= (
                rest // divisor * divisor
            )  # NumPy divides by one number faster than it takes the rest
        divisor = math.gcd(divisor, int(np.gcd.reduce(rest[rest != 0], initial=0)))
    return divisor


# -- costs of few values ---------------------------------------------------------------------------


def quantum_of(costs: np.ndarray, few: int, sample: int) -> Any:
    """Return the number of which all differences of costs are small multiples; None if none is.

    The greatest multiple is `few` at most. The number is guessed from a sample of about this size.
    """
    if not costs.size:
        return None
    values = np.unique(costs[:: costs.size // sample | 1])  # odd: no even pattern
    if not 1 < values.size <= few + 1:
        return None
    least, quantum = costs.min(), np.diff(values).min()
    steps = np.rint((costs - least) / quantum)
    is_few = steps.max() <= few
    return quantum if is_few and bool((least + steps * quantum == costs).all()) else None


def round_down(price: np.ndarray, quantum: Any) -> None:
    """Round prices down to multiples of the quantum, from where they are farthest apart.

    If two reduced costs of a row differ by less than the gap there, the lesser one does not become
    the greater one. So all pairs are tight after an auction whose epsilon is less than the gap, and
    nearly all after other auctions.
    """
    remainders = np.sort(price % quantum)
    gaps = np.diff(remainders, append=remainders[0] + quantum)
    widest = gaps.argmax()
    half = gaps[widest] / 2 if price.dtype.kind == "f" else (gaps[widest] + 1) // 2
    price -= remainders[widest] + half
    price[:] = price // quantum * quantum
