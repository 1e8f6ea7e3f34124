"""Problems of a batch as the diagonal blocks of one, with arrays of NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

pytest.importorskip("cupy")

from gpumatch.contracts import Solution
from gpumatch.contracts.batch import Together
from gpumatch.costs import SparseCosts
from gpumatch.cpu.assignment import shortest_augmenting_path
from gpumatch.cuda.assignment.batched import stacked
from gpumatch.cuda.assignment.dense import core, tuning
from gpumatch.cuda.assignment.dense.rows import ArrayRows
from gpumatch.running.control import Control
from tests.cpu.assignment.tuned import tune

SHAPES = (5, 7), (4, 4), (1, 9), (6, 6)
FARS = {"f": np.float64(np.inf), "i": np.int64(2**63 - 1)}


def matrices(rng, dtype, shapes=SHAPES):
    drawn = [rng.integers(-30, 60, shape).astype(dtype) for shape in shapes]
    if np.dtype(dtype).kind == "f":
        for matrix in drawn:
            matrix += rng.random(matrix.shape).astype(dtype)
    return drawn


def as_one(parts, far):
    """The matrix with these as diagonal blocks, and `far` elsewhere."""
    shapes = np.array([part.shape for part in parts])
    one = np.full(shapes.sum(axis=0), far)
    for part, (row, col) in zip(parts, shapes.cumsum(axis=0) - shapes):
        one[row : row + part.shape[0], col : col + part.shape[1]] = part
    return one


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
def test_rows_are_those_of_one_matrix(dtype):
    rng = np.random.default_rng(1)
    parts = matrices(rng, dtype)
    far = FARS[np.dtype(dtype).kind]
    if dtype[0] == "f":
        parts[0][1, :3] = far
    one = as_one(parts, far)
    rows = stacked.StackedRows(parts, far)
    assert (rows.first, rows.count, rows.ncols, rows.longest) == (0, *one.shape, 9)
    plain = ArrayRows(one, far, lambda: False)
    price = rng.integers(-9, 9, rows.ncols).astype(far.dtype)
    np.testing.assert_array_equal(rows.least_of_rows(price), plain.least_of_rows(price))
    least = np.full(rows.count, -100, far.dtype)
    np.testing.assert_array_equal(rows.least_of_columns(least), plain.least_of_columns(least))
    bound = rng.integers(-20, 40, rows.count).astype(far.dtype)
    for most in (1, 3, 20):
        ours, theirs = (each.nearest(price, bound, most) for each in (rows, plain))
        if dtype[0] == "f":  # no ties, of which each block takes those after its own diagonal
            for found, wanted in zip(ours, theirs):
                np.testing.assert_array_equal(found, wanted)
        assert (one[ours[0], ours[1]] == ours[2]).all()
        assert (ours[2] - price[ours[1]] < bound[ours[0]]).all()
    places = np.nonzero(one < far)
    shuffled = rng.permutation(places[0].size)
    places = places[0][shuffled], places[1][shuffled]
    np.testing.assert_array_equal(rows.at(*places), one[places])


def solve(parts, monkeypatch, control=None):
    monkeypatch.setattr(stacked.memory, "require_memory", lambda *_: None)
    monkeypatch.setattr(stacked.sparse, "run", shortest_augmenting_path.run)
    tune(monkeypatch, tuning, first=2, more=1)
    is_integer = parts[0].dtype.kind == "i"
    return stacked.solve(parts, is_integer, Together(SparseCosts.of_csr, control or Control()))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("shapes", [SHAPES, ((8, 8), (5, 5)), ((12, 12),)], ids=str)
def test_each_has_its_own_solution(shapes, dtype, monkeypatch):
    parts = matrices(np.random.default_rng(2), dtype, shapes)
    solutions = solve(parts, monkeypatch)
    for matrix, solution in zip(parts, solutions):
        assert isinstance(solution, Solution)
        rows = np.arange(len(matrix))
        assert (solution.col_to_row[solution.row_to_col] == rows).all()
        assert np.count_nonzero(solution.col_to_row >= 0) == len(rows)
        assert solution.col_to_row.min() >= -1
        total = matrix[rows, solution.row_to_col].astype(float).sum()
        best = matrix[linear_sum_assignment(matrix)].astype(float).sum()
        assert math.isclose(total, best, rel_tol=1e-9)
        slack = matrix - solution.row_dual[:, None] - solution.col_dual
        assert slack.min() >= -1e-6
        assert abs(slack[rows, solution.row_to_col]).max() <= 1e-6


def test_what_can_not_be_solved_is_left(monkeypatch):
    parts = matrices(np.random.default_rng(3), "f8")
    parts[1][2] = math.inf
    assert solve(parts, monkeypatch) is None


def test_large_integers_are_left(monkeypatch):
    parts = [np.full((3, 3), value, np.int64) for value in (1, -(2**46))]
    assert solve(parts, monkeypatch) is not None
    assert solve([*parts, np.full((40, 40), 2**46)], monkeypatch) is None


def test_no_room_is_no_solution(monkeypatch):
    def refuse(nbytes, purpose):
        assert nbytes == core.BYTES_A_PAIR * 2 * 16
        raise MemoryError(purpose)

    parts = matrices(np.random.default_rng(4), "f4")
    assert solve(parts, monkeypatch) is not None
    monkeypatch.setattr(stacked.memory, "require_memory", refuse)
    together = Together(SparseCosts.of_csr, Control())
    assert stacked.solve(parts, False, together) is None


def test_it_hears_a_stop(monkeypatch):
    control = Control(time_limit=0)
    assert control.tick(0)
    assert solve(matrices(np.random.default_rng(5), "f4"), monkeypatch, control) is None


def test_signed(monkeypatch):
    monkeypatch.setattr(stacked, "cp", np)
    wide = np.arange(24, dtype=np.float32).reshape(4, 6)[:, :5]
    assert stacked.signed(wide, 1).flags.c_contiguous
    assert stacked.signed(wide, -1).flags.c_contiguous
    np.testing.assert_array_equal(stacked.signed(wide, 1), wide)
    np.testing.assert_array_equal(stacked.signed(wide, -1), -wide)
    least = np.array([[-(2**31)]], np.int32)
    assert stacked.signed(least, -1).tolist() == [[2**31]]
    whole = np.ones((2, 2), np.float32)
    assert stacked.signed(whole, 1) is whole
