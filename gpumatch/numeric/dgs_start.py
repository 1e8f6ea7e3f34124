"""The random draws at the start of Deep Greedy Switching, for all its forms on host and device.

A start depends only on the seed, the costs, and the unmatched rows and columns. So all forms begin
from one assignment, and their results can be compared.
"""

from __future__ import annotations

import numpy as np

__all__ = ["any_pairs", "turns"]


def any_pairs(
    row_to_col: np.ndarray, col_to_row: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The unmatched rows, with a random unmatched column for each: all different.

    The caller must leave a row unmatched if its pair is forbidden.
    """
    rows, cols = (np.flatnonzero(mates < 0) for mates in (row_to_col, col_to_row))
    return rows, np.random.default_rng(seed).permutation(cols)[: rows.size]


def turns(row_to_col: np.ndarray, seed: int) -> np.ndarray:
    """The unmatched rows in random order, in which each takes its cheapest unmatched column."""
    return np.random.default_rng(seed).permutation(np.flatnonzero(row_to_col < 0))
