"""Proofs that travel: a result, what proves it, and a hash of its problem, in one file.

A file is ``.npz``, or text (``.txt``) that people and the second checker read, which is in C
(``standalone/check.c``). Both hold the same. docs/algorithms/proof_files.md states the format, what
a reader must check, and why that proves the result. Version 1 has matchings and assignments, and
version 2 the other problems. What is added later has a version of its own, and all stay readable.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np

from gpumatch.certificates.base import CertificateError, cover_of, python_number
from gpumatch.certificates.hashes import hash_of
from gpumatch.certificates.proof_arrays import read_arrays, write_arrays
from gpumatch.certificates.proof_parts import PARTS, wide
from gpumatch.certificates.proof_text import lines_of, read_text
from gpumatch.numeric.arrays import array_of

__all__ = ["Proof", "load", "proof_of", "save"]

MAX_BYTES = 2**34
"""The largest text, and the largest sum of the arrays of an ``.npz``, that is read."""


class Proof:
    """A result and what proves it, as a file holds them. `gpumatch.verify` takes it.

    It also has the parts of its problem as attributes, which are those of the result: mates as
    int64 arrays, of a flow its pairs and units, duals as int64 or float64 arrays, and the arguments
    and claims of the call. docs/algorithms/proof_files.md lists them.

    Attributes
    ----------
    problem : str
        "matching", "assignment", "bottleneck", "transport", "general-matching" or
        "general-weights".
    shape : (int, int)
        Rows and columns of the problem; of a graph, twice its number of vertices.
    sha256 : str
        The hash of the problem, in hexadecimal digits.
    """

    def __init__(self, problem: str, shape: tuple[int, int], sha256: str, **parts: Any) -> None:
        self.problem, self.shape, self.sha256 = problem, shape, sha256
        self.parts = parts
        self.__dict__.update(parts)

    def __repr__(self) -> str:
        rows, cols = self.shape
        of_what = f"{rows} vertices" if self.problem.startswith("general") else f"{rows} x {cols}"
        return f"Proof({self.problem} of {of_what}, {self.row_ind.size} pairs)"

    @property
    def row_ind(self) -> np.ndarray:
        """The rows of the pairs; of a graph, the smaller ends."""
        mate = self.parts.get("mate")
        if mate is not None:
            return np.flatnonzero(mate > np.arange(mate.size))
        return np.flatnonzero(self.parts["row_to_col"] >= 0)

    @property
    def col_ind(self) -> np.ndarray:
        """The columns of the pairs, by row; of a graph, the larger ends."""
        mates = self.parts["mate" if "mate" in self.parts else "row_to_col"]
        return mates[self.row_ind]

    def check_problem(self, A: Any, *, weight: Hashable = "weight", triangle: str = "both") -> None:
        """Raise CertificateError unless this is a proof of `A`."""
        maximize = self.parts.get("maximize", True)
        shape, sha256 = hash_of(A, self.problem, weight, triangle, maximize=maximize)
        if shape != self.shape:
            raise CertificateError(f"the proof is one of {self.shape}, but the problem is {shape}")
        if sha256 != self.sha256:
            raise CertificateError("the proof is one of another problem: their hashes differ")


class _CoverProof(Proof):
    """With a vertex cover."""

    def vertex_cover(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and the columns of the cover."""
        return self.parts["cover_rows"], self.parts["cover_cols"]

    cover_ind = vertex_cover


