"""The families that hurt: shape, dtype, seed, and what makes each of them itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.csgraph import maximum_bipartite_matching

from graphs import adversarial

RANDOM = sorted(adversarial.SPARSE.keys() | adversarial.DENSE.keys())


@pytest.mark.parametrize("name", adversarial.SPARSE)
@pytest.mark.parametrize("n", [0, 1, 60])
def test_sparse_costs_have_a_full_assignment(name, n):
    matrix = adversarial.make(name, n, seed=2)
    assert matrix.shape == (n, n)
    assert matrix.has_canonical_format
    assert matrix.dtype in (np.int64, np.float64)
    assert (maximum_bipartite_matching(matrix.astype(bool), "column") >= 0).all()


@pytest.mark.parametrize("name", adversarial.DENSE)
@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (7, 12)])
def test_dense_shapes(name, shape):
    matrix = adversarial.make(name, *shape)
    assert matrix.shape == shape
    assert matrix.dtype == np.float64


@pytest.mark.parametrize("name", RANDOM)
def test_the_seed_fixes_the_costs(name):
    one, same, other = (adversarial.make(name, 80, seed=seed) for seed in (1, 1, 2))
    if name in adversarial.SPARSE:
        one, same, other = one.toarray(), same.toarray(), other.toarray()
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_an_unknown_family_is_named():
    with pytest.raises(ValueError, match="unknown family 'spread'; known: nearest_matched, "):
        adversarial.make("spread", 3)


def test_far_clusters_make_rows_take_far_columns():
    matrix = adversarial.far_clusters(200, seed=3)
    far = matrix.data > 900
    assert 0 < far.sum() <= 200
    assert (matrix.data[~far] < 2).all()


def test_few_are_dear():
    matrix = adversarial.few_dear(2000, seed=4)
    is_dear = matrix.data == 1e12
    assert abs(is_dear.mean() - 0.01) < 0.005
    assert matrix.data[~is_dear].max() < 1


def test_powers_span_their_decades():
    data = adversarial.decades(2000, seed=5).data
    assert data.min() < 1e-8
    assert data.max() > 1e8


def test_wide_integers_reach_their_range():
    data = adversarial.wide_integers(2000, high=10**13, seed=6).data
    assert data.dtype == np.int64
    assert data.max() > 0.99e13


def test_few_pairs_cost_nothing():
    matrix = adversarial.few_zeros(1000, seed=7)
    assert abs((matrix == 0).mean() - 1e-3) < 2e-4
    assert set(np.unique(matrix)) == {0.0, 1.0}


@pytest.mark.parametrize("width", [0.0, 2.0])
def test_distances_on_a_line_add_up(width):
    matrix = adversarial.line(5, 6, width, seed=8)
    order = np.argsort(matrix[:, 0] + matrix[:, 1])
    first, last = order[0], order[-1]
    assert np.isfinite(matrix).all()
    assert abs(matrix[first, 0] - matrix[last, 0]) <= matrix[first, 1] + matrix[last, 1]


def test_an_outer_product_has_rank_one():
    assert np.linalg.matrix_rank(adversarial.outer(20, 30, seed=9)) == 1


def test_an_anti_triangular_pattern_has_one_perfect_matching():
    matrix = adversarial.anti_triangular(6).toarray()
    assert np.array_equal(matrix, np.add.outer(np.arange(6), np.arange(6)) >= 5)
