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
import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "ANYWHERE",
    "AT_END",
    "WHOLE_LINE",
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
_OF_NUMBERS = b"0123456789+-.eEinftyaINFTYA,; \t\r\n"
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


def records(text: Text, begin: int, comment: str = AT_END) -> Iterator[tuple[int, list[str]]]:
    """The number of each line behind the first `begin` and its fields, where it has some."""
    lines = _decoded(text.content).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number in range(begin, len(lines)):
        line = lines[number]
        if "#" in line or "%" in line:
            line = _without_comment(line, comment)
        if line.strip(_BLANKS):
            yield number + 1, _fields(line, text.delimiter, number + 1)


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


def numbers(text: Text, begin: int, dtype: Any, comment: str = AT_END) -> Any:
    """The fields behind the first `begin` lines as numbers of this type; None if they are not."""
    content = text.content
    if b"#" in content or b"%" in content:
        pattern = f"(?:{comment})[^\r\n]*".encode()
        content = re.sub(pattern, b"", content, flags=re.MULTILINE)
    if text.delimiter is not None:  # then NumPy ignores only lines that are empty
        content = re.sub(rb"^[ \t]+(?=\r?$)", b"", content, flags=re.MULTILINE)
    lines = io.BytesIO(content)
    for _ in range(begin):
        lines.readline()
    if content[lines.tell() :].translate(None, _OF_NUMBERS):
        return None
    rest = io.TextIOWrapper(lines, "latin-1")
    with contextlib.suppress(ValueError, Warning), warnings.catch_warnings():
        warnings.simplefilter("error")  # of integers that are parsed as floats
        warnings.filterwarnings("ignore", "loadtxt: input contained no data")
        return np.loadtxt(rest, dtype, comments=None, delimiter=text.delimiter, ndmin=2)
    return None


def is_number(field: str) -> bool:
    return _NUMBER.fullmatch(field) is not None


def as_numbers(fields: list[str]) -> np.ndarray:
    """Numbers, as integers if all are written so and fit 64 bits."""
    if all(map(_INTEGER.fullmatch, fields)):
        integers = list(map(int, fields))
        low, high = min(integers, default=0), max(integers, default=0)
        for dtype in (np.int64, np.uint64):
            if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
                return np.array(integers, dtype)
    return np.array(list(map(float, fields)), np.float64)


def shortened(field: str) -> str:
    return repr(field if len(field) <= 20 else field[:20] + "...")
