"""Factorizations and solves: residuals, SciPy's interface, and what is singular."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import mmread
from scipy.sparse import (
    block_diag,
    coo_array,
    csc_array,
    csr_array,
    eye_array,
    kron,
    random_array,
)
from scipy.sparse.linalg import splu as scipys_splu

import gpumatch as gm
from gpumatch.linalg import (
    LU,
    SingularMatrixError,
    block_solve,
    dmperm,
    factorized,
    solve_btf,
    splu,
)
from gpumatch.linalg.refinement import Sides
from graphs import matrices

ROOT = Path(__file__).parents[2]


def hard(n, seed=0, *, is_complex=False):
    """A sparse matrix with values from 1e-20 to 1e20 whose large entries lie anywhere."""
    rng = np.random.default_rng(seed)
    A = random_array((n, n), density=3 / n, format="csr", rng=rng)
    A = A + csr_array((rng.random(n) + 1, (np.arange(n), rng.permutation(n))), shape=(n, n))
    A.data *= rng.choice([-1, 1], A.nnz)
    if is_complex:
        A = A * np.exp(1j * seed) + 1j * A.T
    rows, cols = (10.0 ** rng.integers(-10, 11, n) for _ in range(2))
    return csr_array(A.multiply(rows[:, None]).multiply(cols[None, :]))


def residual(A, x, b):
    """max |b - A x| / (max |A| max |x| + max |b|)."""
    return abs(b - A @ x).max() / (abs(A.data).max() * abs(x).max() + abs(b).max())


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("threshold", [0.0, None, 1.0])
def test_the_residual_is_small(seed, is_complex, threshold):
    A = hard(200, seed, is_complex=is_complex)
    b = A @ np.ones(200)
    lu = splu(A, diag_pivot_thresh=threshold)
    assert residual(A, lu.solve(b), b) < 1e-15
    assert residual(A.T, lu.solve(b, "T"), b) < 1e-15
    assert residual(A.conj().T, lu.solve(b, trans="H"), b) < 1e-15


@pytest.mark.parametrize("sides", [(60,), (60, 1), (60, 4), (60, 0)])
@pytest.mark.parametrize("dtype", [float, complex, int])
@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
def test_right_hand_sides_of_every_kind(sides, dtype, is_complex):
    A = hard(60, 1, is_complex=is_complex)
    b = (np.arange(np.prod(sides)).reshape(sides) + 1).astype(dtype)
    if dtype is complex:
        b = b * (1 + 2j)
    for solved in (splu(A).solve(b), solve_btf(A, b)):
        assert solved.shape == sides
        assert solved.dtype == (complex if is_complex or dtype is complex else float)
        for one, side in zip(solved.reshape(60, -1).T, b.reshape(60, -1).T):
            assert residual(A, one, side) < 1e-14


@pytest.mark.parametrize("dtype", ["f4", "F", "i2", "?"])
def test_every_matrix_is_solved_in_double_precision(dtype):
    values = np.random.default_rng(5).integers(0, 2, (30, 30)) + 7 * np.eye(30)
    A = csr_array(values.astype(dtype) if dtype != "?" else np.triu(values > 0))
    A.data = A.data / A.dtype.type(3) if dtype in ("f4", "F") else A.data
    wide = A.astype(np.result_type(A.dtype, float))
    b = (wide @ np.arange(30)).real.astype(np.float32)
    lu = splu(A)
    assert lu.L.dtype == lu.U.dtype == wide.dtype
    for solved in (lu.solve(b), solve_btf(A, b)):
        assert solved.dtype == wide.dtype
        assert residual(wide, solved, b) < 1e-15


def test_nothing_is_divided_by_zero_for_an_equation_of_zeros():
    with np.errstate(all="raise"):
        assert splu(np.eye(3)).solve(np.array([0.0, 2.0, 0.0])).tolist() == [0, 2, 0]
        assert not splu(np.eye(3)).solve(np.zeros(3)).any()


def test_the_interface_is_scipys():
    A = hard(50)
    n = 50
    lu = splu(A, permc_spec="MMD_AT_PLUS_A")
    assert isinstance(lu, LU)
    assert lu.shape == (n, n)
    assert lu.nnz >= lu.L.nnz + lu.U.nnz - n
    Pr = csc_array((np.ones(n), (lu.perm_r, np.arange(n))))
    Pc = csc_array((np.ones(n), (np.arange(n), lu.perm_c)))
    scaled = A.multiply(lu.row_scale[:, None]).multiply(lu.col_scale[None, :])
    assert np.allclose((Pr @ scaled @ Pc - lu.L @ lu.U).toarray(), 0, atol=1e-12)
    assert np.all(np.frexp(lu.row_scale)[0] == 0.5)
    assert abs(scaled).max() <= 2
    theirs = scipys_splu(eye_array(3, format="csc"))
    assert all(hasattr(lu, name) for name in dir(theirs) if not name.startswith("_"))


def test_pivots_stay_on_the_diagonal():
    """With the threshold 0 SuperLU takes the matched entries in the order of its columns."""
    A = hard(80, 2)
    lu = splu(A, diag_pivot_thresh=0.0)
    assert np.array_equal(lu.perm_r[lu.matching.row_perm], lu.perm_c)


@pytest.mark.parametrize("trans", ["N", "T", "H"])
def test_refinement_takes_off_what_small_pivots_cost(trans):
    rng = np.random.default_rng(4)
    A = csr_array(rng.random((100, 100)) + 1j * rng.random((100, 100)))
    system = {"N": A, "T": A.T, "H": A.conj().T}[trans]
    b = system @ np.ones(100)
    lu = splu(A, diag_pivot_thresh=0.0)
    once = lu._solve_once(Sides.of(b[:, None]), trans)[0][:, 0]
    assert residual(system, lu.solve(b, trans), b) < 2e-15 < residual(system, once, b)


def test_each_step_of_refinement_takes_off_what_the_last_has_left(monkeypatch):
    """If factors are wrong by a thousandth, a step leaves a thousandth of the error."""
    rng = np.random.default_rng(4)
    A = csr_array(rng.random((50, 50)))
    b = A @ np.ones(50)
    lu = splu(A)
    once = lu._solve_once

    def a_thousandth_off(right, trans):
        x, is_beyond = once(right, trans)
        return x * 1.001, is_beyond

    monkeypatch.setattr(lu, "_solve_once", a_thousandth_off)
    assert residual(A, lu.solve(b), b) < 1e-14


def test_refinement_ends_by_what_is_left_of_each_equation_beside_its_size():
    """An error of a large equation may grow in absolute terms, as those of small ones get less."""
    A = np.diag([1e8, 1.0])
    right = A @ [1.0, 1.0]
    lu = splu(A)
    first, better = np.array([1.0, 1.1]), np.array([1 + 1e-6, 1.0])
    solutions = iter([first, better - first, np.full(2, np.nan)])
    lu._solve_once = lambda *_: (next(solutions)[:, None], np.zeros((2, 1), bool))
    assert lu.solve(right).tolist() == (first + (better - first)).tolist()


def test_factorized():
    A = hard(40)
    b = A @ np.arange(40)
    assert np.array_equal(factorized(A)(b), splu(A).solve(b))


def test_values_at_the_ends_of_the_range():
    A = np.array([[1e-300, 1e300], [1e-300, 1e-300]])
    assert np.allclose(splu(A).solve(A @ np.array([1.0, 1.0])), [1, 1])


def chain(count):
    """An upper triangular matrix of blocks of two rows, with entries between neighbours."""
    blocks = block_diag([[[2.0, 1], [1, k + 2]] for k in range(count)], format="csr")
    return csr_array(blocks + eye_array(2 * count, k=2))


def test_small_blocks_are_factored_together(monkeypatch):
    sizes = []

    def counting(block, **options):
        sizes.append(block.shape[0])
        return splu(block, **options)

    monkeypatch.setattr(block_solve, "splu", counting)
    A, x = chain(700), np.arange(1400.0)
    assert np.allclose(solve_btf(A, A @ x), x)
    assert sum(sizes) == 1400
    assert max(sizes) <= 512
    assert len(sizes) == 3


def test_blocks_that_are_not_coupled_are_one_system(monkeypatch):
    """However many they are, one factorization serves them; it fills nothing in."""
    sizes = []

    def counting(block, **options):
        sizes.append(block.shape[0])
        return splu(block, **options)

    monkeypatch.setattr(block_solve, "splu", counting)
    A = csr_array(kron(eye_array(700), [[2.0, 1.0], [1.0, 3.0]]))
    order = np.random.default_rng(3).permutation(1400)
    A, x = A[order][:, order[::-1]], np.arange(1400.0)
    assert np.allclose(solve_btf(A, A @ x), x)
    assert sizes == [1400]


@pytest.mark.parametrize(("small", "together"), [(32, 512), (0, 0), (3, 20)])
@pytest.mark.parametrize("seed", range(3))
def test_blocks_one_after_the_other(seed, small, together, monkeypatch):
    """Blocks of many sizes, of one row in runs and alone."""
    monkeypatch.setattr(block_solve, "SMALL", small)
    monkeypatch.setattr(block_solve, "TOGETHER", together)
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 1, 1, 2, 5, 9], 40)
    ends = np.cumsum(sizes)
    n = int(ends[-1])
    block = np.repeat(np.arange(40), sizes)
    dense = rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.2)
    dense += np.diag(rng.random(n) + 1) + np.roll(np.eye(n), 1, axis=1)
    dense[block[:, None] > block] = 0
    A = csr_array(dense[rng.permutation(n)][:, rng.permutation(n)])
    assert np.unique(np.diff(dmperm(A).r)).size > 2
    b = rng.normal(size=(n, 2))
    assert np.allclose(solve_btf(A, b), np.linalg.solve(A.toarray(), b), rtol=1e-6)


@given(n=st.integers(0, 6), seed=st.integers(0, 99))
def test_solves_agree_with_numpy(n, seed):
    rng = np.random.default_rng(seed)
    A = rng.integers(-3, 4, (n, n)) * (rng.random((n, n)) < 0.6)
    b = rng.integers(-3, 4, n)
    if n and np.linalg.matrix_rank(A) < n:
        return
    x = np.linalg.solve(A, b) if n else np.zeros(0)
    assert np.allclose(solve_btf(A, b), x)
    if n:
        assert np.allclose(splu(A).solve(b), x)


@pytest.mark.parametrize("function", [splu, factorized, lambda A: solve_btf(A, np.ones(3))])
def test_what_is_structurally_singular(function):
    A = coo_array(([1.0, 2, 3, 0], ([0, 1, 2, 2], [1, 1, 0, 2])))
    with pytest.raises(SingularMatrixError, match="2 rows have entries in 1 columns only") as info:
        function(A)
    assert info.value.rows.tolist() == [0, 1]
    assert info.value.cols.tolist() == [1]
    assert isinstance(info.value, RuntimeError)
    again = pickle.loads(pickle.dumps(info.value))
    assert again.rows.tolist() == [0, 1]


def test_what_is_singular_by_its_values_is_scipys_error():
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        splu(np.ones((2, 2)))


@pytest.mark.parametrize("function", [splu, factorized, lambda A: solve_btf(A, np.ones(2))])
def test_only_square_matrices_are_solved(function):
    with pytest.raises(ValueError, match="A must be square; got 2 rows and 3 columns"):
        function(np.ones((2, 3)))


def test_wrong_arguments():
    lu = splu(np.eye(3))
    with pytest.raises(ValueError, match="trans must be one of"):
        lu.solve(np.ones(3), "X")
    for b in (np.ones(4), np.ones((3, 1, 1)), np.float64(1)):
        with pytest.raises(ValueError, match="b must have 3 rows and one or two dimensions"):
            lu.solve(b)


# -- where static pivoting in the natural order fails ----------------------------------------------


def statically(A, b):
    """The residual of SciPy's solution with pivots from the diagonal; inf if it finds none."""
    try:
        x = scipys_splu(A.tocsc(), diag_pivot_thresh=0.0).solve(b)
    except RuntimeError:
        return np.inf
    return np.linalg.norm(b - A @ x) / np.linalg.norm(b)


