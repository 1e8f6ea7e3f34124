"""Code that host and device share, with arrays of a stand-in for CuPy: see `emulator.device`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch.costs.base
from gpumatch.bipartite import BipartiteGraph
from gpumatch.costs import Costs, as_costs

pytest.importorskip("cupy")

from gpumatch.cuda import memory
from tests.cuda.emulator import COMPILER

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")


@pytest.fixture
def cp(stand_in):
    return stand_in


def random_csr(rng, shape):
    return csr_array(rng.integers(1, 99, shape) * (rng.random(shape) < 0.3))


def arrays_of(cp, matrix):
    return cp.asarray(matrix.indptr), cp.asarray(matrix.indices), matrix.shape


# -- graphs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["canonical", "any order", "edges", "dense"])
def test_graphs_have_the_edges_that_they_are_given(cp, form):
    rng = np.random.default_rng(2)
    for shape in ((1, 1), (7, 30), (30, 7), (5, 0), (0, 5)):
        pattern = random_csr(rng, shape)
        if form == "canonical":
            graph = BipartiteGraph(arrays_of(cp, pattern))
        elif form == "any order":
            order = np.concatenate(
                [np.repeat(rng.permutation(pattern.indices[a:b]), 2)
                 for a, b in zip(pattern.indptr, pattern.indptr[1:])] or [[]]
            ).astype(np.int64)  # fmt: skip
            graph = BipartiteGraph((cp.asarray(2 * pattern.indptr), cp.asarray(order), shape))
        elif form == "edges":
            order = rng.permutation(np.repeat(np.arange(pattern.nnz), 2))
            ends = (cp.asarray(end[order]) for end in pattern.nonzero())
            graph = BipartiteGraph.from_edges(*ends, shape)
        else:
            graph = BipartiteGraph(cp.asarray(pattern.toarray()))
        assert graph.on_device
        own = graph.to_host()
        assert not own.on_device
        for there, here, expected in (
            ((graph.indptr, graph.indices), (own.indptr, own.indices), pattern),
            ((graph.col_indptr, graph.col_indices), (own.col_indptr, own.col_indices),
             csr_array(pattern.T)),
        ):  # fmt: skip
            for array, of_host, known in zip(there, here, (expected.indptr, expected.indices)):
                assert isinstance(array, cp.ndarray)
                assert array.dtype == np.int32
                assert array.tolist() == of_host.tolist() == known.tolist()
        again = own.to_device()
        assert again.on_device
        assert again.indices.tolist() == own.indices.tolist()
        assert again.to_device() is again


def test_what_is_no_graph_is_told(cp):
    indptr, indices = cp.asarray(np.array([0, 1, 3])), cp.asarray(np.array([0, 2, 5]))
    with pytest.raises(ValueError, match=r"indices: 5 lies outside \[0, 3\)"):
        BipartiteGraph((indptr, indices, (2, 3)))
    with pytest.raises(ValueError, match="must live on one device; got one on the host"):
        BipartiteGraph((indptr, indices.get(), (2, 6)))
    with pytest.raises(ValueError, match="must live on one device; got one on the host"):
        BipartiteGraph.from_edges(indices, indices.get())


def test_edges_are_found(cp):
    rng = np.random.default_rng(1)
    for shape in ((1, 1), (7, 30), (30, 7), (5, 0), (0, 5)):
        pattern = random_csr(rng, shape)
        for graph in (
            BipartiteGraph(arrays_of(cp, pattern)),
            BipartiteGraph(arrays_of(cp, pattern.T.tocsr())).transpose(),
        ):
            assert graph.on_device
            rows, cols = (each.ravel() for each in np.indices(shape))
            places, are_edges = graph.find(cp.asarray(rows), cp.asarray(cols))
            assert are_edges.tolist() == (pattern.toarray()[rows, cols] != 0).tolist()
            of_rows, of_cols = (ends[places[are_edges]].get() for ends in graph.edges())
            assert np.array_equal(of_rows, rows[are_edges.get()])
            assert np.array_equal(of_cols, cols[are_edges.get()])


# -- costs -----------------------------------------------------------------------------------------

KINDS = {
    "dense int32": (np.int32, 1.0, 0.0),
    "dense int64": (np.int64, 1.0, 0.0),
    "dense float32": (np.float32, 1.0, 0.3),
    "dense float64": (np.float64, 1.0, 0.3),
    "sparse int64": (np.int64, 0.4, 0.0),
    "sparse float32": (np.float32, 0.4, 0.3),
}


def both_of(cp, rng, kind, shape):
    """The same costs on the host and on the device."""
    dtype, density, forbidden = KINDS[kind]
    values = rng.integers(-40, 60, shape).astype(dtype)
    if forbidden:
        values[rng.random(shape) < forbidden] = math.inf
    if kind.startswith("dense"):
        return as_costs(values), as_costs(cp.asarray(values))
    rows, cols = (rng.random(shape) < density).nonzero()
    indptr = np.searchsorted(rows, np.arange(shape[0] + 1)).astype(np.int32)
    parts = indptr, cols.astype(np.int32), values[rows, cols]
    return as_costs((*parts, shape)), as_costs((*map(cp.asarray, parts), shape))


def told(value):
    """What costs, a graph or arrays say, in numbers of Python."""
    if isinstance(value, BipartiteGraph):
        return [value.shape, *(ends.tolist() for ends in value.edges())]
    if isinstance(value, Costs):
        return [
            value.shape, value.low, value.high, value.largest, np.dtype(value.dtype),
            np.dtype(value.problem_dtype), value.is_sparse,
            value.dense().tolist(), told(value.pattern()),
        ]  # fmt: skip
    if isinstance(value, tuple):
        return list(map(told, value))
    return value.tolist()


def limits_of(xp, costs):
    return xp.asarray(np.arange(costs.shape[0]) * 3 - 10)


def some_rows_and_columns(costs):
    """In another order, on the host."""
    nrows, ncols = costs.shape
    return np.arange(nrows)[::-2], np.random.default_rng(3).permutation(ncols)[: ncols // 2 + 1]


def mates_of(xp, costs):
    """Of every second row of those of which pairs are there."""
    graph = costs.pattern().to_host()
    found = [cols[0] if len(cols) else -1 for cols in np.split(graph.indices, graph.indptr[1:-1])]
    return xp.asarray(np.where(np.arange(costs.shape[0]) % 2, -1, found).astype(np.int32))


WAYS = {
    "itself": lambda xp, costs: costs,
    "tiles": lambda xp, costs: tuple(costs.tile(rows)[2] for rows in costs.tiles()),
    "problem": lambda xp, costs: costs.problem(False, False),
    "transposed": lambda xp, costs: costs.problem(False, True),
    "transpose": lambda xp, costs: costs.transpose(),
    "as_float": lambda xp, costs: costs.as_float(),
    "restricted": lambda xp, costs: costs.restricted(*some_rows_and_columns(costs)),
    "up_to": lambda xp, costs: costs.up_to(7),
    "below": lambda xp, costs: costs.below(limits_of(xp, costs)),
    "within": lambda xp, costs: costs.within(limits_of(xp, costs), maximize=False),
    "of_mates": lambda xp, costs: costs.of_mates(mates_of(xp, costs)),
    "at": lambda xp, costs: costs.at(*costs.pattern().edges()),
    "allows": lambda xp, costs: costs.allows(*xp.asarray(np.indices(costs.shape)).reshape(2, -1)),
    "of_pairs": lambda xp, costs: costs.of_pairs(
        xp.asarray(np.arange(costs.shape[0] + 1)),
        xp.asarray(np.zeros(costs.shape[0], np.int32)),
        xp.asarray(np.arange(costs.shape[0])),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_costs_of_a_device_are_those_of_the_host(cp, kind, way, monkeypatch):
    monkeypatch.setattr(gpumatch.costs.base, "DEVICE_TILE", 40)
    rng = np.random.default_rng(4)
    for shape in ((6, 9), (9, 6), (1, 1), (3, 0)):
        if way in ("of_pairs", "at") and 0 in shape:
            continue
        here, there = both_of(cp, rng, kind, shape)
        assert (here.on_device, there.on_device) == (False, True)
        found = WAYS[way](cp, there)
        assert getattr(found, "on_device", True)
        expected, found = told(WAYS[way](np, here)), told(found)
        if way == "tiles":
            expected, found = (np.concatenate(one or [[]]).tolist() for one in (expected, found))
        assert found == expected


@pytest.mark.parametrize("kind", KINDS)
def test_costs_are_moved(cp, kind, monkeypatch):
    asked = []
    monkeypatch.setattr(memory, "require_memory", lambda *given: asked.append(given))
    here, there = both_of(cp, np.random.default_rng(5), kind, (6, 9))
    asked.clear()
    for moved in (here.to_device(), there):
        assert moved.on_device
        assert moved.to_device() is moved
        assert told(moved) == told(here)
        back = moved.to_host()
        assert not back.on_device
        assert told(back) == told(here)
    assert asked[0] == (here.nbytes, "a copy of the costs")


@pytest.mark.parametrize("largest", [2**25 - 1, 2**25, 2**31 - 1])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_of_a_device_stay_as_short_as_they_are(cp, dtype, largest):
    """The host's problems leave room in int32; the device's are not copied for that."""
    costs = as_costs(cp.asarray(np.array([[1, largest]], dtype)))
    is_short = dtype == np.int32 or largest < 2**25
    assert costs.problem_dtype == (np.int32 if is_short else np.int64)
    assert costs.to_host().problem_dtype == (np.int32 if largest < 2**25 else np.int64)
