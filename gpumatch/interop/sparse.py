"""Sparse matrices of SciPy and cupyx, made from arrays where these are."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["csr_of", "labels_of"]


def csr_of(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    """The matrix of these CSR arrays: SciPy's `csr_array`, or the `csr_matrix` of cupyx.

    Both share the arrays. A library whose indices and offsets must be of one type copies the
    indices if only the offsets are int64.

    Raises
    ------
    ValueError
        If the installed cupyx counts in int32 and there are more entries than that; if cupyx has
        no matrices of the data's type.
    """
    if isinstance(indptr, np.ndarray):
        from scipy.sparse import csr_array

        return csr_array((data, indices, indptr), shape=shape)
    from cupyx.scipy.sparse import csr_matrix

    matrix = csr_matrix((data, indices, indptr), shape=shape)
    if matrix.indptr.dtype.itemsize < indptr.dtype.itemsize:
        raise ValueError(
            f"{data.size} entries are more than this cupyx holds in a matrix: its indices are "
            f"{matrix.indptr.dtype}"
        )
    return matrix


def labels_of(matrix: Any) -> tuple[list[Any] | None, list[Any] | None]:
    """What a matrix calls its rows and its columns, as one of `gpumatch.io.read` may; else None."""
    return getattr(matrix, "row_labels", None), getattr(matrix, "col_labels", None)
