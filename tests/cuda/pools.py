"""Device memory of a known size, whatever other tests have left in CuPy's own pool."""

from __future__ import annotations

import contextlib
from unittest import mock


@contextlib.contextmanager
def fresh_pool():
    """A pool of its own, from which all is allocated; the library takes it for CuPy's default."""
    import cupy as cp

    pool = cp.cuda.MemoryPool()
    with (
        mock.patch.object(cp, "get_default_memory_pool", return_value=pool),
        cp.cuda.using_allocator(pool.malloc),
    ):
        yield pool


@contextlib.contextmanager
def room_left(pool, nbytes):
    """No more than this can be allocated from the pool.

    What is free between arrays in use cannot be given back, so that it is taken first.
    """
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes())
    taken = []
    for size in (2**power for power in range(26, 8, -1)):
        with contextlib.suppress(MemoryError):
            while True:
                taken.append(pool.malloc(size))
    pool.set_limit(size=pool.total_bytes() + nbytes)
    try:
        yield
    finally:
        pool.set_limit(size=0)
        taken.clear()
