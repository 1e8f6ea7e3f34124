"""Maximum product matchings: against SciPy and brute force, and the bounds of the scaling."""

from __future__ import annotations

import itertools
import math
import os
from decimal import Decimal, localcontext
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.io import mmread
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix, dok_array

import gpumatch as gm
from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import SparseCosts
from gpumatch.cpu.assignment.sparse import product
from gpumatch.linalg import entries, maximum_product_matching, mc64
from gpumatch.linalg.entries import entries_of, log_magnitudes, magnitudes, usable_csr
from gpumatch.running.control import Control
from graphs import matrices

SHAPES = st.tuples(st.integers(0, 6), st.integers(0, 6))
MAGNITUDES = st.floats(-300, 300).map(lambda power: 10.0**power) | st.integers(1, 3)
NUMBERS = st.just(0) | st.tuples(MAGNITUDES, st.sampled_from([1, -1])).map(math.prod)
REAL = SHAPES.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=NUMBERS))
COMPLEX = st.tuples(REAL, st.floats(0, 7)).map(lambda drawn: drawn[0] * np.exp(1j * drawn[1]))
INTEGERS = SHAPES.flatmap(lambda shape: hnp.arrays(np.int8, shape, elements=st.integers(-3, 3)))
MATRICES = REAL | COMPLEX | INTEGERS


def scaled_logs(A, s):
    """Rows, columns and logarithms of the scaled magnitudes of all entries."""
    matrix = usable_csr(A)
    rows, cols = matrix.tocoo().coords
    logs = log_magnitudes(matrix.data) + s.row_log_scale[rows] + s.col_log_scale[cols]
    return rows, cols, logs


def check(A, s):
    """The pairs are entries, their permutations valid, and the scaling has its bounds."""
    nrows, ncols = A.shape
    rows, cols, logs = scaled_logs(A, s)
    is_matched = s.row_to_col[rows] == cols
    assert np.all(logs <= 1e-12)
    assert np.all(abs(logs[is_matched]) <= 1e-12)
    assert np.count_nonzero(is_matched) == s.size
    assert sorted(s.row_perm) == list(range(nrows))
    assert sorted(s.col_perm) == list(range(ncols))
    places = np.argsort(s.row_perm)[s.row_ind], np.argsort(s.col_perm)[s.col_ind]
    assert np.array_equal(*places)
    assert np.all(np.isfinite(s.row_log_scale))
    assert np.all(np.isfinite(s.col_log_scale))


def greatest_product(A):
    """The greatest log of a product of as many entries as possible, by brute force."""
    logs = np.where(A == 0, -np.inf, np.log(abs(A) + (A == 0)))
    logs = logs if A.shape[0] <= A.shape[1] else logs.T
    for size in range(logs.shape[0], 0, -1):
        best = max(
            math.fsum(logs[r, c] for r, c in zip(rows, cols))
            for rows in itertools.combinations(range(logs.shape[0]), size)
            for cols in itertools.permutations(range(logs.shape[1]), size)
        )
        if best > -np.inf:
            return size, best
    return 0, 0.0


@pytest.fixture(params=["small", "engine"], scope="module")
def by_both(request):
    """Small matrices are solved by themselves, or by the engine, as if they were large."""
    with patch.object(entries, "SMALL", 0 if request.param == "engine" else entries.SMALL):
        yield


@given(A=MATRICES)
@pytest.mark.usefixtures("by_both")
def test_the_scaling_has_its_bounds(A):
    check(A, maximum_product_matching(A))


