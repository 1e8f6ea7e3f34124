"""The heap of the searches, compared with that of Python."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from gpumatch.cpu.searches.heap import FEW, OUTDATED, drop_top, push, tidy


@pytest.mark.parametrize("size", [1, 2, 5, 6, 21, 60])
def test_the_heap_gives_the_least_key_with_its_column(size):
    rng = np.random.default_rng(size)
    keys, heap, theirs = np.empty(size, np.int64), np.empty(size, np.int32), []
    for col in range(size):
        key = int(rng.integers(0, 9))
        push(keys, heap, col, key, 100 * key + col)
        heapq.heappush(theirs, key)
    seen = set()
    for waiting in range(size - 1, -1, -1):
        assert keys[0] == heapq.heappop(theirs) == heap[0] // 100
        seen.add(int(heap[0]))
        drop_top(keys, heap, waiting)
    assert len(seen) == size


@pytest.mark.parametrize("live", [20, 200])
def test_a_heap_of_old_keys_is_tidied(live):
    """Columns that are reached again and again; some have left the heap."""
    size, rng = 300, np.random.default_rng(live)
    keys, heap = np.empty(size, np.int64), np.empty(size, np.int32)
    dist, waiting = np.full(live, 10**6), 0
    while waiting < size:
        col = int(rng.integers(live))
        dist[col] -= int(rng.integers(1, 9))
        push(keys, heap, waiting, dist[col], col)
        waiting += 1
    dist[: live // 4] -= 1
    is_old = size > OUTDATED * live + FEW
    waiting = tidy(keys, heap, waiting, dist, live)
    assert waiting == (live - live // 4 if is_old else size)
    found = []
    while waiting:
        found += [int(heap[0])] if keys[0] == dist[heap[0]] else []
        waiting -= 1
        drop_top(keys, heap, waiting)
    assert len(found) == len(set(found))
    assert min(found) >= live // 4
    assert (np.diff(dist[found]) >= 0).all()
    assert len(found) == live - live // 4 or not is_old
