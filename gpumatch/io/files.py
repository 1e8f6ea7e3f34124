"""Sparse matrices, costs and matchings from files.

`read` gives the stored entries of a file as a CSR array in canonical form: column indices sorted
within each row, duplicate entries added up, stored zeros kept. `read_costs` gives dense matrices as
well. SciPy and NumPy parse; the checks here are those that they lack. A file is not trusted. Its
text is decompressed only up to `max_bytes`. What its header promises is compared with the bytes it
has before anything is allocated. Whatever is wrong becomes a ValueError that names the file.

A matching is stored as its `row_to_col` (.npy; -1 = unmatched) or as the pattern matrix of its
edges (.mtx).

References
----------
R. Boisvert, R. Pozo, K. Remington: The Matrix Market exchange formats. NISTIR 5935, 1996.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import errno
import functools
import gzip
import io
import lzma
import math
import os
import re
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
import scipy.io
import scipy.sparse
from scipy.sparse import coo_array, csr_array

__all__ = ["MAX_BYTES", "read", "read_costs", "read_matching", "write_matching"]

MAX_BYTES = 2**32


def read(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> csr_array:
    """Read a sparse matrix.

    Parameters
    ----------
    path
        The name says the format: Matrix Market (.mtx, .mm), `scipy.sparse.save_npz` (.npz),
        Harwell-Boeing as far as SciPy reads it (.hb, .rb, .rua, .rra, .rsa), edge lists (.txt,
        .el, .edges, .tsv, .csv). Each may also be compressed (.gz, .bz2, .xz). NAME.tar.gz is an
        archive of the SuiteSparse collection, of which NAME/NAME.mtx is read.

        Each line of an edge list has a row and a column, counted from 0, and perhaps a value. It
        may end in a comment that starts with # or %. The largest row and column give the shape.
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
    path = Path(path)
    with _naming(path):
        return _read(path, max_bytes)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn whatever readers raise on broken input into a ValueError that names the file.

    They raise anything from EOFError to zlib.error. Only a failed system call is left as it is.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{path}: {str(error) or type(error).__name__}") from error


def _read(path: Path, max_bytes: int) -> csr_array:
    if path.is_dir():  # whatever its name ends in
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    parse = _parser(path)
    return _canonical_csr(parse(_content(path, max_bytes), max_bytes), max_bytes)


def _parser(path: Path) -> Callable[[bytes, int], Any]:
    name = path.name.lower()
    if name.endswith(".tar.gz"):
        return _parse_matrix_market
    suffix = Path(name.removesuffix(_compression(path))).suffix
    if suffix not in _PARSERS:
        raise ValueError(f"unknown format {suffix!r}, known are {', '.join(_PARSERS)}")
    return _PARSERS[suffix]


# Bytes ------------------------------------------------------------------------------------------


_OPEN: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    "": open,
}


def _compression(path: Path) -> str:
    suffix = path.suffix.lower()
    return suffix if suffix in _OPEN else ""


def _content(path: Path, max_bytes: int) -> bytes:
    with _OPEN[_compression(path)](path, "rb") as file:
        content = _read_all(file, max_bytes)
    if path.name.lower().endswith(".tar.gz"):
        content = _archived_matrix(content, path.name[: -len(".tar.gz")])
    if not content:
        raise ValueError("the file is empty")
    return content


def _read_all(file: BinaryIO, max_bytes: int) -> bytes:
    content = io.BytesIO()
    while chunk := file.read(2**20):
        if content.tell() + len(chunk) > max_bytes:
            raise ValueError(f"more than max_bytes = {max_bytes} bytes of content")
        content.write(chunk)
    return content.getvalue()


