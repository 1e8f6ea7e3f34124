"""Frames of a tracker for tests, and what SciPy says of them with a cost of unmatched rows."""

from __future__ import annotations

import numpy as np
import scipy.optimize

__all__ = ["best_total", "boxes", "check_pairs", "frame", "ious"]

KINDS = ("uniform", "ties", "points", "ious", "forbidden")


def boxes(rng: np.random.Generator, count: int, field: float = 400.0) -> np.ndarray:
    """Boxes as corners, of which some overlap."""
    corner, size = rng.random((count, 2)) * field, 30 + 60 * rng.random((count, 2))
    return np.concatenate([corner, corner + size], axis=1)


def ious(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Intersection over union of each pair of boxes."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=2)
    area, other_area = ((part[:, 2:] - part[:, :2]).prod(axis=1) for part in (one, other))
    return shared / (area[:, None] + other_area - shared)


def frame(rng: np.random.Generator, kind: str, rows: int, cols: int) -> np.ndarray:
    """Costs of one of KINDS, from 0 to about 1."""
    if kind == "ties":
        return rng.integers(0, 6, (rows, cols)) / 4
    if kind == "points":
        one, other = rng.random((rows, 2)), rng.random((cols, 2))
        return ((one[:, None] - other) ** 2).sum(axis=2)
    if kind == "ious":
        return 1 - ious(boxes(rng, rows), boxes(rng, cols))
    costs = rng.random((rows, cols))
    if kind == "forbidden":
        costs[rng.random((rows, cols)) < 0.4] = np.inf
    return costs


def best_total(costs: np.ndarray, limits: np.ndarray) -> float:
    """What the best pairs cost above the limits of their rows: 0 or less."""
    gains = np.minimum(costs.astype(float) - limits[:, None], 0)
    return float(gains[scipy.optimize.linear_sum_assignment(gains)].sum())


def check_pairs(pairs, costs: np.ndarray, cost_limit, maximize: bool = False) -> None:
    """Compare pairs with SciPy's total, and look at what they leave out."""
    rows, cols = pairs
    sign = -1 if maximize else 1
    costs = sign * costs.astype(float)
    limits = np.broadcast_to(sign * np.asarray(cost_limit, float), len(costs))
    assert rows.dtype == cols.dtype == np.int64
    assert (np.diff(rows) > 0).all()
    assert len(set(cols.tolist())) == len(cols) == len(rows)
    above = costs[rows, cols] - limits[rows]
    assert (above <= 0).all()
    assert abs(above.sum() - best_total(costs, limits)) <= 1e-12 * (1 + len(rows)) * max(
        1, abs(limits).max(initial=0)
    )
    rest = (np.setdiff1d(np.arange(side), part) for side, part in zip(costs.shape, pairs))
    unmatched_rows, unmatched_cols = rest
    left = costs[np.ix_(unmatched_rows, unmatched_cols)]
    assert (left > limits[unmatched_rows, None]).all()
