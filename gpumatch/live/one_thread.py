"""What sessions share: they are for one thread at a time, and pickle."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

__all__ = ["OneThread", "alone", "in_use"]

_P = ParamSpec("_P")
_T = TypeVar("_T")
_S = TypeVar("_S", bound="OneThread")


def in_use() -> RuntimeError:
    """The error for a call while another one runs."""
    return RuntimeError(
        "this session is in use: it is for one thread at a time, and a callback or the "
        "conversion of an argument must not call it"
    )


def alone(
    method: Callable[Concatenate[_S, _P], _T],
) -> Callable[Concatenate[_S, _P], _T]:
    """A method that raises RuntimeError while another thread is in one."""

    @functools.wraps(method)
    def call(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        lock = self._lock
        if not lock.acquire(False):
            raise in_use()
        try:
            return method(self, *args, **kwargs)
        finally:
            lock.release()

    return call


class OneThread:
    """What is for one thread at a time, and pickles."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()
