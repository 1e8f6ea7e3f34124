"""Small dense matrices are solved in one compiled call: of any dtype, anywhere in memory."""

from __future__ import annotations

import math
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.optimize

import gpumatch as gm
import gpumatch.optimize
from gpumatch.cpu.assignment.small import pairs_only
from gpumatch.optimize import linear_sum_assignment, linear_sum_assignment_batch
from tests.optimize_ways import WAYS, going

X = math.inf
# Whatever the fixture `way` puts in their place:
pairs_only_solver, pairs_only_pairs = pairs_only.solver, pairs_only.pairs
FIRST = {"?", "i", "l", "q", "f", "d", ">f8"}
"""Dtypes to compile for when there is little time: each takes seconds.

What reads a number of any other size and byte order is in `cpu/numba_tools/test_short_calls.py`.
"""


@pytest.fixture(scope="module", params=WAYS)
def way(request):
    """Small dense costs are solved in one call, or as all others are."""
    with going(request.param):
        yield request.param


both_ways = pytest.mark.usefixtures("way")


def by_dtype(dtypes):
    """A mark that calls a test with each of these dtypes."""
    others = {dtype: [] if dtype in FIRST else [pytest.mark.long] for dtype in dtypes}
    return pytest.mark.parametrize(
        "dtype", [pytest.param(dtype, marks=marks) for dtype, marks in others.items()]
    )


@both_ways
@by_dtype(["?", "H", "i", "l", "Q", "e", "f", "d", ">u8", ">f8"])
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
@by_dtype(["?", "H", "q", "Q", "e", "d", ">u8", ">f8"])
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
        lambda matrix: matrix.astype(">f8"),
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


LARGE_CALLS = {
    "plain": linear_sum_assignment,
    "with a limit": lambda costs: linear_sum_assignment(costs, cost_limit=1e9),
    "a frame": lambda costs: linear_sum_assignment_batch([costs], cost_limit=1e9, threads=1),
}


@pytest.mark.parametrize("call", LARGE_CALLS.values(), ids=LARGE_CALLS)
def test_another_thread_goes_on_during_a_large_call(call, no_switching):
    numbers = np.arange(512.0)
    hard = np.outer(numbers, numbers)
    call(np.eye(20))  # compiled before the threads meet
    may_go_on, went_on = threading.Lock(), []

    def other():
        with may_go_on:
            went_on.append(True)

    thread = threading.Thread(target=other)
    with may_go_on:
        thread.start()
    call(hard)
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
