"""Assignments that leave something out: cardinality, limits, and what is infeasible."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.problems import one_problem
from gpumatch.problems.request import CARDINALITIES
from graphs import costs
from tests.assignment_cases import EVERY_ALGORITHM
from tests.assignment_checks import check_violator, close, optimum, sparse

C = np.array([[3, 9, 9], [1, 2, 9], [-4, 9, 9]])


def test_any_takes_a_pair_only_when_it_pays():
    a = gm.assign(C, cardinality="any")
    assert (a.objective, a.row_to_col.tolist(), a.col_to_row.tolist()) == (
        -4,
        [-1, -1, 0],
        [2, -1, -1],
    )
    a = gm.assign(C, maximize=True, cardinality="any")
    assert (a.size, a.objective) == (3, 21)


@pytest.mark.parametrize("limit", [50_000, 2**31 - 1, 2**40])
@EVERY_ALGORITHM
def test_a_limit_far_above_all_costs_changes_nothing(run, limit):
    """Not even where the costs, and not their sums with the limit, have room in int32."""
    for seed in range(5):
        matrix = np.random.default_rng(seed).integers(0, 256, (6, 6))
        a = gm.assign(matrix, cost_limit=limit, **run.arguments)
        gm.verify(matrix, a)
        assert (a.size, a.objective) == (6, gm.assign(matrix, backend="cpu").objective)


@pytest.mark.parametrize("cardinality", CARDINALITIES)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_a_limit_is_not_rounded_to_the_costs(dtype, cardinality):
    """0.1 is less than what it is as a float32, and more than as a float16."""
    matrix = np.array([[0.1, 5], [5, 0.1]], dtype)
    for source in (matrix, sparse(matrix.astype(np.float64))):
        a = gm.assign(source, cardinality=cardinality, cost_limit=0.1)
        gm.verify(source, a)
        if cardinality == "maximum":
            assert a.size == (0 if dtype == np.float32 else 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_limit_is_not_rounded_to_a_large_matrix(dtype):
    matrix = np.full((300, 300), 5, dtype)
    np.fill_diagonal(matrix, 0.1)
    a = gm.assign(matrix, cardinality="maximum", cost_limit=0.1)
    assert a.size == (0 if dtype == np.float32 else 300)


@pytest.mark.parametrize("limit", [1e17, 10**18, 10**30, 1e300])
def test_a_limit_of_floats_may_be_a_large_integer(limit):
    matrix = np.random.default_rng(2).random((40, 40)) * 1e16
    for source in (matrix, csr_array(matrix)):
        a = gm.assign(source, cost_limit=limit)
        gm.verify(source, a)
        assert close(a.objective, optimum(matrix))
        assert isinstance(a.cost_limit, float)


@pytest.mark.parametrize("cardinality", ["full", "any"])
def test_a_limit_leaves_dearer_pairs(cardinality):
    a = gm.assign(C, cardinality=cardinality, cost_limit=8)
    assert (a.objective, a.row_to_col.tolist()) == (-2, [-1, 1, 0])
    assert gm.assign(C, cardinality=cardinality, cost_limit=10).size == 3
    a = gm.assign(-C, maximize=True, cardinality=cardinality, cost_limit=-8)
    assert (a.objective, a.row_to_col.tolist()) == (2, [-1, 1, 0])


@pytest.mark.parametrize("cardinality", ["full", "maximum", "any"])
def test_an_infinite_limit_is_none(cardinality):
    for maximize, limit in ((False, np.inf), (True, -np.inf)):
        a = gm.assign(C, maximize=maximize, cardinality=cardinality, cost_limit=limit)
        free = gm.assign(C, maximize=maximize, cardinality=cardinality)
        assert (a.objective, a.cost_limit) == (free.objective, None)
        assert gm.verify(C, a).bound == free.objective


def test_a_limit_between_two_integers():
    assert gm.assign([[2]], cost_limit=2.5).size == 1
    assert gm.assign([[3]], cost_limit=2.5).size == 0
    assert gm.assign([[3]], maximize=True, cost_limit=2.5).size == 1


@pytest.mark.parametrize("as_stored", [np.asarray, sparse])
def test_maximum_is_the_cheapest_of_the_largest(as_stored):
    x = math.inf
    matrix = np.array([[x, 5.0, x, x], [x, 3.0, x, x], [7.0, -9.0, 1.0, 2.0], [x, 4.0, x, x]])
    a = gm.assign(as_stored(matrix), cardinality="maximum")
    gm.verify(as_stored(matrix), a)
    assert (a.objective, a.row_to_col.tolist()) == (4.0, [-1, 1, 2, -1])
    rows, cols = a.vertex_cover()
    assert (rows.tolist(), cols.tolist()) == ([2], [1])


def test_maximum_is_full_where_full_is_possible():
    matrix = costs.uniform_integer(30, 20, seed=3)
    a = gm.assign(matrix, cardinality="maximum")
    assert a.objective == gm.assign(matrix).objective
    assert [part.size for part in a.vertex_cover()] == [0, 20]


def test_maximum_within_a_limit():
    a = gm.assign(C, cardinality="maximum", cost_limit=3)
    gm.verify(C, a)
    assert (a.objective, a.row_to_col.tolist()) == (-2, [-1, 1, 0])


def brute_force(matrix, cost, size=None):
    """The least total cost of an assignment, of exactly `size` pairs where that is given."""
    nrows, ncols = matrix.shape
    best = math.inf
    for k in range(min(nrows, ncols) + 1) if size is None else [size]:
        for rows in itertools.combinations(range(nrows), k):
            for cols in itertools.permutations(range(ncols), k):
                best = min(best, sum(cost(matrix[i, j]) for i, j in zip(rows, cols)))
    return best


@pytest.mark.parametrize("seed", range(8))
def test_small_wishes_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-5, 6, rng.integers(1, 5, 2)).astype(float)
    matrix[rng.random(matrix.shape) < 0.4] = math.inf
    assert gm.assign(matrix, cardinality="any").objective == brute_force(matrix, float)
    a = gm.assign(matrix, cost_limit=2)
    assert a.objective - 2 * a.size == brute_force(matrix, lambda c: c - 2)
    a = gm.assign(matrix, cardinality="maximum")
    assert a.size == gm.maximum_matching(np.isfinite(matrix)).size
    assert a.objective == brute_force(matrix, float, a.size)


# -- infeasible ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(40, 40), (30, 50), (50, 30)])
@EVERY_ALGORITHM
def test_the_hall_violator_is_on_the_exception(run, shape):
    matrix = np.random.default_rng(2).random(shape)
    matrix = matrix if shape[0] <= shape[1] else matrix.T
    matrix[5:12, 3:] = math.inf
    matrix = matrix if shape[0] <= shape[1] else matrix.T
    for source in (matrix, sparse(matrix)):
        many, few = ("rows", "columns") if shape[0] <= shape[1] else ("columns", "rows")
        with pytest.raises(ValueError, match=f"7 {many} may be assigned to 3 {few}") as caught:
            gm.assign(source, **run.arguments)
        check_violator(np.isfinite(matrix), caught.value)
        rows, cols = caught.value.rows.tolist(), caught.value.cols.tolist()
        assert sorted([rows, cols], key=len) == [[0, 1, 2], [*range(5, 12)]]
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.rows.tolist()) == (str(caught.value), rows)


def refuse(*args, **kwargs):
    raise AssertionError("the general way was taken")


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (7, 7), (6, 20), (20, 6), (30, 30)], ids=str)
def test_one_call_finds_the_hall_violator_of_a_small_matrix(monkeypatch, shape, maximize):
    """It is the one that the general way finds, whatever the maximum matching is."""
    rng = np.random.default_rng(12)
    for share in (0.0, 0.1, 0.3, 0.9):
        costs = rng.random(shape)
        costs[rng.random(shape) >= share] = math.inf
        few = costs if shape[0] <= shape[1] else costs.T
        few[-2:, 1:] = few[:1] = math.inf
        costs = -costs if maximize else costs
        with pytest.raises(gm.InfeasibleError) as expected:
            gm.assign(costs, maximize=maximize, algorithm="shortest-augmenting-path")
        with monkeypatch.context() as patch:
            patch.setattr(one_problem, "solve", refuse)
            with pytest.raises(gm.InfeasibleError) as caught:
                gm.assign(costs, maximize=maximize)
            batch = gm.assign([costs, np.ones((2, 2))], maximize=maximize, on_error="mark")
        check_violator(np.isfinite(costs), caught.value)
        for error in (caught.value, batch.errors[0]):
            for one, other in zip(
                (error.rows, error.cols), (expected.value.rows, expected.value.cols)
            ):
                assert (one.dtype, one.tolist()) == (other.dtype, other.tolist())
        assert str(caught.value) == str(expected.value)
        assert set(batch.row_to_col[0].tolist()) == set(batch.col_to_row[0].tolist()) == {-1}


@pytest.mark.parametrize("value", [math.nan, -math.inf, math.inf], ids=str)
def test_invalid_costs_of_a_small_matrix_are_refused_at_once(monkeypatch, value):
    costs = np.ones((4, 5))
    costs[2, 3] = value
    maximize = value == math.inf
    with pytest.raises(ValueError, match="the costs") as expected:
        gm.assign(costs, maximize=maximize, algorithm="shortest-augmenting-path")
    monkeypatch.setattr(one_problem, "solve", refuse)
    with pytest.raises(ValueError, match="the costs") as caught:
        gm.assign(costs, maximize=maximize)
    assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("limit", [2.0**62, 1e30])
def test_a_limit_that_no_integer_of_64_bits_is_makes_floats_of_the_costs(limit):
    """Any smaller one that is integral stays an integer, and is refused if sums might overflow."""
    a = gm.assign([[1, 2], [4, 3]], cost_limit=limit)
    assert (type(a.objective), a.objective, a.cost_limit) == (float, 4.0, limit)
    assert type(a.cost_limit) is float
    assert type(gm.assign([[1, 2], [4, 3]], cost_limit=2.0**50).cost_limit) is int
