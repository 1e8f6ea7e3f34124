"""Runs of an assignment algorithm on its bare contract, and checks that share no code with it."""

from __future__ import annotations

import contextlib
import math

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array

from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import DenseCosts, SparseCosts


class Trace:
    """A control that remembers what it is told; stops, or raises, at a tick counted from 1."""

    def __init__(self, stop_at=0, error=None):
        self.ticks, self.phases, self.parts = [], [], []
        self.stop_at, self.error = stop_at, error

    def tick(self, matched):
        self.ticks.append(int(matched))
        stops = len(self.ticks) == self.stop_at
        if stops and self.error is not None:
            raise self.error
        return stops

    def phase(self, **numbers):
        self.phases.append(numbers)

    def part(self, name):
        self.parts.append(name)
        return contextlib.nullcontext()


def problem(matrix, kind="dense"):
    if kind == "dense":
        return DenseCosts(matrix).problem(False, False)
    rows, cols = np.isfinite(matrix).nonzero()
    entries = matrix[rows, cols], (rows, cols)
    return SparseCosts(coo_array(entries, shape=matrix.shape)).problem(False, False)


FORBIDDEN = 1e12  # more than all pairs together


def least(matrix, limit=None):
    """The optimum by SciPy; a column of its own at the limit for each row."""
    if limit is not None:
        nrows = matrix.shape[0]
        own = np.full((nrows, nrows), np.inf)
        np.fill_diagonal(own, limit)
        matrix = np.hstack([matrix, own])
    filled = np.where(np.isfinite(matrix), matrix, FORBIDDEN)
    return matrix[linear_sum_assignment(filled)].sum()


class Solved:
    """The arrays after a run, and whether it ended by itself."""

    def __init__(
        self,
        run,
        matrix,
        *,
        limit=None,
        control=None,
        mates=(),
        price=None,
        kind="dense",
        threads=1,
        seed=0,
        **options,
    ):
        nrows, ncols = matrix.shape
        number = np.int64 if matrix.dtype.kind in "iu" else np.float64
        self.matrix, self.limit = matrix, limit
        self.row_to_col = np.full(nrows, -1, np.int32)
        self.col_to_row = np.full(ncols, -1, np.int32)
        for row, col in mates:
            self.row_to_col[row], self.col_to_row[col] = col, row
        self.row_dual = np.zeros(nrows, number)
        self.col_dual = np.zeros(ncols, number) if price is None else price.astype(number)
        solution = Solution(self.row_to_col, self.col_to_row, self.row_dual, self.col_dual)
        self.control = control or Trace()
        self.error = None
        try:
            costs = problem(matrix, kind)
            task = AssignmentTask(costs, solution, self.control, limit, threads, seed)
            self.ended = run(task, **options)
        except KeyboardInterrupt as exc:
            self.ended, self.error = False, exc

    @property
    def rows(self):
        return np.flatnonzero(self.row_to_col >= 0)

    @property
    def pairs(self):
        return self.rows, self.row_to_col[self.rows]

    @property
    def total(self):
        """What the pairs cost, and the limit for each row without one."""
        unmatched = self.row_to_col.size - self.rows.size
        return self.matrix[self.pairs].sum() + (self.limit or 0) * unmatched

    @property
    def bound(self):
        return self.row_dual.sum() + self.col_dual.sum()

    def check_matching(self):
        rows, cols = self.pairs
        assert np.array_equal(self.col_to_row[cols], rows)
        assert np.count_nonzero(self.col_to_row >= 0) == rows.size
        assert np.isfinite(self.matrix[rows, cols]).all()

    def check_duals(self, slack=0):
        """What the front door relies on, at a stop too."""
        assert (self.row_dual[:, None] <= self.matrix - self.col_dual + slack).all()
        if self.limit is not None:
            assert (self.row_dual <= self.limit).all()
        assert (self.col_dual <= 0).all()

    def check_optimal(self, slack=0):
        assert self.ended
        self.check_matching()
        self.check_duals(slack)
        rows, cols = self.pairs
        tight = self.matrix[rows, cols] - self.col_dual[cols] - self.row_dual[rows]
        assert (abs(tight) <= slack).all()
        free = self.row_to_col < 0
        if self.limit is None:
            assert not free.any()
        else:
            assert (abs(self.row_dual[free] - self.limit) <= slack).all()
        assert (self.col_dual[self.col_to_row < 0] == 0).all()


def rounding(matrix):
    """Some units in the last place of the largest cost; none for integers."""
    finite = abs(matrix[np.isfinite(matrix)])
    return 0 if matrix.dtype.kind in "iu" else 16 * np.spacing(finite.max(initial=0.0))


def optimum(matrix):
    return matrix[linear_sum_assignment(matrix)].sum()


def tight_pairs(matrix):
    """Which pairs are tight after the initial reduction of a square matrix, or a wider one."""
    reduced = matrix - matrix.min(axis=1, keepdims=True)
    if matrix.shape[0] == matrix.shape[1]:
        reduced = reduced - reduced.min(axis=0)
    return reduced == 0


def check_rows_without_a_path(solve):
    """They end the run, and stay unmatched."""
    matrix = np.full((6, 6), math.inf)
    matrix[:, :2] = np.arange(12.0).reshape(6, 2)
    matrix[0] = 5.0
    solved = solve(matrix)
    assert solved.ended
    solved.check_matching()
    assert (solved.row_to_col < 0).any()
    solved = solve(np.full((3, 5), math.inf))
    assert solved.ended
    assert not solved.rows.size


def check_a_limit_where_no_column_is_left(solve):
    """Rows take it."""
    matrix = np.full((5, 5), math.inf)
    matrix[:, 1] = [4.0, 2.0, 9.0, 3.0, 2.5]
    solved = solve(matrix, limit=6)
    solved.check_optimal()
    assert solved.row_to_col.tolist() == [-1, 1, -1, -1, -1]
