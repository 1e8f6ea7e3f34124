"""Where compiled code is kept.

A file is loaded without what only a compilation needs: Numba would first import and register all
that it can compile, which takes a new process a tenth of a second.

This depends on private parts of Numba (`private.caching`). Where these are missing, Numba keeps the
code as usual.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

from numba import njit

from gpumatch.cpu.numba_tools.private import caching, works

__all__ = ["keep"]

_Base: Any = getattr(caching, "FunctionCache", object)


class _Cache(_Base):
    """Numba's files of a function; a file that cannot be written does no harm."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        caching.rtsys.initialize(target_context)  # what code that allocates memory calls
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:  # the disk is full
            _warn_of_no_cache()


def keep(dispatcher: Any) -> None:
    """Keep what a dispatcher compiles from now on, if there is a folder for it."""
    function = dispatcher.py_func
    try:
        if _works():
            dispatcher._cache = _Cache(function)  # as `enable_caching` does with Numba's own
        else:
            dispatcher.enable_caching()
    except (RuntimeError, OSError):  # Numba finds no folder that it can write to
        _warn_of_no_cache()


@functools.cache
def _works() -> bool:
    return works(caching, _trial)


def _trial() -> bool:
    """True if what one dispatcher has compiled, or loaded, serves another."""
    for _ in range(2):
        dispatcher: Any = njit(_half)
        dispatcher._cache = _Cache(_half)
        if dispatcher(7) != 3 or dispatcher.stats.cache_path is None:
            return False
    return True


def _half(number):
    return number // 2


@functools.cache
def _warn_of_no_cache() -> None:
    warnings.warn(
        "gpumatch cannot keep compiled code on the disk, so each process compiles again, which "
        "takes seconds to minutes; set NUMBA_CACHE_DIR to a folder that can be written to, on a "
        "disk that is not full",
        UserWarning,
        stacklevel=5,
    )
