"""Divided forests with the kernels of a GPU on the CPU, their threads in any order: one rank."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from scipy.sparse.csgraph import maximum_bipartite_matching

pytest.importorskip("cupy")

from gpumatch.bipartite import BipartiteGraph
from gpumatch.cuda.distributed import forests as kernels_of_forests
from gpumatch.distributed.blocks import Split
from gpumatch.distributed.forests import Forests
from tests.cpu.matching.cases import CASES, FreeRun, check_maximum, random
from tests.cuda.emulator import COMPILER, Emulator, lead_drivers_here

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")


class Alone:
    """The communicator of a single rank."""

    rank, size, stopped, brought = 0, 1, False, 0

    def __init__(self):
        self.control = FreeRun()

    def step(self, name):
        return contextlib.nullcontext()

    def tick(self, matched):
        pass

    def wants_to_stop(self, matched):
        return False

    def total(self, number):
        return number

    def allreduce(self, array, how):
        return array

    def allgather(self, array):
        return [array]

    def exchange(self, parts):
        self.brought = len(parts[0])
        return parts


@pytest.fixture(scope="module")
def emulator():
    return Emulator(kernels_of_forests.SOURCE, {})


@pytest.fixture
def matched(emulator, monkeypatch):
    """The forests after a whole run on a graph."""
    kernels = {kernels_of_forests.SOURCE: emulator}
    lead_drivers_here(monkeypatch, kernels, kernels_of_forests, block=64)

    def run(graph, starts=True):
        rows, cols = (Split(np.array([0, count]), 0) for count in graph.shape)
        forests = Forests(graph, rows, cols, Alone(), kernels_of_forests)
        if starts:
            forests.start()
        assert forests.search()
        assert forests.matched == check_maximum(graph, *forests.mates())
        in_rows, in_cols = forests.cover()
        assert in_rows.sum() + in_cols.sum() == forests.matched
        assert (in_rows[graph.edges()[0]] | in_cols[graph.edges()[1]]).all()
        return forests

    return run


@pytest.mark.parametrize("starts", [True, False])
@pytest.mark.parametrize("case", [name for name in CASES if name != "large"])
def test_known_graphs(matched, case, starts):
    graph, size = CASES[case]
    assert matched(graph, starts).matched == (
        size if size is not None else (maximum_bipartite_matching(graph.to_csr()) >= 0).sum()
    )


def test_random_graphs_in_any_order(matched, emulator):
    rng = np.random.default_rng(3)
    for _ in range(25):
        emulator.seed, emulator.odds = int(rng.integers(2**31)), int(rng.choice([2, 6, 30]))
        shape = rng.integers(1, 70, 2).tolist()
        matched(random(*shape, int(rng.integers(1, 4 * max(shape))), int(rng.integers(99))))


def test_offsets_of_64_bits(matched):
    graph, _ = CASES["sparse"]
    wide = BipartiteGraph(graph.to_csr())
    wide._rows = wide.indptr.astype(np.int64), wide.indices
    assert matched(wide).matched == matched(graph).matched
