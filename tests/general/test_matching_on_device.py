"""Maximum matching of graphs on a device: the host sees only what odd cycles leave."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import gpumatch as gm
from gpumatch.general import matching as front_door
from tests.cpu.general.greedy import random_graph

cp = pytest.importorskip("cupy")

from gpumatch.cuda.general import matching as on_the_device  # noqa: E402  it imports cupy
from gpumatch.cuda.general.symmetry import symmetry_of  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]


@pytest.fixture(autouse=True)
def however_small(monkeypatch):
    monkeypatch.setattr(on_the_device, "FEWEST", 0)


def source_of(graph):
    """Without weights, on the device and on the host."""
    indptr, indices, _ = graph
    indptr, shape = indptr.astype(np.int32), (len(indptr) - 1,) * 2
    return (cp.asarray(indptr), cp.asarray(indices), shape), (indptr, indices, shape)


def refuse(*_, **__):
    raise AssertionError("the graph was copied to the host")


def test_random_graphs(monkeypatch):
    rng = np.random.default_rng(1)
    for _ in range(12):
        on_device, on_host = source_of(random_graph(rng, 50))
        with monkeypatch.context() as patch:
            patch.setattr(front_door, "pattern_of", refuse)
            m = gm.general.maximum_matching(on_device)
        assert m.stats["backend"] == "cuda"
        assert m.proven
        assert {type(array) for array in (m.mate, m.edges(), m.unmatched)} == {cp.ndarray}
        assert m.size == gm.general.maximum_matching(on_host).size
        gm.verify(on_host, m)


def test_a_bipartite_graph_needs_no_host():
    A = nx.to_scipy_sparse_array(nx.grid_2d_graph(7, 6), dtype=np.int32, format="csr")
    source = (cp.asarray(A.indptr), cp.asarray(A.indices), A.shape)
    m = gm.general.maximum_matching(source)
    assert m.size == 21
    assert [step["count"] for step in m.stats["trace"] if step.get("step") == "odd cycles"] == [0]
    gm.verify(A, m)


def test_a_matching_to_begin_from():
    on_device, on_host = source_of(random_graph(np.random.default_rng(2), 50))
    m = gm.general.maximum_matching(on_host)
    again = gm.general.maximum_matching(on_device, initial=m)
    assert again.size == m.size
    with pytest.raises(ValueError, match="initial"):
        gm.general.maximum_matching(on_device, initial=m.mate[:-1])


def test_loops_and_single_triangles_go_by_the_host():
    loop = cp.asarray(np.array([0, 2, 3])), cp.asarray(np.array([0, 1, 0], np.int32)), (2, 2)
    single = cp.asarray(np.array([0, 1, 1])), cp.asarray(np.array([1], np.int32)), (2, 2)
    along = cp.asarray(np.array([0, 1, 2, 2])), cp.asarray(np.array([1, 2], np.int32)), (3, 3)
    for source in (loop, single, along):
        m = gm.general.maximum_matching(source)
        mate = m.mate.get()
        assert m.size == 1
        assert (mate[mate[mate >= 0]] == np.flatnonzero(mate >= 0)).all()
        assert m.stats["backend"] == "cuda"
        gm.verify(source, m)


def test_an_entry_without_its_twin_is_seen():
    """A directed cycle 0, 1, 2, and edges to 3 from all of it."""
    indptr, indices = np.array([0, 2, 4, 6, 9]), np.array([1, 3, 2, 3, 0, 3, 0, 1, 2], np.int32)
    found = symmetry_of(cp.asarray(indptr), cp.asarray(indices))
    assert (found.alone, found.loops) == (3, 0)
    weights = np.array([1, 5, 1, 6, 1, 7, 5, 6, 8], np.int32)
    found = symmetry_of(*map(cp.asarray, (indptr, indices, weights)))
    assert found.alone == 5


def test_a_graph_of_the_host_can_go_to_the_device():
    _, on_host = source_of(random_graph(np.random.default_rng(3), 50))
    m = gm.general.maximum_matching(on_host, backend="cuda")
    assert isinstance(m.mate, np.ndarray)
    gm.verify(on_host, m)
    assert m.size == gm.general.maximum_matching(on_host, backend="cpu").size


def test_a_small_graph_goes_to_the_host(monkeypatch):
    monkeypatch.setattr(on_the_device, "FEWEST", 10**6)
    on_device, on_host = source_of(random_graph(np.random.default_rng(6), 50))
    m = gm.general.maximum_matching(on_device)
    assert "double cover" not in m.stats["seconds"]
    assert isinstance(m.mate, cp.ndarray)
    gm.verify(on_host, m)
