"""What the device is asked for before an algorithm begins."""

from __future__ import annotations

import pytest

cp = pytest.importorskip("cupy")

from gpumatch.cuda import memory  # noqa: E402  it imports cupy
from tests.cuda.pools import fresh_pool  # noqa: E402


@pytest.mark.gpu
def test_blocks_that_lie_idle_in_a_limited_pool_are_given_back():
    size = 2**20
    with fresh_pool() as pool:
        pool.set_limit(size=4 * size)
        cp.cuda.alloc(3 * size)
        assert pool.free_bytes() == 3 * size
        memory.require_memory(4 * size, "a search")


@pytest.mark.gpu
def test_memory_is_counted_in_one_piece():
    size = 2**20
    with fresh_pool() as pool:
        pool.set_limit(size=4 * size)
        cp.cuda.alloc(4 * size)
        pieces = [cp.cuda.alloc(size) for _ in range(4)]
        del pieces[2], pieces[0]
        assert pool.free_bytes() == 2 * size
        memory.require_memory(size, "a search")
        with pytest.raises(MemoryError, match="a search needs 2097152 bytes on GPU"):
            memory.require_memory(2 * size, "a search")
        with pytest.raises(MemoryError, match="a search needs 36893488147419103232 bytes on GPU"):
            memory.require_memory(2**65, "a search")
