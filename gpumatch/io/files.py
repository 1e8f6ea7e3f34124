"""Sparse matrices and costs from files.

`read` gives the stored entries of a file as a CSR array in canonical form: column indices sorted
within each row, duplicate entries added up, stored zeros kept. `read_costs` gives dense matrices as
well. A file is not trusted: `gpumatch.io.contents` limits what is read, and each parser checks it.
"""

from __future__ import annotations

import errno
import functools
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array

from gpumatch.io.canonical import canonical_csr
from gpumatch.io.contents import (
    MAX_BYTES,
    compression,
    content_of,
    content_of_stream,
    naming,
    suffix_of,
)
from gpumatch.io.formats import (
    check_npy_header,
    parse_harwell_boeing,
    parse_npy,
    parse_npz,
)
from gpumatch.io.matlab import parse_matlab
from gpumatch.io.matrix_market import parse_matrix_market
from gpumatch.io.tables import (
    has_commas,
    has_values,
    names_values,
    parse_edges,
    parse_table,
)

__all__ = ["read", "read_costs"]


Source = str | os.PathLike[str] | BinaryIO


def read(source: Source, *, max_bytes: int = MAX_BYTES) -> csr_array:
    """Read a sparse matrix.

    Parameters
    ----------
    source
        The path of a file, whose ending says the format: Matrix Market (.mtx, .mm),
        `scipy.sparse.save_npz` (.npz), a dense array (.npy), MATLAB up to 7.2 (.mat),
        Harwell-Boeing as far as SciPy reads it (.hb, .rb, .rua, .rra, .rsa), edge lists (.txt,
        .el, .edges, .tsv, .csv). Each may also be compressed (.gz, .bz2, .xz). NAME.tar.gz is an
        archive of the SuiteSparse collection, of which NAME/NAME.mtx is read.

        Or a file open for reading bytes, such as ``sys.stdin.buffer``. It is read to its end. Its
        first bytes say the format; whatever has no mark of its own is an edge list.

        Each line of an edge list has a row and a column, counted from 0, and perhaps a value. It
        may end in a comment that starts with # or %. Fields are separated by commas or else by
        blanks. The largest row and column give the shape. The first line may be a header. If it
        has the names row (or source, from, u), column (target, to, v) and perhaps value (weight,
        cost), these say which fields are read.

        Of a .mat, the matrix is ``Problem.A`` as in the collection, or else the only matrix.
    max_bytes
        The most bytes that the file's text may take once decompressed, and also the most that the
        index pointers of the shape it declares may take.

    Returns
    -------
    csr_array
        The stored entries, zeros included; of a dense file (array, DIA) the nonzeros. Symmetric,
        skew-symmetric and Hermitian files are read in full. Values are those of the file, or 1.

    Raises
    ------
    ValueError
        The file is malformed, truncated, too large or of an unknown format.
    FileNotFoundError
        There is no such file.
    """
    with naming(_name_of(source)):
        suffix, content = _opened(source, max_bytes)
        if suffix not in _PARSERS:
            raise ValueError(f"unknown format {suffix!r}, known are {', '.join(_PARSERS)}")
        return canonical_csr(_PARSERS[suffix](content(), max_bytes), max_bytes)


def _parse_text(content: bytes, max_bytes: int) -> Any:
    if content.startswith(b"%%MatrixMarket"):
        return parse_matrix_market(content, max_bytes)
    edges = parse_edges(content)
    if edges.nnz == 0:
        raise ValueError("has no edges")
    return edges


_LISTS = (".txt", ".el", ".edges", ".tsv", ".csv")
_PARSERS: dict[str, Callable[[bytes, int], Any]] = {
    **dict.fromkeys((".mtx", ".mm", ".tar.gz"), parse_matrix_market),
    ".npz": parse_npz,
    ".npy": parse_npy,
    ".mat": parse_matlab,
    **dict.fromkeys((".hb", ".rb", ".rua", ".rra", ".rsa"), parse_harwell_boeing),
    **dict.fromkeys(_LISTS, _parse_text),
}
_MARKS = {b"%%MatrixMarket": ".mtx", b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz", b"MATLAB": ".mat"}
"""What files begin with; text may begin with anything."""


def _name_of(source: Source) -> str:
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    return str(getattr(source, "name", "the open file"))


def _opened(source: Source, max_bytes: int) -> tuple[str, Callable[[], bytes]]:
    """The ending that says the format, and what gives the content."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.is_dir():  # whatever its name ends in
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        return suffix_of(path), functools.partial(content_of, path, max_bytes)
    content = content_of_stream(source, max_bytes)
    known = (suffix for mark, suffix in _MARKS.items() if content.startswith(mark))
    suffix = next(known, None) or (".csv" if has_commas(content) else ".txt")
    return suffix, lambda: content


def read_costs(source: Source, *, max_bytes: int = MAX_BYTES) -> Any:
    """Read the costs of an assignment.

    Parameters
    ----------
    source
        A path, whose ending says the format: a NumPy array (.npy), lines of numbers with commas
        between them (.csv), Matrix Market (.mtx, .mm), MATLAB (.mat), an edge list with values as
        for `read` (.txt, .el, .edges, .tsv; .csv below a header that names row, column and value),
        or another sparse matrix as for `read` (.npz, .rb, ...); each may also be compressed (.gz,
        .bz2, .xz). Or a file open for reading bytes, as for `read`; text with commas between its
        fields is a .csv. In text, blank lines and what follows a # are ignored. The numbers are
        integers if all are written as integers and fit 64 bits.
    max_bytes
        As for `read`; an array that is not compressed may be larger.

    Returns
    -------
    ndarray or csr_array
        Of .npy, .csv, dense MATLAB and Matrix Market's arrays, a dense matrix; of all others the
        stored entries, zeros included.

    Raises
    ------
    ValueError
        The file is malformed, truncated, too large or of an unknown format; for text, the message
        names the line.
    FileNotFoundError
        There is no such file.
    """
    with naming(_name_of(source)):
        suffix, content = _opened(source, max_bytes)
        if suffix == ".npy" and isinstance(source, str | os.PathLike):
            return _read_npy(Path(source), max_bytes)
        if suffix not in _COST_PARSERS:
            raise ValueError(f"unknown format {suffix!r} of costs, known are {_COST_FORMATS}")
        matrix = _COST_PARSERS[suffix](content(), max_bytes)
        return canonical_csr(matrix, max_bytes) if scipy.sparse.issparse(matrix) else matrix


def _parse_listed_costs(content: bytes, max_bytes: int) -> Any:
    if content.startswith(b"%%MatrixMarket"):
        return parse_matrix_market(content, max_bytes)
    if not has_values(content):
        raise ValueError("its lines have no value: expected row, column and cost")
    return _parse_text(content, max_bytes)


def _parse_csv_costs(content: bytes, max_bytes: int) -> Any:
    return parse_edges(content) if names_values(content) else parse_table(content)


_COST_PARSERS = {
    **{suffix: parse for suffix, parse in _PARSERS.items() if suffix != ".tar.gz"},
    **dict.fromkeys(_LISTS, _parse_listed_costs),
    ".csv": _parse_csv_costs,
}
_COST_FORMATS = ", ".join(_COST_PARSERS)


def _read_npy(path: Path, max_bytes: int) -> np.ndarray:
    compressed = compression(path) != ""
    with io.BytesIO(content_of(path, max_bytes)) if compressed else open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        check_npy_header(file, "an array", "biuf", size)
        file.seek(0)
        return np.load(file, allow_pickle=False)
