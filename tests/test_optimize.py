"""SciPy's names for assignment: its own tests as tables, and what it returns and raises.

The cases are those of SciPy 1.17: scipy/optimize/tests/test_linear_assignment.py and the part on
weights of scipy/sparse/csgraph/tests/test_matching.py.
"""

from __future__ import annotations

import inspect
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.csgraph
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array, csr_matrix, random_array

import gpumatch as gm
import gpumatch.optimize
from gpumatch.csgraph import min_weight_full_bipartite_matching
from gpumatch.optimize import linear_sum_assignment
from tests.optimize_ways import WAYS, going

X = math.inf
ANOTHER_DTYPE = pytest.mark.long  # each has kernels of its own, which take seconds to compile
SMALL = [
    ([[400, 150, 400], [400, 450, 600], [300, 225, 300]], [150, 400, 300]),
    ([[400, 150, 400, 1], [400, 450, 600, 2], [300, 225, 300, 3]], [150, 2, 300]),
    ([[10, 10, 8], [9, 8, 1], [9, 7, 4]], [10, 1, 7]),
    ([[10, 10, 8, 11], [9, 8, 1, 1], [9, 7, 4, 10]], [10, 1, 4]),
    ([[10, X, X], [X, X, 1], [X, 7, X]], [10, 1, 7]),
]
SOLVERS = [
    (linear_sum_assignment, np.array),
    (linear_sum_assignment, np.asmatrix),
    (min_weight_full_bipartite_matching, csr_array),
    (min_weight_full_bipartite_matching, csc_array),
    (min_weight_full_bipartite_matching, coo_array),
    (min_weight_full_bipartite_matching, csr_matrix),
]


@pytest.fixture(scope="module", params=WAYS)
def way(request):
    """Small dense costs are solved in one call, or as all others are."""
    with going(request.param):
        yield request.param


both_ways = pytest.mark.usefixtures("way")


# -- SciPy's cases ---------------------------------------------------------------------------------


@both_ways
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize(("entries", "expected"), SMALL)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("solve", "form"), SOLVERS)
def test_small_inputs(solve, form, sign, entries, expected):
    dense = sign * np.array(entries)
    row_ind, col_ind = solve(form(dense), maximize=sign == -1)
    assert np.array_equal(row_ind, np.sort(row_ind))
    assert np.array_equal(dense[row_ind, col_ind], sign * np.array(expected))
    row_ind, col_ind = solve(form(dense.T), maximize=sign == -1)
    assert np.array_equal(row_ind, np.sort(row_ind))
    assert np.array_equal(np.sort(dense.T[row_ind, col_ind]), np.sort(sign * np.array(expected)))


@both_ways
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_lists_and_matrices():
    entries = [[1, 2, 3], [4, 5, 6]]
    for form in (np.asarray, np.asmatrix):
        assert np.array_equal(linear_sum_assignment(entries), linear_sum_assignment(form(entries)))


def test_rows_of_different_lengths_are_scipys_error():
    for solve in (scipy.optimize.linear_sum_assignment, linear_sum_assignment):
        with pytest.raises(ValueError, match="inhomogeneous"):
            solve([[1, 2], [3]])


@both_ways
def test_booleans():
    identity = np.identity(3)
    expected = linear_sum_assignment(identity)
    assert np.array_equal(linear_sum_assignment(identity.astype(bool)), expected)


@both_ways
def test_a_constant_matrix_gives_the_diagonal():
    row_ind, col_ind = linear_sum_assignment(np.ones((8, 8)))
    assert row_ind.tolist() == col_ind.tolist() == [*range(8)]


@both_ways
@pytest.mark.parametrize("shape", [(0, 0), (0, 2), (3, 0), (2, 0), (0, 3)])
def test_nothing_to_assign(shape):
    for solve, source in (
        (linear_sum_assignment, np.empty(shape)),
        (min_weight_full_bipartite_matching, csr_array(shape)),
        (min_weight_full_bipartite_matching, coo_array(shape)),
    ):
        row_ind, col_ind = solve(source)
        assert len(row_ind) == len(col_ind) == 0


INFEASIBLE = [
    [[1, 1, 1], [1, 0, 0], [1, 0, 0]],
    [[1, 1, 1], [0, 0, 1], [0, 0, 1]],
    [[1, 0, 0, 1], [1, 1, 0, 1], [0, 0, 0, 0]],
    [[1, 0, 0], [2, 0, 0]],
    [[0, 1, 0], [0, 2, 0]],
    [[1, 0], [2, 0], [5, 0]],
]


