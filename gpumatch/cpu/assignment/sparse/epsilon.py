"""The epsilon of the auction's phases: where it begins, how it falls, and rises after a war.

If the costs have few values, all their differences are small multiples of one number, the quantum.
An epsilon that is far below it changes nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpumatch.cpu.assignment.sparse.paths import SparsePaths
from gpumatch.cpu.assignment.sparse.tuning import Tuning

__all__ = ["Epsilon", "quantum_of", "round_down", "typical_excess"]


def typical_excess(paths: SparsePaths, tuning: Tuning) -> float:
    """Return what a row typically saves by its cheapest column, as `Tuning.gentle` says."""
    nrows = paths.row_to_col.size
    rows, excess = paths.excess(np.arange(0, nrows, nrows // tuning.sample + 1))
    dearer = excess[excess > 0]
    if not dearer.size:
        return math.inf
    if not paths.all_match:
        return float(np.quantile(dearer, 1 / 4))
    second = min(2 * rows / dearer.size, 1 / 2)
    return float(np.quantile(dearer, second)) * (1 - paths.matched / nrows)


class Epsilon:
    """The epsilon of each phase, and how much the phase may read.

    Parameters
    ----------
    first, coarsest : float
        Where epsilon begins, and above what it never is.
    coarser : int
        From the epsilon of a price war to the next.
    tuning : Tuning
        How fast it falls and rises, and what phases may read.

    Attributes
    ----------
    now : float
        The epsilon of the next phase.
    patience : int
        How many times it may read all entries before it is a price war.
    """

    def __init__(self, first: float, coarsest: float, coarser: int, tuning: Tuning) -> None:
        self.now = self._first = first
        self._coarsest, self._coarser, self._tuning = coarsest, coarser, tuning
        self.patience = tuning.longest
        self._war = 0.0  # the coarsest epsilon of a war
        self._top = first  # the coarsest epsilon of all

    def can_fall(self, finest: float) -> bool:
        """True if an epsilon that is not below this one would be finer, and matters."""
        return self.now > max(finest, self._tuning.least * self._first)

    def fall(self, finest: float, is_calm: bool) -> bool:
        """Take a finer epsilon; False if there is none that matters."""
        if not self.can_fall(finest):
            return False
        finest = max(finest, self._tuning.least * self._first)
        factor = self._tuning.factor
        self.now = max(self.now / (factor**3 if is_calm else factor), finest)
        return True

    def rise(self) -> bool:
        """Take a coarser epsilon after a war; False if wars have read too much."""
        if self.now <= self._war:
            self.patience *= 2
        self._war = max(self._war, self.now)
        is_over = self.patience > self._tuning.most
        self.now = self._coarsest if is_over else min(self.now * self._coarser, self._coarsest)
        self._top = max(self._top, self.now)
        return not is_over

    def begin_again(self) -> None:
        """Take the coarsest epsilon that has been."""
        self.now = self._top

    @property
    def can_rise(self) -> bool:
        """True if a coarser epsilon may follow a war."""
        return self.now < self._coarsest and self.patience <= self._tuning.most


# -- costs of few values ---------------------------------------------------------------------------


def quantum_of(costs: np.ndarray, tuning: Tuning) -> Any:
    """Return the number of which all differences of costs are small multiples; None if none is."""
    if not costs.size:
        return None
    values = np.unique(costs[:: costs.size // tuning.sample | 1])  # odd: no even pattern
    if not 1 < values.size <= tuning.few_values + 1:
        return None
    least, quantum = costs.min(), np.diff(values).min()
    steps = np.rint((costs - least) / quantum)
    is_few = steps.max() <= tuning.few_values
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
