"""Weighted matching of graphs on a device: the host sees only what odd cycles leave."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.general import weights as front_door
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
            if dtype != np.float64:
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


def test_a_bipartite_graph_needs_no_host(monkeypatch):
    rng = np.random.default_rng(3)
    A = nx.to_scipy_sparse_array(nx.grid_2d_graph(6, 5), dtype=np.int64, format="coo")
    upper = A.row < A.col
    values = rng.integers(-3, 20, upper.sum())
    half = csr_array((values, (A.row[upper], A.col[upper])), shape=A.shape)
    graph = (half + half.T).tocsr()
    graph.sort_indices()
    there, here = sources_of((graph.indptr, graph.indices, graph.data))
    monkeypatch.setattr(on_device, "_by_host", refuse)
    for cardinality in ("any", "perfect"):
        m = match(there, cardinality=cardinality)
        assert m.proven
        assert m.objective == match(here, cardinality=cardinality).objective
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
