"""Proofs that travel: a result, what proves it, and a hash of its problem, in one file.

A file is ``.npz``, or text (``.txt``) that people and the second checker read, which is in C
(``standalone/check.c``). Both hold the same. docs/algorithms/proof_files.md states the format, what
a reader must check, and why that proves the result. Version 1 stays readable: what is added later
has a version of its own.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gpumatch.certificates.base import CertificateError, cover_of, python_number
from gpumatch.certificates.hashes import hash_of
from gpumatch.numeric.arrays import array_of

__all__ = ["Proof", "load", "proof_of", "save"]

VERSION = 1
MAX_BYTES = 2**34
"""The largest text, and the largest sum of the arrays of an ``.npz``, that is read."""

PROBLEMS = {
    "matching": ("row_to_col", "col_to_row", "cover_rows", "cover_cols"),
    "assignment": (
        *("maximize", "cardinality", "objective", "gap", "cost_limit", "row_dual", "col_dual"),
        *("row_to_col", "col_to_row", "cover_rows", "cover_cols"),
    ),
}
"""What a proof holds, in the order of the text."""
_IDS = ("row_to_col", "col_to_row", "cover_rows", "cover_cols")
_NUMBERS = ("row_dual", "col_dual")


class Proof:
    """A result and what proves it, as a file holds them. `gpumatch.verify` takes it.

    Attributes
    ----------
    problem : {"matching", "assignment"}
    shape : (int, int)
        Rows and columns of the problem.
    sha256 : str
        The hash of the problem, in hexadecimal digits.
    row_to_col, col_to_row : int64 arrays
        The mates; -1 is unmatched.
    cover_rows, cover_cols : int64 arrays
        The vertex cover of a matching, or of an assignment of cardinality ``"maximum"``, ascending;
        otherwise empty.
    maximize, cardinality, cost_limit, objective, gap, row_dual, col_dual
        Of an assignment: as `gpumatch.Assignment` has them.
    """

    def __init__(self, problem: str, shape: tuple[int, int], sha256: str, **parts: Any) -> None:
        self.problem, self.shape, self.sha256 = problem, shape, sha256
        self.__dict__.update(parts)

    def __repr__(self) -> str:
        rows, cols = self.shape
        return f"Proof({self.problem} of {rows} x {cols}, {self.row_ind.size} pairs)"

    @property
    def row_ind(self) -> np.ndarray:
        """The rows of the pairs."""
        return np.flatnonzero(self.__dict__["row_to_col"] >= 0)

    @property
    def col_ind(self) -> np.ndarray:
        """The columns of the pairs, by row."""
        return self.__dict__["row_to_col"][self.row_ind]

    def vertex_cover(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and the columns of the cover."""
        return self.__dict__["cover_rows"], self.__dict__["cover_cols"]

    def check_problem(self, A: Any) -> None:
        """Raise CertificateError unless this is a proof of `A`."""
        shape, sha256 = hash_of(A, self.problem)
        if shape != self.shape:
            raise CertificateError(f"the proof is one of {self.shape}, but the problem is {shape}")
        if sha256 != self.sha256:
            raise CertificateError("the proof is one of another problem: their hashes differ")


def save(file: str | os.PathLike[str], A: Any, result: Any) -> None:
    """Write a result with its proof, and a hash of its problem.

    Parameters
    ----------
    file : path
        It ends in ``.npz`` or ``.txt``.
    A : the graph or the costs
        What the result is one of.
    result : Matching or Assignment
        A proven one of `maximum_matching` or `assign`, of the sum of stored costs.

    Raises
    ------
    ValueError
        If the name ends otherwise, or the result is not proven.
    TypeError
        If there is no such file for the result or for the costs.

    Examples
    --------
    >>> import os, tempfile, numpy as np, gpumatch as gm
    >>> from gpumatch import certificates
    >>> C = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    >>> file = os.path.join(tempfile.mkdtemp(), "proof.txt")
    >>> certificates.save(file, C, gm.assign(C))
    >>> print(certificates.check(file, C))
    optimal: 3 pairs of total 5, and dual prices of total 5, checked on 9 pairs; the gap is 0
    """
    path = Path(file)
    suffix = _suffix(path)
    proof = proof_of(A, result)
    if suffix == ".txt":
        with open(path, "w", encoding="ascii", newline="\n") as out:
            out.writelines(_lines(proof))
        return
    limit = proof.__dict__.get("cost_limit")
    held: dict[str, Any] = {
        name: proof.__dict__[name] for name in PROBLEMS[proof.problem] if name != "cost_limit"
    }
    if limit is not None:
        held["cost_limit"] = limit
    head: dict[str, Any] = {"version": VERSION, "problem": proof.problem, "sha256": proof.sha256}
    with open(path, "wb") as binary:
        np.savez(binary, allow_pickle=False, **head, shape=np.array(proof.shape), **held)


