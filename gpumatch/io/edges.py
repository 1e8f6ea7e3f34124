"""Lists of edges: in each line a row, a column and perhaps a value.

A header says what rows and columns are. ``row,column`` and ``i,j`` are numbers that count from 0.
Under any other header they are labels, numbers too: the rows and the columns are then the labels in
the order in which they first occur. Without a header, integers count from 0, and text is a label.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array

from gpumatch.io.fields import (
    AT_END,
    WHOLE_LINE,
    Text,
    as_numbers,
    is_number,
    numbers,
    records,
    shortened,
)

__all__ = ["Edges", "Header", "is_ambiguous", "parse_edges"]

_ROW_INDEX, _COL_INDEX = {"row", "i"}, {"col", "column", "j"}
_ROWS = _ROW_INDEX | {"source", "src", "from", "left", "u"}
_COLS = _COL_INDEX | {"target", "dst", "to", "right", "v"}
_VALUES = {
    *("value", "val", "data", "weight", "w", "cost", "score", "similarity", "distance"),
    *("price", "profit", "probability"),
}
_NO_VALUES = {"", "id", "index", "key"}  # of other fields, that no one means as a value
_MISSING = {"", "n/a", "na", "none", "null", "-"}  # what stands for a value that is not known
_MOST = 2**31 - 2  # the greatest number of a row or a column


class Header(NamedTuple):
    """What the first line says of the fields of all."""

    lines: int  # up to and with the header; 0: there is none
    width: int  # fields of a line
    row: int  # where the row stands
    col: int
    value: int | None
    value_is_named: bool  # whether the header calls it so; else it is the only field left
    is_known: bool  # whether it names rows, columns or values by names that are known
    has_indices: bool  # whether it says that rows and columns count from 0

    @classmethod
    def of(cls, text: Text) -> Header:
        """Read it. A first line with a number in it, or without a word, is no header.

        Neither are two words and what stands for a value that is not known.
        """
        names = [name.lower() for name in text.fields]
        is_edge = len(names) == 3 and names[2] in _MISSING and not {*names} & (_ROWS | _COLS)
        if any(map(is_number, names)) or not any(names) or is_edge:
            return cls(0, len(names), 0, 1, 2 if len(names) == 3 else None, True, False, False)
        rows, cols, values = (
            [place for place, name in enumerate(names) if name in known]
            for known in (_ROWS, _COLS, _VALUES)
        )
        for what, places in (("row", rows), ("column", cols), ("value", values)):
            if len(places) > 1:
                both = " and ".join(repr(text.fields[place]) for place in places)
                raise ValueError(f"line {text.line}: the header names the {what} twice, by {both}")
        others = [place for place in range(len(names)) if place not in (*rows, *cols, *values)]
        is_known = len(others) < len(names)
        value_is_named = bool(values) or not is_known
        if rows and cols:
            others = [at for at in others if at > max(*rows, *cols) and names[at] not in _NO_VALUES]
            values = values or (others if len(others) == 1 else [])
        elif len(others) + len(rows) + len(cols) == 2:
            rows = rows or [others.pop(0)]
            cols = cols or [others.pop(0)]
        elif len(names) == 3 and not is_known:
            rows, cols, values = ([place] for place in others)
        else:
            raise ValueError(
                f"line {text.line}: the header names {shortened(', '.join(names))}, expected "
                f"one of {', '.join(sorted(_ROWS))} and one of {', '.join(sorted(_COLS))}"
            )
        (row,), (col,) = rows, cols
        has_indices = names[row] in _ROW_INDEX and names[col] in _COL_INDEX
        value = values[0] if values else None
        return cls(text.line, len(names), row, col, value, value_is_named, is_known, has_indices)


class Edges(NamedTuple):
    """The edges of a list, in the order of its lines."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray | None
    row_labels: list[str] | None  # None: rows and columns are numbers
    col_labels: list[str] | None
    line: Callable[[int], int]  # that of each edge

    @property
    def matrix(self) -> coo_array:
        """An entry for each edge: its value, or 1. Edges of one pair are all there."""
        values = np.ones(self.rows.size) if self.values is None else self.values
        if self.row_labels is None or self.col_labels is None:
            shape = [int(ends.max(initial=-1)) + 1 for ends in (self.rows, self.cols)]
        else:
            shape = [len(self.row_labels), len(self.col_labels)]
        ends = self.rows.astype(np.int32), self.cols.astype(np.int32)
        return coo_array((values, ends), shape=tuple(shape))

    def repeat(self, again: int, before: int) -> str:
        """What to say of an edge whose pair an earlier one has."""
        row, col = int(self.rows[again]), int(self.cols[again])
        pair = f"{row}, {col}"
        if self.row_labels is not None and self.col_labels is not None:
            pair = f"{self.row_labels[row]}, {self.col_labels[col]}"
        return (
            f"line {self.line(again)} names the pair {pair} of line "
            f"{self.line(before)} again: duplicates (--duplicates) can be sum, min, max or last"
        )


