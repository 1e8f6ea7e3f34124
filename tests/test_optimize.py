"""SciPy's names for assignment: its own tests as tables, and what it returns and raises.

The cases are those of SciPy 1.17: scipy/optimize/tests/test_linear_assignment.py and the part on
weights of scipy/sparse/csgraph/tests/test_matching.py.
"""

from __future__ import annotations

import inspect
import math
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
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
from gpumatch.cpu.assignment.small import pairs_only
from gpumatch.csgraph import min_weight_full_bipartite_matching
from gpumatch.optimize import linear_sum_assignment

X = math.inf
SMALL = [
    ([[400, 150, 400], [400, 450, 600], [300, 225, 300]], [150, 400, 300]),
    ([[400, 150, 400, 1], [400, 450, 600, 2], [300, 225, 300, 3]], [150, 2, 300]),
    ([[10, 10, 8], [9, 8, 1], [9, 7, 4]], [10, 1, 7]),
    ([[10, 10, 8, 11], [9, 8, 1, 1], [9, 7, 4, 10]], [10, 1, 4]),
    ([[10, X, X], [X, X, 1], [X, 7, X]], [10, 1, 7]),
]
# Whatever the fixture `way` puts in their place:
pairs_only_solver, pairs_only_pairs = pairs_only.solver, pairs_only.pairs
SOLVERS = [
    (linear_sum_assignment, np.array),
    (linear_sum_assignment, np.asmatrix),
    (min_weight_full_bipartite_matching, csr_array),
    (min_weight_full_bipartite_matching, csc_array),
    (min_weight_full_bipartite_matching, coo_array),
    (min_weight_full_bipartite_matching, csr_matrix),
]


