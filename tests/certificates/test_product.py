"""The checker of maximum product matchings: what it accepts, and what it says is wrong."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

import gpumatch as gm
from gpumatch.certificates import CertificateError
from gpumatch.linalg import maximum_product_matching
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


SCALES = maximum_product_matching(A).row_log_scale


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
    with pytest.raises(CertificateError, match=message):
        gm.verify(A, changed(maximum_product_matching(A), **changes))


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
