"""Product matchings of small matrices: against SciPy and the engine, and when it gives up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from gpumatch.cpu.assignment.sparse import small_product
from gpumatch.cpu.assignment.sparse.small_product import solve
from gpumatch.linalg import entries, maximum_product_matching
from gpumatch.running.control import Control
from graphs import matrices
from tests.cpu.assignment.tuned import tune

WEIGHTS = st.floats(-700, 700) | st.integers(-2, 2).map(float)
SQUARES = st.integers(1, 7).map(lambda n: (n, n))
TABLES = SQUARES.flatmap(
    lambda shape: st.tuples(
        hnp.arrays(np.float64, shape, elements=WEIGHTS), hnp.arrays(bool, shape)
    )
)


def csr_of(weights, is_entry):
    """Offsets, columns and weights of the entries of a table."""
    rows, cols = np.nonzero(is_entry)
    indptr = np.searchsorted(rows, np.arange(is_entry.shape[0] + 1)).astype(np.int32)
    return indptr, cols.astype(np.int32), weights[rows, cols]


def scattered(n, degree, seed=0):
    """Random entries with a diagonal, and weights over orders of magnitude."""
    rng = np.random.default_rng(seed)
    is_entry = (rng.random((n, n)) < degree / n) | np.eye(n, dtype=bool)
    return csr_of(rng.normal(0, 6, (n, n)), is_entry)


def solved(arrays):
    control = Control()
    return solve(*arrays, control), control.trace


def least(arrays):
    """The least total, by SciPy; None if there is no full assignment."""
    indptr, indices, weights = arrays
    n = indptr.size - 1
    costs = np.full((n, n), np.inf)
    costs[np.repeat(np.arange(n), np.diff(indptr)), indices] = weights
    try:
        return costs[linear_sum_assignment(costs)].sum()
    except ValueError:
        return None


def check(arrays, found):
    """All rows have entries as pairs, the scales are bounds, and the total is that of the pairs."""
    indptr, indices, weights = arrays
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    _, row_to_col, col_to_row, row_scale, col_scale, total = found
    assert found.is_full
    above = weights - row_scale[rows] - col_scale[indices]
    size = 1e-12 * max(1.0, abs(weights).max())
    is_matched = row_to_col[rows] == indices
    assert np.count_nonzero(is_matched) == row_to_col.size
    assert np.array_equal(col_to_row[row_to_col], np.arange(row_to_col.size))
    assert above.min() >= -size
    assert abs(above[is_matched]).max() <= size
    assert math.isclose(total, math.fsum(weights[is_matched]), rel_tol=1e-12, abs_tol=size)


@given(table=TABLES)
def test_the_total_is_the_least(table):
    arrays = csr_of(*table)
    found, trace = solved(arrays)
    expected = least(arrays)
    is_entry = table[1]
    if not (is_entry.any(axis=0).all() and is_entry.any(axis=1).all()):
        assert found is None
        assert not trace
    elif expected is None:
        assert found.is_singular
        assert not found.is_full
        assert trace[-1]["matched"] < is_entry.shape[0]
    else:
        check(arrays, found)
        assert math.isclose(found.total, expected, rel_tol=1e-12, abs_tol=1e-9)
        assert [phase["step"] for phase in trace] == ["bids", "trial"]
        assert trace[-1]["matched"] == found.row_to_col.size


@pytest.mark.parametrize("bids", [1, 4, 50])
@pytest.mark.parametrize("make", ["circuit", "kkt", "power_flow", "recycle"])
def test_made_matrices(make, bids, monkeypatch):
    tune(monkeypatch, small_product, bids=bids)
    A = matrices.make(make, 400, seed=3)
    arrays = A.indptr, A.indices, -np.log(abs(A.data))
    found, _ = solved(arrays)
    check(arrays, found)
    assert math.isclose(found.total, least(arrays), rel_tol=1e-12)


def test_work_is_counted_by_steps():
    """Two rows lose one column to each other by bids of 0, until one has to search."""
    weights = np.array([[0.0, 1.0, 9.0], [1.0, 2.0, 9.0], [9.0, 9.0, 0.0]])
    found, trace = solved(csr_of(weights, np.ones((3, 3), bool)))
    assert found.total == 2.0
    bids, paths = trace
    scans = small_product.DEFAULT.bids * (1 + 3)
    assert bids == {"levels": 0, "found": 0, "matched": 2, "step": "bids", "scans": scans}
    assert paths == {"levels": 0, "found": 1, "matched": 3, "step": "trial", "scans": 4}


def test_both_scales_have_their_middles_in_one_place():
    arrays = scattered(40, 4)
    found, _ = solved(arrays)
    middles = [(scale.min() + scale.max()) / 2 for scale in found[3:5]]
    assert math.isclose(*middles, abs_tol=1e-9)


# -- what it gives up ------------------------------------------------------------------------------


def limit_paths(monkeypatch, reads, few=0):
    """Paths may be expected to read so many entries, unless so few rows are left."""
    tune(monkeypatch, small_product, reads=0, more=reads, few=few, least=1, step=10**6)


@pytest.mark.parametrize(
    ("reads", "alike", "tries"),
    [(10**9, 1.0, 1), (0, 1.0, 2), (0, 1.2, 1), (400, 1.0, 1)],
    ids=["cheap", "dear at first", "alike", "dear at last"],
)
def test_dear_paths_are_given_up(reads, alike, tries, monkeypatch):
    """If the first ones are dear already, those of the columns are tried, if these differ."""
    arrays = scattered(60, 5, seed=4)
    tune(monkeypatch, small_product, alike=alike, bids=1)
    limit_paths(monkeypatch, reads)
    found, trace = solved(arrays)
    assert [phase["step"] for phase in trace] == ["bids", "trial"] * tries
    if reads == 10**9:
        check(arrays, found)
        return
    assert not found.is_full
    assert not found.is_singular
    free = trace[1]["matched"] - trace[0]["matched"], 60 - trace[0]["matched"]
    assert (2 * free[0] <= free[1]) == (reads == 0)
    indptr, indices, weights = arrays
    rows = np.repeat(np.arange(60), np.diff(indptr))
    reduced = weights - found.col_log_scale[indices]
    is_matched = found.row_to_col[rows] == indices
    cheapest = np.minimum.reduceat(reduced, indptr[:-1])[rows]
    assert 0 < np.count_nonzero(is_matched) == trace[1]["matched"] < 60
    assert np.allclose(reduced[is_matched], cheapest[is_matched], rtol=0, atol=1e-12)


def test_a_long_row_is_not_alike():
    """The square of its length is no int32."""
    n = 2**16
    indptr = np.append(0, np.arange(n, 2 * n)).astype(np.int32)
    indices = np.append(np.arange(n), np.arange(1, n)).astype(np.int32)
    assert not small_product._are_alike(indptr, indices)
    assert small_product._are_alike(np.arange(n + 1, dtype=np.int32), np.arange(n, dtype=np.int32))


def test_columns_may_serve_where_rows_are_dear(monkeypatch):
    """Half of the rows have an entry in each of the first two columns."""
    rng = np.random.default_rng(12)
    is_entry = (rng.random((40, 40)) < 0.1) | np.eye(40, dtype=bool)
    is_entry[:, :2] |= rng.random((40, 2)) < 0.5
    arrays = csr_of(rng.normal(0, 6, (40, 40)), is_entry)
    tune(monkeypatch, small_product, bids=1)
    limit_paths(monkeypatch, 10**9)
    unlimited = solved(arrays)[1]
    limit_paths(monkeypatch, 160)
    found, trace = solved(arrays)
    check(arrays, found)
    assert math.isclose(found.total, least(arrays), rel_tol=1e-12)
    assert [phase["step"] for phase in trace] == ["bids", "trial"] * 2
    assert trace[-1]["matched"] == 40
    assert trace[1]["scans"] + trace[3]["scans"] < unlimited[1]["scans"] / 2


@pytest.mark.usefixtures("no_rival")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("reads", [0, 5000], ids=["dear at first", "dear at last"])
def test_the_engine_goes_on(reads, threads, monkeypatch):
    n = 200
    indptr, indices, weights = scattered(n, 5, seed=4)
    A = csr_array((np.exp(-weights), indices, indptr), shape=(n, n))
    tune(monkeypatch, small_product, bids=1, alike=1.0)
    limit_paths(monkeypatch, reads)
    s = maximum_product_matching(A, threads=threads)
    steps = [phase["step"] for phase in s.stats["trace"]]
    assert (steps[:2], steps[-1]) == (["bids", "trial"], "paths")
    assert ("auction" in steps) == (reads == 0)  # else it would be for few rows
    assert steps.count("bids") == steps.count("trial") == (2 if reads == 0 else 1)
    assert math.isclose(s.log_product, -least((indptr, indices, weights)), rel_tol=1e-12)


def ties(n, seed=1):
    """Two random entries a row beside a diagonal, all of one weight but for one entry."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(n), 2)
    pattern = csr_array((np.ones(2 * n), (rows, rng.integers(0, n, 2 * n))), shape=(n, n))
    pattern = csr_array(pattern + csr_array((np.ones(n), (np.arange(n), rng.permutation(n)))))
    weights = np.full(pattern.nnz, 3.0)
    weights[0] = 3.5
    return pattern.indptr.astype(np.int32), pattern.indices.astype(np.int32), weights


