"""CSR arrays are checked in one look by threads: what passes is canonical by the definition."""

import numpy as np
import pytest

from gpumatch.bipartite import BipartiteGraph
from gpumatch.cpu import surveys
from gpumatch.cpu.numba_tools import workers
from gpumatch.dispatch import by_device
from gpumatch.interop import compressed


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Few rows make a block, and few entries are many."""
    monkeypatch.setattr(surveys, "BLOCK", 3)
    monkeypatch.setattr(workers, "_EDGES_EACH", 4)
    monkeypatch.setattr(by_device, "LARGE", 1)


def csr_arrays(rng, nrows, ncols, offsets):
    rows = [np.flatnonzero(rng.random(ncols) < rng.choice([0, 0.5])) for _ in range(nrows)]
    indices = np.concatenate([*rows, np.empty(0, int)]).astype(np.int32)
    return np.cumsum([0, *map(len, rows)]).astype(offsets), indices


def is_canonical(indptr, indices, shape):
    """By the definition."""
    if indptr[0] != 0 or (np.diff(indptr) < 0).any() or indptr[-1] > indices.size:
        return False
    rows = np.split(indices[: indptr[-1]], indptr[1:-1])
    in_order = all((np.diff(row) > 0).all() for row in rows)
    return in_order and all(((row >= 0) & (row < shape[1])).all() for row in rows)


@pytest.mark.parametrize("offsets", [np.int32, np.int64])
@pytest.mark.parametrize("seed", range(12))
def test_one_fault_is_enough(seed, offsets):
    """An index not above the one before, or outside; an offset that goes back, or too far."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(1, 12)), 6
    indptr, indices = csr_arrays(rng, *shape, offsets)
    spare = np.append(indices, np.int32(-7))
    assert surveys.canonical_size(indptr, spare, shape, 2) == indices.size
    for array, bad in ((spare[:-1], range(-1, 8)), (indptr, (-1, 0, 1, 10**6))):
        for place in range(array.size):
            spoilt = array.copy()
            spoilt[place] = rng.choice(bad)
            pair = (indptr, spoilt) if array is not indptr else (spoilt, indices)
            found = surveys.canonical_size(*pair, shape, 2)
            assert found == (pair[0][-1] if is_canonical(*pair, shape) else None)


def test_a_row_of_one_entry_may_precede_lesser_columns():
    """In the first row of a block, and in all others."""
    indices = np.arange(8, dtype=np.int32)[::-1].copy()
    assert surveys.canonical_size(np.arange(9), indices, (8, 8), 1) == 8


def test_other_arrays_are_not_looked_at():
    indptr, indices, shape = np.array([0, 1, 2]), np.array([0, 1], np.int32), (2, 2)
    assert surveys.canonical_size(indptr, indices, shape, 1) == 2
    assert surveys.canonical_size(indptr, indices, (3, 2), 1) is None
    for other in (indices.astype(np.int64), np.repeat(indices, 2)[::2]):
        assert surveys.canonical_size(indptr, other, shape, 1) is None
    for other in (indptr.astype(np.uint64), np.repeat(indptr, 2)[::2]):
        assert surveys.canonical_size(other, indices, shape, 1) is None


def test_read_only_arrays_are_looked_at():
    indptr, indices = np.array([0, 1, 2]), np.array([0, 1], np.int32)
    assert surveys.canonical_size(indptr, indices, (2, 2), 1) == 2
    before = len(surveys.are_canonical.signatures)
    indptr.flags.writeable = indices.flags.writeable = False
    assert surveys.canonical_size(indptr, indices, (2, 2), 1) == 2
    assert len(surveys.are_canonical.signatures) == before


def test_graphs_are_what_they_were():
    """What passes is copied, so that it stays; what does not is sorted, or named."""
    indptr, indices = np.array([0, 2, 3], np.int32), np.array([0, 2, 1], np.int32)
    graph = BipartiteGraph((indptr, indices, (2, 3)))
    assert graph.indices.tolist() == [0, 2, 1]
    for own, given in ((graph.indptr, indptr), (graph.indices, indices)):
        assert not np.shares_memory(own, given)
    turned = np.array([2, 0, 1], np.int32)
    assert BipartiteGraph((indptr, turned, (2, 3))).indices.tolist() == [0, 2, 1]
    with pytest.raises(ValueError, match=r"indices: 2 lies outside \[0, 2\)"):
        BipartiteGraph((indptr, indices, (2, 2)))
    with pytest.raises(ValueError, match="indptr must not decrease"):
        BipartiteGraph((np.array([0, 3, 2, 3]), indices, (3, 3)))


def test_threads_are_passed_on(monkeypatch):
    """Those of a call look at its matrix."""
    from scipy.sparse import csr_array

    from gpumatch.linalg import entries, maximum_product_matching

    monkeypatch.setattr(entries, "SMALL", 0)  # else one thread does all
    for module in (by_device, compressed):
        monkeypatch.setattr(module, "LARGE", 0)
    seen, look = [], surveys.canonical_size

    def watched(indptr, indices, shape, threads):
        seen.append(threads)
        return look(indptr, indices, shape, threads)

    by_device._size_on_host.cache_clear()
    monkeypatch.setattr(surveys, "canonical_size", watched)
    try:
        maximum_product_matching(csr_array(np.eye(4)), threads=3)
    finally:
        by_device._size_on_host.cache_clear()
    assert seen[0] == 3
