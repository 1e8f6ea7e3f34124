"""Text with some fields in each line: what separates them, and what they say.

Two readers are here. `records` gives the fields of every line as text, by Python's csv module, and
knows the line of each. `numbers` reads lines that hold nothing but numbers at once, by NumPy. It
gives None for all other text, so that whatever is wrong with a line is found by the first reader.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import itertools
import re
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "ANYWHERE",
    "AT_END",
    "WHOLE_LINE",
    "Records",
    "Text",
    "as_numbers",
    "is_number",
    "numbers",
    "records",
    "shortened",
]

_NUMBER = re.compile(
    r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE
)
_INTEGER = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_OF_FLOATS = b"0123456789+-.eEinftyaINFTYA"  # with these alone, what float takes is a number
_OF_NUMBERS = _OF_FLOATS + b",; \t\r\n"
_BLANKS = " \t"

# What begins a comment, which goes on to the end of the line.
WHOLE_LINE = r"^[ \t]*[#%]"
AT_END = r"^[#%]|(?<=[ \t])[#%]"
ANYWHERE = "#"


class Text(NamedTuple):
    """A text, and what its first line with fields shows."""

    content: bytes  # without a byte order mark
    delimiter: str | None  # None: blanks
    line: int  # number of the first line with fields, 0 if there is none
    fields: list[str]  # of that line

    @classmethod
    def of(cls, content: bytes, suffix: str) -> Text:
        """Find out what separates the fields. Tabs are blanks, unless the file is .tsv or .csv."""
        content = content.removeprefix(codecs.BOM_UTF8)
        if b"\0" in content:
            raise ValueError("has NUL bytes, so it is not text")
        for number, line in enumerate(io.TextIOWrapper(io.BytesIO(content), "latin-1"), 1):
            bare = _without_comment(line.rstrip("\n"), AT_END)
            if not bare.strip(_BLANKS):
                continue
            delimiter = _delimiter(bare, suffix, number)
            bare = _decoded(bare.encode("latin-1"))  # without the comment, which may be no UTF-8
            return cls(content, delimiter, number, _fields(bare, delimiter, number))
        return cls(content, None, 0, [])


def _delimiter(line: str, suffix: str, number: int) -> str | None:
    line = re.sub('"[^"]*"', "", line)
    found = [mark for mark in ",;\t" if mark in line]
    if suffix == ".tsv" and "\t" in found:
        return "\t"
    if {",", ";"} <= set(found):
        raise ValueError(
            f"line {number} has commas and semicolons: quote the fields that contain one of them"
        )
    if found and found[0] != "\t":
        return found[0]
    return "\t" if found and suffix == ".csv" else None


def _without_comment(line: str, comment: str) -> str:
    return re.sub(f"(?:{comment}).*", "", line, flags=re.DOTALL)


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError("has text that is not UTF-8") from None


class Records(NamedTuple):
    """The fields of some lines: equally many in each."""

    lines: list[int]  # their numbers
    columns: list[list[str]]


def records(text: Text, begin: int, comment: str = AT_END) -> Records:
    """The fields of the lines behind the first `begin`, which are the header, if there is one.

    Raises
    ------
    ValueError
        If a line has more or fewer fields than the first, the header included.
    """
    content = _decoded(text.content).replace("\r\n", "\n").replace("\r", "\n")
    lines = content.split("\n")
    if "#" in content or "%" in content:
        lines = [
            _without_comment(line, comment) if "#" in line or "%" in line else line
            for line in lines
        ]
    numbered = [number for number in range(begin, len(lines)) if lines[number].strip(_BLANKS)]
    mark = text.delimiter
    if mark is None or '"' in content:
        rows = [_fields(lines[number], mark, number + 1) for number in numbered]
        widths = list(map(len, rows))
        fields = list(itertools.chain.from_iterable(rows))
    else:  # the same, without a list for each line
        kept = [lines[number] for number in numbered]
        widths = [line.count(mark) + 1 for line in kept]
        fields = [field.strip(_BLANKS) for field in mark.join(kept).split(mark)]
    first, width = (text.line, len(text.fields)) if begin else (0, 0)
    for number, found in zip(numbered, widths):
        first, width = first or number + 1, width or found
        if found != width:
            raise ValueError(f"line {number + 1} has {found} fields, but line {first} has {width}")
    columns = [fields[place::width] for place in range(width)] if numbered else []
    return Records([number + 1 for number in numbered], columns)


def _fields(line: str, delimiter: str | None, number: int) -> list[str]:
    if delimiter is None:
        line, delimiter = re.sub("[ \t]+", " ", line).strip(" "), " "
    if '"' not in line:
        return [field.strip(_BLANKS) for field in line.split(delimiter)]
    try:
        (fields,) = csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True)
    except csv.Error as error:
        raise ValueError(f"line {number}: {error}") from None
    return [field.strip(_BLANKS) for field in fields]


def numbers(text: Text, begin: int, dtypes: Sequence[Any], comment: str = AT_END) -> Any:
    """The fields behind the first `begin` lines as numbers of the first of these types that fits.

    None if none does.
    """
    content = text.content
    if b"#" in content or b"%" in content:
        pattern = f"(?:{comment})[^\r\n]*".encode()
        content = re.sub(pattern, b"", content, flags=re.MULTILINE)
    if text.delimiter is not None:  # then NumPy ignores only lines that are empty
        content = re.sub(rb"^[ \t]+(?=\r?$)", b"", content, flags=re.MULTILINE)
    lines = io.BytesIO(content)
    for _ in range(begin):
        lines.readline()
    start = lines.tell()
    if content[start:].translate(None, _OF_NUMBERS):
        return None
    for dtype in dtypes:
        lines = io.BytesIO(content)
        lines.seek(start)
        rest = io.TextIOWrapper(lines, "latin-1")
        with contextlib.suppress(ValueError, Warning), warnings.catch_warnings():
            warnings.simplefilter("error")  # of integers that are parsed as floats
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            return np.loadtxt(rest, dtype, comments=None, delimiter=text.delimiter, ndmin=2)
    return None


def is_number(field: str) -> bool:
    return _NUMBER.fullmatch(field) is not None


def as_numbers(fields: list[str]) -> np.ndarray | None:
    """The numbers, as integers if all are written so and fit 64 bits; None if one is no number."""
    if all(map(_INTEGER.fullmatch, fields)):
        integers = list(map(int, fields))
        low, high = min(integers, default=0), max(integers, default=0)
        for dtype in (np.int64, np.uint64):
            if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
                return np.array(integers, dtype)
    if "".join(fields).encode().translate(None, _OF_FLOATS):
        return None
    try:
        return np.array(list(map(float, fields)), np.float64)
    except ValueError:
        return None


def shortened(field: str) -> str:
    return repr(field if len(field) <= 20 else field[:20] + "...")
