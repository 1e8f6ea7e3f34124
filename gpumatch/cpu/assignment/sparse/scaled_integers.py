"""Integer costs in steps of which a unit has several, so that bids may differ by less than 1."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpumatch.running.kept_memory import kept_empty

__all__ = ["BLOCK", "FINE", "Units"]

FINE = 2**12
"""The largest factor by which integers are multiplied."""
SAMPLE = 2**10
"""Costs whose common divisor is computed first, because it mostly is 1."""
BLOCK = 2**16
"""Costs that are divided together, in a cache."""


class Units(NamedTuple):
    """Integer costs as the engine counts them: from `origin` on, in units of `scale` steps each.

    `is_crude` is True if that is impossible, because the costs are so large that steps overflow.
    """

    origin: int = 0
    unit: int = 1
    scale: int = 1
    is_crude: bool = False

    @classmethod
    def of(cls, weights: np.ndarray, extent: tuple[int, int], limit: Any, nrows: int) -> Units:
        """Find the largest common unit, and as many steps as there is room for."""
        low, high = map(int, extent)
        unit = 0 if limit is None else int(limit) - low
        unit = math.gcd(unit, int(np.gcd.reduce(weights[:SAMPLE] - low, initial=0)))
        unit = max(int(_common_divisor(weights, low, unit)), 1)
        room = 2**60 // (8 * (nrows + 1) * max((high - low) // unit, 1))
        if room == 0:
            return cls(is_crude=True)
        return cls(low, unit, min(FINE, 2 ** (room.bit_length() - 1)))

    def scaled(self, weights: Any, price: Any, limit: Any) -> tuple[Any, Any, Any]:
        """Return costs, prices and the limit in these units."""
        if self == Units() or self.is_crude:
            return weights, price, limit
        costs = kept_empty(weights.shape, weights.dtype)
        for first in range(0, weights.size, BLOCK):
            part = costs[first : first + BLOCK]
            np.subtract(weights[first : first + BLOCK], self.origin, out=part)
            if self.unit != 1:
                part //= self.unit
            part *= self.scale
        if limit is not None:
            limit = (limit - self.origin) // self.unit * self.scale
        return costs, price // self.unit * self.scale, limit

    def round_prices(self, price: np.ndarray, col_to_row: np.ndarray) -> None:
        """Round prices down to units of the costs, from where they are farthest apart.

        A pair within epsilon of being tight is tight then, unless its column's fraction of a unit
        is at one end of the circle of fractions, and that of a column as cheap at the other.
        """
        matched = price[col_to_row >= 0]
        if self.scale == 1 or not matched.size:
            return
        fractions = np.flatnonzero(np.bincount(matched % self.scale, minlength=self.scale))
        gaps = np.diff(fractions, append=fractions[0] + self.scale)
        first = fractions[(gaps.argmax() + 1) % fractions.size]
        rise = (self.scale - first) % self.scale
        price[:] = np.minimum((price + rise) // self.scale * self.scale, 0)

    def restore(self, row_dual: np.ndarray, col_dual: np.ndarray) -> None:
        """Turn duals into those of the costs, rounded to whole units."""
        if self == Units() or self.is_crude:
            return
        col_dual[:] = col_dual // self.scale * self.unit
        row_dual[:] = self.origin - (-row_dual // self.scale) * self.unit


def _common_divisor(weights: np.ndarray, low: int, unit: int) -> int:
    """Return the greatest common divisor of ``unit`` and of all weights less ``low``."""
    for first in range(0, weights.size, BLOCK):
        if unit == 1:
            break
        rest = weights[first : first + BLOCK] - low
        if unit:
            rest -= rest // unit * unit  # NumPy divides by one number faster than it takes the rest
        unit = math.gcd(unit, int(np.gcd.reduce(rest[rest != 0], initial=0)))
    return unit
