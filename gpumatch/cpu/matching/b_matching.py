"""Maximum b-matchings: Karp and Sipser's start, then Dinic's phases on the edges of a graph.

A b-matching takes edges so that no vertex is in more of them than its capacity.

Start. A free edge is open if both of its ends have room. A vertex with room for all of its open
edges may take them: an optimum that leaves one of them out can exchange it for another edge at the
same neighbour. If that fills the neighbour, its other edges close, which may leave more vertices
with room for all of theirs. If there is no such vertex, the next row takes the edge whose column is
least in demand.

Phases. A path alternates between free edges, from row to column, and taken ones, from column to
row. It begins at a row and ends at a column that both have room. Each phase finds the levels of the
shortest paths by one search from all rows with room, then augments along paths on these levels
until none is left. As each edge carries one unit, there are O(√nnz) phases of O(nnz).

Proof. When a search reaches no column with room, let R and C be the rows and the columns that it
has reached. All free edges of R lead to C, and all taken edges of C lead to R. The cover is the
rows outside R and the columns in C. All of them are full, no taken edge has both ends in the cover,
and each edge that the cover misses is taken. So the capacities of the cover and the number of the
edges that it misses add up to the edges taken.

Encodings
---------
``is_taken``   a mark for each edge, in the order of ``indices``
``rows``       (indptr, indices)
``cols``       (col_indptr, col_indices, place); ``place`` is where an edge is in ``indices``
``rooms``      how many more edges each row and each column may be in
``degrees``    how many open edges each row and each column has
``stack``      vertices with room for all of their open edges: rows, then columns from nrows on
``levels``     the length of the shortest alternating path to each vertex, rows even and columns
               odd; UNSEEN if there is none, or if no path goes on from there
``nexts``      the first edge of each vertex that the phase has not given up

References
----------
Karp, Sipser, *Maximum matchings in sparse random graphs*, FOCS 1981.
Dinic, *Algorithm for solution of a problem of maximum flow in networks with power estimation*,
Soviet Math. Doklady 11, 1970.
Even, Tarjan, *Network flow and testing graph connectivity*, SIAM J. Comput. 4(4), 1975.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import BMatchingTask
from gpumatch.cpu import csr
from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["run"]

BUDGET = 2**24
"""Edges that a kernel visits before it returns to Python."""
UNSEEN = -1
COMPARED = 32
"""Up to so many edges of a row are compared by demand; of a longer row, any are taken."""


def run(task: BMatchingTask, budget: int = BUDGET) -> tuple[np.ndarray, np.ndarray] | None:
    """Take as many edges as possible, in place.

    Returns
    -------
    rows, cols : bool arrays
        The marks of the cover that proves it. None if the control has stopped the run.
    """
    graph, control, is_taken = task.graph, task.control, task.is_taken
    rows = graph.indptr, graph.indices
    cols = csr.transpose_values(*rows, np.arange(graph.nnz, dtype=graph.indptr.dtype), graph.ncols)
    rooms = task.row_room, task.col_room
    taken = int(np.count_nonzero(is_taken))

    degrees = np.zeros(graph.nrows, np.int64), np.zeros(graph.ncols, np.int64)
    stack = np.empty(graph.nrows + graph.ncols, np.int32)
    row, count = 0, _count_open(rows, rooms, is_taken, degrees, stack)
    while row < graph.nrows or count > 0:
        row, count, found = _start(
            rows, cols,  # IN
            rooms, is_taken, degrees, stack, count, row, budget,  # OUT
        )  # fmt: skip
        taken += found
        if control.tick(taken):
            return None

    levels = np.empty(graph.nrows, np.int32), np.empty(graph.ncols, np.int32)
    queue = np.empty(graph.nrows, np.int32)
    path = np.empty(2 * min(graph.shape) + 2, np.int64), np.empty(graph.nrows + 1, np.int32)
    none = graph.nrows + graph.ncols  # a level that no vertex has
    while True:
        levels[0][:], levels[1][:] = np.where(rooms[0] > 0, 0, UNSEEN), UNSEEN
        roots = np.flatnonzero(levels[0] == 0).astype(np.int32)
        queue[: roots.size] = roots
        state = np.array([0, roots.size, none], np.int64)
        while _find_levels(rows, cols, rooms, is_taken, levels, queue, state, budget):
            if control.tick(taken):
                return None
        if state[2] == none:
            return levels[0] == UNSEEN, levels[1] != UNSEEN
        nexts = rows[0][:-1].copy(), cols[0][:-1].copy()
        last, before = int(state[2]), taken
        state = np.zeros(2, np.int64)
        while state[0] < roots.size:
            taken += _augment(
                rows, cols, roots,  # IN
                rooms, is_taken, levels, nexts, path, state, budget,  # OUT
            )  # fmt: skip
            if control.tick(taken):
                return None
        control.phase(found=taken - before, matched=taken, levels=last)


# -- the start -------------------------------------------------------------------------------------


@kernel
def _count_open(rows, rooms, is_taken, degrees, stack):
    """Count the open edges of each vertex, stack those with room for all; return how many."""
    (indptr, indices), (row_room, col_room), (row_degree, col_degree) = rows, rooms, degrees
    for row in range(row_room.size):
        for edge in range(indptr[row], indptr[row + 1]):
            col = indices[edge]
            if row_room[row] > 0 and col_room[col] > 0 and not is_taken[edge]:
                row_degree[row] += 1
                col_degree[col] += 1
    count = 0
    for row in range(row_room.size):
        if 0 < row_degree[row] <= row_room[row]:
            stack[count] = row
            count += 1
    for col in range(col_room.size):
        if 0 < col_degree[col] <= col_room[col]:
            stack[count] = row_room.size + col
            count += 1
    return count


@kernel
def _start(rows, cols, rooms, is_taken, degrees, stack, count, row, budget):
    """Take edges until all rows have had their turn; the next row, the stack, how many edges.

    A vertex on the stack keeps room for all of its open edges. So it is on it once.
    """
    indptr, indices = rows
    col_indptr, col_indices, place = cols
    row_room, col_room = rooms
    row_degree, col_degree = degrees
    nrows, found = row_room.size, 0
    while budget > 0 and (count > 0 or row < nrows):
        if count > 0:
            count -= 1
            vertex = stack[count]
            if vertex < nrows:
                budget -= 1 + indptr[vertex + 1] - indptr[vertex]
                for edge in range(indptr[vertex], indptr[vertex + 1]):
                    if not is_taken[edge] and col_room[indices[edge]] > 0:
                        args = edge, vertex, indices[edge]
                        count = _take(args, rows, cols, rooms, is_taken, degrees, stack, count)
                        found += 1
            else:
                col = vertex - nrows
                budget -= 1 + col_indptr[col + 1] - col_indptr[col]
                for k in range(col_indptr[col], col_indptr[col + 1]):
                    if not is_taken[place[k]] and row_room[col_indices[k]] > 0:
                        args = place[k], col_indices[k], col
                        count = _take(args, rows, cols, rooms, is_taken, degrees, stack, count)
                        found += 1
            continue
        if row_degree[row] == 0 or row_room[row] == 0:
            row += 1
            continue
        budget -= 1 + indptr[row + 1] - indptr[row]
        is_long = indptr[row + 1] - indptr[row] > COMPARED
        best, least = indptr[row], np.inf
        for edge in range(indptr[row], indptr[row + 1]):
            col = indices[edge]
            if is_taken[edge] or col_room[col] == 0 or row_room[row] == 0:
                continue
            if is_long:
                args = edge, row, col
                count = _take(args, rows, cols, rooms, is_taken, degrees, stack, count)
                found += 1
            elif col_degree[col] / col_room[col] < least:
                best, least = edge, col_degree[col] / col_room[col]
        if not is_long:
            args = best, row, indices[best]
            count = _take(args, rows, cols, rooms, is_taken, degrees, stack, count)
            found += 1
    return row, count, found


@kernel
def _take(args, rows, cols, rooms, is_taken, degrees, stack, count):
    """Take an open edge, and stack the vertices that then have room for all; return how many."""
    edge, row, col = args
    indptr, indices = rows
    col_indptr, col_indices, place = cols
    row_room, col_room = rooms
    row_degree, col_degree = degrees
    is_taken[edge] = True
    row_room[row] -= 1
    col_room[col] -= 1
    row_degree[row] -= 1
    col_degree[col] -= 1
    if col_room[col] == 0 and col_degree[col] > 0:
        col_degree[col] = 0
        for k in range(col_indptr[col], col_indptr[col + 1]):
            other = col_indices[k]
            if not is_taken[place[k]] and row_room[other] > 0:
                was = row_degree[other] > row_room[other]
                row_degree[other] -= 1
                if was and 0 < row_degree[other] <= row_room[other]:
                    stack[count] = other
                    count += 1
    if row_room[row] == 0 and row_degree[row] > 0:
        row_degree[row] = 0
        for other_edge in range(indptr[row], indptr[row + 1]):
            other = indices[other_edge]
            if not is_taken[other_edge] and col_room[other] > 0:
                was = col_degree[other] > col_room[other]
                col_degree[other] -= 1
                if was and 0 < col_degree[other] <= col_room[other]:
                    stack[count] = row_room.size + other
                    count += 1
    return count


# -- the phases ------------------------------------------------------------------------------------


@kernel
def _find_levels(rows, cols, rooms, is_taken, levels, queue, state, budget):
    """Search on from ``queue[state[0]:state[1]]``; True if the budget is spent before the end.

    ``state[2]`` becomes the level of the first column with room. No row beyond it goes on.
    """
    indptr, indices = rows
    col_indptr, col_indices, place = cols
    row_level, col_level = levels
    col_room = rooms[1]
    head, tail, last = state[0], state[1], state[2]
    while head < tail and budget > 0:
        row = queue[head]
        if row_level[row] >= last:
            head = tail
            break
        head += 1
        budget -= 1 + indptr[row + 1] - indptr[row]
        for edge in range(indptr[row], indptr[row + 1]):
            col = indices[edge]
            if is_taken[edge] or col_level[col] != UNSEEN:
                continue
            col_level[col] = row_level[row] + 1
            if col_room[col] > 0:
                last = col_level[col]
                continue
            budget -= col_indptr[col + 1] - col_indptr[col]
            for k in range(col_indptr[col], col_indptr[col + 1]):
                if is_taken[place[k]] and row_level[col_indices[k]] == UNSEEN:
                    row_level[col_indices[k]] = col_level[col] + 1
                    queue[tail] = col_indices[k]
                    tail += 1
    state[0], state[1], state[2] = head, tail, last
    return head < tail


@kernel
def _augment(rows, cols, roots, rooms, is_taken, levels, nexts, path, state, budget):
    """Augment along paths on the levels; return how many.

    ``path`` has the edges, free ones at even places and taken ones at odd places, and the row from
    which each free one leads. ``state`` has the root, and how many taken edges the path has.
    """
    indptr, indices = rows
    col_indptr, col_indices, place = cols
    row_room, col_room = rooms
    row_level, col_level = levels
    row_next, col_next = nexts
    edges, path_rows = path
    root, depth, found = state[0], state[1], 0
    while root < roots.size and budget > 0:
        if depth == 0:
            path_rows[0] = roots[root]
            if row_room[roots[root]] == 0 or row_level[roots[root]] == UNSEEN:
                root += 1
                continue
        row = path_rows[depth]
        edge = row_next[row]
        while edge < indptr[row + 1] and (
            is_taken[edge] or col_level[indices[edge]] != row_level[row] + 1
        ):
            edge += 1
        budget -= 1 + edge - row_next[row]
        row_next[row] = edge
        if edge == indptr[row + 1]:
            row_level[row] = UNSEEN
            depth = max(depth - 1, 0)
            continue
        col = indices[edge]
        edges[2 * depth] = edge
        if col_room[col] > 0:
            col_room[col] -= 1
            row_room[path_rows[0]] -= 1
            for k in range(2 * depth + 1):
                is_taken[edges[k]] = not is_taken[edges[k]]
            found, depth = found + 1, 0
            continue
        k = col_next[col]
        while k < col_indptr[col + 1] and (
            not is_taken[place[k]] or row_level[col_indices[k]] != col_level[col] + 1
        ):
            k += 1
        budget -= k - col_next[col]
        col_next[col] = k
        if k == col_indptr[col + 1]:
            col_level[col] = UNSEEN
            continue
        edges[2 * depth + 1] = place[k]
        depth += 1
        path_rows[depth] = col_indices[k]
    state[0], state[1] = root, depth
    return found
