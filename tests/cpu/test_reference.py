"""The paper's kernels as interleaved threads: results, races, repairs, and that all runs end."""

from __future__ import annotations

from collections import Counter
from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from gpumatch.bipartite import BipartiteGraph
from gpumatch.cpu import interleaving, reference
from gpumatch.cpu.interleaving import Grid
from gpumatch.cpu.reference import ALGORITHMS, Flags, OpenEdges
from tests.bfs_levels import BfsState, check_bfs_level

LAUNCHES = ["ct", "mt"]
L0, L0_RIGHT_PATHS = 0, 2

# -- graphs ----------------------------------------------------------------------------------------


def graph_of(nrows, ncols, edges):
    """The graph with these (row, column) pairs."""
    pairs = np.array(sorted(set(edges)), dtype=np.int32).reshape(-1, 2)
    indptr = np.searchsorted(pairs[:, 0], np.arange(nrows + 1)).astype(np.int32)
    return BipartiteGraph((indptr, pairs[:, 1].copy(), (nrows, ncols)))


def chain(length):
    """A path of 2 * length edges less one, on which a greedy start can go wrong everywhere."""
    return graph_of(length, length, [(i, i) for i in range(length)] + chain_links(length))


def chain_links(length):
    return [(i, i + 1) for i in range(length - 1)]


def complete(nrows, ncols):
    return graph_of(nrows, ncols, product(range(nrows), range(ncols)))


def uniform(nrows, ncols, nedges, seed):
    rng = np.random.default_rng(seed)
    return graph_of(
        nrows, ncols, zip(rng.integers(nrows, size=nedges), rng.integers(ncols, size=nedges))
    )


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


def unmatched(graph):
    return np.full(graph.nrows, -1, np.int32), np.full(graph.ncols, -1, np.int32)


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


class FreeRun:
    def tick(self, matched):
        return False

    def phase(self, **numbers):
        pass


def solve(graph, algorithm, launch, seed, start=None):
    """Run to the end, check all that holds of every run, and return the mates and phases."""
    mates = unmatched(graph) if start is None else (start[0].copy(), start[1].copy())
    begin = matching_size(graph, *mates)
    matched_columns = mates[1] >= 0
    recorder = Recorder(graph, mates)
    assert reference.run(graph, *mates, recorder, algorithm=algorithm, launch=launch, seed=seed)
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


# -- whole runs ------------------------------------------------------------------------------------


@CASE
@ALGORITHM
@LAUNCH
def test_every_run_ends_with_a_maximum_matching(graph, algorithm, launch):
    best = maximum_size(graph)
    for seed in range(6):
        mates, _ = solve(graph, algorithm, launch, seed)
        assert matching_size(graph, *mates) == best
        assert konig_cover_size(graph, *mates) == best


@CASE
@ALGORITHM
def test_a_given_matching_is_extended(graph, algorithm):
    for seed in range(3):
        start = unmatched(graph)
        assert reference.cheap(graph, *start, FreeRun(), seed=seed)
        mates, _ = solve(graph, algorithm, "ct", seed, start)
        assert matching_size(graph, *mates) == maximum_size(graph)
        solve(graph, algorithm, "mt", seed, mates)


@ALGORITHM
@LAUNCH
def test_many_threads_on_one_graph(algorithm, launch):
    graph = uniform(400, 400, 1000, seed=5)
    start = unmatched(graph)
    reference.cheap(graph, *start, FreeRun(), seed=0)
    mates, _ = solve(graph, algorithm, launch, 0, start)
    assert konig_cover_size(graph, *mates) == maximum_size(graph)


