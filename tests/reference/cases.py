"""Graphs for the tests of the paper's kernels on the CPU, what holds of each run, one BFS level.

The checks share no code with what they check.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from gpumatch.contracts import MatchingTask
from gpumatch.reference import deveci2013 as reference
from gpumatch.reference.deveci2013 import ALGORITHMS, Flags
from gpumatch.reference.interleaving import Grid
from tests.bfs_levels import BfsState, check_bfs_level
from tests.cpu.matching.cases import FreeRun, unmatched
from tests.cpu.matching.cases import graph as graph_of
from tests.cpu.matching.cases import random as uniform

LAUNCHES = ["ct", "mt"]
L0, L0_RIGHT_PATHS = 0, 2

# -- graphs ----------------------------------------------------------------------------------------


def chain(length):
    """A path of 2 * length edges less one, on which a greedy start can go wrong everywhere."""
    return graph_of(length, length, [(i, i) for i in range(length)] + chain_links(length))


def chain_links(length):
    return [(i, i + 1) for i in range(length - 1)]


def complete(nrows, ncols):
    return graph_of(nrows, ncols, product(range(nrows), range(ncols)))


def layered(width, depth):
    """Complete between consecutive layers: all augmenting paths have the same length."""
    edges = []
    for layer, i, j in product(range(depth), range(width), range(width)):
        edges.append((layer * width + i, layer * width + j))
        if layer + 1 < depth:
            edges.append((layer * width + i, (layer + 1) * width + j))
    return graph_of(width * depth, width * depth, edges)


def hubs(nhubs, nleaves):
    """Some columns next to all rows, and columns that share few rows."""
    edges = list(product(range(nleaves), range(nhubs)))
    edges += [(i // 3, nhubs + i) for i in range(nleaves)]
    return graph_of(nleaves, nhubs + nleaves, edges)


def figure_1():
    """The paper's Figure 1: rows r1, r2, r3 and columns c1, c2 are 0, 1, 2 and 0, 1."""
    return graph_of(3, 2, [(0, 0), (0, 1), (1, 1), (2, 1)])


def two_trees_two_ends():
    """Roots 4 and 5, each with two children that end at rows 0 and 1: selections can cross."""
    children = [(0, 0), (1, 1), (0, 2), (1, 3)]
    mates = [(2, 0), (3, 1), (4, 2), (5, 3)]
    roots = [(2, 4), (3, 4), (4, 5), (5, 5)]
    return graph_of(6, 6, children + mates + roots)


CASES = {
    "0 x 0": graph_of(0, 0, []),
    "0 x 3": graph_of(0, 3, []),
    "3 x 0": graph_of(3, 0, []),
    "no edges": graph_of(3, 4, []),
    "one edge": graph_of(1, 1, [(0, 0)]),
    "chain 2": chain(2),
    "chain 25": chain(25),
    "star of a row": complete(1, 9),
    "star of a column": complete(9, 1),
    "complete 7 x 7": complete(7, 7),
    "complete 3 x 11": complete(3, 11),
    "complete 11 x 3": complete(11, 3),
    "uniform square": uniform(60, 60, 150, seed=1),
    "uniform wide": uniform(30, 80, 140, seed=2),
    "uniform tall": uniform(80, 30, 140, seed=3),
    "uniform dense": uniform(25, 25, 200, seed=4),
    "layered": layered(4, 6),
    "hubs": hubs(3, 24),
    "figure 1": figure_1(),
    "two trees, two ends": two_trees_two_ends(),
}
CASE = pytest.mark.parametrize("graph", CASES.values(), ids=CASES)
ALGORITHM = pytest.mark.parametrize("algorithm", ALGORITHMS)
LAUNCH = pytest.mark.parametrize("launch", LAUNCHES)


def crossing_start():
    """Both trees of `two_trees_two_ends` complete, both ends unmatched."""
    graph = two_trees_two_ends()
    mates = np.full(6, -1, np.int32), np.full(6, -1, np.int32)
    for row, column in [(2, 0), (3, 1), (4, 2), (5, 3)]:
        mates[0][row], mates[1][column] = column, row
    return graph, mates


# -- checks, which share no code with what they check ----------------------------------------------


def edges_of(graph):
    return [
        (int(row), column)
        for column in range(graph.ncols)
        for row in graph.col_indices[graph.col_indptr[column] : graph.col_indptr[column + 1]]
    ]


def matching_size(graph, row_to_col, col_to_row):
    """The size of the matching, which must be one."""
    matched = [(row, int(col)) for row, col in enumerate(row_to_col) if col >= 0]
    assert matched == sorted((int(row), col) for col, row in enumerate(col_to_row) if row >= 0)
    assert set(matched) <= set(edges_of(graph))
    unmatched = np.concatenate([row_to_col[row_to_col < 0], col_to_row[col_to_row < 0]])
    assert set(unmatched.tolist()) <= {-1}
    return len(matched)


