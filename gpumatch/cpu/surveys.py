"""Check large CSR arrays in one look, by several threads; NumPy takes three looks, by one."""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.compiled import vector_kernel
from gpumatch.cpu.numba_tools.views import view
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.numeric.arrays import for_kernels

__all__ = ["are_canonical", "canonical_size"]

BLOCK = 2**14
"""Rows that a thread checks between two looks at Python."""

_OFFSETS = np.dtype(np.int32), np.dtype(np.int64)


def canonical_size(
    indptr: np.ndarray, indices: np.ndarray, shape: tuple[int, int], threads: int
) -> int | None:
    """The entries of arrays that are canonical CSR of this shape; None if they are anything else.

    Arrays of other types than a graph has, or with gaps, are not looked at.
    """
    nrows, ncols = shape
    is_known = indptr.dtype in _OFFSETS and indices.dtype == np.int32
    is_whole = indptr.flags.c_contiguous and indices.flags.c_contiguous
    if not (is_known and is_whole and indptr.size == nrows + 1 and indptr[0] == 0):
        return None
    size = int(indptr[-1])
    if size > indices.size or (indptr[1:] < indptr[:-1]).any():
        return None
    indptr, indices = for_kernels(indptr), for_kernels(indices)
    count = -(-nrows // BLOCK)
    are_right = np.zeros(count, bool)

    def look(block: int) -> None:
        first = block * BLOCK
        are_right[block] = are_canonical(indptr, indices, ncols, first, min(first + BLOCK, nrows))

    with Workers(threads, size) as workers:
        workers.deal(look, count)
    return size if are_right.all() else None


@vector_kernel
def are_canonical(indptr, indices, ncols, first, last):
    """True if the columns of rows first to last are inside, and those of each row increase.

    They may fall only from a row to the next. So there are as many falls in all as at the begins
    of rows, which takes no branch.
    """
    begin, count = np.intp(indptr[first]), np.intp(indptr[last] - indptr[first])
    here, bound = view(indices, begin, count), np.int32(ncols)
    outside = falls = np.int32(0)
    for place in range(count):
        outside |= np.int32(here[place] < 0) | np.int32(here[place] >= bound)
    before, after = view(indices, begin, count - 1), view(indices, begin + 1, count - 1)
    for place in range(count - 1):
        falls += np.int32(after[place] <= before[place])
    for row in range(first, last):
        start = indptr[row]
        is_fall = (start > begin) & (start < indptr[row + 1])
        falls -= np.int32(is_fall & (indices[start - (not is_fall)] <= indices[start - 1]))
    return outside == 0 and falls == 0
