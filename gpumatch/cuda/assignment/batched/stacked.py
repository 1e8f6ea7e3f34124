"""Large dense problems of a batch, solved as one problem with their matrices as diagonal blocks.

A team waits for its threads at each step of a search. So a large problem needs many steps even if
the batch has few problems. A sparse core (`dense.core`) needs about as many steps for all problems
together as for one. Its rows and columns are those of all problems, in the order of the problems.

For 32 clouds of 4,096 points, teams take 0.2 s, and a core of all clouds takes 0.13 s. For 8
clouds, a core takes 0.03 s.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Solution
from gpumatch.contracts.batch import Together
from gpumatch.cuda import memory
from gpumatch.cuda.assignment.dense import tuning as tunings
from gpumatch.cuda.assignment.dense.core import BYTES_A_PAIR, Alone, Core, Share
from gpumatch.cuda.assignment.dense.rows import ArrayRows
from gpumatch.cuda.assignment.sparse import engine as sparse

__all__ = ["StackedRows", "signed", "solve"]

_EXACT = 2**52  # sums up to which float64, the type of a batch's numbers, holds all integers


def signed(matrix: cp.ndarray, sign: float) -> cp.ndarray:
    """Return a matrix times the sign of its costs, with contiguous rows."""
    if sign > 0:
        return cp.ascontiguousarray(matrix)
    wide = matrix.astype(np.int64) if matrix.dtype.kind == "i" else matrix
    return -cp.ascontiguousarray(wide)


class StackedRows:
    """The rows of a matrix with several matrices as its diagonal blocks.

    Attributes
    ----------
    begins : list of (int, int)
        The first row and the first column of each matrix.
    first, count, ncols, far, most, longest
        As of `ArrayRows`.
    """

    first = 0
    most = ArrayRows.most

    def __init__(self, matrices: Sequence[Any], far: Any) -> None:
        self.blocks = [ArrayRows(matrix, far, lambda: False) for matrix in matrices]
        self.far = far
        self.xp = self.blocks[0].xp
        ends = np.cumsum([matrix.shape for matrix in matrices], axis=0)
        self.begins = [(0, 0), *map(tuple, ends[:-1].tolist())]
        self.count, self.ncols = ends[-1].tolist()
        self.longest = max(block.longest for block in self.blocks)

    def rows_of(self, array: Any) -> list[Any]:
        """Return the parts of an array over all rows, one for each matrix."""
        return self.xp.split(array, [row for row, _ in self.begins[1:]])

    def cols_of(self, array: Any) -> list[Any]:
        """Return the parts of an array over all columns, one for each matrix."""
        return self.xp.split(array, [col for _, col in self.begins[1:]])

    def nearest(self, col_dual: Any, bound: Any, most: int) -> tuple[Any, Any, Any]:
        """Return the pairs that `ArrayRows.nearest` finds."""
        found = []
        for block, duals, own, (row, col) in zip(
            self.blocks, self.cols_of(col_dual), self.rows_of(bound), self.begins
        ):
            rows, cols, costs = block.nearest(duals, own, most)
            found.append((rows + np.int32(row), cols + np.int32(col), costs))
        rows, cols, costs = map(self.xp.concatenate, zip(*found))
        return rows, cols, costs

    def at(self, rows: Any, cols: Any) -> Any:
        """Return the costs of these pairs."""
        costs = self.xp.empty(rows.size, self.blocks[0].values.dtype)
        for block, (row, col) in zip(self.blocks, self.begins):
            own = self.xp.flatnonzero((rows >= row) & (rows < row + block.count))
            costs[own] = block.at(rows[own] - row, cols[own] - col)
        return costs

    def least_of_rows(self, col_dual: Any) -> Any:
        """Return the least c_ij - col_dual[j] of each row; `far` if all its pairs are forbidden."""
        parts = zip(self.blocks, self.cols_of(col_dual))
        return self.xp.concatenate([block.least_of_rows(part) for block, part in parts])

    def least_of_columns(self, row_dual: Any) -> Any:
        """Return the least c_ij - row_dual[i] of each column.

        None of these differences may be below 0.
        """
        parts = zip(self.blocks, self.rows_of(row_dual))
        return self.xp.concatenate([block.least_of_columns(part) for block, part in parts])


def solve(matrices: Sequence[Any], is_integer: bool, together: Together) -> list[Solution] | None:
    """Return the assignments of these matrices, whose rows must all be matched.

    The result is None if the memory is too small, the control has stopped the run, the core is
    given up, or integers are so large that their sums are not exact in a batch.
    """
    far, tuning = np.int64(2**63 - 1) if is_integer else np.float64(np.inf), tunings.DEFAULT
    rows = StackedRows(matrices, far)
    shape = rows.count, rows.ncols
    if is_integer:
        largest = max(int(abs(matrix).max()) for matrix in matrices)
        if 4 * (sum(shape) + 1) * largest > _EXACT:
            return None
    with contextlib.suppress(MemoryError):
        memory.require_memory(BYTES_A_PAIR * tuning.first * rows.count, "solving problems together")
        best = Solution.empty(shape, is_integer=is_integer, xp=rows.xp)
        share = Share(rows, None, functools.partial(together.costs_of, shape))
        control = together.control
        if Core(share, best, Alone(control), sparse.run, control, tuning=tuning).solve():
            return _divided(best, rows)
    return None


def _divided(best: Solution, rows: StackedRows) -> list[Solution]:
    """Return the solution of each matrix."""
    row_to_col, row_dual = rows.rows_of(best.row_to_col), rows.rows_of(best.row_dual)
    col_to_row, col_dual = rows.cols_of(best.col_to_row), rows.cols_of(best.col_dual)
    return [
        Solution(
            row_to_col[k] - np.int32(col),  # each row is matched
            rows.xp.maximum(col_to_row[k] - np.int32(row), np.int32(-1)),
            row_dual[k],
            col_dual[k],
        )
        for k, (row, col) in enumerate(rows.begins)
    ]
