"""The families of costs: shape, dtype, seed, and what makes each of them itself."""

from __future__ import annotations

import numpy as np
import pytest

from graphs import costs

RANDOM = sorted(costs.FAMILIES.keys() - {"machol_wien", "constant"})
RECTANGULAR = sorted(costs.FAMILIES.keys() - {"geom"})


@pytest.mark.parametrize("name", costs.FAMILIES)
@pytest.mark.parametrize("n", [0, 1, 17])
def test_square(name, n):
    matrix = costs.make(name, n, seed=1)
    assert matrix.shape == (n, n)
    assert matrix.dtype in (np.int64, np.float64)
    assert matrix.flags.c_contiguous


@pytest.mark.parametrize("name", RECTANGULAR)
def test_rectangular(name):
    assert costs.make(name, 4, 9).shape == (4, 9)
    assert costs.make(name, 9, 4).shape == (9, 4)


@pytest.mark.parametrize("name", RANDOM)
def test_the_seed_fixes_the_costs(name):
    one, same, other = (costs.make(name, 20, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_an_unknown_family_is_named():
    with pytest.raises(ValueError, match="unknown family 'uniform'; known: uniform_integer, "):
        costs.make("uniform", 3)


@pytest.mark.parametrize(("factor", "most"), [(0.1, 5), (1, 50), (10, 500)])
def test_uniform_integers_fill_their_range(factor, most):
    matrix = costs.uniform_integer(50, 200, factor, seed=3)
    assert matrix.min() == 0
    assert matrix.max() == most
    assert abs(matrix.mean() - most / 2) < most / 40


def test_uniform_floats_fill_the_unit_interval():
    matrix = costs.uniform_float(100, seed=3)
    assert 0 <= matrix.min() < 0.001
    assert 0.999 < matrix.max() < 1


def test_geom_is_a_metric_of_one_point_set():
    matrix = costs.geom(30, side=10, seed=2)
    assert np.array_equal(matrix, matrix.T)
    assert not matrix.diagonal().any()
    assert (matrix[:, None] + matrix[None] >= matrix[:, :, None] - 1e-12).all()
    assert 5 < matrix.max() <= np.hypot(10, 10)


def test_geom2_measures_between_two_point_sets():
    matrix = costs.geom2(6, 40, side=10, seed=2)
    assert matrix.min() > 0
    assert matrix.max() <= np.hypot(10, 10)
    # Squared distances in the plane, less those of a first point, have rank 2 and a constant.
    assert np.linalg.matrix_rank(matrix**2 - matrix[:1] ** 2, tol=1e-6) == 3


def test_low_rank_has_its_rank():
    assert np.linalg.matrix_rank(costs.low_rank(30, 20, 4, seed=5)) == 4


def test_machol_wien():
    assert np.array_equal(costs.machol_wien(2, 3), [[1, 2, 3], [2, 4, 6]])


def test_two_costs_and_one():
    matrix = costs.two_cost(100, p=0.25, seed=6)
    assert set(np.unique(matrix)) == {1, 2}
    assert abs((matrix == 1).mean() - 0.25) < 0.02
    assert np.array_equal(costs.constant(2, 3, cost=5), np.full((2, 3), 5))
