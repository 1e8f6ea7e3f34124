"""What one rank computes from the costs of its rows: minima, tight pairs, offers to columns.

`DenseRows` has a matrix, `SparseRows` CSR. They do the same. Rows have local numbers here. Arrays
of rows are this rank's, arrays of columns are of all real columns. `tight_at` and its times are
those of `gpumatch.cpu.assignment.hungarian.tree`. Each call asks ``beat`` at least every
``budget`` entries, and ends before its time if that says stop: then this rank tells the others so
in the next collective, and what was left out does not matter. Only `least` goes on, because the
duals of what there is are made by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpumatch.cpu.assignment.hungarian.problem import (
    BUDGET,
    col_minima,
    match_tight,
    row_minima,
    tight_at,
)
from gpumatch.cpu.assignment.hungarian.tree import offer
from gpumatch.cpu.numba_tools.compiled import vector_kernel

__all__ = ["DenseRows", "SparseRows", "rows_of"]


def rows_of(entries: Any, far: Any, beat: Callable[[], bool]) -> DenseRows | SparseRows:
    """The rows of what `Costs.entries` gives: a matrix, or CSR with weights."""
    kind = SparseRows if isinstance(entries, tuple) else DenseRows
    return kind(entries, far, beat)


class DenseRows:
    """Rows of a matrix, with ``far`` for forbidden pairs."""

    def __init__(
        self, values: np.ndarray, far: Any, beat: Callable[[], bool], budget: int = BUDGET
    ) -> None:
        self.values, self.far, self.beat, self.budget = values, far, beat, budget
        self.count = len(values)

    def least(self, col_dual: np.ndarray, out: np.ndarray) -> None:
        """The least of c_ij - col_dual[j] of each row."""
        for first, last in self._blocks(self.count, to_the_end=True):
            row_minima(
                self.values, col_dual, self.far,  # IN
                out,  # OUT
                first, last,  # IN
            )  # fmt: skip

    def least_slacks(self, row_dual: np.ndarray, col_dual: np.ndarray, out: np.ndarray) -> None:
        """Lower ``out`` to the least slack of each column."""
        for first, last in self._blocks(self.count):
            col_minima(
                self.values, row_dual, col_dual, self.far,  # IN
                out,  # OUT
                first, last, 0, out.size,  # IN
            )  # fmt: skip

    def match_tight(
        self,
        row_dual: np.ndarray,
        col_dual: np.ndarray,
        row_to_col: np.ndarray,
        col_to_row: np.ndarray,
    ) -> None:
        """Give each unmatched row the first unmatched column that is tight."""
        for first, last in self._blocks(self.count):
            match_tight(
                self.values, row_dual, col_dual, self.far,  # IN
                row_to_col, col_to_row,  # OUT
                first, last,  # IN
            )  # fmt: skip

    def offer(
        self,
        rows: np.ndarray,
        duals: tuple[np.ndarray, np.ndarray],
        time: np.ndarray,
        near: np.ndarray,
        before: np.ndarray,
    ) -> None:
        """Lower ``near`` to the times at which pairs of these rows are tight; ``before``: whose."""
        scanned = self.values, *duals, time, near, before, self.far  # near and before are OUT
        for first, last in self._blocks(rows.size):
            offer(scanned, rows[first:last], 0, near.size)

    def _blocks(self, count: int, to_the_end: bool = False) -> Iterator[tuple[int, int]]:
        step = max(1, self.budget // max(1, self.values.shape[1]))
        for first in range(0, count, step):
            yield first, min(first + step, count)
            if self.beat() and not to_the_end:
                break


class SparseRows:
    """Rows in CSR: (indptr, indices, weights). Pairs that are not stored are forbidden."""

    def __init__(
        self,
        entries: tuple[np.ndarray, np.ndarray, np.ndarray],
        far: Any,
        beat: Callable[[], bool],
        budget: int = BUDGET,
    ) -> None:
        self.entries, self.far, self.beat, self.budget = entries, far, beat, budget
        self.count = len(entries[0]) - 1

    def least(self, col_dual: np.ndarray, out: np.ndarray) -> None:
        """As of `DenseRows`."""
        for first, last in self._blocks(np.arange(self.count), to_the_end=True):
            _row_minima(*self.entries, col_dual, self.far, out, first, last)

    def least_slacks(self, row_dual: np.ndarray, col_dual: np.ndarray, out: np.ndarray) -> None:
        """As of `DenseRows`."""
        for first, last in self._blocks(np.arange(self.count)):
            _col_minima(*self.entries, row_dual, col_dual, self.far, out, first, last)

    def match_tight(
        self,
        row_dual: np.ndarray,
        col_dual: np.ndarray,
        row_to_col: np.ndarray,
        col_to_row: np.ndarray,
    ) -> None:
        """As of `DenseRows`."""
        for first, last in self._blocks(np.arange(self.count)):
            _match_tight(
                *self.entries, row_dual, col_dual, self.far,  # IN
                row_to_col, col_to_row,  # OUT
                first, last,  # IN
            )  # fmt: skip

    def offer(
        self,
        rows: np.ndarray,
        duals: tuple[np.ndarray, np.ndarray],
        time: np.ndarray,
        near: np.ndarray,
        before: np.ndarray,
    ) -> None:
        """As of `DenseRows`."""
        for first, last in self._blocks(rows):
            _offer(
                *self.entries, *duals, time,  # IN
                near, before,  # OUT
                self.far, rows[first:last],  # IN
            )  # fmt: skip

    def _blocks(self, rows: np.ndarray, to_the_end: bool = False) -> Iterator[tuple[int, int]]:
        """Ranges of these rows with about ``budget`` entries, and one row at least."""
        indptr = self.entries[0]
        ends = np.cumsum(indptr[rows + 1] - indptr[rows], dtype=np.int64)
        first, before = 0, 0
        while first < rows.size:
            last = max(first + 1, int(np.searchsorted(ends, before + self.budget, side="right")))
            yield first, last
            first, before = last, int(ends[last - 1])
            if self.beat() and not to_the_end:
                break


@vector_kernel
def _row_minima(indptr, indices, weights, col_dual, far, least, first, last):
    for row in range(first, last):
        lowest = far
        for e in range(indptr[row], indptr[row + 1]):
            lowest = min(lowest, weights[e] - col_dual[indices[e]])
        least[row] = lowest


@vector_kernel
def _col_minima(indptr, indices, weights, row_dual, col_dual, far, least, first, last):
    for row in range(first, last):
        for e in range(indptr[row], indptr[row + 1]):
            col = indices[e]
            least[col] = min(least[col], tight_at(weights[e], row_dual[row], col_dual[col], 0, far))


@vector_kernel
def _match_tight(
    indptr, indices, weights, row_dual, col_dual, far, row_to_col, col_to_row, first, last
):
    for row in range(first, last):
        if row_to_col[row] >= 0:
            continue
        for e in range(indptr[row], indptr[row + 1]):
            col = indices[e]
            slack = tight_at(weights[e], row_dual[row], col_dual[col], 0, far)
            if col_to_row[col] < 0 and slack <= 0:
                row_to_col[row] = col
                col_to_row[col] = row
                break


@vector_kernel
def _offer(indptr, indices, weights, row_dual, col_dual, time, near, before, far, rows):
    for k in range(rows.size):
        row = rows[k]
        for e in range(indptr[row], indptr[row + 1]):
            col = indices[e]
            there = tight_at(weights[e], row_dual[row], col_dual[col], time[row], far)
            if there < near[col]:
                near[col] = there
                before[col] = row
