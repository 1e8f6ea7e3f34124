"""Check a maximum product matching and its scaling, by code that algorithms do not share.

With the factors d of rows and e of columns, these are checked, in logarithms:

1. the mate arrays name each other, and every pair is an entry that is not zero,
2. no entry |d_i a_ij e_j| is above 1, and those of pairs are 1, but for a rounding of 2**-40 of the
   largest logarithm of an entry or a factor,
3. if all rows or all columns are matched, no other such matching has a much larger product.

Theorem, for 3. Let r and s be any numbers, for the logarithms of factors of rows and columns. Give
each column that is unmatched the largest s of those that are matched; if columns are the smaller
side, the same for rows. Make r and s fair (`gpumatch.certificates.slacks`) for the costs
-log|a_ij|, and let B be their sum over the matched vertices, less what was moved into the others.
Then the logarithm of the product of any matching of the whole smaller side is at most -B.

Proof. Let t be the largest s of a matched column. Add t to every r, and subtract it from every s.
The prices are as fair as before, those of columns are at most 0, and of unmatched columns 0. So B
is the bound of a full assignment in `gpumatch.certificates.assignment`. ∎

Logarithms are rounded. Those of NumPy, log and log1p, are taken to be within 4 units in the last
place, e, as it says of its own. Large integers are rounded before. Those of complex numbers x + iy,
y <= x, are

    log x + log1p(y**2 / x**2) / 2,

wrong by e (1.13 L + 0.83) at most, if their sum is L or -L: the first term by e (L + 0.35), the
second by 0.48 e, and the sum by e L / 8. That is below 2 e L from L = `NEAR` on. Below, where the
two may cancel, log1p(d) / 2 with d = x**2 + y**2 - 1 is taken instead. Squares are exact as two
floats each, so d is right within a unit in the last place, e / 4 (`slacks.sum_of`). As |log1p(d)|
is below 2.1, it is wrong by at most 3.4 times as much of itself, and by e: by less than 2 e too.
Each cost is taken at the end of its interval that proves less. So bound and gap hold for the
entries as they are.

The product is accepted as the greatest if the gap is at most

    ULPS * 2**-52 * (pairs) * max(N, min(D, 4 (pairs + 1) M)),

with D the largest logarithm of a factor of a matched vertex, M that of a matched entry, and N that
of any entry. No claim changes N, which is below 800 for any numbers, and other logarithms than
those of pairs are rounded as well. Factors that no maximum product needs, further from 1 than
4 (pairs + 2) N, are refused, so that what 2 allows stays small.

If the matrix is structurally singular, 1 and 2 show that the scaling is what it is meant to be, and
that no matching of the same rows and columns has a larger product, but not that there are no more
pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpumatch.bipartite import BipartiteGraph
from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    ClaimedProduct,
    check_claim_of_size,
    check_numbers,
    check_pairs,
    python_number,
)
from gpumatch.certificates.slacks import (
    Prices,
    Shortfalls,
    at_least,
    most,
    nearest,
    sum_in_units,
    sum_of,
)
from gpumatch.numeric.arrays import array_of, first_true

ULPS = 32  # allowed for each pair, of the largest logarithm in use; half of them are those of logs
ROUNDING = 2.0**-40  # of the largest logarithm, by which a scaled entry may be off
LOG_ERROR = 2.0**-50  # of a logarithm: 4 units in the last place
NEAR = 1.04  # logarithms of complex numbers whose two terms may cancel
TINY, LEAST_ERROR = 2.0**-480, 2.0**-1068  # squares of smaller numbers are wrong by no more


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
        What the logarithm of their product is at most; if all rows or all columns are matched, that
        of any other such matching too.
    edges : int
        Entries that were checked.
    largest : float
        The largest scaled entry.
    gap : float
        How much larger the logarithm of another product may be, at most.
    allowance : float
        The gap up to which a product is accepted as the greatest.
    """

    largest: float
    gap: float
    allowance: float

    def __str__(self) -> str:
        return (
            f"scaled: {self.size} entries of 1 with the product exp({self.bound:.6g}), and none "
            f"above {self.largest:.15g}, checked on {self.edges} entries"
        )


