"""The time that this process has spent compiling, which is reported apart from the work.

    compiling()  a context manager around code that compiles
    spent()      seconds up to now

Time counts once when several threads compile at once, and when compilations are nested.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["begin", "compiling", "end", "is_compiling", "spent"]


class _Clock:
    """A clock that runs while anything compiles."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.total = self.began = 0.0
        self.depth = 0


_clock = _Clock()


def begin() -> None:
    """Note that a compilation begins."""
    with _clock.lock:
        if _clock.depth == 0:
            _clock.began = time.perf_counter()
        _clock.depth += 1


def end() -> None:
    """Note that a compilation has ended or failed."""
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


def is_compiling() -> bool:
    """True if anything is being compiled now."""
    return _clock.depth > 0


def spent() -> float:
    """The seconds in which anything was compiled, up to now."""
    if _clock.depth == 0:
        return _clock.total
    with _clock.lock:
        running = time.perf_counter() - _clock.began if _clock.depth else 0.0
        return _clock.total + running
