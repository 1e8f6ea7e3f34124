"""Floats up to the greatest there is: solved where the result is a number, at every door."""

from __future__ import annotations

import itertools
import sys
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.csgraph
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.costs import DenseCosts, SparseCosts, overflow_of_sums

MOST = sys.float_info.max
NUMBERS = st.sampled_from([MOST, -MOST, 1e308, -1e308, 9e307, 1e306, 2.0**1000]) | st.floats(-9, 9)
SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 5))


def in_csr(matrix):
    """All entries, zeros too."""
    nrows, ncols = matrix.shape
    cols = np.tile(np.arange(ncols), nrows)
    return csr_array((matrix.ravel(), cols, np.arange(nrows + 1) * ncols), shape=matrix.shape)


def best(matrix, maximize):
    """The greatest or the least total of all full assignments, exactly."""
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    rows = range(wide.shape[0])
    ways = itertools.permutations(range(wide.shape[1]), len(rows))
    return (max if maximize else min)(total(wide, rows, way) for way in ways)


def total(matrix, rows, cols):
    return sum(map(Fraction, matrix[rows, cols].tolist()))


@settings(max_examples=150, deadline=None)
@given(hnp.arrays(np.float64, SHAPES, elements=NUMBERS), st.booleans())
def test_totals_are_the_best_of_all(matrix, maximize):
    """SciPy's sums overflow, so that it takes a worse one of some."""
    expected = best(matrix, maximize)
    room = Fraction(1e-12) * max(abs(expected), Fraction(np.abs(matrix).max()))
    found = gm.optimize.linear_sum_assignment(matrix, maximize)
    assert abs(total(matrix, *found) - expected) <= room
    for source in (matrix, in_csr(matrix)):
        try:
            a = gm.assign(source, maximize=maximize)
        except ValueError as exc:
            if "overflow float64" not in str(exc):
                raise
            continue
        assert abs(Fraction(a.objective) - expected) <= room
        assert np.isfinite(a.row_dual).all()
        assert np.isfinite(a.col_dual).all()
        assert a.pair_costs.tolist() == matrix[a.row_ind, a.col_ind].tolist()


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float64, SHAPES, elements=NUMBERS), st.booleans())
def test_bottlenecks_sum_nothing(matrix, maximize):
    for source in (matrix, in_csr(matrix)):
        for method in ("thresholds", "paths") if source is not matrix else ("auto",):
            a = gm.assign(source, objective="bottleneck", maximize=maximize, algorithm=method)
            assert a.objective in matrix
            assert gm.verify(source, a).objective == a.objective


@pytest.mark.parametrize("number", [np.int64, np.uint64])
def test_bottlenecks_of_integers_sum_nothing_either(number):
    matrix = np.array([[2**62 - 1, 5], [7, 2**62 - 1]], number)
    a = gm.assign(matrix, objective="bottleneck")
    assert a.objective == 7
    assert gm.verify(matrix, a).objective == 7
    assert gm.assign(matrix, objective="bottleneck", maximize=True).objective == 2**62 - 1
    with pytest.raises(ValueError, match="too large"):
        gm.assign(matrix + number(1), objective="bottleneck")
    with pytest.raises(ValueError, match="too large"):
        gm.assign(matrix)


@pytest.mark.parametrize("forbidden", [MOST, 1e308, 1.1e307])
@pytest.mark.parametrize("n", [3, 40, 300])
def test_the_greatest_float_as_a_forbidden_cost(n, forbidden):
    """As many callers of SciPy write it."""
    rng = np.random.default_rng(n)
    matrix = rng.integers(0, 1000, (n, n)).astype(float)
    matrix[rng.random((n, n)) < 0.4] = forbidden
    np.fill_diagonal(matrix, 999)
    expected = matrix[scipy.optimize.linear_sum_assignment(matrix)].sum()
    assert matrix[gm.optimize.linear_sum_assignment(matrix)].sum() == expected
    assert gm.assign(matrix).objective == expected
    if n == 300:
        return
    sparse = csr_array(matrix + 1)
    found = gm.csgraph.min_weight_full_bipartite_matching(sparse)
    assert sparse.toarray()[found].sum() == expected + n


@pytest.mark.parametrize("cardinality", ["full", "maximum", "any"])
@pytest.mark.parametrize("limit", [MOST, 1e308, -1e308])
def test_limits_up_to_the_greatest_float(limit, cardinality):
    for matrix in (np.array([[1.0, 2.0], [3.0, -4.0]]), np.array([[1, 2], [3, -4]])):
        a = gm.assign(matrix, cost_limit=limit, cardinality=cardinality)
        assert a.size == (2 if limit > 0 else 0)
        assert a.objective == (-3 if limit > 0 else 0)
        assert a.cost_limit == limit


def test_initial_pairs_and_prices_are_divided_too():
    matrix = np.array([[1e308, 5e307], [1.0, MOST]])
    a = gm.assign(matrix)
    again = gm.assign(matrix, initial=a)
    assert (again.row_to_col.tolist(), again.objective) == ([1, 0], 5e307 + 1)
    assert again.gap <= 1e-15 * again.objective


def test_a_batch_with_the_greatest_float():
    batch = gm.assign([np.array([[MOST, 1.0]]), np.array([[2.0, 3.0]])])
    assert batch.objective.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="problem 1: the total of 2 pairs overflow"):
        gm.assign([np.eye(2), np.full((2, 2), MOST)])


@pytest.mark.parametrize("kind", [DenseCosts, lambda m: SparseCosts(csr_array(m))])
def test_divided_costs_are_exact(kind):
    matrix = np.array([[1.5, 1e300, 3e-300], [-0.75, 1e-280, 2.0**-900]])
    costs = kind(matrix)
    divided = costs.divided(9)
    assert np.array_equal(divided.dense() * 2.0**9, matrix)
    assert divided.extent == tuple(part / 2**9 for part in costs.extent)
    assert overflow_of_sums(divided.extent, 2) == overflow_of_sums(costs.extent, 2) == 0
    assert overflow_of_sums(divided.extent, 2, MOST) > 0


@pytest.mark.parametrize("n", [1, 2, 1000, 2**31])
def test_the_power_is_enough(n):
    power = overflow_of_sums(DenseCosts([[MOST]], summed=False).extent, n)
    assert np.isfinite(8.0 * (n + 1) * (MOST * 2.0**-power))


def test_costs_beyond_float64_are_refused():
    wide = np.array([[1, 2]], np.longdouble) * np.ldexp(np.longdouble(1), 1100)
    if not np.isfinite(wide).all():
        pytest.skip("longdouble is float64 here")
    for wish in ({}, {"objective": "bottleneck"}):
        with pytest.raises(ValueError, match="the costs are beyond the range of float64"):
            gm.assign(wide, **wish)


@pytest.mark.parametrize("n", [1, 2, 1000])
def test_the_greatest_floats_that_are_not_divided(n):
    """Sums may hold eight times as many of them as there are rows, and one more."""
    room = MOST / (8 * (n + 1))
    largest, beyond = room * (1 - 1e-15), room * (1 + 1e-15)
    for limit in (0, largest, -largest):
        assert overflow_of_sums(DenseCosts([[-largest]]).extent, n, limit) == 0
    assert overflow_of_sums(DenseCosts([[-beyond]], summed=False).extent, n) > 0
    for limit in (beyond, -beyond):
        assert overflow_of_sums(DenseCosts([[0.0]]).extent, n, limit) > 0
