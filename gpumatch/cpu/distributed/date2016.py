"""The kernels of one rank for `gpumatch.distributed.date2016`, on the CPU.

Times are those of `gpumatch.cpu.assignment.hungarian.classical`: a row in a tree has the time at
which it was uncovered, and its pair with a column is tight at ``delta`` if `tight_at` says so. A
covered row would join now, and the prices of covered columns are those of now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.cpu.assignment.hungarian.problem import BUDGET, far_of, low_of, tight_at
from gpumatch.cpu.assignment.hungarian.tree import (
    ENDS,
    TAIL,
    augment,
    join,
    nearest_time,
    reverse,
    write_duals,
)
from gpumatch.cpu.distributed.rows import DenseRows
from gpumatch.cpu.numba_tools.compiled import kernel, vector_kernel

__all__ = [
    "ENDS",
    "TAIL",
    "CompressedRows",
    "DenseRows",
    "augment",
    "expand",
    "far_of",
    "join",
    "low_of",
    "nearest_time",
    "reverse",
    "write_duals",
]


class CompressedRows(DenseRows):
    """Rows of a matrix whose tight pairs are compressed into lists."""

    def __init__(
        self, values: np.ndarray, far: Any, beat: Callable[[], bool], budget: int = BUDGET
    ) -> None:
        super().__init__(values, far, beat, budget)
        self._indices = np.empty(4 * values.shape[1], np.int32)

    def compress(
        self, duals: tuple[np.ndarray, np.ndarray], time: np.ndarray, delta: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """How many tight pairs each row has, and their columns: the partial lists Z."""
        counts = np.zeros(self.count, np.int64)
        row = pairs = 0
        while row < self.count:
            row, pairs = _compress(
                self.values, *duals, time, delta, self.far,  # IN
                counts, self._indices,  # OUT
                row, pairs, self.budget,  # IN
            )  # fmt: skip
            if self._indices.size < pairs + self.values.shape[1]:
                self._indices = np.concatenate([self._indices, np.empty_like(self._indices)])
            if self.beat():
                break
        return counts, self._indices[:pairs]

    def soonest(
        self,
        duals: tuple[np.ndarray, np.ndarray],
        time: np.ndarray,
        row_cover: np.ndarray,
        col_cover: np.ndarray,
    ) -> Any:
        """The least time of a pair of an uncovered row and an uncovered column (Algorithm 7)."""
        least = self.far
        rows = np.flatnonzero(~row_cover)
        for first, last in self._blocks(rows.size):
            least = _soonest(
                self.values, *duals, time, col_cover, self.far, rows[first:last], least
            )
        return least


@vector_kernel
def _compress(values, row_dual, col_dual, time, delta, far, counts, indices, row, pairs, budget):
    """Compress rows while room and budget last; the next row, and the pairs so far."""
    while row < counts.size and pairs + col_dual.size <= indices.size and budget > 0:
        line, dual, since, before = values[row], row_dual[row], time[row], pairs
        for col in range(col_dual.size):
            if tight_at(line[col], dual, col_dual[col], since, far) <= delta:
                indices[pairs] = col
                pairs += 1
        counts[row] = pairs - before
        row += 1
        budget -= col_dual.size
    return row, pairs


@vector_kernel
def _soonest(values, row_dual, col_dual, time, col_cover, far, rows, least):
    for k in range(rows.size):
        row = rows[k]
        line, dual, since = values[row], row_dual[row], time[row]
        for col in range(col_dual.size):
            there = tight_at(line[col], dual, col_dual[col], since, far)
            least = there if there < least and not col_cover[col] else least
    return least


@kernel
def expand(
    frontier, indptr, indices, col_to_row, row_cover, col_cover, pred, root, is_end, following
):
    """Expand the frontier along the lists (Algorithm 3); how many rows follow."""
    count = 0
    for k in range(frontier.size):
        row = frontier[k]
        for e in range(indptr[row], indptr[row + 1]):
            col = indices[e]
            if col_cover[col]:
                continue
            mate = col_to_row[col]
            if mate == row:
                continue
            pred[col] = row
            if mate < 0:
                is_end[col] = True
                continue
            row_cover[mate] = False
            col_cover[col] = True
            root[mate] = root[row]
            following[count] = mate
            count += 1
    return count