@given(A=SHAPES.filter(lambda shape: max(shape) < 6).flatmap(
    lambda shape: hnp.arrays(np.float64, shape, elements=NUMBERS)
))  # fmt: skip
@pytest.mark.usefixtures("by_both")
def test_the_product_is_the_greatest(A):
    s = maximum_product_matching(A)
    size, product = greatest_product(A)
    assert s.size == size
    assert math.isclose(s.log_product, product, rel_tol=1e-12, abs_tol=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.usefixtures("by_both")
def test_larger_matrices_against_scipy(seed):
    rng = np.random.default_rng(seed)
    A = rng.lognormal(0, 20, (60, 60)) * (rng.random((60, 60)) < 0.2)
    A[np.arange(60), rng.permutation(60)] = 1e-30
    s = maximum_product_matching(A)
    check(A, s)
    logs = np.log(abs(A), where=A != 0, out=np.full(A.shape, -1e9))
    rows, cols = linear_sum_assignment(logs, maximize=True)
    assert math.isclose(s.log_product, logs[rows, cols].sum(), rel_tol=1e-12)


@pytest.mark.skipif(np.finfo(np.longdouble).maxexp < 2**14, reason="as short as doubles here")
@pytest.mark.usefixtures("by_both")
def test_magnitudes_beyond_those_of_doubles():
    ten = np.longdouble(10)
    A = csr_array(np.array([[ten**400, 1, 0], [1, 0, -(ten**-500)], [0, ten**900, 1]]))
    s = maximum_product_matching(A)
    assert s.row_to_col.tolist() == [0, 2, 1]
    assert math.isclose(s.log_product, (400 - 500 + 900) * math.log(10), rel_tol=1e-12)


@pytest.mark.usefixtures("by_both")
@pytest.mark.parametrize("name", ["bayer10", "cage10", "hpo-gene-term", "rajat01", "teko_szdMat"])
def test_real_matrices(name):
    folder = os.environ.get("GPUMATCH_DATA")
    if folder is None:
        pytest.skip("GPUMATCH_DATA is not set: no real matrices here")
    A = mmread(Path(folder) / "matrices" / f"{name}.mtx.gz", spmatrix=False).tocsr()
    check(A, maximum_product_matching(A))


@pytest.mark.usefixtures("by_both")
@pytest.mark.parametrize("name", ["west0067", "rajat19", "zenios", "lp_e226", "mbeacxc"])
def test_small_real_matrices(name):
    A = gm.io.read(Path(__file__).parents[2] / "datasets" / f"{name}.mtx.gz")
    check(A, maximum_product_matching(A))


def test_a_matrix_of_blocks_needs_no_auction(monkeypatch):
    """Bids without an epsilon leave few of its rows to paths."""
    monkeypatch.setattr(entries, "SMALL", 0)
    A = matrices.make("recycle", 3000, seed=1)
    s = maximum_product_matching(A, threads=1)
    check(A, s)
    bids, paths = s.stats["trace"]
    assert (bids["step"], paths["step"]) == ("bids", "trial")
    assert bids["found"] > 100
    assert bids["matched"] > 2950
    assert bids["scans"] < A.nnz


def test_entries_are_looked_up_in_shares(monkeypatch):
    """So that the caller may stop in between."""
    monkeypatch.setattr(entries, "SMALL", 0)
    A = matrices.make("circuit", 500, seed=1)
    whole = maximum_product_matching(A)
    calls, look_up = [], product.look_up
    monkeypatch.setattr(product, "BUDGET", 100)
    monkeypatch.setattr(product, "look_up", lambda *given: calls.append(1) or look_up(*given))
    s = maximum_product_matching(A, threads=1)
    assert len(calls) == 1 + A.nnz // 100
    check(A, s)
    assert math.isclose(s.log_product, whole.log_product, rel_tol=1e-14)
    assert np.array_equal(s.col_log_scale, whole.col_log_scale)


def test_logarithms_of_single_precision_are_in_double():
    for numbers in (np.complex64, np.float32, np.int16):
        values = np.array([3, 5, 7], numbers) * (numbers(1 + 1j) if numbers == np.complex64 else 1)
        size = math.sqrt(2) if numbers == np.complex64 else 1
        assert log_magnitudes(values).dtype == np.float64
        assert np.allclose(log_magnitudes(values), np.log([3 * size, 5 * size, 7 * size]), 1e-15, 0)
        s = maximum_product_matching(csr_array(np.diag(values)))
        assert math.isclose(s.log_product, math.log(105 * size**3), rel_tol=1e-15)


def test_factors_are_those_of_the_logarithms():
    A = np.array([[1e-8, 4.0, 0.0], [2.0, 1.0, 1.0], [0.0, 3.0, 1e-8]])
    s = maximum_product_matching(A)
    scaled = abs(np.diag(s.row_scale) @ A @ np.diag(s.col_scale))
    assert np.allclose(scaled[s.row_perm][:, s.col_perm].diagonal(), 1, rtol=1e-12)
    assert np.allclose(np.log(s.row_scale), s.row_log_scale)
    assert repr(s).startswith("ProductMatching(3 pairs, log_product ")


def test_factors_stay_in_range_where_they_can():
    """Values from 1e-300 to 1e300: what is taken off rows and columns is balanced."""
    A = np.array([[1e300, 1e-300], [1e-300, 1e-300]])
    s = maximum_product_matching(A)
    assert np.all(np.isfinite(s.row_scale) & (s.row_scale > 0))
    assert np.all(np.isfinite(s.col_scale) & (s.col_scale > 0))
    check(A, s)


def test_numbers_at_the_ends_of_the_range():
    A = np.array([[5e-324, 1.7e308], [1.7e308, 5e-324]])
    s = maximum_product_matching(A)
    assert s.row_to_col.tolist() == [1, 0]
    check(A, s)
    Z = np.array([[1.7e308 * (1 + 1j), 5e-324j], [1, 1e-320 - 1e-322j]])
    check(Z, maximum_product_matching(Z))


@given(real=MAGNITUDES, imaginary=MAGNITUDES, sign=st.sampled_from([1, -1]))
def test_logarithms_of_complex_numbers_are_those_of_their_absolute_values(real, imaginary, sign):
    (log,) = log_magnitudes(np.array([complex(real, sign * imaginary)]))
    assert math.isclose(log, math.log(math.hypot(real, imaginary)), rel_tol=1e-14, abs_tol=1e-14)


@pytest.mark.parametrize("growth", [0, 1e-12, 1e-8, 0.1, 1])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_logarithms_of_complex_numbers_near_1_do_not_cancel(dtype, growth):
    rng = np.random.default_rng(5)
    values = (np.exp(1j * rng.uniform(0, 7, 200)) * np.exp(growth * rng.normal(size=200))).astype(
        dtype
    )
    with localcontext() as context:
        context.prec = 60
        for value, log in zip(values.tolist(), log_magnitudes(values).tolist()):
            square = Decimal(value.real) ** 2 + Decimal(value.imag) ** 2
            exact = square.ln() / 2
            assert abs(Decimal(log) - exact) <= abs(exact) * Decimal("2e-15")


@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_logarithms_of_short_floats_are_long(dtype):
    values = np.array([3, 1e-3, 777], dtype)
    assert log_magnitudes(values).tolist() == np.log(values.astype(np.float64)).tolist()


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "i4", "u4", "i8", "u8"])
def test_magnitudes_of_integers_do_not_wrap(dtype):
    ends = [False, True] if dtype == "?" else [np.iinfo(dtype).min, np.iinfo(dtype).max]
    found = magnitudes(np.array([*ends, 1], dtype))
    number = np.float64 if dtype.endswith("8") else np.int64
    assert found.tolist() == [number(abs(int(value))) for value in (*ends, 1)]
    assert found.dtype == number


