"""Text with a few numbers in each line: lists of edges, and tables of costs."""

from __future__ import annotations

import codecs
import contextlib
import io
import re
import warnings
from typing import NamedTuple, TextIO

import numpy as np
from scipy.sparse import coo_array

__all__ = ["has_commas", "has_values", "names_values", "parse_edges", "parse_table", "shortened"]

_ROW_NAMES = {"row", "source", "src", "from", "left", "u", "i"}
_COL_NAMES = {"col", "column", "target", "dst", "to", "right", "v", "j"}
_VALUE_NAMES = {"value", "weight", "cost", "w"}


class _Layout(NamedTuple):
    """How the lines of a list of edges are read."""

    delimiter: str | None  # None: blanks and tabs
    begin: int  # lines up to and with the header
    width: int  # fields of a line
    fields: tuple[int, ...] | None  # where row, column and value stand; None: in this order

    @property
    def has_values(self) -> bool:
        return (self.width if self.fields is None else len(self.fields)) == 3


def names_values(content: bytes) -> bool:
    """Whether a header says that each line has a row, a column and a value."""
    with contextlib.suppress(ValueError):
        layout = _layout(_plain(content))
        return layout.begin > 0 and layout.fields is not None and layout.has_values
    return False


def has_commas(content: bytes) -> bool:
    """Whether commas stand between the fields of each line."""
    return _layout(_plain(content.replace(b"%", b"#"))).delimiter == ","


def has_values(content: bytes) -> bool:
    """Whether the lines of an edge list have values."""
    return _layout(_plain(content.replace(b"%", b"#"))).has_values


def parse_edges(content: bytes) -> coo_array:
    """Lines of row, column and perhaps value, as `gpumatch.io.read` says; there may be none."""
    content = _plain(content.replace(b"%", b"#"))
    table = _edge_table(content, _layout(content))
    if table.size == 0:
        return coo_array((0, 0))
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


def _edge_table(content: bytes, layout: _Layout) -> np.ndarray:
    """The fields of every line, as integers if all are written so."""

    def parsed(dtype: type) -> np.ndarray:
        return np.loadtxt(
            _lines(content),
            dtype,
            delimiter=layout.delimiter,
            skiprows=layout.begin,
            usecols=layout.fields,
            ndmin=2,
        )

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "loadtxt: input contained no data")
        warnings.simplefilter("error", DeprecationWarning)  # of integers that are parsed as floats
        try:
            return parsed(np.int64)
        except (ValueError, DeprecationWarning):
            pass
        try:
            return parsed(np.float64)
        except ValueError as exc:
            hint = "rows and columns are numbers from 0 on; for names, read the list with networkx"
            raise ValueError(f"{str(exc).rstrip('.')}: {hint}") from None


def _layout(content: bytes) -> _Layout:
    """What the first line with fields shows. It is a header if none of its fields is a number."""
    for number, line in enumerate(_lines(content), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        delimiter = "," if "," in line else None
        names = [name.strip().strip("\"'").lower() for name in line.split(delimiter)]
        if any(map(_is_number, names)) or not any(names):
            return _Layout(delimiter, 0, len(names), None)
        return _Layout(delimiter, number, len(names), _named_fields(names))
    return _Layout(None, 0, 0, None)


def _named_fields(names: list[str]) -> tuple[int, ...] | None:
    """Where a header puts row, column and, if it names one, the value."""
    places = [
        next((place for place, name in enumerate(names) if name in known), None)
        for known in (_ROW_NAMES, _COL_NAMES, _VALUE_NAMES)
    ]
    if None not in places[:2]:
        return tuple(place for place in places if place is not None)
    if len(names) in (2, 3):
        return None
    known = "one of row, source, from, u and one of column, target, to, v"
    raise ValueError(f"the header names {shortened(', '.join(names))}, expected {known}")


def _is_number(field: str) -> bool:
    with contextlib.suppress(ValueError):
        float(field)
        return True
    return False


def _plain(content: bytes) -> bytes:
    return _without_blanks(content.removeprefix(codecs.BOM_UTF8))


def parse_table(content: bytes) -> np.ndarray:
    """Lines of equally many numbers, integers if all are written as integers."""
    content = _plain(content)
    for dtype in (np.int64, np.uint64, np.float64):
        with contextlib.suppress(ValueError, Warning), warnings.catch_warnings():
            warnings.simplefilter("error")  # of integers that are parsed as floats
            return np.loadtxt(_lines(content), dtype, comments="#", delimiter=",", ndmin=2)
    raise ValueError(_wrong_line(content))


_HEADER_OF_COSTS = (
    "; a header is read if it names row (or source, from, u), column (or target, to, v) "
    "and value (or weight, cost)"
)


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
            if not _is_number(field):
                hint = "" if width or any(map(_is_number, fields)) else _HEADER_OF_COSTS
                return f"line {number}, field {place}: {shortened(field)} is no number{hint}"
        if width == 0:
            first, width = number, len(fields)
        elif len(fields) != width:
            return f"line {number} has {len(fields)} fields, but line {first} has {width}"
    return "is no table of numbers" if width else "has no numbers"


def shortened(field: str) -> str:
    return repr(field if len(field) <= 20 else field[:20] + "...")
