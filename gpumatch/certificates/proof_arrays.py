"""Proofs as the arrays of an ``.npz`` file; docs/algorithms/proof_files.md."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gpumatch.certificates.proof_parts import PARTS, VERSIONS, wide

__all__ = ["read_arrays", "write_arrays"]

_KINDS = {"flag": bool, "word": str, "number": (int, float), "objective": (int, float)}
"""What a part of one value is."""
_DTYPES = {"ids": "i", "numbers": "if", "limit": "if", "capacity": "i"}
"""The kinds of dtypes that a part of many values may have."""


def write_arrays(
    path: Path, problem: str, shape: tuple[int, int], sha256: str, parts: dict[str, Any]
) -> None:
    """Write the file. Parts that are None are left out."""
    held = {name: part for name, part in parts.items() if part is not None}
    head: dict[str, Any] = {"version": VERSIONS[problem], "problem": problem, "sha256": sha256}
    with open(path, "wb") as out:
        np.savez(out, allow_pickle=False, **head, shape=np.array(shape), **held)


def read_arrays(path: Path, max_bytes: int) -> tuple[str, tuple[int, int], str, dict[str, Any]]:
    """Problem, shape, hash and parts; ValueError if the file is no proof of a known version."""
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > max_bytes:
            raise ValueError(f"more than {max_bytes} bytes")
    with np.load(path, allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    version, problem = _scalar(arrays, "version", int), _scalar(arrays, "problem", str)
    if version not in VERSIONS.values():
        raise ValueError(f"version {version} is not known; these are 1 and 2")
    if VERSIONS.get(problem) != version:
        raise ValueError(f"there is no problem {problem[:40]} in version {version}")
    shape = _array(arrays, "shape", "i")
    if shape.size != 2:
        raise ValueError("shape must be two integers")
    rows, cols = shape.tolist()
    parts = {name: _part(arrays, name, form) for name, form in PARTS[problem].items()}
    return problem, (rows, cols), _scalar(arrays, "sha256", str), parts


def _part(arrays: dict[str, np.ndarray], name: str, form: str) -> Any:
    if name not in arrays and form in ("objective", "limit", "capacity"):
        return None
    if form in _KINDS:
        return _scalar(arrays, name, _KINDS[form])
    if form in ("limit", "capacity") and arrays[name].ndim == 0:
        return _scalar(arrays, name, (int, float) if form == "limit" else int)
    return _array(arrays, name, _DTYPES[form])


def _scalar(arrays: dict[str, np.ndarray], name: str, kind: Any) -> Any:
    value = arrays[name].item() if name in arrays and arrays[name].ndim == 0 else None
    if not isinstance(value, kind):
        raise ValueError(f"{name} is missing, or is of a wrong kind")
    return value


def _array(arrays: dict[str, np.ndarray], name: str, kinds: str) -> np.ndarray:
    if name not in arrays or arrays[name].ndim != 1 or arrays[name].dtype.kind not in kinds:
        raise ValueError(f"{name} is missing, or is no list of numbers")
    return wide(arrays[name])