@pytest.mark.parametrize("tied", [False, True])
def test_many_ties_are_left_to_the_engine(tied, monkeypatch):
    """It searches all tight pairs at once. Bids and single searches would read far more."""
    arrays = ties(3000)
    nnz = arrays[1].size
    tune(monkeypatch, small_product, tied=nnz - tied)
    found, trace = solved(arrays)
    assert (found is None) == tied
    if not tied:
        check(arrays, found)
        assert trace[-1]["scans"] > 4 * nnz
        return
    assert not trace
    indptr, indices, weights = arrays
    A = csr_array((np.exp(-weights), indices, indptr), shape=(3000, 3000))
    s = maximum_product_matching(A, threads=1)
    assert s.size == 3000
    assert sum(phase.get("scans", 0) for phase in s.stats["trace"]) < 2 * nnz


@pytest.mark.parametrize(
    ("choice", "patience", "is_full"),
    [(1, 64, True), (1, 0, False), (math.inf, 64, False)],
    ids=["tied", "out of patience", "not tied"],
)
def test_paths_may_read_more_among_ties(choice, patience, is_full, monkeypatch):
    """An auction would hardly serve the rows of tied weights sooner."""
    limit_paths(monkeypatch, 0)
    tune(monkeypatch, small_product, choice=choice, patience=patience)
    found, _ = solved(ties(200))
    assert found.is_full == is_full


