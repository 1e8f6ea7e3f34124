"""How fine an auction ends, by which epsilons it gets there, and how far its prices may spread.

The auctions of CPU and GPU both use it.

The module docstring of `gpumatch.cpu.assignment.auction` says why there is a last epsilon.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gpumatch.contracts import Costs

__all__ = ["Precision", "close_gaps", "narrowed"]

FACTOR = 8.0
"""From one epsilon to the next; a power of 2, so that multiples stay multiples.

Bertsekas (*Auction algorithms for network flow problems*, 1992) advises 4 to 10.
"""
FINENESS = 1024
"""For costs that are not integers, the gap that is left is their spread divided by this.

Finer epsilons need more rounds, and exact paths close what is left.
"""
WARM_STEPS = 2
"""Epsilons above the last one if there are prices to begin from: they need little repair."""


class Precision(NamedTuple):
    """How fine the auction of a problem ends.

    Attributes
    ----------
    epsilon : float
        The last one.
    spread : float
        The largest difference of two costs (and the limit).
    farthest : float
        A bound of all prices and duals, with a margin.
    is_exact : bool
        Whether nothing is rounded, so that n · epsilon < 1 makes integers optimal.
    is_workable : bool
        Whether all prices that may arise can be told apart by epsilon, and have to be.
    """

    epsilon: float
    spread: float
    farthest: float
    is_exact: bool
    is_workable: bool

    @classmethod
    def of(cls, costs: Costs, limit: float | None, bits: int = 53) -> Precision:
        """The schedule of a problem, if numbers of this many bits are exact."""
        nrows = max(costs.shape[0], 1)
        base = 0 if limit is None else abs(limit)
        is_narrow = costs.is_complete and limit is None
        largest = float(max(costs.largest, base))
        spread = float(costs.high - costs.low) if is_narrow else 2 * largest
        # From a row to a free column it is one step if all pairs are allowed, else up to n.
        steps = 1 if costs.is_complete or limit is not None else nrows
        farthest = 16 * steps * (largest + 1)
        scale = 2.0 ** nrows.bit_length()
        if costs.is_integer and float(base).is_integer() and farthest * scale < 2.0**bits:
            return cls(1 / scale, spread, farthest, True, True)
        epsilon = max(spread / (FINENESS * nrows), 2 * math.ulp(largest))
        is_workable = largest > 0 and 64 * steps * spread * 2.0**-52 < epsilon
        return cls(epsilon, spread, farthest, False, is_workable)

    def coarsened(self, steps: int) -> Precision:
        """The same, with an epsilon of ``spread / steps`` at least."""
        epsilon = self.spread / steps
        if epsilon <= self.epsilon:
            return self
        return self._replace(epsilon=epsilon, is_exact=False)

    def schedule(self, is_warm: bool) -> list[float]:
        """All epsilons, falling."""
        steps = WARM_STEPS if is_warm else 64
        epsilons = [self.epsilon]
        while len(epsilons) <= steps and epsilons[-1] * FACTOR < self.spread / 2:
            epsilons.append(epsilons[-1] * FACTOR)
        return epsilons[::-1]


def close_gaps(price: Any, most: float) -> Any:
    """Integer prices of an optimal assignment, moved up so that no two neighbours are far apart.

    A row's column costs at most ``most`` more than any other that the row may take, so its price is
    at most that much lower. Across a wider gap no row prefers the dearer columns, and no row would
    prefer the cheaper ones if the gap were narrower. Auctions leave such gaps, because each epsilon
    adds to them.

    Parameters
    ----------
    price : int64 array
        On host or device; at most 0, and 0 for columns left over.
    most : int
        Twice the largest cost or limit.
    """
    order = (-price).argsort()
    steps = -price[order]
    steps[1:] = steps[1:] - steps[:-1]
    closed = price.copy()
    closed[order] = -steps.clip(0, most).cumsum()
    return closed


def narrowed(price: Any, most: float) -> Any:
    """The same of floats: those below a wide gap move up together, all others stay as they are.

    Parameters
    ----------
    price : float64 array
        On the host.
    most : float
        What the column of a row costs it more than any other, at most.
    """
    order = (-price).argsort(kind="stable")
    falls = price[order[:-1]] - price[order[1:]]
    rise = (falls - most).clip(0).cumsum()
    moved = price.copy()
    moved[order[1:]] += rise
    return moved
