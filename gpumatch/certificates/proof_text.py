"""Proofs as text, which people and the second checker read; docs/algorithms/proof_files.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gpumatch.certificates.proof_parts import PARTS, VERSIONS

__all__ = ["lines_of", "read_text"]


def lines_of(
    problem: str, shape: tuple[int, int], sha256: str, parts: dict[str, Any]
) -> Iterator[str]:
    """The text of a proof. Floats are in hexadecimal digits, which round nothing."""
    yield f"gpumatch-proof {VERSIONS[problem]}\nproblem {problem}\nsha256 {sha256}\n"
    yield "shape {} {}\n".format(*shape)
    for name, form in PARTS[problem].items():
        yield f"{name} {_text_of(form, parts[name])}\n"
    yield "end\n"


def _text_of(form: str, part: Any) -> str:
    if part is None:
        return "none"
    if form == "flag":
        return str(int(part))
    if form in ("ids", "numbers"):
        return f"{part.size}\n{_words(part)}"
    if form in ("limit", "capacity"):
        if not isinstance(part, np.ndarray):
            return f"all {_word(part)}"
        return f"rows {_words(part)}" if form == "limit" else f"pairs {part.size}\n{_words(part)}"
    return _word(part)


def _word(number: Any) -> str:
    return number.hex() if isinstance(number, float) else str(number)


def _words(numbers: np.ndarray) -> str:
    return " ".join(map(_word, numbers.tolist()))


def read_text(path: Path, max_bytes: int) -> tuple[str, tuple[int, int], str, dict[str, Any]]:
    """Problem, shape, hash and parts; ValueError if the text is no proof of a known version."""
    words = _Words(path, max_bytes)
    words.expect("gpumatch-proof")
    version = words.text()
    words.expect("problem")
    problem = words.text()
    if version not in map(str, VERSIONS.values()):
        raise ValueError(f"version {version[:40]} is not known; these are 1 and 2")
    if version != str(VERSIONS.get(problem)):
        raise ValueError(f"there is no problem {problem[:40]} in version {version}")
    words.expect("sha256")
    sha256 = words.text()
    words.expect("shape")
    rows, cols = words.ids(2).tolist()
    parts = {}
    for name, form in PARTS[problem].items():
        words.expect(name)
        parts[name] = words.part(form, rows)
    words.expect("end")
    if words.place != len(words.words):
        raise ValueError("it goes on after its end")
    return problem, (rows, cols), sha256, parts


class _Words:
    """The words of a text, one after the other."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        if path.stat().st_size > max_bytes:
            raise ValueError(f"more than {max_bytes} bytes")
        self.words, self.place = path.read_bytes().split(), 0

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
        found = [_number(word) for word in self.take(count)]
        return np.array(found, np.float64 if any(type(one) is float for one in found) else np.int64)

    def number(self) -> int | float:
        return _number(self.take()[0])

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
                raise ValueError(f"maximize must be 0 or 1; got {word[:40]}")
            return word == "1"
        if word == "none":
            return None
        if form == "objective":
            return _number(word.encode())
        if word == "all":
            return self.number() if form == "limit" else int(self.ids()[0])
        if form == "limit" and word == "rows":
            return self.numbers(nrows)
        if form == "capacity" and word == "pairs":
            return self.ids(int(self.ids()[0]))
        raise ValueError(f"expected none, all, or one for each; got {word[:40]}")


def _int(word: bytes) -> int:
    if not word.lstrip(b"-").isdigit():
        raise ValueError(f"expected an integer; got {_shown(word)}")
    return int(word)


def _number(word: bytes) -> int | float:
    if word.lstrip(b"-").isdigit():
        return int(word)
    text = word.decode("ascii")
    return float.fromhex(text) if "x" in text else float(text)


def _shown(word: bytes) -> str:
    return word.decode("ascii", "replace")[:40]
