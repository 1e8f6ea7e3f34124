"""Where pairs are among the entries of a CSR pattern, in compiled code."""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["find", "values_of_mates"]

BUDGET = 2**25
"""Entries looked at between two returns to Python: under half a second."""


def find(
    indptr: np.ndarray, indices: np.ndarray, major: np.ndarray, minor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The place of each pair, and whether it is there, by binary search; else another's place."""
    places, are_there = np.empty(major.size, np.int64), np.empty(major.size, bool)
    _find(
        indptr, indices, major.astype(np.int64, copy=False), minor.astype(np.int64, copy=False),
        places, are_there,  # OUT
    )  # fmt: skip
    return places, are_there


def values_of_mates(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    row_to_col: np.ndarray,
    threads: int = 1,
    budget: int = BUDGET,
) -> np.ndarray:
    """The value of each row's entry in its mate's column, which must be there; 0 without a mate."""
    nrows = row_to_col.size
    found = np.empty(nrows, values.dtype)
    step = max(1, budget * nrows // max(indices.size, 1))
    with Workers(threads, indices.size) as workers:
        step = max(1, min(step, -(-nrows // workers.threads)))

        def find(block: int) -> None:
            first = block * step
            _values_of_mates(
                indptr, indices, values, row_to_col, first, min(first + step, nrows),  # IN
                found,  # OUT
            )  # fmt: skip

        workers.deal(find, -(-nrows // step))
    return found


@kernel
def _values_of_mates(indptr, indices, values, row_to_col, first, last, found):
    for row in range(first, last):
        mate, place = row_to_col[row], -1
        for entry in range(indptr[row], indptr[row + 1]):
            place = entry if indices[entry] == mate else place
        found[row] = values[place] if place >= 0 else values.dtype.type(0)


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
