"""`gpumatch.linalg` on data that is on a device: results there, and no copy of the matrix."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.linalg import (
    BlockTriangularForm,
    DulmageMendelsohn,
    btf,
    dmperm,
    maximum_product_matching,
    maxtrans,
    mc64,
    splu,
    sprank,
    strongcomp,
)
from graphs import grid, matrices, uniform
from tests.cases import CASES
from tests.linalg.oracle import of_result

pytestmark = pytest.mark.gpu


@pytest.fixture
def no_copy(monkeypatch):
    """CuPy; graphs on a device stay there."""

    def to_host(source):
        assert not source.on_device
        return source

    monkeypatch.setattr(gm.BipartiteGraph, "to_host", to_host)
    return pytest.importorskip("cupy")


def on_device(cp, pattern):
    matrix = csr_array(pattern)
    return cp.asarray(matrix.indptr), cp.asarray(matrix.indices), matrix.shape


def on_host(cp, arrays):
    assert all(isinstance(array, cp.ndarray) and array.dtype == np.int32 for array in arrays)
    return [array.get() for array in arrays]


EMULATED = {case.name: pytest.mark.emulated if case.is_small else () for case in CASES}


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=EMULATED[case.name]) for case in CASES]
)
def test_decompositions(no_copy, case):
    pattern = gm.BipartiteGraph(case.graph).to_csr()
    d = DulmageMendelsohn(*on_host(no_copy, dmperm(on_device(no_copy, pattern))))
    assert d.rr[3] == case.size
    gm.verify(pattern, d)
    assert of_result(d) == of_result(dmperm(pattern, backend="cpu"))


@pytest.mark.emulated
def test_a_decomposition_on_the_device_is_verified():
    cp = pytest.importorskip("cupy")
    pattern = on_device(cp, uniform(2_000, 2, seed=1))
    assert gm.verify(pattern, dmperm(pattern)).size == sprank(pattern)


@pytest.mark.emulated
@pytest.mark.parametrize("pattern", [uniform(5_000, 4, seed=1), grid(80, 0.8, seed=2)])
def test_block_triangular_forms(no_copy, pattern):
    given = on_device(no_copy, pattern)
    form = BlockTriangularForm(*on_host(no_copy, btf(given)))
    assert gm.verify(pattern, form).size == sprank(pattern, backend="cpu")
    assert sprank(given) == (no_copy.asnumpy(maxtrans(given)) >= 0).sum()


@pytest.mark.emulated
def test_strong_components(no_copy):
    pattern = uniform(5_000, 2, seed=3)
    p, r = on_host(no_copy, strongcomp(on_device(no_copy, pattern)))
    blocks = np.searchsorted(r, np.arange(5_000), side="right")
    rows, cols = pattern[p][:, p].nonzero()
    assert (blocks[rows] <= blocks[cols]).all()
    assert np.array_equal(np.sort(np.diff(r)), np.sort(np.diff(strongcomp(pattern)[1])))


@pytest.mark.emulated
def test_data_on_the_host_comes_back_to_the_host():
    pattern = uniform(1_000, 3, seed=4)
    d = dmperm(pattern, backend="cuda")
    assert all(isinstance(part, np.ndarray) for part in d)
    assert of_result(d) == of_result(dmperm(pattern, backend="cpu"))


# -- values ----------------------------------------------------------------------------------------


def with_values(cp, matrix):
    return (*map(cp.asarray, (matrix.indptr, matrix.indices, matrix.data)), matrix.shape)


def singular(rng):
    """A matrix with too few columns in use, and a row too many."""
    matrix = csr_array(rng.random((40, 30)) * (rng.random((40, 30)) < 0.1))
    matrix.data[::7] = 0
    return matrix


MATRICES = {
    **{name: matrices.make(name, 600, seed=1) for name in matrices.FAMILIES},
    "singular": singular(np.random.default_rng(1)),
    "wide": singular(np.random.default_rng(2)).T.tocsr(),
    "complex": csr_array(np.array([[1e-200j, 3 + 4j], [2.0, 1e200]])),
}


@pytest.mark.emulated
@pytest.mark.parametrize("name", MATRICES)
def test_maximum_product_matchings(no_copy, name):
    matrix = MATRICES[name]
    s = maximum_product_matching(with_values(no_copy, matrix))
    assert all(isinstance(part, no_copy.ndarray) for part in (s.row_perm, s.row_scale, s.col_ind))
    assert gm.verify(matrix, s).size == s.size
    assert math.isclose(
        s.log_product, maximum_product_matching(matrix).log_product, rel_tol=1e-10, abs_tol=1e-8
    )
    if matrix.shape[0] == matrix.shape[1]:
        assert sorted(no_copy.asnumpy(s.symmetric_pivots())) == list(range(matrix.shape[0]))


@pytest.mark.emulated
@pytest.mark.parametrize("kind", ["?", "b", "H", "i", "q", "f", "d", "F", "D"])
@pytest.mark.parametrize("shape", [(300, 300), (200, 300), (300, 200)], ids=str)
def test_products_of_every_kind_of_numbers(no_copy, kind, shape):
    rng = np.random.default_rng(9)
    values = np.exp(rng.normal(0, 2 if kind in "?bHi" else 9, shape)) * rng.choice([-1, 1], shape)
    values = np.where(rng.random(shape) < 0.1, values * np.exp(1j * values), 0)
    np.fill_diagonal(values, 1)
    values = (values if kind in "FD" else values.real.clip(-100, 100)).astype(kind)
    matrix = csr_array(values)
    s = maximum_product_matching(with_values(no_copy, matrix))
    assert gm.verify(matrix, s).size == 200 + 100 * (shape == (300, 300))
    best = maximum_product_matching(matrix)
    assert math.isclose(s.log_product, best.log_product, rel_tol=1e-10, abs_tol=1e-8)


@pytest.mark.emulated
@pytest.mark.parametrize("odd", [0.0, np.nan, np.inf])
def test_one_odd_value_among_many(no_copy, odd):
    """A stored zero is no entry, and what is not finite is refused."""
    matrix = matrices.make("circuit", 5_000, seed=2)
    matrix.data[777] = odd
    given = with_values(no_copy, matrix)
    if not np.isfinite(odd):
        with pytest.raises(ValueError, match=f"is {odd}"):
            maximum_product_matching(given)
        return
    s = maximum_product_matching(given)
    matrix.eliminate_zeros()
    assert gm.verify(matrix, s).size == s.size


@pytest.mark.emulated
def test_arrays_that_do_not_fit_together(no_copy):
    """Offsets beyond the entries are refused; entries beyond the offsets are spare room."""
    indptr, indices, data, shape = with_values(no_copy, matrices.make("circuit", 400, seed=1))
    whole = maximum_product_matching((indptr, indices, data, shape))
    room = no_copy.zeros(3, np.int32)
    roomy = no_copy.concatenate([indices, room]), no_copy.concatenate([data, room + 1.0])
    s = maximum_product_matching((indptr, *roomy, shape))
    assert math.isclose(s.log_product, whole.log_product, rel_tol=1e-12)
    with pytest.raises(ValueError, match="indptr"):
        maximum_product_matching((indptr + 1, indices, data, shape))
    with pytest.raises(ValueError, match=r"indptr\[-1\] is"):
        maximum_product_matching((indptr, indices[:-1], data[:-1], shape))


@pytest.mark.emulated
def test_dense_and_cupyx_matrices_and_repeated_entries():
    cp = pytest.importorskip("cupy")
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    A = np.array([[0.0, 2.0], [3.0, 1.0]])
    repeated = cp.asarray([0, 2, 4]), cp.asarray([1, 1, 0, 1]), cp.asarray([1.0, 1, 3, 1]), (2, 2)
    for given in (cp.asarray(A), sparse.csr_matrix(cp.asarray(A)), repeated):
        assert maximum_product_matching(given).row_to_col.tolist() == [1, 0]


@pytest.mark.emulated
@pytest.mark.parametrize("job", [1, 2, 3, 4, 5])
def test_mc64(job):
    cp = pytest.importorskip("cupy")
    matrix = MATRICES["circuit"]
    found = mc64(with_values(cp, matrix), job)
    diagonal = abs(matrix[found.row_perm.get()].diagonal())
    want = abs(matrix[mc64(matrix, job, backend="cpu").row_perm].diagonal())
    measure = [np.count_nonzero, np.min, np.min, np.sum, lambda d: np.log(d).sum()][job - 1]
    assert math.isclose(measure(diagonal), measure(want), rel_tol=1e-10)


@pytest.mark.emulated
def test_what_is_not_finite_is_named():
    cp = pytest.importorskip("cupy")
    with pytest.raises(ValueError, match="that of row 1 and column 0 is nan"):
        maximum_product_matching(cp.asarray([[1.0, 2.0], [np.nan, 0.0]]))


@pytest.mark.emulated
def test_solves_ask_for_a_copy_on_the_host():
    cp = pytest.importorskip("cupy")
    with pytest.raises(ValueError, match="A is on a device"):
        splu(cp.eye(3))
