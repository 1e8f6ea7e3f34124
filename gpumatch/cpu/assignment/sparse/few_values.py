"""Costs of few values: all their differences are small multiples of one number, the quantum."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.cpu.assignment.sparse.tuning import Tuning

__all__ = ["quantum_of", "round_down"]


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
