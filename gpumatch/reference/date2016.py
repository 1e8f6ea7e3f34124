"""Date and Nagi (2016) without a GPU: both Hungarian variants' kernels as interleaved threads.

As in `gpumatch.reference.deveci2013`, a kernel in which threads meet is a loop over the vertices of
one thread, written as a generator, and `Grid` advances the threads in a seeded random order. The
paper finds several vertex-disjoint augmenting paths at once by races, which happen here as on a
GPU. This module is for following the paper and for comparing the CUDA kernels with it. A thousand
rows take seconds, or minutes if each row needs hundreds of dual updates.

Names
-----
=======================  ===========================================================================
paper                    here
=======================  ===========================================================================
C, D_r, D_c              slacks: the costs and ``row_dual``, ``col_dual`` in `Slacks`
A_r, A_c                 row_to_col, col_to_row
V_r, V_c                 row_cover, col_cover
P_r, P_c                 row_pred, col_pred
S_r, S_c                 row_next, col_next
Z                        indptr, indices: the adjacency lists of tight pairs in CSR
"active", "visited", ..  row_mark, col_mark
Algorithm 1              :func:`reduce_rows`, :func:`reduce_columns`
Algorithm 2              :func:`check_optimality`
Algorithm 3, 4           :func:`expand_classical`, :func:`expand_tree`; contraction: :func:`compact`
Algorithm 5, 6           :func:`reverse_pass`, :func:`augmentation_pass`
Algorithm 7, 8           :func:`least_uncovered_slacks`, :func:`update_classical`
Algorithm 9              :func:`update_tree`
sections 4.2 to 4.4      :func:`iterations`
=======================  ===========================================================================

Numbers
-------
Costs become even integers, and only the duals that are returned are rounded: see
`gpumatch.reference.exact_slacks`.

Where the paper is silent, or garbled
-------------------------------------
- One of two scans of Algorithm 8 has the branch of uncovered columns twice. In the other, uncovered
  columns rise by theta / 2, and covered ones fall by it. So they do here: the duals stay feasible.
- F_out may hold a row several times if threads raced for its column. The next frontier is made
  from the marks of the rows instead, as in the tree variant, and has each once.
- With fewer rows than columns there is no column reduction, because an unmatched column needs the
  dual 0. All uncovered columns rise by the same amount, and unmatched ones are never covered. So
  that amount is taken from all columns at the end, and given to the rows.
- After a dual update of the classical variant the search goes on from all uncovered rows with a
  tight pair, as in its sequential form, not from the unassigned ones only: covers stay.
- theta is infinite if no pair leads out of the trees. Then there is no full assignment.

Interleavings
-------------
At a bare ``yield`` a thread waits for its next turn; `gpumatch.reference.interleaving` chooses the
next thread. There is one before every access whose outcome another thread of the launch can change:

- *Algorithm 3*: rows race for columns. A column that is covered stays covered in a launch, and a
  row passes it by. An unmatched column is not covered in a launch, and keeps the row that wrote
  last; of the rows of one thread, that is the last one. So NumPy picks the pairs that matter when a
  launch begins, and threads run for their rows.
- *Algorithm 4*: a column lowers its own slack, by costs and duals that no thread changes, so NumPy
  does that for all columns. Threads run for the columns that then write to their mates.
- *Algorithms 5 and 6*: paths race for the vertices that they share.

In the other kernels each thread writes only its own elements, from values that no thread of the
launch changes, or (Algorithm 9) all write the same. They are expressions over whole arrays. The
tests run them as threads, too.

References
----------
K. Date, R. Nagi: GPU-accelerated Hungarian algorithms for the Linear Assignment Problem. Parallel
Computing 57, 2016.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpumatch.contracts import AssignmentTask, Stopped
from gpumatch.cpu.assignment.hungarian.problem import dense_matrix
from gpumatch.cpu.heartbeat import heartbeat
from gpumatch.numeric.arrays import count_matched
from gpumatch.reference.exact_slacks import Slacks
from gpumatch.reference.interleaving import Grid, Turns

NONE = -1  # no mate, predecessor or successor

INACTIVE, ACTIVE, VISITED, REVERSE, AUGMENT = range(5)

Vertices = NDArray[np.intp]


class Iteration(NamedTuple):
    """What happened from one optimality check to the next.

    Attributes
    ----------
    levels : int
        Expansion kernels.
    updates : int
        Dual updates.
    launches : int
        Kernels of all kinds.
    found : int
        Augmenting paths along which it augmented.
    matched : int
        Assigned rows after it.
    """

    levels: int
    updates: int
    launches: int
    found: int
    matched: int


class State:
    """The paper's arrays, for n rows and m >= n columns; see the module."""

    def __init__(self, slacks: Slacks) -> None:
        self.slacks = slacks
        self.nrows, self.ncols = nrows, ncols = slacks.shape
        self.row_to_col, self.col_to_row = _no_vertex(nrows), _no_vertex(ncols)
        self.indptr, self.indices = np.zeros(nrows + 1, np.intp), np.empty(0, np.intp)
        self.uncover()

    def uncover(self) -> None:
        """Reset what belongs to one iteration."""
        nrows, ncols = self.nrows, self.ncols
        self.row_cover, self.col_cover = np.zeros(nrows, bool), np.zeros(ncols, bool)
        self.row_pred, self.col_pred = _no_vertex(nrows), _no_vertex(ncols)
        self.row_next, self.col_next = _no_vertex(nrows), _no_vertex(ncols)
        self.row_mark, self.col_mark = np.full(nrows, INACTIVE), np.full(ncols, INACTIVE)
        self.slack = np.full(ncols, self.slacks.far, self.slacks.dtype)

    @property
    def matched(self) -> int:
        return count_matched(self.row_to_col)


