"""The check of CSR arrays in one look, on the CPU: what is canonical passes, nothing else does."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cupy")

from gpumatch.cuda import surveys
from tests.cuda.emulator import COMPILER, Emulator, lead_drivers_here

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")


@pytest.fixture(scope="module")
def emulator():
    return Emulator(surveys.SOURCE, {})


@pytest.fixture
def size_of(on_emulator):
    return surveys.canonical_size


@pytest.fixture
def on_emulator(emulator, monkeypatch):
    own = surveys.count_matched  # which others have replaced
    lead_drivers_here(monkeypatch, {surveys.SOURCE: emulator}, surveys, block=64)
    monkeypatch.setattr(surveys, "count_matched", own)


def canonical(rng, nrows, ncols, offset):
    """Rows of all lengths, from none to all columns, in order."""
    rows = [np.flatnonzero(rng.random(ncols) < rng.choice([0, 0.1, 0.5, 1])) for _ in range(nrows)]
    indptr = np.cumsum([0, *map(len, rows)]).astype(offset)
    return indptr, np.concatenate([*rows, np.empty(0)]).astype(np.int32)


@pytest.mark.parametrize("offset", [np.int32, np.int64])
def test_canonical_arrays_pass(size_of, offset):
    rng = np.random.default_rng(3)
    for shape in [(0, 0), (0, 5), (5, 0), (1, 1), (1, 300), (300, 1), (40, 30)]:
        for _ in range(5):
            indptr, indices = canonical(rng, *shape, offset)
            assert size_of(indptr, indices, shape) == indices.size
            spare = np.append(indices, np.int32(-7))
            assert size_of(indptr, spare, shape) == indices.size


@pytest.mark.parametrize("offset", [np.int32, np.int64])
def test_one_fault_is_enough(size_of, offset):
    """An index not above the one before, or outside; an offset that goes back, or too far."""
    rng = np.random.default_rng(5)
    shape = 40, 30
    refused = 0
    for _ in range(60):
        indptr, indices = canonical(rng, *shape, offset)
        for array, bad in ((indices, (-1, 0, 29, 30)), (indptr, (-1, 0, 1, 10**6))):
            spoilt, place = array.copy(), rng.integers(array.size)
            spoilt[place] = rng.choice([*bad, array[place - 1]])
            pair = (spoilt, indices) if array is indptr else (indptr, spoilt)
            found = size_of(*pair, shape)
            assert found == (pair[0][-1] if is_canonical(*pair, shape) else None)
            refused += found is None
    assert refused > 60


def is_canonical(indptr, indices, shape):
    """By the definition."""
    steps = np.diff(indptr)
    if indptr[0] != 0 or (steps < 0).any() or indptr[-1] > indices.size:
        return False
    rows = np.split(indices[: indptr[-1]], indptr[1:-1])
    in_order = all((np.diff(row) > 0).all() for row in rows)
    return in_order and all(((row >= 0) & (row < shape[1])).all() for row in rows)


def test_other_types_and_lengths_are_not_looked_at(size_of):
    indptr, indices = np.array([0, 1, 2]), np.array([0, 1], np.int32)
    assert size_of(indptr, indices, (2, 2)) == 2
    assert size_of(indptr, indices, (3, 2)) is None
    assert size_of(indptr, indices.astype(np.int64), (2, 2)) is None
    assert size_of(indptr.astype(np.uint32), indices, (2, 2)) is None
    assert size_of(indptr, np.array([0, 5, 1, 5], np.int32)[::2], (2, 2)) is None


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
@pytest.mark.usefixtures("on_emulator")
def test_matched_vertices_are_counted(dtype):
    """Whatever is below 0 is no mate; mates may lie apart, and be of any integers."""
    rng = np.random.default_rng(6)
    for size in (0, 1, 31, 32, 33, 700):
        mates = rng.integers(-3, 4, 2 * size).astype(dtype)
        assert surveys.count_matched(mates) == np.count_nonzero(mates >= 0)
        assert surveys.count_matched(mates[::2]) == np.count_nonzero(mates[::2] >= 0)


@pytest.mark.parametrize("offset", [np.int32, np.int64])
def test_pairs_are_found_where_they_are(on_emulator, offset):
    rng = np.random.default_rng(5)
    indptr, indices = canonical(rng, 30, 20, offset)
    rows, cols = (side.ravel() for side in np.mgrid[:30, -1:21])
    places, are_there = surveys.find(indptr, indices, rows, cols)
    full = np.zeros((30, 22), bool)
    full[np.arange(30).repeat(np.diff(indptr)), indices + 1] = True
    assert (are_there == full[rows, cols + 1]).all()
    assert 0 < are_there.sum() < are_there.size
    assert (indices[places[are_there]] == cols[are_there]).all()
    own = np.searchsorted(indptr, places[are_there], side="right") - 1
    assert (own == rows[are_there]).all()
    assert (places >= 0).all()
    assert (places < indices.size).all()


def test_a_pair_of_each_row_needs_no_rows(on_emulator):
    indptr, indices = canonical(np.random.default_rng(6), 40, 9, np.int32)
    mates = np.arange(40, dtype=np.int32) % 10 - 1
    places, are_there = surveys.find(indptr, indices, None, mates)
    expected = surveys.find(indptr, indices, np.arange(40), mates)
    assert (are_there == expected[1]).all()
    assert are_there.any()
    assert (places == expected[0]).all()


def test_rows_that_are_not_there_have_no_pairs(on_emulator):
    indptr, indices = canonical(np.random.default_rng(7), 6, 9, np.int64)
    _, are_there = surveys.find(indptr, indices, np.array([-1, 6, 2**40]), np.array([0, 0, 0]))
    assert not are_there.any()
