"""MC64's jobs and products for every kind of numbers, to the ends of its range."""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from gpumatch.linalg import entries, maximum_product_matching, mc64
from gpumatch.linalg.magnitudes import comparable, summable

N = 4


def spread(rng, low=0.5):
    return rng.uniform(low, 1, (N, N))


def turned(rng, low=0.5):
    """Complex numbers with a real and an imaginary part up to 1."""
    return spread(rng, low) + 1j * spread(rng, low)


def long(rng, exponent):
    return spread(rng).astype(np.longdouble) * np.longdouble(10) ** exponent


LONG = 4900 if np.finfo(np.longdouble).max > 1e308 else 300

KINDS = {  # values of a matrix
    "float16": lambda rng: (spread(rng) * 65504).astype(np.float16),
    "float32": lambda rng: (spread(rng) * 3.4e38).astype(np.float32),
    "float32-denormal": lambda rng: (spread(rng) * 1e-43).astype(np.float32),
    "float64": lambda rng: spread(rng) * 1.79e308,
    "float64-wide": lambda rng: spread(rng) * 1.79 * 10.0 ** rng.choice([308, 0, -300], (N, N)),
    "float64-denormal": lambda rng: spread(rng) * 5e-322,
    "longdouble": lambda rng: long(rng, LONG),
    "longdouble-small": lambda rng: long(rng, -LONG),
    "complex64": lambda rng: (turned(rng) * 3.4e38).astype(np.complex64),
    "complex64-close": lambda rng: (1 + 1j + turned(rng) * 1e-7).astype(np.complex64),
    "complex128": lambda rng: turned(rng) * 1.79e308,
    "complex128-wide": lambda rng: turned(rng) * 1.79 * 10.0 ** rng.choice([308, -300], (N, N)),
    "clongdouble": lambda rng: turned(rng).astype(np.clongdouble) * np.longdouble(10) ** LONG,
    "int8": lambda rng: rng.integers(-128, 128, (N, N)).astype(np.int8),
    "int64": lambda rng: rng.choice([-(2**63), 2**63 - 1, 2**63 - 2, -(2**63) + 2], (N, N)),
    "int64-close": lambda rng: 2**62 + rng.integers(0, 20, (N, N)),
    "uint8": lambda rng: rng.integers(0, 256, (N, N)).astype(np.uint8),
    "uint64": lambda rng: np.uint64(2**64 - 20) + rng.integers(0, 20, (N, N)).astype(np.uint64),
    "bool": lambda rng: np.ones((N, N), bool),
}


def matrix_of(kind, seed, as_read=np.asarray):
    """Some values of this kind, as CSR arrays, and the exact square of each magnitude as read.

    What is read as 0 is no entry.
    """
    rng = np.random.default_rng(seed)
    values = KINDS[kind](rng)
    stored = (rng.random((N, N)) < 0.7) | np.eye(N, dtype=bool)[rng.permutation(N)]
    stored &= (values != 0) | np.eye(N, dtype=bool)
    values[stored & (values == 0)] = 1
    rows, cols = stored.nonzero()
    read = as_read(values)
    places = zip(rows.tolist(), cols.tolist())
    squares = {(r, c): square(read[r, c]) for r, c in places if read[r, c]}
    indptr = np.searchsorted(rows, np.arange(N + 1)).astype(np.int32)
    return (indptr, cols.astype(np.int32), values[stored], (N, N)), squares


def parts_of(values):
    return (values.real, values.imag) if values.dtype.kind == "c" else (values,)


def square(value):
    if value.dtype.kind in "biu":
        return Fraction(int(value)) ** 2
    return sum(Fraction(*part.as_integer_ratio()) ** 2 for part in parts_of(value))


def root(value):
    return (Decimal(value.numerator) / Decimal(value.denominator)).sqrt()


MEASURES = {
    2: min,
    3: min,
    4: lambda squares: sum(map(root, squares)),
    5: lambda squares: sum(root(one).ln() for one in squares),
}


