"""The bytes that `docs/algorithms/` states are those that runs on the CPU take."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch
import graphs
from gpumatch import BipartiteGraph
from gpumatch.contracts import AssignmentTask, MatchingTask, Solution
from gpumatch.costs import as_costs
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.dispatch import registry
from gpumatch.running import kept_memory
from gpumatch.running.control import Control
from tests.cpu.assignment.tuned import tune
from tests.documents import ROOT, table

COMPLEXITY = ROOT / "docs" / "algorithms" / "complexity.md"
MEMORY = table(COMPLEXITY, "| on the CPU | bytes a vertex, at most |")
SHAPES = {"square": ("uniform", 40_000, 3), "wide": ("lopsided", 20_000, 80_000, 3)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("names", "most"), MEMORY, ids=[names for names, _ in MEMORY])
def test_table_of_memory_on_the_cpu(names, most, shape):
    matrix = graphs.make(*SHAPES[shape])
    for graph in map(BipartiteGraph, (matrix, matrix.T)):
        _ = graph.indptr, graph.col_indptr
        for name in names.split(", "):
            assert peak_memory(home_of(name), graph) <= int(most) * sum(graph.shape)


@pytest.mark.parametrize("number", [np.float64, np.int64], ids=["floats", "integers"])
@pytest.mark.parametrize(("row", "ncols"), [(0, 9000), (2, 13_500)], ids=["square", "wide"])
def test_table_of_memory_of_the_sparse_engine(row, ncols, number, monkeypatch):
    page = ROOT / "docs" / "algorithms" / "assignment.md"
    shown = table(page, "| problem | bytes an entry | bytes a vertex |")
    an_entry, a_vertex = map(int, shown[row][1:])
    if number is np.int64:
        an_entry, a_vertex = an_entry + 8, a_vertex + 16
    monkeypatch.setattr(kept_memory, "LEAST", sys.maxsize)  # so that all memory is traced
    untried = sparse_tuning.SPARE._replace(bids=0, unmatched=-1)
    tune(monkeypatch, sparse_tuning, trial_with_spare=untried)  # the auction takes most memory
    matrix = weighted(9000, ncols, number)
    costs = as_costs(matrix)
    run = registry.table("assignment")["engine"].homes["cpu"].run_with({})

    def task():
        solution = Solution.empty(costs.shape, is_integer=costs.is_integer)
        return AssignmentTask(costs, solution, Control())

    peak = traced_peak(run, task)
    most = an_entry * matrix.nnz + a_vertex * sum(matrix.shape)
    assert 0.8 * most < peak < most + 2**14


def weighted(nrows, ncols, number):
    """A matrix of random costs in which all rows can be matched."""
    rng = np.random.default_rng(3)
    rows = np.append(rng.integers(0, nrows, 4 * nrows), np.arange(nrows))
    cols = np.append(rng.integers(0, ncols, 4 * nrows), rng.permutation(ncols)[:nrows])
    matrix = csr_array((np.ones(rows.size), (rows, cols)), shape=(nrows, ncols))
    matrix.data = rng.integers(1, 10**6, matrix.nnz).astype(number)
    return matrix


def home_of(name):
    """The function of an algorithm or a start on the CPU."""
    if name in registry.starts("cpu"):
        return registry.STARTS[name]["cpu"].run_with({})
    algorithms = gpumatch.algorithms()
    return next(a.homes["cpu"] for a in algorithms if a.name == name).run_with({})


def peak_memory(run, graph):
    """Bytes that a run from no matching takes at most, beside the graph and the mates."""

    def task():
        mates = np.full(graph.nrows, -1, np.int32), np.full(graph.ncols, -1, np.int32)
        return MatchingTask(graph, *mates, Control())

    return traced_peak(run, task)


def traced_peak(run, task):
    """Bytes that a run of a new task takes at most."""
    run(task())  # compiling takes memory, too
    measured = task()
    tracemalloc.start()
    try:
        run(measured)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