def large_infeasible():
    """SciPy issue 17269: nine rows of 22 columns hold one small entry each, above the others."""
    matrix = np.zeros((22, 22))
    matrix[np.arange(9), np.arange(13, 22)] = 0.001
    others = {
        9: (1, 4, 5, 9), 10: (3,), 11: (4, 9), 12: (1, 5, 9), 13: (0, 2, 8), 14: (2, 8), 15: (0, 8),
        16: (1, 5, 9), 17: (12,), 18: (6,), 19: (7, 10, 11), 20: (7, 10, 11), 21: (0, 8),
    }  # fmt: skip
    for row, cols in others.items():
        matrix[row, list(cols)] = 0.1 + np.arange(len(cols)) / 7
    return matrix


@pytest.mark.parametrize("entries", [*INFEASIBLE, large_infeasible()], ids=range(7))
@pytest.mark.parametrize("form", [csr_array, coo_array])
def test_infeasible_weights(form, entries):
    with pytest.raises(ValueError, match="no full matching exists") as caught:
        min_weight_full_bipartite_matching(form(entries))
    assert isinstance(caught.value.__cause__, gm.InfeasibleError)


def test_stored_zeros_are_removed_with_a_warning():
    stored = csr_array(((2, 0, 3), (0, 1, 1), (0, 2, 3)))
    before = stored.copy()
    for form in (stored, stored.tocoo()):
        with pytest.warns(UserWarning, match="explicit zero weights are removed") as caught:
            min_weight_full_bipartite_matching(form)
        assert caught[0].filename == __file__
    assert stored.nnz == before.nnz


def test_zeros_that_repeated_entries_add_up_to_are_removed_with_a_warning():
    repeated = coo_array(([1, -1, 3, 4], ([0, 0, 0, 1], [0, 0, 1, 0])), shape=(2, 2))
    for solve in (
        scipy.sparse.csgraph.min_weight_full_bipartite_matching,
        min_weight_full_bipartite_matching,
    ):
        with pytest.warns(UserWarning, match="explicit zero weights are removed"):
            assert solve(repeated.copy())[1].tolist() == [1, 0]


def test_negative_weights_too_large_for_exact_sums_are_taken_as_floats():
    weights = csr_array(np.array([[-(2**62), 1], [1, -(2**62)]]))
    assert min_weight_full_bipartite_matching(weights)[1].tolist() == [0, 1]
    assert min_weight_full_bipartite_matching(weights, maximize=True)[1].tolist() == [1, 0]
    most = csr_array([[2**61]])  # of which assign would refuse the exact sum
    assert min_weight_full_bipartite_matching(most)[1].tolist() == [0]


def test_many_sparse_inputs():
    rng = np.random.default_rng(12342309)
    infeasible = 0
    for _ in range(100):
        sparse = random_array(
            (100, 100), density=0.06, data_sampler=lambda size: rng.integers(1, 100, size)
        )
        dense = np.full(sparse.shape, np.inf)
        dense[sparse.row, sparse.col] = sparse.data
        totals = []
        for solve, source in (
            (linear_sum_assignment, dense),
            (min_weight_full_bipartite_matching, sparse.tocsr()),
            (scipy.optimize.linear_sum_assignment, dense),
        ):
            try:
                totals.append(dense[solve(source)].sum())
            except ValueError:
                totals.append(None)
        assert totals[0] == totals[1] == totals[2]
        infeasible += totals[0] is None
    assert 0 < infeasible < 100


# -- beside SciPy ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "scipys"),
    [
        (linear_sum_assignment, scipy.optimize.linear_sum_assignment),
        (
            min_weight_full_bipartite_matching,
            scipy.sparse.csgraph.min_weight_full_bipartite_matching,
        ),
    ],
)
def test_the_parameters_are_scipys(ours, scipys):
    found = inspect.signature(ours).parameters
    names = ["cost_matrix" if ours is linear_sum_assignment else "biadjacency", "maximize"]
    assert list(found)[:2] == names  # ours may take more after these
    assert found["maximize"].default is False
    assert all(name in scipys.__doc__ for name in names)


