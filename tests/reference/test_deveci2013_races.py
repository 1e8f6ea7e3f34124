"""The races that the paper tells of, each forced, and what its repairs do."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np

from gpumatch.reference import deveci2013 as reference
from gpumatch.reference import interleaving
from gpumatch.reference.interleaving import Grid
from tests.cpu.matching.cases import graph as graph_of
from tests.reference.cases import (
    ALGORITHM,
    L0,
    L0_RIGHT_PATHS,
    LAUNCH,
    OneLevel,
    crossing_start,
    figure_1,
    matching_size,
    solve,
)


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
