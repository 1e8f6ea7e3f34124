"""The draws that begin Deep Greedy Switching: the same for every form of it, on host and device.

A start depends on the seed, on the costs and on the rows and columns that are free, and on nothing
else. So the forms begin from one assignment, and what they make of it can be compared.
"""

from __future__ import annotations

import numpy as np

__all__ = ["any_pairs", "turns"]


def any_pairs(
    row_to_col: np.ndarray, col_to_row: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The free rows, and for each of them a free column at random: no two get the same.

    A row whose column is forbidden to it stays free.
    """
    rows, cols = (np.flatnonzero(mates < 0) for mates in (row_to_col, col_to_row))
    return rows, np.random.default_rng(seed).permutation(cols)[: rows.size]


def turns(row_to_col: np.ndarray, seed: int) -> np.ndarray:
    """The free rows in the order in which each takes the cheapest column that is left."""
    return np.random.default_rng(seed).permutation(np.flatnonzero(row_to_col < 0))
