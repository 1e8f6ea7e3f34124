"""What a rank computes from its rows on a GPU is what it computes on the CPU."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from gpumatch.costs import SparseCosts
from gpumatch.costs import base as costs_base
from gpumatch.costs import sparse as costs_sparse
from gpumatch.cpu.assignment.hungarian.problem import far_of
from gpumatch.cpu.distributed.forests import claim_free
from gpumatch.cpu.distributed.rows import DenseRows, SparseRows
from gpumatch.cuda.assignment.dense import rows as device_rows
from gpumatch.cuda.assignment.dense.rows import ArrayRows
from gpumatch.cuda.distributed.sparse_rows import CsrRows
from gpumatch.distributed.blocks import split_of
from gpumatch.numeric.arrays import array_of


def dense(values, beat):
    return DenseRows(values, far_of(np.dtype(np.int64)), beat, budget=1)


def sparse(values, beat):
    matrix = csr_array(values)
    entries = matrix.indptr, matrix.indices, matrix.data
    return SparseRows(entries, far_of(np.dtype(np.int64)), beat, budget=1)


def array(values, beat):
    return ArrayRows(values, far_of(np.dtype(np.int64)), beat)


@pytest.mark.parametrize("make", [dense, sparse, array])
def test_a_call_that_is_to_stop_leaves_out_what_is_left(make, monkeypatch):
    """All but the least of the rows, which the duals of an unfinished result are made of."""
    monkeypatch.setattr(device_rows, "TILE", 1)
    values = np.array([[5, 6], [1, 2], [3, 4]])
    none, far = np.zeros(2, int), far_of(np.dtype(np.int64))
    for stops, near_then in ((True, [5, 6]), (False, [1, 2])):
        rows = make(values, lambda stops=stops: stops)
        least = np.empty(3, int)
        rows.least(none, least)
        assert least.tolist() == [5, 1, 3]
        near, before = np.full(2, far), np.full(2, -1, np.int32)
        duals = np.zeros(3, int), none
        rows.offer(np.arange(3, dtype=np.int32), duals, np.zeros(3, int), near, before)
        assert near.tolist() == near_then
        out = np.full(2, far)
        rows.least_slacks(*duals, out)
        assert out.tolist() == near_then


LIBRARIES = ["numpy", pytest.param("cupy", marks=pytest.mark.gpu)]
DTYPES = [np.int32, np.int64, np.float32, np.float64]


@pytest.fixture(params=[1, 2**25], ids=["row by row", "at once"])
def tile(request, monkeypatch):
    monkeypatch.setattr(device_rows, "TILE", request.param)


@pytest.mark.usefixtures("tile")
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 9), (1, 1), (0, 3), (30, 5)])
def test_both_kinds_of_rows_agree(shape, dtype, library):
    xp = pytest.importorskip(library)
    rng = np.random.default_rng(shape[0])
    values = rng.integers(-9, 9, shape).astype(dtype)
    if values.dtype.kind == "f":
        values[rng.random(shape) < 0.2] = np.inf
    number = np.dtype(np.int64 if values.dtype.kind == "i" else np.float64)
    far = far_of(number)
    beats: list[int] = []
    ours = ArrayRows(xp.asarray(values), far, lambda: bool(beats.append(1)))
    theirs = DenseRows(values, far, lambda: False)
    nrows, ncols = shape
    col_dual = rng.integers(-5, 1, ncols).astype(number)

    def compare(name, *given, outs):
        """Call the method of both with copies of the arrays that it writes."""
        written = [[out.copy() for out in outs] for _ in range(2)]
        for rows, arrays in zip((ours, theirs), written):
            getattr(rows, name)(*given, *arrays)
        for one, other in zip(*written):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
        return written[0]

    bound = xp.asarray(rng.integers(-12, 9, nrows).astype(number))
    price = xp.asarray(col_dual)
    found = [array_of(np, part) for part in ours.nearest(price, bound, 3)]
    host = ArrayRows(values, far, lambda: False)
    for one, other in zip(found, host.nearest(col_dual, array_of(np, bound), 3)):
        np.testing.assert_array_equal(one, other)
    (row_dual,) = compare("least", col_dual, outs=[np.empty(nrows, number)])
    row_dual[row_dual == far] = 0
    compare("least_slacks", row_dual, col_dual, outs=[np.full(ncols, far)])
    least = np.where(values < far, values, 0).min(axis=1, initial=0).astype(number)
    np.testing.assert_array_equal(
        array_of(np, ours.least_of_columns(xp.asarray(least))), host.least_of_columns(least)
    )
    time = rng.integers(0, 4, nrows).astype(number)
    near, before = np.full(ncols, far), np.full(ncols, -1, np.int32)
    for rows in (np.arange(nrows), rng.permutation(nrows)[: nrows // 2]):
        near, before = compare(
            "offer", rows.astype(np.int32), (row_dual, col_dual), time, outs=[near, before]
        )
    assert beats or 0 in shape

    row_to_col, col_to_row = np.full(nrows, -1, np.int32), np.full(ncols, -1, np.int32)
    ours.match_tight(row_dual, col_dual, row_to_col, col_to_row)
    matched = np.flatnonzero(row_to_col >= 0)
    assert (col_to_row[row_to_col[matched]] == matched).all()
    assert matched.size == np.count_nonzero(col_to_row >= 0)
    slack = values[matched, row_to_col[matched]] - row_dual[matched] - col_dual[row_to_col[matched]]
    assert (slack <= 0).all()
    if matched.size < min(shape):
        again = row_to_col.copy(), col_to_row.copy()
        theirs.match_tight(row_dual, col_dual, *again)
        assert np.count_nonzero(again[0] >= 0) - matched.size <= max(0, nrows - device_rows.ROUNDS)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("shape", [(6, 9), (1, 1), (0, 3), (4, 0), (30, 5)])
def test_rows_in_csr_are_those_of_the_matrix(shape, dtype, library, monkeypatch):
    """A tile has a few rows, and the rows are some of more."""
    xp = pytest.importorskip(library)
    monkeypatch.setattr(costs_base, "tile_size", lambda **_: 7)
    monkeypatch.setattr(costs_sparse, "tile_size", lambda **_: 7)
    rng = np.random.default_rng(shape[1])
    stored = csr_array(np.where(rng.random(shape) < 0.6, rng.integers(1, 9, shape), 0))
    arrays = xp.asarray(stored.indptr), xp.asarray(stored.indices), xp.asarray(stored.data)
    costs = SparseCosts((*arrays[:2], arrays[2].astype(dtype), shape))
    far = far_of(np.dtype(dtype))
    matrix = costs.to_host().dense()
    ours, theirs = CsrRows(costs, far), ArrayRows(matrix, far, lambda: False)
    for rows in (ours, theirs):
        rows.first, rows.total = 3, shape[0] + 8
    assert ours.longest == np.diff(stored.indptr).max(initial=0)
    price, bound = rng.integers(-5, 1, shape[1]), rng.integers(-2, 9, shape[0])
    for most in (1, 2, 9):
        device = ours.nearest(xp.asarray(price), xp.asarray(bound), most)
        found = [array_of(np, part) for part in device]
        wanted = theirs.nearest(price, bound, most)
        by_pair = [np.lexsort((pairs[1], pairs[0])) for pairs in (found, wanted)]
        for one, other in zip(found, wanted):
            np.testing.assert_array_equal(one[by_pair[0]], other[by_pair[1]])
    np.testing.assert_array_equal(
        array_of(np, ours.least_of_rows(xp.asarray(price))), theirs.least_of_rows(price)
    )
    least, wanted = np.empty((2, shape[0]), dtype)
    ours.least(price, least)
    theirs.least(price.astype(dtype), wanted)
    np.testing.assert_array_equal(least, wanted)
    duals = -rng.integers(0, 5, shape[0])
    np.testing.assert_array_equal(
        array_of(np, ours.least_of_columns(xp.asarray(duals))), theirs.least_of_columns(duals)
    )
    rows, cols = stored.nonzero()
    np.testing.assert_array_equal(
        array_of(np, ours.at(xp.asarray(rows), xp.asarray(cols))), matrix[rows, cols]
    )


def test_all_ranks_together_may_have_as_many_rows_as_a_graph():
    def ranks_with(*counts):
        parts = [np.array([count]) for count in counts]
        return SimpleNamespace(rank=1, allgather=lambda _: parts, agreed=lambda error: error)

    most = 2**31 - 2**20
    assert split_of(5, ranks_with(most - 5, 5)).starts.tolist() == [0, most - 5, most]
    with pytest.raises(ValueError, match=f"{most + 1:,}|{most + 1}"):
        split_of(6, ranks_with(most - 5, 6))


def test_a_row_claims_one_column():
    """The first of its columns that is not taken."""
    indptr, indices = np.array([0, 3, 5, 6, 8]), np.array([0, 1, 2, 0, 1, 1, 2, 3])
    taken, wanted = np.zeros(4, bool), np.full(3, 9)
    claim_free(np.array([0, 2, 3]), indptr, indices, taken, wanted)
    assert wanted.tolist() == [0, 1, 2]
    assert taken.tolist() == [True, True, True, False]
    claim_free(np.array([2, 1, 3]), indptr, indices, taken, wanted)
    assert wanted.tolist() == [-1, -1, 3]