def _archived_matrix(archive: bytes, name: str) -> bytes:
    """The content of NAME/NAME.mtx; nothing is written to disk, so no member can escape to it."""
    wanted = f"{name}/{name}.mtx"
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
        for member in tar:
            # A negative size makes tarfile read the same headers without end. A sparse member can
            # unfold to any size.
            if not 0 <= member.size <= len(archive) or member.issparse():
                raise ValueError(f"member {member.name!r} has an impossible size")
            if member.name == wanted:
                file = tar.extractfile(member) if member.isreg() else None
                if file is None:
                    raise ValueError(f"member {wanted!r} is not a regular file")
                return file.read()
    raise ValueError(f"the archive has no member {wanted!r}")


# Formats ----------------------------------------------------------------------------------------


def _parse_matrix_market(content: bytes, max_bytes: int) -> Any:
    # SciPy's reader looks for a line's end as C's strchr does, and crashes at a NUL.
    if b"\0" in content:
        raise ValueError("has NUL bytes, so it is not text")
    if not content.endswith(b"\n"):
        content += b"\n"
    rows, columns, entries, layout, field, symmetry = scipy.io.mminfo(io.BytesIO(content))
    _check_shape(rows, columns, max_bytes)
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
            raise ValueError(f"says that its values are integers, but has {_shortened(text)}")


def _parse_npz(content: bytes, max_bytes: int) -> Any:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > max_bytes:
            raise ValueError(f"more than max_bytes = {max_bytes} bytes of content")
        for member in members:
            with archive.open(member) as file:
                name = member.filename.removesuffix(".npy")
                kinds = _NPZ_KINDS.get(name, "")
                _check_npy_header(file, f"array {name!r}", kinds, member.file_size)
    return scipy.sparse.load_npz(io.BytesIO(content))


_NPZ_KINDS = {
    "format": "SU",
    "_is_array": "b",
    "data": "biufc",
    **dict.fromkeys(("shape", "indptr", "indices", "row", "col", "coords", "offsets"), "iu"),
}


def _check_npy_header(file: Any, what: str, kinds: str, size: int) -> None:
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


def _parse_harwell_boeing(content: bytes, max_bytes: int) -> Any:
    with warnings.catch_warnings():
        # This is how NumPy says that a field was not a number and the rest was not read.
        warnings.filterwarnings("error", "string or file could not be read")
        return scipy.io.hb_read(io.StringIO(content.decode("latin-1"), newline=None))


def _parse_edges(content: bytes, max_bytes: int, delimiter: str | None = None) -> Any:
    if content.startswith(b"%%MatrixMarket"):
        return _parse_matrix_market(content, max_bytes)
    content = _without_blanks(content.removeprefix(codecs.BOM_UTF8).replace(b"%", b"#"))
    text = io.StringIO(content.decode("latin-1"))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "loadtxt: input contained no data")
        table = np.loadtxt(text, comments="#", delimiter=delimiter, ndmin=2)
    if table.size == 0:
        raise ValueError("has no edges")
    if table.shape[1] not in (2, 3):
        raise ValueError(f"{table.shape[1]} fields a line, expected row, column and maybe a value")
    ends = table[:, :2]
    wrong = ~((ends >= 0) & (ends < 2**31 - 1) & (ends == np.rint(ends))).all(axis=1)
    if wrong.any():
        row, column = ends[wrong.argmax()]
        raise ValueError(f"edge {row:.17g} {column:.17g}: expected integers from 0 to 2^31 - 2")
    row, column = ends.astype(np.int32).T
    values = table[:, 2] if table.shape[1] == 3 else np.ones(len(table))
    return coo_array((values, (row, column)))


_PARSERS: dict[str, Callable[[bytes, int], Any]] = {
    **dict.fromkeys((".mtx", ".mm"), _parse_matrix_market),
    ".npz": _parse_npz,
    **dict.fromkeys((".hb", ".rb", ".rua", ".rra", ".rsa"), _parse_harwell_boeing),
    **dict.fromkeys((".txt", ".el", ".edges", ".tsv"), _parse_edges),
    ".csv": functools.partial(_parse_edges, delimiter=","),
}