# -- the kernels ---------------------------------------------------------------------------------


def reduce_rows(state: State, *, grid: Grid) -> None:
    """Give each row its least cost as dual (Algorithm 1, first kernel)."""
    grid.begin_launch()
    if state.ncols:
        least = state.slacks.least_of_rows(*_all(state))
        state.slacks.row_dual[:] = np.where(least < state.slacks.far, least, 0)


def reduce_columns(state: State, *, grid: Grid) -> None:
    """Give each column its least slack as dual (Algorithm 1, second kernel)."""
    grid.begin_launch()
    if state.nrows:
        least, _ = state.slacks.least_of_columns(*_all(state))
        state.slacks.col_dual[:] = np.where(least < state.slacks.far, least, 0)


def _all(state: State) -> tuple[Vertices, Vertices]:
    return np.arange(state.nrows), np.arange(state.ncols)


def check_optimality(state: State, *, grid: Grid) -> int:
    """Cover the assigned rows, and count them (Algorithm 2)."""
    grid.begin_launch()
    state.row_cover |= state.row_to_col != NONE
    return state.matched


def compact(is_relevant: NDArray[np.bool], *, grid: Grid) -> Vertices:
    """The indices of the relevant elements: stream compaction by prefix sums (section 3.3)."""
    grid.begin_launch()
    return np.flatnonzero(is_relevant)


def compress_matrix(state: State, *, grid: Grid) -> None:
    """Make the adjacency lists Z of the tight pairs: count, then scatter (section 3.3)."""
    grid.begin_launch()
    rows, cols = np.divmod(state.slacks.tight_pairs(), state.ncols)
    state.indptr = np.append(0, np.bincount(rows, minlength=state.nrows).cumsum())
    grid.begin_launch()
    state.indices = cols