def outcome(solve, *args, **kwargs):
    """The dtypes and indices returned, or the type of exception and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = [(part.dtype, part.tolist()) for part in solve(*args, **kwargs)]
        except Exception as exc:
            result = type(exc), str(exc)
    return result, [warning.category for warning in caught]


@both_ways
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(
    "source",
    [
        np.array([[4, 1, 3], [2, 0, 5]]),
        np.array([[4, 1], [3, 2], [0, 5]], np.float32),
        np.array([[True, False]]),
        pytest.param(np.array([[2.0, 9.0]], np.float16), marks=ANOTHER_DTYPE),
        pytest.param(np.array([[2**63, 1], [1, 1]], np.uint64), marks=ANOTHER_DTYPE),
        pytest.param(np.array([[2**64 - 5, 1], [1, 2**64 - 5]], np.uint64), marks=ANOTHER_DTYPE),
        [[X, 1], [2, X]],
        [[-X, 1], [2, -X]],
        [[X, X], [1, 2]],
        [[X, -X], [1, 2]],
        [[math.nan, 1]],
        [1, 2, 3],
        5,
        np.ones((2, 2, 2)),
        np.ones((2, 2), complex),
        np.ones((2, 2), np.longdouble),
        np.array([[1, 2]], object),
        np.identity(3).astype(str),
        np.zeros((0, 3)),
        [[Fraction(1, 2), 2], [1, Fraction(1, 3)]],
        [[10**30, 1], [1, 2]],
        [["1", "2"], ["5", "3"]],
        [[None, 1], [1, 2]],
        [[b"1", b"2"], [b"5", b"3"]],
    ],
    ids=range(24),
)
def test_dense_outcomes_are_scipys(source, maximize):
    theirs = outcome(scipy.optimize.linear_sum_assignment, source, maximize)
    assert outcome(linear_sum_assignment, source, maximize) == theirs


@both_ways
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (6, 7), (8, 8), (8, 6), (20, 40), (40, 20)])
@pytest.mark.parametrize(
    "dtype", [pytest.param(np.float16, marks=ANOTHER_DTYPE), np.float32, np.float64]
)
@pytest.mark.parametrize("value", [math.nan, -X], ids=["NaN", "inf of the wrong sign"])
def test_no_number_that_is_not_valid_is_missed(value, dtype, shape, maximize):
    rng = np.random.default_rng(3)
    for place in rng.permutation(shape[0] * shape[1])[:20]:
        matrix = rng.random(shape).astype(dtype)
        matrix.flat[place] = -value if maximize else value
        for source in (matrix, np.asfortranarray(matrix)):
            with pytest.raises(ValueError, match="matrix contains invalid numeric entries"):
                linear_sum_assignment(source, maximize)


WEIGHTS = csr_array(([1.0, 2, 3], ([0, 0, 1], [0, 1, 0])), shape=(2, 3))


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(
    "source",
    [
        WEIGHTS,
        WEIGHTS.T.tocsr(),
        WEIGHTS.tocoo(),
        WEIGHTS.astype(int),
        WEIGHTS.astype(bool),
        WEIGHTS.astype(complex),
        WEIGHTS.tolil(),
        bsr_array(WEIGHTS),
        WEIGHTS.toarray(),
        csr_array((2, 2)),
        csr_array((0, 2)),
        csr_array((2, 0)),
        csr_array(([1.0, 0.0], ([0, 1], [0, 1]))),
        csr_array(np.array([[2**62, 1], [1, 1]])),
    ],
    ids=range(14),
)
def test_sparse_outcomes_are_scipys(source, maximize):
    theirs = outcome(
        scipy.sparse.csgraph.min_weight_full_bipartite_matching, source, maximize=maximize
    )
    assert outcome(min_weight_full_bipartite_matching, source, maximize=maximize) == theirs


def test_weights_that_scipy_lets_pass():
    for weight in (math.nan, -math.inf):
        with pytest.raises(ValueError, match=r"NaN|-inf"):
            min_weight_full_bipartite_matching(csr_array([[weight]]))


@both_ways
@given(
    matrix=hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=8),
        elements=st.integers(-20, 20) | st.just(X),
    ),
    maximize=st.booleans(),
)
def test_totals_are_scipys(matrix, maximize):
    matrix = -matrix if maximize else matrix
    try:
        expected = matrix[scipy.optimize.linear_sum_assignment(matrix, maximize)].sum()
    except ValueError:
        with pytest.raises(ValueError, match="cost matrix is infeasible"):
            linear_sum_assignment(matrix, maximize)
    else:
        assert matrix[linear_sum_assignment(matrix, maximize)].sum() == expected
