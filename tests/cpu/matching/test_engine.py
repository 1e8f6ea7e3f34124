"""What sets the engine apart: rows searched one by one, forests that are grafted, and sweeps."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from gpumatch import BipartiteGraph, maximum_matching, verify
from gpumatch.cpu.matching import engine as matching_engine
from gpumatch.cpu.matching import forests, level_search
from gpumatch.cpu.numba_tools import workers
from graphs import make
from tests.cpu.assignment.tuned import tune
from tests.cpu.matching.cases import (
    CASES,
    FreeRun,
    chains,
    check_maximum,
    ladder,
    random,
    unmatched,
)
from tests.cpu.matching.cases import (
    graph as graph_of,
)
from tests.cpu.matching.runs import ENGINE, extend, rungs, scattered, shifted

every_way = pytest.mark.parametrize("match", ENGINE, indirect=True)


def solve(graph, mates=None, control=None, threads=1, **fields):
    """`extend` by the engine with these numbers."""
    tuning = matching_engine.Tuning(**fields)
    return extend(matching_engine, graph, mates, control, threads, tuning=tuning)


solve_by_forests = functools.partial(solve, most_read=0)


class Phases(FreeRun):
    """Remember all that is told about each phase."""

    def phase(self, **told):
        self.phases.append(told)


@pytest.mark.parametrize("threads", [1, 3])
def test_phases_go_on_from_what_sweeps_leave(crowd, threads):
    """A sweep after every phase: the trees that stood before it must leave no trace."""
    phases_after_a_sweep = 0
    for seed in range(60):
        graph = random(120, 120, 300, seed)
        control = Phases()
        _, mates = solve_by_forests(
            graph, scattered(graph, 0.9, seed), control, threads, patience=0
        )
        check_maximum(graph, *mates)
        sweeps = ["edges" not in phase for phase in control.phases]
        phases_after_a_sweep += any(sweeps) and len(sweeps) > 1 + sweeps.index(True)
    assert phases_after_a_sweep > 30


def test_a_sweep_waits_until_phases_have_read_their_share():
    phases_after_a_sweep = 0
    for seed in range(60):
        graph = random(120, 120, 300, seed)
        control = Phases()
        numbers = {"patience": 0.3, "poor": 0, "again": 0}  # no sweep comes sooner, or after one
        solve_by_forests(graph, scattered(graph, 0.9, seed), control, **numbers)
        unpaid, swept = 0, False
        for phase in control.phases:
            if "edges" in phase:
                unpaid += phase["edges"]
                phases_after_a_sweep += swept
            else:
                assert unpaid >= 0.3 * graph.nnz
                unpaid, swept = 0, True
    assert phases_after_a_sweep > 30


def rows_of(first, length):
    """A graph whose row i has the columns from ``first[i]`` on, so many."""
    n = len(first)
    cols = np.arange(n)
    marks = (cols >= first[:, None]) & (cols < (first + length)[:, None])
    return BipartiteGraph.from_edges(*marks.nonzero(), (n, n))


def nested(n):
    """Row i has the first n - i columns: one perfect matching, and the cheap one has half of it."""
    return rows_of(np.zeros(n, int), n - np.arange(n))


def staircase(n):
    return rows_of(np.maximum(0, n - n // 10 - np.arange(n)), np.full(n, n // 10))


def intervals(n):
    ends = np.sort(np.random.default_rng(6).integers(0, n, (n, 2)))
    return rows_of(ends[:, 0], ends[:, 1] - ends[:, 0] + 1)


def blocks(n):
    rows, cols = nested(n // 8).edges()
    shift = np.repeat(np.arange(8) * (n // 8), rows.size)
    return BipartiteGraph.from_edges(np.tile(rows, 8) + shift, np.tile(cols, 8) + shift, (n, n))


PATTERNS = {"nested": (nested, 5), "staircase": (staircase, 12), "intervals": (intervals, 9)}
PATTERNS["blocks"] = blocks, 5


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("pattern", "most"), PATTERNS.values(), ids=PATTERNS)
def test_sweeps_take_over_where_a_phase_finds_few_paths(pattern, most, transposed):
    """A tree of these patterns soon has all columns, and keeps out the other trees."""
    graph = pattern(400)
    graph = graph.transpose() if transposed else graph
    m = maximum_matching(graph, threads=1)
    verify(graph, m)
    assert m.stats["phases"] <= most


def test_a_sweep_of_the_rows_comes_first_where_paths_one_by_one_would_read_much():
    graph = nested(1500)
    m = maximum_matching(graph, threads=1)
    verify(graph, m)
    one_by_one, *sweeps = m.stats["trace"]
    assert "edges" in one_by_one
    assert not any("edges" in phase for phase in sweeps)
    assert not graph.has_cols
    by_forests = maximum_matching(nested(100), threads=1).stats["trace"]
    assert all("edges" in phase for phase in by_forests[:1])


def test_after_a_sweep_that_finds_few_the_next_is_from_the_other_side(monkeypatch):
    sides = []
    monkeypatch.setattr(matching_engine._Sweeps, "run", note(sides))
    graph = nested(300)
    solve_by_forests(graph, poor=3)
    assert sides[:4] == [False, True, False, True]


def note(sides):
    """A sweep that finds nothing, and notes its side."""

    def run(self, from_larger, workers, matched, again):
        sides.append(from_larger)
        return 0, False

    return run


@pytest.mark.parametrize("case", ["0x0", "0x5", "5x0", "no edges"])
@every_way
def test_nothing_to_match_needs_no_phase(match, case):
    control = FreeRun()
    match(CASES[case][0], control=control)
    assert control.phases == []


@pytest.mark.parametrize("case", ["complete 3x8", "complete 8x3", "cycle"])
@every_way
def test_a_saturated_side_needs_no_phase(match, case):
    graph, _ = CASES[case]
    _, mates = match(graph)
    control = FreeRun()
    match(graph, mates, control)
    assert control.phases == []


@pytest.mark.parametrize("shape", [(60, 60), (60, 90), (90, 60)])
def test_no_phase_follows_the_one_that_matches_the_last_of_a_side(shape):
    """A last phase without a path is for matchings that leave vertices on both sides."""
    nrows, ncols = shape
    edges = [(k % nrows, (k + step) % ncols) for k in range(max(shape)) for step in (0, 1, 7)]
    graph = graph_of(*shape, edges)
    for seed in range(8):
        control = Phases()
        _, mates = solve_by_forests(graph, scattered(graph, 0.8, seed), control)
        assert check_maximum(graph, *mates) == min(shape)
        assert control.phases
        assert all(phase["found"] > 0 for phase in control.phases)


def blind_alleys(length):
    """Two chains that no path leaves, and four vertices that are matched in two phases.

    Row 0 takes column 0 first and so keeps row 1 from it; column 1 is left for row 0. One alley has
    a row more than columns, the other a column more than rows.
    """
    rows = [(2 + i + d, 2 + i) for i in range(length) for d in (0, 1)]
    cols = [(3 + length + i, 2 + length + i + d) for i in range(length) for d in (0, 1)]
    graph = graph_of(3 + 2 * length, 3 + 2 * length, [(0, 0), (0, 1), (1, 0), *rows, *cols])
    row_to_col, col_to_row = unmatched(graph)
    for i in range(length):
        row_to_col[3 + i], col_to_row[2 + i] = 2 + i, 3 + i
        row_to_col[3 + length + i], col_to_row[3 + length + i] = 3 + length + i, 3 + length + i
    return graph, (row_to_col, col_to_row)


def test_trees_without_a_path_are_not_grown_again():
    graph, mates = blind_alleys(100)
    control = Phases()
    solve_by_forests(graph, mates, control)
    assert check_maximum(graph, *mates) == 202
    assert [phase["found"] for phase in control.phases] == [1, 1, 0]
    assert control.phases[0]["edges"] > 200
    assert control.phases[1]["edges"] < 20
    assert control.phases[2]["edges"] < 20


def test_the_level_that_waits_is_not_expanded_where_trees_are_kept():
    """The rows' forest waits when the columns' has ended, and its first row leads to a path."""
    edges = {0: [1, 3, 5], 1: [3, 4], 2: [2, 4], 3: [0, 3], 4: [0, 5], 5: [0]}
    graph = graph_of(6, 6, [(row, col) for row in edges for col in edges[row]])
    row_to_col, col_to_row = unmatched(graph)
    for row, col in enumerate([1, 3, 4, 0]):
        row_to_col[row], col_to_row[col] = col, row
    solve_by_forests(graph, (row_to_col, col_to_row), grafting=10**9)
    assert check_maximum(graph, row_to_col, col_to_row) == 6


def test_one_by_one_an_alley_is_read_once():
    graph, mates = blind_alleys(100)
    control = Phases()
    solve(graph, mates, control)
    assert check_maximum(graph, *mates) == 202
    (phase,) = control.phases
    assert phase["found"] == 2
    assert phase["edges"] <= graph.nnz + 10


def test_one_by_one_roots_pass_by_the_tree_that_one_of_them_grew():
    roots, alley = 50, 100
    chained = [(row, row + d) for row in range(alley) for d in (0, 1) if row + d < alley]
    graph = graph_of(alley + roots, alley, [*chained, *((alley + k, 0) for k in range(roots))])
    row_to_col, col_to_row = unmatched(graph)
    row_to_col[:alley] = col_to_row[:] = np.arange(alley)
    row_to_col[0] = col_to_row[0] = -1  # column 0 is taken by a root, and then row 0 is one
    control = Phases()
    solve(graph, (row_to_col, col_to_row), control)
    assert check_maximum(graph, row_to_col, col_to_row) == alley
    assert control.phases[0]["edges"] <= graph.nnz + 2


def test_one_by_one_ends_when_too_much_is_read():
    """The search that reads too much is the last; the forests find the rest."""
    graph = random(2000, 2000, 6000, 11)
    control = Phases()
    _, mates = solve(graph, control=control, most_read=1)
    check_maximum(graph, *mates)
    assert control.phases[0]["found"] == 1
    assert len(control.phases) > 1


def matched_chains(count, length, shifted):
    """Chains, of which the first ones are matched such that one path leads from end to end."""
    row = np.arange(count * length)
    inner = row[row % length < length - 1]
    edges = np.concatenate([np.column_stack([row, row]), np.column_stack([inner, inner + 1])])
    graph = graph_of(row.size, row.size, [tuple(edge) for edge in edges])
    row_to_col, col_to_row = unmatched(graph)
    row_to_col[:], col_to_row[:] = row, row
    moved = inner[inner < shifted * length]
    row_to_col[length - 1 : shifted * length : length] = -1
    col_to_row[0 : shifted * length : length] = -1
    row_to_col[moved], col_to_row[moved + 1] = moved + 1, moved
    return graph, (row_to_col, col_to_row)


def test_one_by_one_few_paths_of_a_large_graph_need_no_columns_lists():
    graph, mates = matched_chains(100, 60, shifted=5)
    assert graph.nnz > matching_engine.DEFAULT.few_edges
    control = Phases()
    solve(graph, mates, control)
    check_maximum(graph, *mates)
    (phase,) = control.phases
    assert phase["found"] == 5
    assert phase["edges"] <= 5 * 2 * 60
    assert not graph.has_cols


def test_one_by_one_many_long_paths_of_a_large_graph_are_left_to_the_forests():
    """When an eighth of all edges is read for them, and all would read more than a third."""
    graph, mates = matched_chains(100, 60, shifted=100)
    control = Phases()
    solve(graph, mates, control)
    check_maximum(graph, *mates)
    assert len(control.phases) > 1
    assert graph.nnz // 8 < control.phases[0]["edges"] <= graph.nnz // 8 + 2 * 60


@pytest.mark.parametrize(("more", "phases"), [(0, 1), (-1, None)])
def test_few_edges_may_be_read_many_times_one_by_one(more, phases):
    """As many as fit in a cache are few, and one more is not."""
    graph, mates = matched_chains(100, 60, shifted=100)
    control = Phases()
    solve(graph, mates, control, few_edges=graph.nnz + more)
    check_maximum(graph, *mates)
    assert len(control.phases) == phases or (phases is None and len(control.phases) > 1)


def two_stars_and_a_way_round(transposed):
    """A path that the columns' forest finds only if a released pair joins it.

    Column 0 takes row 0 first, which column 1 needs; then column 0 can go on by row 1, matched to
    column 2, to row 2. Column 3's star makes keeping trees worth while; row 3's larger one makes
    the rows' forest wait.
    """
    edges = {(0, 0), (0, 1), (1, 0), (1, 2), (2, 2)}
    pairs = [(1, 2)]
    for tip in range(4, 24):
        edges |= {(tip, 3), (tip, tip)}
        pairs.append((tip, tip))
    for tip in range(24, 124):
        edges |= {(3, tip), (tip, tip)}
        pairs.append((tip, tip))
    if transposed:
        edges, pairs = {(j, i) for i, j in edges}, [(j, i) for i, j in pairs]
    graph = graph_of(124, 124, sorted(edges))
    row_to_col, col_to_row = unmatched(graph)
    for row, col in pairs:
        row_to_col[row], col_to_row[col] = col, row
    return graph, (row_to_col, col_to_row)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_released_pair_joins_the_forest_beside_it(transposed):
    graph, mates = two_stars_and_a_way_round(transposed)
    control = Phases()
    solve_by_forests(graph, mates, control)
    assert check_maximum(graph, *mates) == 123
    assert [phase["found"] for phase in control.phases] == [1, 1, 0]
    assert control.phases[1]["edges"] < 20


def test_a_tree_with_a_path_is_not_joined():
    """Column 0 lies next to row 0, whose tree has a path, and to row 1, whose tree has none."""
    graph = graph_of(3, 3, [(0, 0), (1, 0), (2, 0)])
    mates = unmatched(graph)
    mates[0][2], mates[1][0] = 0, 2
    with workers.Workers(1, graph.nnz) as crew:
        pair = forests.Forests(graph, *mates, crew, grafting=1)
        near, far = pair._rows, pair._cols
        assert forests._neighbour_in_tree(0, near, far, 1) == 0
        near.bridge[0] = 1
        assert forests._neighbour_in_tree(0, near, far, 1) == 1
        near.bridge[1] = 1
        assert forests._neighbour_in_tree(0, near, far, 1) == -1


@pytest.mark.parametrize("threads", [1, 3])
def test_grafting_always_finds_what_growing_anew_would(crowd, threads):
    for seed in range(150):
        graph = random(60 + seed % 3 * 60, 180 - seed % 5 * 30, 330, seed)
        start = scattered(graph, seed % 10 / 10, seed)
        _, mates = solve_by_forests(graph, start, None, threads, grafting=1e9, patience=1e9)
        check_maximum(graph, *mates)


def test_after_a_collision_all_trees_are_grown_again():
    graph, mates = blind_alleys(100)
    control = FreeRun()
    with workers.Workers(1, graph.nnz) as crew:
        pair = forests.Forests(graph, *mates, crew, grafting=1)
        assert pair.grow(control, 200)
        assert pair.augment(control, 200)
        read = pair.read
        pair._totals[forests._COLLIDED] = 1
        assert pair.renew(control, 201)
        assert pair.grow(control, 201)
        assert pair.read > read - 20


def test_who_cannot_have_both_roots_of_a_path_lets_go_and_tells():
    graph, mates = blind_alleys(1)
    with workers.Workers(1, graph.nnz) as crew:
        pair = forests.Forests(graph, *mates, crew, grafting=1)
    rows, cols, totals = pair._rows, pair._cols, pair._totals
    cols.bridge[0] = 1 + 1  # taken by row 1
    assert not forests._close(0, 0, 0, 0, rows, cols, totals)
    assert rows.bridge[0] == 0
    assert cols.bridge[0] == 2
    assert totals[forests._COLLIDED] == 1
    assert totals[forests._FOUND] == 0
    rows.bridge[0], cols.bridge[0], totals[:] = 9, 0, 0  # its own tree has a path already
    assert not forests._close(0, 0, 0, 0, rows, cols, totals)
    assert (rows.bridge[0], cols.bridge[0]) == (9, 0)
    assert not totals.any()


def test_disjoint_paths_of_all_lengths_are_found_in_one_phase():
    graph = chains(range(2, 60))
    control = Phases()
    solve(graph, shifted(graph), control)
    assert [phase["found"] for phase in control.phases] == [58]
    assert control.phases[0]["edges"] <= graph.nnz


@pytest.mark.parametrize("threads", [1, 2])
def test_a_ladder_with_exponentially_many_walks(threads):
    graph = ladder(2000)
    control = Phases()
    _, mates = solve(graph, rungs(graph), control, threads)
    assert check_maximum(graph, *mates) == graph.nrows
    assert sum(phase["found"] for phase in control.phases) == 1
    assert sum(phase.get("edges", 0) for phase in control.phases) <= 2 * graph.nnz


@pytest.mark.parametrize(
    ("released", "limit", "expected"),
    [
        ([0], 5.0, False),
        ([0], 4.9, True),
        ([0, 1], 8.0, False),
        ([0, 1], 7.9, True),
        ([], 0, False),
    ],
)
def test_edges_of_released_pairs_are_counted_on_both_sides(released, limit, expected):
    """Row 0 has three edges, row 1 two, column 0 two and column 1 one."""
    graph = graph_of(2, 4, [(0, 0), (0, 2), (0, 3), (1, 0), (1, 1)])
    mates = unmatched(graph)
    mates[0][:], mates[1][:2] = [0, 1], [0, 1]
    with workers.Workers(1, graph.nnz) as crew:
        pair = forests.Forests(graph, *mates, crew, grafting=1)
        rows = np.array(released, np.int32)
        assert forests._have_more_edges(rows, pair._rows, pair._cols, float(limit)) is expected


@pytest.mark.parametrize("name", ["engine", "p-hk"])
def test_a_level_wakes_no_more_threads_than_it_has_work_for(name, monkeypatch):
    """One more for each so many vertices, however many there are."""
    monkeypatch.setattr(workers, "_EDGES_EACH", 1)
    for module in (forests, level_search):
        monkeypatch.setattr(module, "_WIDE", 600)
    tune(monkeypatch, matching_engine, most_read=0)
    asked, run = [], workers.Workers.run

    def recorded(self, kernel, tasks):
        asked.extend([tasks] if kernel.__name__ in ("kernel", "share") else [])
        return run(self, kernel, tasks)

    monkeypatch.setattr(workers.Workers, "run", recorded)
    graph = make("uniform", 4000, 3, seed=1)
    verify(graph, maximum_matching(graph, algorithm=name, init="cheap", threads=8))
    assert 2 <= max(asked) <= 7
