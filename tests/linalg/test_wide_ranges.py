"""Solves of systems whose numbers fill the range of float64, judged equation by equation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, random_array
from scipy.sparse.linalg import splu as scipys_splu

from gpumatch.linalg import cudss, refinement, solve_btf, splu
from tests import nvmath_stand_in

SYSTEMS = {"N": lambda A: A, "T": lambda A: A.T, "H": lambda A: A.conj().T}


def backward_errors(A, x, b):
    """Of each column: the greatest |b - A x| / (|A| |x| + |b|) of an equation, found exactly."""
    A, columns = csr_array(A), zip(np.reshape(x, (len(x), -1)).T, np.reshape(b, (len(b), -1)).T)
    return np.array([max(map(error_of, rows_of(A, own), side)) for own, side in columns])


def rows_of(A, x):
    for begin, end in zip(A.indptr, A.indptr[1:]):
        yield list(zip(A.data[begin:end].tolist(), x[A.indices[begin:end]].tolist()))


def error_of(row, side):
    """Of one equation: its products, and the right-hand side. A magnitude is that of both parts."""
    if not np.isfinite([side, *(x for _, x in row)]).all():
        return np.inf
    terms = [(1.0, side)] + [(-a, x) for a, x in row]
    both = [(parts(a), parts(x)) for a, x in terms]
    real = [product(a[k], x[k], 1 - 2 * k) for a, x in both for k in (0, 1)]
    imaginary = [product(a[k], x[1 - k], 1) for a, x in both for k in (0, 1)]
    least = min(exponent for _, exponent in real + imaginary)
    real, imaginary = (
        [number << (exponent - least) for number, exponent in own] for own in (real, imaginary)
    )
    size = sum(map(abs, real + imaginary))
    return (abs(sum(real)) + abs(sum(imaginary))) / size if size else 0.0


def parts(value):
    """The real and the imaginary part, each as an integer times a power of 2."""
    value = complex(value)
    found = []
    for part in (value.real, value.imag):
        mantissa, exponent = math.frexp(part)
        found.append((int(mantissa * 2**53), exponent - 53))
    return found


def product(a, x, sign):
    return sign * a[0] * x[0], a[1] + x[1]


def factors(rng, exponent, count):
    return 10.0 ** rng.uniform(-exponent, exponent, count)


def system(seed, rows=150, cols=150, *, n=None, is_complex=False):
    """A random matrix with factors for rows and columns, and three solutions: one has zeros."""
    rng = np.random.default_rng(seed)
    n = n or int(rng.integers(2, 30))
    A = random_array((n, n), density=min(1, 3 / n), rng=rng).toarray()
    A = (A + np.diag(rng.random(n) + 0.5)[rng.permutation(n)]) * rng.choice([-1, 1], (n, n))
    if is_complex:
        A = A * np.exp(1j * rng.uniform(0, 6, (n, n)))
    A = csr_array(A * factors(rng, rows, n)[:, None] * factors(rng, cols, n))
    return A, np.stack([np.ones(n), rng.normal(size=n), rng.integers(0, 2, n)], axis=1)


# -- how well systems are solved -------------------------------------------------------------------


@pytest.mark.parametrize("trans", SYSTEMS)
@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize(("rows", "cols"), [(150, 0), (0, 150), (150, 150), (5, 5)])
def test_factors_of_rows_and_columns(rows, cols, is_complex, trans):
    for seed in range(12):
        A, x = system(seed, rows, cols, is_complex=is_complex)
        own = csr_array(SYSTEMS[trans](A))
        b = own @ x
        solved = [splu(A).solve(b, trans)]
        if trans == "N":
            solved.append(solve_btf(A, b))
        for found in solved:
            assert (backward_errors(own, found, b) < 2e-15).all(), seed


def test_what_scipy_solves_is_solved():
    """As well, up to a factor of 10, where SciPy's own factors come to an answer."""
    compared = 0
    for seed in range(60):
        A, x = system(seed, 140, 0)
        b = A @ x[:, :1]
        theirs = backward_errors(A, scipys_splu(csc_array(A)).solve(b), b)
        ours = backward_errors(A, splu(A).solve(b), b)
        assert (ours <= 10 * np.maximum(theirs, 1e-16)).all(), seed
        compared += int((theirs < 1e-10).sum())
    assert compared > 40


@pytest.mark.parametrize("n", [60, 100])
def test_larger_systems(n):
    A, x = system(n, n=n)
    b = A @ x
    assert (backward_errors(A, splu(A).solve(b), b) < 2e-15).all()
    assert (backward_errors(A, solve_btf(A, b), b) < 2e-15).all()


