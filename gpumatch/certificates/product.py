"""Check a maximum product matching and its scaling, by code that algorithms do not share.

With the factors d of rows and e of columns, these are checked, in logarithms and up to rounding:

1. the mate arrays name each other, and every pair is an entry that is not zero,
2. no entry |d_i a_ij e_j| is above 1, and those of pairs are 1,
3. if all rows or all columns are matched: no entry is above 1 if each row or column that is left
   over is given the largest factor of those that are not.

So the product of any as many entries, no two in a row or a column, is at most the product of all
1/d_i and 1/e_j of matched rows and columns, which is that of the pairs. If the matrix is
structurally singular, 1 and 2 show that the scaling is what it is meant to be, but not that there
are no more pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpumatch.arrays import array_of, first_true
from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    ClaimedProduct,
    check_mates,
    check_partners,
)

_ROUNDING = 1e-12  # of the largest logarithm, or of 1


@dataclass(frozen=True)
class ProductCertificate(Certificate):
    """The proof of a maximum product matching, checked.

    Attributes
    ----------
    problem : str
        ``"product"``.
    size : int
        Matched entries.
    bound : float
        What the logarithm of their product is at most.
    edges : int
        Entries that were checked.
    largest : float
        The largest scaled entry.
    """

    largest: float

    def __str__(self) -> str:
        return (
            f"scaled: {self.size} entries of 1 with the product exp({self.bound:.6g}), and none "
            f"above {self.largest:.15g}, checked on {self.edges} entries"
        )


def verify_product(A: Any, result: ClaimedProduct) -> ProductCertificate:
    """Check a maximum product matching and its scaling; see `gpumatch.verify`."""
    if result.row_log_scale is None:
        raise CertificateError("there is no scaling, which would prove the product greatest")
    rows, cols, logs, shape = _entries(A)
    mates = [array_of(np, part) for part in (result.row_to_col, result.col_to_row)]
    scales = [array_of(np, part) for part in (result.row_log_scale, result.col_log_scale)]
    for side, own, length, partners in zip(("row", "column"), mates, shape, shape[::-1]):
        check_mates(side, own, length, partners)
    check_partners("row", *mates)
    check_partners("column", *mates[::-1])
    for name, scale, length in zip(("row_log_scale", "col_log_scale"), scales, shape):
        if scale.shape != (length,) or not np.isfinite(scale).all():
            raise CertificateError(f"{name} must be {length} finite numbers")
    is_pair = mates[0][rows] == cols
    _check_pairs(rows[is_pair], mates[0])
    room = _ROUNDING * max(1.0, *(float(abs(part).max(initial=0)) for part in (logs, *scales)))
    scaled = logs + scales[0][rows] + scales[1][cols]
    _check_at_most_one(rows, cols, scaled, room, "is above 1 when scaled")
    apart = first_true(is_pair & (abs(scaled) > room))
    if apart is not None:
        raise CertificateError(
            f"the matched entry of row {rows[apart]} and column {cols[apart]} is "
            f"exp({scaled[apart]:.3g}) when scaled, not 1"
        )
    size = int(is_pair.sum())
    if size == min(shape):
        fitted = logs + _fitted(scales[0], mates[0])[rows] + _fitted(scales[1], mates[1])[cols]
        _check_at_most_one(
            rows, cols, fitted, room, "would be better than that of a pair: the product can grow"
        )
    bound = -sum(float(scale[own >= 0].sum()) for scale, own in zip(scales, mates))
    largest = float(np.exp(scaled.max(initial=-np.inf)))
    return ProductCertificate("product", size, bound, rows.size, largest)


def _entries(A: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:
    """Rows, columns and logarithms of the sizes of the entries that are not zero."""
    from scipy.sparse import coo_array, csr_array

    if isinstance(A, tuple):
        indptr, indices, data = (array_of(np, part) for part in A[:3])
        matrix = csr_array((data, indices, indptr), shape=A[3])
    elif hasattr(A, "get") and hasattr(A, "tocsr"):
        matrix = csr_array(A.get())
    else:
        matrix = A if hasattr(A, "tocsr") else array_of(np, A)
    entries = coo_array(matrix).tocsr().tocoo()  # repeated entries are summed
    kept = entries.data != 0
    rows, cols, data = entries.row[kept], entries.col[kept], entries.data[kept]
    with np.errstate(divide="ignore"):
        if data.dtype.kind == "c":  # in halves, so that no sum of squares is out of range
            parts = np.sort([abs(data.real), abs(data.imag)], axis=0).astype(np.float64)
            logs = np.log(parts[1]) + np.log(np.hypot(1.0, parts[0] / parts[1]))
        else:
            logs = np.log(abs(data.astype(np.float64)))
    return rows, cols, logs, matrix.shape


def _check_pairs(found: np.ndarray, row_to_col: np.ndarray) -> None:
    missing = row_to_col >= 0
    missing[found] = False
    row = first_true(missing)
    if row is not None:
        raise CertificateError(
            f"row {row} is matched to column {row_to_col[row]}, but there is no entry"
        )


def _fitted(scale: np.ndarray, mates: np.ndarray) -> np.ndarray:
    """The factors, those of unmatched vertices as large as the largest of matched ones."""
    is_matched = mates >= 0
    return np.where(is_matched, scale, scale[is_matched].max(initial=-np.inf))


def _check_at_most_one(
    rows: np.ndarray, cols: np.ndarray, scaled: np.ndarray, room: float, what: str
) -> None:
    above = first_true(scaled > room)
    if above is not None:
        raise CertificateError(f"the entry of row {rows[above]} and column {cols[above]} {what}")
