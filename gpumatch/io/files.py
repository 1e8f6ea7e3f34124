"""Sparse matrices and costs from files.

`read` gives the stored entries of a file as a CSR array in canonical form: column indices sorted
within each row, one entry a place, stored zeros kept. `read_costs` gives dense matrices as
well. A file is not trusted: `gpumatch.io.contents` limits what is read, and each parser checks it.
"""

from __future__ import annotations

import errno
import functools
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, get_args

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array

from gpumatch.io.canonical import Duplicates, canonical_csr
from gpumatch.io.contents import (
    MAX_BYTES,
    compression,
    content_of,
    content_of_stream,
    naming,
    suffix_of,
)
from gpumatch.io.edges import Header, is_ambiguous, parse_edges
from gpumatch.io.fields import Text, is_number
from gpumatch.io.formats import (
    check_npy_header,
    parse_harwell_boeing,
    parse_npy,
    parse_npz,
)
from gpumatch.io.labelled import LabelledArray
from gpumatch.io.matlab import parse_matlab
from gpumatch.io.matrix_market import parse_matrix_market
from gpumatch.io.tables import parse_table

__all__ = ["Duplicates", "Format", "read", "read_costs"]


Source = str | os.PathLike[str] | BinaryIO
Format = Literal["auto", "list", "table"]
"""What lines of text are: a list of edges, or a table of costs."""


