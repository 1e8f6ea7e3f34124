"""True if canonical CSR is an undirected graph: both entries of each edge, with one weight.

The rows are read in their order. Each entry (u, v) above the diagonal must find its twin, which is
the next entry of row v that no earlier row has found. When row u itself is read, all of its entries
below the diagonal must have been found. So only one entry of each edge looks at another row.

Encodings
    cursor[v]    the next entry of row v whose twin has not been read
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpumatch.cpu.matching.sides import blocks
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.prefetch import prefetch

__all__ = ["Symmetry", "symmetry_of"]

_AHEAD = 16  # entries, from one step of fetching to the next
_STRAY = -1


class Symmetry(NamedTuple):
    """True if a matrix is symmetric, and how many of the entries read are on its diagonal."""

    is_symmetric: bool
    loops: int


def symmetry_of(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None = None
) -> Symmetry:
    """Look at canonical CSR of a square matrix, without weights if only the pattern counts.

    O(n + nnz). It ends at the first entry without a twin.
    """
    cursor, loops = indptr[:-1].copy(), 0
    for first, last in blocks(indptr):
        found = _find_twins(
            first, last, indptr, indices, weights,  # IN
            cursor,  # IN, OUT
        )  # fmt: skip
        if found == _STRAY:
            return Symmetry(False, loops)
        loops += found
    return Symmetry(True, loops)


@kernel
def _find_twins(first, last, indptr, indices, weights, cursor):
    """Read a range of rows; return the number of loops, or _STRAY at an entry without a twin."""
    loops, final = 0, len(indices) - 1
    for u in range(first, last):
        e, end = cursor[u], indptr[u + 1]
        if e < end and indices[e] == u:
            loops += 1
            e += 1
        if e < end and indices[e] < u:
            return _STRAY
        for k in range(e, end):
            prefetch(cursor, np.int64(indices[min(k + 2 * _AHEAD, final)]))
            prefetch(indices, np.int64(cursor[np.int64(indices[min(k + _AHEAD, final)])]))
            v = np.int64(indices[k])
            twin = cursor[v]
            if twin == indptr[v + 1] or indices[twin] != u:
                return _STRAY
            if weights is not None and weights[twin] != weights[k]:
                return _STRAY
            cursor[v] = twin + 1
    return loops