def _canonical_csr(matrix: Any, max_bytes: int) -> csr_array:
    if matrix.ndim != 2:
        raise ValueError(f"{matrix.ndim} dimensions, expected 2")
    rows, columns = matrix.shape
    _check_shape(rows, columns, max_bytes)
    if scipy.sparse.issparse(matrix) and matrix.format in ("csr", "csc", "bsr"):
        if (matrix.indptr[:-1] > matrix.indptr[1:]).any():  # SciPy's check wraps around
            raise ValueError("indptr decreases")
        matrix.check_format(full_check=True)
    graph = csr_array(matrix)
    graph.sum_duplicates()
    return graph


def _check_shape(rows: int, columns: int, max_bytes: int) -> None:
    if 8 * (rows + columns) > max_bytes:
        raise ValueError(
            f"index pointers of {rows} x {columns} take more than max_bytes = {max_bytes}"
        )


# Costs ------------------------------------------------------------------------------------------


def read_costs(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Any:
    """Read the costs of an assignment.

    Parameters
    ----------
    path
        The name says the format: a NumPy array (.npy), lines of numbers with commas between them
        (.csv), Matrix Market (.mtx, .mm), or a sparse matrix as for `read` (.npz, .rb, ...); each
        may also be compressed (.gz, .bz2, .xz). In text, blank lines and what follows a # are
        ignored. The numbers are integers if all are written as integers and fit 64 bits.
    max_bytes
        As for `read`; an array that is not compressed may be larger.

    Returns
    -------
    ndarray or csr_array
        Of .npy, .csv and Matrix Market's arrays, a dense matrix; of all others the stored entries,
        zeros included.

    Raises
    ------
    ValueError
        The file is malformed, truncated, too large or of an unknown format; for text, the message
        names the line.
    FileNotFoundError
        There is no such file.
    """
    path = Path(path)
    with _naming(path):
        suffix = Path(path.name.lower().removesuffix(_compression(path))).suffix
        if suffix == ".npy":
            return _read_npy(path, max_bytes)
        if suffix == ".csv":
            return _parse_table(_content(path, max_bytes))
        if suffix not in _COST_FORMATS:
            known = ", ".join((".npy", ".csv", *_COST_FORMATS))
            raise ValueError(f"unknown format {suffix!r} of costs, known are {known}")
        matrix = _PARSERS[suffix](_content(path, max_bytes), max_bytes)
        return _canonical_csr(matrix, max_bytes) if scipy.sparse.issparse(matrix) else matrix


_COST_FORMATS = (".mtx", ".mm", ".npz", ".hb", ".rb", ".rua", ".rra", ".rsa")


def _read_npy(path: Path, max_bytes: int) -> np.ndarray:
    compressed = _compression(path) != ""
    with io.BytesIO(_content(path, max_bytes)) if compressed else open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        _check_npy_header(file, "an array", "biuf", size)
        file.seek(0)
        return np.load(file, allow_pickle=False)


def _parse_table(content: bytes) -> np.ndarray:
    """Lines of equally many numbers, integers if all are written as integers."""
    content = _without_blanks(content.removeprefix(codecs.BOM_UTF8))
    for dtype in (np.int64, np.uint64, np.float64):
        with contextlib.suppress(ValueError, Warning), warnings.catch_warnings():
            warnings.simplefilter("error")  # of integers that are parsed as floats
            return np.loadtxt(_lines(content), dtype, comments="#", delimiter=",", ndmin=2)
    raise ValueError(_wrong_line(content))


def _without_blanks(content: bytes) -> bytes:
    """Text whose blank lines are empty: with a delimiter, NumPy ignores only such lines."""
    return re.sub(rb"^[ \t]+(?=#|\r?$)", b"", content, flags=re.MULTILINE)


def _lines(content: bytes) -> TextIO:
    return io.TextIOWrapper(io.BytesIO(content), encoding="latin-1")


def _wrong_line(content: bytes) -> str:
    """What is wrong with a table of numbers."""
    first = width = 0
    for number, line in enumerate(_lines(content), 1):
        line = line.rstrip("\n").partition("#")[0]
        if not line:
            continue
        fields = line.split(",")
        for place, field in enumerate(fields, 1):
            try:
                float(field)
            except ValueError:
                return f"line {number}, field {place}: {_shortened(field)} is no number"
        if width == 0:
            first, width = number, len(fields)
        elif len(fields) != width:
            return f"line {number} has {len(fields)} fields, but line {first} has {width}"
    return "is no table of numbers" if width else "has no numbers"


def _shortened(field: str) -> str:
    return repr(field if len(field) <= 20 else field[:20] + "...")


# Matchings --------------------------------------------------------------------------------------


def write_matching(
    path: str | os.PathLike[str], row_to_col: np.ndarray, shape: tuple[int, int]
) -> None:
    """Write a matching of a `shape` graph as .npy (`row_to_col`) or .mtx (pattern of its edges).

    Parameters
    ----------
    path
        Ends in .npy or .mtx.
    row_to_col
        Column of each row, -1 = unmatched.
    shape
        Rows and columns of the graph.

    Raises
    ------
    ValueError
        `row_to_col` is not a matching of such a graph, or the name has another ending.
    """
    path = Path(path)
    with _naming(path):
        suffix = _matching_suffix(path)
        row_to_col = _checked_matching(np.asarray(row_to_col), shape)
    with open(path, "wb") as file:
        if suffix == ".npy":
            np.save(file, row_to_col)
        else:
            rows = np.flatnonzero(row_to_col >= 0)
            edges = coo_array((np.ones(len(rows)), (rows, row_to_col[rows])), shape=shape)
            scipy.io.mmwrite(file, edges, field="pattern", symmetry="general")


def read_matching(path: str | os.PathLike[str], shape: tuple[int, int]) -> np.ndarray:
    """Read a matching of a `shape` graph that `write_matching` wrote.

    Returns
    -------
    ndarray of int32
        Column of each row, -1 = unmatched.

    Raises
    ------
    ValueError
        The file is malformed, or holds no matching of a graph of this shape. The front door of
        matching checks whether its edges are edges of the graph.
    FileNotFoundError
        There is no such file.
    """
    path = Path(path)
    with _naming(path):
        if _matching_suffix(path) == ".npy":
            row_to_col: np.ndarray = np.lib.format.open_memmap(path, mode="r")
        else:
            row_to_col = _row_to_col(_read(path, MAX_BYTES), shape)
        return _checked_matching(row_to_col, shape)


def _matching_suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".mtx"):
        raise ValueError("a matching is a .npy or a .mtx file")
    return suffix


