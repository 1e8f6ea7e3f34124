"""Proofs as text, which people and the second checker read; docs/algorithms/proof_files.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gpumatch.certificates.proof_parts import (
    PARTS,
    STORED,
    Record,
    check_batch,
    check_version,
    version_of,
)

__all__ = ["lines_of", "number_of", "read_text"]

WITH_COSTS = 3
"""The first version that has a line for the kind of costs."""


def lines_of(record: Record) -> Iterator[str]:
    """The text of a proof. Floats are in hexadecimal digits, which round nothing."""
    problem, costs, shape, sha256, parts = record
    version = version_of(problem, costs)
    yield f"gpumatch-proof {version}\nproblem {problem}\n"
    if version >= WITH_COSTS:
        yield f"costs {costs}\n"
    yield "sha256 {}\nshape {} {}\n".format(sha256, *shape)
    for name, form in PARTS[problem].items():
        if form == "proofs":
            yield f"{name} {len(parts[name])}\n"
            for one in parts[name]:
                yield from lines_of(one)
        else:
            yield f"{name} {_text_of(form, parts[name])}\n"
    yield "end\n"


def _text_of(form: str, part: Any) -> str:
    if part is None:
        return "none"
    if form == "flag":
        return str(int(part))
    if form in ("ids", "numbers"):
        return f"{part.size}\n{_words(part)}"
    if form in ("limit", "capacity", "order"):
        if not isinstance(part, np.ndarray):
            return f"all {_word(part)}"
        if form == "capacity":
            return f"pairs {part.size}\n{_words(part)}"
        return (
            f"rows {_words(part)}" if form == "limit" else f"vertices {part.size}\n{_words(part)}"
        )
    return _word(part)


def _word(number: Any) -> str:
    return number.hex() if isinstance(number, float) else str(number)


def _words(numbers: np.ndarray) -> str:
    return " ".join(map(_word, numbers.tolist()))


def read_text(path: Path, max_bytes: int) -> Record:
    """The record; ValueError if the text is no proof of a known version."""
    words = _Words(path, max_bytes)
    record = words.record()
    if words.place != len(words.words):
        raise ValueError("it goes on after its end")
    return record


class _Words:
    """The words of a text, one after the other."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        if path.stat().st_size > max_bytes:
            raise ValueError(f"more than {max_bytes} bytes")
        self.words, self.place = path.read_bytes().split(), 0

    def record(self, *, is_part: bool = False) -> Record:
        """A whole proof, or that of a problem of a batch."""
        self.expect("gpumatch-proof")
        version = int(self.ids()[0])
        self.expect("problem")
        problem, costs = self.text(), STORED
        if version == WITH_COSTS:
            self.expect("costs")
            costs = self.text()
        check_version(version, problem, costs)
        if is_part and problem == "batch":
            raise ValueError("a problem of a batch is a batch")
        self.expect("sha256")
        sha256 = self.text()
        self.expect("shape")
        rows, cols = self.ids(2).tolist()
        parts = {}
        for name, form in PARTS[problem].items():
            self.expect(name)
            if form == "proofs":
                parts[name] = [self.record(is_part=True) for _ in range(int(self.ids()[0]))]
                check_batch(parts[name])
            else:
                parts[name] = self.part(form, rows)
        self.expect("end")
        return Record(problem, costs, (rows, cols), sha256, parts)

    def take(self, count: int = 1) -> list[bytes]:
        """The next words; ValueError if there are fewer."""
        self.place += count
        if count < 0 or self.place > len(self.words):
            raise ValueError("it ends too early")
        return self.words[self.place - count : self.place]

    def expect(self, word: str) -> None:
        (found,) = self.take()
        if found != word.encode():
            raise ValueError(f"expected {word}; got {_shown(found)}")

    def text(self) -> str:
        return self.take()[0].decode("ascii")

    def ids(self, count: int = 1) -> np.ndarray:
        return np.array([_int(word) for word in self.take(count)], np.int64)

    def numbers(self, count: int = 1) -> np.ndarray:
        found = [number_of(word) for word in self.take(count)]
        return np.array(found, np.float64 if any(type(one) is float for one in found) else np.int64)

    def number(self) -> int | float:
        return number_of(self.take()[0])

    def part(self, form: str, nrows: int) -> Any:
        """A part of this form, of a problem with so many rows."""
        if form in ("ids", "numbers"):
            count = int(self.ids()[0])
            return self.ids(count) if form == "ids" else self.numbers(count)
        if form == "number":
            return self.number()
        word = self.text()
        if form == "word":
            return word
        if form == "flag":
            if word not in ("0", "1"):
                raise ValueError(f"expected 0 or 1; got {word[:40]}")
            return word == "1"
        if word == "none":
            return None
        if form == "objective":
            return number_of(word.encode())
        if word == "all" and form != "order":
            return self.number() if form == "limit" else int(self.ids()[0])
        if form == "limit" and word == "rows":
            return self.numbers(nrows)
        if (form, word) in (("capacity", "pairs"), ("order", "vertices")):
            return self.ids(int(self.ids()[0]))
        raise ValueError(f"expected none, all, or one for each; got {word[:40]}")


def _int(word: bytes) -> int:
    if not word.lstrip(b"+-").isdigit():
        raise ValueError(f"expected an integer; got {_shown(word)}")
    return int(word)


def number_of(word: bytes) -> int | float:
    """The number that a word is; ValueError if it is none."""
    if word.lstrip(b"+-").isdigit():
        return int(word)
    text = word.decode("ascii")
    return float.fromhex(text) if "x" in text else float(text)


def _shown(word: bytes) -> str:
    return word.decode("ascii", "replace")[:40]
