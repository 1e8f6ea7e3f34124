"""The checker of maximum product matchings: what it accepts, and what it says is wrong."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

import gpumatch as gm
from gpumatch.certificates import CertificateError, product
from gpumatch.linalg import maximum_product_matching, mc64
from graphs import matrices

A = np.array([[2.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1e-9, 8.0]])


def changed(result, **changes):
    names = ("row_to_col", "col_to_row", "row_log_scale", "col_log_scale")
    return SimpleNamespace(**{name: getattr(result, name).copy() for name in names} | changes)


@given(
    shape=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    seed=st.integers(0, 2**20),
    density=st.floats(0.2, 1),
    is_complex=st.booleans(),
)
def test_what_is_found_is_accepted(shape, seed, density, is_complex):
    rng = np.random.default_rng(seed)
    values = 10.0 ** rng.uniform(-300, 300, shape) * (rng.random(shape) < density)
    given = values * (1 + 1j) if is_complex else values
    s = maximum_product_matching(given)
    proof = gm.verify(given, s)
    assert (proof.size, proof.edges) == (s.size, np.count_nonzero(values))
    assert math.isclose(proof.bound, s.log_product, rel_tol=1e-12, abs_tol=1e-9)


@pytest.mark.parametrize("family", matrices.FAMILIES)
def test_solvers_matrices(family):
    matrix = matrices.make(family, 500, seed=1)
    assert "and none above 1" in str(gm.verify(matrix, maximum_product_matching(matrix)))


@pytest.mark.parametrize("form", [np.asarray, csr_array, coo_array])
def test_kinds_of_input(form):
    assert gm.verify(form(A), maximum_product_matching(A)).size == 3


def test_repeated_entries_are_summed():
    rows, cols, values = [0, 0, 1, 1], [0, 0, 1, 0], [1.0, 2.0, 5.0, 0.0]
    matrix = coo_array((values, (rows, cols)), shape=(2, 2))
    assert math.isclose(gm.verify(matrix, maximum_product_matching(matrix)).bound, math.log(15))


@pytest.mark.parametrize("number", [np.int8, np.int64])
def test_the_least_integers_have_a_size_of_their_own(number):
    """Their magnitude is no integer of that type."""
    least = np.iinfo(number).min
    matrix = np.array([[least, 1], [3, 2]], number)
    claim = maximum_product_matching(matrix.astype(float))
    assert math.isclose(gm.verify(matrix, claim).bound, math.log(-2.0 * least))


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
@pytest.mark.parametrize("growth", [0, 1e-8, 1])
def test_products_of_complex_numbers_near_1_are_accepted(kind, growth):
    """However small their logarithms are, and so what is allowed for rounding."""
    rng = np.random.default_rng(7)
    for shape in ((1, 1), (1, 3), (4, 4), (6, 3)):
        matrix = np.exp(1j * rng.uniform(0, 7, shape)) * np.exp(growth * rng.normal(size=shape))
        matrix = matrix.astype(kind)
        assert gm.verify(matrix, maximum_product_matching(matrix)).size == min(shape)
    assert gm.verify(np.array([[1j]]), maximum_product_matching([[1j]])).gap == 0


def test_logarithms_of_complex_numbers_are_as_good_as_is_said():
    rng = np.random.default_rng(8)
    angles, small = np.exp(1j * rng.uniform(0, 7, 300)), 10.0 ** rng.uniform(-100, 0, 100)
    values = np.concatenate(
        [angles, angles * np.exp(rng.uniform(-1.3, 1.3, 300)), 1 + 1j * small, [1j, 1, 3e300j]]
    )
    logs, errors = product._logarithms(values)
    with localcontext() as context:
        context.prec = 450
        for value, log, error in zip(values.tolist(), logs.tolist(), errors.tolist()):
            exact = (Decimal(value.real) ** 2 + Decimal(value.imag) ** 2).ln() / 2
            assert abs(Decimal(log) - exact) <= Decimal(error)
            assert error <= 2.0**-49 * abs(log)


def test_single_precision_is_checked_in_double():
    for kind in (np.float32, np.complex64):
        matrix = (A * 7 / 3).astype(kind) * kind(1 if kind is np.float32 else 1 + 2j)
        wide = matrix.astype(np.result_type(kind, np.float64))
        assert gm.verify(matrix, maximum_product_matching(wide)).size == 3


def test_a_smaller_product_is_refused():
    """With factors that make its own entries 1, others are above 1."""
    turned = np.array([1, 0, 2], np.int32)
    paid = np.log(np.abs(A[np.arange(3), turned]))
    claim = SimpleNamespace(
        row_to_col=turned, col_to_row=turned, row_log_scale=-paid, col_log_scale=np.zeros(3)
    )
    with pytest.raises(CertificateError, match="row 0 and column 0 is above 1 when scaled"):
        gm.verify(A, claim)


def test_the_matrix_may_be_a_tuple():
    matrix = csr_array(A)
    parts = matrix.indptr, matrix.indices, matrix.data, matrix.shape
    assert gm.verify(parts, maximum_product_matching(A)) == gm.verify(
        A, maximum_product_matching(A)
    )


def test_the_wrong_columns_are_refused():
    """A column that is left over may have a small factor only if all matched ones have."""
    wide = np.array([[1.0, 0, 3.0], [0, 50.0, 0]])
    claim = SimpleNamespace(
        row_to_col=np.array([0, 1]),
        col_to_row=np.array([0, 1, -1]),
        row_log_scale=np.zeros(2),
        col_log_scale=np.array([0.0, -math.log(50), -math.log(50)]),
    )
    with pytest.raises(CertificateError, match="row 0 and column 2"):
        gm.verify(wide, claim)
    gm.verify(
        wide[:, :2], changed(claim, col_to_row=np.arange(2), col_log_scale=claim.col_log_scale[:2])
    )


def test_the_wrong_rows_are_refused():
    """The row that is left over has the larger entry, and a small factor hides it."""
    tall = np.array([[1.0], [3.0]])
    claim = SimpleNamespace(
        row_to_col=np.array([0, -1]),
        col_to_row=np.array([0]),
        row_log_scale=np.array([0.0, -math.log(3)]),
        col_log_scale=np.zeros(1),
    )
    with pytest.raises(CertificateError, match="row 1 and column 0 would be better"):
        gm.verify(tall, claim)


SCALES = np.full(3, -math.log(2))  # of the rows of A


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"row_log_scale": np.full(3, -5.0)}, "is exp(.*) when scaled, not 1"),
        ({"row_log_scale": np.full(3, np.nan)}, "row_log_scale must be 3 finite numbers"),
        ({"row_log_scale": np.array([0, np.inf, 0])}, "row_log_scale must be 3 finite numbers"),
        ({"row_log_scale": SCALES + 1e-10 * np.eye(3)[1]}, "row 1 .*when scaled"),
        ({"col_log_scale": np.zeros(2)}, "col_log_scale must be 3 finite numbers"),
        ({"row_to_col": np.array([2, 1, 0])}, "row 0 is matched to column 2, which is"),
        (
            {"row_to_col": np.array([2, 1, 0]), "col_to_row": np.array([2, 1, 0])},
            "row 0 is matched to column 2, but there is no entry",
        ),
        ({"row_log_scale": None}, "there is no scaling"),
    ],
)
def test_errors_are_named(changes, message):
    right = maximum_product_matching(A)
    assert np.allclose(right.row_log_scale, SCALES, rtol=1e-15)
    with pytest.raises(CertificateError, match=message):
        gm.verify(A, changed(right, **changes))


@pytest.mark.parametrize("col", [0, 1])
def test_a_pair_without_an_entry_is_refused_in_every_column(col):
    lonely = np.array([[0.0, 1.0], [1.0, 0.0]])
    claim = SimpleNamespace(
        row_to_col=np.where(np.arange(2) == col, col, -1),
        col_to_row=np.where(np.arange(2) == col, col, -1),
        row_log_scale=np.zeros(2),
        col_log_scale=np.zeros(2),
    )
    says = f"row {col} is matched to column {col}, but there is no entry"
    with pytest.raises(CertificateError, match=says):
        gm.verify(lonely, claim)


@pytest.mark.parametrize("size", [1e4, 1e13, 1e300])
def test_large_scales_buy_nothing(size):
    """They cancel, but so large a rounding would hide any product."""
    worst = np.array([[1.0, 1e-9], [1e-9, 1.0]])
    swapped = np.array([1, 0])
    claim = SimpleNamespace(
        row_to_col=swapped,
        col_to_row=swapped,
        row_log_scale=np.full(2, size),
        col_log_scale=np.full(2, -size),
    )
    with pytest.raises(CertificateError, match=r"no maximum product needs|is above 1"):
        gm.verify(worst, claim)


@given(seed=st.integers(0, 2**20), n=st.integers(2, 5), gap=st.sampled_from([1e-10, 1e-3, 1.0]))
def test_no_smaller_product_passes_whatever_the_scales(seed, n, gap):
    """Of all scales, those of the best product bound best; others are its shifts and mixtures."""
    rng = np.random.default_rng(seed)
    matrix = np.exp(rng.normal(size=(n, n)))
    best = maximum_product_matching(matrix)
    other = rng.permutation(n)
    logs = np.log(matrix)
    lost = best.log_product - logs[np.arange(n), other].sum()
    if lost < gap:
        return
    for shift in (0.0, 1e3, -7.5):
        claim = SimpleNamespace(
            row_to_col=other,
            col_to_row=np.argsort(other),
            row_log_scale=best.row_log_scale + shift,
            col_log_scale=best.col_log_scale - shift,
        )
        with pytest.raises(CertificateError):
            gm.verify(matrix, claim)
        claim.row_log_scale = -logs[np.arange(n), other] - claim.col_log_scale[other]
        with pytest.raises(CertificateError):
            gm.verify(matrix, claim)


def test_a_gap_is_rigorous_and_small():
    proof = gm.verify(A, maximum_product_matching(A))
    assert 0 <= proof.gap <= proof.allowance < 1e-12
    assert proof.bound >= math.log(64)
    assert math.isclose(proof.bound, math.log(64), rel_tol=1e-14)


REPEATED = [
    (np.uint8, [100, 100, 100, 60]),
    (np.int8, [100, 100, 100, 60]),
    (np.int64, [2**62, 2**62, 2**62, 1]),
    (np.bool_, [True, True, True, True]),
    (np.float32, [3e38, 3e38, 3e38, 1]),
]


@pytest.mark.parametrize(
    ("number", "values"), REPEATED, ids=lambda part: getattr(part, "__name__", "")
)
@pytest.mark.parametrize("form", ["coo", "tuple"])
def test_repeated_entries_of_small_types_are_summed_without_wrapping(number, values, form):
    data = np.array(values, number)
    wide = [sum(map(float, data[:3])), float(data[3])]
    claim = maximum_product_matching(np.array([wide]))
    given = coo_array((data, ([0, 0, 0, 0], [0, 0, 0, 1])), shape=(1, 2))
    if form == "tuple":
        given = np.array([0, 4]), np.array([0, 0, 0, 1]), data, (1, 2)
    assert math.isclose(gm.verify(given, claim).bound, math.log(max(wide)), abs_tol=1e-12)


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ((np.array([0, 10**8, 5]), np.array([0, 1, 0, 1, 0]), np.ones(5), (2, 2)), ValueError),
        ((np.array([0, 6, 5]), np.array([0, 1, 0, 1, 0]), np.ones(5), (2, 2)), ValueError),
        ((np.array([0, 1, 2]), np.array([0, 7]), np.ones(2), (2, 2)), ValueError),
        ((np.array([0, 1, 2]), np.array([0, 1]), np.ones(1), (2, 2)), ValueError),
        ((np.array([0, 1, 2]), np.array([0, 1]), (2, 2)), TypeError),
        ((np.array([0, 1, 2]), np.array([0, 1]), np.array(["a", "b"]), (2, 2)), TypeError),
    ],
    ids=range(6),
)
def test_malformed_matrices_are_refused(parts, kind):
    with pytest.raises(kind):
        gm.verify(parts, maximum_product_matching(np.eye(2)))


def test_masked_arrays_and_entries_that_are_not_finite_are_refused():
    s = maximum_product_matching(np.eye(2))
    with pytest.raises(TypeError, match="masked"):
        gm.verify(np.ma.masked_array(np.eye(2), [[1, 0], [0, 0]]), s)
    with pytest.raises(CertificateError, match="not finite"):
        gm.verify(np.array([[1, np.inf], [0, 1]]), s)


@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (5, 3)])
@pytest.mark.parametrize("job", [1, 2, 3, 4, 5])
def test_what_mc64_gives(shape, job):
    """Job 5 brings factors, which prove its product. The others bring no proof."""
    matrix = np.random.default_rng(5).random(shape)
    found = mc64(matrix, job)
    if job == 5:
        assert gm.verify(matrix, found).size == 3
        with pytest.raises(CertificateError, match="but the rank is 2"):
            gm.verify(matrix, found._replace(rank=2))
        with pytest.raises(CertificateError, match="is no permutation"):
            gm.verify(matrix, found._replace(row_perm=np.zeros(shape[0], int)))
        turned = found._replace(row_perm=np.roll(found.row_perm, 1))
        with pytest.raises(CertificateError):
            gm.verify(matrix, turned)
    else:
        with pytest.raises(TypeError, match="of jobs 1 to 4, brings no proof"):
            gm.verify(matrix, found)


@pytest.mark.parametrize("job", [1, 5])
def test_a_matrix_that_needs_no_factors_is_proven_without(job):
    dominant = np.where(np.eye(3), 1.0, 1e-9)
    assert gm.verify(dominant, mc64(dominant, 5)).size == 3
    assert gm.verify(np.eye(3), mc64(np.eye(3), job)).gap == 0


def test_a_singular_matrix_of_mc64():
    matrix = np.array([[2.0, 0, 0], [3.0, 0, 0], [0, 4.0, 5.0]])
    assert gm.verify(matrix, mc64(matrix, 5)).size == 2


def test_what_a_result_says_of_itself_is_checked():
    s = maximum_product_matching(A)
    says = {"size": 2, "log_product": s.log_product * (1 + 1e-12)}
    for name, value in says.items():
        with pytest.raises(CertificateError, match=name):
            gm.verify(A, changed(s, **{name: value}))


@pytest.mark.parametrize("number", [1.0, 1j], ids=["real", "complex"])
def test_logarithms_of_other_entries_are_rounded_too(number):
    """The pairs are near 1, but the factors must fit what lies across them."""
    matrix = csr_array(number * np.array([[1e-200, 5.0], [2.0, 1e200]]))
    assert gm.verify(matrix, maximum_product_matching(matrix)).size == 2