@st.composite
def bipartite_graphs(draw):
    nrows, ncols = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    pairs = st.tuples(st.integers(0, nrows - 1), st.integers(0, ncols - 1))
    return graph_of(nrows, ncols, draw(st.lists(pairs, max_size=40)))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    bipartite_graphs(),
    st.sampled_from(sorted(ALGORITHMS)),
    st.sampled_from(LAUNCHES),
    st.integers(0, 1000),
)
def test_size_is_that_of_networkx(graph, algorithm, launch, seed):
    mates, _ = solve(graph, algorithm, launch, seed)
    peer = nx.Graph()
    peer.add_nodes_from(("row", r) for r in range(graph.nrows))
    peer.add_edges_from((("row", r), ("column", c)) for r, c in edges_of(graph))
    rows = [("row", r) for r in range(graph.nrows)]
    best = len(nx.bipartite.hopcroft_karp_matching(peer, rows)) // 2
    assert matching_size(graph, *mates) == konig_cover_size(graph, *mates) == best


@ALGORITHM
@LAUNCH
def test_a_seed_fixes_the_run_and_another_changes_it(algorithm, launch):
    graph = CASES["uniform dense"]
    matchings = set()
    for seed in range(5):
        once, phases = solve(graph, algorithm, launch, seed)
        again, same_phases = solve(graph, algorithm, launch, seed)
        assert phases == same_phases
        np.testing.assert_array_equal(once[0], again[0])
        matchings.add(tuple(once[0].tolist()))
    assert len(matchings) > 1


def chain_left_to_augment(length):
    """A chain matched along its links: one augmenting path, through every vertex."""
    mates = np.full(length, -1, np.int32), np.full(length, -1, np.int32)
    for row, column in chain_links(length):
        mates[0][row], mates[1][column] = column, row
    return mates


@ALGORITHM
@LAUNCH
def test_phases_of_a_chain(algorithm, launch):
    _, phases = solve(chain(20), algorithm, launch, 0, chain_left_to_augment(20))
    assert phases == [
        {"levels": 20, "launches": 23, "found": 1, "matched": 20},
        {"levels": 1, "launches": 4, "found": 0, "matched": 20},
    ]


@pytest.mark.parametrize(
    ("algorithm", "levels", "found"),
    [
        ("apsb-gpubfs", 2, 1),
        ("apsb-gpubfs-wr", 2, 1),
        ("apfb-gpubfs", 6, 2),
        ("apfb-gpubfs-wr", 5, 2),
    ],
)
def test_apsb_stops_at_the_shortest_paths_and_wr_at_the_first_of_a_root(algorithm, levels, found):
    """A tree with a path of two levels and a tail of six, and a chain of five levels."""
    tail = 6
    edges = [(i, i) for i in range(1, tail)] + [(i, i - 1) for i in range(1, tail)] + [(0, 1)]
    edges += [(tail + i, tail + j) for i, j in edges_of(chain(5))]
    mates = np.full(tail + 5, -1, np.int32), np.full(tail + 5, -1, np.int32)
    for i in range(1, tail):
        mates[0][i] = mates[1][i] = i
    for row, column in chain_links(5):
        mates[0][tail + row], mates[1][tail + column] = tail + column, tail + row
    graph = graph_of(tail + 5, tail + 5, edges)

    _, phases = solve(graph, algorithm, "mt", 0, mates)
    assert (phases[0]["levels"], phases[0]["found"]) == (levels, found)


# -- stopping --------------------------------------------------------------------------------------


@ALGORITHM
def test_control_can_stop_it_anywhere(algorithm, monkeypatch):
    monkeypatch.setattr(interleaving, "TURNS_PER_HEARTBEAT", 3)
    graph = CASES["uniform dense"]
    sizes = set()
    for tick in range(1, 400, 9):
        mates = unmatched(graph)
        recorder = Recorder(graph, mates, stop_at_tick=tick)
        finished = reference.run(graph, *mates, recorder, algorithm=algorithm, seed=0)
        assert finished == (recorder.ticks < tick)
        sizes.add(matching_size(graph, *mates))
        assert not finished or matching_size(graph, *mates) == maximum_size(graph)
    assert min(sizes) == 0
    assert len(sizes) > 2


@ALGORITHM
def test_an_interrupt_leaves_a_matching(algorithm):
    class Interrupting(Recorder):
        def tick(self, matched):
            if super().tick(matched):
                raise KeyboardInterrupt
            return False

    graph = CASES["uniform square"]
    mates = unmatched(graph)
    with pytest.raises(KeyboardInterrupt):
        reference.run(
            graph, *mates, Interrupting(graph, mates, stop_at_tick=9), algorithm=algorithm, seed=0
        )
    assert 0 < matching_size(graph, *mates) < maximum_size(graph)


