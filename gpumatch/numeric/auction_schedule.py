"""The epsilons of an auction, and bounds of its prices, for CPU and GPU.

The module docstring of `gpumatch.cpu.assignment.auction` says why there is a last epsilon.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

from gpumatch.contracts import Costs

__all__ = ["FallingEpsilon", "Pace", "Precision", "close_gaps", "narrowed"]

FACTOR = 8.0
"""The factor from one epsilon to the next: a power of 2, so that multiples stay multiples.

Bertsekas (*Auction algorithms for network flow problems*, 1992) advises 4 to 10.
"""
FINENESS = 1024
"""For costs that are not integers, an auction's gap is at most their spread divided by this.

Finer epsilons need more rounds, and exact paths close the gap.
"""
WARM_STEPS = 2
"""The number of epsilons above the last one if the auction begins from given prices.

Such prices need little repair.
"""


class Precision(NamedTuple):
    """The last epsilon of an auction, and the range of its numbers.

    Attributes
    ----------
    epsilon : float
        The last epsilon.
    spread : float
        The largest difference of two costs (and the limit).
    farthest : float
        A bound of all prices and duals, with a margin.
    is_exact : bool
        True if nothing is rounded. Then n · epsilon < 1 makes the result for integers optimal.
    is_workable : bool
        True if costs are not all 0, and floats hold steps of epsilon at every possible price.
    """

    epsilon: float
    spread: float
    farthest: float
    is_exact: bool
    is_workable: bool

    @classmethod
    def of(cls, costs: Costs, limit: float | None, bits: int = 53) -> Precision:
        """The precision for a problem, in numbers that are exact up to this many bits."""
        nrows = max(costs.shape[0], 1)
        base = 0 if limit is None else abs(limit)
        is_narrow = costs.is_complete and limit is None
        largest = float(max(costs.largest, base))
        spread = float(costs.high - costs.low) if is_narrow else 2 * largest
        # A path from a row to an unmatched column has one step if all pairs are allowed, else n.
        steps = 1 if costs.is_complete or limit is not None else nrows
        farthest = 16 * steps * (largest + 1)
        scale = 2.0 ** nrows.bit_length()
        if costs.is_integer and float(base).is_integer() and farthest * scale < 2.0**bits:
            return cls(1 / scale, spread, farthest, True, True)
        epsilon = max(spread / (FINENESS * nrows), 2 * math.ulp(largest))
        is_workable = largest > 0 and 64 * steps * spread * 2.0**-52 < epsilon
        return cls(epsilon, spread, farthest, False, is_workable)

    def coarsened(self, steps: int) -> Precision:
        """This precision, with an epsilon of at least ``spread / steps``."""
        epsilon = self.spread / steps
        if epsilon <= self.epsilon:
            return self
        return self._replace(epsilon=epsilon, is_exact=False)

    def schedule(self, is_warm: bool) -> list[float]:
        """All epsilons, in decreasing order."""
        steps = WARM_STEPS if is_warm else 64
        epsilons = [self.epsilon]
        while len(epsilons) <= steps and epsilons[-1] * FACTOR < self.spread / 2:
            epsilons.append(epsilons[-1] * FACTOR)
        return epsilons[::-1]


class Pace(Protocol):
    """What `FallingEpsilon` reads of an engine's tuning."""

    @property
    def factor(self) -> int:
        """From one epsilon to the next."""

    @property
    def factor_after_war(self) -> int:
        """The same, once a price war has been."""

    @property
    def least(self) -> float:
        """The least epsilon, as a share of the first one."""

    @property
    def longest(self) -> int:
        """How many times a phase may read all entries before it is a price war."""

    @property
    def most(self) -> int:
        """The `longest` once wars have recurred at one epsilon: no phase has more patience."""


class FallingEpsilon:
    """The epsilon of each phase of an auction: it falls, and rises after a price war.

    A phase becomes a price war if it reads all entries too many times.

    Parameters
    ----------
    first, coarsest : float
        Where epsilon begins, and above what it never is.
    coarser : int
        From the epsilon of a price war to the next, at least.
    pace : Pace
        How fast it falls, and what phases may read.

    Attributes
    ----------
    now : float
        The epsilon of the next phase.
    patience : int
        How many times it may read all entries before it is a price war.
    """

    def __init__(self, first: float, coarsest: float, coarser: int, pace: Pace) -> None:
        self.now = self._first = first
        self._coarsest, self._coarser, self._pace = coarsest, coarser, pace
        self.patience = pace.longest
        self._war = 0.0  # the coarsest epsilon of a war
        self._top = first  # the coarsest epsilon of all
        self._factor = pace.factor

    def can_fall(self, finest: float) -> bool:
        """True if an epsilon that is not below this one would be finer, and matters."""
        return self.now > max(finest, self._pace.least * self._first)

    def fall(self, finest: float, is_calm: bool) -> bool:
        """Take a finer epsilon; False if there is none that matters."""
        if not self.can_fall(finest):
            return False
        finest = max(finest, self._pace.least * self._first)
        factor = self._factor
        self.now = max(self.now / (factor**3 if is_calm else factor), finest)
        return True

    def rise(self) -> bool:
        """Take a coarser epsilon after a war; False if wars have read too much.

        It is halfway to the coarsest one in orders of magnitude, so that few wars follow even if
        costs differ by many.
        """
        if self.now <= self._war:
            self.patience *= 2
        self._war = max(self._war, self.now)
        is_over = self.patience > self._pace.most
        self._factor = self._pace.factor_after_war
        higher = min(max(self.now * self._coarser, self._halfway()), self._coarsest)
        self.now = self._coarsest if is_over else higher
        self._top = max(self._top, self.now)
        return not is_over

    def _halfway(self) -> float:
        """Return the geometric mean of epsilon and the coarsest one."""
        return math.sqrt(self.now) * math.sqrt(self._coarsest)

    def begin_again(self) -> None:
        """Take the coarsest epsilon that has been."""
        self.now = self._top

    @property
    def can_rise(self) -> bool:
        """True if a coarser epsilon may follow a war."""
        return self.now < self._coarsest and self.patience <= self._pace.most


def close_gaps(price: Any, most: float) -> Any:
    """Integer prices of an optimal assignment, raised so that no two neighbours are far apart.

    A row's column costs at most ``most`` more than any other column that the row may take. So its
    price is at most ``most`` lower. Across a wider gap no row prefers the columns of higher price,
    and none would prefer those of lower price if the gap were narrower. Auctions make such gaps,
    because each epsilon adds to them.

    Parameters
    ----------
    price : int64 array
        The prices, on host or device: at most 0, and 0 for unmatched columns.
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
    """Float prices of an optimal assignment, with gaps between neighbours of at most `most`.

    The prices below a wider gap are raised together. All others stay unchanged.

    Parameters
    ----------
    price : float64 array
        The prices, on the host.
    most : float
        A bound of how much more a row's column costs than any other column that the row may take.
    """
    order = (-price).argsort(kind="stable")
    falls = price[order[:-1]] - price[order[1:]]
    rise = (falls - most).clip(0).cumsum()
    moved = price.copy()
    moved[order[1:]] += rise
    return moved
