"""The distances of points in ranges of rows, on the host.

The kernel does the same steps as `gpumatch.costs.points`, in the same order, so it gives the same
numbers. It takes the columns in blocks whose sums stay in a cache.

Squares of small or large differences lose digits or overflow where their roots need not. So a root
outside (LEAST_ROOT, LARGEST_ROOT) is computed again from differences that are multiplied by a power
of 2, one for small roots and one for large ones. It stays on its side of that number, so the root
of larger differences is never smaller.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import Points
from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = [
    "LARGEST_ROOT",
    "LEAST_ROOT",
    "METRICS",
    "SCALE",
    "distances_at",
    "fill_distances",
    "offsets_of",
]

METRICS = {"sqeuclidean": 0, "euclidean": 1, "cityblock": 2, "chebyshev": 3}
BLOCK = 2**10  # columns at a time
LEAST_ROOT, LARGEST_ROOT = 2.0**-450, 2.0**500
SCALE = 2.0**600  # of differences under small roots; those under large ones are divided by it


def fill_distances(points: Points, first: int, last: int) -> np.ndarray:
    """Return the costs of all pairs of the rows from ``first`` to ``last``."""
    ncols = points.cols.shape[0]
    values = np.zeros((last - first, ncols))
    fill(
        points.rows[first:last], np.ascontiguousarray(points.cols.T),  # IN
        METRICS[points.metric], 0.5 if points.is_half else 1.0,  # IN
        values,  # IN, OUT
    )  # fmt: skip
    if points.row_offset is not None:
        for row, offset in enumerate(points.row_offset[first:last]):
            values[row] += offset + points.col_offset
    if points.sign < 0:
        np.negative(values, out=values)
    return values


def distances_at(points: Points, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """Return the costs of pairs."""
    values = np.empty(rows.size)
    row_offset, col_offset = offsets_of(points)
    fill_pairs(
        points.rows, points.cols, rows, cols, row_offset, col_offset,  # IN
        METRICS[points.metric], 0.5 if points.is_half else 1.0, points.sign,  # IN
        values,  # OUT
    )  # fmt: skip
    return values


def offsets_of(points: Points) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of the rows and the columns: empty arrays without."""
    if points.row_offset is None:
        return np.empty(0), np.empty(0)
    return points.row_offset, points.col_offset


@kernel
def fill(X, across, metric, scale, values):
    """Add the steps of all coordinates to ``values``; ``across`` has a row for each coordinate."""
    ncols = across.shape[1]
    Y = across.T
    for begin in range(0, ncols, BLOCK):
        end = min(begin + BLOCK, ncols)
        for row in range(X.shape[0]):
            for k in range(X.shape[1]):
                x = X[row, k]
                if metric <= 1:
                    for col in range(begin, end):
                        step = x - across[k, col]
                        values[row, col] += step * step
                elif metric == 2:
                    for col in range(begin, end):
                        values[row, col] += abs(x - across[k, col])
                else:
                    for col in range(begin, end):
                        step = abs(x - across[k, col])
                        values[row, col] = step if step > values[row, col] else values[row, col]
            if metric == 1:
                strange = 0
                for col in range(begin, end):
                    root = np.sqrt(values[row, col])
                    values[row, col] = root
                    strange += (root <= LEAST_ROOT) + (root >= LARGEST_ROOT)
                if strange:
                    for col in range(begin, end):
                        root = values[row, col]
                        if not LEAST_ROOT < root < LARGEST_ROOT:
                            values[row, col] = scaled_root(X, row, Y, col, root)
            if scale != 1.0:
                for col in range(begin, end):
                    values[row, col] *= scale


@kernel
def scaled_root(X, row, Y, place, root):
    """The distance of two points, of which `root` is what squares that are not scaled give."""
    is_small = root <= LEAST_ROOT
    scale = SCALE if is_small else 1 / SCALE
    total = 0.0
    for k in range(X.shape[1]):
        step = (X[row, k] - Y[place, k]) * scale
        total += step * step
    return near_root(np.sqrt(total) / scale, is_small)


@kernel
def near_root(root, is_small):
    """The root, but not beyond what separates it from roots of squares that are not scaled."""
    return min(root, LEAST_ROOT) if is_small else max(root, LARGEST_ROOT)


@kernel
def cost_of(X, row, Y, place, metric, scale, sign, has_offsets, offset, other):
    """Return the cost of a pair."""
    total = 0.0
    if metric <= 1:
        for k in range(X.shape[1]):
            step = X[row, k] - Y[place, k]
            total += step * step
        if metric == 1:
            total = np.sqrt(total)
            if not LEAST_ROOT < total < LARGEST_ROOT:
                total = scaled_root(X, row, Y, place, total)
    elif metric == 2:
        for k in range(X.shape[1]):
            total += abs(X[row, k] - Y[place, k])
    else:
        for k in range(X.shape[1]):
            total = max(total, abs(X[row, k] - Y[place, k]))
    total *= scale
    if has_offsets:
        total += offset + other
    return sign * total


@kernel
def fill_pairs(X, Y, rows, cols, row_offset, col_offset, metric, scale, sign, values):
    """Write the costs of some pairs."""
    has_offsets = row_offset.size > 0
    for number in range(rows.size):
        row, col = rows[number], cols[number]
        offset = row_offset[row] if has_offsets else 0.0
        other = col_offset[col] if has_offsets else 0.0
        values[number] = cost_of(
            X, row, Y, col, metric, scale, sign, has_offsets, offset, other
        )  # fmt: skip