# -- cheap matching --------------------------------------------------------------------------------


@CASE
def test_cheap_matching_leaves_no_edge_between_unmatched_vertices(graph):
    for seed in range(4):
        mates = unmatched(graph)
        assert reference.cheap(graph, *mates, FreeRun(), seed=seed)
        size = matching_size(graph, *mates)
        assert all(mates[0][row] >= 0 or mates[1][column] >= 0 for row, column in edges_of(graph))
        again = mates[0].copy(), mates[1].copy()
        assert reference.cheap(graph, *again, FreeRun(), seed=seed + 1)
        np.testing.assert_array_equal(again[0], mates[0])
        assert 2 * size >= maximum_size(graph)


def test_cheap_matching_depends_on_the_seed_alone():
    graph = CASES["uniform dense"]
    results = []
    for seed in [*range(5), *range(5)]:
        mates = unmatched(graph)
        reference.cheap(graph, *mates, FreeRun(), seed=seed)
        results.append(tuple(mates[0].tolist()))
    assert results[:5] == results[5:]
    assert len(set(results)) > 1


def test_cheap_matching_can_be_stopped(monkeypatch):
    monkeypatch.setattr(interleaving, "TURNS_PER_HEARTBEAT", 5)
    monkeypatch.setattr(interleaving, "TURNS_PER_DRAW", 5)
    graph = CASES["uniform square"]
    mates = unmatched(graph)
    recorder = Recorder(graph, mates, stop_at_tick=4)
    assert not reference.cheap(graph, *mates, recorder, seed=0)
    assert 0 < matching_size(graph, *mates) < maximum_size(graph)


# -- one kernel at a time --------------------------------------------------------------------------


def test_init_puts_unmatched_columns_on_the_first_level():
    col_to_row = np.array([-1, 3, -1, 0], np.int32)
    bfs_array, root = np.full(4, 9, np.int32), np.full(4, 9, np.int32)
    reference.init_bfs_array(bfs_array, col_to_row, 2, root, grid=Grid("ct", 0))
    assert bfs_array.tolist() == [2, 1, 2, 1]
    assert root.tolist() == [0, 0, 2, 0]
    reference.init_bfs_array(bfs_array, col_to_row, 0, grid=Grid("ct", 0))
    assert bfs_array.tolist() == [0, -1, 0, -1]


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
    reference.cheap(graph, *mates, FreeRun(), seed=0)
    for column in range(0, graph.ncols, 5):
        if mates[1][column] >= 0:
            mates[0][mates[1][column]] = mates[1][column] = -1
    return mates


@CASE
@LAUNCH
def test_gpubfs_marks_the_same_columns_and_rows_in_any_order(graph, launch):
    mates = half_matched(graph)
    searches = [
        OneLevel(graph, mates, l0=L0, with_root=False, seed=seed, launch=launch)
        for seed in range(4)
    ]
    for _ in range(4):
        ends = [search.expand() for search in searches]
        for search, (before, after) in zip(searches, ends):
            search.check(before, after)
            assert search.flags == searches[0].flags
            np.testing.assert_array_equal(after.bfs_array, ends[0][1].bfs_array)
            np.testing.assert_array_equal(after.row_to_col, ends[0][1].row_to_col)


