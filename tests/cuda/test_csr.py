"""Order and transpose CSR on the device: piece by piece it is the same, past 2**31 entries too."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gpumatch import BipartiteGraph, maximum_matching, verify
from gpumatch.cpu import csr as on_host

cp = pytest.importorskip("cupy")

from gpumatch.cuda import csr  # noqa: E402  it imports cupy

# -- the pieces, without a device ------------------------------------------------------------------


@pytest.fixture(params=[1, 2, 7, 64, 10_000])
def in_pieces(request, monkeypatch):
    """NumPy in the place of CuPy, whose names it shares, and pieces of so many entries."""
    monkeypatch.setattr(csr, "cp", np)
    monkeypatch.setattr(csr.memory, "require_memory", lambda *_: None)
    monkeypatch.setattr(csr, "_PIECE", request.param)


def random_csr(nrows, ncols, nnz, seed):
    """Unsorted rows with duplicates, and empty ones at the beginning, between and at the end."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.integers(nrows // 4, max(nrows - nrows // 4, 1), nnz))
    indptr = np.searchsorted(rows, np.arange(nrows + 1)).astype(np.int64)
    return indptr, rng.integers(0, ncols, nnz).astype(np.int32)


SHAPES = [(1, 1, 0), (1, 5, 9), (5, 1, 9), (40, 30, 500), (300, 7, 400), (6, 300, 400)]


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize(("nrows", "ncols", "nnz"), SHAPES)
def test_pieces_make_the_hosts_csr(nrows, ncols, nnz):
    for seed in range(10):
        indptr, indices = random_csr(nrows, ncols, nnz, seed)
        rows = csr.owners(indptr, indices)
        assert np.array_equal(rows, np.repeat(np.arange(nrows), np.diff(indptr)))
        canonical = csr.canonical(indptr, indices, nrows)
        wanted = on_host.canonical(indptr, indices, nrows)
        assert all(map(np.array_equal, canonical, wanted))
        order = np.random.default_rng(seed).permutation(nnz)
        listed = csr.from_edges(rows[order], indices[order], nrows)
        assert all(map(np.array_equal, listed, wanted))
        transposed = csr.transpose(*canonical, ncols)
        assert all(map(np.array_equal, transposed, on_host.transpose(*wanted, ncols)))


def roundly(found, vertices, values):
    """`maximum.at` as CuPy has it: by way of float32, for float64."""
    values = values.astype(np.float32) if values.dtype == np.float64 else values
    np.maximum.at(found, vertices, values.astype(found.dtype))


def test_the_greatest_numbers_lose_no_digit(monkeypatch):
    names = {**vars(np), "maximum": SimpleNamespace(at=roundly)}
    monkeypatch.setattr(csr, "cp", SimpleNamespace(**names))
    rng = np.random.default_rng(1)
    extremes = [0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, -np.inf, 1 + 2**-40, 1.0]
    for values in (rng.normal(size=500), rng.normal(size=500) * 1e200, np.array(extremes)):
        vertices = rng.integers(0, 100, values.size)
        wanted = on_host.greatest(vertices, values, 100)
        assert np.array_equal(csr.greatest(vertices, values, 100), wanted)


@pytest.mark.gpu
def test_the_greatest_numbers_on_the_device():
    rng = np.random.default_rng(2)
    vertices, values = rng.integers(0, 1000, 20_000), rng.normal(size=20_000)
    found = csr.greatest(cp.asarray(vertices), cp.asarray(values), 1100)
    assert np.array_equal(found.get(), on_host.greatest(vertices, values, 1100))


def numbers_of_extremes(rng):
    """Integers and floats, some of them at the ends of what there is, and places for them."""
    for dtype in (np.int64, np.float64):
        ends = np.iinfo(np.int64) if dtype == np.int64 else np.finfo(np.float64)
        values = (rng.normal(size=2000) * 1e9).astype(dtype)
        values[:5] = [ends.min, ends.max, 0, -1, 1]
        yield rng.integers(0, 300, values.size), values, np.full(310, ends.max, dtype)


def test_lowered_numbers_are_the_least(monkeypatch):
    monkeypatch.setattr(csr, "cp", np)
    for places, values, least in numbers_of_extremes(np.random.default_rng(3)):
        wanted = least.copy()
        np.minimum.at(wanted, places, values)
        csr.lower(least, places, values)
        assert np.array_equal(least, wanted)


@pytest.mark.gpu
def test_lowered_numbers_on_the_device():
    for places, values, least in numbers_of_extremes(np.random.default_rng(3)):
        lowered = cp.asarray(least)
        csr.lower(lowered, cp.asarray(places), cp.asarray(values))
        np.minimum.at(least, places, values)
        assert np.array_equal(lowered.get(), least)


