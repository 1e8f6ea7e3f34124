"""The values of a sparse matrix, as the functions that look at them need these."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from gpumatch.bipartite import BipartiteGraph
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.dispatch.backends import check_backend
from gpumatch.dispatch.registry import BackendName
from gpumatch.interop.compressed import Compressed, compressed_of
from gpumatch.interop.sparse import csr_of
from gpumatch.interop.tensors import is_tensor, source_of
from gpumatch.numeric.arrays import (
    any_true,
    array_module,
    array_of,
    as_array,
    device_array,
    first_true,
    hint_of_type,
    is_sparse,
)
from gpumatch.running.interrupts import InterruptsHeld
from gpumatch.running.kept_memory import kept_empty

__all__ = [
    "Entries",
    "Weights",
    "entries_of",
    "exactly_on",
    "is_small",
    "log_magnitudes",
    "magnitudes",
    "own_entries",
    "placed",
    "shared_entries",
    "small_entries",
    "usable_csr",
    "weights_of",
]

BLOCK = 2**16
"""Values whose logarithms stay in a cache."""
SMALL = 2**18
"""Entries of a small matrix, at most: it takes about ten milliseconds."""
NEAR = 1.0
"""Logarithms of complex magnitudes that are computed from what these are beside 1."""
SPLIT = 2.0**27 + 1
"""A float64 times it tells the upper half of its digits."""
INT32 = np.dtype(np.int32)


class Entries(NamedTuple):
    """A matrix in canonical CSR without zeros, in arrays of NumPy or of CuPy."""

    graph: BipartiteGraph
    data: Any

    @property
    def indptr(self) -> Any:
        return self.graph.indptr

    @property
    def indices(self) -> Any:
        return self.graph.indices

    @property
    def shape(self) -> tuple[int, int]:
        return self.graph.shape

    @property
    def on_device(self) -> bool:
        return not isinstance(self.data, np.ndarray)

    def moved_to(self, xp: Any) -> Entries:
        """These entries in arrays of NumPy or CuPy."""
        graph = self.graph.to_host() if xp is np else self.graph.to_device()
        return Entries(graph, array_of(xp, self.data))

    def in_double(self) -> Entries:
        """These entries with values of double precision instead of single or half."""
        if self.data.dtype.kind not in "fc":
            return self
        wide = np.result_type(self.data.dtype, np.float64)
        return Entries(self.graph, self.data.astype(wide, copy=False))


def entries_of(A: Any) -> Entries:
    """The entries of a matrix, where they are; the caller's are left as they are.

    Raises
    ------
    TypeError, ValueError
        As for `usable_csr`, but for a matrix on a device.
    """
    shared = shared_entries(A)
    return shared if shared is not None and _are_plain(shared.data) else own_entries(A)


def own_entries(A: Any) -> Entries:
    """The entries of a matrix, in arrays that are not the caller's."""
    indptr, indices, values, shape = _canonical(A)
    xp = array_module(values)
    if xp is not np:
        values = _floating(values)
    _check_finite(indptr, indices, values)
    kept = values != 0
    if any_true(~kept):
        before = xp.zeros(values.size + 1, indptr.dtype)
        xp.cumsum(kept, dtype=indptr.dtype, out=before[1:])
        indptr, indices, values = before[indptr], indices[kept], values[kept]
    elif xp is np:
        values = values.copy()
    return Entries(BipartiteGraph.of_rows(indptr, indices, shape), values)


def _canonical(A: Any) -> tuple[Any, Any, Any, tuple[int, int]]:
    """Offsets, columns and values in canonical CSR, and the shape; zeros may be there."""
    A = source_of(A) if is_tensor(A) else A
    if isinstance(A, tuple) or is_sparse(A):
        entries = compressed_of(A, valued=True)
        _check_numbers(entries.values())
        return *entries.canonical(), entries.shape
    dense = _checked(as_array(A, "A"))
    graph = BipartiteGraph(dense)
    return graph.indptr, graph.indices, dense[graph.edges()], graph.shape


