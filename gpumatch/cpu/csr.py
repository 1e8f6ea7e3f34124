"""Order and transpose CSR patterns on the host, by SciPy's compiled routines.

Encodings as in `gpumatch.bipartite`: int32 vertices, offsets int32 unless there are 2**31 entries.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from gpumatch.numeric.arrays import exactly

Csr = tuple[np.ndarray, np.ndarray]

BLOCK = 2**16
"""Indices that are looked at together, so that what is compared stays in a cache."""


def is_canonical(indptr: np.ndarray, indices: np.ndarray, block: int = BLOCK) -> bool:
    """True if each row's indices increase strictly: sorted, no duplicates."""
    for begin in range(0, indices.size - 1, block):
        end = min(begin + block, indices.size - 1)
        falls = indices[begin + 1 : end + 1] <= indices[begin:end]
        ends = np.array([begin + 1, end + 1], indptr.dtype)
        first, last = indptr.searchsorted(ends).tolist()
        falls[np.subtract(indptr[first:last], begin + 1, dtype=np.intp)] = False  # another row
        if np.count_nonzero(falls):  # faster than any()
            return False
    return True


def canonical(indptr: np.ndarray, indices: np.ndarray, nrows: int) -> Csr:
    """Sort each row and merge its duplicates."""
    ncols = int(indices.max()) + 1 if indices.size else 0
    matrix = _pattern(indptr, indices, (nrows, ncols), copy=True)
    matrix.sum_duplicates()
    return _arrays(matrix)


def from_edges(rows: np.ndarray, cols: np.ndarray, nrows: int) -> Csr:
    """CSR of an edge list in any order, repeated edges merged."""
    ncols = int(cols.max()) + 1 if cols.size else 0
    edges = (np.ones(rows.size, np.int8), (rows, cols))
    matrix = sp.coo_array(edges, shape=(nrows, ncols)).tocsr()
    return _arrays(matrix)


def transpose(indptr: np.ndarray, indices: np.ndarray, ncols: int) -> Csr:
    """The other direction: CSR of the transposed pattern."""
    return _arrays(_pattern(indptr, indices, (indptr.size - 1, ncols), copy=False).tocsc())


def transpose_values(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, ncols: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSR of the transposed matrix, with the values of its entries."""
    matrix = sp.csr_array((values, indices, indptr), shape=(indptr.size - 1, ncols)).tocsc()
    return *_arrays(matrix), matrix.data


def part(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    rows: np.ndarray,
    cols: np.ndarray,
    ncols: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The entries in these rows and columns, numbered in their order, with their values."""
    matrix = sp.csr_array((values, indices, indptr), shape=(indptr.size - 1, ncols))
    matrix = matrix[rows][:, cols]
    matrix.sort_indices()
    return *_arrays(matrix), matrix.data


def owners(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The row of each entry."""
    return np.repeat(np.arange(indptr.size - 1, dtype=np.int32), np.diff(indptr))


def places_in(indptr: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Where the entries of these rows are, row by row."""
    begin, count = indptr[rows], indptr[rows + 1] - indptr[rows]
    starts = np.cumsum(count) - count
    return np.repeat(begin - starts, count) + np.arange(count.sum())


def greatest(vertices: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """The greatest float64 that is with each of so many vertices; -inf if none is."""
    found = np.full(count, -np.inf)
    np.maximum.at(found, vertices, values)
    return found


def _pattern(
    indptr: np.ndarray, indices: np.ndarray, shape: tuple[int, int], *, copy: bool
) -> sp.csr_array:
    data = np.ones(indices.size, np.int8)
    return sp.csr_array((data, indices, indptr), shape=shape, copy=copy)


def _arrays(matrix: sp.csr_array | sp.csc_array) -> Csr:
    offsets = np.int32 if matrix.nnz < 2**31 else np.int64
    return exactly(matrix.indptr, offsets), exactly(matrix.indices, np.int32)