def _row_to_col(edges: csr_array, shape: tuple[int, int]) -> np.ndarray:
    if edges.shape != tuple(shape):
        raise ValueError(f"shape {edges.shape}, but the graph's is {tuple(shape)}")
    degree = np.diff(edges.indptr)
    if degree.max(initial=0) > 1:
        raise ValueError(f"row {degree.argmax()} is matched {degree.max()} times")
    row_to_col = np.full(shape[0], -1)
    row_to_col[degree == 1] = edges.indices
    return row_to_col


def _checked_matching(row_to_col: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    rows, columns = shape
    if row_to_col.dtype.kind not in "iu":
        raise ValueError(f"row_to_col has type {row_to_col.dtype}, expected integers")
    if row_to_col.shape != (rows,):
        raise ValueError(f"row_to_col has shape {row_to_col.shape}, expected ({rows},)")
    wrong = (row_to_col < -1) | (row_to_col >= columns)
    if wrong.any():
        row = wrong.argmax()
        raise ValueError(f"row {row} is matched to column {row_to_col[row]} of {columns}")
    checked = row_to_col.astype(np.int32)
    times = np.bincount(checked[checked >= 0])
    if times.max(initial=0) > 1:
        raise ValueError(f"column {times.argmax()} is matched {times.max()} times")
    return checked
