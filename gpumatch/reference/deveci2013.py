"""Deveci, Kaya, Uçar, Çatalyürek (2013) without a GPU: the paper's kernels as interleaved threads.

A kernel in which threads race is a loop over the vertices of one thread, written as a generator. A
seeded scheduler (:class:`~gpumatch.reference.interleaving.Grid`) advances the threads in a random
order. So the races that the paper describes, and its repairs, happen here as on a GPU. One seed
always gives the same run. This module is for following the paper and for comparing the CUDA kernels
with it. A graph of a million edges takes some seconds.

Names
-----
=======================  ============================================================
paper                    here
=======================  ============================================================
cxadj, cadj              col_indptr, col_indices (columns -> rows)
nc, nr                   ncols, nrows
rmatch, cmatch           row_to_col, col_to_row
bfs_array, predecessor,  the same
root, L0
tot_thread_num           ``Grid.thread_count``
getProcessCount          the length of a thread's share of the vertices (``Grid.launch``)
Algorithm 1              :func:`phases`: APsB, and without lines 9 and 10 APFB
Algorithm 2, 4           :func:`gpubfs`, :func:`gpubfs_wr`
Algorithm 3              :func:`alternate`, with L0 = 2 :func:`alternate_right_paths`
=======================  ============================================================

Encodings
---------
``row_to_col[r]``   the row's mate; -1 unmatched; -2 unmatched and found this phase: an endpoint
``col_to_row[c]``   the column's mate; -1 unmatched
``bfs_array[c]``    L0 - 1 not visited; L0 and above the BFS level; a root for which a path was
                    found: L0 - 2, or with L0 = 2 minus the row that ends the path (0 or less)
``root[c]``         the unmatched column from which column c was reached; 0 until it is
``predecessor[r]``  the column from which row r was reached; anything until it is

Interleavings
-------------
At a bare ``yield`` a thread waits for its next turn; :mod:`gpumatch.reference.interleaving` chooses
the next thread. There is one before every access whose outcome another thread of the launch can
change, except two kinds, whose absence loses no outcome:

- *Accesses that find nothing, now or later.* In a launch no column joins the level that is being
  expanded, a root's path stays found, no row becomes an endpoint for Alternate to start from, and a
  closed edge (see :class:`OpenEdges`) stays closed. So NumPy picks the vertices and edges with work
  to do when a launch begins, and a thread passes by edges that have been closed since.
- *The second of two writes, if all threads that reach the first write the same there.* They have
  read before any of them wrote, so any of them might have been the first.

InitBfsArray and FixMatching have no races: they are expressions over whole arrays.

Why it ends
-----------
*A walk of Alternate ends.* Column ``predecessor[r]`` is one BFS level below the column through
which the search went on from row r. So a walk that reads an original mate goes down a level. If it
reads a mate r' that another walk wrote, then ``predecessor[r']`` is this very column, and line 8
ends the walk.

*If any walk starts, the matching grows.* Take the lowest column that any walk reached, and the walk
that read its mate first. If that column were matched, the walk would have read the original mate
and gone on to a lower column. So the column is a root; the walk read -1 and matched it. No walk
unmatches a column, and FixMatching unmatches only rows to which no column points.

*With L0 = 2 it is possible that no walk starts:* racing writes can leave each root marked with a
row that another root's column claimed last. Then the phase finds paths and augments along none. The
next Alternate starts from all endpoints, so the matching grows at least every second phase.

References
----------
M. Deveci, K. Kaya, B. Uçar, Ü. V. Çatalyürek: GPU accelerated maximum cardinality matching
algorithms for bipartite graphs. Euro-Par 2013.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpumatch.contracts import Graph, MatchingTask, Stopped
from gpumatch.cpu.heartbeat import heartbeat
from gpumatch.numeric.arrays import count_matched
from gpumatch.reference.interleaving import Grid, Turns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int32 = NDArray[np.int32]

UNMATCHED = -1
ENDPOINT = -2

START_LEVEL = 0
START_LEVEL_RIGHT_PATHS = 2


class Phase(NamedTuple):
    """One iteration of Algorithm 1's outer loop.

    Attributes
    ----------
    levels : int
        BFS kernels, the last one, which inserts nothing, included.
    launches : int
        Kernels of all kinds.
    found : int
        Rows that end an augmenting path.
    matched : int
        Matched rows after FixMatching.
    """

    levels: int
    launches: int
    found: int
    matched: int


@dataclass(frozen=True)
class System:
    """One of the paper's combinations of driver and BFS kernel."""

    shortest_only: bool
    has_roots: bool

    @property
    def right_paths(self) -> bool:
        """True if it has the last improvement of section 3 (L0 = 2): APsB-GPUBFS-WR alone."""
        return self.shortest_only and self.has_roots


