"""A maximum matching that is kept while edges come and go.

Each vertex has a list of its neighbours, with room for more, in a pool of its side. A list without
room moves to the end of the pool, with twice the room. So a change costs the lengths of two lists.

    start[v], length[v], room[v]    the list of v: pool[start[v] : start[v] + length[v]]
    end[0]                          where the pool is free

A removed edge of the matching leaves a row and a column unmatched. With few such, a search from
all unmatched rows alone reads much of a large graph before it meets one of few unmatched columns.
So trees grow from both: forward ones from rows, backward ones from columns, the fewer vertices that
wait first. Where k rows and k columns are unmatched, they meet after about sqrt(k n) of n vertices
on each side of a random graph. A vertex is in at most one live tree of each kind. An edge from a
live forward tree to a live backward tree completes a path, which is taken at once; then both trees
are dead. Their vertices have other mates then, so a live tree may take one of them once more, as
the mate of a vertex that no tree had reached.

    row_tree[0], col_tree[0]    the forward tree that a row, or column, is in; of an earlier phase
                                if it is below ``base``
    row_tree[1], col_tree[1]    the backward tree
    before[k]                   row from which a forward tree has reached column k
    after[i]                    column to which row i goes on in a backward tree
    queues[0], queues[1]        rows of forward trees, and columns of backward ones
    spot                        NEXT and LAST place of each queue, then how many paths were found
    alive[0], alive[1]          for each tree of the phase, by its number less the base

A phase ends when either kind of tree has no vertex left that waits. If it has found no path, the
matching is maximum: no unmatched row reaches an unmatched column. The vertices of the trees that
have ended then make a vertex cover (König). A phase reads each edge twice at most.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import Graph
from gpumatch.cpu.numba_tools.compiled import inlined, kernel
from gpumatch.numeric.arrays import for_kernels

__all__ = ["LiveGraph", "distinct_rows"]

NEXT, LAST, FOUND, SPOTS = 0, 2, 4, 5
BUDGET = 2**24
"""Edges that a call reads before it returns to Python: some tenths of a second."""
ROOM = 4
"""The least room that a list gets when it moves."""


class Lists:
    """The lists of neighbours of one side."""

    def __init__(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        self.start = indptr[:-1].astype(np.int64)
        self.length = np.diff(indptr).astype(np.int32)
        self.room = self.length.copy()
        self.end = np.array([indices.size])
        self.pool = np.empty(indices.size + indices.size // 8 + 64, np.int32)
        self.pool[: indices.size] = indices

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.start, self.length, self.room, self.pool, self.end

    def grow(self) -> None:
        """Make the pool longer by a half, or by what the longest list may need."""
        used, longest = int(self.end[0]), int(self.room.max(initial=0))
        pool = np.empty(used + max(used // 2, 4 * longest) + 64, np.int32)
        pool[:used] = self.pool[:used]
        self.pool = pool

    def csr(self) -> tuple[np.ndarray, np.ndarray]:
        """The lists in CSR, each in increasing order."""
        indptr = np.zeros(self.start.size + 1, np.int64)
        np.cumsum(self.length, out=indptr[1:])
        indices = np.empty(int(indptr[-1]), np.int32)
        copy_lists(*self.arrays[:2], self.pool, indptr, indices)
        return indptr, indices


class LiveGraph:
    """A bipartite graph and a matching of it.

    Parameters
    ----------
    graph : Graph
        Without duplicates (`distinct_rows`).
    mates : pair of int32 arrays
        A matching.
    """

    backend = "cpu"

    def __init__(self, graph: Graph, mates: tuple[np.ndarray, np.ndarray]) -> None:
        self.rows = Lists(graph.indptr, graph.indices)
        self.cols = Lists(graph.col_indptr, graph.col_indices)
        self.row_to_col, self.col_to_row = mates
        shape = mates[0].size, mates[1].size
        self.trees = [np.full((2, size), -1, np.int32) for size in shape]
        self.links = np.empty(shape[1], np.int32), np.empty(shape[0], np.int32)
        both = sum(shape)
        self.queues = np.empty(both, np.int32), np.empty(both, np.int32)
        self.base = self.free = 0  # the trees of the last phase have numbers from base to free
        self.last_ended: tuple[int, int] | None = None  # kind of trees, and their base

    @property
    def shape(self) -> tuple[int, int]:
        return self.row_to_col.size, self.col_to_row.size

    def csr(self) -> tuple[np.ndarray, np.ndarray]:
        """The graph in CSR, each row's columns in order."""
        return self.rows.csr()

    def has_edges(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Which of these pairs are edges."""
        found = np.empty(rows.size, bool)
        find_edges(rows, cols, *self.rows.arrays[:2], self.rows.pool, found)
        return found

    def add_edges(self, rows: np.ndarray, cols: np.ndarray) -> None:
        """Add edges; those that are there already stay."""
        done = 0
        while done < rows.size:
            done = add_edges(done, rows, cols, self.rows.arrays, self.cols.arrays)
            if done < rows.size:
                self.rows.grow()
                self.cols.grow()

    def remove_edges(self, rows: np.ndarray, cols: np.ndarray) -> int:
        """Remove edges; return how many were of the matching."""
        return remove_edges(
            rows, cols, self.rows.arrays, self.cols.arrays, self.row_to_col, self.col_to_row
        )

    def solve(self) -> dict[str, int]:
        """Make the matching maximum; how many paths, phases and edges it took."""
        stats = {"found": 0, "phases": 0, "edges": 0}
        self.last_ended = None
        while True:
            roots = [
                (mates < 0).nonzero()[0].astype(np.int32)
                for mates in (self.row_to_col, self.col_to_row)
            ]
            if not (roots[0].size and roots[1].size):
                return stats
            found, edges, ended = self._phase(roots)
            stats["found"] += found
            stats["phases"] += 1
            stats["edges"] += edges
            if not found:
                self.last_ended = ended, self.base
                return stats

    def _phase(self, roots: list[np.ndarray]) -> tuple[int, int, int]:
        """Grow trees; the paths found, the edges read, and the kind of trees that have ended."""
        self.base, self.free = self.free, self.free + max(part.size for part in roots)
        if self.free >= 2**31:
            for part in self.trees:
                part[:] = -1
            self.base, self.free = 0, self.free - self.base
        spot = np.zeros(SPOTS, np.int64)
        alive = np.ones(roots[0].size, bool), np.ones(roots[1].size, bool)
        for kind, part in enumerate(roots):
            self.trees[kind][kind][part] = self.base + np.arange(part.size, dtype=np.int32)
            self.queues[kind][: part.size] = part
            spot[LAST + kind] = part.size
        edges = 0
        while True:
            read, waits = grow_trees(
                self.rows.arrays, self.cols.arrays, self.row_to_col, self.col_to_row,
                *self.trees, *self.links, *self.queues, *alive, self.base, spot, BUDGET,
            )  # fmt: skip
            edges += read
            if not waits:
                ended = int(spot[NEXT] < spot[LAST])
                return int(spot[FOUND]), edges, ended

    def cover(self) -> tuple[np.ndarray, np.ndarray]:
        """Marks of the rows and columns of a minimum vertex cover, after `solve`."""
        in_rows, in_cols = (np.zeros(size, bool) for size in self.shape)
        if self.last_ended is None:
            if (self.row_to_col >= 0).all():
                in_rows[:] = True
            else:
                in_cols[:] = True
            return in_rows, in_cols
        kind, base = self.last_ended
        is_reached = [part[kind] >= base for part in self.trees]
        if kind == 0:  # from the unmatched rows
            return ~is_reached[0], is_reached[1]
        return is_reached[0], ~is_reached[1]


def distinct_rows(
    indptr: np.ndarray, indices: np.ndarray, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """CSR without duplicates."""
    starts, kept = np.empty(shape[0] + 1, np.int64), np.empty(indices.size, np.int32)
    count = distinct(
        for_kernels(indptr), for_kernels(indices), np.full(shape[1], -1, np.int64),
        starts, kept,  # OUT
    )  # fmt: skip
    return starts, kept[:count]


@kernel
def distinct(indptr, indices, last, starts, kept):
    """Write CSR without duplicates; return its entries. ``last`` has a -1 for each column."""
    count = 0
    for row in range(indptr.size - 1):
        starts[row] = count
        for at in range(indptr[row], indptr[row + 1]):
            col = indices[at]
            if last[col] != row:
                last[col] = row
                kept[count] = col
                count += 1
    starts[indptr.size - 1] = count
    return count


# -- lists -----------------------------------------------------------------------------------------


@inlined
def _place(start, length, pool, v, w):
    """Return the place of w in the list of v, or -1."""
    found = -1
    for at in range(start[v], start[v] + length[v]):
        if pool[at] == w:
            found = at
    return found


@kernel
def find_edges(rows, cols, start, length, pool, found):
    """Write which pairs are edges."""
    for e in range(rows.size):
        found[e] = _place(start, length, pool, rows[e], cols[e]) >= 0


@kernel
def add_edges(done, rows, cols, own, other):
    """Add edges from number ``done`` on; return how many are done when a pool has no room left."""
    for e in range(done, rows.size):
        if not (_has_room(own, rows[e]) and _has_room(other, cols[e])):
            return e
        if _place(own[0], own[1], own[3], rows[e], cols[e]) < 0:
            _append(own, rows[e], cols[e])
            _append(other, cols[e], rows[e])
    return rows.size


@inlined
def _has_room(lists, v):
    """Return if a list may grow by one."""
    _, length, room, pool, end = lists
    return length[v] < room[v] or end[0] + 2 * room[v] + ROOM <= pool.size


@kernel
def _append(lists, v, w):
    """Append w to the list of v."""
    start, length, room, pool, end = lists
    if length[v] == room[v]:
        room[v] = 2 * room[v] + ROOM
        for k in range(length[v]):
            pool[end[0] + k] = pool[start[v] + k]
        start[v] = end[0]
        end[0] += room[v]
    pool[start[v] + length[v]] = w
    length[v] += 1


@kernel
def remove_edges(rows, cols, own, other, row_to_col, col_to_row):
    """Remove edges; return how many were of the matching."""
    parted = 0
    for e in range(rows.size):
        row, col = rows[e], cols[e]
        if _place(own[0], own[1], own[3], row, col) < 0:
            continue
        _remove(own, row, col)
        _remove(other, col, row)
        if row_to_col[row] == col:
            row_to_col[row] = col_to_row[col] = -1
            parted += 1
    return parted


@kernel
def _remove(lists, v, w):
    """Remove w from the list of v."""
    start, length, _, pool, _ = lists
    at = _place(start, length, pool, v, w)
    length[v] -= 1
    pool[at] = pool[start[v] + length[v]]


@kernel
def copy_lists(start, length, pool, indptr, indices):
    """Copy the lists one behind the other, each in increasing order."""
    for v in range(start.size):
        begin = indptr[v]
        for k in range(length[v]):
            w, at = pool[start[v] + k], begin + k
            while at > begin and indices[at - 1] > w:
                indices[at] = indices[at - 1]
                at -= 1
            indices[at] = w


# -- trees -----------------------------------------------------------------------------------------


@kernel
def grow_trees(
    rows, cols, row_to_col, col_to_row, row_tree, col_tree, before, after, row_queue, col_queue,
    row_alive, col_alive, base, spot, budget,
):  # fmt: skip
    """Grow trees until ``budget`` edges are read; return these, and if the phase goes on."""
    read = 0
    while spot[NEXT] < spot[LAST] and spot[NEXT + 1] < spot[LAST + 1]:
        if read >= budget:
            return read, True
        if spot[LAST] - spot[NEXT] <= spot[LAST + 1] - spot[NEXT + 1]:
            row = row_queue[spot[NEXT]]
            spot[NEXT] += 1
            tree = row_tree[0, row]
            if row_alive[tree - base]:
                read += rows[1][row]
                _expand_row(
                    rows, row_to_col, col_to_row, row_tree, col_tree, before, after, row_queue,
                    row_alive, col_alive, base, spot, row, tree,
                )  # fmt: skip
        else:
            col = col_queue[spot[NEXT + 1]]
            spot[NEXT + 1] += 1
            tree = col_tree[1, col]
            if col_alive[tree - base]:
                read += cols[1][col]
                _expand_col(
                    cols, row_to_col, col_to_row, row_tree, col_tree, before, after, col_queue,
                    row_alive, col_alive, base, spot, col, tree,
                )  # fmt: skip
    return read, False


@kernel
def _expand_row(
    rows, row_to_col, col_to_row, row_tree, col_tree, before, after, row_queue,
    row_alive, col_alive, base, spot, row, tree,
):  # fmt: skip
    """Take the columns of a row into its forward tree, or complete a path."""
    start, length, _, pool, _ = rows
    for at in range(start[row], start[row] + length[row]):
        col = pool[at]
        other = col_tree[1, col]
        if other >= base and col_alive[other - base]:
            _augment(row_to_col, col_to_row, before, after, row, col)
            row_alive[tree - base] = col_alive[other - base] = False
            spot[FOUND] += 1
            return
        if col_tree[0, col] < base:
            mate = col_to_row[col]
            col_tree[0, col] = row_tree[0, mate] = tree
            before[col] = row
            row_queue[spot[LAST]] = mate
            spot[LAST] += 1


@kernel
def _expand_col(
    cols, row_to_col, col_to_row, row_tree, col_tree, before, after, col_queue,
    row_alive, col_alive, base, spot, col, tree,
):  # fmt: skip
    """Take the rows of a column into its backward tree, or complete a path."""
    start, length, _, pool, _ = cols
    for at in range(start[col], start[col] + length[col]):
        row = pool[at]
        other = row_tree[0, row]
        if other >= base and row_alive[other - base]:
            _augment(row_to_col, col_to_row, before, after, row, col)
            row_alive[other - base] = col_alive[tree - base] = False
            spot[FOUND] += 1
            return
        if row_tree[1, row] < base:
            mate = row_to_col[row]
            row_tree[1, row] = col_tree[1, mate] = tree
            after[row] = col
            col_queue[spot[LAST + 1]] = mate
            spot[LAST + 1] += 1


@kernel
def _augment(row_to_col, col_to_row, before, after, row, col):
    """Change the edges of the path that goes along the edge of a row and a column."""
    behind = col_to_row[col]
    while True:
        last = row_to_col[row]
        row_to_col[row], col_to_row[col] = col, row
        if last < 0:
            break
        col = last
        row = before[col]
    while behind >= 0:
        col = after[behind]
        following = col_to_row[col]
        row_to_col[behind], col_to_row[col] = col, behind
        behind = following