@pytest.mark.parametrize("dtype", ["f2", "f4", "c8", "c16"])
def test_magnitudes_of_floats_are_float64(dtype):
    found = magnitudes(np.array([-3, 4], dtype) * (1j if dtype[0] == "c" else 1))
    assert (found.dtype, found.tolist()) == (np.float64, [3, 4])


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "u8", "f4"])
@pytest.mark.parametrize("job", [1, 2, 3, 4, 5])
def test_jobs_on_matrices_of_every_type(job, dtype):
    A = np.array([[6, 9, 0], [1, 5, 9], [0, 1, 1]]).astype(dtype)
    as_floats = mc64(A.astype(float), job)
    assert mc64(A, job).row_perm.tolist() == as_floats.row_perm.tolist()


@pytest.mark.parametrize("kind", [np.asarray, csr_array, csc_array], ids=["dense", "csr", "csc"])
def test_without_scaling_there_are_no_factors(kind):
    s = maximum_product_matching(kind(np.eye(3)), scaling=False)
    assert (s.row_scale, s.col_scale, s.row_log_scale, s.col_log_scale) == (None,) * 4
    assert s.size == 3
    with pytest.raises(ValueError, match="there is no scaling"):
        s.symmetric_log_scale()


@pytest.mark.parametrize("is_wide", [True, False], ids=["wide", "tall"])
def test_rows_and_columns_without_entries_are_there(is_wide):
    A = np.diag([4.0, 2.0, 8.0])
    more = np.zeros((3, 2))
    given = csr_array(np.hstack([A, more]) if is_wide else np.vstack([A, more.T]))
    s = maximum_product_matching(given)
    longer, shorter = (s.col_to_row, s.row_to_col) if is_wide else (s.row_to_col, s.col_to_row)
    assert longer.tolist() == [0, 1, 2, -1, -1]
    assert shorter.tolist() == [0, 1, 2]
    scaled = s.row_scale[:, None] * given.toarray() * s.col_scale
    assert np.allclose(scaled, given.toarray() > 0)