def verify_product(A: Any, result: ClaimedProduct) -> ProductCertificate:
    """Check a maximum product matching and its scaling; see `gpumatch.verify`."""
    if result.row_log_scale is None or result.col_log_scale is None:
        raise CertificateError("there is no scaling, which would prove the product greatest")
    entries = _Entries(A)
    claim = _Claim(entries, result)
    claim.check_pairs()
    claim.check_scaling()
    return claim.certificate()


class _Entries:
    """Rows, columns and logarithms of the sizes of the entries that are not zero.

    `logs` are wrong by at most `errors`.
    """

    def __init__(self, A: Any) -> None:
        rows, cols, data, self.shape = _triples(A)
        rows, cols, data = _summed(rows, cols, data)
        if not np.isfinite(data).all():
            raise CertificateError("an entry is not finite, so there is no greatest product")
        kept = data != 0
        self.rows, self.cols = rows[kept], cols[kept]
        self.logs, self.errors = _logarithms(data[kept])

    @property
    def greatest(self) -> np.ndarray:
        """What the logarithms are at most."""
        above = np.nextafter(self.logs + self.errors, math.inf)
        return np.where(self.errors > 0, above, self.logs)

    @property
    def least(self) -> np.ndarray:
        """What they are at least."""
        below = np.nextafter(self.logs - self.errors, -math.inf)
        return np.where(self.errors > 0, below, self.logs)