@pytest.mark.usefixtures("in_pieces")
def test_one_entry_out_of_order_is_seen_wherever_it_is():
    indptr = np.array([0, 0, 10, 11, 11, 30, 30])
    indices = np.concatenate([np.arange(10), [5], np.arange(19)])
    assert csr.is_canonical(indptr, indices)
    for at in range(29):
        for wrong in (indices[at + 1], indices[at + 1] + 1):
            spoilt = indices.copy()
            spoilt[at] = wrong
            rows = np.split(spoilt, indptr[1:-1])
            assert csr.is_canonical(indptr, spoilt) == all((np.diff(r) > 0).all() for r in rows)


# -- on a device -----------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("piece", [1_000, 2**30])
@pytest.mark.parametrize("offsets", [np.int32, np.int64])
def test_the_device_orders_as_the_host(offsets, piece, monkeypatch):
    monkeypatch.setattr(csr, "_PIECE", piece)
    indptr, indices = random_csr(300, 200, 20_000, seed=1)
    device = cp.asarray(indptr.astype(offsets)), cp.asarray(indices)
    wanted = on_host.canonical(indptr, indices, 300)
    assert not csr.is_canonical(*device)
    canonical = csr.canonical(*device, 300)
    assert csr.is_canonical(*canonical)
    for got, want in zip(canonical, wanted):
        assert np.array_equal(got.get(), want)
    for got, want in zip(csr.transpose(*canonical, 200), on_host.transpose(*wanted, 200)):
        assert np.array_equal(got.get(), want)


NROWS, NCOLS = 2**15, 65_600  # 2**31 + 2,097,152 edges
BLOCK = 2**11  # rows, so that CuPy sees no more than 2**28 entries


@pytest.fixture
def room():
    if cp.cuda.Device().mem_info[0] < 120 * 2**30:
        pytest.skip("needs 120 GB of device memory")
    yield
    cp.get_default_memory_pool().free_all_blocks()


def columns_in_disorder(repeats):
    """All columns of each row in an order of its own, the first `repeats` of them once more."""
    indices = cp.empty((NROWS, NCOLS + repeats), cp.int32)
    places = cp.arange(NCOLS + repeats, dtype=cp.int32)
    for first in range(0, NROWS, BLOCK):
        rows = cp.arange(first, first + BLOCK, dtype=cp.int32)[:, None]
        indices[first : first + BLOCK] = (7 * places + 3 * rows) % NCOLS
    return indices


def assert_complete(indptr, indices, nrows, ncols):
    """Each row holds all columns, in order."""
    assert indptr.dtype == np.int64
    assert indices.dtype == np.int32
    assert indices.size == nrows * ncols > 2**31
    assert bool((indptr == cp.arange(nrows + 1) * ncols).all())
    table, every = indices.reshape(nrows, ncols), cp.arange(ncols, dtype=cp.int32)
    for first in range(0, nrows, BLOCK):
        assert bool((table[first : first + BLOCK] == every).all())


@pytest.mark.gpu
@pytest.mark.long
@pytest.mark.usefixtures("room")
def test_a_disordered_csr_of_more_than_two_to_the_31_edges():
    """Rows are sorted, repeats merged, both directions made; its matching is proven."""
    repeats = 3
    indptr = cp.arange(NROWS + 1, dtype=cp.int64) * (NCOLS + repeats)
    graph = BipartiteGraph((indptr, columns_in_disorder(repeats).ravel(), (NROWS, NCOLS)))
    assert_complete(graph.indptr, graph.indices, NROWS, NCOLS)
    assert_complete(graph.col_indptr, graph.col_indices, NCOLS, NROWS)
    m = maximum_matching(graph)
    assert m.proven
    assert verify(graph, m).size == NROWS


@pytest.mark.gpu
@pytest.mark.long
@pytest.mark.usefixtures("room")
def test_an_edge_list_of_more_than_two_to_the_31_edges():
    """The last row first, and an edge of each row twice."""
    cols = columns_in_disorder(1).ravel()
    rows = cp.empty((NROWS, NCOLS + 1), cp.int32)
    for first in range(0, NROWS, BLOCK):
        places = cp.arange(first, first + BLOCK, dtype=cp.int32)
        rows[first : first + BLOCK] = (NROWS - 1 - places)[:, None]
    graph = BipartiteGraph.from_edges(rows.ravel(), cols, (NROWS, NCOLS))
    del rows, cols
    assert_complete(graph.indptr, graph.indices, NROWS, NCOLS)
    assert_complete(*csr.transpose(graph.indptr, graph.indices, NCOLS), NCOLS, NROWS)
