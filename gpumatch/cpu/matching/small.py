"""Maximum matchings of small graphs in one compiled call, which checks and copies the arrays.

The start is the cheap matching: each row takes its first unmatched column. The searches are those
of `one_by_one`, which end if they seem to read many edges. The engine can go on from their
matching.

    whole    memory: offsets, indices, parents and a queue
    seen     as in `one_by_one`; all False
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.cpu.matching.one_by_one import match_free_rows
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.views import view
from gpumatch.cpu.own_csr import copy_offsets, int32_of

__all__ = ["solve"]

MOST = 2**18
"""Edges, and vertices, up to which one call is worth a try."""
MALFORMED, SPENT, DONE = range(3)
READINGS, READ = 16, 2**17
"""How many times searches may read all edges, and how many edges; all edges once in any case."""


def solve(indptr: Any, indices: Any, major: int, minor: int) -> tuple[np.ndarray, bool] | None:
    """Match the vertices of CSR arrays.

    Returns
    -------
    mates, done : int32 array, bool
        The mates of the major side, then of the minor side; whether the matching is maximum. None
        if the arrays are not those of a small graph, whatever is wrong. Indices may be in any
        order, and repeated.
    """
    indptr, indices = int32_of(indptr), int32_of(indices)
    if indptr is None or indices is None:
        return None
    size = indices.size
    if max(major, minor, size) > MOST or indptr.size != major + 1:
        return None
    mates = np.empty(major + minor, np.int32)
    whole = np.empty(2 * major + minor + size + 2, np.int32)
    most = max(min(READINGS * size, READ), size)
    end = _solve(
        indptr, indices, minor, most, whole, np.zeros(minor, np.bool_),  # IN
        mates,  # OUT
    )  # fmt: skip
    return None if end == MALFORMED else (mates, end == DONE)


@kernel
def _solve(indptr, indices, minor, most, whole, seen, mates):
    """Match the vertices, and return how it ended."""
    major, size = indptr.size - 1, indices.size
    offsets, cols = view(whole, 0, major + 1), view(whole, major + 1, size)
    parent = view(whole, major + 1 + size, minor)
    queue = view(whole, major + 1 + size + minor, major + 1)
    row_to_col, col_to_row = view(mates, 0, major), view(mates, major, minor)
    if not copy_offsets(indptr, size, offsets):
        return MALFORMED
    size = offsets[major]
    is_fit = True
    for entry in range(size):
        col = indices[entry]
        is_fit &= (col >= 0) & (col < minor)
        cols[entry] = col
    if not is_fit:
        return MALFORMED
    row_to_col[:] = -1
    col_to_row[:] = -1
    for row in range(major):
        for entry in range(offsets[row], offsets[row + 1]):
            if col_to_row[cols[entry]] < 0:
                row_to_col[row] = cols[entry]
                col_to_row[cols[entry]] = row
                break
    _, _, _, _, is_done = match_free_rows(
        offsets, cols, most, row_to_col, col_to_row, seen, parent, queue
    )  # fmt: skip
    return DONE if is_done else SPENT
