"""Arrays of libraries whose results come back as the library's own: torch and JAX.

They are called tensors here, whichever library made them. No library is imported; the table
`LIBRARIES` has a module for each, with these names:

is_own(source)        True for an array of this library
source_of(tensor)     what the front doors take for it: an array, or CSR as a tuple
on_its_stream(tensor) a context manager: CuPy works where the library does
device_of(tensor)     a word for its device
home_of(tensor)       where the arrays of a result go, as a `Home`
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from gpumatch.interop import jax_arrays, torch_tensors
from gpumatch.interop.sparse import csr_of

__all__ = [
    "Home",
    "are_of_one_library",
    "device_of",
    "home_of",
    "is_tensor",
    "matrix_of",
    "on_its_stream",
    "source_of",
]

LIBRARIES: tuple[Any, ...] = torch_tensors, jax_arrays


class Home(Protocol):
    """Makes tensors of arrays of NumPy and CuPy. It can be pickled."""

    def array(self, array: Any) -> Any:
        """A tensor of the same type."""

    def indices(self, array: Any) -> Any:
        """A tensor of indices or counts, in the type that the library has for these."""

    def sparse(self, matrix: Any) -> Any:
        """A sparse tensor of a CSR matrix of SciPy or cupyx."""


def _library_of(source: Any) -> Any:
    return next((library for library in LIBRARIES if library.is_own(source)), None)


def is_tensor(source: Any) -> bool:
    """True for an array of torch or JAX; False for one that JAX traces."""
    return _library_of(source) is not None


def are_of_one_library(sources: Iterable[Any]) -> bool:
    """True if all are tensors, and one library made them; there must be one at least."""
    rest = iter(sources)
    library = _library_of(next(rest))
    return library is not None and all(map(library.is_own, rest))


def source_of(tensor: Any) -> Any:
    """An array with the tensor's memory, or ``(indptr, indices, data, shape)`` if it is sparse."""
    return _library_of(tensor).source_of(tensor)


def matrix_of(tensor: Any) -> Any:
    """An array, or a sparse matrix of SciPy or cupyx, with the tensor's memory."""
    given = source_of(tensor)
    if not isinstance(given, tuple):
        return given
    indptr, indices, data, shape = given
    return csr_of(data, indices, indptr, shape)


def on_its_stream(tensor: Any) -> AbstractContextManager[None]:
    """Let CuPy work on the device of a tensor, in order with the library's own work there."""
    made: AbstractContextManager[None] = _library_of(tensor).on_its_stream(tensor)
    return made


def device_of(tensor: Any) -> str:
    return str(_library_of(tensor).device_of(tensor))


def home_of(tensor: Any) -> Home:
    """Where the arrays of a result go if this tensor was given."""
    made: Home = _library_of(tensor).home_of(tensor)
    return made