def test_prices_of_0_are_no_start(monkeypatch):
    """The engine would take them for none, and the pairs for a matching at no prices."""
    indptr, indices, weights = ties(200)
    tune(monkeypatch, small_product, bids=0)
    limit_paths(monkeypatch, 0)
    tune(monkeypatch, small_product, choice=math.inf)
    A = csr_array((np.exp(3.0 - weights), indices, indptr), shape=(200, 200))
    s = maximum_product_matching(A)
    assert s.size == 200
    assert math.isclose(s.log_product, -least((indptr, indices, weights - 3.0)), abs_tol=1e-12)


def test_few_rows_are_served_whatever_they_read(monkeypatch):
    arrays = scattered(60, 5, seed=4)
    limit_paths(monkeypatch, 0, few=60)
    found, trace = solved(arrays)
    check(arrays, found)
    assert len(trace) == 2


def bad(name):
    """Arrays with one fault."""
    indptr, indices, weights = (array.copy() for array in scattered(20, 4))
    if name == "falling offsets":
        indptr[5] = indptr[7]
    elif name == "offsets beyond the entries":
        indptr[-1] += 1
    elif name == "offsets before the last entry":
        indptr[-1] -= 1
    elif name == "a first offset above 0":
        indptr[0] = 1
    elif name == "a column beyond the last":
        indices[indptr[1] - 1] = 20
    elif name == "a column before the first":
        indices[indptr[3]] = -1
    elif name == "columns in disorder":
        begin = indptr[np.flatnonzero(np.diff(indptr) > 1)[0]]
        indices[[begin, begin + 1]] = indices[[begin + 1, begin]]
    elif name == "a column twice":
        begin = indptr[np.flatnonzero(np.diff(indptr) > 1)[0]]
        indices[begin + 1] = indices[begin]
    else:
        weights[7] = float(name)
    return indptr, indices, weights