@pytest.fixture(scope="module", params=["at once", "by assign"])
def way(request):
    """Small dense costs are solved in one call, or as all others are."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "by assign":
            patch.setattr(gpumatch.optimize, "_SOLVERS", {})
            patch.setattr(pairs_only, "solver", lambda dtype: None)
            patch.setattr(pairs_only, "pairs", lambda values, maximize: None)
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
    assert list(found) == names
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
        np.array([[2.0, 9.0]], np.float16),
        np.array([[2**63, 1], [1, 1]], np.uint64),
        np.array([[2**64 - 5, 1], [1, 2**64 - 5]], np.uint64),
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
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
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


FIRST = {"?", "b", "i", "l", "q", "e", "f", "d", ">f8"}
"""Dtypes to compile for when there is little time: each takes ten seconds."""


def by_dtype(dtypes):
    """A mark that calls a test with each of these dtypes."""
    others = {dtype: [] if dtype in FIRST else [pytest.mark.long] for dtype in dtypes}
    return pytest.mark.parametrize(
        "dtype", [pytest.param(dtype, marks=marks) for dtype, marks in others.items()]
    )


@both_ways
@by_dtype([*"?bBhHiIlQefd", *(">i2", ">i4", ">i8", ">u8", ">f2", ">f4", ">f8")])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(120, 120), (90, 140), (140, 90)])
def test_larger_totals_are_scipys(shape, maximize, dtype):
    rng = np.random.default_rng(shape)
    for top in (2, 100):
        least = 0 if np.dtype(dtype).kind == "u" else -top
        matrix = rng.integers(least, top, shape).astype(dtype)
        theirs = scipy.optimize.linear_sum_assignment(matrix, maximize)
        for stored in (matrix, np.asfortranarray(matrix)):
            ours = linear_sum_assignment(stored, maximize)
            assert np.unique(ours[1]).size == min(shape)
            assert matrix[ours].sum(dtype=float) == matrix[theirs].sum(dtype=float)


@both_ways
def test_integers_of_fifty_bits_are_exact():
    rng = np.random.default_rng(9)
    matrix = rng.integers(-(2**50), 2**50, (60, 60))
    matrix[linear_sum_assignment(matrix)] += 1  # may change which is best, not by how much
    ours = matrix[linear_sum_assignment(matrix)].sum()
    assert ours == gm.assign(matrix, algorithm="hungarian-tree", backend="cpu").objective


def test_small_costs_need_no_assign(way, monkeypatch):
    calls = []

    def counted(*args, **kwargs):
        calls.append(args)
        return gm.assign(*args, **kwargs)

    monkeypatch.setattr(gpumatch.optimize, "assign", counted)
    rng = np.random.default_rng(1)
    for shape in ((20, 20), (20, 30), (30, 20)):
        integers = (rng.integers(0, most, shape) for most in (3, 999, 2**50))
        for matrix in (rng.random(shape), *integers):
            for stored in (matrix, matrix[::-1], matrix.astype(">f8")):
                linear_sum_assignment(stored)
                linear_sum_assignment(stored, maximize=True)
    assert len(calls) == (72 if way == "by assign" else 0)
    if way == "at once":
        linear_sum_assignment(rng.random((513, 513)))
        assert not calls
        linear_sum_assignment(rng.integers(0, 999, (513, 513)))
        linear_sum_assignment(rng.random((1025, 1025)))
        assert len(calls) == 2


@both_ways
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("extra", [0, 1, 20])
def test_every_number_of_columns_fills_its_vectors(extra, maximize):
    rng = np.random.default_rng(extra)
    for n in range(1, 36):
        for matrix in (rng.random((n, n + extra)), rng.integers(-3, 3, (n, n + extra))):
            for turned in (matrix, matrix.T.copy()):
                theirs = turned[scipy.optimize.linear_sum_assignment(turned, maximize)].sum()
                row_ind, col_ind = linear_sum_assignment(turned, maximize)
                assert (np.diff(row_ind) > 0).all()
                assert np.unique(col_ind).size == n
                assert math.isclose(turned[row_ind, col_ind].sum(), theirs, abs_tol=1e-12)


@both_ways
@by_dtype(["?", "b", "H", "q", "Q", "e", "d", ">i2", ">u8", ">f2", ">f8"])
def test_costs_are_read_where_they_lie(dtype):
    """None of these is copied first."""
    solve = pairs_only_solver(np.dtype(dtype))
    matrix = np.random.default_rng(6).integers(0, 90, (20, 30)).astype(dtype)
    want = matrix[scipy.optimize.linear_sum_assignment(matrix)].sum(dtype=float)
    window, columns = np.pad(matrix, 2)[2:-2, 2:-2], np.asfortranarray(matrix)
    for stored in (matrix, window, columns, matrix[::-1], matrix[:, ::-1], window.T, columns.T):
        row_ind, col_ind = solve(stored, False)
        assert stored[row_ind, col_ind].sum(dtype=float) == want


def test_costs_of_records_are_copied_first_where_strides_are_no_multiples(way):
    records = np.zeros((3, 4), np.dtype([("cost", "i4"), ("name", "i1")]))
    records["cost"] = np.arange(12).reshape(3, 4) * 7 % 12
    assert pairs_only_solver(np.dtype("i4"))(records["cost"], False) is None
    theirs = scipy.optimize.linear_sum_assignment(records["cost"])
    assert linear_sum_assignment(records["cost"])[1].tolist() == theirs[1].tolist()
    if way == "at once":
        assert pairs_only_pairs(records["cost"], False)[1].tolist() == theirs[1].tolist()


@both_ways
@pytest.mark.parametrize("n", [2, 600])
def test_masked_arrays_are_refused(n):
    """SciPy looks through their masks, so that it may give a pair that is masked."""
    masked = np.ma.masked_array(np.ones((n, n)), mask=np.eye(n, dtype=bool))
    for source in (masked, [*masked], masked.astype(int)):
        with pytest.raises(TypeError, match="cost_matrix: got a masked array: fill it"):
            linear_sum_assignment(source)


@both_ways
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("n", [2, 3, 10, 20, 36, 37, 64, 65])
def test_products_have_one_row_with_all_the_least_costs(n, maximize):
    numbers = np.arange(1, n + 1)
    best = numbers * (numbers if maximize else numbers[::-1])
    for dtype, scale in ((np.float64, 1), (np.int32, 1), (np.int64, 2**41)):
        products = np.multiply.outer(numbers, numbers).astype(dtype) * dtype(scale)
        for matrix in (products, products[::-1], products[:, ::-1], products[::-1, ::-1].copy()):
            assert matrix[linear_sum_assignment(matrix, maximize)].sum() == best.sum() * scale


def misaligned(matrix):
    raw = np.empty(matrix.nbytes + 1, np.uint8)[1:]
    shifted = raw.view(matrix.dtype).reshape(matrix.shape)
    shifted[:] = matrix
    assert not shifted.flags.aligned
    return shifted


def field_of_a_record(matrix):
    records = np.zeros(matrix.shape, [("flag", np.uint8), ("cost", matrix.dtype)])
    records["cost"] = matrix
    return records["cost"]


def read_only(matrix):
    matrix = matrix.copy()
    matrix.flags.writeable = False
    return matrix


@both_ways
@pytest.mark.parametrize(
    "form",
    [
        np.asfortranarray,
        misaligned,
        read_only,
        np.asmatrix,
        lambda matrix: matrix.tolist(),
        lambda matrix: matrix.astype(matrix.dtype.newbyteorder()),
        lambda matrix: np.repeat(matrix, 2, axis=1)[:, ::2],
        lambda matrix: matrix[::-1].copy()[::-1],
        lambda matrix: np.pad(matrix, 3)[3:-3, 3:-3],
        lambda matrix: np.pad(matrix.T, 3)[3:-3, 3:-3].T,
        field_of_a_record,
    ],
    ids=[
        *("F", "misaligned", "read-only", "matrix", "lists", "swapped", "strided", "reversed"),
        *("window", "turned window", "field"),
    ],
)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_matrix_may_lie_in_memory_as_it_likes(form):
    rng = np.random.default_rng(7)
    for shape in ((30, 30), (20, 30), (30, 20)):
        for matrix in (rng.random(shape), rng.integers(0, 99, shape)):
            given, kept = form(matrix), matrix.copy()
            assert np.array_equal(linear_sum_assignment(given), linear_sum_assignment(matrix))
            assert np.array_equal(np.asarray(given), kept)


@both_ways
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("scale", [2**43, 2**47, 2**51, 2**52, 1e300, 1e-305])
def test_numbers_of_any_size(scale, maximize):
    rng = np.random.default_rng(8)
    small = rng.integers(-9, 10, (30, 40))
    total = small[scipy.optimize.linear_sum_assignment(small, maximize)].sum()
    matrix = small * scale
    assert small[linear_sum_assignment(matrix, maximize)].sum() == total
    if isinstance(scale, int):
        matrix[linear_sum_assignment(matrix, maximize)] += 1 - 2 * maximize
        found = matrix[linear_sum_assignment(matrix, maximize)].sum()
        assert found == gm.assign(matrix, maximize=maximize, backend="cpu").objective


@both_ways
def test_calls_from_several_threads():
    matrices = [np.random.default_rng(seed).random((n, n)) for seed in range(20) for n in (5, 90)]
    alone = [linear_sum_assignment(matrix) for matrix in matrices]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(linear_sum_assignment, 5 * matrices))
    for ours, expected in zip(together, 5 * alone):
        assert np.array_equal(ours, expected)


# -- beside other threads --------------------------------------------------------------------------


@pytest.fixture
def no_switching():
    """The GIL changes hands only where it is given away."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(interval)


