"""Order and transpose CSR patterns on the device, by CuPy's (CUB's) sorts and scans.

Encodings as in `gpumatch.bipartite`: int32 vertices, offsets int32 unless there are 2**31 entries.
An edge is sorted as one 64-bit key: its row in the upper half, its column in the lower.

CuPy counts in int32 when it scans, scatters or selects by a mask. So this goes piece by piece; all
but the largest graphs are one piece. CuPy's sort and its element-wise functions take any length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cupy as cp

from gpumatch.cuda import memory
from gpumatch.numeric.arrays import any_true

_BYTES_AN_EDGE = 28  # keys, the sort's double buffer, and one index array to read or write
_SIGN = cp.uint64(2**63)  # of a 64-bit number
_PIECE = 2**30  # entries that CuPy scans, scatters or selects at a time

Csr = tuple[cp.ndarray, cp.ndarray]


def is_canonical(indptr: cp.ndarray, indices: cp.ndarray) -> bool:
    """Whether each row's indices increase strictly: sorted, no duplicates."""
    pairs = indices.size - 1
    row_ends = indptr[1:-1].astype(cp.int64) - 1
    return all(
        _increases(indices[begin : end + 1], row_ends - begin) for begin, end in _pieces(pairs)
    )


def _increases(indices: cp.ndarray, row_ends: cp.ndarray) -> bool:
    """Whether each index is above the one before, except those after `row_ends`.

    Row ends may be outside.
    """
    pairs = indices.size - 1
    rising = cp.empty(pairs + 1, bool)  # the last is for row ends that are outside
    cp.greater(indices[1:], indices[:-1], out=rising[:-1])
    rising[cp.where((row_ends >= 0) & (row_ends < pairs), row_ends, pairs)] = True
    return not any_true(~rising[:-1])


def canonical(indptr: cp.ndarray, indices: cp.ndarray, nrows: int) -> Csr:
    """Sort each row and merge its duplicates."""
    return from_edges(owners(indptr, indices), indices, nrows)


def from_edges(rows: cp.ndarray, cols: cp.ndarray, nrows: int) -> Csr:
    """CSR of an edge list in any order, repeated edges merged."""
    keys = _keys(rows, cols)
    keys.sort()
    return _from_sorted_keys(_without_repeats(keys), nrows)


def transpose(indptr: cp.ndarray, indices: cp.ndarray, ncols: int) -> Csr:
    """The other direction: CSR of the transposed pattern."""
    keys = _keys(indices, owners(indptr, indices))
    keys.sort()
    return _from_sorted_keys(keys, ncols)


def owners(indptr: cp.ndarray, indices: cp.ndarray) -> cp.ndarray:
    """The row of each entry: a mark where a row starts, added up.

    Rows that start before a piece mark its first entry.
    """
    rows = cp.empty(indices.size, cp.int32)
    starts = indptr[1:-1]
    for begin, end in _pieces(indices.size):
        marks = cp.zeros(end - begin + 1, cp.int32)  # the last is for rows that start after
        cp.add.at(marks, cp.clip(starts, begin, end) - begin, 1)
        cp.cumsum(marks[:-1], dtype=cp.int32, out=rows[begin:end])
    return rows


def greatest(vertices: cp.ndarray, values: cp.ndarray, count: int) -> cp.ndarray:
    """The greatest float64 that is with each of so many vertices; -inf if none is."""
    found = _in_order(cp.full(count, -cp.inf))
    cp.maximum.at(found, vertices, _in_order(values))
    return _numbers(found, cp.float64)


def lower(least: cp.ndarray, places: cp.ndarray, values: cp.ndarray) -> None:
    """Lower the numbers at these places, int64 or float64, to the values that are less."""
    found = _in_order(least)
    cp.minimum.at(found, places, _in_order(values))
    least[:] = _numbers(found, least.dtype)


def _in_order(numbers: cp.ndarray) -> cp.ndarray:
    """64-bit numbers as uint64 in the same order.

    `cupy.maximum.at` rounds float64 to float32, and takes no int64.
    """
    bits = numbers.view(cp.uint64)
    if numbers.dtype.kind == "i":
        return bits ^ _SIGN
    return cp.where(bits >= _SIGN, ~bits, bits | _SIGN)


def _numbers(ordered: cp.ndarray, dtype: Any) -> cp.ndarray:
    """What `_in_order` was given."""
    if cp.dtype(dtype).kind == "i":
        return (ordered ^ _SIGN).view(dtype)
    return cp.where(ordered >= _SIGN, ordered ^ _SIGN, ~ordered).view(dtype)


def _keys(major: cp.ndarray, minor: cp.ndarray) -> cp.ndarray:
    memory.require_memory(_BYTES_AN_EDGE * major.size, "ordering the edges")
    keys = major.astype(cp.int64)
    keys <<= 32
    keys |= minor.astype(cp.int32, copy=False)
    return keys


def _without_repeats(keys: cp.ndarray) -> cp.ndarray:
    """The distinct ones of sorted keys, moved to the front of their array.

    No key that is still to be looked at is overwritten. The key before it keeps its value.
    """
    kept = 0
    for begin, end in _pieces(keys.size):
        piece = keys[begin:end]
        is_first = cp.empty(piece.size, bool)
        cp.not_equal(piece[1:], piece[:-1], out=is_first[1:])
        is_first[0] = begin == 0 or bool(keys[begin] != keys[begin - 1])
        chosen = piece[is_first]
        keys[kept : kept + chosen.size] = chosen
        kept += chosen.size
    return keys[:kept]


def _from_sorted_keys(keys: cp.ndarray, nmajor: int) -> Csr:
    offsets = cp.int32 if keys.size < 2**31 else cp.int64
    starts = cp.arange(nmajor + 1, dtype=cp.int64) << 32
    indptr = cp.searchsorted(keys, starts).astype(offsets)
    return indptr, keys.astype(cp.int32)  # the lower half, by wrapping


def _pieces(size: int) -> Iterator[tuple[int, int]]:
    """Ranges that cover `size` entries."""
    for begin in range(0, size, _PIECE):
        yield begin, min(begin + _PIECE, size)
