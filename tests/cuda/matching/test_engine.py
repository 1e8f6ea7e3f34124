"""The engine on the device: sides, stages, graphs that are hard on it, stops, many runs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import graphs
from gpumatch import BipartiteGraph, maximum_matching, verify

pytestmark = pytest.mark.gpu


def match(graph, **options):
    return maximum_matching(graph, algorithm="engine", backend="cuda", **options)


def only(graph, direction):
    """The same graph on the device, holding one direction only."""
    device = graph.to_device()
    rows = BipartiteGraph((device.indptr, device.indices, device.shape))
    cols = BipartiteGraph((device.col_indptr, device.col_indices, device.shape[::-1])).transpose()
    return {"rows": rows, "columns": cols}[direction]


@pytest.mark.parametrize("shape", [(2_000, 2_000), (2_000, 1_900), (300, 4_000), (4_000, 300)])
def test_both_sides_give_one_size_and_no_side_is_made_in_vain(shape):
    A = sp.random_array(shape, density=3 / max(shape), rng=1, format="csr")
    graph = BipartiteGraph(A)
    want = match(graph, init="none").size
    assert want == maximum_matching(graph, backend="cpu").size
    for direction in ("rows", "columns"):
        device = only(graph, direction)
        m = match(device)
        assert m.size == want
        if max(shape) < 4 * min(shape):
            assert (device.has_rows, device.has_cols) == (direction == "rows", direction != "rows")
        assert verify(device, m).size == want


@pytest.mark.parametrize("shape", [(720_000, 1_700), (1_700, 720_000)])
def test_very_lopsided_graphs(shape):
    rng = np.random.default_rng(2)
    graph = BipartiteGraph.from_edges(*(rng.integers(0, n, 2_000_000) for n in shape), shape)
    assert verify(graph, match(graph)).size == 1_700
    few = BipartiteGraph.from_edges(*(rng.integers(0, n, 2_000) for n in shape), shape)
    assert verify(few, match(few)).size == maximum_matching(few, backend="cpu").size


# Long paths, which one block grows alone; wide levels, which all do; both in turn.
HARD = {
    "chain": lambda: graphs.make("chain", 5_000),
    "ladder": lambda: graphs.make("ladder", 2_000),
    "rope": lambda: graphs.make("rope", 20_000),
    "hexa": lambda: graphs.make("hexa", 20_000),
    "stars": lambda: graphs.make("stars", 50, 1_000),
    "kron": lambda: graphs.make("kron", 12),
    "grid": lambda: graphs.make("grid", 300, 0.65),
    "delaunay": lambda: graphs.make("delaunay", 14),
    "complete": lambda: graphs.make("complete", 300, 200),
    "empty": lambda: graphs.make("empty", 30, 20),
    "no rows": lambda: graphs.make("empty", 0, 5),
    "no columns": lambda: graphs.make("empty", 5, 0),
    "nothing": lambda: graphs.make("empty", 0, 0),
}


@pytest.mark.parametrize("init", ["none", "cheap"])
@pytest.mark.parametrize("rcp", [False, True])
@pytest.mark.parametrize("name", HARD)
def test_hard_graphs(name, rcp, init):
    A = graphs.rcp(HARD[name](), 3) if rcp else HARD[name]()
    m = match(A, init=init)
    assert verify(A, m).size == maximum_matching(A, backend="cpu").size
    sizes = [m.stats["start_size"], *(phase["matched"] for phase in m.stats["trace"])]
    assert sizes == sorted(sizes)
    assert sizes[-1] == m.size
    assert all(phase["found"] == 0 for phase in m.stats["trace"][-1:])


def test_two_hundred_runs_of_one_adversarial_graph():
    """Hub columns over many equal paths: claims collide in every level."""
    rng = np.random.default_rng(0)
    hubs = sp.random_array((4_000, 40), density=0.5, rng=rng)
    web = sp.random_array((4_000, 3_960), density=0.0006, rng=rng)
    A = sp.hstack([hubs, web]).tocsr()
    graph = BipartiteGraph(A).to_device()
    want = maximum_matching(A, backend="cpu").size
    for run in range(200):
        m = match(graph, init="none" if run % 2 else "cheap")
        assert m.size == want
        assert verify(graph, m).size == want


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_stopped_run_leaves_a_matching_that_goes_on(at, monkeypatch):
    from gpumatch.cuda.matching import engine as matching_engine

    monkeypatch.setattr(matching_engine, "_STEPS_A_LAUNCH", 7)
    A = graphs.make("grid", 200, 0.65)
    ticks = 0

    def stop(progress):
        nonlocal ticks
        ticks += 1
        return ticks == at

    part = match(A, callback=stop)
    assert not part.proven
    rest = match(A, initial=part, init="none")
    assert rest.stats["start_size"] == part.size
    assert verify(A, rest).size == maximum_matching(A, backend="cpu").size


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_launches_may_end_after_any_step(steps, monkeypatch):
    from gpumatch.cuda.matching import engine as matching_engine

    monkeypatch.setattr(matching_engine, "_STEPS_A_LAUNCH", steps)
    A = graphs.make("uniform", 3_000, 3, seed=steps)
    m = match(A)
    assert verify(A, m).size == maximum_matching(A, backend="cpu").size


def test_int64_offsets():
    graph = BipartiteGraph(graphs.make("uniform", 3_000, 3, seed=4)).to_device()
    want = match(graph).size
    graph._rows = (graph.indptr.astype("i8"), graph.indices)
    graph._cols = (graph.col_indptr.astype("i8"), graph.col_indices)
    assert match(graph).size == want


def test_more_than_two_to_the_31_edges():
    """Offsets past int32 on the device: 2**15 rows that share 65,600 columns."""
    import cupy as cp

    nrows, ncols = 2**15, 65_600
    if cp.cuda.Device().mem_info[0] < 40 * 2**30:
        pytest.skip("needs 40 GB of device memory")
    indptr = cp.arange(nrows + 1, dtype=cp.int64) * ncols
    indices = cp.tile(cp.arange(ncols, dtype=cp.int32), nrows)
    graph = BipartiteGraph((indptr, indices, (nrows, ncols)))
    assert graph.nnz > 2**31
    assert graph.indptr.dtype == np.int64
    m = match(graph)
    assert m.size == nrows
    assert m.proven


@pytest.mark.parametrize("sides", ["rows", "columns"])
@pytest.mark.parametrize("ends", ["even", "odd", "cycles", "links"])
def test_long_chains_are_contracted(ends, sides):
    count, length = 20, 2000 + (ends == "odd")
    v = np.arange(count * length).reshape(count, length)
    edges = [v[:, :-1].ravel(), v[:, 1:].ravel()]
    if ends == "cycles":
        edges = [np.append(edges[0], v[:, -1]), np.append(edges[1], v[:, 0])]
    rng = np.random.default_rng(3)
    if ends == "links":
        one, other = rng.integers(0, length // 2, (2, 10))
        edges = [np.append(edges[0], 2 * one), np.append(edges[1], length + 2 * other + 1)]
    number, side = np.empty(v.size, int), v.ravel() % length % 2
    for k in (0, 1):
        number[side == k] = rng.permutation((side == k).sum())
    rows, cols = (number[np.where(side[edges[0]] == k, *edges)] for k in (0, 1))
    shape = int((side == 0).sum()), int((side == 1).sum())
    A = sp.coo_array((np.ones(rows.size, np.int8), (rows, cols)), shape=shape).tocsr()
    device = only(BipartiteGraph(A), sides)
    m = match(device)
    assert m.stats["levels"] < 200
    assert verify(device, m).size == maximum_matching(BipartiteGraph(A), backend="cpu").size
