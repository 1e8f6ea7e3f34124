"""Parsers of formats for sparse matrices and arrays.

SciPy and NumPy parse; the checks here are those that they lack. What a header promises is compared
with the bytes that there are before anything is allocated.
"""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

__all__ = [
    "check_npy_header",
    "parse_arrays",
    "parse_harwell_boeing",
    "parse_npy",
    "parse_npz",
]


def parse_npz(content: bytes, max_bytes: int) -> Any:
    _check_archive(content, max_bytes, _NPZ_KINDS)
    return scipy.sparse.load_npz(io.BytesIO(content))


_NPZ_KINDS = {
    "format": "SU",
    "_is_array": "b",
    "data": "biufc",
    **dict.fromkeys(("shape", "indptr", "indices", "row", "col", "coords", "offsets"), "iu"),
}


def parse_arrays(content: bytes, max_bytes: int) -> dict[str, np.ndarray]:
    """Arrays of numbers or text, by their names."""
    _check_archive(content, max_bytes, None)
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)


def _check_archive(content: bytes, max_bytes: int, kinds: dict[str, str] | None) -> None:
    """Check that an archive's arrays are of the kinds that these names may have, and not larger."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > max_bytes:
            raise ValueError(f"more than max_bytes = {max_bytes} bytes of content")
        for member in members:
            name = member.filename.removesuffix(".npy")
            allowed = "biufcU" if kinds is None else kinds.get(name, "")
            with archive.open(member) as file:
                check_npy_header(file, f"array {name!r}", allowed, member.file_size)


def parse_npy(content: bytes, max_bytes: int) -> np.ndarray:
    file = io.BytesIO(content)
    check_npy_header(file, "an array", "biufc", len(content))
    file.seek(0)
    return np.load(file, allow_pickle=False)


def check_npy_header(file: Any, what: str, kinds: str, size: int) -> None:
    """Check that an array is of one of these kinds and as large as its header says."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    if dtype.kind not in kinds:
        raise ValueError(f"{what} of type {dtype} does not belong there")
    if file.tell() + dtype.itemsize * math.prod(shape) != size:
        raise ValueError(f"{what} promises shape {shape}, but its size is another")


def parse_harwell_boeing(content: bytes, max_bytes: int) -> Any:
    with warnings.catch_warnings():
        # This is how NumPy says that a field was not a number and the rest was not read.
        warnings.filterwarnings("error", "string or file could not be read")
        return scipy.io.hb_read(io.StringIO(content.decode("latin-1"), newline=None))
