"""Parsers of formats for sparse matrices and arrays.

SciPy and NumPy parse; the checks here are those that they lack. What a header promises is compared
with the bytes that there are before anything is allocated.

References
----------
R. Boisvert, R. Pozo, K. Remington: The Matrix Market exchange formats. NISTIR 5935, 1996.
"""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse
from scipy.sparse import csr_array

from gpumatch.io.tables import shortened

__all__ = [
    "canonical_csr",
    "check_npy_header",
    "parse_arrays",
    "parse_harwell_boeing",
    "parse_matrix_market",
    "parse_npy",
    "parse_npz",
]


def parse_matrix_market(content: bytes, max_bytes: int) -> Any:
    # SciPy's reader looks for a line's end as C's strchr does, and crashes at a NUL.
    if b"\0" in content:
        raise ValueError("has NUL bytes, so it is not text")
    if not content.endswith(b"\n"):
        content += b"\n"
    rows, columns, entries, layout, field, symmetry = scipy.io.mminfo(io.BytesIO(content))
    check_shape(rows, columns, max_bytes)
    if field == "integer":
        _check_integers(content)
    if symmetry != "general" and rows != columns:
        raise ValueError(f"{symmetry}, but not square: {rows} x {columns}")
    # An entry is a line of 4 bytes or more ("1 1", newline), in an array of 2 or more. A
    # skew-symmetric array holds half of the entries, without the diagonal.
    least = 4 * entries - 1 if layout == "coordinate" else entries - rows
    if least > len(content):
        raise ValueError(f"promises {entries} entries in {len(content)} bytes")
    if layout == "array" and entries == 0:  # SciPy's reader divides by zero
        return csr_array((rows, columns))
    return scipy.io.mmread(io.BytesIO(content), spmatrix=False)


def _check_integers(content: bytes) -> None:
    """Check that no number has a point or an exponent, because SciPy's reader ignores these."""
    start = 0
    while content.startswith(b"%", start):
        start = content.index(b"\n", start) + 1
    for mark in (b".", b"e", b"E"):
        at = content.find(mark, start)
        if at >= 0:
            near = content[max(start, at - 20) : at], content[at : at + 20]
            number = near[0].split()[-1:] + near[1].split()[:1]
            text = b"".join(number).decode("latin-1")
            raise ValueError(f"says that its values are integers, but has {shortened(text)}")


def parse_npz(content: bytes, max_bytes: int) -> Any:
    _check_archive(content, max_bytes, _NPZ_KINDS)
    return scipy.sparse.load_npz(io.BytesIO(content))


_NPZ_KINDS = {
    "format": "SU",
    "_is_array": "b",
    "data": "biufc",
    **dict.fromkeys(("shape", "indptr", "indices", "row", "col", "coords", "offsets"), "iu"),
}


def parse_arrays(content: bytes, max_bytes: int) -> dict[str, np.ndarray]:
    """Arrays of numbers, by their names."""
    _check_archive(content, max_bytes, None)
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)


def _check_archive(content: bytes, max_bytes: int, kinds: dict[str, str] | None) -> None:
    """Check that an archive's arrays are of the kinds that these names may have, and not larger."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > max_bytes:
            raise ValueError(f"more than max_bytes = {max_bytes} bytes of content")
        for member in members:
            name = member.filename.removesuffix(".npy")
            allowed = "biufc" if kinds is None else kinds.get(name, "")
            with archive.open(member) as file:
                check_npy_header(file, f"array {name!r}", allowed, member.file_size)


def parse_npy(content: bytes, max_bytes: int) -> np.ndarray:
    file = io.BytesIO(content)
    check_npy_header(file, "an array", "biufc", len(content))
    file.seek(0)
    return np.load(file, allow_pickle=False)


def check_npy_header(file: Any, what: str, kinds: str, size: int) -> None:
    """Check that an array is of one of these kinds and as large as its header says."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    if dtype.kind not in kinds:
        raise ValueError(f"{what} of type {dtype} does not belong there")
    if file.tell() + dtype.itemsize * math.prod(shape) != size:
        raise ValueError(f"{what} promises shape {shape}, but its size is another")


def parse_harwell_boeing(content: bytes, max_bytes: int) -> Any:
    with warnings.catch_warnings():
        # This is how NumPy says that a field was not a number and the rest was not read.
        warnings.filterwarnings("error", "string or file could not be read")
        return scipy.io.hb_read(io.StringIO(content.decode("latin-1"), newline=None))


def canonical_csr(matrix: Any, max_bytes: int) -> csr_array:
    if matrix.ndim != 2:
        raise ValueError(f"{matrix.ndim} dimensions, expected 2")
    rows, columns = matrix.shape
    check_shape(rows, columns, max_bytes)
    if scipy.sparse.issparse(matrix) and matrix.format in ("csr", "csc", "bsr"):
        if (matrix.indptr[:-1] > matrix.indptr[1:]).any():  # SciPy's check wraps around
            raise ValueError("indptr decreases")
        matrix.check_format(full_check=True)
    graph = csr_array(matrix)
    graph.sum_duplicates()
    return graph


def check_shape(rows: int, columns: int, max_bytes: int) -> None:
    if 8 * (rows + columns) > max_bytes:
        raise ValueError(
            f"index pointers of {rows} x {columns} take more than max_bytes = {max_bytes}"
        )
