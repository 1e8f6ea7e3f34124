"""Lexicographic bottleneck assignments: the largest cost least, then the next one, and so on.

Costs are taken from the greatest down. All entries that cost as much are a level. As few of them as
possible are to be in the assignment, and then only assignments are of interest that have no more.

A row whose entry is of the level looks for a path to its column without the level's entries, from
both ends at once. If it finds one, the entry is replaced. Otherwise the end that ran out of rows
has a set that no path leaves (or enters):

- If the level has no other entry, this one is in every assignment that is left. Row and column are
  done with, and the set is apart from all others from now on.
- If it has others, one of the level is needed. Duals 1 and -1 of the set leave out what does not
  occur in an assignment with one.
- If several rows find no path, they are matched anew at a cost of 1 for each entry of the level and
  0 for all others, by shortest paths (`search`). Entries with a slack are left out.

Each level that is needed has integer duals: u_i + v_j <= w_ij for all entries that are left, where
w_ij is 1 for the level's and 0 for others, with equality on pairs. What is left are the entries
with equality. So the duals of all levels, read in order, are a vector for each vertex, and prove
the assignment lexicographically (`gpumatch.problems.lexicographic`).

Encodings
---------
``order``        entries by falling weights, ``state[AT]`` of them done
``dead[e]``      1 if the entry is left out; so is one whose row and column have other ``part``s
``pair[i]``      the entry of the row; ``mate[j]`` the row of the column
``mark[s, i]``   the search that has reached the row, from its end s: FROM_ROW or FROM_COLUMN
``link[s, i]``   FROM_ROW: the entry that takes the row's column; FROM_COLUMN: what the row takes
``queue[s]``     the rows that were reached
``stuck``        rows of the level without a path

Reference: Burkard, Rendl, *Lexicographic bottleneck problems*, Operations Research Letters 10(5),
1991.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpumatch.cpu.csr import owners, transpose_values
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.ranking.search import change_duals, find_path, follow_path
from gpumatch.cpu.ranking.state import FREE, NONE, Slots, space_for

__all__ = ["Level", "solve"]

_BUDGET = 2**25  # entries read between two returns to Python
_AT, _PARTS, _STAMP, _BEGIN, _END, _STUCK, _SIDE, _SIZE = range(8)
_MORE, _ENDED, _ALONE, _ONE, _SEVERAL = range(5)
FROM_ROW, FROM_COLUMN = 0, 1


class Level(NamedTuple):
    """The duals of a level.

    Attributes
    ----------
    entry : int
        One of its entries.
    vertices, numbers : int arrays
        The vertices with a dual, and their duals. Column j is vertex nrows + j.
    """

    entry: int
    vertices: np.ndarray
    numbers: np.ndarray


class _Graph(NamedTuple):
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    rows: np.ndarray
    col_indptr: np.ndarray
    col_entries: np.ndarray
    order: np.ndarray


class _Work(NamedTuple):
    dead: np.ndarray
    row_part: np.ndarray
    col_part: np.ndarray
    pair: np.ndarray
    mate: np.ndarray
    mark: np.ndarray
    link: np.ndarray
    queue: np.ndarray
    stuck: np.ndarray
    state: np.ndarray


def solve(
    entries: tuple[np.ndarray, np.ndarray, np.ndarray],
    mate: np.ndarray,
    none: float | None,
    stopped: Callable[[int], bool],
) -> tuple[list[Level], bool]:
    """Improve a perfect matching of a square matrix until it is lexicographically least.

    Parameters
    ----------
    entries : (indptr, indices, weights)
        Costs in CSR.
    mate : int array
        The row of each column; at the end, that of the best matching.
    none : number, optional
        What entries cost that do not count, less than all others.
    stopped : callable
        Called with the number of entries done at least every half second; True ends the search.

    Returns
    -------
    levels : list of Level
        Those that are needed, the greatest first.
    has_ended : bool
    """
    graph, work = _begin(entries, mate, none)
    levels: list[Level] = []
    end = _MORE
    while end != _ENDED and not stopped(int(work.state[_AT])):
        end = _advance(graph, work, _BUDGET)
        if end in (_ALONE, _ONE):
            levels.append(_level_of_set(graph, work, is_alone=end == _ALONE))
        elif end == _SEVERAL:
            levels.append(_solve_level(graph, work))
    mate[:] = work.mate
    return levels, end == _ENDED


def _begin(
    entries: tuple[np.ndarray, np.ndarray, np.ndarray], mate: np.ndarray, none: float | None
) -> tuple[_Graph, _Work]:
    indptr, indices, weights = entries
    size, rows = mate.size, owners(indptr, indices).astype(np.int32)
    numbers = np.arange(indices.size)
    col_indptr, _, col_entries = transpose_values(indptr, indices, numbers, size)
    order = np.argsort(weights, kind="stable")[::-1].copy()
    if none is not None:
        order = order[weights[order] > none]
    graph = _Graph(indptr, indices, weights, rows, col_indptr, col_entries, order)
    is_pair = mate[indices] == rows
    pair = np.full(size, NONE)
    pair[rows[is_pair]] = numbers[is_pair]
    row_part, col_part = np.zeros((2, size), np.int32)
    return graph, _Work(
        np.zeros(indices.size, np.int8), row_part, col_part, pair, mate.astype(np.int64),
        mark=np.zeros((2, size), np.int64),
        link=np.full((2, size), NONE),
        queue=np.zeros((2, size), np.int32),
        stuck=np.empty(size, np.int64),
        state=np.zeros(8, np.int64),
    )  # fmt: skip


def _level_of_set(graph: _Graph, work: _Work, *, is_alone: bool) -> Level:
    """The duals that a closed set gives a level, of which one entry is needed."""
    row, side = int(work.stuck[0]), int(work.state[_SIDE])
    reached = work.queue[side, : work.state[_SIZE]].astype(np.int64)
    entry = int(work.pair[row])
    others = reached[reached != row]
    size = len(work.pair)
    # Of one that is alone, the duals set its row and column apart, too.
    inside, own_row, own_col = (3, 2, -1) if is_alone else (1, 1, 0)
    if side == FROM_COLUMN:
        inside, own_row, own_col = (-3, -1, 2) if is_alone else (-1, 0, 1)
    cols = graph.indices[work.pair[others]].astype(np.int64)
    vertices = np.concatenate([others, size + cols, [row, size + graph.indices[entry]]])
    numbers = np.repeat([inside, -inside], others.size)
    return Level(entry, vertices, np.concatenate([numbers, [own_row, own_col]]))


def _solve_level(graph: _Graph, work: _Work) -> Level:
    """Match the rows of a level that have no path anew, by shortest paths."""
    size, state = len(work.pair), work.state
    level = graph.order[state[_BEGIN] : state[_END]]
    weights = np.zeros(graph.indices.size, np.int64)
    weights[level] = 1
    work.dead[work.row_part[graph.rows] != work.col_part[graph.indices]] = 1
    space = space_for((graph.indptr, graph.indices, weights), np.full(size, 2**62), size)
    problem, room = space
    slots = Slots.empty(1, size, size, weights.dtype)
    slots.taken[0], slots.u[0], slots.v[0] = work.pair, 0, 0
    room.out[:], room.mate[:] = work.dead, work.mate
    stuck = work.stuck[: state[_STUCK]]
    room.mate[graph.indices[work.pair[stuck]]] = FREE
    slots.taken[0, stuck] = NONE
    for row in stuck.tolist():
        end, _ = find_path(problem, slots, 0, row, problem.far, problem.zero, room)
        change_duals(slots, 0, row, end, room.dist[end], problem.zero, room)
        follow_path(problem.indices, slots, 0, row, end, room)
    work.pair[:], work.mate[:] = slots.taken[0], room.mate
    u, v = slots.u[0], slots.v[0]
    work.dead[weights - u[graph.rows] - v[graph.indices] != 0] = 1
    numbers = np.concatenate([u, v])
    (vertices,) = numbers.nonzero()
    return Level(int(level[0]), vertices, numbers[vertices])


@kernel
def _advance(graph, work, budget):
    """Go through levels while the budget lasts, until one is needed; say why this ends."""
    state, order, weights = work.state, graph.order, graph.weights
    while state[_AT] < len(order):
        if budget <= 0:
            return _MORE
        begin = end = state[_AT]
        level = weights[order[begin]]
        alive = tried = stuck = 0
        while end < len(order) and weights[order[end]] == level:
            entry = order[end]
            alive += 1 if _is_alive(graph, work, entry) else 0
            end += 1
        budget -= end - begin
        state[_AT], state[_BEGIN], state[_END] = end, begin, end
        if alive == 0:
            continue
        for at in range(begin, end):
            entry = order[at]
            row = graph.rows[entry]
            if work.pair[row] != entry or not _is_alive(graph, work, entry):
                continue
            tried += 1
            found, read = _replace(graph, work, row, level)
            budget -= read
            if not found:
                work.stuck[stuck] = row
                stuck += 1
        state[_STUCK] = stuck
        if stuck == 0:
            for at in range(begin, end):
                work.dead[order[at]] = 1
        elif stuck > 1:
            return _SEVERAL
        else:
            if tried > 1:
                _replace(graph, work, work.stuck[0], level)  # what it reaches
            if alive == 1:
                _set_apart(graph, work)
                return _ALONE
            _leave_out(graph, work)
            return _ONE
    return _ENDED


@kernel
def _is_alive(graph, work, entry):
    """True if an entry is not left out."""
    row, col = graph.rows[entry], graph.indices[entry]
    return work.dead[entry] == 0 and work.row_part[row] == work.col_part[col]


@kernel
def _replace(graph, work, root, level):
    """Find the row another way to its column; return if there is one, and the entries read.

    Otherwise SIDE is the end that ran out, with SIZE rows in its queue.
    """
    state, mark, queue = work.state, work.mark, work.queue
    state[_STAMP] += 1
    stamp = state[_STAMP]
    goal = graph.indices[work.pair[root]]
    mark[FROM_ROW, root] = stamp
    queue[FROM_ROW, 0] = root
    size0, size1, next0, next1 = 1, 0, 0, 0
    meeting, size1, steps1 = _look_back(graph, work, goal, root, level, stamp, size1)
    steps0 = 0
    while meeting < 0:
        if next0 == size0:
            state[_SIDE], state[_SIZE] = FROM_ROW, size0
            return False, steps0 + steps1
        if next1 == size1:
            state[_SIDE], state[_SIZE] = FROM_COLUMN, size1
            return False, steps0 + steps1
        if steps0 <= steps1:
            row = queue[FROM_ROW, next0]
            next0 += 1
            meeting, size0, steps = _look_ahead(graph, work, row, goal, level, stamp, size0)
            steps0 += steps
        else:
            row = queue[FROM_COLUMN, next1]
            next1 += 1
            col = graph.indices[work.pair[row]]
            meeting, size1, steps = _look_back(graph, work, col, root, level, stamp, size1)
            steps1 += steps
    _exchange(graph, work, root, goal, meeting)
    return True, steps0 + steps1


@kernel
def _look_ahead(graph, work, row, goal, level, stamp, size):
    """Reach the rows whose columns a row may take; return where both ends meet, or -1."""
    mark, link, part = work.mark, work.link, work.row_part[row]
    begin, end = graph.indptr[row], graph.indptr[row + 1]
    for entry in range(begin, end):
        col = graph.indices[entry]
        if work.dead[entry] == 1 or work.col_part[col] != part or graph.weights[entry] == level:
            continue
        if col == goal:
            link[FROM_COLUMN, row] = entry
            return row, size, entry - begin + 1
        other = work.mate[col]
        if mark[FROM_ROW, other] == stamp:
            continue
        mark[FROM_ROW, other] = stamp
        link[FROM_ROW, other] = entry
        work.queue[FROM_ROW, size] = other
        size += 1
        if mark[FROM_COLUMN, other] == stamp:
            return other, size, entry - begin + 1
    return -1, size, end - begin + 1


@kernel
def _look_back(graph, work, col, root, level, stamp, size):
    """Reach the rows that may take a column; return where both ends meet, or -1."""
    mark, link, part = work.mark, work.link, work.col_part[col]
    begin, end = graph.col_indptr[col], graph.col_indptr[col + 1]
    for at in range(begin, end):
        entry = graph.col_entries[at]
        row = graph.rows[entry]
        if work.dead[entry] == 1 or work.row_part[row] != part or graph.weights[entry] == level:
            continue
        if mark[FROM_COLUMN, row] == stamp or work.pair[row] == entry:
            continue
        mark[FROM_COLUMN, row] = stamp
        link[FROM_COLUMN, row] = entry
        work.queue[FROM_COLUMN, size] = row
        size += 1
        if mark[FROM_ROW, row] == stamp:
            return row, size, at - begin + 1
    return -1, size, end - begin + 1


@kernel
def _exchange(graph, work, root, goal, meeting):
    """Change the pairs along the path: from the meeting to the goal, then back to the root."""
    pair, mate, link = work.pair, work.mate, work.link
    row = meeting
    while True:
        entry = link[FROM_COLUMN, row]
        col = graph.indices[entry]
        after = mate[col]
        pair[row], mate[col] = entry, row
        if col == goal:
            break
        row = after
    row = meeting
    while row != root:
        entry = link[FROM_ROW, row]
        row = graph.rows[entry]
        pair[row], mate[graph.indices[entry]] = entry, row


@kernel
def _set_apart(graph, work):
    """Give the row without a path, and the closed set, parts of their own."""
    state, root = work.state, work.stuck[0]
    state[_PARTS] += 2
    own = state[_PARTS]
    for at in range(state[_SIZE]):
        row = work.queue[state[_SIDE], at]
        work.row_part[row] = work.col_part[graph.indices[work.pair[row]]] = own - 1
    work.row_part[root] = work.col_part[graph.indices[work.pair[root]]] = own


@kernel
def _leave_out(graph, work):
    """Leave out what no assignment has that has one entry of the level."""
    state, root, side = work.state, work.stuck[0], work.state[_SIDE]
    goal = graph.indices[work.pair[root]]
    mark, stamp = work.mark, state[_STAMP]
    for at in range(state[_SIZE]):
        row = work.queue[side, at]
        if side == FROM_COLUMN:
            for entry in range(graph.indptr[row], graph.indptr[row + 1]):
                col = graph.indices[entry]
                if col != goal and mark[side, work.mate[col]] != stamp:
                    work.dead[entry] = 1
        elif row != root:
            col = graph.indices[work.pair[row]]
            for k in range(graph.col_indptr[col], graph.col_indptr[col + 1]):
                entry = graph.col_entries[k]
                if mark[side, graph.rows[entry]] != stamp:
                    work.dead[entry] = 1
    for at in range(state[_BEGIN], state[_END]):
        entry = graph.order[at]
        row, col = graph.rows[entry], graph.indices[entry]
        is_in = mark[side, row] == stamp
        is_col_in = col != goal and mark[side, work.mate[col]] == stamp
        if side == FROM_COLUMN:
            is_tight = not is_in and (is_col_in or col == goal)
        else:
            is_tight = is_in and not is_col_in
        if not is_tight:
            work.dead[entry] = 1