def read(
    source: Source,
    *,
    format: Format = "auto",
    duplicates: Duplicates | None = None,
    max_bytes: int = MAX_BYTES,
) -> csr_array:
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
        first bytes say the format; whatever has no mark of its own is text, with commas or
        semicolons a .csv.

        Each line of an edge list has a row and a column, and perhaps a value. Fields are separated
        by commas, by semicolons, by tabs (.tsv, .csv), or else by blanks, and may be quoted. A line
        that begins with # or % is a comment.

        The first line may be a header. Rows and columns that it calls row (or i) and column (or
        col, j) are numbers that count from 0. Under any other names, such as source and target,
        they are labels, numbers too: the matrix has a row for each label, in the order in which
        they first occur, and keeps the labels. Without a header, integers count from 0, and the
        largest give the shape; text is a label.

        Of a .mat, the matrix is ``Problem.A`` as in the collection, or else the only matrix.
    format
        Whether text is a list of edges, or a table of costs, of which the nonzeros are read.
        ``"auto"``: a list. It is an error if a .csv has three numbers in each line and no header
        that says what they are.
    duplicates
        What becomes of entries of one row and column: ``"error"`` names them, ``"sum"``, ``"min"``,
        ``"max"``, and ``"last"`` keeps the last. By default, a list that names a pair twice, with
        values, is an error; without values that is one edge; and in all other formats the entries
        are summed. Sums of integers are exact.
    max_bytes
        The most bytes that the file's text may take once decompressed, and also the most that the
        index pointers of the shape it declares may take.

    Returns
    -------
    csr_array
        The stored entries, zeros included; of a dense file (array, DIA) the nonzeros. Symmetric,
        skew-symmetric and Hermitian files are read in full. Values are those of the file, or 1. If
        rows and columns have labels, these are its attributes ``row_labels`` and ``col_labels``.

    Raises
    ------
    ValueError
        The file is malformed, truncated, too large or of an unknown format; for text, the message
        names the line.
    FileNotFoundError
        There is no such file.
    """
    return _read(source, _How(_PARSERS, "", format, duplicates, max_bytes))


class _How(NamedTuple):
    """How a file is read."""

    parsers: dict[str, Callable[[bytes, int], Any]]
    what: str
    format: str
    duplicates: str | None
    max_bytes: int

    @property
    def is_of_costs(self) -> bool:
        return self.parsers is _COST_PARSERS


def _read(source: Source, how: _How) -> Any:
    """The canonical matrix of the file, or, if it is of costs and dense, that."""
    for name, value, kinds in (
        ("format", how.format, get_args(Format)),
        ("duplicates", how.duplicates, (None, *get_args(Duplicates))),
    ):
        if value not in kinds:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, kinds))}; got {value!r}")
    with naming(_name_of(source)):
        suffix, content = _opened(source, how.max_bytes)
        if suffix in _LISTS:
            return _parse_text(content(), suffix, how)
        if suffix not in how.parsers:
            known = ", ".join((*how.parsers, *_LISTS))
            raise ValueError(f"unknown format {suffix!r}{how.what}, known are {known}")
        if how.format != "auto":
            raise ValueError(f"format={how.format!r} is for {', '.join(_LISTS)} only")
        if how.is_of_costs and suffix == ".npy" and isinstance(source, str | os.PathLike):
            return _read_npy(Path(source), how.max_bytes)
        return _canonical(how.parsers[suffix](content(), how.max_bytes), how)


def _canonical(matrix: Any, how: _How) -> Any:
    if how.is_of_costs and not scipy.sparse.issparse(matrix):
        return matrix
    return canonical_csr(matrix, how.max_bytes, how.duplicates or "sum")


def _parse_text(content: bytes, suffix: str, how: _How) -> Any:
    """The matrix in lines of text, whose rows and columns may have labels."""
    if content.startswith(b"%%MatrixMarket"):
        return _canonical(parse_matrix_market(content, how.max_bytes), how)
    text = Text.of(content, suffix)
    if how.format == "table":
        return _canonical(parse_table(text), how)
    header = Header.of(text)
    if how.format == "auto" and suffix == ".csv":
        if is_ambiguous(text, header):
            raise ValueError(_AMBIGUOUS)
        if how.is_of_costs and header.lines == 0 and _begins_with_numbers(text):
            return _canonical(parse_table(text), how)
    edges = parse_edges(text, header)
    if edges.rows.size == 0:
        raise ValueError("has no edges")
    if how.is_of_costs and edges.values is None:
        raise ValueError("its lines have no value: expected row, column and cost")
    duplicates = how.duplicates or ("max" if edges.values is None else "error")
    matrix = canonical_csr(edges.matrix, how.max_bytes, duplicates, edges.repeat)
    if edges.row_labels is None or edges.col_labels is None:
        return matrix
    return LabelledArray.of(matrix, edges.row_labels, edges.col_labels)


def _begins_with_numbers(text: Text) -> bool:
    """True if the first line is none of two labels and a value."""
    return len(text.fields) != 3 or any(map(is_number, text.fields[:2]))


_AMBIGUOUS = (
    "three numbers in each line may be row, column and value, or a row of a table: say "
    "format='list' or format='table' (--format list, --format table), or put the header "
    "row,column,value or source,target,value above them"
)


_LISTS = (".txt", ".el", ".edges", ".tsv", ".csv")
_PARSERS: dict[str, Callable[[bytes, int], Any]] = {
    **dict.fromkeys((".mtx", ".mm", ".tar.gz"), parse_matrix_market),
    ".npz": parse_npz,
    ".npy": parse_npy,
    ".mat": parse_matlab,
    **dict.fromkeys((".hb", ".rb", ".rua", ".rra", ".rsa"), parse_harwell_boeing),
}
_COST_PARSERS = {suffix: parse for suffix, parse in _PARSERS.items() if suffix != ".tar.gz"}
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
    suffix = next(known, None) or _suffix_of_text(content)
    return suffix, lambda: content


def _suffix_of_text(content: bytes) -> str:
    return ".csv" if Text.of(content, ".txt").delimiter in (",", ";") else ".txt"


def read_costs(
    source: Source,
    *,
    format: Format = "auto",
    duplicates: Duplicates | None = None,
    max_bytes: int = MAX_BYTES,
) -> Any:
    """Read the costs of an assignment.

    Parameters
    ----------
    source
        A path, whose ending says the format: a NumPy array (.npy), a table of numbers (.csv), an
        edge list with values as for `read` (.txt, .el, .edges, .tsv; .csv below a header that names
        its fields, or with labels), Matrix Market (.mtx, .mm), MATLAB (.mat), or another sparse
        matrix as for `read` (.npz, .rb, ...); each may also be compressed (.gz, .bz2, .xz). Or a
        file open for reading bytes, as for `read`. In a table, blank lines and what follows a # are
        ignored. Numbers of text are integers if all are written as integers and fit 64 bits.
    format
        Whether text is a ``"list"`` or a ``"table"``. ``"auto"``: a .csv without a header is a
        table, unless there are labels in it; all other text is a list. It is an error if a .csv has
        three numbers in each line and no header that says what they are.
    duplicates, max_bytes
        As for `read`; an array that is not compressed may be larger than `max_bytes`.

    Returns
    -------
    ndarray or csr_array
        Of .npy, tables, dense MATLAB and Matrix Market's arrays, a dense matrix; of all others the
        stored entries, zeros included, with labels as for `read`.

    Raises
    ------
    ValueError
        The file is malformed, truncated, too large or of an unknown format; for text, the message
        names the line.
    FileNotFoundError
        There is no such file.
    """
    return _read(source, _How(_COST_PARSERS, " of costs", format, duplicates, max_bytes))


def _read_npy(path: Path, max_bytes: int) -> np.ndarray:
    compressed = compression(path) != ""
    with io.BytesIO(content_of(path, max_bytes)) if compressed else open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        check_npy_header(file, "an array", "biuf", size)
        file.seek(0)
        return np.load(file, allow_pickle=False)
