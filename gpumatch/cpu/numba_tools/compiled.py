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

Indices are not checked. What is compiled is kept in files (`cache`). If none can be written, each
process compiles again, and one warning says so.

All of this depends on private parts of Numba. Where one of them is missing, or does not do what is
expected of it, Numba compiles each kernel as plain `njit` does. That takes longer, and the kernels
do the same.
"""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

from gpumatch.cpu.numba_tools.cache import keep
from gpumatch.cpu.numba_tools.private import arrays, compiler, events, works
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


def _kernel_maker() -> Callable[..., Any]:
    """What makes a dispatcher of a function and flags: with parts, where Numba can do that.

    Without `arrays`, views have owners, and the flags of such kernels may leave those out.
    """
    if not (works(compiler, _trial) and arrays is not None):
        return _plain_kernel
    from gpumatch.cpu.numba_tools.parts import Kernel

    return functools.partial(Kernel, is_kept=True)


def _trial() -> bool:
    from gpumatch.cpu.numba_tools.parts import has_parts
    from gpumatch.cpu.numba_tools.views import ARE_PLAIN

    return has_parts() and not ARE_PLAIN


def _plain_kernel(function: Any, flags: dict[str, Any]) -> Any:
    dispatcher = njit(**{name: flags[name] for name in _DOCUMENTED & flags.keys()})(function)
    keep(dispatcher)
    return dispatcher


_DOCUMENTED = {"nogil", "fastmath"}
_make_kernel = _kernel_maker()


def compiled(**flags: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: compile with these flags of Numba's, and keep the result if that is possible."""

    def decorate(function: Callable[..., Any]) -> Any:
        return _make_kernel(function, flags)

    return decorate


_Listener: Any = getattr(events, "Listener", object)


class _Compilation(_Listener):
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


with contextlib.suppress(Exception):  # then no time is counted as that of compilations
    events.register("numba:compile", _Compilation())


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
    _nothing()  # finds the folder
    path = _nothing.stats.cache_path
    if path is None:
        return None
    folder = Path(path)  # of this file's functions; those of other files are next to it
    return folder.parents[1] if folder.name == "__pycache__" else folder.parent