class _BottleneckProof(_CoverProof):
    def threshold_cover(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and the columns that touch all pairs better than the objective."""
        return self.parts["threshold_rows"], self.parts["threshold_cols"]


class _TransportProof(_CoverProof):
    def __init__(self, problem: str, shape: tuple[int, int], sha256: str, **parts: Any) -> None:
        super().__init__(problem, shape, sha256, **parts)
        self.row_bounds = parts["row_lower"], parts["row_upper"]
        self.col_bounds = parts["col_lower"], parts["col_upper"]
        given = parts["pair_capacity"]
        if given is not None:
            given = np.asarray(given, np.int64)
            is_matrix = given.ndim == 1 and given.size == shape[0] * shape[1]
            given = given.reshape(shape) if is_matrix else given
        self.pair_capacity = given

    @property
    def row_ind(self) -> np.ndarray:
        found: np.ndarray = self.parts["row_ind"]
        return found

    @property
    def col_ind(self) -> np.ndarray:
        found: np.ndarray = self.parts["col_ind"]
        return found


class _GeneralProof(Proof):
    def tutte_berge_ind(self) -> np.ndarray:
        """The vertices of the Tutte–Berge set."""
        found: np.ndarray = self.parts["tutte_berge"]
        return found


_CLASSES = {
    "matching": _CoverProof,
    "assignment": _CoverProof,
    "bottleneck": _BottleneckProof,
    "transport": _TransportProof,
    "general-matching": _GeneralProof,
    "general-weights": Proof,
}


# -- what a result has -----------------------------------------------------------------------------


_SIGNS = {
    "general-weights": ("vertex_dual",),
    "general-matching": ("mate", "tutte_berge_ind"),
    "transport": ("flow_units", "row_bounds"),
    "bottleneck": ("threshold_cover",),
    "assignment": ("row_dual", "col_to_row"),
    "matching": ("row_to_col", "col_to_row", "vertex_cover"),
}
"""What only the results of a problem, and of those below it, have."""
_OTHERS = (
    *("errors", "counts", "tree", "bound", "levels", "row_capacity", "row_log_scale", "forced"),
)
"""What only results have of which there are no files."""


def _problem_of(result: Any) -> str:
    if not any(hasattr(result, name) for name in _OTHERS):
        for problem, names in _SIGNS.items():
            if all(hasattr(result, name) for name in names):
                return problem
    raise TypeError(f"there are no files of proofs for {type(result).__name__}")


def proof_of(A: Any, result: Any, *, weight: Hashable = "weight", triangle: str = "both") -> Proof:
    """What a file holds of a result; errors as of `save`."""
    problem = _problem_of(result)
    if getattr(result, "proven", True) is not True:
        raise ValueError("the result must be proven: a file says that it is the best")
    maximize = getattr(result, "maximize", True)
    shape, sha256 = hash_of(A, problem, weight, triangle, maximize=maximize)
    own = _own_parts(problem, result)
    parts = {
        name: own[name] if name in own else _part_of(name, form, getattr(result, name))
        for name, form in PARTS[problem].items()
    }
    return _CLASSES[problem](problem, shape, sha256, **parts)


def _own_parts(problem: str, result: Any) -> dict[str, Any]:
    """The parts that a result has under another name, or by a call."""
    if problem == "general-matching":
        return {"tutte_berge": _ascending(result.tutte_berge_ind())}
    if problem == "general-weights":
        return {}
    cover: tuple[Any, Any] = ((), ())
    if problem == "matching" or result.cardinality == "maximum":
        cover = cover_of(result)
    own: dict[str, Any] = dict(zip(("cover_rows", "cover_cols"), map(_ascending, cover)))
    if problem == "bottleneck":
        names = "threshold_rows", "threshold_cols"
        own |= zip(names, map(_ascending, result.threshold_cover()))
    if problem == "transport":
        for side in ("row", "col"):
            bounds = getattr(result, f"{side}_bounds")
            own |= zip((f"{side}_lower", f"{side}_upper"), (wide(array_of(np, b)) for b in bounds))
    return own


def _part_of(name: str, form: str, given: Any) -> Any:
    if given is None:
        return None
    if form == "flag":
        return bool(given)
    if form == "word":
        return str(given)
    if form in ("number", "objective"):
        return python_number(f"the {name}", given)
    values = wide(array_of(np, given))
    if form in ("limit", "capacity"):
        return values.ravel() if values.ndim else values.item()
    return values.astype(np.int64) if form == "ids" else values


def _ascending(vertices: Any) -> np.ndarray:
    return np.sort(array_of(np, vertices).astype(np.int64))


# -- files -----------------------------------------------------------------------------------------


def save(
    file: str | os.PathLike[str],
    A: Any,
    result: Any,
    *,
    weight: Hashable = "weight",
    triangle: str = "both",
) -> None:
    """Write a result with its proof, and a hash of its problem.

    Parameters
    ----------
    file : path
        It ends in ``.npz`` or ``.txt``.
    A : the graph or the costs
        What the result is one of.
    result : Matching, Assignment, BottleneckAssignment, Transport, GeneralMatching or \
            GeneralWeightMatching
        A proven one. Costs must be stored ones.
    weight, triangle
        Of a graph, as they were chosen; see `gpumatch.verify`.

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
    proof = proof_of(A, result, weight=weight, triangle=triangle)
    what = proof.problem, proof.shape, proof.sha256, proof.parts
    if suffix == ".npz":
        write_arrays(path, *what)
        return
    with open(path, "w", encoding="ascii", newline="\n") as out:
        out.writelines(lines_of(*what))


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in (".npz", ".txt"):
        raise ValueError(f"{path}: a file of a proof ends in .npz or .txt")
    return suffix


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
    read = read_text if _suffix(path) == ".txt" else read_arrays
    try:
        problem, shape, sha256, parts = read(path, MAX_BYTES)
        return _CLASSES[problem](problem, shape, sha256, **parts)
    except (ValueError, KeyError, OverflowError, EOFError, zipfile.BadZipFile) as error:
        message = str(error)
        raise ValueError(message if str(path) in message else f"{path}: {message}") from error
