"""All pairs of points that cost no more than a bound of their row, by a tree of boxes."""

from __future__ import annotations

import os

import numpy as np

from gpumatch.contracts import Points
from gpumatch.cpu.assignment.points.tree import Tree
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["pairs_within"]

FIRST, FACTOR = 16, 4
"""Columns that are searched for a row first, and the factor to the next count if it has as many."""


def pairs_within(points: Points, bound: np.ndarray, most: int) -> tuple[np.ndarray, ...]:
    """Rows, columns and costs of the pairs up to the bounds of their rows, in their order.

    A row has at most so many pairs: the cheapest.
    """
    tree, ncols = Tree(points), points.cols.shape[0]
    above = np.nextafter(bound, np.inf)
    rows, count = np.arange(points.rows.shape[0], dtype=np.int32), min(FIRST, most, ncols)
    parts = []
    with Workers(os.cpu_count() or 1, points.rows.shape[0] * 64) as workers:
        while rows.size and count:
            cols, values = tree.least(rows, count, above[rows], workers)
            is_done = (cols[:, -1] < 0) | (count == min(most, ncols))
            own, place = np.nonzero((cols >= 0) & is_done[:, None])
            parts.append((rows[own], cols[own, place], values[own, place]))
            rows, count = rows[~is_done], min(FACTOR * count, most, ncols)
    if not parts:
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0)
    of_rows, of_cols, costs = (np.concatenate(part) for part in zip(*parts))
    order = np.lexsort((of_cols, of_rows))
    return of_rows[order], of_cols[order], costs[order]
