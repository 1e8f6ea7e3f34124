"""The heap of the searches, compared with that of Python."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from gpumatch.cpu.searches.heap import drop_top, push


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