def expand_classical(state: State, frontier: Vertices, *, grid: Grid) -> None:
    """Expand the frontier along the lists, a thread a row (Algorithm 3)."""
    columns = _open_columns(state, frontier, grid.thread_count(len(frontier)))
    mates, col_cover, col_mark = state.col_to_row.data, state.col_cover.data, state.col_mark.data
    col_pred, row_pred = state.col_pred.data, state.row_pred.data
    row_cover, row_mark = state.row_cover.data, state.row_mark.data
    rows = frontier.tolist()

    def thread(slots: Sequence[int]) -> Turns:
        for slot in slots:
            row = rows[slot]
            for col in columns[slot]:
                new = mates[col]
                if new == NONE:
                    yield
                    col_pred[col] = row
                    col_mark[col] = REVERSE
                    continue
                if col_cover[col]:
                    continue
                yield
                if col_cover[col]:
                    continue
                yield
                col_pred[col] = row
                yield
                row_pred[new] = col
                row_cover[new] = False
                yield
                col_cover[col] = True
                yield
                if row_mark[new] != VISITED:
                    row_mark[new] = ACTIVE
            row_mark[row] = VISITED

    has_none = np.ones(len(rows), bool)
    has_none[[*columns]] = False
    state.row_mark[frontier[has_none]] = VISITED
    grid.launch(thread, len(rows), columns)


def _open_columns(
    state: State, frontier: Vertices, thread_count: int
) -> Mapping[int, Sequence[int]]:
    """The columns in the lists of the frontier's rows, by slot, at which there is a race.

    Covered columns are left out, and unmatched ones for which the same thread has a later row.
    """
    begins = state.indptr[frontier]
    counts = state.indptr[frontier + 1] - begins
    slots = np.repeat(np.arange(len(frontier)), counts)
    shifts = np.repeat(begins + counts - counts.cumsum(), counts)
    cols = state.indices[np.arange(len(slots)) + shifts]
    is_open = ~state.col_cover[cols]
    slots, cols = slots[is_open], cols[is_open]
    latest = np.empty((thread_count, state.ncols), np.intp)
    latest[slots % thread_count, cols] = slots
    is_last = latest[slots % thread_count, cols] == slots
    is_kept = is_last | (state.col_to_row[cols] != NONE)
    columns = defaultdict[int, list[int]](list)
    for slot, col in zip(slots[is_kept].tolist(), cols[is_kept].tolist()):
        columns[slot].append(col)
    return columns


def expand_tree(state: State, frontier: Vertices, *, grid: Grid) -> None:
    """Expand the frontier by lowering slacks, a thread a column (Algorithm 4)."""
    cols = np.flatnonzero(~state.col_cover)
    lower_slacks(state, frontier, cols)
    is_tight = state.slack[cols] == 0
    has_mate = state.col_to_row[cols] != NONE
    state.col_mark[cols[is_tight & ~has_mate]] = REVERSE
    mates, row_pred, row_mark = state.col_to_row.data, state.row_pred.data, state.row_mark.data
    row_cover, col_cover = state.row_cover.data, state.col_cover.data

    def thread(cols: Sequence[int]) -> Turns:
        for col in cols:
            new = mates[col]
            yield
            row_pred[new] = col
            row_cover[new] = False
            col_cover[col] = True
            row_mark[new] = ACTIVE

    grid.launch(thread, state.ncols, cols[is_tight & has_mate].tolist())
    state.row_mark[frontier] = VISITED


def lower_slacks(state: State, frontier: Vertices, cols: Vertices) -> None:
    """Lower the columns' slacks to the least to the frontier; keep the first row that has it."""
    least, nearest = state.slacks.least_of_columns(frontier, cols)
    is_lower = least < state.slack[cols]
    state.slack[cols[is_lower]] = least[is_lower]
    state.col_pred[cols[is_lower]] = nearest[is_lower]


