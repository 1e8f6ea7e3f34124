"""Where pairs are among the entries of a CSR pattern, by binary search in compiled code."""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["find"]


def find(
    indptr: np.ndarray, indices: np.ndarray, major: np.ndarray, minor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The place of each pair, and whether it is there; if not, another entry's place."""
    places, are_there = np.empty(major.size, np.int64), np.empty(major.size, bool)
    _find(
        indptr, indices, major.astype(np.int64, copy=False), minor.astype(np.int64, copy=False),
        places, are_there,  # OUT
    )  # fmt: skip
    return places, are_there


@kernel
def _find(indptr, indices, major, minor, places, are_there):
    for pair in range(major.size):
        low, end = indptr[major[pair]], indptr[major[pair] + 1]
        count, sought = end - low, minor[pair]
        while count > 0:  # without a branch, which would be foretold wrongly half the time
            half = (count + 1) >> 1
            low += half if indices[low + half - 1] < sought else 0
            count -= half
        are_there[pair] = low < end and indices[low] == minor[pair]
        places[pair] = min(low, indices.size - 1)
