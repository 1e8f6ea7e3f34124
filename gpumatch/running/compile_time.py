"""How long this process has spent compiling, so that it is told apart from the work itself.

    compiling()  a context manager around whatever compiles
    spent()      seconds so far

What several threads compile at a time counts once, and so does what is compiled for something that
is being compiled.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["begin", "compiling", "end", "spent"]


class _Clock:
    """Runs while anything compiles."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.total = self.began = 0.0
        self.depth = 0


_clock = _Clock()


def begin() -> None:
    """Something starts to compile."""
    with _clock.lock:
        if _clock.depth == 0:
            _clock.began = time.perf_counter()
        _clock.depth += 1


def end() -> None:
    """It has been compiled, or has failed."""
    with _clock.lock:
        _clock.depth -= 1
        if _clock.depth == 0:
            _clock.total += time.perf_counter() - _clock.began


@contextmanager
def compiling() -> Iterator[None]:
    """Count the time of a block."""
    begin()
    try:
        yield
    finally:
        end()


def spent() -> float:
    """Seconds in which anything was compiled, up to now."""
    if _clock.depth == 0:
        return _clock.total
    with _clock.lock:
        running = time.perf_counter() - _clock.began if _clock.depth else 0.0
        return _clock.total + running