def proof_of(A: Any, result: Any) -> Proof:
    """What a file holds of a result; errors as of `save`."""
    if hasattr(result, "errors") or not hasattr(result, "col_to_row"):
        raise TypeError(f"there are no files of proofs for {type(result).__name__}")
    if getattr(result, "proven", True) is not True:
        raise ValueError("the result must be proven: a file says that it is the best")
    is_assignment = hasattr(result, "row_dual")
    if not is_assignment and any(hasattr(result, name) for name in _OTHERS):
        raise TypeError(f"there are no files of proofs for {type(result).__name__}")
    problem = "assignment" if is_assignment else "matching"
    shape, sha256 = hash_of(A, problem)
    parts: dict[str, Any] = {
        name: array_of(np, getattr(result, name)).astype(np.int64)
        for name in ("row_to_col", "col_to_row")
    }
    cover: tuple[Any, Any] = ((), ())
    if not is_assignment or result.cardinality == "maximum":
        cover = cover_of(result)
    for name, side in zip(("cover_rows", "cover_cols"), cover):
        parts[name] = np.sort(array_of(np, side).astype(np.int64))
    if is_assignment:
        parts |= {name: _wide(array_of(np, getattr(result, name))) for name in _NUMBERS}
        parts |= {
            name: python_number(f"the {name}", getattr(result, name))
            for name in ("objective", "gap")
        }
        parts["maximize"], parts["cardinality"] = bool(result.maximize), str(result.cardinality)
        parts["cost_limit"] = _limit(result.cost_limit)
    return Proof(problem, shape, sha256, **parts)


_OTHERS = ("threshold_cover", "levels", "row_capacity", "row_log_scale", "flow_units")


def _wide(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.int64 if numbers.dtype.kind in "iub" else np.float64)


def _limit(given: Any) -> Any:
    if given is None:
        return None
    limit = array_of(np, given)
    return _wide(limit) if limit.ndim else _wide(limit[None])[0].item()


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in (".npz", ".txt"):
        raise ValueError(f"{path}: a file of a proof ends in .npz or .txt")
    return suffix


# -- text ------------------------------------------------------------------------------------------


def _lines(proof: Proof) -> Iterator[str]:
    """The text of a proof. Floats are in hexadecimal digits, which round nothing."""
    yield f"gpumatch-proof {VERSION}\nproblem {proof.problem}\nsha256 {proof.sha256}\n"
    yield "shape {} {}\n".format(*proof.shape)
    for name in PROBLEMS[proof.problem]:
        part = proof.__dict__[name]
        if name == "maximize":
            yield f"maximize {int(part)}\n"
        elif name == "cardinality":
            yield f"cardinality {part}\n"
        elif name in ("objective", "gap"):
            yield f"{name} {_word(part)}\n"
        elif name != "cost_limit":
            yield f"{name} {part.size}\n{_words(part)}\n"
        elif part is None:
            yield "cost_limit none\n"
        else:
            is_one = not isinstance(part, np.ndarray)
            yield (
                f"cost_limit all {_word(part)}\n" if is_one else f"cost_limit rows {_words(part)}\n"
            )
    yield "end\n"


def _word(number: Any) -> str:
    return number.hex() if isinstance(number, float) else str(number)


def _words(numbers: np.ndarray) -> str:
    return " ".join(map(_word, numbers.tolist()))


class _Words:
    """The words of a text, one after the other."""

    def __init__(self, path: Path) -> None:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
        self.words, self.place = path.read_bytes().split(), 0

    def take(self, count: int = 1) -> list[bytes]:
        """The next words; ValueError if there are fewer."""
        self.place += count
        if count < 0 or self.place > len(self.words):
            raise ValueError("it ends too early")
        return self.words[self.place - count : self.place]

    def expect(self, *words: str) -> None:
        for word in words:
            (found,) = self.take()
            if found != word.encode():
                raise ValueError(f"expected {word}; got {found.decode('ascii', 'replace')[:40]}")

    def text(self) -> str:
        return self.take()[0].decode("ascii")

    def ids(self, count: int = 1) -> np.ndarray:
        return np.array([_int(word) for word in self.take(count)], np.int64)

    def numbers(self, count: int = 1) -> np.ndarray:
        found = [_number(word) for word in self.take(count)]
        return np.array(found, np.float64 if any(type(one) is float for one in found) else np.int64)