@pytest.mark.parametrize("rows", [0, 150])
def test_unknowns_of_all_sizes(rows):
    """Rounding of the large ones covers the small ones, until refinement uncovers them."""
    for seed in range(12):
        A, x = system(seed, rows, 0)
        x = x * factors(np.random.default_rng(seed), 150, x.shape[0])[:, None]
        b = A @ x
        assert (backward_errors(A, splu(A).solve(b), b) < 2e-15).all(), seed


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
def test_triangles_and_diagonals(is_complex):
    for seed in range(12):
        A, x = system(seed, is_complex=is_complex)
        n, x = A.shape[0], x[:, :2]
        upper = np.triu(A.toarray(), 1) + np.diag(abs(A).max(axis=1).toarray() / 3)
        order = np.random.default_rng(seed).permutation(n)
        for given in (upper[order][:, order], np.diag(upper.diagonal())[order]):
            given = csr_array(given)
            b = given @ x
            found = solve_btf(given, b)
            assert (backward_errors(given, found, b) < 2e-15 * n).all(), seed


TO_ITS_END = {  # matrices and solutions
    "small_and_large": ([[1e-200, 1e-200], [0, 1e200]], [1, 2]),
    "large_and_small": ([[1e160, 1e160], [0, 1e-160]], [1, 2]),
    "denormal": ([[1e-310, 0], [0, 1]], [1, 2]),
    "denormals": ([[5e-324, 5e-324], [-5e-324, 5e-324]], [1, 2]),
    "product_in_range": ([[1e-200, 1e200], [0, 1e200]], [1e100, 1e-300]),
    "largest": ([[1.7e308, -1.7e308], [1.7e308, 1.7e308]], [0.5, 0.25]),
    "overflow": ([[1e200, 1e200, -1e200], [1, 0, 0], [0, 1, 1]], [1.5e108, 1.5e108, 2e108]),
    "underflow": ([[1e-200, 0, 1], [1e-200, 1e-200, 0], [0, 1e-200, 3]], [1e-90, -1e-90, 0]),
    "chain": (np.diag([1e-100] * 4) + np.diag([1e100] * 3, 1), [0, 0, 0, 1]),
}


@pytest.mark.parametrize("name", TO_ITS_END)
@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
def test_the_ends_of_the_range(name, is_complex):
    A, x = (np.array(part, float) for part in TO_ITS_END[name])
    if is_complex and abs(A).max() < 1e308 and name != "denormals":
        A = A * (0.6 + 0.8j)
    b = 4 * (A / 2 @ (x / 2)) if name == "overflow" else A @ x
    assert np.isfinite(b).all()
    for found in (splu(A).solve(b), solve_btf(A, b)):
        assert (backward_errors(A, found, b) < 1e-15).all()
        assert np.allclose(found[x != 0], x[x != 0], rtol=1e-9, atol=0)


def test_what_underflows_in_the_equations_still_counts():
    A = np.array([[1e-200, 1e-200], [0, 1]])
    for found in (splu(A).solve([0, 1e-200]), solve_btf(A, [0, 1e-200])):
        assert found == pytest.approx([-1e-200, 1e-200], abs=0, rel=1e-15)


def test_unknowns_beyond_the_range_are_infinite():
    A = np.diag([1e-200, 1.0, -1e-200])
    for found in (splu(A).solve([1e200, 1, 1e200]), solve_btf(A, [1e200, 1, 1e200])):
        assert found.tolist() == [np.inf, 1, -np.inf]


def test_scales_beyond_the_range():
    """From one unknown to the next, the factors go by 1e200."""
    n = 12
    A = np.diag([1e-100] * n) + np.diag([1e100] * (n - 1), 1)
    lu = splu(A)
    assert np.isinf(lu.row_scale).any()
    assert (lu.col_scale == 0).any()
    power = lu.row_power[:, None].astype(int) + lu.col_power
    scaled = np.ldexp(A, power)[lu.matching.row_perm]
    assert abs(scaled).max() <= 2
    assert abs(scaled.diagonal()).min() >= 0.5
    for b in (A[:, -1], A[:, 0], A[:, 5] + A[:, 7]):
        assert backward_errors(A, lu.solve(b), b) < 2e-15
        assert backward_errors(A, solve_btf(A, b), b) < 2e-15


@pytest.mark.parametrize("kind", ["f", "d", "g", "F", "D", "G", "i1", "u8", "?"])
def test_kinds_of_numbers(kind):
    values = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]).astype(kind)
    if kind in "fdgFDG":
        values = values * np.finfo(kind).tiny
    A = (np.arange(0, 7, 2, dtype=np.int32), np.array([0, 1, 1, 2, 0, 2], np.int32))
    A = (*A, values[values != 0], (3, 3))
    x = np.array([1.0, 2.0, 4.0])
    b = values.astype(np.result_type(kind, float)) @ x
    wide = complex if kind in "FDG" else float
    if kind not in "gG":  # those of smaller numbers than float64 has are 0
        for found in (splu(A).solve(b), solve_btf(A, b), solve_btf(A, b.astype(np.clongdouble))):
            assert found.dtype in (wide, complex)
            assert np.array_equal(found, x)
    whole = (*A[:2], A[2] / A[2], (3, 3))
    for given in (np.array([3, 6, 5]).astype(kind), np.longdouble([3, 6, 5])):
        if kind != "?":
            assert np.array_equal(splu(whole).solve(given), x)


