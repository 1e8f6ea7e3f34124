"""The families of costs: shape, dtype, seed, and what makes each of them itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from graphs import costs

RANDOM = sorted(costs.FAMILIES.keys() - {"machol_wien", "constant"})
SPARSE = {
    "spread": (500,),
    "mesh": (8,),
    "power_law": (8,),
    "sparse_uniform": (300, 400),
    "nearest": (200, 300),
    "circuit": (400,),
    "kkt": (400,),
    "linkage": (30,),
    "goldberg_kennedy": (300,),
}
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


def test_points_are_squared_distances():
    rng = np.random.default_rng(5)
    ours, others = rng.random((6, 3)), rng.random((8, 3))
    squared = ((ours[:, None] - others) ** 2).sum(axis=2)
    assert np.allclose(costs.points(6, 8, 3, seed=5), squared)


def test_low_rank_has_its_rank():
    assert np.linalg.matrix_rank(costs.low_rank(30, 20, 4, seed=5)) == 4


def test_machol_wien():
    assert np.array_equal(costs.machol_wien(2, 3), [[1, 2, 3], [2, 4, 6]])


def test_two_costs_and_one():
    matrix = costs.two_cost(100, p=0.25, seed=6)
    assert set(np.unique(matrix)) == {1, 2}
    assert abs((matrix == 1).mean() - 0.25) < 0.02
    assert np.array_equal(costs.constant(2, 3, cost=5), np.full((2, 3), 5))


# -- sparse ----------------------------------------------------------------------------------------


def has_full_assignment(matrix):
    return (maximum_bipartite_matching(matrix) >= 0).all()


def test_every_sparse_family_is_tried():
    assert SPARSE.keys() == costs.SPARSE_FAMILIES.keys()


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_costs_are_canonical_and_their_seed_fixes_them(name):
    one, same, other = (costs.make(name, *SPARSE[name], seed=seed) for seed in (1, 1, 2))
    assert one.has_canonical_format
    assert one.indices.dtype == one.indptr.dtype == np.int32
    assert one.dtype in (np.int64, np.float64)
    assert np.isfinite(one.data).all()
    assert np.array_equal(one.data, same.data)
    assert np.array_equal(one.indices, same.indices)
    assert one.shape != other.shape or not np.array_equal(one.data[:200], other.data[:200])


@pytest.mark.parametrize("name", ["spread", "mesh", "power_law", "circuit", "kkt"])
def test_square_sparse_costs_have_a_full_assignment(name):
    assert has_full_assignment(costs.make(name, *SPARSE[name], seed=3))


def test_spread_fills_its_decades():
    matrix = costs.spread(2000, decades=6, seed=1)
    assert matrix.nnz > 4.9 * 2000
    assert 0 < matrix.data.min() < 0.01
    assert 6 * np.log(10) - 0.01 < matrix.data.max() < 6 * np.log(10)


def test_weights_are_on_the_graph_and_the_diagonal():
    graph = csr_array(np.array([[0, 1, 0], [0, 0, 1]], bool))
    with_own, without = (costs.weighted(graph, 5, diagonal=own) for own in (True, False))
    assert with_own.indices.tolist() == [0, 1, 1, 2]
    assert without.indices.tolist() == [1, 2]
    many = costs.mesh(10, 5, seed=2).data
    assert set(many.tolist()) == {1, 2, 3, 4, 5}


def test_the_nearest_are_near():
    matrix = costs.nearest(40, 60, k=3, seed=4)
    assert matrix.shape == (40, 60)
    dense = costs.nearest(40, 60, k=40, seed=4).toarray()
    for row in range(40):
        nearest = np.sort(dense[row])[:3]
        assert np.isin(nearest, matrix[[row]].data).all()
    assert (np.diff(matrix.tocsc().indptr) >= 3).all()


@pytest.mark.parametrize("name", ["circuit", "kkt"])
def test_matrices_of_solvers_must_leave_the_diagonal(name):
    matrix = costs.make(name, 500, seed=5)
    assert matrix.data.min() == 0  # the greatest of each column costs nothing
    assert np.array_equal(matrix.tocsc().indices[: matrix.nnz], matrix.T.tocsr().indices)
    stored = matrix.copy()
    stored.data[:] = 1
    assert stored.diagonal().sum() < 500
    assert has_full_assignment(stored)


def test_linkage_has_complete_blocks():
    matrix = costs.linkage(20, 6, seed=6)
    count, labels = connected_components(
        csr_array(block_array([[None, matrix], [matrix.T, None]]) != 0), directed=False
    )
    assert count == 20
    rows = np.bincount(labels[: matrix.shape[0]], minlength=20)
    cols = np.bincount(labels[matrix.shape[0] :], minlength=20)
    assert (rows * cols).sum() == matrix.nnz
    assert rows.max() <= 6
    assert cols.max() <= 6


@pytest.mark.parametrize(("kind", "values"), [("low_cost", range(101)), ("two_cost", {100, 10**8})])
def test_goldberg_and_kennedy_s_costs(kind, values):
    matrix = costs.goldberg_kennedy(2000, 4, kind, seed=7)
    assert set(matrix.data.tolist()) == set(values)
    assert has_full_assignment(csr_array((matrix.data + 1, matrix.indices, matrix.indptr)))


def test_goldberg_and_kennedy_s_fixed_costs_are_products():
    matrix = costs.goldberg_kennedy(50, 3, "fixed_cost").tocoo()
    assert np.array_equal(matrix.data, 100 * (matrix.row + 1) * (matrix.col + 1))
