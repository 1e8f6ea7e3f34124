"""Small sparse costs in one compiled call: what it finds, and what it leaves to the engine."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse.csgraph
from scipy.sparse import coo_array, csc_array, csr_array, random_array

import gpumatch as gm
import gpumatch.csgraph
from gpumatch.contracts.batch import INFEASIBLE, REACHED, SOLVED
from gpumatch.cpu.assignment.sparse import small
from gpumatch.csgraph import min_weight_full_bipartite_matching
from gpumatch.problems import one_problem
from tests.assignment_checks import check_violator
from tests.cpu.matching.cases import MALFORMED


def refuse(*args, **kwargs):
    raise AssertionError("the general way was taken")


def random_costs(rng, shape, kind):
    """Sparse costs, with a full assignment in most cases."""
    matrix = random_array(shape, density=rng.random() ** 2, rng=rng).tolil()
    few = min(shape)
    if rng.random() < 0.5:
        matrix[rng.permutation(shape[0])[:few], rng.permutation(shape[1])[:few]] = 1
    matrix = matrix.tocsr()
    if kind == "floats":
        matrix.data = np.exp(rng.normal(size=matrix.nnz))
    elif kind == "integers":
        matrix.data = rng.integers(-50, 50, matrix.nnz).astype(np.int32)
    else:
        matrix.data = rng.integers(0, 3, matrix.nnz).astype(np.float32)
    return matrix


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("kind", ["floats", "integers", "ties"])
def test_the_assignment_is_the_engines(monkeypatch, kind, maximize):
    rng = np.random.default_rng(1)
    solved = infeasible = 0
    for number in range(60):
        shape = tuple(rng.integers(1, (6, 12, 40)[number % 3], 2).tolist())
        matrix = random_costs(rng, shape, kind)
        matrix = matrix if number % 2 else matrix.tocsc()
        error = alone = None
        try:
            alone = gm.assign(matrix, maximize=maximize, algorithm="engine")
        except gm.InfeasibleError as exc:
            error = exc
        with monkeypatch.context() as patch:
            if matrix.nnz:
                patch.setattr(one_problem, "solve", refuse)
            if error is not None:
                infeasible += 1
                with pytest.raises(gm.InfeasibleError) as caught:
                    gm.assign(matrix, maximize=maximize)
                assert str(caught.value) == str(error)
                assert caught.value.rows.tolist() == error.rows.tolist()
                assert caught.value.cols.tolist() == error.cols.tolist()
                check_violator(stored(matrix), caught.value)
                continue
            a = gm.assign(matrix, maximize=maximize)
        solved += 1
        gm.verify(matrix, a)
        assert math.isclose(a.objective, alone.objective, rel_tol=1e-12)
        assert type(a.objective) is type(alone.objective)
        assert type(a.gap) is type(alone.gap)
        assert a.stats.keys() == alone.stats.keys()
        for name in ("row_to_col", "col_to_row", "row_dual", "col_dual", "pair_costs", "row_ind"):
            one, other = getattr(a, name), getattr(alone, name)
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
    assert min(solved, infeasible) > 5


def stored(matrix):
    """Which pairs are stored."""
    marks = np.zeros(matrix.shape, bool)
    coo = matrix.tocoo()
    marks[coo.row, coo.col] = True
    return marks


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("form", [csr_array, csc_array, coo_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_scipys_name_is_answered_as_scipy_does(monkeypatch, form, dtype, maximize):
    rng = np.random.default_rng(3)
    monkeypatch.setattr(gpumatch.csgraph, "assign", refuse)
    for shape in ((7, 7), (30, 50), (50, 30)):
        dense = (rng.random(shape) < 0.3) * rng.integers(1, 100, shape)
        np.fill_diagonal(dense, 50)
        matrix = form(dense.astype(dtype))
        native = form(dense.astype(dtype).astype(np.float64))
        expected = scipy.sparse.csgraph.min_weight_full_bipartite_matching(native, maximize)
        found = min_weight_full_bipartite_matching(matrix, maximize)
        assert [side.dtype for side in found] == [
            np.int32 if shape[0] > shape[1] else np.int64,
            np.int64 if shape[0] > shape[1] else np.int32,
        ]
        assert all(side.flags.owndata for side in found)
        values = dense.astype(dtype).astype(np.float64)
        assert values[found].sum() == values[expected].sum()
        dense[:, 0] = dense[0] = 0
        with pytest.raises(ValueError, match="no full matching exists"):
            min_weight_full_bipartite_matching(form(dense.astype(dtype)), maximize)


def test_a_violator_is_reached_from_the_unmatched_rows():
    matrix = csr_array([[1.0, 2, 0, 0], [3, 4, 0, 0], [5, 6, 0, 0], [0, 0, 7, 8]])
    arrays = matrix.indptr, matrix.indices, matrix.data
    found = small.solve(arrays, matrix.shape, by_rows=True, maximize=False)
    assert found.end == INFEASIBLE
    assert (found.mates == REACHED).tolist() == [True] * 3 + [False] + [True] * 2 + [False] * 2


NOT_CANONICAL = MALFORMED | {
    "repeated index": ([0, 2, 3], [1, 1, 0]),
    "falling indices": ([0, 2, 3], [1, 0, 0]),
}


@pytest.mark.parametrize(("indptr", "indices"), NOT_CANONICAL.values(), ids=NOT_CANONICAL)
def test_arrays_of_no_canonical_matrix_are_left_to_the_general_way(indptr, indices):
    arrays = np.array(indptr, np.int32), np.asarray(indices), np.ones(3)
    assert small.solve(arrays, (2, 2), by_rows=True, maximize=False) is None


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_valid_arrays_of_either_index_type_are_taken(index):
    arrays = np.array([0, 2, 3], index), np.array([0, 1, 0], index), np.array([1.0, 5, 2])
    found = small.solve(arrays, (2, 2), by_rows=True, maximize=False)
    assert (found.end, found.mates.tolist()) == (SOLVED, [1, 0, 1, 0])


VALUES = {
    "NaN": [1.0, math.nan, 1],
    "-inf": [1.0, -math.inf, 1],
    "too large": [1.0, 2.0**1000, 1],
    "too large integers": np.array([1, 2**50, 1]),
    "complex": np.ones(3, complex),
    "too few": [1.0, 1.0],
}
if np.dtype(np.longdouble).itemsize > 8:  # else it is float64
    VALUES["longdouble"] = np.ones(3, np.longdouble)


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_values_that_need_another_way_are_left_to_it(values):
    arrays = np.array([0, 2, 3], np.int32), np.array([0, 1, 0], np.int32), np.asarray(values)
    assert small.solve(arrays, (2, 2), by_rows=True, maximize=False) is None


def test_paths_that_read_too_much_are_left_to_the_engine(monkeypatch):
    """Two clusters of unequal sizes: many rows must go far."""
    rng = np.random.default_rng(2)
    rows = np.sort(rng.random(900)) + np.where(np.arange(900) < 300, 0, 9)
    cols = np.sort(rng.random(900)) + np.where(np.arange(900) < 450, 0, 9)
    near = np.clip(np.arange(900)[:, None] + np.arange(-150, 151, 20), 0, 899)
    matrix = coo_array(
        (np.ones(near.size), (np.repeat(np.arange(900), near.shape[1]), near.ravel())), (900, 900)
    ).tocsr()
    matrix.sum_duplicates()
    owners = np.repeat(np.arange(900), np.diff(matrix.indptr))
    matrix.data = np.abs(rows[owners] - cols[matrix.indices]) + 1e-3
    a = gm.assign(matrix)
    gm.verify(matrix, a)
    assert math.isclose(a.objective, gm.assign(matrix, algorithm="engine").objective)