def reverse_pass(state: State, ends: Vertices, *, grid: Grid) -> None:
    """Trace each end back to its root; where paths meet, the last one stays (Algorithm 5)."""
    col_next, row_next = state.col_next.data, state.row_next.data
    col_pred, row_pred = state.col_pred.data, state.row_pred.data
    cols = ends.tolist()

    def thread(slots: Sequence[int]) -> Turns:
        for slot in slots:
            row, col = NONE, cols[slot]
            while col != NONE:
                yield
                col_next[col] = row
                row = col_pred[col]
                yield
                row_next[row] = col
                col = row_pred[row]
            state.row_mark[row] = AUGMENT

    grid.launch(thread, len(cols))


def augmentation_pass(state: State, roots: Vertices, *, grid: Grid) -> None:
    """Augment along the path from each root (Algorithm 6)."""
    row_next, col_next = state.row_next.data, state.col_next.data
    row_to_col, col_to_row = state.row_to_col.data, state.col_to_row.data
    rows = roots.tolist()

    def thread(slots: Sequence[int]) -> Turns:
        for slot in slots:
            row = rows[slot]
            while row != NONE:
                yield
                col = row_next[row]
                row_to_col[row] = col
                yield
                col_to_row[col] = row
                row = col_next[col]

    grid.launch(thread, len(rows))


def least_uncovered_slacks(state: State, *, grid: Grid) -> int | None:
    """The least slack between uncovered rows and columns: theta, if any (Algorithm 7)."""
    rows, cols = np.flatnonzero(~state.row_cover), np.flatnonzero(~state.col_cover)
    grid.begin_launch()
    least = state.slacks.least_of_rows(rows, cols) if cols.size else state.slack[cols]
    grid.begin_launch()
    theta = least.min(initial=state.slacks.far)
    return int(theta) if theta < state.slacks.far else None


def update_classical(state: State, theta: int, *, grid: Grid) -> None:
    """Change the duals by theta / 2 (Algorithm 8)."""
    grid.begin_launch()
    _change_duals(state, theta)


def update_tree(state: State, theta: int, *, grid: Grid) -> None:
    """Change the duals by theta / 2 and the slacks by theta; wake rows (Algorithm 9)."""
    grid.begin_launch()
    _change_duals(state, theta)
    changes = (state.slack > 0) & (state.slack < state.slacks.far)
    state.slack[changes] -= theta
    state.row_mark[state.col_pred[changes & (state.slack == 0)]] = ACTIVE


def _change_duals(state: State, theta: int) -> None:
    """The common part of Algorithms 8 and 9: uncovered duals rise, covered ones fall."""
    for dual, cover in (
        (state.slacks.row_dual, state.row_cover),
        (state.slacks.col_dual, state.col_cover),
    ):
        dual += theta // 2
        dual[cover] -= theta


# -- the drivers ---------------------------------------------------------------------------------


class Classical:
    """The steps in which the classical variant differs."""

    def __init__(self, state: State, grid: Grid) -> None:
        self.state, self.grid = state, grid
        self._is_stale = True

    def first_frontier(self) -> Vertices:
        """Unassigned rows with a tight pair; the lists are remade only after a dual update."""
        state = self.state
        if self._is_stale:
            compress_matrix(state, grid=self.grid)
            self._is_stale = False
        has_pair = state.indptr[:-1] < state.indptr[1:]
        marks = np.where(has_pair, ACTIVE, VISITED)
        state.row_mark = np.where(state.row_cover, state.row_mark, marks)
        return self.contract()

    def expand(self, frontier: Vertices) -> None:
        expand_classical(self.state, frontier, grid=self.grid)

    def contract(self) -> Vertices:
        return compact(self.state.row_mark == ACTIVE, grid=self.grid)

    def update(self) -> Vertices | None:
        """Update the duals; the frontier to go on with, None if there is no full assignment."""
        theta = least_uncovered_slacks(self.state, grid=self.grid)
        if theta is None:
            return None
        update_classical(self.state, theta, grid=self.grid)
        self._is_stale = True
        return self.first_frontier()


