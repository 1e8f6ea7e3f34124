"""A heap of vertices by distance, whose nodes have four children each.

Four children are neighbours in memory, so that a step down costs about one miss of the caches, and
there are half as many steps as with two. Keys and vertices are in arrays of their own.
"""

from __future__ import annotations

from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["drop_top", "push"]


@kernel
def push(keys, heap, waiting, key, col):
    """Put a column and its key into a heap of ``waiting`` columns."""
    slot = waiting
    while slot > 0:
        above = (slot - 1) >> 2
        if keys[above] <= key:
            break
        keys[slot] = keys[above]
        heap[slot] = heap[above]
        slot = above
    keys[slot] = key
    heap[slot] = col


@kernel
def drop_top(keys, heap, waiting):
    """Drop the column of the least key from a heap, which then has ``waiting`` columns."""
    key, col = keys[waiting], heap[waiting]
    slot = 0
    while 4 * slot + 1 < waiting:
        least = 4 * slot + 1
        end = least + 4
        for below in range(least + 1, end if end < waiting else waiting):
            if keys[below] < keys[least]:
                least = below
        if keys[least] >= key:
            break
        keys[slot] = keys[least]
        heap[slot] = heap[least]
        slot = least
    keys[slot] = key
    heap[slot] = col
