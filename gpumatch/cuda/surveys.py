"""Count matched vertices, check CSR arrays, and find pairs in them, in one look: see surveys.cu."""

from __future__ import annotations

import cupy as cp
import numpy as np

from gpumatch.cuda.kernels import BLOCK, OFFSETS, Source, blocks_for, kernels_for

__all__ = ["canonical_size", "count_matched", "find"]

SOURCE = Source(
    "surveys.cu",
    ("count_matched<{Number}>", "check_csr<{Number}>", "find_pairs<{Number}>"),
    {"Number": OFFSETS},
)
_DTYPES = frozenset(map(np.dtype, OFFSETS))


def count_matched(mates: cp.ndarray) -> int:
    """How many of a side's mates are vertices, not -1 or another mark below 0."""
    if mates.dtype not in _DTYPES:
        mates = mates.astype(np.int64)
    mates = cp.ascontiguousarray(mates)
    count = cp.zeros(1, np.uint64)
    kernels_for(SOURCE, Number=mates.dtype)["count_matched<{Number}>"](
        (blocks_for(mates.size),),
        (BLOCK,),
        (
            *(mates, np.int64(mates.size)),  # IN
            count,  # IN, OUT
        ),
    )
    return count.item()


def canonical_size(indptr: cp.ndarray, indices: cp.ndarray, shape: tuple[int, int]) -> int | None:
    """The entries of arrays that are canonical CSR of this shape; None if they are anything else.

    Columns of another type than int32 are not looked at.
    """
    nrows, ncols = shape
    is_known = indptr.dtype in _DTYPES and indices.dtype == np.int32
    is_whole = indptr.flags.c_contiguous and indices.flags.c_contiguous
    if not (is_known and is_whole and indptr.size == nrows + 1):
        return None
    faults = cp.zeros(3, np.int64)
    kernels_for(SOURCE, Number=indptr.dtype)["check_csr<{Number}>"](
        (blocks_for(max(indices.size, nrows)),),
        (BLOCK,),
        (
            *(indptr, indices, np.int32(nrows), np.int32(ncols), np.int64(indices.size)),  # IN
            faults,  # OUT
        ),
    )
    unordered, outside, entries = faults.tolist()
    is_canonical = 0 <= entries <= indices.size and unordered == outside == 0
    return int(entries) if is_canonical else None


def find(
    indptr: cp.ndarray, indices: cp.ndarray, major: cp.ndarray | None, minor: cp.ndarray
) -> tuple[cp.ndarray, cp.ndarray]:
    """The place of each pair in canonical CSR with entries, and which pairs are there.

    Without `major` there is a pair for each row.
    """
    minor = cp.ascontiguousarray(minor, dtype=np.int64)
    every_row = np.uintp(0)
    rows = every_row if major is None else cp.ascontiguousarray(major, dtype=np.int64)
    places, are_there = cp.empty(minor.size, np.int64), cp.empty(minor.size, bool)
    kernels_for(SOURCE, Number=indptr.dtype)["find_pairs<{Number}>"](
        (blocks_for(minor.size),),
        (BLOCK,),
        (
            *(indptr, indices, np.int64(indptr.size - 1), np.int64(indices.size)),  # IN
            *(rows, minor, np.int64(minor.size)),  # IN
            *(places, are_there),  # OUT
        ),
    )
    return places, are_there
