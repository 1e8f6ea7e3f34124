"""How the tests divide rows among ranks."""

from __future__ import annotations

import numpy as np

FEW_ROWS = 4  # of the smallest costs


def starts_of(count: int, size: int, seed: int = 0) -> np.ndarray:
    """Where each rank's rows begin, and where they end: at random, so that some have none."""
    inner = np.sort(np.random.default_rng(seed).integers(0, count + 1, size - 1))
    return np.array([0, *inner, count])