def small_entries(A: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Offsets, columns and weights of a small square matrix in CSR on the host, else None.

    Nothing is checked but what tells that the arrays are such. Nothing here may take long: the
    smallest matrices are solved in ten microseconds.
    """
    parts = _csr_parts(A)
    if parts is None:
        return None
    indptr, indices, data, shape = parts
    if not (_is_vector(indptr) and _is_vector(indices) and _is_vector(data)):
        return None
    if not (indptr.dtype == indices.dtype == INT32 and data.dtype.kind in "biufc"):
        return None
    if type(shape) is not tuple or [*map(type, shape)] != [int, int]:
        return None
    is_whole = data.size == indices.size and indptr.size == shape[0] + 1
    if not (is_whole and is_small(shape, data.size)):
        return None
    indptr, indices = indptr.copy(), indices.copy()  # what kernels index by is nobody else's
    weights = kept_empty(data.size, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        _write_weights(data, weights)
    return indptr, indices, weights


def _is_vector(array: Any) -> bool:
    """True if it is an array of NumPy's own type with one dimension and no gaps."""
    return type(array) is np.ndarray and array.ndim == 1 and array.flags.c_contiguous


def _csr_parts(A: Any) -> tuple[Any, ...] | None:
    """Offsets, columns, values and shape, if A is a tuple of four or a sparse matrix in CSR."""
    if is_tensor(A):
        A = source_of(A)
    if isinstance(A, tuple):
        return A if len(A) == 4 else None
    if is_sparse(A) and A.format == "csr" and A.ndim == 2:
        return A.indptr, A.indices, A.data, A.shape
    return None


def is_small(shape: tuple[int, int], count: int) -> bool:
    """True if a matrix of this shape and so many entries is square and small, but not empty."""
    return shape[0] == shape[1] and 0 < count <= SMALL


def shared_entries(A: Any, threads: int = 1) -> Entries | None:
    """The entries of canonical CSR, whose values are shared; None if it is anything else.

    Values may still be 0, or not finite. On the host, so many threads look at the arrays.
    """
    parts = _csr_parts(A)
    if parts is None:
        return None
    arrays = _, indices, data = parts[:3]
    kind = device_array() if type(data) is device_array() else np.ndarray
    if not all(isinstance(array, kind) and array.ndim == 1 for array in arrays):
        return None
    if indices.size != data.size or data.dtype.kind not in "biufc":
        return None
    entries = compressed_of(parts, valued=True, threads=threads)
    if not (isinstance(entries, Compressed) and entries.is_canonical):
        return None
    graph = BipartiteGraph.of_rows(*entries.pattern(), entries.shape)
    return Entries(graph, data) if graph.nnz == data.size else None


def _are_plain(values: Any) -> bool:
    """True if all values are finite, and none is 0."""
    if isinstance(values, np.ndarray):
        return bool(values.all() and np.isfinite(values).all())
    return not any_true((values == 0) | ~array_module(values).isfinite(values))


def placed(entries: Entries, backend: BackendName) -> tuple[Entries, BackendName]:
    """The entries where a call runs, and that backend: where they are, unless one is asked for."""
    check_backend(backend)
    if backend == "auto":
        backend = "cuda" if entries.on_device else "cpu"
    if backend != "cuda":
        return entries.moved_to(np), backend
    import cupy

    return entries.moved_to(cupy), backend


def exactly_on(backend: BackendName) -> dict[str, Any]:
    """Options of `assign` for sparse costs that are no integers, as exact as floats allow.

    On a GPU the default may be an auction, whose result has a gap.
    """
    return {"algorithm": "engine"} if backend == "cuda" else {}


def usable_csr(A: Any) -> Any:
    """A matrix as a canonical `csr_array` without zeros; the caller's is left as it is.

    Raises
    ------
    TypeError
        If it is no matrix of numbers.
    ValueError
        If a value is not finite, or the matrix is on a device.
    """
    A = source_of(A) if is_tensor(A) else A
    if _lies_on_device(A):
        raise ValueError("A is on a device: this runs on 'cpu' only, so pass a copy on the host")
    own = own_entries(A)
    return csr_of(own.data, own.indices, own.indptr, own.shape)


def _lies_on_device(A: Any) -> bool:
    """True if the values of a matrix are on a GPU."""
    if isinstance(A, tuple):
        parts = A[:3]
    else:
        parts = (A.data,) if is_sparse(A) and hasattr(A, "data") else (A,)
    return any(
        not isinstance(part, np.ndarray) and hasattr(part, "__cuda_array_interface__")
        for part in parts
    )


def _check_numbers(values: Any) -> None:
    if values.dtype.kind not in "biufc":
        hint = hint_of_type(values.dtype)
        raise TypeError(f"the values of A must be numbers; got dtype {values.dtype}{hint}")


def _checked(dense: Any) -> Any:
    """A dense matrix of numbers."""
    _check_numbers(dense)
    if dense.ndim != 2:
        raise ValueError(f"A must have 2 dimensions; got {dense.ndim}")
    return dense


def _floating(values: Any) -> Any:
    """Numbers of a type that cupyx has matrices of."""
    return values if values.dtype.char in "fdFD" else values.astype(np.float64)


def _check_finite(indptr: Any, indices: Any, data: Any) -> None:
    xp = array_module(data)
    stray = first_true(~xp.isfinite(data))
    if stray is not None:
        row = int(xp.searchsorted(indptr, xp.asarray([stray]), side="right")[0]) - 1
        raise ValueError(
            f"the values of A must be finite; that of row {row} and column "
            f"{int(indices[stray])} is {data[stray]}"
        )


def magnitudes(values: Any) -> Any:
    """The absolute values in float64, or exactly in int64 if they are integers that fit."""
    if values.dtype.kind in "fc":
        return abs(values).astype(np.float64)
    return abs(values.astype(np.int64 if values.dtype.itemsize < 8 else np.float64))


def log_magnitudes(values: Any) -> Any:
    """The logarithms of the absolute values, none of which is 0, in float64.

    Those of complex numbers too large or too small for an absolute value are found as well.
    """
    xp = array_module(values)
    if values.dtype.kind == "c":
        wide = values if values.dtype.itemsize >= 16 else values.astype(np.complex128)
        parts = abs(wide.real), abs(wide.imag)
        large, small = xp.maximum(*parts), xp.minimum(*parts)
        logs = xp.log(large) + xp.log1p((small / large) ** 2) / 2
        near = (logs > -NEAR) & (logs < NEAR)
        logs[near] = xp.log1p(_less_one(large[near], small[near])) / 2
    else:
        as_float = values if values.dtype.kind == "f" else values.astype(np.float64)
        if as_float.dtype.itemsize < 8:
            as_float = as_float.astype(np.float64)
        logs = abs(as_float)
        xp.log(logs, out=logs)
    return logs.astype(np.float64, copy=False)


def _less_one(large: Any, small: Any) -> Any:
    """The sum of two squares, less 1; with errors of its own size, also where it is near 0."""
    (one, rest_of_one), (other, rest_of_other) = _squared(large), _squared(small)
    rest = rest_of_one + rest_of_other
    part = rest - rest_of_one
    left = (rest_of_one - (rest - part)) + (rest_of_other - part)
    # Where much cancels, the first three sums are exact.
    return (((one - 1) + other) + rest) + left


def _squared(values: Any) -> tuple[Any, Any]:
    """The rounded squares, and what was rounded off (Veltkamp and Dekker)."""
    squares, spread = values * values, values * SPLIT
    high = spread - (spread - values)
    low = values - high
    return squares, ((high * high - squares) + 2 * high * low) + low * low


class Weights(NamedTuple):
    """Minus the `log_magnitudes` of values, and the least and the greatest of them."""

    values: Any
    low: float
    high: float

    @property
    def are_finite(self) -> bool:
        """True if no value is 0, and all are finite: of other values, the weights are not."""
        return math.isfinite(self.low) and math.isfinite(self.high)


def weights_of(values: Any, threads: int) -> Weights:
    """The weights of these values, on the host by so many threads."""
    if values.size == 0:
        return Weights(array_module(values).empty(0), 0.0, 0.0)
    if not isinstance(values, np.ndarray):
        return Weights(*_minus_logarithms_on_device()(values))
    weights = kept_empty(values.size, np.float64)
    blocks = [slice(begin, begin + BLOCK) for begin in range(0, values.size, BLOCK)]
    ends = np.empty((2, len(blocks)))

    def find(number: int) -> None:
        own = weights[blocks[number]]
        with np.errstate(divide="ignore", invalid="ignore"):
            _write_weights(values[blocks[number]], own)
        ends[:, number] = own.min(), own.max()

    with Workers(threads, values.size) as workers:
        workers.deal(find, len(blocks))
    return Weights(weights, float(ends[0].min()), float(ends[1].max()))


@functools.cache
def _minus_logarithms_on_device() -> Any:
    with InterruptsHeld():
        from gpumatch.cuda.assignment.sparse.logarithms import minus_logarithms
    return minus_logarithms


def _write_weights(values: np.ndarray, weights: np.ndarray) -> None:
    """Minus the `log_magnitudes`, by steps in place: other memory would be new each time."""
    if values.dtype.kind == "c" or values.dtype.itemsize > weights.dtype.itemsize:
        weights[:] = log_magnitudes(values)
    elif values.dtype == weights.dtype:
        np.log(np.abs(values, out=weights), out=weights)
    else:
        weights[:] = values
        np.log(np.abs(weights, out=weights), out=weights)
    np.negative(weights, out=weights)
