"""The values of a sparse matrix, as the functions that look at them need these."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.arrays import as_array, first_true, is_sparse

__all__ = ["log_magnitudes", "magnitudes", "usable_csr"]


def usable_csr(A: Any) -> Any:
    """A matrix as a canonical `csr_array` without zeros; the caller's is left as it is.

    Raises
    ------
    TypeError
        If it is no matrix of numbers.
    ValueError
        If a value is not finite, or the matrix is on a device.
    """
    from scipy.sparse import csr_array

    if isinstance(A, tuple):
        if len(A) != 4:
            raise TypeError(f"a tuple must be (indptr, indices, data, shape); got {len(A)} parts")
        indptr, indices, data = (_on_host(part) for part in A[:3])
        matrix = csr_array((data, indices, indptr), shape=A[3], copy=True)
    elif is_sparse(A):
        _on_host(A.data if hasattr(A, "data") else A)
        matrix = csr_array(A, copy=True)
    else:
        dense = _on_host(as_array(A, "A"))
        if dense.dtype.kind not in "biufc":
            raise TypeError(f"the values of A must be numbers; got dtype {dense.dtype}")
        if dense.ndim != 2:
            raise ValueError(f"A must have 2 dimensions; got {dense.ndim}")
        matrix = csr_array(dense)
    if matrix.ndim != 2:
        raise ValueError(f"A must have 2 dimensions; got {matrix.ndim}")
    matrix.sum_duplicates()
    stray = first_true(~np.isfinite(matrix.data))
    if stray is not None:
        row = int(np.searchsorted(matrix.indptr, stray, side="right")) - 1
        raise ValueError(
            f"the values of A must be finite; that of row {row} and column "
            f"{int(matrix.indices[stray])} is {matrix.data[stray]}"
        )
    matrix.eliminate_zeros()
    return matrix


def magnitudes(values: np.ndarray) -> np.ndarray:
    """The absolute values in float64, or exactly in int64 if they are integers that fit."""
    if values.dtype.kind == "b" or (values.dtype.kind in "iu" and values.dtype.itemsize < 8):
        return abs(values.astype(np.int64))
    return abs(values).astype(np.float64)


def log_magnitudes(values: np.ndarray) -> np.ndarray:
    """The logarithms of the absolute values, none of which is 0, in float64.

    Those of complex numbers too large or too small for an absolute value are found as well.
    """
    if values.dtype.kind == "c":
        parts = abs(values.real), abs(values.imag)
        large, small = np.maximum(*parts), np.minimum(*parts)
        logs = np.log(large) + np.log1p((small / large) ** 2) / 2
    else:
        as_float = values if values.dtype.kind == "f" else values.astype(np.float64)
        if as_float.dtype.itemsize < 8:
            as_float = as_float.astype(np.float64)
        logs = np.log(abs(as_float))
    return logs.astype(np.float64)


def _on_host(array: Any) -> np.ndarray:
    if not isinstance(array, np.ndarray) and hasattr(array, "__cuda_array_interface__"):
        raise ValueError("A is on a device: this runs on 'cpu' only, so pass a copy on the host")
    return np.asarray(array)