def test_another_thread_goes_on_during_a_large_call(no_switching):
    numbers = np.arange(512)
    hard = np.outer(numbers, numbers)
    linear_sum_assignment(hard)  # compiled before the threads meet
    may_go_on, went_on = threading.Lock(), []

    def other():
        with may_go_on:
            went_on.append(True)

    thread = threading.Thread(target=other)
    with may_go_on:
        thread.start()
    linear_sum_assignment(hard)
    before_the_end = bool(went_on)
    thread.join()
    assert before_the_end


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_the_first_call_of_a_dtype_needs_its_own_function_only(dtype, monkeypatch):
    """Another one, for which the values would be copied, takes two seconds to compile."""
    asked = []

    def solver(of):
        asked.append(of)
        return pairs_only_solver(of)

    monkeypatch.setattr(gpumatch.optimize, "_SOLVERS", {})
    monkeypatch.setattr(pairs_only, "solver", solver)
    linear_sum_assignment(np.array([[1, 2], [3, 1]], dtype))
    assert asked == [np.dtype(dtype)]


@pytest.mark.parametrize("maximize", [False, True])
def test_without_the_compiled_functions_for_small_matrices_the_pairs_are_the_same(
    maximize, monkeypatch
):
    """A later Numba may lack the private parts that these are made of."""
    costs = np.random.default_rng(6).permutation(35).reshape(5, 7)
    expected = scipy.optimize.linear_sum_assignment(costs, maximize)
    monkeypatch.setattr(gpumatch.optimize, "_pairs_only", lambda: None)
    monkeypatch.setattr(gpumatch.optimize, "_SOLVERS", {})
    assert np.array_equal(linear_sum_assignment(costs, maximize), expected)
    with pytest.raises(ValueError, match="cost matrix is infeasible"):
        linear_sum_assignment([[X, X], [1, 2]])
