"""Some rows of a Matrix Market file, without the others.

Entries may stand in any order, so all of the text is read, but a piece at a time, and only what is
in the rows is kept. Each piece is parsed as a file of its own, with the header of the whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy.sparse import coo_array, csr_array

from gpumatch.io.canonical import canonical_csr, check_shape
from gpumatch.io.contents import MAX_BYTES, naming, opened, suffix_of
from gpumatch.io.matrix_market import LONGEST_LINE, Head, check_diagonal, check_square

__all__ = ["has_coordinates", "is_matrix_market", "matrix_market_rows"]

PIECE = 2**24  # bytes of text parsed at a time


def is_matrix_market(path: str | os.PathLike[str]) -> bool:
    """True if the file's name says that it is one, compressed or not."""
    return suffix_of(Path(path)) in (".mtx", ".mm")


def has_coordinates(path: str | os.PathLike[str]) -> bool:
    """True if it is one, and not of a dense array."""
    if not is_matrix_market(path):
        return False
    with naming(path), opened(Path(path)) as file:
        return Head.of(file).layout == "coordinate"


def matrix_market_rows(
    path: str | os.PathLike[str], own: Callable[[int], slice], *, max_bytes: int = MAX_BYTES
) -> csr_array:
    """Read some rows of a matrix in coordinates.

    Parameters
    ----------
    path : str or path
        A file, which may be compressed, as `gpumatch.io.read` takes it.
    own : callable
        Given how many rows there are, the slice of those that are wanted.
    max_bytes : int
        The most bytes that the index pointers of the shape may take.

    Returns
    -------
    csr_array
        The rows, with all columns.

    Raises
    ------
    ValueError
        The file is malformed, a dense array, or has more or fewer entries than it says.
    """
    with naming(path), opened(Path(path)) as file:
        head = Head.of(file)
        check_shape(head.rows, head.columns, max_bytes)
        rows = own(head.rows)
        if head.layout != "coordinate":
            raise ValueError("is a dense array: only matrices in coordinates are read by rows")
        check_square(head)
        kept = [coo_array((rows.stop - rows.start, head.columns), dtype=np.int64)]
        count, first = 0, head.lines + 1
        for text in _pieces(file):
            entries, lines = head.checked(text, first)
            if entries:
                part = head.parsed(entries, lines, first)
                check_diagonal(part, head.symmetry)
                kept.append(_of_rows(part, rows))
            count += entries
            first += text.count(b"\n")
        if count != head.entries:
            raise ValueError(f"promises {head.entries} entries, but has {count}")
        return canonical_csr(_together(kept), max_bytes)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """Whole lines of text."""
    rest = b""
    while True:
        read = file.read(PIECE)
        text = rest + read
        end = text.rfind(b"\n") + 1 if read else len(text)
        lines, rest = text[:end], text[end:]
        if len(rest) > LONGEST_LINE:
            raise ValueError(f"has a line of more than {LONGEST_LINE} bytes")
        if lines:
            yield lines
        if not read:
            return


def _of_rows(part: Any, rows: slice) -> coo_array:
    """The entries in these rows."""
    inside = (part.row >= rows.start) & (part.row < rows.stop)
    shape = (rows.stop - rows.start, part.shape[1])
    return coo_array((part.data[inside], (part.row[inside] - rows.start, part.col[inside])), shape)


def _together(parts: list[coo_array]) -> coo_array:
    """All entries in one matrix. The first part has none, and only its shape counts."""
    first, *others = parts
    if not others:
        return first
    names = ("data", "row", "col")
    data, row, col = (np.concatenate([getattr(part, name) for part in others]) for name in names)
    return coo_array((data, (row, col)), first.shape)