def test_what_is_not_matched_is_scaled_by_the_greatest_it_has():
    """Rows 1 and 2 share column 1, and nothing is in column 2 or row 3."""
    A = np.array([[4.0, 0, 0, 8], [0, 2, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    s = maximum_product_matching(A)
    check(A, s)
    assert s.row_to_col.tolist() == [3, 1, -1, -1]
    scaled = s.row_scale[:, None] * A * s.col_scale
    assert np.allclose(scaled[:, [0, 1, 3]].max(axis=0), 1)
    assert np.allclose(scaled[:3].max(axis=1), 1)
    assert s.row_scale[3] == s.col_scale[2] == 1


@pytest.mark.parametrize("scaling", [True, False])
@pytest.mark.parametrize(
    "A", [np.array([[1.0, 5, 0], [2, 3, 0], [0, 4, 7]]), np.array([[1.0, 5], [0, 0]])],
    ids=["whole", "singular"],
)  # fmt: skip
def test_the_reference_gives_the_same(A, scaling):
    s = maximum_product_matching(A, backend="reference", scaling=scaling)
    same = maximum_product_matching(A, scaling=scaling)
    assert s.log_product == pytest.approx(same.log_product)
    assert s.row_to_col.tolist() == same.row_to_col.tolist()
    assert s.stats["backend"] == "reference"
    if scaling:
        check(A, s)
    else:
        assert s.row_log_scale is None
        assert s.col_log_scale is None


# -- input -----------------------------------------------------------------------------------------

EXAMPLE = np.array([[0.5, 2, 0], [0, 0, 3], [4, 0.25, 1]])


def csr_tuple(A):
    matrix = csr_array(A)
    return matrix.indptr, matrix.indices, matrix.data, matrix.shape


def halves(A):
    """Each entry twice, as half of it, in the reverse order."""
    matrix = coo_array(A)
    row, col = matrix.coords
    twice = np.append(matrix.data, matrix.data)[::-1] / 2
    return coo_array((twice, (np.append(row, row)[::-1], np.append(col, col)[::-1])), A.shape)


def with_stored_zeros(A):
    matrix = csr_array(np.where(A == 0, 7, A))
    matrix.data[matrix.data == 7] = 0
    return matrix


FORMS = [
    *(csr_array, csc_array, coo_array, dok_array, csr_matrix, csr_tuple),
    *(halves, with_stored_zeros),
]


@pytest.mark.parametrize("form", FORMS, ids=[form.__name__ for form in FORMS])
def test_every_kind_of_input(form):
    s, again = maximum_product_matching(EXAMPLE), maximum_product_matching(form(EXAMPLE))
    assert np.array_equal(s.row_to_col, again.row_to_col)
    assert np.array_equal(s.row_log_scale, again.row_log_scale)
    assert np.array_equal(s.col_log_scale, again.col_log_scale)


def test_the_callers_matrix_is_left_as_it_is():
    matrix = with_stored_zeros(EXAMPLE)
    maximum_product_matching(matrix)
    assert matrix.nnz == 9
    assert np.array_equal(matrix.toarray(), EXAMPLE)
    arrays = matrix.indptr.copy(), matrix.indices[::-1].copy(), matrix.data[::-1].copy()
    before = [array.copy() for array in arrays]
    maximum_product_matching((*arrays, matrix.shape))
    assert all(map(np.array_equal, arrays, before))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(value):
    A = EXAMPLE.copy()
    A[1, 2] = value
    with pytest.raises(ValueError, match="that of row 1 and column 2 is "):
        maximum_product_matching(A)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (np.array(["a"]), TypeError, "the values of A must be numbers; got dtype <U1"),
        ((1, 2), TypeError, "a tuple must be"),
        ((np.zeros(0, int), np.zeros(0, int), np.zeros(0), (0, 0)), ValueError, "indptr must have"),
        (np.zeros(3), ValueError, "A must have 2 dimensions; got 1"),
    ],
    ids=["text", "short tuple", "no pointers", "vector"],
)
def test_what_is_no_matrix_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        maximum_product_matching(wrong)


# -- symmetric -------------------------------------------------------------------------------------

SYMMETRIC = st.integers(1, 7).flatmap(
    lambda n: hnp.arrays(np.float64, (n, n), elements=NUMBERS).map(
        lambda A: np.tril(A) + np.tril(A, -1).T
    )
)


@given(A=SYMMETRIC)
def test_a_symmetric_matrix_has_a_symmetric_scaling(A):
    s = maximum_product_matching(A)
    scale = s.symmetric_log_scale()
    matrix = usable_csr(A)
    rows, cols = matrix.tocoo().coords
    logs = log_magnitudes(matrix.data) + scale[rows] + scale[cols]
    assert np.all(logs <= 1e-12)
    if s.size == A.shape[0]:
        assert np.all(abs(logs[s.row_to_col[rows] == cols]) <= 1e-12)


@given(A=SYMMETRIC)
def test_symmetric_pivots_are_matched_entries(A):
    s = maximum_product_matching(A)
    partner = s.symmetric_pivots()
    assert np.array_equal(partner[partner], np.arange(partner.size))
    for i, j in enumerate(partner.tolist()):
        assert i == j or s.row_to_col[i] == j or s.row_to_col[j] == i


@pytest.mark.parametrize(
    ("row_to_col", "partner"),
    [
        ([0, 2, 1], [0, 2, 1]),
        ([1, 2, 3, 0], [1, 0, 3, 2]),
        ([1, 2, 3, 4, 0], [1, 0, 3, 2, 4]),
        ([-1, 2, 0], [2, 1, 0]),
    ],
    ids=["a pair", "an even cycle", "an odd cycle", "a path"],
)
def test_cycles_are_cut_into_pairs(row_to_col, partner):
    A = np.zeros((len(row_to_col),) * 2)
    for i, j in enumerate(row_to_col):
        A[i, j] = 1 if j >= 0 else 0
    s = maximum_product_matching(A)
    assert s.row_to_col.tolist() == row_to_col
    got = s.symmetric_pivots()
    if -1 in row_to_col:
        assert np.count_nonzero(got != np.arange(len(row_to_col))) == 2
    else:
        assert got.tolist() == partner


def test_a_path_is_cut_from_its_first_index():
    A = np.zeros((4, 4))
    A[[2, 0, 1], [0, 1, 3]] = 1
    assert maximum_product_matching(A).symmetric_pivots().tolist() == [2, 3, 0, 1]


def test_only_a_square_matrix_has_symmetric_pivots():
    s = maximum_product_matching(np.ones((2, 3)))
    with pytest.raises(ValueError, match="only a square matrix has a symmetric scaling"):
        s.symmetric_log_scale()
    with pytest.raises(ValueError, match="only a square matrix has symmetric pivots"):
        s.symmetric_pivots()


# -- MC64 ------------------------------------------------------------------------------------------

SMALL = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda shape: (
        hnp.arrays(np.int64, shape, elements=st.integers(-9, 9))
        | hnp.arrays(np.complex128, shape, elements=st.sampled_from([0, 1j, 2 + 1j, -3, 0.5]))
    )
)
VALUE = {1: len, 2: min, 3: min, 4: math.fsum, 5: math.prod}