class _Claim:
    """A result and the entries it is about."""

    def __init__(self, entries: _Entries, result: Any) -> None:
        self.entries, self.result = entries, result
        shape = entries.shape
        self.scales = []
        for name, length in zip(("row_log_scale", "col_log_scale"), shape):
            scale = array_of(np, getattr(result, name))
            if scale.shape != (length,) or scale.dtype.kind not in "iuf":
                raise CertificateError(f"{name} must be {length} finite numbers")
            if not np.isfinite(scale).all():
                raise CertificateError(f"{name} must be {length} finite numbers")
            self.scales.append(check_numbers(name, scale, length).astype(np.float64))
        is_mc64 = not hasattr(result, "row_to_col")
        mates = self._on_diagonal() if is_mc64 else (result.row_to_col, result.col_to_row)
        row_to_col, col_to_row = (array_of(np, own) for own in mates)
        self.mates = check_pairs(row_to_col, col_to_row, shape)

    def _on_diagonal(self) -> tuple[np.ndarray, np.ndarray]:
        """The mates of what `mc64` gives: entries on the diagonal of the permuted matrix."""
        entries, (nrows, ncols) = self.entries, self.entries.shape
        places = []
        for name, length in (("row_perm", nrows), ("col_perm", ncols)):
            order = array_of(np, getattr(self.result, name))
            is_order = order.shape == (length,) and order.dtype.kind in "iu"
            if not is_order or (np.sort(order) != np.arange(length)).any():
                raise CertificateError(f"{name} is no permutation of 0 to {length - 1}")
            places.append(np.argsort(order))
        found = places[0][entries.rows] == places[1][entries.cols]
        is_scaled = not (entries.logs[found].any() or (entries.logs > 0).any())
        if not is_scaled and not any(scale.any() for scale in self.scales):
            raise TypeError(
                "an MC64 without factors, as of jobs 1 to 4, brings no proof: verify what "
                "maximum_matching or assign gives"
            )
        row_to_col, col_to_row = np.full(nrows, -1), np.full(ncols, -1)
        row_to_col[entries.rows[found]] = entries.cols[found]
        col_to_row[entries.cols[found]] = entries.rows[found]
        rank = python_number("the rank", self.result.rank)
        if rank != np.count_nonzero(found):
            raise CertificateError(
                f"{np.count_nonzero(found)} entries lie on the diagonal, but the rank is {rank}"
            )
        return row_to_col, col_to_row

    def check_pairs(self) -> None:
        """Point 1."""
        entries, row_to_col = self.entries, self.mates[0]
        self.is_pair = row_to_col[entries.rows] == entries.cols
        missing = row_to_col >= 0
        missing[entries.rows[self.is_pair]] = False
        row = first_true(missing)
        if row is not None:
            raise CertificateError(
                f"row {row} is matched to column {row_to_col[row]}, but there is no entry"
            )
        self.size = int(np.count_nonzero(self.is_pair))
        check_claim_of_size(self.result, self.size)
        if hasattr(self.result, "log_product"):
            claimed = python_number("log_product", self.result.log_product)
            logs, errors = entries.logs[self.is_pair], entries.errors[self.is_pair]
            total = nearest(sum_in_units(logs))
            room = 2 * nearest(sum_in_units(errors)) + 2.0**-50 * abs(total)
            if not abs(claimed - total) <= room:
                raise CertificateError(
                    f"the logarithms add up to {total}, but log_product is {claimed}"
                )

    def check_scaling(self) -> None:
        """Point 2."""
        entries, (row_scale, col_scale) = self.entries, self.scales
        largest = 4 * (self.size + 2) * most(entries.logs)
        for side, scale in zip(("row", "column"), self.scales):
            stray = first_true(abs(scale) > largest)
            if stray is not None:
                raise CertificateError(
                    f"the scale of {side} {stray} is exp({scale[stray]:.6g}): no maximum product "
                    f"needs one beyond exp({largest:.6g})"
                )
        of_row, of_col = row_scale[entries.rows], col_scale[entries.cols]
        scaled = entries.logs + of_row + of_col
        room = ROUNDING * max(most(entries.logs), *map(most, self.scales))
        above = first_true(scaled > room)
        if above is not None:
            raise CertificateError(f"{self._name(above)} is above 1 when scaled")
        apart = first_true(self.is_pair & (abs(scaled) > room))
        if apart is not None:
            raise CertificateError(
                f"the matched {self._name(apart)[4:]} is exp({scaled[apart]:.3g}) when scaled, "
                "not 1"
            )
        self.largest = float(np.exp(scaled.max(initial=-np.inf)))

    def certificate(self) -> ProductCertificate:
        """Point 3."""
        entries = self.entries
        is_full = self.size == min(entries.shape)
        rows, cols, costs = entries.rows, entries.cols, -entries.greatest
        fitted = [_fitted(scale, mates) for scale, mates in zip(self.scales, self.mates)]
        prices = Prices([fitted[0]], [fitted[1]], most(costs), is_integer=False)
        counted = None if is_full else (self.mates[0][rows] >= 0) & (self.mates[1][cols] >= 0)
        short = Shortfalls(entries.shape)
        short.add(self.mates[0] >= 0, *prices.below(rows, cols, costs, counted))
        least = sum(sum_in_units(scale[mates >= 0]) for scale, mates in zip(fitted, self.mates))
        least -= sum(map(sum_in_units, short.lowered))
        paid = -entries.least[self.is_pair]
        gap = at_least(sum_in_units(paid) - least)
        allowance = self._allowance()
        if gap > allowance:
            says = f"the product can grow by exp({gap:.3g})"
            if short.worst is not None:
                _, row, col = short.worst
                says = (
                    f"the entry of row {row} and column {col} would be better than "
                    f"that of a pair: {says}"
                )
            raise CertificateError(says)
        bound = at_least(-least)
        return ProductCertificate(
            "product", self.size, bound, rows.size, self.largest, gap, allowance
        )

    def _allowance(self) -> float:
        entries = self.entries
        largest, of_pairs = most(entries.logs), most(entries.logs[self.is_pair])
        matched = (scale[mates >= 0] for scale, mates in zip(self.scales, self.mates))
        dual = max(map(most, matched))
        scale = max(largest, min(dual, 4 * (self.size + 1) * of_pairs))
        return ULPS * math.ulp(1.0) * self.size * scale

    def _name(self, at: int) -> str:
        return f"the entry of row {self.entries.rows[at]} and column {self.entries.cols[at]}"


def _fitted(scale: np.ndarray, mates: np.ndarray) -> np.ndarray:
    """The factors, those of unmatched vertices as large as the largest of matched ones."""
    is_matched = mates >= 0
    largest = scale[is_matched].max() if is_matched.any() else 0.0
    return np.where(is_matched, scale, largest)


# -- the entries -----------------------------------------------------------------------------------


