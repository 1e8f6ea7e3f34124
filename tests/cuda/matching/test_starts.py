"""The device's starts: what they leave is a maximal matching, and better than the cheap one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import graphs
from gpumatch import BipartiteGraph, maximum_matching, verify
from gpumatch.certificates import check_matching
from gpumatch.contracts import MatchingTask
from gpumatch.dispatch import registry

pytestmark = pytest.mark.gpu

STARTS = ["cheap", "min-degree"]
EVERY_START = pytest.mark.parametrize("start", STARTS)
FAMILIES = {
    "chain": ("chain", 3_000),
    "stars": ("stars", 50, 100),
    "complete": ("complete", 60, 90),
    "hubs alone": ("complete", 1_100, 1_200),
    "hubs with leaves": ("stars", 60, 3_000),
    "empty": ("empty", 5, 4),
    "uniform": ("uniform", 5_000, 3),
    "sparse": ("uniform", 5_000, 2),
    "grid": ("grid", 80, 0.65),
    "kron": ("kron", 11),
    "rope": ("rope", 3_000),
}


def left_by(start, graph, seed=0, initial=()):
    """The mates that a start leaves, as device arrays."""
    import cupy as cp

    from gpumatch.running.control import Control

    row_to_col = cp.full(graph.nrows, -1, cp.int32)
    col_to_row = cp.full(graph.ncols, -1, cp.int32)
    for row, col in initial:
        row_to_col[row], col_to_row[col] = col, row
    run = registry.STARTS[start]["cuda"].run_with({})
    assert run(MatchingTask(graph, row_to_col, col_to_row, Control(), seed=seed))
    return row_to_col, col_to_row


def assert_maximal(graph, row_to_col, col_to_row):
    check_matching(graph, row_to_col, col_to_row)
    rows, cols = graph.edges()
    assert not bool(((row_to_col[rows] < 0) & (col_to_row[cols] < 0)).any())


@pytest.mark.parametrize("rcp", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
@EVERY_START
def test_no_edge_is_left_between_free_vertices(start, name, rcp):
    A = graphs.make(*FAMILIES[name], rcp=rcp)
    graph = BipartiteGraph(A).to_device()
    for seed in range(3):
        assert_maximal(graph, *left_by(start, graph, seed))
    m = maximum_matching(graph, init=start)
    assert verify(graph, m).size == maximum_matching(A, backend="cpu").size


@pytest.mark.parametrize("shared", [100, 1_500])
def test_a_team_takes_the_neighbour_of_least_degree(shared):
    """Each row has many columns with all others and one alone: warps and blocks find that one."""
    nrows = 1_100
    crowd = np.ones((nrows, shared), bool)
    A = sp.hstack([crowd[:, : shared // 2], sp.eye_array(nrows), crowd[:, shared // 2 :]])
    whole = BipartiteGraph(A).to_device()
    graph = BipartiteGraph((whole.indptr, whole.indices, whole.shape))
    row_to_col, _ = left_by("min-degree", graph)
    assert (row_to_col.get() == shared // 2 + np.arange(nrows)).all()


@EVERY_START
@pytest.mark.parametrize("form", ["rows", "columns"])
def test_one_direction_of_the_graph_is_enough(form, start):
    whole = BipartiteGraph(graphs.make("kron", 11)).to_device()
    if form == "rows":
        graph = BipartiteGraph((whole.indptr, whole.indices, whole.shape))
    else:
        transposed = (whole.col_indptr, whole.col_indices, whole.shape[::-1])
        graph = BipartiteGraph(transposed).transpose()
    assert_maximal(whole, *left_by(start, graph))
    assert graph.has_rows != graph.has_cols


@pytest.mark.parametrize("family", [("uniform", 50_000, 3), ("grid", 250, 0.65), ("kron", 14)])
def test_least_degrees_leave_less_than_the_first_neighbours(family):
    graph = BipartiteGraph(graphs.make(*family)).to_device()
    left = {}
    for init in STARTS:
        m = maximum_matching(graph, init=init)
        left[init] = m.size - m.stats["start_size"]
    assert 1.3 * left["min-degree"] < left["cheap"]


@EVERY_START
def test_a_given_matching_is_extended(start):
    graph = BipartiteGraph(graphs.make("uniform", 2_000, 3)).to_device()
    rows, cols = (ends.get() for ends in graph.edges())
    given = [(int(rows[e]), int(cols[e])) for e in (0, 600, 3_000)]
    mates = left_by(start, graph, initial=given)
    assert_maximal(graph, *mates)
    assert all(int(mates[0][row]) == col for row, col in given)


@EVERY_START
def test_int64_offsets(start):
    graph = BipartiteGraph(graphs.make("kron", 10)).to_device()
    graph._rows = (graph.indptr.astype(np.int64), graph.indices)
    graph._cols = (graph.col_indptr.astype(np.int64), graph.col_indices)
    assert_maximal(graph, *left_by(start, graph))


@pytest.mark.parametrize("family", [("trace", 400), ("delaunay", 17)])
def test_a_mesh_in_order_takes_no_longer_than_a_permuted_one(family):
    """Choices that follow the numbers leave paths across the whole mesh, for phase after phase.

    The levels of one run depend on the last few free vertices, so medians are compared.
    """
    levels, sizes = [], set()
    for rcp in (False, True):
        graph = BipartiteGraph(graphs.make(*family, rcp=rcp)).to_device()
        runs = [maximum_matching(graph) for _ in range(7)]
        sizes.update(m.size for m in runs)
        levels.append(np.median([m.stats["levels"] for m in runs]))
    assert len(sizes) == 1
    in_order, permuted = levels
    assert in_order < 4 * permuted
