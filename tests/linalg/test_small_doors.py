"""Pickles, short texts, tensors, and errors of what `gpumatch.linalg` takes and gives."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array, issparse, random_array

import gpumatch as gm
from gpumatch import linalg


@pytest.fixture
def A():
    rng = np.random.default_rng(3)
    return csr_array(random_array((30, 30), density=0.2, rng=rng) + eye_array(30))


def test_a_pickled_factorization_solves_the_same(A):
    b = np.arange(30.0)
    lu = linalg.splu(A, diag_pivot_thresh=0.5)
    again = pickle.loads(pickle.dumps(lu))
    assert np.array_equal(again.solve(b), lu.solve(b))
    assert np.array_equal(again.solve(b, "T"), lu.solve(b, "T"))
    assert np.array_equal(again.perm_c, lu.perm_c)


def test_sparse_right_hand_sides_are_named(A):
    sides = csr_array(np.ones((30, 1)))
    for solve in (linalg.splu(A).solve, lambda b: linalg.solve_btf(A, b)):
        with pytest.raises(TypeError, match="b must be dense"):
            solve(sides)


def test_sparse_tensors_as_right_hand_sides_are_named(A):
    torch = pytest.importorskip("torch")
    for layout in (torch.sparse_coo, torch.sparse_csr):
        sides = torch.ones(30, 1).to_sparse(layout=layout)
        with pytest.raises(TypeError, match="b must be dense"):
            linalg.splu(A).solve(sides)


def test_results_are_told_in_a_line(A):
    d = linalg.dmperm(csr_array(np.array([[1, 1, 0], [0, 0, 1], [0, 0, 1]])))
    assert repr(d) == (
        "DulmageMendelsohn(3 x 3: underdetermined 1 x 2, well-determined 0 x 0, "
        "overdetermined 2 x 1; 2 blocks)"
    )
    assert repr(linalg.btf(A)).startswith("BlockTriangularForm(30 rows, ")
    assert repr(linalg.mc64(A)) == "MC64(30 x 30, rank 30)"


def _parts_of(s):
    names = "row_to_col", "row_ind", "row_perm", "col_perm", "row_scale", "col_log_scale"
    return (*(getattr(s, name) for name in names), s.symmetric_log_scale(), s.size)


CALLS = {
    "btf": linalg.btf,
    "dmperm": linalg.dmperm,
    "factorized": lambda A: linalg.factorized(A)(np.arange(30.0)),
    "maximum_product_matching": lambda A: _parts_of(linalg.maximum_product_matching(A)),
    "maxtrans": linalg.maxtrans,
    "mc64": lambda A: linalg.mc64(A, 4),
    "solve_btf": lambda A: linalg.solve_btf(A, np.arange(30.0)),
    "splu": lambda A: linalg.splu(A).solve(np.arange(30.0)),
    "sprank": linalg.sprank,
    "strongcomp": linalg.strongcomp,
}


def test_every_function_is_called():
    functions = {name for name in linalg.__all__ if name.islower() and name != "cudss"}
    assert functions == {*CALLS}


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "dense"])
@pytest.mark.parametrize("call", CALLS)
def test_tensors(A, call, layout):
    torch = pytest.importorskip("torch")
    T = torch.tensor(A.toarray(), requires_grad=True)
    T = T if layout == "dense" else T.to_sparse(layout=getattr(torch, f"sparse_{layout}"))
    assert_like(
        CALLS[call](T), CALLS[call](A), array=np.ndarray if call in SOLVED else torch.Tensor
    )


SOLVED = "factorized", "solve_btf", "splu"
"""Their results are like the right-hand sides."""


def assert_like(found, expected, array):
    """The same numbers; indices of tensors are those of the library, and floats have 64 bits."""
    if isinstance(expected, tuple):
        assert type(found) is type(expected)
        assert repr(found).split("(")[0] == repr(expected).split("(")[0]
        for one, other in zip(found, expected, strict=True):
            assert_like(one, other, array)
        return
    if isinstance(expected, np.ndarray):
        assert isinstance(found, array)
        assert found.itemsize >= 4
    assert np.allclose(found, expected)


@pytest.mark.parametrize("call", CALLS)
def test_jax_arrays(A, call):
    jax = pytest.importorskip("jax")
    dense = jax.numpy.asarray(A.toarray().astype(np.float32))
    array = np.ndarray if call in SOLVED else jax.Array
    assert_like(CALLS[call](dense), CALLS[call](np.asarray(dense)), array)


def test_forms_in_tensors_are_verified(A):
    torch = pytest.importorskip("torch")
    T = torch.tensor(A.toarray())
    for form in (linalg.dmperm(T), linalg.btf(T), linalg.maximum_product_matching(T)):
        gm.verify(T, form)
        again = pickle.loads(pickle.dumps(form))
        gm.verify(A, again)
    q = torch.randperm(30, generator=torch.Generator().manual_seed(1))
    found, expected = linalg.strongcomp(T, q), linalg.strongcomp(A, q.numpy())
    assert_like(found, expected, torch.Tensor)


def test_right_hand_sides_are_tensors(A):
    torch = pytest.importorskip("torch")
    b = torch.arange(30.0, dtype=torch.float64, requires_grad=True)
    plain = b.detach().numpy()
    for solve in (linalg.splu(A).solve, linalg.factorized(A), lambda b: linalg.solve_btf(A, b)):
        assert_like(solve(b), solve(plain), torch.Tensor)
        columns = torch.stack([b, 2 * b], dim=1)
        assert_like(solve(columns), solve(columns.detach().numpy()), torch.Tensor)


def test_right_hand_sides_are_jax_arrays(A):
    jax = pytest.importorskip("jax")
    b = jax.numpy.arange(30.0)
    for solve in (linalg.splu(A).solve, lambda b: linalg.solve_btf(A, b)):
        assert_like(solve(b), solve(np.asarray(b)), jax.Array)


def test_the_factors_are_scipys_whatever_the_matrix_was(A):
    """SuperLU keeps them on the host; only what `solve` returns is like what it is given."""
    torch = pytest.importorskip("torch")
    found, expected = linalg.splu(torch.tensor(A.toarray())), linalg.splu(A)
    for name in ("perm_r", "perm_c", "row_scale", "col_scale", "row_power", "col_power"):
        assert_like(getattr(found, name), getattr(expected, name), np.ndarray)
    for name in ("L", "U"):
        assert issparse(getattr(found, name))
        assert (getattr(found, name) != getattr(expected, name)).nnz == 0
    assert_like(found.matching.row_perm, expected.matching.row_perm, np.ndarray)


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["cupy", "torch", "jax"])
def test_right_hand_sides_on_a_device(A, library):
    """Sides of one column and of two on the device, for a matrix on the host."""
    cupy, made_by = pytest.importorskip("cupy"), pytest.importorskip(library)
    kind = {"cupy": "ndarray", "torch": "Tensor", "jax": "Array"}[library]
    make = {
        "cupy": cupy.asarray,
        "torch": lambda array: made_by.tensor(array, device="cuda"),
        "jax": lambda array: made_by.numpy.asarray(array.astype(np.float32)),
    }[library]
    matrix, b = A.toarray(), np.arange(60.0).reshape(30, 2)
    for solve in (linalg.splu(A).solve, lambda b: linalg.solve_btf(A, b)):
        for sides in (b[:, 0], b):
            x = solve(make(sides))
            assert isinstance(x, getattr(made_by, kind))
            assert x.device == make(sides).device
            x = x.get() if library == "cupy" else np.asarray(x.cpu() if library == "torch" else x)
            tolerance = 1e-4 if library == "jax" else 1e-12
            assert np.allclose(matrix @ x, sides, atol=tolerance * abs(sides).max())


def test_no_problems_are_a_batch():
    a = gm.assign([])
    assert len(a) == 0
    assert a.row_to_col.shape == (0, 0)
    gm.verify([], a)


def test_bfloat16_is_told_what_holds_it():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    given = np.eye(3).astype(ml_dtypes.bfloat16)
    for call in (
        gm.assign, gm.maximum_matching, gm.general.maximum_matching,
        gm.general.maximum_weight_matching, linalg.mc64, linalg.dmperm,
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"bfloat16\)?: float32 holds them exactly"):
            call(given)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".mtx"])
def test_results_are_written(A, suffix, tmp_path):
    path = tmp_path / f"matching{suffix}"
    for result in (gm.maximum_matching(A), gm.assign(A)):
        gm.io.write_matching(path, result)
        assert np.array_equal(gm.io.read_matching(path, (30, 30)), result.row_to_col)
    with pytest.raises(TypeError, match="shape"):
        gm.io.write_matching(path, result.row_to_col)
