"""A heap of vertices by distance, whose nodes have four children each.

Four children are neighbours in memory, so that a step down costs about one miss of the caches, and
there are half as many steps as with two. Keys and vertices are in arrays of their own.

A search may put a vertex into the heap again when it finds a shorter way there. Its older keys are
out of date then, and `tidy` drops them once they are most of the heap. To move a vertex up inside
the heap instead, every step would have to note where vertices are: paths in squared distances of
points on a line are found in half the time, but those in random costs take up to 1.4 times as long.
"""

from __future__ import annotations

from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["drop_top", "push", "tidy"]

OUTDATED = 4
"""Keys of the heap for each vertex in it, from which on those out of date are dropped.

With 1, 2 and 4, paths in random costs (20,000 rows with 5 entries each) take 89, 74 and 73 ms, and
those in squared distances of 2,514 points on a line 50, 46 and 51 ms. Without it, they take 78 and
91 ms.
"""
FEW = 64
"""Keys of a heap that is never tidied."""


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


@kernel
def tidy(keys, heap, waiting, dist, live):
    """Drop what is out of date from a heap, if it is most of the heap; return how many keys stay.

    ``live`` bounds the columns of the heap from above. A key is out of date if the column has been
    reached at a shorter distance since.
    """
    if waiting <= OUTDATED * live + FEW:
        return waiting
    kept = 0
    for slot in range(waiting):
        key, col = keys[slot], heap[slot]
        if key == dist[col]:
            push(keys, heap, kept, key, col)
            kept += 1
    return kept