@pytest.mark.parametrize("job", [1, 2, 3, 4, 5])
@given(A=SMALL)
def test_jobs_are_those_of_brute_force(job, A):
    row_perm, col_perm, rank, row_log_scale, col_log_scale = mc64(A, job)
    wide = A if A.shape[0] <= A.shape[1] else A.T
    chosen = [
        [abs(wide[r, c]) for r, c in zip(rows, cols)]
        for size in range(wide.shape[0] + 1)
        for rows in itertools.combinations(range(wide.shape[0]), size)
        for cols in itertools.permutations(range(wide.shape[1]), size)
        if all(wide[r, c] != 0 for r, c in zip(rows, cols))
    ]
    most = max(map(len, chosen))
    diagonal = abs(A[row_perm][:, col_perm].diagonal())
    diagonal = diagonal[diagonal > 0].tolist()
    assert len(diagonal) == rank == most
    if most:
        best = max(VALUE[job](values) for values in chosen if len(values) == most)
        assert math.isclose(VALUE[job](diagonal), best, rel_tol=1e-9)
    if job < 5:
        assert not row_log_scale.any()
        assert not col_log_scale.any()


def test_job_5_scales():
    *_, rank, row_log_scale, col_log_scale = mc64(EXAMPLE)
    s = maximum_product_matching(EXAMPLE)
    assert rank == 3
    assert np.array_equal(row_log_scale, s.row_log_scale)
    assert np.array_equal(col_log_scale, s.col_log_scale)