def _int(word: bytes) -> int:
    if not word.lstrip(b"-").isdigit():
        raise ValueError(f"expected an integer; got {word.decode('ascii', 'replace')[:40]}")
    return int(word)


def _number(word: bytes) -> int | float:
    if word.lstrip(b"-").isdigit():
        return int(word)
    text = word.decode("ascii")
    return float.fromhex(text) if "x" in text else float(text)


def _of_text(path: Path) -> Proof:
    words = _Words(path)
    words.expect("gpumatch-proof", str(VERSION), "problem")
    problem = words.text()
    if problem not in PROBLEMS:
        raise ValueError(f"there is no problem {problem[:40]}")
    words.expect("sha256")
    sha256 = words.text()
    words.expect("shape")
    shape = tuple(words.ids(2).tolist())
    parts: dict[str, Any] = {}
    for name in PROBLEMS[problem]:
        words.expect(name)
        if name == "maximize":
            parts[name] = _flag(words.text())
        elif name == "cardinality":
            parts[name] = words.text()
        elif name in ("objective", "gap"):
            parts[name] = words.numbers()[0].item()
        elif name == "cost_limit":
            form = words.text()
            parts[name] = _limit_of(words, form, shape[0])
        else:
            count = int(words.ids()[0])
            parts[name] = (words.numbers if name in _NUMBERS else words.ids)(count)
    words.expect("end")
    if words.place != len(words.words):
        raise ValueError("it goes on after its end")
    return Proof(problem, shape, sha256, **parts)


def _flag(word: str) -> bool:
    if word not in ("0", "1"):
        raise ValueError(f"maximize must be 0 or 1; got {word[:40]}")
    return word == "1"


def _limit_of(words: _Words, form: str, nrows: int) -> Any:
    if form == "none":
        return None
    if form == "all":
        return words.numbers()[0].item()
    if form != "rows":
        raise ValueError(f"cost_limit must be none, all or rows; got {form[:40]}")
    return words.numbers(nrows)


# -- npz -------------------------------------------------------------------------------------------


def _of_npz(path: Path) -> Proof:
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
    with np.load(path, allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    version = _scalar(arrays, "version", int)
    if version != VERSION:
        raise ValueError(f"version {version} is not known; this is {VERSION}")
    problem = _scalar(arrays, "problem", str)
    if problem not in PROBLEMS:
        raise ValueError(f"there is no problem {problem[:40]}")
    shape = _array(arrays, "shape", "i")
    parts: dict[str, Any] = {}
    for name in PROBLEMS[problem]:
        if name in ("maximize", "cardinality"):
            parts[name] = _scalar(arrays, name, bool if name == "maximize" else str)
        elif name in ("objective", "gap"):
            parts[name] = _scalar(arrays, name, (int, float))
        elif name != "cost_limit":
            parts[name] = _array(arrays, name, "if" if name in _NUMBERS else "i")
        elif name in arrays:
            is_one = arrays[name].ndim == 0
            parts[name] = (
                _scalar(arrays, name, (int, float)) if is_one else _array(arrays, name, "if")
            )
        else:
            parts[name] = None
    if shape.size != 2:
        raise ValueError("shape must be two integers")
    rows, cols = shape.tolist()
    return Proof(problem, (rows, cols), _scalar(arrays, "sha256", str), **parts)


def _scalar(arrays: dict[str, np.ndarray], name: str, kind: Any) -> Any:
    value = arrays[name].item() if name in arrays and arrays[name].ndim == 0 else None
    if not isinstance(value, kind):
        raise ValueError(f"{name} is missing, or is of a wrong kind")
    return value


def _array(arrays: dict[str, np.ndarray], name: str, kinds: str) -> np.ndarray:
    if name not in arrays or arrays[name].ndim != 1 or arrays[name].dtype.kind not in kinds:
        raise ValueError(f"{name} is missing, or is no list of numbers")
    return _wide(arrays[name])


def load(file: str | os.PathLike[str]) -> Proof:
    """Read a proof; `check` compares it with its problem.

    Parameters
    ----------
    file : path
        What `save` has written.

    Returns
    -------
    Proof

    Raises
    ------
    ValueError
        If the file is no proof of a known version, or is larger than 2**34 bytes.
    OSError
        If it cannot be read.
    """
    path = Path(file)
    try:
        return _of_text(path) if _suffix(path) == ".txt" else _of_npz(path)
    except (ValueError, KeyError, OverflowError, EOFError, zipfile.BadZipFile) as error:
        message = str(error)
        raise ValueError(message if str(path) in message else f"{path}: {message}") from error
