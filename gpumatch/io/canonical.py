"""What is read from any file in one form: CSR, in which each place has one entry at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.sparse
from scipy.sparse import coo_array, csr_array

__all__ = ["Duplicates", "canonical_csr", "check_shape"]

Duplicates = Literal["error", "sum", "min", "max", "last"]
"""What becomes of entries of one place."""


def canonical_csr(
    matrix: Any,
    max_bytes: int,
    duplicates: str = "sum",
    repeat: Callable[[int, int], str] | None = None,
) -> csr_array:
    """The matrix in CSR, with sorted columns and one entry a place.

    Entries of one place are added up exactly, in 64 bits, or `duplicates` says what becomes of
    them. What is said of an error gives `repeat`, of the numbers of two such entries.
    """
    if matrix.ndim != 2:
        raise ValueError(f"{matrix.ndim} dimensions, expected 2")
    rows, columns = matrix.shape
    check_shape(rows, columns, max_bytes)
    if not scipy.sparse.issparse(matrix):
        return csr_array(matrix)
    if matrix.format in ("csr", "csc", "bsr"):
        if (matrix.indptr[:-1] > matrix.indptr[1:]).any():  # SciPy's check wraps around
            raise ValueError("indptr decreases")
        matrix.check_format(full_check=True)
        if matrix.has_canonical_format:
            return csr_array(matrix)
    if matrix.format == "dia":
        return csr_array(matrix)
    entries = coo_array(matrix)
    graph = csr_array(entries)
    graph.sum_duplicates()
    if graph.nnz == entries.data.size or (duplicates == "sum" and _is_wide(entries.data)):
        return graph
    return _merged(entries, duplicates, repeat or _repeat)


def _is_wide(values: np.ndarray) -> bool:
    """True if SciPy, which adds in the type of the values, adds these exactly."""
    if values.dtype.kind in "iu":
        most = max(abs(int(values.min())), int(values.max()))
        return most * values.size <= np.iinfo(values.dtype).max
    return values.dtype in (np.float64, np.complex128)


def _repeat(again: int, before: int) -> str:
    return (
        f"entry {again + 1} has the row and the column of entry {before + 1}: "
        "duplicates (--duplicates) can be sum, min, max or last"
    )


def _merged(entries: coo_array, duplicates: str, repeat: Callable[[int, int], str]) -> csr_array:
    """The matrix with one entry for all of a place."""
    rows, cols = entries.coords
    if duplicates == "error":
        again = first_repeated(rows, cols)
        if again is not None:
            raise ValueError(repeat(*again))
    order = np.lexsort((cols, rows))  # stable: entries of one place stay in their order
    rows, cols, values = rows[order], cols[order], entries.data[order]
    is_first = np.ones(order.size, bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (cols[1:] != cols[:-1])
    starts = is_first.nonzero()[0]
    rows, cols = rows[starts], cols[starts]
    if duplicates == "last":
        merged = values[np.append(starts[1:], order.size) - 1]
    elif duplicates == "sum":
        merged = _sums(values, starts)
    elif values.dtype.kind == "c":
        raise ValueError(f"duplicates={duplicates!r} has no meaning for complex numbers")
    else:
        merged = (np.minimum if duplicates == "min" else np.maximum).reduceat(values, starts)
    return csr_array(coo_array((merged, (rows, cols)), shape=entries.shape))


def _sums(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The sums from each start to the next, exact if the values are integers."""
    if values.dtype.kind not in "biu":
        return np.add.reduceat(values.astype(np.result_type(values, np.float64)), starts)
    dtype = np.uint64 if values.dtype == np.uint64 else np.int64
    values = values.astype(dtype)
    if np.add.reduceat(abs(values.astype(np.float64)), starts).max() < 2**62:
        return np.add.reduceat(values, starts)
    sums = np.add.reduceat(values.astype(object), starts)
    try:
        return sums.astype(dtype)
    except OverflowError:
        limits = np.iinfo(dtype)
        most = next(number for number in sums if not limits.min <= number <= limits.max)
        raise ValueError(
            f"entries of one place add up to {most}, which is too large for {np.dtype(dtype)}"
        ) from None


def check_shape(rows: int, columns: int, max_bytes: int) -> None:
    if 8 * (rows + columns) > max_bytes:
        raise ValueError(
            f"index pointers of {rows} x {columns} take more than max_bytes = {max_bytes}"
        )


def first_repeated(rows: np.ndarray, cols: np.ndarray) -> tuple[int, int] | None:
    """The numbers of the first entry whose place an earlier one has, and of that one."""
    order = np.lexsort((cols, rows))  # stable: entries of one place stay in their order
    rows, cols = rows[order], cols[order]
    is_again = (rows[1:] == rows[:-1]) & (cols[1:] == cols[:-1])
    if not is_again.any():
        return None
    again = order[1:][is_again]
    which = int(again.argmin())
    return int(again[which]), int(order[:-1][is_again][which])
