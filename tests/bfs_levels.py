"""What one BFS kernel of Deveci et al. may do, in whatever order its threads run."""

from __future__ import annotations

from collections import defaultdict
from copy import deepcopy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpumatch.reference.deveci2013 import ENDPOINT, UNMATCHED, found_mark

Int32 = NDArray[np.int32]


class BfsState(NamedTuple):
    """The arrays that a BFS kernel writes; ``root`` is None for GPUBFS."""

    bfs_array: Int32
    row_to_col: Int32
    predecessor: Int32
    root: Int32 | None = None


def check_bfs_level(
    bfs_level: int,
    before: BfsState,
    after: BfsState,
    col_indptr: NDArray[np.integer],
    col_indices: Int32,
    *,
    l0: int,
) -> None:
    """Raise AssertionError unless one BFS kernel, in some order of its threads, leads to ``after``.

    Checked, each against the arrays and the graph alone:

    - a row is reached only from a column of this level whose root had no path yet, and always
      from one whose root still has none;
    - a reached row's predecessor is one such column, its mate's root the root of one such column
      (not of the same one necessarily: the two writes race);
    - a root is marked only for an unmatched row that a column of its tree reached, and the root of
      such a row's predecessor is marked;
    - nothing else has changed.
    """
    frontier = [int(c) for c in np.flatnonzero(before.bfs_array == bfs_level)]
    may_expand = [c for c in frontier if not _has_path(before, c, l0)]
    must_reach: set[int] = set()
    callers: dict[int, list[int]] = defaultdict(list)
    for column in may_expand:
        rows = col_indices[col_indptr[column] : col_indptr[column + 1]].tolist()
        for row in rows:
            callers[row].append(column)
        if not _has_path(after, column, l0):
            must_reach.update(rows)

    expected = deepcopy(before)
    for row, columns in callers.items():
        mate = int(before.row_to_col[row])
        if mate >= 0 and before.bfs_array[mate] == l0 - 1:
            reached = after.bfs_array[mate] != l0 - 1
            expected.bfs_array[mate] = bfs_level + 1 if reached else l0 - 1
        elif mate == UNMATCHED:
            reached = after.row_to_col[row] != UNMATCHED
            expected.row_to_col[row] = ENDPOINT if reached else UNMATCHED
        else:
            continue
        _require(reached or row not in must_reach, "row %d is not reached", row)
        if reached:
            _check_reached(row, mate, columns, after, expected)
    if after.root is not None:
        _check_marked_roots(before, after, expected, callers, l0)

    for name, wanted, got in zip(BfsState._fields, expected, after):
        if wanted is not None:
            wrong = np.flatnonzero(wanted != got)
            _require(len(wrong) == 0, "%s has wrong entries at %s", name, wrong)


def _has_path(state: BfsState, column: int, l0: int) -> bool:
    """Whether GPUBFS-WR has found a path for the column's root; GPUBFS does not know."""
    return state.root is not None and bool(state.bfs_array[state.root[column]] < l0 - 1)


def _check_reached(
    row: int, mate: int, columns: list[int], after: BfsState, expected: BfsState
) -> None:
    """Accept the predecessor and root that the threads of these columns may have written."""
    expected.predecessor[row] = after.predecessor[row]
    _require(after.predecessor[row] in columns, "row %d has a wrong predecessor", row)
    if after.root is not None and expected.root is not None and mate >= 0:
        expected.root[mate] = after.root[mate]
        roots = {int(after.root[column]) for column in columns}
        _require(int(after.root[mate]) in roots, "column %d has a wrong root", mate)


def _check_marked_roots(
    before: BfsState,
    after: BfsState,
    expected: BfsState,
    callers: dict[int, list[int]],
    l0: int,
) -> None:
    """Accept the marks of the roots for which a path may have been found."""
    assert after.root is not None
    marks: dict[int, set[int]] = defaultdict(set)
    for row, columns in callers.items():
        if before.row_to_col[row] == UNMATCHED and after.row_to_col[row] == ENDPOINT:
            for column in columns:
                marks[int(after.root[column])].add(found_mark(row, l0))
            finder = int(after.predecessor[row])
            _require(_has_path(after, finder, l0), "the root of row %d is not marked", row)
    for root, allowed in marks.items():
        mark = int(after.bfs_array[root])
        if mark in allowed:
            expected.bfs_array[root] = mark


def _require(condition: bool, message: str, *values: object) -> None:
    if not condition:
        raise AssertionError(message % values)
