"""The ways in which gpumatch has Numba compile its functions, and where the results are kept.

    kernel         releases the GIL while it runs
    vector_kernel  also compiles loops over costs to vector instructions: no number is NaN, and
                   -0.0 is as good as 0.0
    short_kernel   such a kernel that keeps the GIL: its calls are so short that this matters; only
                   these may make arrays
    strict_kernel  a kernel in which NaN is NaN, even if its caller is a vector_kernel
    inlined        becomes part of each kernel that calls it, before types are known
    fused          becomes part of each vector_kernel or short_kernel that calls it, but is compiled
                   by itself first

A kernel that is called by another one is compiled as a part of that (`parts`).

The others borrow their arrays, which the caller keeps, and count no owners of memory. So they are
compiled and begin sooner.

To inline takes Numba a time that grows with the square of a function's variables, and at each level
of calls again. So a function that is long, or inlines others, is better fused.

Indices are not checked. Numba keeps what it has compiled in files. If it can write none, each
process compiles again, and one warning says so.
"""

from __future__ import annotations

import functools
import gc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

from gpumatch.cpu.numba_tools.parts import Kernel
from gpumatch.running import compile_time

__all__ = [
    "cache_folder",
    "fused",
    "inlined",
    "kernel",
    "short_kernel",
    "strict_kernel",
    "vector_kernel",
]

_GARBAGE = 10**6  # objects that compilations may leave before one looks for garbage: 100 MiB or so
_VECTORS = {"nnan", "nsz"}  # what LLVM must know of floats to keep the least of many in a vector


class _Cache(FunctionCache):
    """Numba's files of a function, which goes on without those that cannot be written.

    A file is loaded without what only a compilation needs: Numba would first import and register
    all that it can compile, which takes a new process a tenth of a second.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)  # what code that allocates memory calls
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:  # the disk is full
            _warn_of_no_cache()


def compiled(**flags: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: compile with these flags of Numba's, and keep the result if that is possible.

    Numba raises an error if it finds no folder that it can write to.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher: Any = Kernel(function, flags)
        try:
            dispatcher._cache = _Cache(function)  # as `enable_caching` does with Numba's own
        except (RuntimeError, OSError):
            _warn_of_no_cache()
        return dispatcher

    return decorate


@functools.cache
def _warn_of_no_cache() -> None:
    warnings.warn(
        "gpumatch cannot keep compiled code on the disk, so each process compiles again, which "
        "takes seconds to minutes; set NUMBA_CACHE_DIR to a folder that can be written to, on a "
        "disk that is not full",
        UserWarning,
        stacklevel=4,
    )


class _Compilation(event.Listener):
    """Tells `running.compile_time` when Numba compiles, and has Python collect no garbage then.

    Compiling makes so many objects that looking for garbage would take a seventh of the time, and
    looking through them once at the end a fourteenth. Numba compiles in one thread at a time.
    """

    def __init__(self) -> None:
        self.depth, self.collects, self.left = 0, False, 0

    def on_start(self, event: Any) -> None:
        compile_time.begin()
        if self.depth == 0:
            self.collects = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0 and self.collects:
            self._leave_garbage()
            gc.enable()
        compile_time.end()

    def _leave_garbage(self) -> None:
        """Have Python look through all that was made as old objects, some time, and not at once."""
        self.left += gc.get_count()[0]
        if self.left > _GARBAGE or gc.get_freeze_count() > 0:  # what a program froze shall stay so
            self.left = 0
        else:
            gc.freeze()
            gc.unfreeze()


event.register("numba:compile", _Compilation())


_BORROWS: dict[str, Any] = {"_nrt": False}  # Numba's runtime, which counts owners, is left out
kernel = compiled(nogil=True, **_BORROWS)
vector_kernel = compiled(nogil=True, fastmath=_VECTORS, **_BORROWS)
short_kernel = compiled(fastmath=_VECTORS)
strict_kernel = compiled(nogil=True, fastmath=False, **_BORROWS)
fused = compiled(fastmath=_VECTORS, forceinline=True, **_BORROWS)
inlined = njit(inline="always")


@kernel
def _nothing():
    pass


def cache_folder() -> Path | None:
    """The folder below which compiled code is kept; None if it is not kept."""
    path = _nothing.stats.cache_path
    if path is None:
        return None
    folder = Path(path)  # of this file's functions; those of other files are next to it
    return folder.parents[1] if folder.name == "__pycache__" else folder.parent
