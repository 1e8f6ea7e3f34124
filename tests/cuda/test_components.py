"""Strong components by the kernels: on the CPU, their threads in any order, and on a GPU."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array, random_array
from scipy.sparse.csgraph import connected_components

pytest.importorskip("cupy")

from gpumatch.bipartite import BipartiteGraph
from gpumatch.cpu import csr as cpu_csr
from gpumatch.cuda import components
from graphs.sweeps import sweep
from tests.cuda.emulator import COMPILER, Emulator, lead_drivers_here

# -- what is searched -----------------------------------------------------------------------------


def random_pattern(rng):
    """Few or many components, of one vertex or of many."""
    n = int(rng.integers(1, 120))
    return random_array((n, n), density=min(1, rng.choice([0.7, 1.1, 1.6, 4]) / n), rng=rng)


def path(n, rng):
    """A path of all vertices, numbered at random."""
    order = rng.permutation(n)
    return csr_array((np.ones(n - 1), (order[:-1], order[1:])), shape=(n, n))


def cycles(n, rng):
    """Cycles of 3 in a path, numbered at random."""
    tails, heads = [np.arange(n - 1)], [np.arange(1, n)]
    tails.append(np.arange(2, n, 3))
    heads.append(np.arange(0, n - 2, 3))
    order = rng.permutation(n)
    arcs = order[np.concatenate(tails)], order[np.concatenate(heads)]
    return csr_array((np.ones(arcs[0].size), arcs), shape=(n, n))


def check(pattern, col_to_row, inside, found):
    """The components are SciPy's, in topological order."""
    component, count = found
    coo = csr_array(pattern).tocoo()
    tails, heads = coo.row, col_to_row[coo.col]
    kept = inside[tails] & np.where(heads >= 0, inside[heads], False)
    tails, heads = tails[kept], heads[kept]
    n = inside.size
    arcs = csr_array((np.ones(tails.size), (tails, heads)), shape=(n, n))
    _, label = connected_components(arcs, connection="strong")
    assert ((component >= 0) == inside).all()
    assert np.unique(component[inside]).tolist() == list(range(count))
    pairs = np.unique(np.column_stack([component[inside], label[inside]]), axis=0)
    assert len(pairs) == count == np.unique(label[inside]).size
    assert (component[tails] <= component[heads]).all()


# -- on the CPU -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def emulator():
    if COMPILER is None:
        pytest.skip("there is no g++")
    constants = {"kLeastSlice": 16, "kPasses": 2}
    return Emulator(components.SOURCE, constants)


@pytest.fixture
def emulated(emulator, monkeypatch):
    """The search with its kernels on the CPU, one block of them: it uses shared memory."""
    emulator.blocks = 1
    lead_drivers_here(monkeypatch, {components.SOURCE: emulator}, components, block=64)
    monkeypatch.setattr(components, "csr", cpu_csr)

    def search(pattern, col_to_row, inside):
        graph = BipartiteGraph(pattern)
        return components.strong_components(graph, col_to_row, inside)

    return search


def everything(n):
    return np.arange(n, dtype=np.int32), np.ones(n, bool)


def test_random_patterns(emulated, emulator):
    rng = np.random.default_rng(2)
    for _ in range(30):
        emulator.seed, emulator.odds = int(rng.integers(2**31)), int(rng.choice([2, 6, 30]))
        pattern = csr_array(random_pattern(rng))
        n = pattern.shape[0]
        col_to_row, inside = rng.permutation(n).astype(np.int32), rng.random(n) < 0.8
        check(pattern, col_to_row, inside, emulated(pattern, col_to_row, inside))


@pytest.mark.parametrize("make", [path, cycles])
def test_a_path_of_all_vertices(emulated, emulator, make):
    emulator.odds = 30
    pattern = make(100, np.random.default_rng(1))
    check(pattern, *everything(100), emulated(pattern, *everything(100)))


def test_short_launches_change_nothing(emulated, emulator, monkeypatch):
    monkeypatch.setattr(components, "_SWEEPS_A_LAUNCH", 1)
    pattern = cycles(90, np.random.default_rng(3))
    check(pattern, *everything(90), emulated(pattern, *everything(90)))


@pytest.mark.parametrize("k", [-1, 1])
def test_a_triangular_pattern(emulated, k):
    pattern = eye_array(40, k=k, format="csr") + eye_array(40, format="csr")
    component, count = emulated(pattern, *everything(40))
    order = np.arange(40)
    assert (component.tolist(), count) == (list(order if k > 0 else order[::-1]), 40)


def test_nothing_inside(emulated):
    found, count = emulated(eye_array(5, format="csr"), np.full(5, -1, np.int32), np.zeros(5, bool))
    assert (found.tolist(), count) == ([-1] * 5, 0)


def test_no_rows(emulated):
    found, count = emulated(csr_array((0, 0)), np.empty(0, np.int32), np.empty(0, bool))
    assert (found.size, count) == (0, 0)


# -- on a GPU -------------------------------------------------------------------------------------

DEVICE = {
    "a sweep of single cells": lambda: sweep(60, 50, 40),
    "a sweep with large components": lambda: sweep(300, 200, bend=0.2),
    "a swirl": lambda: sweep(50, 50, 50, swirl=3.0),
    "a path": lambda: path(200_000, np.random.default_rng(1)),
    "cycles": lambda: cycles(100_000, np.random.default_rng(2)),
    "random": lambda: random_array((50_000, 50_000), density=1.3 / 50_000, rng=3),
    "a hub": lambda: hub(30_000),
}


def hub(n):
    """A path, and a vertex that leads everywhere."""
    everywhere = np.arange(1, n)
    tails = np.concatenate([everywhere[:-1], np.zeros(n - 1, int)])
    heads = np.concatenate([everywhere[1:], everywhere])
    return csr_array((np.ones(tails.size), (tails, heads)), shape=(n, n))


@pytest.mark.gpu
@pytest.mark.parametrize("offsets", [np.int32, np.int64])
@pytest.mark.parametrize("name", DEVICE)
def test_on_the_device(name, offsets):
    import cupy as cp

    pattern = csr_array(DEVICE[name]())
    n = pattern.shape[0]
    rng = np.random.default_rng(5)
    some = rng.permutation(n).astype(np.int32), rng.random(n) < 0.9
    graph = BipartiteGraph(pattern).to_device()
    graph = SimpleNamespace(
        nrows=n, nnz=graph.nnz, indptr=graph.indptr.astype(offsets), indices=graph.indices
    )
    for col_to_row, inside in (everything(n), some):
        found, count = components.strong_components(
            graph, cp.asarray(col_to_row), cp.asarray(inside)
        )
        check(pattern, col_to_row, inside, (found.get(), count))


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["a path", "a sweep with large components"])
def test_with_blocks_that_are_late(name, monkeypatch):
    from gpumatch.cuda import kernels as module

    monkeypatch.setattr(module, "COMPILE_OPTIONS", (*module.COMPILE_OPTIONS, "-DGPUMATCH_STAGGER"))
    module._kernels.cache_clear()
    try:
        test_on_the_device(name, np.int32)
    finally:
        module._kernels.cache_clear()