ALGORITHMS = {
    "apsb-gpubfs": System(shortest_only=True, has_roots=False),
    "apsb-gpubfs-wr": System(shortest_only=True, has_roots=True),
    "apfb-gpubfs": System(shortest_only=False, has_roots=False),
    "apfb-gpubfs-wr": System(shortest_only=False, has_roots=True),
}


@dataclass
class Flags:
    """The two flags that the BFS kernels raise and the driver reads."""

    vertex_inserted: bool = False
    augmenting_path_found: bool = False


# -- the kernels ---------------------------------------------------------------------------------


def init_bfs_array(
    bfs_array: Int32, col_to_row: Int32, l0: int, root: Int32 | None = None, *, grid: Grid
) -> None:
    """Put the unmatched columns on level ``l0``; with ``root``, make each its own root."""
    grid.begin_launch()
    matched = col_to_row > UNMATCHED
    bfs_array[:] = np.where(matched, l0 - 1, l0)
    if root is not None:
        root[:] = np.where(matched, 0, np.arange(len(root)))


def gpubfs(
    bfs_level: int,
    bfs_array: Int32,
    col_indptr: NDArray[np.integer],
    col_indices: Int32,
    ncols: int,
    row_to_col: Int32,
    predecessor: Int32,
    flags: Flags,
    *,
    l0: int,
    grid: Grid,
) -> None:
    """Expand one BFS level (Algorithm 2)."""
    frontier = np.flatnonzero(bfs_array == bfs_level)
    edges = OpenEdges(frontier, bfs_array, col_indptr, col_indices, row_to_col, l0)

    def thread(columns: Sequence[int]) -> Turns:
        for column in columns:
            for row in edges.rows_of(column):
                yield
                mate = row_to_col[row]
                if mate > UNMATCHED:
                    if bfs_array[mate] == l0 - 1:
                        flags.vertex_inserted = True
                        yield
                        bfs_array[mate] = bfs_level + 1
                        predecessor[row] = column
                elif mate == UNMATCHED:
                    yield
                    row_to_col[row] = ENDPOINT
                    predecessor[row] = column
                    flags.augmenting_path_found = True

    grid.launch(thread, ncols, edges.columns)


def gpubfs_wr(
    bfs_level: int,
    bfs_array: Int32,
    col_indptr: NDArray[np.integer],
    col_indices: Int32,
    ncols: int,
    row_to_col: Int32,
    root: Int32,
    predecessor: Int32,
    flags: Flags,
    *,
    l0: int,
    grid: Grid,
) -> None:
    """Expand one BFS level, except columns whose root has its path (Algorithm 4).

    With ``l0=2`` the root's entry tells which row ends the path (the improvement for APsB).
    """
    frontier = np.flatnonzero(bfs_array == bfs_level)
    frontier = frontier[bfs_array[root[frontier]] >= l0 - 1]
    edges = OpenEdges(frontier, bfs_array, col_indptr, col_indices, row_to_col, l0)

    def thread(columns: Sequence[int]) -> Turns:
        for column in columns:
            my_root = root[column]
            yield
            if bfs_array[my_root] < l0 - 1:
                continue
            for row in edges.rows_of(column):
                yield
                mate = row_to_col[row]
                if mate > UNMATCHED:
                    if bfs_array[mate] == l0 - 1:
                        flags.vertex_inserted = True
                        yield
                        bfs_array[mate] = bfs_level + 1
                        root[mate] = my_root
                        yield
                        predecessor[row] = column
                elif mate == UNMATCHED:
                    yield
                    bfs_array[my_root] = found_mark(row, l0)
                    yield
                    row_to_col[row] = ENDPOINT
                    yield
                    predecessor[row] = column
                    flags.augmenting_path_found = True

    grid.launch(thread, ncols, edges.columns)


def found_mark(row: int, l0: int) -> int:
    """The entry in ``bfs_array`` of a root for which a path to ``row`` was found."""
    return -row if l0 == START_LEVEL_RIGHT_PATHS else l0 - 2


