"""Date and Nagi (2016) without a GPU: both Hungarian variants' kernels as interleaved threads.

As in `gpumatch.cpu.reference`, each kernel is a loop over the vertices of one thread, written as a
generator, and `Grid` advances the threads in a seeded random order. So the races by which the paper
finds several vertex-disjoint augmenting paths at once happen here as on a GPU. It is slow: for some
dozens of rows, to follow the paper and to compare the CUDA kernels with.

Names
-----
=======================  ===========================================================================
paper                    here
=======================  ===========================================================================
C                        costs: a list of rows, `INF` for forbidden pairs
D_r, D_c                 row_dual, col_dual
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
Costs become Python's integers, which have no end: floats are multiplied by a power of two that
makes all of them whole, and everything is doubled, so that theta is even and theta / 2 is whole. It
stays even: all duals of rows and columns change by theta / 2, up or down, hence all slacks by a
multiple of theta. So a zero is a zero, and nothing is rounded but the duals that are returned.

Where the paper is silent, or misprinted
----------------------------------------
- Algorithm 8 as scanned prints the branch of uncovered columns twice. The duals are to stay
  feasible: uncovered columns rise, covered ones fall by theta / 2.
- F_out may hold a row several times where threads raced for its column. The next frontier is made
  from the marks of the rows instead, as in the tree variant, and has each once.
- With fewer rows than columns there is no column reduction, because an unmatched column needs the
  dual 0. Uncovered columns rise all alike, unmatched ones are never covered; so that constant is
  taken from all columns at the end, and given to the rows.
- After a dual update of the classical variant the search goes on from all uncovered rows with a
  tight pair, as in its sequential form, not from the unassigned ones only: covers stay.
- theta is infinite when no pair leads out of the trees: there is no full assignment.

Interleavings: a bare ``yield`` is where a thread waits for its turn; see `cpu.interleaving`.

References
----------
K. Date, R. Nagi: GPU-accelerated Hungarian algorithms for the Linear Assignment Problem. Parallel
Computing 57, 2016.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from gpumatch.arrays import count_matched
from gpumatch.cpu.initial_reduction import dense_matrix
from gpumatch.cpu.interleaving import Grid, Turns

INF = math.inf
NONE = -1  # no mate, predecessor or successor

INACTIVE, ACTIVE, VISITED, REVERSE, AUGMENT = range(5)

Number = int | float  # float only for INF
Costs = Sequence[Sequence[Number]]


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
        Augmenting paths that were turned.
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

    def __init__(self, costs: Costs, nrows: int, ncols: int) -> None:
        self.costs, self.nrows, self.ncols = costs, nrows, ncols
        self.row_to_col, self.col_to_row = [NONE] * nrows, [NONE] * ncols
        self.row_dual: list[int] = [0] * nrows
        self.col_dual: list[int] = [0] * ncols
        self.slack: list[Number] = [INF] * ncols
        self.indptr, self.indices = [0] * (nrows + 1), list[int]()
        self.uncover()

    def uncover(self) -> None:
        """Reset what belongs to one iteration."""
        nrows, ncols = self.nrows, self.ncols
        self.row_cover, self.col_cover = [False] * nrows, [False] * ncols
        self.row_pred, self.col_pred = [NONE] * nrows, [NONE] * ncols
        self.row_next, self.col_next = [NONE] * nrows, [NONE] * ncols
        self.row_mark, self.col_mark = [INACTIVE] * nrows, [INACTIVE] * ncols
        self.slack = [INF] * ncols

    def reduced(self, row: int, col: int) -> Number:
        """The slack of a pair."""
        cost = self.costs[row][col]
        return INF if cost == INF else cost - self.row_dual[row] - self.col_dual[col]

    @property
    def matched(self) -> int:
        return sum(col != NONE for col in self.row_to_col)


# -- the kernels ---------------------------------------------------------------------------------


def reduce_rows(state: State, *, grid: Grid) -> None:
    """Give each row its least cost as dual (Algorithm 1, first kernel)."""

    def thread(rows: Sequence[int]) -> Turns:
        for row in rows:
            yield
            least = min(state.costs[row], default=INF)
            state.row_dual[row] = 0 if least == INF else int(least)

    grid.launch(thread, state.nrows)


def reduce_columns(state: State, *, grid: Grid) -> None:
    """Give each column its least slack as dual (Algorithm 1, second kernel)."""

    def thread(cols: Sequence[int]) -> Turns:
        for col in cols:
            yield
            least = min(state.reduced(row, col) for row in range(state.nrows))
            state.col_dual[col] += 0 if least == INF else int(least)

    grid.launch(thread, state.ncols)


def check_optimality(state: State, *, grid: Grid) -> int:
    """Cover the assigned rows, and count them (Algorithm 2)."""
    match_count = 0

    def thread(rows: Sequence[int]) -> Turns:
        nonlocal match_count
        for row in rows:
            yield
            if state.row_to_col[row] != NONE:
                state.row_cover[row] = True
                match_count += 1

    grid.launch(thread, state.nrows)
    return match_count


def compact(is_relevant: Sequence[bool], *, grid: Grid) -> list[int]:
    """The indices of the relevant elements: stream compaction by prefix sums (section 3.3)."""
    addresses = [0, *accumulate(map(int, is_relevant))]
    relevant = [NONE] * addresses[-1]

    def thread(elements: Sequence[int]) -> Turns:
        for k in elements:
            yield
            if is_relevant[k]:
                relevant[addresses[k]] = k

    grid.launch(thread, len(is_relevant))
    return relevant


def compress_matrix(state: State, *, grid: Grid) -> None:
    """Make the adjacency lists Z of the tight pairs (section 3.3)."""
    counts = [0] * state.nrows

    def tight(row: int) -> list[int]:
        return [col for col in range(state.ncols) if state.reduced(row, col) == 0]

    def count(rows: Sequence[int]) -> Turns:
        for row in rows:
            yield
            counts[row] = len(tight(row))

    def scatter(rows: Sequence[int]) -> Turns:
        for row in rows:
            yield
            state.indices[state.indptr[row] : state.indptr[row + 1]] = tight(row)

    grid.launch(count, state.nrows)
    state.indptr = [0, *accumulate(counts)]
    state.indices = [NONE] * state.indptr[-1]
    grid.launch(scatter, state.nrows)


def expand_classical(state: State, frontier: Sequence[int], *, grid: Grid) -> None:
    """Expand the frontier along the lists, a thread a row (Algorithm 3)."""

    def thread(slots: Sequence[int]) -> Turns:
        for slot in slots:
            row = frontier[slot]
            for k in range(state.indptr[row], state.indptr[row + 1]):
                col = state.indices[k]
                yield
                if state.col_cover[col]:
                    continue
                yield
                state.col_pred[col] = row
                new = state.col_to_row[col]
                if new == row:
                    continue
                if new == NONE:
                    state.col_mark[col] = REVERSE
                    continue
                yield
                state.row_pred[new] = col
                state.row_cover[new] = False
                yield
                state.col_cover[col] = True
                yield
                if state.row_mark[new] != VISITED:
                    state.row_mark[new] = ACTIVE
            state.row_mark[row] = VISITED

    grid.launch(thread, len(frontier))


def expand_tree(state: State, frontier: Sequence[int], *, grid: Grid) -> None:
    """Expand the frontier by lowering slacks, a thread a column (Algorithm 4)."""

    def thread(cols: Sequence[int]) -> Turns:
        for col in cols:
            yield
            if state.col_cover[col]:
                continue
            for row in frontier:
                slack = state.reduced(row, col)
                if state.slack[col] > slack:
                    state.slack[col] = slack
                    state.col_pred[col] = row
                new = state.col_to_row[col]
                if state.slack[col] != 0:
                    continue
                if new == NONE:
                    state.col_mark[col] = REVERSE
                    continue
                yield
                state.row_pred[new] = col
                state.row_cover[new] = False
                state.col_cover[col] = True
                state.row_mark[new] = ACTIVE

    grid.launch(thread, state.ncols)
    for row in frontier:
        state.row_mark[row] = VISITED


def reverse_pass(state: State, ends: Sequence[int], *, grid: Grid) -> None:
    """Trace each end back to its root; where paths meet, the last one stays (Algorithm 5)."""

    def thread(slots: Sequence[int]) -> Turns:
        for slot in slots:
            row, col = NONE, ends[slot]
            while col != NONE:
                yield
                state.col_next[col] = row
                row = state.col_pred[col]
                yield
                state.row_next[row] = col
                col = state.row_pred[row]
            state.row_mark[row] = AUGMENT

    grid.launch(thread, len(ends))


def augmentation_pass(state: State, roots: Sequence[int], *, grid: Grid) -> None:
    """Turn the path from each root (Algorithm 6)."""

    def thread(slots: Sequence[int]) -> Turns:
        for slot in slots:
            row = roots[slot]
            while row != NONE:
                yield
                col = state.row_next[row]
                state.row_to_col[row] = col
                yield
                state.col_to_row[col] = row
                row = state.col_next[col]

    grid.launch(thread, len(roots))


def least_uncovered_slacks(state: State, *, grid: Grid) -> Number:
    """The least slack between uncovered rows and columns: theta (Algorithm 7)."""
    least: list[Number] = [INF] * state.nrows
    theta: Number = INF

    def of_rows(rows: Sequence[int]) -> Turns:
        for row in rows:
            yield
            if state.row_cover[row]:
                continue
            for col in range(state.ncols):
                if not state.col_cover[col]:
                    least[row] = min(state.reduced(row, col), least[row])

    def of_all(only: Sequence[int]) -> Turns:
        nonlocal theta
        for _ in only:
            yield
            theta = min(least, default=INF)

    grid.launch(of_rows, state.nrows)
    grid.launch(of_all, 1)
    return theta


def update_classical(state: State, theta: int, *, grid: Grid) -> None:
    """Change the duals by theta / 2 (Algorithm 8)."""

    def thread(vertices: Sequence[int]) -> Turns:
        for k in vertices:
            yield
            _change_duals(state, theta // 2, k)

    grid.launch(thread, state.ncols)


def update_tree(state: State, theta: int, *, grid: Grid) -> None:
    """Change the duals by theta / 2 and the slacks by theta; wake rows (Algorithm 9)."""

    def thread(vertices: Sequence[int]) -> Turns:
        for k in vertices:
            yield
            _change_duals(state, theta // 2, k)
            if 0 < state.slack[k] < INF:
                state.slack[k] -= theta
                if state.slack[k] == 0:
                    state.row_mark[state.col_pred[k]] = ACTIVE

    grid.launch(thread, state.ncols)


def _change_duals(state: State, half: int, k: int) -> None:
    """What Algorithms 8 and 9 do alike, for row k and column k."""
    if k < state.nrows:
        state.row_dual[k] += -half if state.row_cover[k] else half
    state.col_dual[k] += -half if state.col_cover[k] else half


# -- the drivers ---------------------------------------------------------------------------------


class Classical:
    """The steps in which the classical variant differs."""

    def __init__(self, state: State, grid: Grid) -> None:
        self.state, self.grid = state, grid
        self._is_stale = True

    def first_frontier(self) -> list[int]:
        """Unassigned rows with a tight pair; the lists are remade only after a dual update."""
        state = self.state
        if self._is_stale:
            compress_matrix(state, grid=self.grid)
            self._is_stale = False
        for row in range(state.nrows):
            if not state.row_cover[row]:
                has_pair = state.indptr[row] < state.indptr[row + 1]
                state.row_mark[row] = ACTIVE if has_pair else VISITED
        return self.contract()

    def expand(self, frontier: Sequence[int]) -> None:
        expand_classical(self.state, frontier, grid=self.grid)

    def contract(self) -> list[int]:
        return _marked(self.state.row_mark, ACTIVE, self.grid)

    def update(self) -> list[int] | None:
        """Update the duals; the frontier to go on with, None if there is no full assignment."""
        theta = least_uncovered_slacks(self.state, grid=self.grid)
        if theta == INF:
            return None
        update_classical(self.state, int(theta), grid=self.grid)
        self._is_stale = True
        return self.first_frontier()


class Tree:
    """The steps in which the alternating tree variant differs."""

    def __init__(self, state: State, grid: Grid) -> None:
        self.state, self.grid = state, grid

    def first_frontier(self) -> list[int]:
        """Unassigned rows."""
        state = self.state
        for row in range(state.nrows):
            if not state.row_cover[row]:
                state.row_mark[row] = ACTIVE
        return self.contract()

    def expand(self, frontier: Sequence[int]) -> None:
        expand_tree(self.state, frontier, grid=self.grid)

    def contract(self) -> list[int]:
        return _marked(self.state.row_mark, ACTIVE, self.grid)

    def update(self) -> list[int] | None:
        """Update the duals; the frontier to go on with, None if there is no full assignment."""
        theta = min((slack for slack in self.state.slack if slack > 0), default=INF)
        if theta == INF:
            return None
        update_tree(self.state, int(theta), grid=self.grid)
        return self.contract()


ALGORITHMS: dict[str, type[Classical] | type[Tree]] = {
    "hungarian-classical": Classical,
    "hungarian-tree": Tree,
}


def _marked(marks: Sequence[int], mark: int, grid: Grid) -> list[int]:
    return compact([m == mark for m in marks], grid=grid)


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
            while frontier:
                variant.expand(frontier)
                levels += 1
                frontier = variant.contract()
            ends = _marked(state.col_mark, REVERSE, grid)
            if ends:
                break
            following = variant.update()
            if following is None:
                return
            frontier = following
            updates += 1
        reverse_pass(state, ends, grid=grid)
        roots = _marked(state.row_mark, AUGMENT, grid)
        augmentation_pass(state, roots, grid=grid)
        launches = grid.launches - launches
        yield Iteration(levels, updates, launches, len(roots), state.matched)


class _Stopped(Exception):
    """Control asked to stop."""


def run(
    costs: Any,
    row_to_col: np.ndarray,
    col_to_row: np.ndarray,
    row_dual: np.ndarray,
    col_dual: np.ndarray,
    control: Any,
    *,
    algorithm: str,
    limit: float | None,
    threads: int = 1,
    seed: int,
    search: str = "levels",
) -> bool:
    """Match the rows at least cost, as `gpumatch.assignment` tells; True unless stopped.

    Begins from nothing, whatever is given: the paper does. ``seed`` fixes the order of the threads.
    """
    if search != "levels":
        raise ValueError(f"search={search!r} runs on 'cpu', not on 'reference'")
    whole = _Whole(dense_matrix(costs, limit), is_integer=costs.is_integer)

    def beat() -> None:
        if control.tick(count_matched(row_to_col)):
            raise _Stopped

    def write() -> None:
        real = len(col_to_row)
        row_to_col[:] = [col if col < real else NONE for col in state.row_to_col]
        col_to_row[:] = state.col_to_row[:real]
        whole.write_duals(state, row_dual, col_dual)

    grid = Grid("ct", seed, beat)
    state = State(whole.costs, *whole.shape)
    try:
        reduce_rows(state, grid=grid)
        if state.nrows == state.ncols:
            reduce_columns(state, grid=grid)
        write()
        for iteration in iterations(state, algorithm, grid):
            write()
            control.phase(**iteration._asdict())
    except _Stopped:
        return False
    return True


run_classical = partial(run, algorithm="hungarian-classical")
run_tree = partial(run, algorithm="hungarian-tree")


class _Whole:
    """Costs as even integers; see the module."""

    def __init__(self, values: np.ndarray, *, is_integer: bool) -> None:
        self.shape = values.shape
        self._is_integer = is_integer
        allowed = values < (np.iinfo(np.int64).max if is_integer else INF)
        ratios = [x.as_integer_ratio() for x in values[allowed].tolist()]
        self._unit = 2 * max((denominator for _, denominator in ratios), default=1)
        numbers = (number * (self._unit // denominator) for number, denominator in ratios)
        self.costs: list[list[Number]] = [
            [next(numbers) if is_allowed else INF for is_allowed in line]
            for line in allowed.tolist()
        ]

    def write_duals(self, state: State, row_dual: np.ndarray, col_dual: np.ndarray) -> None:
        """The duals in the caller's unit, with the greatest of a column 0."""
        most = max(state.col_dual, default=0)
        row_dual[:] = [self._in_units(dual + most) for dual in state.row_dual]
        real = state.col_dual[: len(col_dual)]
        col_dual[:] = [self._in_units(dual - most) for dual in real]

    def _in_units(self, number: int) -> Number:
        return number // self._unit if self._is_integer else number / self._unit