@ALGORITHM
@LAUNCH
@pytest.mark.parametrize("name", ["uniform dense", "layered", "hubs", "two trees, two ends"])
def test_every_level_of_a_run_is_one_that_some_order_gives(algorithm, launch, name, monkeypatch):
    checked = 0

    def checking(kernel, has_root):
        def wrapper(level, bfs_array, indptr, indices, ncols, row_to_col, *rest, l0, grid):
            nonlocal checked
            arrays = (bfs_array, row_to_col, rest[-2], rest[0] if has_root else None)
            before = BfsState(*(None if a is None else a.copy() for a in arrays))
            kernel(level, bfs_array, indptr, indices, ncols, row_to_col, *rest, l0=l0, grid=grid)
            check_bfs_level(level, before, BfsState(*arrays), indptr, indices, l0=l0)
            checked += 1

        return wrapper

    monkeypatch.setattr(reference, "gpubfs", checking(reference.gpubfs, False))
    monkeypatch.setattr(reference, "gpubfs_wr", checking(reference.gpubfs_wr, True))
    for seed in range(4):
        _, phases = solve(CASES[name], algorithm, launch, seed, half_matched(CASES[name]))
        checked -= sum(phase["levels"] for phase in phases)
    assert checked == 0


def change(name, index, value):
    """A wrong entry written into the state after a level of `two_trees_two_ends`."""

    def tamper(state):
        getattr(state, name)[index] = value

    return tamper


TAMPERED_FIRST_LEVEL = {
    "a column skipped": change("bfs_array", 0, 1),
    "a column on a wrong level": change("bfs_array", 0, 4),
    "a column left its level": change("bfs_array", 4, 3),
    "a root marked for no row": change("bfs_array", 4, 0),
    "a row marked from afar": change("row_to_col", 0, -2),
    "a matched row marked": change("row_to_col", 2, -2),
    "a predecessor on another level": change("predecessor", 2, 0),
    "a predecessor not adjacent": change("predecessor", 2, 5),
    "a predecessor of a row not reached": change("predecessor", 0, 4),
    "a root of another tree": change("root", 0, 5),
    "a root changed": change("root", 4, 5),
}
TAMPERED_SECOND_LEVEL = {
    "an end not marked": change("row_to_col", 0, -1),
    "a root not marked": change("bfs_array", slice(4, 6), 2),
    "a root marked for a matched row": change("bfs_array", 4, -2),
    "an end without predecessor": change("predecessor", 0, -1),
    "an end with a predecessor not adjacent": change("predecessor", 0, 1),
    "an end matched": change("row_to_col", 1, 1),
}


@pytest.mark.parametrize(
    ("level", "tamper"),
    [(1, tamper) for tamper in TAMPERED_FIRST_LEVEL.values()]
    + [(2, tamper) for tamper in TAMPERED_SECOND_LEVEL.values()],
    ids=[*TAMPERED_FIRST_LEVEL, *TAMPERED_SECOND_LEVEL],
)
def test_check_bfs_level_finds_what_no_order_gives(level, tamper):
    graph, mates = crossing_start()
    search = OneLevel(graph, mates, l0=L0_RIGHT_PATHS, with_root=True, seed=0)
    for _ in range(level):
        before, after = search.expand()
    search.check(before, after)
    tamper(after)
    with pytest.raises(AssertionError):
        search.check(before, after)


@pytest.mark.parametrize("level", [1, 2])
def test_check_bfs_level_without_roots_allows_no_column_or_row_less(level):
    graph, mates = crossing_start()
    search = OneLevel(graph, mates, l0=L0, with_root=False, seed=0)
    for _ in range(level):
        before, after = search.expand()
    if level == 1:
        after.bfs_array[0] = before.bfs_array[0]
    else:
        after.row_to_col[0] = before.row_to_col[0]
    with pytest.raises(AssertionError, match="not reached"):
        search.check(before, after)


def test_open_edges_lead_to_unmatched_rows_and_columns_not_visited():
    """Column 0's rows: unmatched, an endpoint, with a mate not visited, with a visited one."""
    graph = graph_of(4, 4, [(0, 0), (1, 0), (2, 0), (3, 0), (1, 1), (3, 1), (2, 2), (3, 3)])
    bfs_array, row_to_col = np.array([0, 0, -1, 1], np.int32), np.array([-1, -2, 2, 3], np.int32)
    columns = graph.col_indptr, graph.col_indices
    edges = OpenEdges(np.array([0, 1]), bfs_array, *columns, row_to_col, L0)
    assert list(edges.columns) == [0]
    assert list(edges.rows_of(0)) == [0, 2]
    row_to_col[0] = -2
    assert list(edges.rows_of(0)) == [2]
    bfs_array[2] = 1
    assert list(edges.rows_of(0)) == []