class OpenEdges:
    """The edges from a level's columns that may lead on, picked before its threads start.

    An edge is open while its row is unmatched and not an endpoint, or while the row's mate is not
    visited.
    """

    def __init__(
        self,
        columns: NDArray[np.intp],
        bfs_array: Int32,
        col_indptr: NDArray[np.integer],
        col_indices: Int32,
        row_to_col: Int32,
        l0: int,
    ) -> None:
        def is_open(rows: Int32) -> NDArray[np.bool]:
            mates = row_to_col[rows]
            not_visited = bfs_array.take(mates, mode="clip") == l0 - 1
            return np.where(mates > UNMATCHED, not_visited, mates == UNMATCHED)

        self._rows_of = _rows_by_column(columns, col_indptr, col_indices, is_open)
        self._not_visited = l0 - 1
        # Python reads the entries of a memoryview several times faster than those of an array.
        self._arrays = bfs_array.data, row_to_col.data

    @property
    def columns(self) -> Iterable[int]:
        """The columns with an open edge."""
        return self._rows_of.keys()

    def rows_of(self, column: int) -> Iterator[int]:
        """The column's rows; each only if the edge is still open when its turn comes."""
        not_visited = self._not_visited
        bfs_array, row_to_col = self._arrays
        for row in self._rows_of[column]:
            mate = row_to_col[row]
            if mate == UNMATCHED or (mate > UNMATCHED and bfs_array[mate] == not_visited):
                yield row


def _rows_by_column(
    columns: NDArray[np.intp],
    col_indptr: NDArray[np.integer],
    col_indices: Int32,
    is_open: Callable[[Int32], NDArray[np.bool]],
) -> dict[int, list[int]]:
    """The open rows next to each of the columns that has any."""
    counts = col_indptr[columns + 1] - col_indptr[columns]
    ends = counts.cumsum()
    rows = col_indices[np.arange(counts.sum()) + np.repeat(col_indptr[columns + 1] - ends, counts)]
    keep = is_open(rows)
    kept_before = np.append(0, keep.cumsum())
    bounds = pairwise([0, *kept_before[ends].tolist()])
    kept = rows[keep].tolist()
    return {
        column: kept[begin:end]
        for column, (begin, end) in zip(columns.tolist(), bounds)
        if begin < end
    }


def alternate(
    col_to_row: Int32, row_to_col: Int32, nrows: int, predecessor: Int32, *, grid: Grid
) -> None:
    """Augment along the paths back from the endpoints, perhaps several a root (Algorithm 3)."""
    ends = np.flatnonzero(row_to_col == ENDPOINT)
    _walk_from(ends, col_to_row, row_to_col, nrows, predecessor, grid=grid)


def alternate_right_paths(
    col_to_row: Int32,
    row_to_col: Int32,
    nrows: int,
    predecessor: Int32,
    bfs_array: Int32,
    root: Int32,
    *,
    grid: Grid,
) -> None:
    """Augment along the paths from those endpoints that their root is marked with (L0 = 2)."""
    ends = np.flatnonzero(row_to_col == ENDPOINT)
    ends = ends[bfs_array[root[predecessor[ends]]] == -ends]
    _walk_from(ends, col_to_row, row_to_col, nrows, predecessor, grid=grid)


def _walk_from(
    ends: NDArray[np.intp],
    col_to_row: Int32,
    row_to_col: Int32,
    nrows: int,
    predecessor: Int32,
    *,
    grid: Grid,
) -> None:
    def thread(rows: Sequence[int]) -> Turns:
        for row in rows:
            yield from _walk(row, col_to_row, row_to_col, predecessor)

    grid.launch(thread, nrows, ends.tolist())


def _walk(row: int, col_to_row: Int32, row_to_col: Int32, predecessor: Int32) -> Turns:
    """Lines 5 to 12 of Algorithm 3. Other walks write the same to ``row_to_col[row]``, if any."""
    while row != UNMATCHED:
        matched_col = predecessor[row]
        yield
        matched_row = col_to_row[matched_col]
        if _turned_already(matched_row, matched_col, predecessor):
            break
        yield
        col_to_row[matched_col] = row
        row_to_col[row] = matched_col
        row = matched_row


def _turned_already(matched_row: int, matched_col: int, predecessor: Int32) -> bool:
    """Line 8, and a case that the paper leaves out: a root has no mate to look at."""
    return matched_row != UNMATCHED and bool(predecessor[matched_row] == matched_col)


def fix_matching(col_to_row: Int32, row_to_col: Int32, *, grid: Grid) -> None:
    """Unmatch the rows to which no column points.

    The paper's condition is ``cmatch[rmatch[r]] != r``, but rows at -1 or -2 have no such column.
    """
    grid.begin_launch()
    rows = np.flatnonzero(row_to_col > UNMATCHED)
    lost = rows[col_to_row[row_to_col[rows]] != rows]
    row_to_col[lost] = UNMATCHED
    row_to_col[row_to_col == ENDPOINT] = UNMATCHED


