"""For tests of Deep Greedy Switching: problems on the device, and exchanges as NumPy finds them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import gpumatch as gm
from gpumatch.costs import as_costs

DTYPES = ["int32", "int64", "float32", "float64"]
FORMS = pytest.mark.parametrize("form", ["global", "shared", "block"])
STARTS = pytest.mark.parametrize("start", ["random", "greedy"])
SWITCHING = pytest.mark.parametrize("switching", ["sequential", "parallel"])
SHAPES = pytest.mark.parametrize(
    "shape", [(1, 1), (2, 2), (17, 17), (100, 100), (90, 131), (1, 40), (333, 350)]
)


def solve(matrix, **wish):
    return gm.assign(matrix, algorithm="dgs", backend="cuda", **wish)


def optimum(matrix, maximize=False):
    rows, cols = linear_sum_assignment(matrix, maximize=maximize)
    return matrix[rows, cols].sum()


def check_mates(a):
    assert (a.row_to_col[a.row_ind] == a.col_ind).all()
    assert (a.col_to_row[a.col_ind] == a.row_ind).all()
    assert np.count_nonzero(a.col_to_row >= 0) == a.size


def problem_on_device(matrix, limit=None):
    """The problem of `gpumatch.cuda.assignment.dgs.engine`, without mates."""
    from gpumatch.cuda.assignment.dgs import engine as dgs

    return dgs.Problem(as_costs(matrix).problem(False, False).to_device(), limit)


def evaluator_for(problem, form, *, serves_mates=False):
    from gpumatch.cuda.assignment.dgs import engine as dgs

    return dgs.Evaluator(problem, dgs.FORMS[form], serves_mates=serves_mates)


def put_mates(problem, row_to_col):
    """Give both sides their mates, and what they pay."""
    col_to_row = np.full(problem.ncols, -1, np.int32)
    rows = np.flatnonzero(row_to_col >= 0)
    col_to_row[row_to_col[rows]] = rows
    problem.rows.mate.set(np.asarray(row_to_col, np.int32))
    problem.cols.mate.set(col_to_row)
    problem.pay()
    return col_to_row


def total(matrix, row_to_col, limit=0):
    rows = np.flatnonzero(row_to_col >= 0)
    return matrix[rows, row_to_col[rows]].sum() + limit * (row_to_col.size - rows.size)


def all_savings(matrix, row_to_col, limit=None):
    """What each exchange saves, by row and wanted column; what a row saves that goes without."""
    matrix = matrix.astype(np.float64)
    nrows, ncols = matrix.shape
    idle = np.inf if limit is None else limit
    rows = np.flatnonzero(row_to_col >= 0)
    row_paid, col_paid, owner = np.full(nrows, float(idle)), np.zeros(ncols), np.full(ncols, -1)
    row_paid[rows] = col_paid[row_to_col[rows]] = matrix[rows, row_to_col[rows]]
    owner[row_to_col[rows]] = rows
    rest = matrix[owner][:, row_to_col].T  # the wanted column's owner takes the row's
    rest[row_to_col < 0] = idle
    rest[:, owner < 0] = 0
    with np.errstate(invalid="ignore"):
        savings = row_paid[:, None] + col_paid - (matrix + rest)
    return np.where(np.isnan(savings), -np.inf, savings), row_paid - idle


def best_savings(matrix, row_to_col, limit=None):
    """The best saving of each row, and of each column; 0 where there is none."""
    savings, drops = all_savings(matrix, row_to_col, limit)
    rows = np.maximum(savings.max(axis=1), drops)
    cols = savings.max(axis=0)
    matched = np.flatnonzero(row_to_col >= 0)
    np.maximum.at(cols, row_to_col[matched], drops[matched])
    return np.maximum(rows, 0), np.maximum(cols, 0)


def check_no_exchange_is_left(matrix, row_to_col, limit=None):
    least = 1e-9 * max(1, abs(total(np.where(np.isinf(matrix), 0, matrix), row_to_col)))
    assert all(best.max() <= least for best in best_savings(matrix, row_to_col, limit))
