"""Threads that run one kernel each over shared arrays, and come back together.

The kernels release the GIL and share their arrays through ``atomics``. Nothing waits in a loop: a
kernel that has no work left returns, and Python's own futures do the waiting. Numba's ``prange``
needs a threading layer. This does not, so several Python threads may use it at once.

The threads wait for the next call, because to begin and join one takes 0.13 ms, twice as long as to
wake it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType

from gpumatch.running.interrupts import InterruptsHeld

__all__ = ["Workers"]

_EDGES_EACH = 2**16  # waking a thread takes about as long as visiting this many edges
_MOST = 2**10  # threads of all calls together; there are only as many as were needed at once


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST, "gpumatch")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of the threads


class Workers:
    """Threads for a graph, the caller's among them; a context manager that waits for the others.

    There are ``threads`` of them, fewer if the graph has few edges. After an exception, even Ctrl-C
    in the caller's thread, no kernel runs any more when the ``with`` statement is left.
    """

    def __init__(self, threads: int, edges: int) -> None:
        self.threads = min(threads, 1 + edges // _EDGES_EACH)
        self._others: list[Future[bool]] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._others:
            wait(self._others)

    def run(self, kernel: Callable[[int], bool], tasks: int) -> bool:
        """Call ``kernel(worker)`` for up to ``tasks`` workers; True if all return True."""
        count = min(self.threads, tasks)
        if count <= 1:
            return kernel(0)
        with InterruptsHeld():  # none begins that is not waited for
            self._others = [_pool().submit(kernel, worker) for worker in range(1, count)]
        try:
            done = kernel(0)
        finally:
            wait(self._others)
        return done and all(other.result() for other in self._others)

    def deal(self, work: Callable[[int], object], count: int) -> None:
        """Call ``work`` for all numbers below ``count``, which the workers get in turns."""

        def run(worker: int) -> bool:
            for number in range(worker, count, self.threads):
                work(number)
            return True

        self.run(run, min(self.threads, count))