def parse_edges(text: Text, header: Header) -> Edges:
    """Read a list; there may be no edges in it."""
    if not text.line:
        none = np.zeros(0, np.int64)
        return Edges(none, none, None, None, None, int)
    if header.width not in (2, 3) and not header.is_known:
        raise ValueError(
            f"line {text.line}: {header.width} fields a line, expected row, column and maybe a "
            "value"
        )
    if header.lines == 0 or header.has_indices:
        edges = _from_numbers(text, header)
        if edges is not None:
            return edges
    return _from_records(text, header)


def _from_numbers(text: Text, header: Header) -> Edges | None:
    """The edges of lines in which all fields are numbers, rows and columns integers; else None."""
    dtypes: list[Any] = [np.int64]
    if header.width == 3 and header.value is not None:
        for value in (np.uint64, np.float64):
            kinds = [value if place == header.value else np.int64 for place in range(3)]
            dtypes.append(np.dtype(list(zip("012", kinds))))
    table = numbers(text, header.lines, dtypes)
    if table is None:
        return None
    if table.dtype.names:
        columns = [table.ravel()[name] for name in table.dtype.names]
    else:
        table = table if table.size else table.reshape(0, header.width)
        if table.shape[1] != header.width:
            return None
        columns = list(table.T)

    def line(edge: int) -> int:
        return records(text, header.lines).lines[edge]

    for place in (header.row, header.col):
        wrong = (columns[place] < 0) | (columns[place] > _MOST)
        if wrong.any():
            at = int(wrong.argmax())
            what = f"{columns[place][at]} {_NO_INDEX}"
            raise ValueError(f"line {line(at)}, field {place + 1}: {what}")
    values = None if header.value is None else np.ascontiguousarray(columns[header.value])
    return Edges(columns[header.row], columns[header.col], values, None, None, line)


def _from_records(text: Text, header: Header) -> Edges:
    """The edges of lines of any text."""
    has_labels = header.lines > 0 and not header.has_indices
    lines, columns = records(text, header.lines, WHOLE_LINE if has_labels else AT_END)
    columns = columns or [[]] * header.width
    rows, cols = columns[header.row], columns[header.col]
    if not header.lines:
        has_labels = not any(map(is_number, itertools.chain(rows, cols)))
    of_rows, of_cols = (
        _labels(side, lines, place) if has_labels else _indices(side, lines, place)
        for side, place in ((rows, header.row), (cols, header.col))
    )
    if has_labels and header.lines and not header.is_known:
        _check_header(text, header, rows, cols)
    return Edges(
        of_rows[0], of_cols[0], _values(columns, lines, header), of_rows[1], of_cols[1],
        lines.__getitem__,
    )  # fmt: skip


_Ends = tuple[np.ndarray, list[str] | None]


def _labels(side: list[str], lines: list[int], place: int) -> _Ends:
    """The numbers of labels, in the order in which they first occur, and the labels."""
    _check(side, bool, lines, place, "is empty, expected a label")
    number_of: dict[str, int] = {}
    numbered = [number_of.setdefault(label, len(number_of)) for label in side]
    return np.array(numbered, np.int64), list(number_of)


def _indices(side: list[str], lines: list[int], place: int) -> _Ends:
    """The numbers that are written there."""
    _check(side, is_number, lines, place, f"is no number{_FOR_LABELS}")
    _check(side, _is_index, lines, place, _NO_INDEX)
    return np.array(list(map(float, side)), np.float64).astype(np.int64), None


def _is_index(field: str) -> bool:
    end = float(field)
    return 0 <= end <= _MOST and end == int(end)


def _values(columns: list[list[str]], lines: list[int], header: Header) -> np.ndarray | None:
    """The values; None if there are none, or only words that the header does not call so."""
    if header.value is None:
        return None
    fields = columns[header.value]
    values = as_numbers(fields)
    if values is None:
        if not header.value_is_named and not any(map(is_number, fields)):
            return None
        _check(fields, is_number, lines, header.value, "is no number")
    return values


def _check_header(text: Text, header: Header, rows: list[str], cols: list[str]) -> None:
    """Check that a first line of two unknown words is a header, as above numbers it is."""
    if header.width == 2 and not all(map(is_number, itertools.chain(rows, cols))):
        raise ValueError(
            f"line {text.line}: {shortened(', '.join(text.fields))} may be a header or an edge: "
            "put a header such as source,target above it"
        )


def _check(
    fields: list[str], is_right: Callable[[str], bool], lines: list[int], place: int, what: str
) -> None:
    """Check that the fields at this place of each line are right."""
    if not all(map(is_right, fields)):
        at = next(at for at, field in enumerate(fields) if not is_right(field))
        raise ValueError(f"line {lines[at]}, field {place + 1}: {shortened(fields[at])} {what}")


_NO_INDEX = "is no integer from 0 to 2^31 - 2"
_FOR_LABELS = "; above labels, put a header such as source,target"


def is_ambiguous(text: Text, header: Header) -> bool:
    """True if the lines could be those of a table as well: three numbers, and no known header."""
    if header.is_known or header.width != 3:
        return False
    table = numbers(text, header.lines, [np.float64])
    if table is None or table.shape[1:] != (3,):
        return False
    ends = table[:, :2]
    return bool(header.lines or (np.isfinite(ends) & (ends >= 0) & (ends == np.rint(ends))).all())