def _triples(A: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:
    """Rows, columns and values of what is stored, repeated entries too."""
    if isinstance(A, tuple):
        if len(A) != 4:
            raise TypeError(f"a tuple must be (indptr, indices, data, shape); got {len(A)} parts")
        return _of_csr(*A)
    if not hasattr(A, "tocsr"):
        if isinstance(A, np.ma.MaskedArray):
            raise TypeError("A is a masked array: fill it, with 0 for what is no entry")
        matrix = array_of(np, A)
        if matrix.ndim != 2:
            raise ValueError(f"A must have 2 dimensions; got {matrix.ndim}")
        rows, cols = matrix.nonzero()
        return rows, cols, matrix[rows, cols], matrix.shape
    matrix = A.get() if hasattr(A, "get") else A
    if matrix.ndim != 2:
        raise ValueError(f"A must have 2 dimensions; got {matrix.ndim}")
    if matrix.format == "csr":
        return _of_csr(matrix.indptr, matrix.indices, matrix.data, matrix.shape)
    if matrix.format == "csc":
        parts = matrix.indptr, matrix.indices, matrix.data, matrix.shape[::-1]
        cols, rows, data, shape = _of_csr(*parts)
        return rows, cols, data, shape[::-1]
    matrix = matrix.tocoo()
    for part, length in zip((matrix.row, matrix.col), matrix.shape):
        if ((part < 0) | (part >= length)).any():
            raise ValueError("A: a row or column number is out of range")
    return matrix.row, matrix.col, matrix.data, matrix.shape


def _of_csr(
    indptr: Any, indices: Any, data: Any, shape: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:
    """Rows, columns and values of arrays in CSR, which `BipartiteGraph` checks."""
    graph = BipartiteGraph((indptr, indices, shape))
    starts, cols, values = (array_of(np, part) for part in (indptr, indices, data))
    count = int(starts[-1])
    if values.ndim != 1 or values.size < count:
        raise ValueError(f"data must have {count} entries; got {values.shape}")
    rows = np.repeat(np.arange(graph.nrows), np.diff(starts.astype(np.int64)))
    return rows, cols[:count], values[:count], graph.shape


def _summed(
    rows: np.ndarray, cols: np.ndarray, data: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The entries by row and column, repeated ones summed, in a type in which no sum wraps."""
    if data.dtype.kind not in "biufc":
        raise TypeError(f"A must hold numbers; got dtype {data.dtype}")
    if data.dtype.kind == "f":
        data = data.astype(np.float64)
    elif data.dtype.kind == "c":
        data = data.astype(np.complex128)
    rows, cols = rows.astype(np.int64), cols.astype(np.int64)
    order = np.lexsort((cols, rows))
    rows, cols, data = rows[order], cols[order], data[order]
    is_first = np.ones(rows.size, bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (cols[1:] != cols[:-1])
    if is_first.all():
        return rows, cols, data
    starts = is_first.nonzero()[0]
    if data.dtype.kind in "biu":
        fits = most(data) * int(np.diff(starts, append=rows.size).max()) < 2**63
        data = data.astype(np.int64 if fits else object)
    with np.errstate(over="ignore", invalid="ignore"):  # inf and NaN are refused
        sums = np.add.reduceat(data, starts)
    return rows[starts], cols[starts], sums.astype(np.float64) if sums.dtype == object else sums


def _logarithms(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of magnitudes, none of which is 0, and what these are wrong by at most."""
    if data.dtype.kind == "c":
        return _of_complex(data)
    wide = data.astype(np.float64)  # int64 is rounded, also its least, which has no magnitude
    logs = np.log(abs(wide))
    rounding = 2.0**-52 if data.dtype.kind != "f" and most(wide) > 2**53 else 0.0
    return logs, LOG_ERROR * abs(logs) + rounding


def _of_complex(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of complex numbers, with errors that the text above explains."""
    small, large = np.sort([abs(data.real), abs(data.imag)], axis=0)
    with np.errstate(under="ignore"):  # no sum of squares is out of range
        logs = np.log(large) + np.log1p((small / large) ** 2) / 2
        near = abs(logs) < NEAR
        parts = [part for value in (large[near], small[near]) for part in _square(value)]
        logs[near] = np.log1p(sum_of([*parts, np.full(parts[0].size, -1.0)])) / 2
    errors = 2 * LOG_ERROR * abs(logs)
    errors[near & (small > 0) & (small < TINY)] += LEAST_ERROR
    return logs, errors


def _square(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two floats whose sum is the square (Veltkamp and Dekker), if none is too small."""
    squares, spread = values * values, values * (2.0**27 + 1)
    high = spread - (spread - values)
    low = values - high
    return ((high * high - squares) + 2 * high * low) + low * low, squares