def test_right_hand_sides_that_are_no_numbers():
    for b in (["a", "b"], np.array([None, 1])):
        with pytest.raises(TypeError, match="b must hold numbers; got dtype"):
            splu(np.eye(2)).solve(b)
        with pytest.raises(TypeError, match="b must hold numbers; got dtype"):
            solve_btf(np.eye(2), b)


@pytest.mark.parametrize("family", range(6))
def test_cudss(monkeypatch, family):
    nvmath_stand_in.install(monkeypatch)
    A, x = system(family)
    b = A @ x
    with cudss(A) as factored:
        assert (backward_errors(A, factored.solve(b), b) < 1e-15).all()


# -- one column and one equation does not spoil another --------------------------------------------


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e308])
@pytest.mark.parametrize("solve", [lambda A, b: splu(A).solve(b), solve_btf], ids=["splu", "btf"])
def test_columns_are_solved_as_if_alone(solve, odd):
    for seed in range(8):
        A, x = system(seed, 20, 20)
        b = A @ x
        b[0, 1] = odd
        found = solve(A, b)
        for k in (0, 2):
            assert np.array_equal(found[:, k], solve(A, b[:, k])), seed


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_equations_go_on_beside_a_lost_one(odd):
    """Block diagonal: the second block is refined though the first has no answer."""
    rng = np.random.default_rng(4)
    n = 60
    A = np.zeros((2 * n, 2 * n))
    A[:n, :n], A[n:, n:] = np.eye(n), rng.random((n, n))
    b = A @ np.ones(2 * n)
    b[0] = odd
    found = splu(A, diag_pivot_thresh=0.0).solve(b)
    assert not np.isfinite(found[0])
    errors = backward_errors(csr_array(A[1:, 1:]), found[1:, None], b[1:, None])
    assert errors < 2e-15


def off_by(matrix, share):
    """Solves with wrong factors: a step leaves this share of the error of each unknown."""

    def solve(sides):
        x = np.linalg.solve(matrix, refinement.times_power(sides.values, sides.power))
        return x * (1 + np.reshape(share, (-1, 1))), np.zeros(x.shape, bool)

    return solve


def test_each_column_is_refined_until_it_ends_itself():
    """The first can't get better; the second does by a thousandth each step."""
    A = np.diag([2.0, 4.0, 8.0])
    seen = []

    def solve(sides):
        x, none = off_by(A, 1e-3)(sides)
        seen.append(x.shape[1])
        if len(seen) == 1:
            x[:, 0] = 1.0
        return x, none

    b = np.diag(A)[:, None] * np.array([1.0, 3.0])
    found = refinement.refined(refinement.Equations(csr_array(A)), refinement.Sides.of(b), solve)
    assert found.tolist() == [[1, 3]] * 3
    assert seen[0] == 2
    assert set(seen[1:]) == {1}


def test_an_equation_that_nothing_helps_holds_up_no_other():
    """The last unknown is 0 but for rounding, which is new in each step."""
    A = np.diag([2.0, 4.0, 8.0])
    b = np.array([[2.0], [12.0], [0.0]])
    noise = iter(1e-17 * np.array([3, -5, 7, -2, 6, -4, 8, -9, 5, -3, 2.0]))

    def solve(sides):
        x, none = off_by(A, 1e-3)(sides)
        x[2] = -sides.values[2] * 0 + next(noise)
        return x, none

    found = refinement.refined(refinement.Equations(csr_array(A)), refinement.Sides.of(b), solve)
    assert np.allclose(found[:2, 0], [1, 3], rtol=1e-14)


def test_the_best_solution_is_kept():
    """Steps that make it worse are not taken, however many are tried."""
    A = np.diag([2.0, 4.0])
    b = np.array([[2.0], [12.0]])
    steps = iter([np.array([1.01, 3.0]), *[np.array([1.0, -2.0])] * 10])
    tried = []

    def solve(sides):
        tried.append(sides)
        return next(steps)[:, None], np.zeros((2, 1), bool)

    found = refinement.refined(refinement.Equations(csr_array(A)), refinement.Sides.of(b), solve)
    assert found[:, 0].tolist() == [1.01, 3.0]
    assert len(tried) > 2
    # What is solved already is not asked for again.
    assert tried[1].values[:, 0].tolist() == pytest.approx([-0.02, 0.0])
