"""A matching kept on a device: its kernels on the CPU, threads in any order."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cupy")

from gpumatch.bipartite import BipartiteGraph
from gpumatch.cuda.live import graph as module
from gpumatch.matching import maximum_matching
from tests.cuda.emulator import COMPILER, Emulator, lead_drivers_here

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

BLOCK = 64


@pytest.fixture(scope="module")
def emulators():
    return {
        module.LISTS: Emulator(module.LISTS, {}),
        module.TREES: Emulator(module.TREES, {"kBlock": BLOCK, "kLaneDegree": 2}),
    }


@pytest.fixture(autouse=True)
def device(emulators, monkeypatch):
    lead_drivers_here(monkeypatch, emulators, module, block=BLOCK)
    return emulators


def live(A):
    """The live graph of a matrix, without a matching."""
    indptr, indices = module.distinct_rows(*_csr(A), A.shape)
    mates = (module.memory.unmatched(size) for size in A.shape)
    return module.LiveGraph(BipartiteGraph.of_rows(indptr, indices, A.shape), tuple(mates))


def _csr(A):
    graph = BipartiteGraph(A)
    return module.cp.asarray(graph.indptr), module.cp.asarray(graph.indices)


def edges(rng, A, count):
    return (rng.integers(0, size, count).astype(np.int32) for size in A.shape)


def check(graph, A):
    """Check the lists, the pairs and the cover."""
    rows, cols = A.nonzero()
    indptr, indices = graph.csr()
    assert np.array_equal(np.repeat(np.arange(A.shape[0]), np.diff(indptr)), rows)
    assert np.array_equal(indices, cols)
    matched = (graph.row_to_col >= 0).nonzero()[0]
    assert A[matched, graph.row_to_col[matched]].all()
    assert np.array_equal(graph.col_to_row[graph.row_to_col[matched]], matched)
    assert matched.size == (graph.col_to_row >= 0).sum() == maximum_matching(A).size
    in_rows, in_cols = graph.cover()
    assert in_rows.sum() + in_cols.sum() == matched.size
    assert (in_rows[rows] | in_cols[cols]).all()


@pytest.mark.parametrize("seed", range(12))
def test_changes_end_as_from_scratch(seed, device, monkeypatch):
    """Some lists move, some runs are long, and a phase takes several launches."""
    rng = np.random.default_rng(seed)
    for emulator in device.values():
        emulator.vary(rng)
    monkeypatch.setattr(module, "LEVELS_A_LAUNCH", 1 + seed % 3)
    A = rng.random(rng.integers(1, 60, 2)) < rng.choice([0.02, 0.05, 0.1])
    graph = live(A)
    for change in range(4):
        stats = graph.solve()
        assert stats["phases"] <= 2 + stats["found"]
        check(graph, A)
        if change % 2 and A.any():
            rows, cols = A.nonzero()
            pick = rng.choice(rows.size, max(1, rows.size // 3), replace=False)
            parted = int((graph.row_to_col[rows[pick]] == cols[pick]).sum())
            pick = np.concatenate([pick, pick[:2]])
            rows, cols = rows[pick].astype(np.int32), cols[pick].astype(np.int32)
            assert graph.has_edges(rows, cols).all()
            assert graph.remove_edges(rows, cols) == parted
            A[rows, cols] = False
        else:
            rows, cols = edges(rng, A, 25)
            if change == 2:
                rows[:] = rows[0]
            graph.add_edges(rows, cols)
            A[rows, cols] = True


def test_trees_are_numbered_anew_before_numbers_run_out(device):
    A = np.eye(5, dtype=bool)
    graph = live(A)
    graph.free = 2**31 - 3
    graph.solve()
    check(graph, A)
    assert graph.free < 2**20
