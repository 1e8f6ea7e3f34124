"""Order and transpose CSR patterns on the device, by CuPy's (CUB's) sorts and scans.

Encodings as in `gpumatch.bipartite`: int32 vertices, offsets int32 unless there are 2**31 entries.
An edge is sorted as one 64-bit key: its row in the upper half, its column in the lower.
"""

from __future__ import annotations

from typing import Any

import cupy as cp

from gpumatch.arrays import any_true
from gpumatch.cuda import kernels as module

_BYTES_AN_EDGE = 28  # keys, the sort's double buffer, and one index array on its way in and out

Csr = tuple[cp.ndarray, cp.ndarray]


def is_canonical(indptr: cp.ndarray, indices: cp.ndarray) -> bool:
    """Whether each row's indices increase strictly: sorted, no duplicates."""
    if indices.size < 2:
        return True
    rising = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    rising[starts[(starts > 0) & (starts < indices.size)] - 1] = True
    return not any_true(~rising)


def canonical(indptr: cp.ndarray, indices: cp.ndarray, nrows: int) -> Csr:
    """Sort each row and merge its duplicates."""
    return from_edges(owners(indptr, indices), indices, nrows)


def from_edges(rows: Any, cols: Any, nrows: int) -> Csr:
    """CSR of an edge list in any order, repeated edges merged."""
    keys = _keys(rows, cols)
    keys.sort()
    if keys.size:
        first = cp.ones(keys.size, bool)
        cp.not_equal(keys[1:], keys[:-1], out=first[1:])
        keys = keys[first]
    return _from_sorted_keys(keys, nrows)


def transpose(indptr: cp.ndarray, indices: cp.ndarray, ncols: int) -> Csr:
    """The other direction: CSR of the transposed pattern."""
    keys = _keys(indices, owners(indptr, indices))
    keys.sort()
    return _from_sorted_keys(keys, ncols)


def owners(indptr: cp.ndarray, indices: cp.ndarray) -> cp.ndarray:
    """The row of each entry: a mark where a row starts, added up."""
    marks = cp.zeros(indices.size + 1, cp.int32)
    cp.add.at(marks, indptr[1:-1], 1)
    return cp.cumsum(marks[:-1], dtype=cp.int32)


def _keys(major: cp.ndarray, minor: cp.ndarray) -> cp.ndarray:
    module.require_memory(_BYTES_AN_EDGE * major.size, "ordering the edges")
    keys = major.astype(cp.int64)
    keys <<= 32
    keys |= minor.astype(cp.int64)
    return keys


def _from_sorted_keys(keys: cp.ndarray, nmajor: int) -> Csr:
    offsets = cp.int32 if keys.size < 2**31 else cp.int64
    starts = cp.arange(nmajor + 1, dtype=cp.int64) << 32
    indptr = cp.searchsorted(keys, starts).astype(offsets)
    return indptr, keys.astype(cp.int32)  # the lower half, by wrapping
