"""Weighted matching of graphs on a device: the host sees only what odd cycles leave."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.contracts.general_weights import GeneralWeightTask
from gpumatch.general import weights as front_door
from gpumatch.problems import general_weights
from gpumatch.running.control import Control
from tests.cpu.general.greedy import random_graph, with_both_entries

cp = pytest.importorskip("cupy")

from gpumatch.cuda.general import weights as on_device  # noqa: E402  it imports cupy

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]

match = gm.general.maximum_weight_matching


@pytest.fixture(autouse=True)
def however_small(monkeypatch):
    monkeypatch.setattr(on_device, "FEWEST", 0)


def sources_of(graph, dtype=np.int64):
    """On the device and on the host."""
    indptr, indices, weights = graph
    indptr, weights, shape = indptr.astype(np.int32), weights.astype(dtype), (len(indptr) - 1,) * 2
    arrays = indptr, indices, weights
    return (*map(cp.asarray, arrays), shape), (*arrays, shape)


def refuse(*_, **__):
    raise AssertionError("the graph was copied to the host")


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize("cardinality", ["any", "maximum"])
def test_random_graphs(monkeypatch, cardinality, maximize, dtype):
    rng = np.random.default_rng(7)
    odd = 0
    for _ in range(4):
        u, v = np.triu_indices(24, 1)
        kept = rng.random(u.size) < 0.3
        values = rng.integers(1, 9, kept.sum())
        graph = with_both_entries(24, u[kept], v[kept], values)
        values = graph[2] if maximize else -graph[2]
        there, here = sources_of((*graph[:2], values), dtype)
        with monkeypatch.context() as patch:
            patch.setattr(front_door, "weighted_of", refuse)
            m = match(there, cardinality=cardinality, maximize=maximize)
        assert m.stats["backend"] == "cuda"
        assert m.proven
        assert {type(a) for a in (m.mate, m.edges(), m.vertex_dual, m.set_dual)} == {cp.ndarray}
        same = match(here, cardinality=cardinality, maximize=maximize)
        assert m.objective == same.objective
        assert cardinality == "any" or m.size == same.size
        gm.verify(here, m)
        steps = [step for step in m.stats["trace"] if step.get("step") == "odd cycles"]
        odd += sum(step["odd_cycles"] for step in steps)
    assert odd > 0


def bipartite_graph(rng, count, values):
    """A grid without some of its edges: it has isolated vertices, and leaves vertices unmatched."""
    A = nx.to_scipy_sparse_array(nx.grid_2d_graph(*count), dtype=np.int64, format="coo")
    kept = (A.row < A.col) & (rng.random(A.nnz) < 0.7)
    half = csr_array((values(kept.sum()), (A.row[kept], A.col[kept])), shape=A.shape)
    graph = (half + half.T).tocsr()
    graph.sort_indices()
    return graph.indptr, graph.indices, graph.data


@pytest.mark.parametrize("cardinality", ["any", "maximum"])
@pytest.mark.parametrize(
    ("dtype", "scale", "most"),
    [(np.int64, 1, 20), (np.int64, 1, 10**12), (np.float32, 1.0, 20), (np.float64, 1e-30, 10**9)],
)
def test_a_bipartite_graph_needs_no_host(monkeypatch, dtype, scale, most, cardinality):
    rng = np.random.default_rng(3)
    graph = bipartite_graph(rng, (7, 5), lambda count: scale * rng.integers(-3, most, count))
    there, here = sources_of(graph, dtype)
    with monkeypatch.context() as patch:
        patch.setattr(front_door, "weighted_of", refuse)
        patch.setattr(general_weights, "GeneralWeightStart", refuse)
        patch.setattr(general_weights._Problem, "_host_task", refuse)
        m = match(there, cardinality=cardinality)
    assert m.proven
    assert m.stats["odd_cycles"] == 0
    assert m.unmatched.size > 0
    same = match(here, cardinality=cardinality)
    assert m.objective == pytest.approx(same.objective, rel=1e-15)
    assert cardinality == "any" or m.size == same.size
    gm.verify(here, m)


def test_a_perfect_matching_of_a_bipartite_graph_needs_no_host(monkeypatch):
    rng = np.random.default_rng(4)
    A = nx.to_scipy_sparse_array(nx.grid_2d_graph(6, 5), dtype=np.float64, format="csr")
    half = csr_array(A.multiply(rng.normal(size=A.shape)))
    graph = csr_array(half + half.T)
    graph.sort_indices()
    there, here = sources_of((graph.indptr, graph.indices, graph.data), np.float64)
    with monkeypatch.context() as patch:
        patch.setattr(general_weights._Problem, "_host_task", refuse)
        m = match(there, cardinality="perfect", maximize=False)
    assert m.proven
    assert m.size == 15
    same = match(here, cardinality="perfect", maximize=False)
    assert m.objective == pytest.approx(same.objective)
    gm.verify(here, m)


def test_the_host_ends_what_rounding_leaves_unproven(monkeypatch):
    monkeypatch.setattr(on_device, "_allowed", lambda *_: np.inf)
    rng = np.random.default_rng(5)
    for cardinality in ("any", "maximum"):
        indptr, indices, weights = random_graph(rng, 40, "integers")
        there, here = sources_of((indptr, indices, weights / 7), np.float64)
        m = match(there, cardinality=cardinality)
        assert m.proven
        assert m.objective == pytest.approx(match(here, cardinality=cardinality).objective)
        gm.verify(here, m)


def test_no_perfect_matching_and_loops():
    there, here = sources_of((np.array([0, 3, 4, 5, 6]), np.array([1, 2, 3, 0, 0, 0], np.int32),
                              np.array([4, 5, 6, 4, 5, 6])))  # fmt: skip
    with pytest.raises(gm.general.ImperfectError) as info:
        match(there, cardinality="perfect")
    assert info.value.tutte_set.tolist() == [0]
    looped = (np.array([0, 2, 3]), np.array([0, 1, 0], np.int32), np.array([9, 2, 2]))
    there, here = sources_of(looped)
    m = match(there)
    assert m.objective == 2
    gm.verify(here, m)


def test_a_graph_of_the_host_can_go_to_the_device():
    for dtype in (np.int64, np.float64):
        _, here = sources_of(random_graph(np.random.default_rng(3), 40, "integers"), dtype)
        m = match(here, backend="cuda", cardinality="maximum")
        assert isinstance(m.mate, np.ndarray)
        gm.verify(here, m)
        assert m.objective == match(here, backend="cpu", cardinality="maximum").objective


def test_a_stopped_run_has_a_matching():
    there, here = sources_of(random_graph(np.random.default_rng(4), 40, "integers"))
    m = match(there, callback=lambda _: True)
    assert not m.proven
    gm.verify(here, m, optimal=False)


@pytest.mark.parametrize("level", [-3, 0])
def test_duals_are_raised_until_they_are_feasible(level):
    rng = np.random.default_rng(6)
    indptr, indices, weights = random_graph(rng, 60, "integers")
    n, owners = len(indptr) - 1, np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    arrays = indptr.astype(np.int32), indices, weights.astype(np.int64)
    edges = on_device._Edges(GeneralWeightTask(*map(cp.asarray, arrays), level, Control()))
    dual = rng.integers(-20, 40, n)
    raised = edges.raised(cp.asarray(dual)).get()
    assert (raised[owners] + raised[indices] >= 2 * weights).all()
    before = np.maximum(dual, level)
    lacks = np.zeros(n, np.int64)
    np.maximum.at(lacks, owners, 2 * weights - before[owners] - before[indices])
    assert lacks.any()
    assert np.array_equal(raised, before + (lacks + 1) // 2)

    mate = np.full(n, -1, np.int32)
    for u, v in zip(owners.tolist(), indices.tolist()):
        if mate[u] < 0 and mate[v] < 0:
            mate[u], mate[v] = v, u
    entries, excess = edges.entries_of(cp.asarray(mate), cp.asarray(raised))
    is_pair = (mate[owners] == indices) & (owners < indices)
    assert np.array_equal(entries.get(), np.flatnonzero(is_pair))
    tight = raised[owners] + raised[indices] - 2 * weights
    assert excess == tight[is_pair].sum() + (raised[mate < 0] - level).sum()