def konig_cover_size(graph, row_to_col, col_to_row):
    """The size of the vertex cover that a maximum matching gives, which must cover every edge."""
    rows, columns = set(), {c for c in range(graph.ncols) if col_to_row[c] < 0}
    growing = True
    while growing:
        reached = {row for row, column in edges_of(graph) if column in columns}
        mates = {int(row_to_col[row]) for row in reached} - {-1}
        growing = not (reached <= rows and mates <= columns)
        rows |= reached
        columns |= mates
    cover_columns = set(range(graph.ncols)) - columns
    assert all(row in rows or column in cover_columns for row, column in edges_of(graph))
    return len(rows) + len(cover_columns)


def maximum_size(graph):
    rows, cols = np.array(edges_of(graph), dtype=np.int32).reshape(-1, 2).T
    if len(rows) == 0:
        return 0
    matrix = coo_array((np.ones(len(rows)), (rows, cols)), shape=(graph.nrows, graph.ncols))
    return int(np.count_nonzero(maximum_bipartite_matching(matrix.tocsr()) >= 0))


class Recorder:
    """A control that checks the caller's arrays at every tick and phase."""

    def __init__(self, graph, mates, stop_at_tick=None):
        self.graph, self.mates, self.stop_at_tick = graph, mates, stop_at_tick
        self.ticks, self.phases = 0, []

    def tick(self, matched):
        assert matched == matching_size(self.graph, *self.mates)
        self.ticks += 1
        assert self.ticks < 1000, "the run does not end"
        return self.ticks == self.stop_at_tick

    def phase(self, **numbers):
        assert numbers["matched"] == matching_size(self.graph, *self.mates)
        self.phases.append(numbers)


def solve(graph, algorithm, launch, seed, start=None):
    """Run to the end, check all that holds of every run, and return the mates and phases."""
    mates = unmatched(graph) if start is None else (start[0].copy(), start[1].copy())
    begin = matching_size(graph, *mates)
    matched_columns = mates[1] >= 0
    recorder = Recorder(graph, mates)
    task = MatchingTask(graph, *mates, recorder, seed=seed)
    assert reference.run(task, algorithm=algorithm, launch=launch)
    assert np.all(mates[1][matched_columns] >= 0)
    check_phases(begin, recorder.phases, may_stall=algorithm == "apsb-gpubfs-wr")
    return mates, recorder.phases


def check_phases(begin, phases, may_stall):
    """Every phase but the last finds paths and augments some, at most one a path."""
    before, stalled = begin, False
    for phase in phases[:-1]:
        assert phase["found"] > 0
        assert 0 <= phase["matched"] - before <= phase["found"]
        grew = phase["matched"] > before
        assert grew or (may_stall and not stalled)
        before, stalled = phase["matched"], not grew
    assert (phases[-1]["found"], phases[-1]["matched"]) == (0, before)
    assert all(phase["launches"] == phase["levels"] + 3 for phase in phases)


# -- the first levels of a phase ------------------------------------------------------------------


class OneLevel:
    """The arrays around the first `levels` BFS kernels of a phase."""

    def __init__(self, graph, mates, *, l0, with_root, seed, launch="mt"):
        self.graph, self.l0, self.level = graph, l0, l0
        self.row_to_col, self.col_to_row = mates[0].copy(), mates[1].copy()
        self.bfs_array = np.empty(graph.ncols, np.int32)
        self.root = np.empty(graph.ncols, np.int32) if with_root else None
        self.predecessor = np.full(graph.nrows, -1, np.int32)
        self.flags, self.grid = Flags(), Grid(launch, seed)
        reference.init_bfs_array(self.bfs_array, self.col_to_row, l0, self.root, grid=self.grid)

    def state(self):
        arrays = self.bfs_array, self.row_to_col, self.predecessor, self.root
        return BfsState(*(None if array is None else array.copy() for array in arrays))

    def expand(self):
        """Run one BFS kernel; the states before and after."""
        before, graph = self.state(), self.graph
        self.flags.vertex_inserted = False
        columns = graph.col_indptr, graph.col_indices, graph.ncols
        shared = (self.level, self.bfs_array, *columns, self.row_to_col)
        own = (self.predecessor, self.flags)
        if self.root is None:
            reference.gpubfs(*shared, *own, l0=self.l0, grid=self.grid)
        else:
            reference.gpubfs_wr(*shared, self.root, *own, l0=self.l0, grid=self.grid)
        self.level += 1
        return before, self.state()

    def check(self, before, after):
        graph = self.graph
        check_bfs_level(
            self.level - 1, before, after, graph.col_indptr, graph.col_indices, l0=self.l0
        )


def half_matched(graph):
    mates = unmatched(graph)
    reference.cheap(MatchingTask(graph, *mates, FreeRun(), seed=0))
    for column in range(0, graph.ncols, 5):
        if mates[1][column] >= 0:
            mates[0][mates[1][column]] = mates[1][column] = -1
    return mates
