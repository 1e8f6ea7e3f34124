"""Half-approximate matching of graphs on a device: canonical CSR stays there."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.general import suitor
from gpumatch.general.suitor import half_matching
from tests.cpu.general.greedy import random_graph

cp = pytest.importorskip("cupy")

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]


def on_device(graph):
    indptr, indices, weights = graph
    shape = (len(indptr) - 1,) * 2
    return cp.asarray(indptr), cp.asarray(indices), cp.asarray(weights), shape


def refuse(*_, **__):
    raise AssertionError("the graph was copied to the host")


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64, np.int16])
def test_a_graph_on_the_device_stays_there(monkeypatch, dtype):
    rng = np.random.default_rng(1)
    for bound in ("half", "tight"):
        graph = random_graph(rng, 60, "integers")
        source = on_device((*graph[:2], graph[2].astype(dtype)))
        with monkeypatch.context() as patch:
            patch.setattr(suitor, "weighted_of", refuse)
            a = half_matching(source, options={"bound": bound})
        assert a.stats["backend"] == "cuda"
        assert {type(array) for array in (a.mate, a.vertex_dual, a.edges())} == {cp.ndarray}
        host = half_matching((*graph, source[3]), backend="cpu", options={"bound": bound})
        if bound == "half":
            assert a.mate.get().tolist() == host.mate.tolist()
            assert (a.objective, a.bound) == pytest.approx((host.objective, host.bound))
        gm.verify(source, a)


def test_the_smallest_total_on_the_device():
    graph = random_graph(np.random.default_rng(2), 60, "integers")
    indptr, indices, weights, shape = on_device(graph)
    a = half_matching((indptr, indices, -weights, shape), maximize=False)
    assert a.objective < 0
    assert a.bound <= a.objective
    gm.verify((*graph[:2], -graph[2], shape), a)


def test_graphs_of_the_host_are_matched_on_the_device():
    graph = random_graph(np.random.default_rng(3), 60, "floats")
    shape = (len(graph[0]) - 1,) * 2
    a = half_matching((*graph, shape), backend="cuda")
    assert a.stats["backend"] == "cuda"
    assert isinstance(a.mate, np.ndarray)
    gm.verify((*graph, shape), a)


def test_one_triangle_on_the_device_is_a_graph_too():
    """The host makes its other half."""
    indptr, indices = np.array([0, 2, 3, 3]), np.array([1, 2, 2], np.int32)
    source = on_device((indptr, indices, np.array([3, 5, 4])))
    for triangle in ("both", "upper"):
        a = half_matching(source, triangle=triangle)
        assert a.mate.get().tolist() == [2, -1, 0]
        assert a.stats["backend"] == "cuda"


def test_wrong_weights_on_the_device_are_named():
    indptr, indices = np.array([0, 1, 2]), np.array([1, 0], np.int32)
    for weights, says in (
        ([1.0, np.inf], "a weight is inf"),
        ([np.nan, np.nan], "a weight is nan"),
        ([1, 2], "other"),
    ):
        with pytest.raises(ValueError, match=says):
            half_matching(on_device((indptr, indices, np.array(weights))))


def test_a_loop_may_have_any_weight():
    indptr, indices = np.array([0, 2, 4]), np.array([0, 1, 0, 1], np.int32)
    source = on_device((indptr, indices, np.array([np.nan, 1.5, 1.5, np.inf])))
    a = half_matching(source)
    assert a.mate.get().tolist() == [1, 0]
    assert a.objective == 1.5


def test_loops_and_rows_without_edges():
    indptr, indices = np.array([0, 2, 2, 4]), np.array([0, 2, 0, 2], np.int32)
    source = on_device((indptr, indices, np.array([9, 1, 1, 7], np.int32)))
    a = half_matching(source)
    assert a.mate.get().tolist() == [2, -1, 0]
    assert (a.objective, a.bound) == (1, 1)
