"""Where compiled code is kept, and when it is out of date.

The code of a kernel contains that of all kernels which it calls, whichever files these are in.
Numba's stamp of that code covers the file of the kernel alone. The stamp here covers all files
below gpumatch/cpu/, and those few others whose constants kernels read. So after an edit of any of
them, or an update of gpumatch, all kernels are compiled again when they are called.

The stamp is made of contents, because times change where contents do not, as when git switches
branches, and may stay where contents change, as in packages that are built reproducibly. It takes
a process 0.8 ms.

Numba gives the code of each signature a number, which it reads from an index. Two processes that
save at once may take the same number, and then the index names the code of another signature. So
each file says here which stamp and signature it is for, and another one's is compiled again.

A file is loaded without what only a compilation needs: Numba would first import and register all
that it can compile, which takes a new process a tenth of a second.

This depends on private parts of Numba (`private.caching`). Where these are missing, Numba's own
files are named by the stamp. Old ones then stay.
"""

from __future__ import annotations

import functools
import hashlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite
from numba import njit

from gpumatch.cpu.numba_tools.private import caching, works

__all__ = ["keep", "stamp"]

FOLDER = str(Path(__file__).parents[1])
BEYOND = ("contracts/batch.py", "numeric/gaps.py")
"""Files beside `FOLDER` whose constants become part of kernels."""

_Base: Any = getattr(caching, "FunctionCache", object)
_BaseFiles: Any = getattr(caching, "IndexDataCacheFile", object)


class _Files(_BaseFiles):
    """Numba's index and files of a function; each file says what it is the code of."""

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (self._source_stamp, key, data))

    def load(self, key: Any) -> Any:
        found = super().load(key)
        if found is None or found[:2] != (self._source_stamp, key):
            return None
        return found[2]


class _Cache(_Base):
    """Such files, with our stamp; a file that cannot be written does no harm."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        is_covered = _is_covered(function.__code__.co_filename)
        source_stamp = stamp(), None if is_covered else self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, source_stamp)

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
            function.__qualname__ += f"-{stamp()}"
            dispatcher.enable_caching()
    except (RuntimeError, OSError):  # Numba finds no folder that it can write to
        _warn_of_no_cache()


@functools.cache
def stamp() -> str:
    """A hash of the sources of all kernels, and of the version of LLVM's interface."""
    digest = hashlib.sha256(llvmlite.__version__.encode())
    package = os.path.dirname(FOLDER)
    for path in (*_sources(FOLDER), *(os.path.join(package, name) for name in BEYOND)):
        try:
            with open(path, "rb", buffering=0) as file:
                content = file.read()
        except OSError:  # the package is an archive
            continue
        digest.update(os.fsencode(path[len(package) :]) + b"\0" + content)
    return digest.hexdigest()[:16]


def _is_covered(path: str) -> bool:
    """True if the stamp covers a file; else, as in an archive, Numba's own stamp is needed."""
    return path.startswith(FOLDER + os.sep) and os.path.isfile(path)


def _sources(folder: str) -> Iterator[str]:
    """The Python files below a folder, in one order."""
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry.name, entry.is_dir()) for entry in entries)
    except OSError:
        return
    for name, is_folder in found:
        if is_folder and name != "__pycache__":
            yield from _sources(os.path.join(folder, name))
        elif name.endswith(".py"):
            yield os.path.join(folder, name)


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
