"""Files: what is written is read back, in every format and spelling; damaged bytes are refused.

A damaged file may still be one that means something. So the only demands are that reading it ends
in a matrix or in a ValueError, soon and with little memory.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from scipy import sparse

import gpumatch as gm
from tests.fuzz import problems
from tests.fuzz.judgement import require
from tests.fuzz.problems import Problem
from tests.fuzz.trials import Trial

FORMATS = ("mtx", "mtx spelled", "npz", "npy", "csv", "edges", "hb")
SUFFIXES = {"mtx spelled": ".mtx", "edges": ".txt", "hb": ".rua"}
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    **{"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
}
MOST_BYTES = 2**26


def files(trial: Trial) -> None:
    """A matrix in a file is the matrix that is read, from a path or an open file."""
    problem, kind, content, reads_costs = _written(trial)
    ending = trial.pick(list(COMPRESSIONS))
    content = COMPRESSIONS[ending](content)
    read = gm.io.read_costs if reads_costs else gm.io.read
    if kind != "hb" and trial.chance(0.5):  # which has no mark of its own
        _check(problem, kind, read(io.BytesIO(content)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{SUFFIXES.get(kind, '.' + kind)}{ending}"
        path.write_bytes(content)
        _check(problem, kind, read(path))


def damaged(trial: Trial) -> None:
    """Some bytes are changed, cut off, doubled or put in."""
    _, _, content, reads_costs = _written(trial, most=2**8)
    content = bytearray(content)
    for _ in range(trial.integer(1, 4)):
        _damage(trial, content)
    trial.note(content=bytes(content[:1500]))
    read = gm.io.read_costs if reads_costs else gm.io.read
    try:
        found = read(io.BytesIO(bytes(content)), max_bytes=MOST_BYTES)
    except (ValueError, MemoryError):
        return
    require(len(found.shape) == 2 or not sparse.issparse(found), f"it has shape {found.shape}")


TEXTS = (
    *(b"", b" ", b",", b";", b"\n", b"#", b"%", b"nan", b"inf", b"1e400", b"1D5", b"-", b"e", b"+"),
    *(b"99999999999", b"\0", b"\xff", b"1.5", b"%%MatrixMarket", b'"', b"\t", b"0x10"),
)


def _damage(trial: Trial, content: bytearray) -> None:
    if not content:
        return
    at = trial.integer(0, len(content))
    kind = trial.pick(("byte", "cut", "insert", "double", "remove"))
    if kind == "byte" and at < len(content):
        content[at] = trial.integer(0, 255)
    elif kind == "cut":
        del content[at:]
    elif kind == "insert":
        content[at:at] = trial.pick(TEXTS)
    elif kind == "double":
        content[at:at] = content[at : at + trial.integer(1, 40)]
    else:
        del content[at : at + trial.integer(1, 10)]


def _check(problem: Problem, kind: str, found: Any) -> None:
    """The shape may be smaller where the format has none."""
    expected = np.zeros(problem.shape, np.float64)
    expected[problem.rows, problem.cols] = problem.values
    if kind in ("csv", "npy"):
        require(np.array_equal(np.asarray(found, np.float64), expected), "the matrix differs")
        return
    matrix = found.tocoo()
    if kind != "edges":
        require(matrix.shape == problem.shape, f"the shape is {matrix.shape}")
    require(matrix.nnz == problem.rows.size, f"{matrix.nnz} entries, not {problem.rows.size}")
    places = problem.places(matrix.row, matrix.col)
    require((places >= 0).all(), "an entry is elsewhere")
    read, wanted = matrix.data.astype(np.float64), problem.values[places].astype(np.float64)
    require(np.array_equal(read, wanted), "a value differs")


def _written(trial: Trial, most: int = 2**14) -> tuple[Problem, str, bytes, bool]:
    kind = trial.pick(FORMATS)
    if kind in ("csv", "npy"):
        dtype = trial.pick((np.float64, np.int64))
        problem = problems.dense_problem(trial, most, dtype, plain=True)
        finite = np.zeros(problem.shape, dtype)
        finite[problem.rows, problem.cols] = problem.values
        rows, cols = (part.ravel() for part in np.indices(problem.shape))
        problem = Problem(problem.shape, rows, cols, finite.ravel())
        if problem.shape[0] < 2 or problem.shape[1] < 4:  # a table, not a list of triples
            return _written(trial, most)
        trial.note(format=kind, costs=finite)
        return problem, kind, _dense_bytes(kind, finite), True
    problem = problems.sparse_problem(trial, most, plain=True)
    values = problem.values.astype(np.float64)
    if kind == "mtx spelled":
        values = np.round(values, 3) if abs(values).max(initial=0) < 1e9 else np.sign(values)
    problem = Problem(problem.shape, problem.rows, problem.cols, values)
    if not problem.rows.size or 0 in problem.shape:
        return _written(trial, most)
    trial.note(format=kind, costs=problem.csr())
    return problem, kind, _sparse_bytes(trial, kind, problem), trial.chance(0.3)


def _dense_bytes(kind: str, matrix: np.ndarray) -> bytes:
    file = io.BytesIO()
    if kind == "npy":
        np.save(file, matrix)
        return file.getvalue()
    lines = [",".join(map(repr, line)) for line in matrix.tolist()]
    return "\n".join([*lines, ""]).encode()


def _sparse_bytes(trial: Trial, kind: str, problem: Problem) -> bytes:
    file = io.BytesIO()
    matrix = problem.csr()
    if kind == "mtx":
        scipy.io.mmwrite(file, matrix, precision=17, symmetry="general")
        return file.getvalue()
    if kind == "npz":
        sparse.save_npz(file, matrix)
        return file.getvalue()
    if kind == "hb":
        return _harwell_boeing(matrix)
    entries = zip(problem.rows.tolist(), problem.cols.tolist(), problem.values.tolist())
    if kind == "edges":
        mark = trial.pick((" ", "\t", "  "))
        lines = [mark.join(map(repr, entry)) for entry in entries]
        return "\n".join([*lines, ""]).encode()
    lines = ["%%MatrixMarket matrix coordinate real general", "% spelled in many ways"]
    lines.append(f"{problem.shape[0]} {problem.shape[1]} {problem.rows.size}")
    lines += [f"{row + 1} {col + 1} {_spelled(trial, value)}" for row, col, value in entries]
    return "\n".join([*lines, ""]).encode()


def _spelled(trial: Trial, value: float) -> str:
    """A number as some program writes it."""
    text = f"{value:.17e}"
    mantissa, exponent = text.split("e")
    return trial.pick(
        (
            repr(value), text, text.upper(), f"{mantissa}D{exponent}", f"{mantissa}d{exponent}",
            text if text.startswith("-") else f"+{text}", f"{mantissa}E{int(exponent):+04d}",
        )
    )  # fmt: skip


def _harwell_boeing(matrix: Any) -> bytes:
    """In RUA, with fields wide enough for every float."""
    columns = matrix.tocsc()
    columns.sort_indices()

    def listed(numbers: Any, form: str, a_line: int) -> list[str]:
        texts = [form % number for number in numbers]
        return ["".join(texts[k : k + a_line]) for k in range(0, len(texts), a_line)]

    pointers = listed(columns.indptr + 1, "%12d", 6)
    rows = listed(columns.indices + 1, "%12d", 6)
    values = listed(columns.data, "%26.17E", 3)
    nrows, ncols = matrix.shape
    counts = len(pointers), len(rows), len(values)
    head = [
        f"{'title':<72}{'key':<8}",
        "".join(f"{number:14d}" for number in (sum(counts), *counts)),
        f"{'RUA':<14}" + "".join(f"{number:14d}" for number in (nrows, ncols, columns.nnz, 0)),
        f"{'(6I12)':<16}{'(6I12)':<16}{'(3E26.17)':<20}{'':<20}",
    ]
    return "\n".join([*head, *pointers, *rows, *values, ""]).encode()
