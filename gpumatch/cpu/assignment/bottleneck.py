"""Augmenting paths whose most expensive pair is as cheap as possible, in a sparse cost matrix.

From each unmatched row a search goes along pairs, as Dijkstra's does, but the length of a path is
the largest cost on it, and never less than the threshold, which is the largest length so far.
Columns that are no farther than the threshold wait on a stack, others in a heap. If the stack is
empty and no unmatched column was reached, the rows of the tree have fewer columns than they are up
to the next length. So every full assignment has a pair that costs as much, and the threshold rises
to it. Then the threshold is never above what the best assignment needs.

Encodings
---------
``dist[j]``     length of the best path to column j; ``far`` if there is none yet
``pred[j]``     the row that leads to it
``stack``       columns no farther than the threshold, to be scanned
``keys, heap``  lengths and columns beyond it, a binary heap; a column may be there several times
``reached``     columns whose ``dist`` is to be made ``far`` again

Reference: Duff, Koster, *The design and use of algorithms for permuting large entries to the
diagonal of sparse matrices*, SIAM J. Matrix Anal. Appl. 20(4), 1999; Derigs, Zimmermann, *An
augmenting path method for solving linear bottleneck assignment problems*, Computing 19, 1978.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.cpu.numba_tools.compiled import inlined, kernel

__all__ = ["raise_threshold"]

_BUDGET = 2**23  # entries looked at between two returns to Python, a search at least


def raise_threshold(
    entries: tuple[np.ndarray, np.ndarray, np.ndarray],
    mates: tuple[np.ndarray, np.ndarray],
    threshold: Any,
    stopped: Callable[[], bool],
) -> Any:
    """Match all rows, and return the least threshold up to which that is possible.

    Parameters
    ----------
    entries : (indptr, indices, weights)
        Costs in CSR, of which a full assignment exists.
    mates : (row_to_col, col_to_row)
        Pairs that cost at most the threshold; at the end, all rows are in one.
    threshold : number
        No more than the best assignment's largest cost.
    stopped : callable
        Called now and then; if it returns True, some rows may stay unmatched.
    """
    indptr, indices, weights = entries
    ncols = mates[1].size
    far = np.inf if weights.dtype.kind == "f" else np.iinfo(weights.dtype).max
    dist = np.full(ncols, far, weights.dtype)
    pred, stack, reached = np.empty((3, ncols), np.int32)
    keys, heap = np.empty(indices.size, weights.dtype), np.empty(indices.size, np.int32)
    level = np.array([threshold], weights.dtype)
    row = 0
    while row < mates[0].size and not stopped():
        row = _search(
            row, indptr, indices, weights, far, _BUDGET,  # IN
            *mates, level, dist, pred, stack, reached, keys, heap,  # IN, OUT
        )  # fmt: skip
    return level[0].item()


@kernel
def _search(
    row, indptr, indices, weights, far, budget,
    row_to_col, col_to_row, level, dist, pred, stack, reached, keys, heap,
):  # fmt: skip
    """Match the rows from `row` on while the budget lasts; return the row to go on with."""
    threshold = level[0]
    while row < len(row_to_col) and budget > 0:
        if row_to_col[row] >= 0:
            row += 1
            continue
        current, found, leave = row, -1, far
        near = waiting = count = 0
        while found < 0:
            for k in range(indptr[current], indptr[current + 1]):
                col = indices[k]
                length = max(weights[k], threshold)
                if length >= dist[col] or length >= leave:
                    continue
                if dist[col] == far:
                    reached[count] = col
                    count += 1
                dist[col], pred[col] = length, current
                is_free = col_to_row[col] < 0
                if is_free:
                    leave = length
                if length > threshold:
                    _push(keys, heap, waiting, length, col)
                    waiting += 1
                elif is_free:
                    found = col
                    break
                else:
                    stack[near] = col
                    near += 1
            budget -= indptr[current + 1] - indptr[current] + 1
            if found >= 0:
                break
            if near > 0:
                near -= 1
                col = stack[near]
            else:
                length, col = keys[0], heap[0]
                waiting -= 1
                _pop(keys, heap, waiting)
                while length > dist[col]:  # a shorter path was found since
                    length, col = keys[0], heap[0]
                    waiting -= 1
                    _pop(keys, heap, waiting)
                threshold = length  # no less: of what waits, the least comes first
                if col_to_row[col] < 0:
                    found = col
                    break
            current = col_to_row[col]
        col = found
        while col >= 0:
            current = pred[col]
            col_to_row[col] = current
            row_to_col[current], col = col, row_to_col[current]
        for i in range(count):
            dist[reached[i]] = far
        row += 1
    level[0] = threshold
    return row


@inlined
def _push(keys, heap, size, key, col):
    """Put a column into a heap of ``size`` columns."""
    at = size
    while at > 0 and keys[(at - 1) // 2] > key:
        above = (at - 1) // 2
        keys[at], heap[at] = keys[above], heap[above]
        at = above
    keys[at], heap[at] = key, col


@inlined
def _pop(keys, heap, size):
    """Take the least off a heap, which then has ``size`` columns."""
    key, col = keys[size], heap[size]
    at, child = 0, 1
    while child < size:
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[at], heap[at] = keys[child], heap[child]
        at, child = child, 2 * child + 1
    keys[at], heap[at] = key, col
