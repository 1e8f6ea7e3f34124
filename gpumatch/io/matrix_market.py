"""Matrix Market files: each line is checked by the format's grammar, then SciPy parses it.

SciPy's reader takes as much from the beginning of a line as it understands, and ignores the rest:
it reads ``1.5abc`` and Fortran's ``1.5D-3`` as 1.5. So a file goes to it only if every line has
exactly the fields of the format, and each field is a whole number of its kind.

Digits do not differ in this grammar. Call a line with each digit replaced by 0 its shape: a line is
right if and only if its shape is. A million lines have few shapes, and each is checked once.

A real number is written as in C or in Fortran, with the exponent after ``e``, ``E``, ``d`` or
``D``, or with a signed exponent alone: Fortran writes ``0.15-101`` for 0.15e-101, because three
digits leave no room for the letter. Or it is ``inf``, ``infinity`` or ``nan``. What SciPy does not
know of this is rewritten for it.

References
----------
R. Boisvert, R. Pozo, K. Remington: The Matrix Market exchange formats. NISTIR 5935, 1996.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

import scipy.io
from scipy.sparse import csr_array

from gpumatch.io.canonical import check_shape
from gpumatch.io.fields import shortened

__all__ = ["LONGEST_LINE", "Head", "check_diagonal", "check_square", "parse_matrix_market"]

PIECE = 2**18  # bytes of text of which the shapes are found at a time, so that they stay in cache
LONGEST_LINE = 2**16  # bytes of the first line, and of the line of sizes


class Head(NamedTuple):
    """What a file begins with: its first line, and what the line of sizes says."""

    banner: bytes
    rows: int
    columns: int
    entries: int
    layout: str  # coordinate or array
    field: str
    symmetry: str
    lines: int  # how many there are up to and with the sizes

    @classmethod
    def of(cls, file: BinaryIO) -> Head:
        """Read it. What the file holds from there on are the entries."""
        banner = line = file.readline(LONGEST_LINE)
        lines = 1
        while line.startswith(b"%") or (line and not line.strip()):
            while line and not line.endswith(b"\n"):  # the rest of a long comment
                line = file.readline(LONGEST_LINE)
            line = file.readline(LONGEST_LINE)
            lines += 1
        if b"\0" in banner + line:  # SciPy's reader would crash
            raise ValueError("has NUL bytes, so it is not text")
        kind = banner.split()[1:2]
        if kind and kind[0].lower() == b"vector":
            raise ValueError("holds a vector, not a matrix")
        rows, columns, entries, layout, field, symmetry = scipy.io.mminfo(io.BytesIO(banner + line))
        return cls(banner, rows, columns, entries, layout, field, symmetry, lines)

    def checked(self, text: bytes, first: int) -> tuple[int, bytes]:
        """How many entries these lines have, and the same lines as SciPy reads them.

        Raises
        ------
        ValueError
            If one of them is no entry; `first` is the number of the first.
        """
        wanted = _FIELDS[self.field][0 if self.layout == "coordinate" else 2 :]
        whole, plain = map(_line_of, zip(*(written for _, *written in wanted)))
        known: set[bytes] = set()
        blank: set[bytes] = set()
        count, is_plain = 0, True
        for piece in _pieces(text):
            lines = piece.translate(_SHAPE).split(b"\n")
            shapes = set(lines)
            new = shapes - known
            blank |= {shape for shape in new if not shape.strip(b" ")}
            wrong = {shape for shape in new - blank if not whole.fullmatch(shape)}
            if wrong:
                at = next(at for at, shape in enumerate(lines) if shape in wrong)
                line = piece.split(b"\n")[at]
                raise ValueError(f"line {first + at}: {_what_is_wrong(line, wanted)}")
            is_plain = is_plain and all(map(plain.fullmatch, new - blank))
            known |= new
            first += len(lines) - 1
            count += len(lines) - sum(map(lines.count, shapes & blank))
        return count, text if is_plain else _rewritten(text)

    def parsed(self, entries: int, text: bytes, first: int) -> Any:
        """The matrix of so many entries, whose lines `checked` has given."""
        sizes = [self.rows, self.columns, entries][: 3 if self.layout == "coordinate" else 2]
        head = self.banner.rstrip() + b"\n" + " ".join(map(str, sizes)).encode() + b"\n"
        content = io.BytesIO(b"".join([head, text, b"" if text.endswith(b"\n") else b"\n"]))
        try:
            return scipy.io.mmread(content, spmatrix=False)
        except (ValueError, OverflowError) as error:
            says = re.fullmatch(r"Line (\d+)(: .*)", str(error), re.DOTALL)
            if says is None:
                raise
            # For SciPy the first of these lines is number 3.
            raise ValueError(f"line {int(says[1]) - 3 + first}{says[2]}") from None


def parse_matrix_market(content: bytes, max_bytes: int) -> Any:
    file = io.BytesIO(content)
    head = Head.of(file)
    rows, columns = head.rows, head.columns
    check_shape(rows, columns, max_bytes)
    check_square(head)
    # An entry is a line of 4 bytes or more ("1 1", newline), in an array of 2 or more. A
    # skew-symmetric array holds half of the entries, without the diagonal.
    is_list = head.layout == "coordinate"
    least = 4 * head.entries - 1 if is_list else head.entries - rows
    if least > len(content):
        raise ValueError(f"promises {head.entries} entries in {len(content)} bytes")
    first = head.lines + 1
    found, text = head.checked(content[file.tell() :], first)
    if not is_list and head.entries == 0:  # SciPy's reader divides by zero
        if found:
            raise ValueError(f"promises no entries, but has {found}")
        return csr_array((rows, columns))
    matrix = head.parsed(head.entries, text, first)
    check_diagonal(matrix, head.symmetry)
    return matrix


def check_square(head: Head) -> None:
    if head.symmetry != "general" and head.rows != head.columns:
        raise ValueError(f"{head.symmetry}, but not square: {head.rows} x {head.columns}")


def check_diagonal(matrix: Any, symmetry: str) -> None:
    """Check that the diagonal is its own mirror image, as this symmetry has it."""
    if symmetry not in ("skew-symmetric", "hermitian"):
        return
    diagonal = matrix.diagonal()
    wrong = diagonal != 0 if symmetry == "skew-symmetric" else diagonal.imag != 0
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(f"{symmetry}, but has {diagonal[at]} on its diagonal in row {at + 1}")


# -- lines -----------------------------------------------------------------------------------------

_SHAPE = bytes.maketrans(b"123456789\t\r", b"000000000  ")
_WORD = rb"[+-]?(?:inf|infinity|nan)"
_MANTISSA = rb"(?:\d+(?:\.\d*)?|\.\d+)"
_REAL = rb"(?:[+-]?%b(?:[eEdD][+-]?\d+|[+-]\d+)?|%b)" % (_MANTISSA, _WORD)
_PLAIN_REAL = rb"(?:-?%b(?:[eE][+-]?\d+)?|-?(?:inf|infinity|nan))" % _MANTISSA

# Kinds of fields: what it is called, how it is written, and how SciPy wants it written.
_Kind = tuple[str, bytes, bytes]
_INDEX = ("an index", rb"[+-]?\d+", rb"-?\d+")
_INTEGER = ("an integer", rb"[+-]?\d+", rb"-?\d+")
_UNSIGNED = ("an unsigned integer", rb"\+?\d+", rb"\d+")
_NUMBER = ("a real number", _REAL, _PLAIN_REAL)
_FIELDS: dict[str, list[_Kind]] = {
    field: [_INDEX, _INDEX, *values]
    for field, values in {
        "pattern": [],
        "integer": [_INTEGER],
        "unsigned-integer": [_UNSIGNED],
        "real": [_NUMBER],
        "complex": [_NUMBER, _NUMBER],
    }.items()
}


def _line_of(fields: Iterable[bytes]) -> re.Pattern[bytes]:
    """A line of these fields, whose tabs and carriage returns are blanks as in a shape."""
    return re.compile(b" *" + b" +".join(fields) + b" *", re.IGNORECASE)


def _pieces(text: bytes) -> Iterator[bytes]:
    """The text, cut behind line ends."""
    begin = 0
    while begin < len(text):
        end = text.find(b"\n", begin + PIECE) + 1 or len(text)
        yield text[begin:end] if end - begin < len(text) else text
        begin = end


def _rewritten(lines: bytes) -> bytes:
    """Right lines in the form that SciPy reads."""
    lines = lines.translate(bytes.maketrans(b"dD", b"ee"))
    lines = re.sub(rb"(?<=[\d.])(?=[+-])", b"e", lines)
    return re.sub(rb"(?<![eE])\+", b"", lines)


def _what_is_wrong(line: bytes, wanted: list[_Kind]) -> str:
    fields = re.findall(rb"[^ \t\r]+", line)
    if len(fields) != len(wanted):
        return f"has {len(fields)} fields, expected {', '.join(name for name, *_ in wanted)}"
    return next(
        f"{shortened(field.decode('latin-1'))} is not {name}"
        for field, (name, written, _) in zip(fields, wanted)
        if not re.fullmatch(written, field, re.IGNORECASE)
    )