# -- the drivers ---------------------------------------------------------------------------------


def phases(
    graph: Graph, row_to_col: Int32, col_to_row: Int32, system: System, grid: Grid
) -> Iterator[Phase]:
    """Run Algorithm 1, a phase each time the caller asks for one, until the matching is maximum.

    The two arrays hold a matching after each phase, the kernels' marks within one.
    """
    l0 = START_LEVEL_RIGHT_PATHS if system.right_paths else START_LEVEL
    bfs_array = np.empty(graph.ncols, dtype=np.int32)
    root = np.empty(graph.ncols, dtype=np.int32) if system.has_roots else None
    predecessor = np.full(graph.nrows, -1, dtype=np.int32)
    columns = graph.col_indptr, graph.col_indices, graph.ncols

    matched, grew = count_matched(row_to_col), True
    flags = Flags(augmenting_path_found=True)
    while flags.augmenting_path_found:
        flags.augmenting_path_found = False
        launches = grid.launches
        bfs_level = l0
        init_bfs_array(bfs_array, col_to_row, l0, root, grid=grid)
        flags.vertex_inserted = True
        while flags.vertex_inserted:
            flags.vertex_inserted = False
            state = (bfs_level, bfs_array, *columns, row_to_col)
            if root is None:
                gpubfs(*state, predecessor, flags, l0=l0, grid=grid)
            else:
                gpubfs_wr(*state, root, predecessor, flags, l0=l0, grid=grid)
            bfs_level += 1
            if system.shortest_only and flags.augmenting_path_found:
                break

        found = int(np.count_nonzero(row_to_col == ENDPOINT))
        paths = col_to_row, row_to_col, graph.nrows, predecessor
        if root is not None and system.right_paths and grew:
            alternate_right_paths(*paths, bfs_array, root, grid=grid)
        else:
            alternate(*paths, grid=grid)
        fix_matching(col_to_row, row_to_col, grid=grid)

        before, matched = matched, count_matched(row_to_col)
        grew = matched > before
        yield Phase(bfs_level - l0, grid.launches - launches, found, matched)


def run(task: MatchingTask, *, algorithm: str, launch: str = "ct") -> bool:
    """Extend a matching to a maximum one with one of the paper's algorithms.

    Parameters
    ----------
    task : MatchingTask
        Its matching is extended whole phases at a time. Its control gets ``phase(levels=,
        launches=, found=, matched=)`` after each phase, also after the last, which finds nothing.
        Its seed fixes the order of the threads, and so the matching.
    algorithm : str
        One of `ALGORITHMS`.
    launch : {"ct", "mt"}
        Constant number of threads, or one a vertex.

    Returns
    -------
    bool
        True when the matching is maximum, False when ``control`` stopped the run.

    Notes
    -----
    O(nl + m) a phase of l levels, for n vertices and m edges; at most 2n + 1 phases.
    """

    graph, row_to_col, col_to_row, control = task.graph, *task.mates, task.control
    system = ALGORITHMS[algorithm]
    grid = Grid(launch, task.seed, heartbeat(control, partial(count_matched, row_to_col)))
    working = row_to_col.copy(), col_to_row.copy()
    try:
        for phase in phases(graph, *working, system, grid):
            row_to_col[:], col_to_row[:] = working
            control.phase(**phase._asdict())
    except Stopped:
        return False
    return True


def cheap(task: MatchingTask) -> bool:
    """Match each unmatched column with the first unmatched row it meets: the paper's start.

    Each column has a thread, which takes a row by what is an atomic compare-and-swap on a device.
    It extends the matching in place to one that no single edge can extend. Parameters and result
    are those of :func:`run`.
    """
    graph, row_to_col, col_to_row, control = task.graph, *task.mates, task.control
    rows_of = _rows_by_column(
        np.flatnonzero(col_to_row == UNMATCHED),
        graph.col_indptr,
        graph.col_indices,
        lambda rows: row_to_col[rows] == UNMATCHED,
    )

    def thread(columns: Sequence[int]) -> Turns:
        for column in columns:
            for row in rows_of[column]:
                if row_to_col[row] != UNMATCHED:
                    continue
                yield
                if row_to_col[row] == UNMATCHED:
                    row_to_col[row], col_to_row[column] = column, row
                    break

    grid = Grid("mt", task.seed, heartbeat(control, partial(count_matched, row_to_col)))
    try:
        grid.launch(thread, graph.ncols, rows_of)
    except Stopped:
        return False
    return True