@pytest.mark.parametrize("job", [0, 6, "5"])
def test_other_jobs_are_refused(job):
    with pytest.raises(ValueError, match=f"job must be 1, 2, 3, 4 or 5; got {job!r}"):
        mc64(EXAMPLE, job)


def test_values_in_canonical_form_are_shared_and_any_others_left_as_they_are():
    dense = np.array([[2.0, 0, 5], [0, 3, 1], [4, 0, 7]])
    plain = csr_array(dense)
    for form in (plain, csr_tuple(plain)):
        assert np.shares_memory(entries_of(form).data, plain.data)
        assert not np.shares_memory(entries_of(form).indices, plain.indices)
    parts = [2.0, 0.0, 5.0, 1.0, 3.0, 7.0, 1.0, 3.0], [0, 1, 2, 2, 1, 2, 0, 0], [0, 3, 5, 8]
    other = csr_array(tuple(map(np.array, parts)), shape=(3, 3))
    entries = entries_of(other)
    assert np.array_equal(
        csr_array((entries.data, entries.indices, entries.indptr)).todense(), dense
    )
    assert entries.data.size == plain.nnz
    assert [part.tolist() for part in _parts(other)] == [*parts]
    zeros = csr_array(dense + 1)
    zeros.data -= 1
    assert entries_of(zeros).data.size == plain.nnz < zeros.nnz
    with pytest.raises(ValueError, match="row 1 and column 2 is inf"):
        entries_of(csr_array(np.where(dense == 1, np.inf, dense)))
    for matrix in (plain, other, zeros):
        before = matrix.copy()
        s = maximum_product_matching(matrix)
        check(matrix, s)
        assert s.log_product == pytest.approx(np.log(5 * 3 * 4))
        assert all(np.array_equal(a, b) for a, b in zip(_parts(matrix), _parts(before)))


