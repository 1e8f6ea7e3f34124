"""The paper's kernels one at a time, as interleaved threads."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.reference import deveci2013 as reference
from gpumatch.reference.deveci2013 import OpenEdges
from gpumatch.reference.interleaving import Grid
from tests.bfs_levels import BfsState, check_bfs_level
from tests.cpu.matching.cases import graph as graph_of
from tests.reference.cases import (
    ALGORITHM,
    CASE,
    CASES,
    L0,
    L0_RIGHT_PATHS,
    LAUNCH,
    OneLevel,
    crossing_start,
    half_matched,
    solve,
)


def test_init_puts_unmatched_columns_on_the_first_level():
    col_to_row = np.array([-1, 3, -1, 0], np.int32)
    bfs_array, root = np.full(4, 9, np.int32), np.full(4, 9, np.int32)
    reference.init_bfs_array(bfs_array, col_to_row, 2, root, grid=Grid("ct", 0))
    assert bfs_array.tolist() == [2, 1, 2, 1]
    assert root.tolist() == [0, 0, 2, 0]
    reference.init_bfs_array(bfs_array, col_to_row, 0, grid=Grid("ct", 0))
    assert bfs_array.tolist() == [0, -1, 0, -1]


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
