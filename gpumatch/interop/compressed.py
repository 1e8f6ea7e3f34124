"""Sparse matrices as arrays that are checked: the one way in, for patterns and for values.

A caller's arrays may hold anything, and kernels index by what they hold. So no kernel, of SciPy or
of ours, reads them before `compressed_of` or `edges_of` has checked them:

    indptr        nmajor + 1 integers from 0 on, which do not decrease, and end inside ``indices``
    indices       integers from 0 to nminor - 1
    rows, cols    integers inside the shape, as many of the one as of the other
    data          one dimension, and a number for each entry

Another thread may change the caller's arrays at any time. So on the host, offsets and indices are
copied first. The copies are checked, and used from then on. No kernel indexes by values, so these
are shared here. On a device all arrays are shared.

Repeated entries are summed as int64, float64 or complex128. Integers are exact then, and a sum that
does not fit is refused.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from gpumatch.dispatch.by_device import LARGE, canonical_size, csr_for
from gpumatch.interop.tensors import is_tensor, source_of
from gpumatch.numeric.arrays import any_true, array_module, as_array, exactly, index_array
from gpumatch.running.kept_memory import kept_empty

__all__ = [
    "Compressed",
    "Edges",
    "check_one_home",
    "checked_shape",
    "compressed_of",
    "edges_of",
    "held",
]

Csr = tuple[Any, Any]  # (indptr, indices)

TOO_LARGE = 2**62
"""No sum of integers may be so large."""

_MAX_VERTICES = 2**31 - 2**20  # a step of all threads of a GPU beyond the last stays an int32
_MAX_INT32_OFFSET = 2**31 - 1


class Compressed(NamedTuple):
    """CSR arrays, or CSC arrays, of a matrix.

    Attributes
    ----------
    indptr, indices : integer arrays
        Checked. On the host they are nobody else's.
    data : array or None
        The values as given. None if there are none.
    shape : (int, int)
        Rows and columns of the matrix.
    is_by_rows : bool
        Whether this is CSR.
    is_canonical : bool
        Whether the indices of each row (column) increase strictly: sorted, none repeated.
    """

    indptr: Any
    indices: Any
    data: Any
    shape: tuple[int, int]
    is_by_rows: bool
    is_canonical: bool

    def pattern(self) -> Csr:
        """Offsets and indices in canonical form, by rows or by columns as they are."""
        if self.is_canonical:
            return held(self.indptr, self.indices)
        tools = csr_for(self.indices)
        return tools.canonical(self.indptr, self.indices, self.indptr.size - 1)

    def values(self) -> Any:
        """The data, checked to fit the entries, without spare room behind them."""
        return _checked_data(self.data, self.indices)

    def edges(self) -> Edges:
        """The rows and columns of the entries in their order."""
        major = csr_for(self.indices).owners(self.indptr, self.indices)
        rows, cols = (major, self.indices) if self.is_by_rows else (self.indices, major)
        return Edges(rows, cols, self.values(), self.shape)

    def canonical(self) -> tuple[Any, Any, Any]:
        """Offsets, columns and values of canonical CSR, repeated entries summed.

        The values may be the caller's own array.

        Raises
        ------
        TypeError, ValueError
            If the data does not fit the entries, or a sum is too large.
        """
        if self.is_canonical and self.is_by_rows:
            return *held(self.indptr, self.indices), self.values()
        if not isinstance(self.indices, np.ndarray):
            return self.edges().canonical()
        from scipy.sparse import csc_array, csr_array

        values = self.values()
        form = csr_array if self.is_by_rows else csc_array
        matrix = form((_carried(values), self.indices, self.indptr), shape=self.shape)
        found = _in_order(matrix.tocsr(copy=True), values, is_known=self.is_canonical)
        return self.edges().summed() if found is None else found


class Edges(NamedTuple):
    """The entries of a matrix in any order.

    Attributes
    ----------
    rows, cols : integer arrays
        Checked. On the host they are nobody else's.
    data : array or None
        The values as given. None if there are none.
    shape : (int, int)
    """

    rows: Any
    cols: Any
    data: Any
    shape: tuple[int, int]

    @property
    def is_by_rows(self) -> bool:
        """True if `pattern` is by rows."""
        return True

    def pattern(self) -> Csr:
        """Offsets and columns of canonical CSR."""
        return csr_for(self.rows).from_edges(self.rows, self.cols, self.shape[0])

    def values(self) -> Any:
        """The data, checked to fit the entries."""
        return _checked_data(self.data, self.rows)

    def canonical(self) -> tuple[Any, Any, Any]:
        """As of `Compressed`."""
        if not isinstance(self.rows, np.ndarray):
            return self.summed()
        from scipy.sparse import coo_array

        values = self.values()
        matrix = coo_array((_carried(values), (self.rows, self.cols)), shape=self.shape)
        matrix.has_canonical_format = True  # else `tocsr` sums repeated entries in their type
        found = _in_order(matrix.tocsr(), values)
        return self.summed() if found is None else found

    def summed(self) -> tuple[Any, Any, Any]:
        """CSR by a sort that keeps the order of repeated entries, on host or device."""
        values, xp = self.values(), array_module(self.rows)
        indptr, indices = self.pattern()
        order = xp.lexsort(xp.stack([self.cols, self.rows]))
        if indices.size == values.size:
            return indptr, indices, values[order]
        rows, cols = self.rows[order], self.cols[order]
        is_first = xp.ones(order.size, bool)
        is_first[1:] = (rows[1:] != rows[:-1]) | (cols[1:] != cols[:-1])
        places = xp.cumsum(is_first) - 1
        return indptr, indices, _sums(xp, values[order], places, indices.size)


def compressed_of(source: Any, *, valued: bool = False, threads: int = 1) -> Compressed | Edges:
    """The entries of a sparse matrix, checked.

    Parameters
    ----------
    source : sparse array or matrix of SciPy or cupyx, torch tensor, or tuple
        The tuple is ``(indptr, indices, data, shape)``, or that without data.
    valued : bool
        Whether a tuple must have data.
    threads : int
        So many look at large arrays on the host.

    Raises
    ------
    TypeError, ValueError
        If it is no such thing, or its arrays do not describe a matrix.
    """
    if is_tensor(source):
        source = source_of(source)
    if isinstance(source, tuple):
        if len(source) == 4 or (len(source) == 3 and not valued):
            indptr, indices, *data = source[:-1]
            shape = checked_shape(source[-1])
            return _compressed(indptr, indices, data[0] if data else None, shape, threads=threads)
        forms = "(indptr, indices, data, shape)"
        raise TypeError(
            f"a tuple must be {forms if valued else f'(indptr, indices, shape) or {forms}'}; "
            f"got {len(source)} parts"
        )
    if source.ndim != 2:
        raise ValueError(f"the sparse array must have 2 dimensions; got {source.ndim}")
    shape = checked_shape(source.shape)
    if source.format in ("csr", "csc"):
        arrays = source.indptr, source.indices, source.data
        return _compressed(*arrays, shape, is_by_rows=source.format == "csr", threads=threads)
    if source.format == "coo":
        return edges_of(source.row, source.col, shape, source.data)
    return compressed_of(_UNFOLD.get(source.format, _unfolded)(source), threads=threads)


def edges_of(rows: Any, cols: Any, shape: tuple[int, int], data: Any = None) -> Edges:
    """Entries by their rows and columns, checked; the shape is checked already."""
    rows, cols = index_array(rows, "rows"), index_array(cols, "cols")
    check_one_home(rows, cols, "rows and cols")
    if rows.size != cols.size:
        raise ValueError(f"rows and cols must have one length; got {rows.size} and {cols.size}")
    rows, cols = _checked_indices(rows, shape[0], "rows"), _checked_indices(cols, shape[1], "cols")
    return Edges(rows, cols, data, shape)


def held(indptr: Any, indices: Any) -> Csr:
    """Canonical arrays in the types that a graph has."""
    offsets = np.int32 if indices.size <= _MAX_INT32_OFFSET else np.int64
    return exactly(indptr, offsets), exactly(indices, np.int32)


# -- checks ----------------------------------------------------------------------------------------


def checked_shape(shape: Any) -> tuple[int, int]:
    try:
        nrows, ncols = (operator.index(n) for n in shape)
    except (TypeError, ValueError) as exc:
        raise type(exc)(f"shape must be two integers (rows, columns); got {shape!r}") from None
    if nrows < 0 or ncols < 0:
        raise ValueError(f"shape must not be negative; got {(nrows, ncols)}")
    if max(nrows, ncols) > _MAX_VERTICES:
        raise ValueError(
            f"shape {(nrows, ncols)}: at most {_MAX_VERTICES} rows and columns are held"
        )
    return nrows, ncols


def check_one_home(one: Any, other: Any, names: str) -> None:
    if isinstance(one, np.ndarray) != isinstance(other, np.ndarray):
        raise ValueError(f"{names} must live on one device; got one on the host")


def _compressed(
    indptr: Any,
    indices: Any,
    data: Any,
    shape: tuple[int, int],
    *,
    is_by_rows: bool = True,
    threads: int = 1,
) -> Compressed:
    """CSR or CSC arrays, checked; the shape is checked already."""
    indptr, indices = index_array(indptr, "indptr"), index_array(indices, "indices")
    check_one_home(indptr, indices, "indptr and indices")
    major, minor = shape if is_by_rows else shape[::-1]
    is_on_host = isinstance(indices, np.ndarray)
    if is_on_host:
        indptr = indptr.copy()
    else:
        size = canonical_size(indptr, indices, (major, minor), threads)
        if size is not None:
            return Compressed(indptr, indices[:size], data, shape, is_by_rows, True)
    indices = _check_offsets(indptr, indices, major, "nrows" if is_by_rows else "ncols")
    if is_on_host and indptr.dtype not in (np.int32, np.int64):
        indptr = indptr.astype(np.int64)
    if is_on_host and indices.dtype == np.int32:  # one look at the copy may tell all
        indices = _own(indices)
        if _is_canonical_at_once(indptr, indices, (major, minor), threads):
            return Compressed(indptr, indices, data, shape, is_by_rows, True)
        _check_range(indices, minor, "indices")
    else:
        indices = _checked_indices(indices, minor, "indices")
    is_canonical = _is_canonical(indptr, indices, (major, minor), threads)
    return Compressed(indptr, indices, data, shape, is_by_rows, is_canonical)


def _check_offsets(indptr: Any, indices: Any, count: int, name: str) -> Any:
    """Check indptr; return the entries it covers, without spare room behind them."""
    if indptr.size != count + 1:
        raise ValueError(f"indptr must have {name} + 1 = {count + 1} entries; got {indptr.size}")
    first, last = int(indptr[0]), int(indptr[-1])
    if first != 0:
        raise ValueError(f"indptr[0] must be 0; got {first}")
    if last > indices.size:
        raise ValueError(f"indptr[-1] is {last}, but there are only {indices.size} indices")
    if count and any_true(indptr[1:] < indptr[:-1]):
        raise ValueError("indptr must not decrease")
    return indices[:last]


def _checked_indices(indices: Any, bound: int, name: str) -> Any:
    """The indices, checked to be in range; on the host an int32 copy of them.

    What is checked is the copy, because the caller's may change meanwhile. Those of another type
    are checked before that as well, because they may not fit int32.
    """
    if not isinstance(indices, np.ndarray):
        _check_range(indices, bound, name)
        return indices
    if indices.dtype != np.int32:
        _check_range(indices, bound, name)
    own = _own(indices)
    _check_range(own, bound, name)
    return own


def _own(indices: Any) -> Any:
    own = kept_empty(indices.size, np.int32)
    np.copyto(own, indices, casting="unsafe")
    return own


def _is_canonical_at_once(
    indptr: Any, indices: Any, shape: tuple[int, int], threads: int = 1
) -> bool:
    """True if a kernel for many entries on the host says that arrays are canonical and in range."""
    is_large = isinstance(indices, np.ndarray) and indices.size >= LARGE
    return is_large and canonical_size(indptr, indices, shape, threads) is not None


def _is_canonical(indptr: Any, indices: Any, shape: tuple[int, int], threads: int = 1) -> bool:
    """True if arrays that are in range are canonical."""
    if _is_canonical_at_once(indptr, indices, shape, threads):
        return True
    return csr_for(indices).is_canonical(indptr, indices)


def _check_range(indices: Any, bound: int, name: str) -> None:
    if indices.size == 0:
        return
    if isinstance(indices, np.ndarray) and int(_unsigned(indices).max()) < bound:
        return
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or high >= bound:
        raise ValueError(f"{name}: {low if low < 0 else high} lies outside [0, {bound})")


def _unsigned(indices: np.ndarray) -> np.ndarray:
    """A view in which negative integers are greater than all others."""
    return indices.view(indices.dtype.str.replace("i", "u"))


def _checked_data(data: Any, indices: Any) -> Any:
    """A value for each of the indices; what is behind them is cut off."""
    values = as_array(data, "data")
    if values.ndim != 1:
        raise ValueError(f"data must have 1 dimension; got {values.ndim}")
    if values.size < indices.size:
        raise ValueError(f"data must have {indices.size} entries; got {values.size}")
    check_one_home(values, indices, "data and indices")
    return values[: indices.size]


# -- other formats ---------------------------------------------------------------------------------


def _unfolded(matrix: Any) -> Any:
    return matrix.tocsr()


def _unfolded_blocks(matrix: Any) -> Any:
    """CSR of a matrix in BSR, whose arrays are checked first."""
    from scipy.sparse import bsr_array

    blocks = matrix.data
    if blocks.ndim != 3 or 0 in blocks.shape[1:]:
        raise ValueError(f"data must have 3 dimensions in BSR; got shape {blocks.shape}")
    shape = tuple(length // side for length, side in zip(matrix.shape, blocks.shape[1:]))
    outer = _compressed(matrix.indptr, matrix.indices, None, shape)
    count = outer.indices.size
    if blocks.shape[0] < count:
        raise ValueError(f"data must have {count} blocks; got {blocks.shape[0]}")
    arrays = blocks[:count], outer.indices, outer.indptr
    return bsr_array(arrays, shape=matrix.shape).tocsr()


def _unfolded_diagonals(matrix: Any) -> Any:
    """CSR of a matrix in DIA, whose arrays are checked first."""
    if matrix.data.ndim != 2 or matrix.data.shape[0] != matrix.offsets.size:
        raise ValueError(
            f"data must have a row for each of {matrix.offsets.size} offsets in DIA; "
            f"got shape {matrix.data.shape}"
        )
    return matrix.tocsr()


def _unfolded_lists(matrix: Any) -> Any:
    """CSR of a matrix in LIL, whose lists are checked first."""
    for row, (columns, values) in enumerate(zip(matrix.rows, matrix.data)):
        if len(columns) != len(values):
            raise ValueError(
                f"row {row} has {len(columns)} columns and {len(values)} values in LIL"
            )
    return matrix.tocsr()


_UNFOLD = {"bsr": _unfolded_blocks, "dia": _unfolded_diagonals, "lil": _unfolded_lists}


# -- sums ----------------------------------------------------------------------------------------


def _carried(values: Any) -> Any:
    """What a matrix of SciPy carries for the values: themselves, or the place of each."""
    if values.dtype.isnative and values.dtype.char in _CARRIED:
        return values
    return np.arange(values.size, dtype=np.int32 if values.size < 2**31 else np.int64)


def _in_order(matrix: Any, values: Any, *, is_known: bool = False) -> tuple[Any, Any, Any] | None:
    """The arrays of a matrix in CSR, which is sorted here; None if entries are repeated.

    `is_known` tells that none is.
    """
    matrix.sort_indices()
    indptr, indices = matrix.indptr, matrix.indices
    if not (is_known or _is_canonical(indptr, indices, matrix.shape)):
        return None
    carries_values = values.dtype.isnative and values.dtype.char in _CARRIED
    return *held(indptr, indices), matrix.data if carries_values else values[matrix.data]


_CARRIED = "?bBhHiIlLqQfdgFDG"


def _sums(xp: Any, values: Any, places: Any, count: int) -> Any:
    """The sums of the values that have the same place.

    Raises
    ------
    ValueError
        If a sum of integers is 2**62 or more, or one of finite numbers is not finite.
    """
    if values.dtype.kind == "c":
        real, imag = (_float_sums(xp, part, places, count) for part in (values.real, values.imag))
        return real + 1j * imag
    rounded = _float_sums(xp, values, places, count)
    if values.dtype.kind not in "biu":
        return rounded
    largest = int(abs(rounded).max())
    if largest >= TOO_LARGE:
        raise ValueError(
            f"integers up to {largest} are too large: repeated entries must add up to less than "
            "2**62"
        )
    # CuPy adds to uint64, not to int64. Both wrap in the same way, and here back again.
    sums = xp.zeros(count, np.int64)
    xp.add.at(sums.view(np.uint64), places, values.astype(np.int64).view(np.uint64))
    return sums


def _float_sums(xp: Any, values: Any, places: Any, count: int) -> Any:
    sums = xp.zeros(count)
    with np.errstate(invalid="ignore", over="ignore"):
        xp.add.at(sums, places, values.astype(np.float64))
    too_large = ~xp.isfinite(sums)
    too_large[places[~xp.isfinite(values)]] = False
    if any_true(too_large):
        raise ValueError("repeated entries add up to more than float64 holds")
    return sums
