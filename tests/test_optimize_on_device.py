"""SciPy's names for assignment, given what is on a GPU."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.csgraph
from scipy.sparse import csr_array

from gpumatch.csgraph import min_weight_full_bipartite_matching
from gpumatch.optimize import linear_sum_assignment


@pytest.mark.gpu
@pytest.mark.emulated
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(30, 30), (20, 40), (40, 20), (0, 3), (3, 0), (1, 1)])
def test_dense_costs_on_a_device(shape, maximize):
    cp = pytest.importorskip("cupy")
    for dtype in (bool, np.int32, np.float32, np.float64):
        matrix = np.random.default_rng(3).integers(0, 9, shape).astype(dtype)
        theirs = scipy.optimize.linear_sum_assignment(matrix, maximize)
        ours = linear_sum_assignment(cp.asarray(matrix), maximize)
        assert [type(part) for part in ours] == [cp.ndarray] * 2
        ours = tuple(part.get() for part in ours)
        assert [part.dtype for part in ours] == [part.dtype for part in theirs]
        assert matrix[ours].sum() == matrix[theirs].sum()
        assert (np.diff(ours[0]) > 0).all()


@pytest.mark.gpu
@pytest.mark.emulated
@pytest.mark.parametrize("dtype", [bool, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(30, 30), (20, 40), (40, 20)])
def test_sparse_weights_on_a_device(shape, dtype):
    cp, sparse = pytest.importorskip("cupy"), pytest.importorskip("cupyx.scipy.sparse")
    matrix = np.random.default_rng(4).integers(1, 9, shape).astype(dtype)
    weights = csr_array(matrix)
    theirs = scipy.sparse.csgraph.min_weight_full_bipartite_matching(weights)
    ours = min_weight_full_bipartite_matching(sparse.csr_matrix(cp.asarray(matrix)))
    assert [type(part) for part in ours] == [cp.ndarray] * 2
    ours = tuple(part.get() for part in ours)
    assert [part.dtype for part in ours] == [part.dtype for part in theirs]
    assert matrix[ours].sum(dtype=float) == matrix[theirs].sum(dtype=float)


@pytest.mark.gpu
@pytest.mark.emulated
def test_what_is_refused_on_a_device():
    cp, sparse = pytest.importorskip("cupy"), pytest.importorskip("cupyx.scipy.sparse")
    with pytest.raises(ValueError, match="cost matrix is infeasible"):
        linear_sum_assignment(cp.array([[math.inf, math.inf], [1, 2]]))
    with pytest.raises(ValueError, match="invalid numeric entries"):
        linear_sum_assignment(cp.array([[math.nan, 1]]))
    with pytest.raises(ValueError, match="no full matching exists"):
        min_weight_full_bipartite_matching(sparse.csr_matrix(cp.array([[0.0, 1], [0, 2]])))
    stored = sparse.csr_matrix(
        (cp.array([2.0, 0, 3]), cp.array([0, 1, 1]), cp.array([0, 2, 3])), shape=(2, 2)
    )
    with pytest.warns(UserWarning, match="explicit zero weights are removed"):
        col_ind = min_weight_full_bipartite_matching(stored)[1]
    assert col_ind.tolist() == [0, 1]