def test_fix_matching_unmatches_the_rows_to_which_no_column_points():
    """Row 2 lost column 1 to row 1, row 4 column 2 to row 0; -2 and -1 are no columns to ask."""
    row_to_col = np.array([-2, 1, 1, -1, 2], np.int32)
    col_to_row = np.array([-1, 1, 0, 3], np.int32)
    reference.fix_matching(col_to_row, row_to_col, grid=Grid("mt", 0))
    assert row_to_col.tolist() == [-1, 1, -1, -1, -1]


# -- the races of the paper ------------------------------------------------------------------------


def figure_1_after_bfs():
    """Figure 1 with both paths found: row r1 matched with c2, rows r2 and r3 endpoints."""
    row_to_col = np.array([1, -2, -2], np.int32)
    col_to_row = np.array([-1, 0], np.int32)
    predecessor = np.array([0, 1, 1], np.int32)
    return col_to_row, row_to_col, 3, predecessor


def test_bfs_finds_both_paths_of_figure_1():
    mates = np.array([1, -1, -1], np.int32), np.array([-1, 0], np.int32)
    search = OneLevel(figure_1(), mates, l0=L0, with_root=False, seed=0)
    search.expand()
    search.expand()
    col_to_row, row_to_col, _, predecessor = figure_1_after_bfs()
    assert search.row_to_col.tolist() == row_to_col.tolist()
    assert search.predecessor.tolist() == predecessor.tolist()
    assert search.col_to_row.tolist() == col_to_row.tolist()


@LAUNCH
def test_figure_1_needs_fix_matching_in_some_orders(launch):
    """Either path may win; when both walks read c2 before one writes, both rows point to it."""
    outcomes = Counter()
    for seed in range(100):
        col_to_row, row_to_col, *rest = figure_1_after_bfs()
        grid = Grid(launch, seed)
        reference.alternate(col_to_row, row_to_col, *rest, grid=grid)
        both_point_to_c2 = row_to_col[1] == row_to_col[2] == 1
        reference.fix_matching(col_to_row, row_to_col, grid=grid)
        assert matching_size(figure_1(), row_to_col, col_to_row) == 2
        outcomes[int(col_to_row[1]), bool(both_point_to_c2)] += 1
    assert outcomes.keys() == set(product([1, 2], [False, True]))


@LAUNCH
def test_figure_1_loops_without_the_check_of_line_8(launch, monkeypatch):
    class Endless(Exception):
        pass

    def alternate_within(turns, seed):
        beats = 0

        def heartbeat():
            nonlocal beats
            beats += 1
            if beats > turns:
                raise Endless

        reference.alternate(*figure_1_after_bfs(), grid=Grid(launch, seed, heartbeat))

    def endless(seed):
        try:
            alternate_within(1000, seed)
        except Endless:
            return True
        return False

    monkeypatch.setattr(interleaving, "TURNS_PER_HEARTBEAT", 1)
    assert not any(endless(seed) for seed in range(50))
    monkeypatch.setattr(reference, "_turned_already", lambda *_: False)
    assert any(endless(seed) for seed in range(50))


def fixed_rows(monkeypatch):
    """Count, for the runs to come, the matched rows that FixMatching unmatches."""
    counts = []
    fix_matching = reference.fix_matching

    def counting(col_to_row, row_to_col, *, grid):
        before = np.count_nonzero(row_to_col >= 0)
        fix_matching(col_to_row, row_to_col, grid=grid)
        counts.append(int(before - np.count_nonzero(row_to_col >= 0)))

    monkeypatch.setattr(reference, "fix_matching", counting)
    return counts


@ALGORITHM
@LAUNCH
def test_fix_matching_has_work_in_whole_runs(algorithm, launch, monkeypatch):
    counts = fixed_rows(monkeypatch)
    graph, start = crossing_start()
    for seed in range(200):
        solve(graph, algorithm, launch, seed, start)
    assert sum(counts) > 0


