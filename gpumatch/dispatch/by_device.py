"""Functions that host and device both have, chosen by where the data are.

The host's functions use SciPy and Numba, the device's use CuPy. Each module is imported when it is
first needed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpumatch.contracts import Costs, Cover, CsrTools, Graph, Points
from gpumatch.numeric import arrays
from gpumatch.running.interrupts import InterruptsHeld

LARGE = 2**19
"""The length of arrays on the host from which a kernel for them is worth its compilation."""


def csr_for(array: Any) -> CsrTools:
    """The module that sorts and transposes CSR arrays where this array is."""
    return _csr_on_host() if isinstance(array, np.ndarray) else _csr_on_device()


def cover_for(graph: Graph) -> Cover:
    """The function that finds vertex covers where the graph is."""
    return _cover_on_device() if graph.on_device else _cover_on_host()


def find_on_host(indptr: Any, indices: Any, major: Any, minor: Any) -> tuple[Any, Any]:
    """Find pairs in a CSR pattern on the host: the position of each, and a mark if it is there."""
    return _find_on_host()(indptr, indices, major, minor)


def find_on_device(indptr: Any, indices: Any, major: Any, minor: Any) -> tuple[Any, Any]:
    """Find pairs in canonical CSR on a device; one for each row if `major` is None."""
    from gpumatch.cuda.surveys import find

    return find(indptr, indices, major, minor)


def values_of_mates_on_host(
    indptr: Any, indices: Any, values: Any, row_to_col: Any, threads: int
) -> Any:
    """The value of each row's matched entry, on the host; 0 for unmatched rows."""
    return _values_of_mates_on_host()(indptr, indices, values, row_to_col, threads)


def csr_on_host() -> Any:
    """The host's module for CSR arrays, which also has functions for CSR arrays with values."""
    return _csr_on_host()


def fill_distances(points: Points, first: int, last: int) -> Any:
    """The costs of all pairs of the rows from `first` to `last`."""
    return _distances_for(points).fill_distances(points, first, last)


def distances_at(points: Points, rows: Any, cols: Any) -> Any:
    """The costs of pairs."""
    return _distances_for(points).distances_at(points, rows, cols)


def pairs_within(points: Points, bound: Any, most: int) -> Any:
    """Rows, columns and costs of pairs up to the bounds of their rows."""
    near = _near_on_host() if isinstance(points.rows, np.ndarray) else _near_on_device()
    return near.pairs_within(points, bound, most)


def fill_clouds(clouds: Sequence[Points], values: Any) -> None:
    """Write the matrices of many clouds on a device, one after the other."""
    _distances_on_device().fill_clouds(clouds, values)


def device_function(source: str, dtype: Any, arrays: Sequence[Any]) -> Any:
    """A function in CUDA C++, for kernels of the current GPU, and the arrays that it reads."""
    try:
        from gpumatch.cuda.assignment.points.device_functions import DeviceFunction
    except ImportError as exc:
        raise RuntimeError(f"source needs a GPU and CuPy: {exc}") from exc
    return DeviceFunction.of(source, dtype, arrays)


def live_graphs_for(graph: Graph) -> Any:
    """The module that keeps the matching of a graph while it changes, where the graph is."""
    with InterruptsHeld():
        if graph.on_device:
            import gpumatch.cuda.live.graph as on_device

            return on_device
        import gpumatch.cpu.live.graph as on_host

        return on_host


def no_mates(graph: Graph | Costs) -> tuple[Any, Any]:
    """The mates of an empty matching, where the graph is."""
    nrows, ncols = graph.shape
    if not graph.on_device:
        return np.full(nrows, -1, np.int32), np.full(ncols, -1, np.int32)
    from gpumatch.cuda.memory import unmatched

    require_device_memory(4 * (nrows + ncols), "a matching")
    return unmatched(nrows), unmatched(ncols)


def count_matched(mates: Any) -> int:
    """Count the mates of a side that are vertices. Marks of unmatched vertices are below 0."""
    if isinstance(mates, np.ndarray):
        return arrays.count_matched(mates)
    from gpumatch.cuda.surveys import count_matched

    return count_matched(mates)


def canonical_size(indptr: Any, indices: Any, shape: tuple[int, int], threads: int) -> int | None:
    """The number of entries if the arrays are canonical CSR; None if that is not known.

    On the host, `threads` threads check them. Short arrays are not checked there.
    """
    if not isinstance(indices, np.ndarray):
        from gpumatch.cuda.surveys import canonical_size as size_on_device

        return size_on_device(indptr, indices, shape)
    if indices.size < LARGE:
        return None
    return _size_on_host()(indptr, indices, shape, threads)


def symmetry_on_host(indptr: Any, indices: Any, weights: Any = None) -> Any:
    """True if canonical CSR on the host has both entries of each edge, with equal weights."""
    return _symmetry_on_host()(indptr, indices, weights)


def symmetry_on_device(indptr: Any, indices: Any, weights: Any = None) -> Any:
    """True if canonical CSR on a device has both entries of each edge, and finite weights."""
    from gpumatch.cuda.general.symmetry import symmetry_of

    return symmetry_of(indptr, indices, weights)


def require_device_memory(nbytes: int, purpose: str) -> None:
    """Raise MemoryError if the current GPU has less than this many bytes free."""
    from gpumatch.cuda import memory

    memory.require_memory(nbytes, purpose)


@functools.cache
def _csr_on_host() -> CsrTools:
    with InterruptsHeld():
        from gpumatch.cpu import csr
    return csr


@functools.cache
def _csr_on_device() -> CsrTools:
    with InterruptsHeld():
        from gpumatch.cuda import csr
    return csr


@functools.cache
def _size_on_host() -> Any:
    with InterruptsHeld():
        from gpumatch.cpu.surveys import canonical_size
    return canonical_size


@functools.cache
def _symmetry_on_host() -> Any:
    with InterruptsHeld():
        from gpumatch.cpu.general.symmetry import symmetry_of
    return symmetry_of


@functools.cache
def _cover_on_host() -> Cover:
    with InterruptsHeld():
        from gpumatch.cpu.matching.vertex_cover import cover
    return cover


@functools.cache
def _cover_on_device() -> Cover:
    with InterruptsHeld():
        from gpumatch.cuda.matching.vertex_cover import cover
    return cover


@functools.cache
def _find_on_host() -> Any:
    with InterruptsHeld():
        from gpumatch.cpu.pairs_in_csr import find
    return find


@functools.cache
def _values_of_mates_on_host() -> Any:
    with InterruptsHeld():
        from gpumatch.cpu.pairs_in_csr import values_of_mates
    return values_of_mates


def _distances_for(points: Points) -> Any:
    return _distances_on_host() if isinstance(points.rows, np.ndarray) else _distances_on_device()


@functools.cache
def _distances_on_host() -> Any:
    with InterruptsHeld():
        from gpumatch.cpu.assignment.points import distances
    return distances


@functools.cache
def _distances_on_device() -> Any:
    with InterruptsHeld():
        from gpumatch.cuda.assignment.points import distances
    return distances


@functools.cache
def _near_on_host() -> Any:
    with InterruptsHeld():
        from gpumatch.cpu.assignment.points import near
    return near


@functools.cache
def _near_on_device() -> Any:
    with InterruptsHeld():
        from gpumatch.cuda.assignment.points import near
    return near