def check(found, squares, job, is_exact):
    """The diagonal is the best of all by this job's measure, up to rounding unless it is exact."""
    with localcontext() as context:
        context.prec = 60
        measure = MEASURES[job]
        full = [list(enumerate(p)) for p in itertools.permutations(range(N))]
        best = max(measure([squares[pair] for pair in p]) for p in full if set(p) <= set(squares))
        own = measure([squares[int(row), k] for k, row in enumerate(found.row_perm.tolist())])
        if is_exact:
            assert own == best
        elif job == 5:
            assert own >= best - Decimal("1e-9")
        else:
            assert own >= best * (1 - type(best)(1) / 10**14)


@pytest.mark.parametrize("job", MEASURES)
@pytest.mark.parametrize("kind", KINDS)
def test_jobs_for_every_kind_of_numbers(kind, job):
    for seed in range(6):
        matrix, squares = matrix_of(kind, seed)
        check(mc64(matrix, job), squares, job, is_exact=job < 4 and "complex" not in kind)
        if job == 5:
            check(maximum_product_matching(matrix), squares, job, is_exact=False)


ON_DEVICE = [kind for kind in KINDS if "long" not in kind and kind != "float16"]


@pytest.mark.gpu
@pytest.mark.emulated
@pytest.mark.parametrize("job", MEASURES)
@pytest.mark.parametrize("kind", ON_DEVICE)
def test_jobs_on_a_device(kind, job):
    cp = pytest.importorskip("cupy")

    def as_read(values):
        """A GPU reads subnormal float32 numbers as 0; the emulator does not."""
        if values.dtype.itemsize // len(parts_of(values)) > 4 or values.dtype.kind not in "fc":
            return values
        wide = np.complex128 if values.dtype.kind == "c" else np.float64
        return cp.asnumpy(cp.asarray(values).astype(wide))

    matrix, squares = matrix_of(kind, 1, as_read)
    found = mc64((*map(cp.asarray, matrix[:3]), matrix[3]), job)
    if not squares:
        assert found.rank == 0
        return
    found = found._replace(row_perm=cp.asnumpy(found.row_perm))
    check(found, squares, job, is_exact=job < 4 and "complex" not in kind)


@pytest.mark.gpu
@pytest.mark.emulated
def test_subnormal_numbers_of_the_host_are_no_zeros_on_a_device(monkeypatch):
    cp = pytest.importorskip("cupy")
    of_device = entries._minus_logarithms_on_device()

    def flushing(values):  # as a GPU does
        if values.dtype == np.float32:
            values = cp.where(abs(values) < np.finfo(np.float32).tiny, np.float32(0), values)
        return of_device(values)

    monkeypatch.setattr(entries, "_minus_logarithms_on_device", lambda: flushing)
    A, squares = matrix_of("float32-denormal", 1)
    found = maximum_product_matching(A, backend="cuda")
    check(found, squares, 5, is_exact=False)


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_a_complex_number_beyond_the_range_of_its_parts(form):
    """The diagonal is the best by every job, and most of all numbers are too large for a float."""
    A = np.array([[1.7e308 + 1.7e308j, 1.6e308], [1.6e308 + 1e308j, 1.5e308 + 1.5e308j]])
    for job in MEASURES:
        assert mc64(form(A), job).row_perm.tolist() == [0, 1]
        assert mc64(form(A[::-1]), job).row_perm.tolist() == [1, 0]


def test_what_fits_stays_as_it_is():
    for values in (np.array([3.0, -4.5]), np.array([3, -4]), np.array([], float)):
        for costs in (summable(values, 5), comparable(values, 5)):
            assert costs.tolist() == abs(values).tolist()
            assert costs.dtype == values.dtype
    assert summable(np.array([3 + 4j], np.complex64), 5).tolist() == [5.0]
    assert summable(np.array([2**63, 1], np.uint64), 5).tolist() == [2.0**63, 1.0]
    assert comparable(np.array([2**63, 1], np.uint64), 5).tolist() == [1, 0]
