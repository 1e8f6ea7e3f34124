"""The units and the epsilons of auctions whose prices are 64-bit offers, and the pairs of offers.

offers.cuh defines an offer.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpumatch.numeric.arrays import array_module

__all__ = ["Units", "owners", "unmatched_rows"]

HEADROOM = 12
"""Bits: prices may fall by at least ``2**HEADROOM`` times the spread of the costs."""
SAFE = 2**58
"""The most by which prices may fall if costs are integers, so that sums with them fit."""
_FACTOR = 8  # the factor from one epsilon to the next
_INTEGER_EXPONENT = 3  # the unit for integers is an eighth, because they need no finer prices
_MOST_EXPONENT = 1000  # the largest exponent used: 2.0**1000 is finite


class Units:
    """The units of prices in auctions, and the range of the prices.

    A unit is a power of two, so that a cost minus a price is rounded as little as possible.

    Parameters
    ----------
    spread : float
        The range of the costs, or of most of them.
    nrows : int
        The number of rows that bid.
    finest : int
        Bits: the last epsilon is the spread divided by ``2**finest``.
    """

    def __init__(self, spread: float, nrows: int, *, finest: int, is_integer: bool) -> None:
        self.row_bits = nrows.bit_length()
        bits = min(finest, 64 - self.row_bits - HEADROOM)
        self.most = 2 ** (64 - self.row_bits) - 1
        exponent = bits - math.frexp(spread)[1]
        if is_integer:
            exponent = min(exponent, _INTEGER_EXPONENT)
        has_prices = spread > 0 and exponent <= _MOST_EXPONENT
        self.of_one = math.ldexp(1.0, exponent) if has_prices else 0.0
        self.spread = max(1, round(spread * self.of_one))
        if is_integer and has_prices:
            self.most = min(self.most, int(SAFE * self.of_one))

    def epsilons(self) -> list[int]:
        """Return the epsilons in units, in decreasing order. The last is one unit."""
        epsilons = [1]
        while epsilons[-1] * _FACTOR < self.spread / 2:
            epsilons.append(epsilons[-1] * _FACTOR)
        return epsilons[::-1]


def owners(offers: Any, row_bits: int) -> Any:
    """Return the row of each column; -1 means unmatched."""
    return (offers & np.uint64(2**row_bits - 1)).astype(np.int32) - 1


def unmatched_rows(list_unmatched: Any, grid: tuple[Any, Any], held: Any) -> Any:
    """Return the unmatched rows in any order, given the column of each row or -1.

    `list_unmatched` is the kernel of offers.cuh. It is one kernel, where CuPy would compile ten.
    """
    xp = array_module(held)
    rows, count = xp.empty(held.size, np.int32), xp.zeros(1, np.int32)
    list_unmatched(
        *grid,
        (
            *(held, np.int32(held.size)),  # IN
            *(rows, count),  # OUT
        ),
    )
    return rows[: count.item()]