def check_repaired(A, *, fails_at):
    """SciPy's relative residual is above `fails_at`, and ours is below 1e-10."""
    b = A @ np.ones(A.shape[0])
    assert not statically(A, b) <= fails_at
    x = splu(A, diag_pivot_thresh=0.0).solve(b)
    assert np.linalg.norm(b - A @ x) / np.linalg.norm(b) <= 1e-10


@pytest.mark.parametrize("name", matrices.FAMILIES)
@pytest.mark.parametrize("seed", range(2))
def test_generated_families(name, seed):
    check_repaired(matrices.make(name, 1500, seed=seed), fails_at=1e-6)


def test_bayer10():
    folder = os.environ.get("GPUMATCH_DATA")
    if folder is None:
        pytest.skip("GPUMATCH_DATA is not set: no real matrices here")
    A = mmread(Path(folder) / "matrices" / "bayer10.mtx.gz", spmatrix=False).tocsr()
    check_repaired(A, fails_at=1)
    b = A @ np.ones(A.shape[0])
    x = solve_btf(A, b)
    assert np.linalg.norm(b - A @ x) / np.linalg.norm(b) <= 1e-10


def test_west0067():
    check_repaired(gm.io.read(ROOT / "datasets" / "west0067.mtx.gz"), fails_at=0)


def test_an_infinite_unknown_spoils_no_other_block():
    """Blocks that are factored together are solved apart where a solution overflows."""
    rng = np.random.default_rng(0)
    blocks = [
        (rng.normal(size=(2, 2)) + 2 * np.eye(2)) * 10.0 ** rng.integers(-140, 140)
        for _ in range(600)
    ]
    rows, cols = rng.integers(0, 1200, 2000), rng.integers(0, 1200, 2000)
    above = rows // 2 < cols // 2
    wide = rng.normal(size=above.sum()) * 10.0 ** rng.integers(-150, 100, above.sum())
    A = csr_array(block_diag(blocks, format="csr"))
    A = csr_array(A + csr_array((wide, (rows[above], cols[above])), shape=A.shape))
    b = A @ np.ones(1200)
    x = solve_btf(A, b)
    assert not np.isfinite(x).all()
    with np.errstate(all="ignore"):
        errors = abs(A @ x - b) / (abs(A) @ abs(x) + abs(b))
    assert np.nanmax(errors) < 1e-14
