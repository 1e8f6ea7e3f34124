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
        low, high = indptr[major[pair]], indptr[major[pair] + 1]
        end = high
        while low < high:
            middle = (low + high) >> 1
            if indices[middle] < minor[pair]:
                low = middle + 1
            else:
                high = middle
        are_there[pair] = low < end and indices[low] == minor[pair]
        places[pair] = min(low, indices.size - 1)
