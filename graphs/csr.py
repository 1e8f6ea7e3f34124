"""Edges to canonical CSR pattern matrices: int32 indices, sorted, no duplicates, boolean data."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array

INDEX = np.int32


def pattern(rows: ArrayLike, columns: ArrayLike, shape: tuple[int, int]) -> csr_array:
    """Return the matrix with an entry at each (row, column); duplicates are merged."""
    rows = np.asarray(rows, INDEX).ravel()
    columns = np.asarray(columns, INDEX).ravel()
    matrix = coo_array((np.ones(rows.size, bool), (rows, columns)), shape=shape).tocsr()
    matrix.sum_duplicates()
    return matrix


def adjacency(u: ArrayLike, v: ArrayLike, n: int) -> csr_array:
    """Return the symmetric adjacency matrix of the edges {u, v}; loops are dropped."""
    u = np.asarray(u, INDEX).ravel()
    v = np.asarray(v, INDEX).ravel()
    proper = u != v
    u, v = u[proper], v[proper]
    return pattern(np.concatenate([u, v]), np.concatenate([v, u]), (n, n))