class Tree:
    """The steps in which the alternating tree variant differs."""

    def __init__(self, state: State, grid: Grid) -> None:
        self.state, self.grid = state, grid

    def first_frontier(self) -> Vertices:
        """Unassigned rows."""
        self.state.row_mark[~self.state.row_cover] = ACTIVE
        return self.contract()

    def expand(self, frontier: Vertices) -> None:
        expand_tree(self.state, frontier, grid=self.grid)

    def contract(self) -> Vertices:
        return compact(self.state.row_mark == ACTIVE, grid=self.grid)

    def update(self) -> Vertices | None:
        """Update the duals; the frontier to go on with, None if there is no full assignment."""
        slack, far = self.state.slack, self.state.slacks.far
        theta = slack[slack > 0].min(initial=far)
        if theta == far:
            return None
        update_tree(self.state, int(theta), grid=self.grid)
        return self.contract()


ALGORITHMS: dict[str, type[Classical] | type[Tree]] = {
    "hungarian-classical": Classical,
    "hungarian-tree": Tree,
}


def _no_vertex(size: int) -> Vertices:
    return np.full(size, NONE, np.intp)


def iterations(state: State, algorithm: str, grid: Grid) -> Iterator[Iteration]:
    """Run a variant on reduced costs, an iteration each time the caller asks for one.

    Ends when all rows are assigned, or no full assignment exists. The mates in `state` are a
    matching, and the duals feasible, whenever an iteration is yielded.
    """
    variant = ALGORITHMS[algorithm](state, grid)
    while True:
        launches = grid.launches
        state.uncover()
        matched = check_optimality(state, grid=grid)
        if matched == state.nrows:
            return
        levels = updates = 0
        frontier = variant.first_frontier()
        while True:
            while frontier.size:
                variant.expand(frontier)
                levels += 1
                frontier = variant.contract()
            ends = compact(state.col_mark == REVERSE, grid=grid)
            if ends.size:
                break
            following = variant.update()
            if following is None:
                return
            frontier = following
            updates += 1
        reverse_pass(state, ends, grid=grid)
        roots = compact(state.row_mark == AUGMENT, grid=grid)
        augmentation_pass(state, roots, grid=grid)
        launches = grid.launches - launches
        yield Iteration(levels, updates, launches, len(roots), state.matched)


def run(task: AssignmentTask, *, algorithm: str) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped.

    It begins from nothing, as the paper does. ``seed`` fixes the order of the threads. As in the
    paper's Table 2, what is found before the first dual update is ``initial``.
    """
    costs, limit, control = task.costs, task.limit, task.control
    (row_to_col, col_to_row), (row_dual, col_dual) = task.mates, task.duals
    row_dual[:] = -costs.largest if limit is None else min(-costs.largest, limit)
    col_dual[:] = 0
    task.solution.has_duals = True
    values = dense_matrix(costs, limit)
    forbidden = np.iinfo(np.int64).max if costs.is_integer else np.inf
    state = State(Slacks(values, values < forbidden))

    def write() -> None:
        real = len(col_to_row)
        row_to_col[:] = np.where(state.row_to_col < real, state.row_to_col, NONE)
        col_to_row[:] = state.col_to_row[:real]
        slacks = state.slacks
        most = slacks.col_dual.max(initial=0)  # one alone has the dual of an unmatched column
        task.solution.has_duals = False
        row_dual[:] = slacks.in_units(slacks.row_dual + most)
        col_dual[:] = slacks.in_units(slacks.col_dual[:real] - most)
        task.solution.has_duals = True

    grid = Grid("ct", task.seed, heartbeat(control, partial(count_matched, row_to_col)))
    try:
        reduce_rows(state, grid=grid)
        if state.nrows == state.ncols:
            reduce_columns(state, grid=grid)
        write()
        is_initial = True
        for iteration in iterations(state, algorithm, grid):
            write()
            is_initial &= iteration.updates == 0
            initial = iteration.found if is_initial else 0
            control.phase(**iteration._asdict(), initial=initial)
    except Stopped:
        return False
    return True
