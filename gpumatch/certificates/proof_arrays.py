"""Proofs as the arrays of an ``.npz`` file; docs/algorithms/proof_files.md."""

from __future__ import annotations

import zipfile
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
    wide,
)
from gpumatch.certificates.proof_text import number_of

__all__ = ["read_arrays", "write_arrays"]

_KINDS = {"flag": bool, "word": str, "number": (int, float), "objective": (int, float)}
"""What a part of one value is."""
_DTYPES = {"ids": "i", "order": "i", "numbers": "if", "limit": "if", "capacity": "i"}
"""The kinds of dtypes that a part of many values may have."""
_MAY_MISS = "objective", "limit", "capacity", "order"
NONE, ONE = -1, -2
"""In place of a length: there is no such part, or it is a single number."""

Arrays = dict[str, np.ndarray]


def write_arrays(path: Path, record: Record) -> None:
    """Write the file."""
    with open(path, "wb") as out:
        np.savez(out, allow_pickle=False, **_arrays_of(record))


def read_arrays(path: Path, max_bytes: int) -> Record:
    """The record; ValueError if the file is no proof of a known version."""
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > max_bytes:
            raise ValueError(f"more than {max_bytes} bytes")
    with np.load(path, allow_pickle=False) as held:
        return _record_of({name: held[name] for name in held.files})


def _arrays_of(record: Record) -> Arrays:
    """The arrays that hold a proof. Parts that are None are left out."""
    problem, costs, shape, sha256, parts = record
    version = version_of(problem, costs)
    head: dict[str, Any] = {"version": version, "problem": problem, "sha256": sha256}
    if version == 3:
        head["costs"] = costs
    arrays = {name: np.array(part) for name, part in head.items()}
    arrays["shape"] = np.array(shape)
    for name, form in PARTS[problem].items():
        if form == "proofs":
            arrays |= _columns_of(name, [_arrays_of(one) for one in parts[name]])
        elif parts[name] is not None:
            arrays[name] = _array_of(parts[name])
    return arrays


def _array_of(part: Any) -> np.ndarray:
    """A part as an array; of an integer beyond 64 bits, its digits."""
    array = np.array(part)
    return np.array(str(part)) if array.dtype.kind in "uO" else array


def _record_of(arrays: Arrays, *, is_part: bool = False) -> Record:
    version, problem = _scalar(arrays, "version", int), _scalar(arrays, "problem", str)
    costs = _scalar(arrays, "costs", str) if version == 3 else STORED
    check_version(version, problem, costs)
    if is_part and problem == "batch":
        raise ValueError("a problem of a batch is a batch")
    shape = _array(arrays, "shape", "i")
    if shape.size != 2:
        raise ValueError("shape must be two integers")
    rows, cols = shape.tolist()
    parts = {}
    for name, form in PARTS[problem].items():
        if form == "proofs":
            parts[name] = [_record_of(row, is_part=True) for row in _rows_of(name, arrays)]
            check_batch(parts[name])
        else:
            parts[name] = _part(arrays, name, form)
    return Record(problem, costs, (rows, cols), _scalar(arrays, "sha256", str), parts)


def _part(arrays: Arrays, name: str, form: str) -> Any:
    if name not in arrays and form in _MAY_MISS:
        return None
    if form in _KINDS:
        return _scalar(arrays, name, _KINDS[form])
    if form in ("limit", "capacity") and name in arrays and arrays[name].ndim == 0:
        return _scalar(arrays, name, (int, float) if form == "limit" else int)
    return _array(arrays, name, _DTYPES[form])


def _scalar(arrays: Arrays, name: str, kind: Any) -> Any:
    value = arrays[name].item() if name in arrays and arrays[name].ndim == 0 else None
    if isinstance(value, str) and kind == _KINDS["number"]:
        value = number_of(value.encode())
    if not isinstance(value, kind):
        raise ValueError(f"{name} is missing, or is of a wrong kind")
    return value


def _array(arrays: Arrays, name: str, kinds: str) -> np.ndarray:
    if name not in arrays or arrays[name].ndim != 1 or arrays[name].dtype.kind not in kinds:
        raise ValueError(f"{name} is missing, or is no list of numbers")
    return wide(arrays[name])


# -- batches: the arrays of many proofs as columns -------------------------------------------------
#
# Column `of` has one name of the arrays of all proofs, one after the other, as int64:
#
#     of           the numbers; floats by their bits
#     of.lengths   how many each proof has, or NONE or ONE
#     of.kinds     i, f or b of each proof: integers, floats or truth values
#
# or, of words, `of` has one for each proof, which is empty if there is none.


def _columns_of(part: str, rows: list[Arrays]) -> Arrays:
    columns = {f"{part}.count": np.array(len(rows))}
    for name in dict.fromkeys(name for row in rows for name in row):
        cells = [row.get(name) for row in rows]
        of = f"{part}.{name}"
        if any(cell is not None and cell.dtype.kind == "U" for cell in cells):
            columns[of] = np.array(["" if cell is None else cell.item() for cell in cells])
            continue
        numbers = [_bits_of(cell) for cell in cells if cell is not None]
        columns[of] = np.concatenate(numbers)
        columns[f"{of}.lengths"] = np.array(
            [NONE if cell is None else cell.size if cell.ndim else ONE for cell in cells]
        )
        columns[f"{of}.kinds"] = np.array(["i" if c is None else c.dtype.kind for c in cells])
    return columns


def _bits_of(cell: np.ndarray) -> np.ndarray:
    bits: np.ndarray = wide(cell).reshape(-1).view(np.int64)
    return bits


def _rows_of(part: str, columns: Arrays) -> list[Arrays]:
    count = _scalar(columns, f"{part}.count", int)
    if not 0 <= count <= sum(column.size for column in columns.values()):
        raise ValueError(f"there are no {count} problems")
    rows: list[Arrays] = [{} for _ in range(count)]
    for of, column in columns.items():
        _, _, name = of.partition(f"{part}.")
        if not name or name == "count" or name.endswith((".lengths", ".kinds")):
            continue
        if column.dtype.kind == "U":
            if column.shape != (count,):
                raise ValueError(f"{of} must have one word for each problem")
            words = column.tolist()
            cells: list[np.ndarray | None] = [np.array(word) if word else None for word in words]
        else:
            cells = _cells_of(of, columns, count)
        for row, cell in zip(rows, cells):
            if cell is not None:
                row[name] = cell
    return rows


def _cells_of(of: str, columns: Arrays, count: int) -> list[np.ndarray | None]:
    """The numbers of each proof."""
    numbers, lengths = (_array(columns, name, "i") for name in (of, f"{of}.lengths"))
    kinds = columns.get(f"{of}.kinds", np.zeros(0))
    sizes = np.where(lengths == ONE, 1, np.maximum(lengths, 0))
    is_fit = lengths.size == count == kinds.size and kinds.ndim == 1 and (lengths >= ONE).all()
    if not is_fit or sizes.max(initial=0) > numbers.size or sizes.sum() != numbers.size:
        raise ValueError(f"the lengths of {of} do not fit")
    ends = np.cumsum(sizes).tolist()
    cells: list[np.ndarray | None] = []
    for length, size, end, kind in zip(lengths.tolist(), sizes.tolist(), ends, kinds.tolist()):
        dtype = {"i": np.int64, "f": np.float64, "b": bool}.get(kind)
        if dtype is None:
            raise ValueError(f"{of} has an unknown kind")
        cell = numbers[end - size : end]
        cell = cell.view(dtype) if kind == "f" else cell.astype(dtype)
        cells.append(None if length == NONE else cell.reshape(()) if length == ONE else cell)
    return cells