def test_entries_in_any_order_keep_their_values():
    """Sorted columns would be beside the values of others."""
    indptr, indices = np.array([0, 2, 4], np.int32), np.array([1, 0, 1, 0], np.int32)
    data = np.array([2.0, 3.0, 5.0, 7.0])
    for form in ((indptr, indices, data, (2, 2)), csr_array((data, indices, indptr))):
        assert entries_of(form).data.tolist() == [3.0, 2.0, 7.0, 5.0]
        s = maximum_product_matching(form)
        check(np.array([[3.0, 2.0], [7.0, 5.0]]), s)
        assert s.log_product == pytest.approx(np.log(3 * 5))


@pytest.mark.parametrize("number", [np.int8, np.int16, np.int64])
@pytest.mark.parametrize("form", [csr_array, np.asarray, csc_array])
def test_the_least_integer_is_a_large_entry(form, number):
    """Its magnitude is no integer of that type."""
    least = np.iinfo(number).min
    s = maximum_product_matching(form(np.array([[least, 1], [3, 2]], number)))
    assert s.row_to_col.tolist() == [0, 1]
    assert s.log_product == pytest.approx(np.log(-2.0 * least))


def test_arrays_that_are_no_whole_canonical_csr_are_converted():
    """Spare room, lists, other kinds of numbers: the entries are the same, and not shared."""
    plain = csr_array(EXAMPLE)
    indptr, indices, data = plain.indptr, plain.indices, plain.data
    spare = np.append(indices, indices[:1]), np.append(data, 9.0)
    for parts in (
        (indptr.tolist(), indices.tolist(), data.tolist(), plain.shape),
        (indptr, spare[0], spare[1], plain.shape),
        (indptr.astype(np.int64), indices.astype(np.int64), data, plain.shape),
    ):
        entries = entries_of(parts)
        assert entries.indptr.tolist() == indptr.tolist()
        assert entries.indices.tolist() == indices.tolist()
        assert entries.data.tolist() == data.tolist()
        assert not np.shares_memory(entries.indices, spare[0])
    empty = entries_of(csr_array((0, 0)))
    assert (empty.shape, empty.data.size) == ((0, 0), 0)
    for spread in (
        [indptr.tolist(), indices, data],
        [indptr, indices.tolist(), data],
        [indptr, indices, data.tolist()],
    ):
        assert entries_of((*spread, plain.shape)).indices.tolist() == indices.tolist()
    assert entries_of((indptr, indices, spare[1], plain.shape)).data.tolist() == data.tolist()
    with pytest.raises(ValueError, match="data must have 6 entries; got 5"):
        entries_of((indptr, indices, data[:-1], plain.shape))
    for line in (coo_array(np.array([1.0, 2])), csr_array(np.array([1.0, 2]))):
        with pytest.raises(ValueError, match="must have 2 dimensions; got 1"):
            entries_of(line)
    for objects in (data.astype(object), data.astype(str)):
        with pytest.raises(TypeError, match="the values of A must be numbers"):
            entries_of((indptr, indices, objects, plain.shape))
    with pytest.raises(TypeError, match="a tuple must be"):
        entries_of((indptr, indices, plain.shape))


def _parts(matrix):
    return matrix.data, matrix.indices, matrix.indptr


def test_rows_bid_before_any_looks_ahead():
    """That serves fewer, and takes as long."""
    A = matrices.make("recycle", 8_000, seed=1)
    s = maximum_product_matching(A, threads=1)
    check(A, s)
    bids = s.stats["trace"][0]
    assert (bids["step"], bids["matched"]) == ("bids", 8_000)
    assert bids["found"] > 2_000


def test_what_rounding_takes_from_the_total_is_added_again():
    costs = csr_array(np.diag([1e16, 1.0, -1e16, 1.0]))
    given = SparseCosts(costs).problem(maximize=False, transposed=False)
    solution = Solution.empty(costs.shape, is_integer=False)
    assert product.run(AssignmentTask(given, solution, Control(), None)) == 2
