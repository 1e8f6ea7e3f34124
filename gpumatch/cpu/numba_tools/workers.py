"""Threads that run one kernel each over shared arrays, and come back together.

The kernels release the GIL and share their arrays through ``atomics``. Nothing waits in a loop: a
kernel that has no work left returns, and Python's own futures do the waiting. Numba's ``prange``
needs a threading layer. This does not, so several Python threads may use it at once.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from types import TracebackType

__all__ = ["Workers"]

_EDGES_EACH = 2**16  # waking a thread takes about as long as visiting this many edges


class Workers:
    """Threads for a graph, the caller's among them; a context manager that joins the others.

    There are ``threads`` of them, fewer if the graph has few edges. After an exception, even Ctrl-C
    in the caller's thread, no kernel runs any more when the ``with`` statement is left.
    """

    def __init__(self, threads: int, edges: int) -> None:
        self.threads = min(threads, 1 + edges // _EDGES_EACH)
        self._others = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._others is not None:
            self._others.shutdown(wait=True)

    def run(self, kernel: Callable[[int], bool], tasks: int) -> bool:
        """Call ``kernel(worker)`` for up to ``tasks`` workers; True if all return True."""
        count = min(self.threads, tasks)
        if self._others is None or count <= 1:
            return kernel(0)
        others = [self._others.submit(kernel, worker) for worker in range(1, count)]
        try:
            done = kernel(0)
        finally:
            wait(others)
        return done and all(other.result() for other in others)