@pytest.mark.parametrize(
    "fault",
    [
        "falling offsets",
        "offsets beyond the entries",
        "offsets before the last entry",
        "a first offset above 0",
        "a column beyond the last",
        "a column before the first",
        "columns in disorder",
        "a column twice",
        "nan",
        "inf",
        "-inf",
    ],
)
def test_arrays_with_a_fault_are_not_taken(fault):
    found, trace = solved(bad(fault))
    assert found is None
    assert not trace


# -- which matrices are tried ----------------------------------------------------------------------

A = csr_array(np.array([[2.0, 1.0], [0.0, 4.0]]))


def changed(**arrays):
    """The same matrix with other arrays."""
    matrix = A.copy()
    for name, array in arrays.items():
        setattr(matrix, name, array)
    return matrix


TAKEN = {
    "floats": A,
    "float32": A.astype(np.float32),
    "integers": A.astype(np.int8),
    "complex": A * 1j,
    "a matrix": A.tocsr(),
}
LEFT = {
    "columns first": A.tocsc(),
    "dense": A.toarray(),
    "more columns": csr_array(np.ones((2, 3))),
    "empty": csr_array((2, 2)),
    "long offsets": changed(indptr=A.indptr.astype(np.int64)),
    "long columns": changed(indices=A.indices.astype(np.int64)),
    "one dimension": csr_array(np.array([2.0])),
    "values in a column": changed(data=A.data.reshape(3, 1)),
    "columns in a column": changed(indices=A.indices.reshape(3, 1)),
    "offsets in a column": changed(indptr=A.indptr.reshape(3, 1)),
    "too many values": changed(data=np.ones(4)),
    "gaps": changed(data=np.ones(6)[::2]),
}


def check_copies(indptr, indices, matrix):
    """They are the matrix's, but no other thread can change them under a kernel."""
    for own, theirs in zip((indptr, indices), (matrix.indptr, matrix.indices)):
        assert own.dtype == theirs.dtype
        assert own.tolist() == theirs.tolist()
        assert not np.shares_memory(own, theirs)


@pytest.mark.parametrize("name", TAKEN)
def test_small_csr_is_taken_at_once(name):
    indptr, indices, weights = entries.small_entries(TAKEN[name])
    check_copies(indptr, indices, TAKEN[name])
    assert weights.dtype == np.float64
    assert np.allclose(weights, [-math.log(2), 0.0, -math.log(4)])


def parts(**changed):
    """The matrix as a tuple, with some of it changed."""
    given = {"indptr": A.indptr, "indices": A.indices, "data": A.data, "shape": A.shape}
    return tuple((given | changed).values())


def test_a_tuple_is_taken_at_once():
    indptr, indices, weights = entries.small_entries(parts())
    check_copies(indptr, indices, A)
    assert np.allclose(weights, [-math.log(2), 0.0, -math.log(4)])
    trace = maximum_product_matching(parts()).stats["trace"]
    assert [phase["step"] for phase in trace] == ["bids", "trial"]


@pytest.mark.parametrize(
    "shape",
    [(2.0, 2.0), (2, 2.0), [2, 2], np.array([2, 2]), (2,), (2, 2, 2), (2, 3), (3, 3), 2, None],
    ids=str,
)
def test_tuples_of_other_shapes_are_left_to_be_checked(shape):
    assert entries.small_entries(parts(shape=shape)) is None


def test_other_tuples_are_left_to_be_checked():
    assert entries.small_entries(parts()[:3]) is None
    assert entries.small_entries(parts(data=[2.0, 1.0, 4.0])) is None
    assert entries.small_entries(parts(indices=[0, 1, 1])) is None
    assert entries.small_entries(parts(indptr=[0, 2, 3])) is None


@pytest.mark.parametrize("name", LEFT)
def test_other_matrices_are_left_to_the_engine(name):
    assert entries.small_entries(LEFT[name]) is None


def test_zeros_are_no_entries_and_do_not_warn():
    matrix = csr_array(np.array([[2.0, 1.0], [3.0, 4.0]]))
    matrix.data[2] = 0.0
    assert solved(entries.small_entries(matrix)) == (None, [])
    assert maximum_product_matching(matrix).row_to_col.tolist() == [0, 1]


def test_larger_matrices_are_left_to_the_engine(monkeypatch):
    monkeypatch.setattr(entries, "SMALL", 2)
    assert entries.small_entries(A) is None
    monkeypatch.setattr(entries, "SMALL", 3)
    assert entries.small_entries(A) is not None