def crossing_start():
    """Both trees of `two_trees_two_ends` complete, both ends unmatched."""
    graph = two_trees_two_ends()
    mates = np.full(6, -1, np.int32), np.full(6, -1, np.int32)
    for row, column in [(2, 0), (3, 1), (4, 2), (5, 3)]:
        mates[0][row], mates[1][column] = column, row
    return graph, mates


@LAUNCH
def test_root_and_predecessor_may_be_of_two_trees(launch):
    """Column 2's mate is next to both roots, which race for root[2] and for predecessor[0]."""
    graph = graph_of(2, 3, [(0, 0), (0, 1), (0, 2), (1, 2)])
    mates = np.array([2, -1], np.int32), np.array([-1, -1, 0], np.int32)
    seen = set()
    for seed in range(100):
        search = OneLevel(graph, mates, l0=L0, with_root=True, seed=seed, launch=launch)
        search.check(*search.expand())
        seen.add((int(search.root[2]), int(search.predecessor[0])))
    assert seen == set(product([0, 1], [0, 1]))


def selected(search):
    """The endpoints from which `alternate_right_paths` starts, found without it."""
    ends = np.flatnonzero(search.row_to_col == -2)
    marks = -search.bfs_array[search.root[search.predecessor[ends]]]
    return [int(end) for end, mark in zip(ends, marks) if end == mark]


@LAUNCH
def test_right_paths_are_one_a_root_at_most(launch):
    """All paths of Figure 1's kind at three roots: each root is marked with one of its ends."""
    edges, mates = [], (np.full(9, -1, np.int32), np.full(6, -1, np.int32))
    for i in range(3):
        row, inner, outer = 3 * i, 2 * i, 2 * i + 1
        edges += [(row, inner), (row, outer), (row + 1, outer), (row + 2, outer)]
        mates[0][row], mates[1][outer] = outer, row
    graph = graph_of(9, 6, edges)
    for seed in range(20):
        search = OneLevel(graph, mates, l0=L0_RIGHT_PATHS, with_root=True, seed=seed, launch=launch)
        for _ in range(2):
            search.check(*search.expand())
        starts = selected(search)
        assert [end // 3 for end in starts] == [0, 1, 2]
        arrays = search.col_to_row, search.row_to_col, 9, search.predecessor
        reference.alternate_right_paths(*arrays, search.bfs_array, search.root, grid=search.grid)
        assert search.col_to_row[1::2].tolist() == starts
        assert np.count_nonzero(search.row_to_col == -2) == 3


@LAUNCH
def test_a_phase_that_selects_no_end_is_followed_by_one_that_augments(launch):
    """Root 4 marked with a row that root 5's column claimed last, and the other way round."""
    graph, start = crossing_start()
    stalled = 0
    for seed in range(300):
        _, phases = solve(graph, "apsb-gpubfs-wr", launch, seed, start)
        sizes = [4, *(phase["matched"] for phase in phases)]
        stalled += phases[0]["found"] == 2 and sizes[1] == sizes[0]
        assert sizes[2] > 4
    assert stalled > 0


def test_a_phase_that_selects_no_end_had_crossed_marks():
    graph, start = crossing_start()
    crossed = set()
    for seed in range(300):
        search = OneLevel(graph, start, l0=L0_RIGHT_PATHS, with_root=True, seed=seed)
        for _ in range(2):
            search.check(*search.expand())
        if not selected(search):
            crossed.add(
                tuple(search.bfs_array[4:].tolist()) + tuple(search.predecessor[:2].tolist())
            )
    assert crossed == {(0, -1, 2, 1), (-1, 0, 0, 3)}


def test_a_root_in_the_way_of_the_last_row_is_matched():
    """``predecessor[-1]`` is the last row's: line 8 must not be asked for a root's mate."""
    col_to_row, row_to_col = np.array([-1], np.int32), np.array([-2], np.int32)
    reference.alternate(col_to_row, row_to_col, 1, np.zeros(1, np.int32), grid=Grid("ct", 0))
    assert (col_to_row[0], row_to_col[0]) == (0, 0)
