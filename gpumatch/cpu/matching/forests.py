"""Alternating forests grown from the unmatched vertices of both sides until they meet, in phases.

The trees of both forests are vertex-disjoint, and a matched vertex is in a tree together with its
mate. Each step below is the same for either side: it works on the forest of the *near* side, the
other is *far*. An edge from a near tree to a far tree is the *bridge* of an augmenting path between
their roots; each tree has at most one.

Forest
    indptr, indices   CSR from near to far vertices
    mate[u]           far vertex matched to u, -1 when u is unmatched
    label[u]          tree of u: 1 + root if the root is a row, -1 - root if it is a column, 0 for
                      none. A far vertex has its label in the far forest, even in a near tree
    parent[v]         near vertex from which far v joined a near tree
    bridge[root]      0, or 1 + the far vertex to which the tree's path crosses
    queue             near vertices of the near trees in the order they joined, roots first

marks[side]
    queue[:ROOTS]     the roots
    queue[:NEXT]      vertices taken to be expanded. Threads that find none left still add to it, so
                      it may exceed END
    queue[:END]       up to the current level, queue[END:TAIL] is the next one
    EDGES             edges of queue[END:TAIL]

totals
    FOUND             paths found in the phase
    LEVELS            levels begun in the phase
    READ              edges read in the phase
    COLLIDED          1 if two threads kept each other from a path, see `_close`

*Invariant.* Between levels, let u be a near vertex in queue[:END] whose tree has no bridge. Then
each neighbour v of u is in some tree. If that tree is far, it has a bridge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpumatch.contracts import Control, Graph
from gpumatch.cpu.matching.sides import BUDGET, Side, free_vertices
from gpumatch.cpu.numba_tools.atomics import cas, fetch_add, load, store
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["Forests"]

_ROWS, _COLS = 0, 1
_ROOTS, _NEXT, _END, _TAIL, _EDGES = range(5)
_FOUND, _LEVELS, _READ, _COLLIDED = range(4)

_BLOCK = 256  # vertices a thread takes from the queue at a time: a 32nd of a level of _WIDE
_BATCH = 512  # vertices it gathers before it appends them to the queue: 2 KiB
_WIDE = 8192
# A level with so many vertices is worth waking another thread. With 8 edges each these are the
# 2**16 edges of `workers`.


class Forest(NamedTuple):
    """The forest of one side; see the module."""

    indptr: np.ndarray
    indices: np.ndarray
    mate: np.ndarray
    label: np.ndarray
    parent: np.ndarray
    bridge: np.ndarray
    queue: np.ndarray


# -- growing -----------------------------------------------------------------------------------


@kernel
def _close(u, v, root, far_root, near, far, totals):
    """Make the edge from near ``u`` to far ``v`` the bridge of their trees if neither has one.

    ``root`` is held while ``far_root`` is tried. If that fails, another thread may have passed over
    vertices of the tree in the meantime, and the invariant is lost: COLLIDED. The far root keeps
    its path, so the phase has found one and is not the last.
    """
    if not cas(near.bridge, root, 0, v + 1):
        return False
    if not cas(far.bridge, far_root, 0, u + 1):
        store(near.bridge, root, 0)
        store(totals, _COLLIDED, 1)
        return False
    fetch_add(totals, _FOUND, 1)
    return True


@kernel
def _append(batch, count, edges, near, mark):
    """Put ``batch[:count]``, which have ``edges`` edges, at the end of the queue."""
    tail = fetch_add(mark, _TAIL, count)
    for k in range(count):  # a slice would have Numba compile its error, too
        near.queue[tail + k] = batch[k]
    fetch_add(mark, _EDGES, edges)


@kernel
def _expand(near, far, mark, totals, budget, batch):
    """Expand blocks of the level until none is left (True) or the budget is spent.

    A neighbour in no tree joins with its mate; one in a far tree may close a path. ``batch`` is
    memory for those that join.
    """
    count, edges, read = 0, 0, 0
    last = mark[_END]
    done = False
    while read < budget and not done:
        first = fetch_add(mark, _NEXT, _BLOCK)
        done = first >= last
        end = first + _BLOCK
        for slot in range(first, end if end < last else last):
            u = near.queue[slot]
            tree = near.label[u]
            root = abs(tree) - 1
            if load(near.bridge, root) != 0:
                continue
            for e in range(near.indptr[u], near.indptr[u + 1]):
                v = near.indices[e]
                read += 1
                other = load(far.label, v)
                if other == 0:
                    if cas(far.label, v, 0, tree):
                        w = far.mate[v]
                        near.parent[v] = u
                        near.label[w] = tree
                        batch[count] = w
                        count += 1
                        edges += near.indptr[w + 1] - near.indptr[w]
                        if count == _BATCH:
                            _append(batch, count, edges, near, mark)
                            count, edges = 0, 0
                elif (other < 0) != (tree < 0):
                    far_root = abs(other) - 1
                    if load(far.bridge, far_root) == 0 and _close(
                        u, v, root, far_root, near, far, totals
                    ):
                        break
    _append(batch, count, edges, near, mark)
    fetch_add(totals, _READ, read)
    return done


@kernel
def _begin_level(mark, totals):
    mark[_NEXT], mark[_END], mark[_EDGES] = mark[_END], mark[_TAIL], 0
    totals[_LEVELS] += 1


@kernel
def _grow(rows, cols, marks, totals, wide, budget, batch):
    """Grow until a forest cannot (True), a level is ``wide`` or the budget is spent (False)."""
    row_mark, col_mark = marks[_ROWS], marks[_COLS]
    limit = totals[_READ] + budget
    while totals[_READ] < limit:
        rows_left, cols_left = _left(row_mark), _left(col_mark)
        if rows_left >= wide or cols_left >= wide:
            return False
        if rows_left > 0:
            _expand(rows, cols, row_mark, totals, budget, batch)
        elif cols_left > 0:
            _expand(cols, rows, col_mark, totals, budget, batch)
        elif row_mark[_END] == row_mark[_TAIL] or col_mark[_END] == col_mark[_TAIL]:
            return True
        elif row_mark[_EDGES] <= col_mark[_EDGES]:
            _begin_level(row_mark, totals)
        else:
            _begin_level(col_mark, totals)
    return False


@kernel
def _left(mark):
    """Vertices of the level under way that no thread has taken."""
    left = mark[_END] - mark[_NEXT]
    return left if left > 0 else 0


# -- augmenting --------------------------------------------------------------------------------


@kernel
def _shift(v, near, far):
    """Match far ``v``, whose mate has left it, to its parent, and so on up to the root."""
    length = 0
    while v >= 0:
        u = near.parent[v]
        above = near.mate[u]
        near.mate[u] = v
        far.mate[v] = u
        v = above
        length += 1
    return length


@kernel
def _augment(position, mark, budget, rows, cols):
    """Match along the paths of the roots from ``position`` on.

    Returns where it stopped, and the paths done.
    """
    done, work = 0, 0
    while position < mark[_ROOTS] and work < budget:
        root = rows.queue[position]
        position += 1
        work += 1
        if rows.bridge[root] == 0:
            continue
        col = rows.bridge[root] - 1
        row = cols.bridge[abs(cols.label[col]) - 1] - 1
        row_left, col_left = rows.mate[row], cols.mate[col]
        rows.mate[row] = col
        cols.mate[col] = row
        work += _shift(row_left, rows, cols) + _shift(col_left, cols, rows)
        done += 1
    return position, done


# -- from one phase to the next ----------------------------------------------------------------


@kernel
def _drop(near, far, mark, dropped):
    """Take the trees with a bridge out of the near forest; return the number of ``dropped``."""
    count, roots, end, tail, edges = 0, 0, 0, 0, 0
    for slot in range(mark[_TAIL]):
        u = near.queue[slot]
        tree = near.label[u]
        if tree == 0:  # at a bridge, dropped with its mate on the other side
            continue
        if near.bridge[abs(tree) - 1] != 0:
            near.label[u] = 0
            far.label[near.mate[u]] = 0
            dropped[count] = u
            count += 1
            continue
        near.queue[tail] = u
        tail += 1
        if slot < mark[_ROOTS]:
            roots += 1
        if slot < mark[_END]:
            end += 1
        else:
            edges += near.indptr[u + 1] - near.indptr[u]
    mark[_ROOTS], mark[_NEXT], mark[_END], mark[_TAIL], mark[_EDGES] = roots, end, end, tail, edges
    return count


@kernel
def _release(rows, cols, marks, released):
    """Drop all trees with a bridge; return how many pairs of mates they held.

    The rows of the pairs are ``released``. Both ends of every path are matched by now.
    """
    rows_dropped = _drop(rows, cols, marks[_ROWS], released)
    count = rows_dropped + _drop(cols, rows, marks[_COLS], released[rows_dropped:])
    for i in range(rows_dropped, count):
        released[i] = cols.mate[released[i]]
    return count


@kernel
def _have_more_edges(released, rows, cols, limit):
    """True if the released pairs have more than ``limit`` edges."""
    edges = 0
    for row in released:
        col = rows.mate[row]
        edges += rows.indptr[row + 1] - rows.indptr[row] + cols.indptr[col + 1] - cols.indptr[col]
        if edges > limit:
            return True
    return False


@kernel
def _neighbour_in_tree(v, near, far, sign):
    """Return a neighbour of far ``v`` in a near tree without a bridge, -1 if there is none."""
    for e in range(far.indptr[v], far.indptr[v + 1]):
        u = far.indices[e]
        tree = near.label[u] * sign
        if tree > 0 and near.bridge[tree - 1] == 0:
            return u
    return np.int32(-1)


@kernel
def _join(u, v, near, far, mark):
    """Let far ``v`` and its mate join the tree of near ``u``."""
    w = far.mate[v]
    far.label[v] = near.label[w] = near.label[u]
    near.parent[v] = u
    near.queue[mark[_TAIL]] = w
    mark[_TAIL] += 1
    mark[_EDGES] += near.indptr[w + 1] - near.indptr[w]


@kernel
def _graft(position, released, budget, rows, cols, marks, totals):
    """Let released pairs from ``position`` on join trees next to them; return where it stopped.

    A pair next to trees of both forests closes a path. This restores the invariant, which the
    release of a pair breaks for its neighbours in trees.
    """
    limit = totals[_READ] + budget
    while position < len(released) and totals[_READ] < limit:
        row = released[position]
        col = rows.mate[row]
        position += 1
        totals[_READ] += rows.indptr[row + 1] - rows.indptr[row]
        totals[_READ] += cols.indptr[col + 1] - cols.indptr[col]
        beside_col = _neighbour_in_tree(col, rows, cols, 1)
        beside_row = _neighbour_in_tree(row, cols, rows, -1)
        if beside_col >= 0:
            _join(beside_col, col, rows, cols, marks[_ROWS])
            if beside_row >= 0:
                root, far_root = rows.label[row] - 1, -1 - cols.label[beside_row]
                _close(row, beside_row, root, far_root, rows, cols, totals)
        elif beside_row >= 0:
            _join(beside_row, row, cols, rows, marks[_COLS])
    return position


@kernel
def _replant(near, far, mark):
    """Cut all near trees down to their roots, those that are still unmatched."""
    roots, edges = 0, 0
    for slot in range(mark[_TAIL]):
        u = near.queue[slot]
        if near.mate[u] >= 0:
            near.label[u] = 0
            far.label[near.mate[u]] = 0
            continue
        near.queue[roots] = u
        roots += 1
        edges += near.indptr[u + 1] - near.indptr[u]
    mark[_ROOTS], mark[_NEXT], mark[_END], mark[_TAIL], mark[_EDGES] = roots, 0, 0, roots, edges


def _seedlings(side: Side, sign: int) -> tuple[Forest, np.ndarray]:
    """Return a forest of unmatched vertices alone, and its marks."""
    near, far = len(side.mate), len(side.far_mate)
    roots = free_vertices(side)
    forest = Forest(
        side.indptr,
        side.indices,
        side.mate,
        label=np.zeros(near, np.int32),
        parent=np.empty(far, np.int32),
        bridge=np.zeros(near, np.int32),
        queue=np.empty(near, np.int32),
    )
    forest.label[roots] = sign * (1 + roots)
    forest.queue[: len(roots)] = roots
    edges = int((side.indptr[roots + 1] - side.indptr[roots]).sum())
    return forest, np.array([len(roots), 0, 0, len(roots), edges], np.int64)


class Forests:
    """Both forests, kept from phase to phase.

    Parameters
    ----------
    grafting : float
        Edges that grafting may read for each edge that growing anew would.

    Attributes
    ----------
    levels, found, read : int
        Of the current phase: levels grown, augmenting paths, edges read.
    unmatched : int
        Vertices that the paths of the phase leave unmatched on the side with fewer of them.
    """

    def __init__(
        self,
        graph: Graph,
        row_to_col: np.ndarray,
        col_to_row: np.ndarray,
        workers: Workers,
        grafting: float,
    ) -> None:
        self._workers, self._grafting = workers, grafting
        rows = Side(graph.indptr, graph.indices, row_to_col, col_to_row)
        cols = Side(graph.col_indptr, graph.col_indices, col_to_row, row_to_col)
        self._rows, row_mark = _seedlings(rows, 1)
        self._cols, col_mark = _seedlings(cols, -1)
        self._marks = np.array([row_mark, col_mark])
        self._totals = np.zeros(4, np.int64)
        self._released = np.empty(graph.nrows, np.int32)
        self._batches = np.empty((workers.threads, _BATCH), np.int32)
        self._invested = 0  # edges read since the forests were planted

    @property
    def levels(self) -> int:
        return int(self._totals[_LEVELS])

    @property
    def found(self) -> int:
        return int(self._totals[_FOUND])

    @property
    def read(self) -> int:
        return int(self._totals[_READ])

    @property
    def unmatched(self) -> int:
        return int(self._marks[:, _ROOTS].min()) - self.found

    def grow(self, control: Control, matched: int) -> bool:
        """Grow until one forest cannot; False if ``control`` stopped it."""
        state = self._rows, self._cols, self._marks, self._totals  # OUT: all but CSR and mate
        wide = _WIDE if self._workers.threads > 1 else len(self._rows.mate) + len(self._cols.mate)
        while not _grow(*state, wide, BUDGET, self._batches[0]):
            if control.tick(matched):
                return False
            for side in _ROWS, _COLS:
                if _left(self._marks[side]) >= wide and not self._share(side, control, matched):
                    return False
        return True

    def _share(self, side: int, control: Control, matched: int) -> bool:
        """Expand the current level by one worker more for each _WIDE; False if stopped."""
        near, far = (self._rows, self._cols) if side == _ROWS else (self._cols, self._rows)
        state = near, far, self._marks[side], self._totals  # OUT: as in `grow`

        def kernel(worker: int) -> bool:
            return _expand(*state, BUDGET, self._batches[worker])

        while not self._workers.run(kernel, 1 + _left(self._marks[side]) // _WIDE):
            if control.tick(matched):
                return False
        return True

    def augment(self, control: Control, matched: int) -> bool:
        """Match along all paths of the phase; False if ``control`` stopped it."""
        position, done = 0, 0
        while done < self.found:
            if position and control.tick(matched + done):
                return False
            position, more = _augment(
                position, self._marks[_ROWS], BUDGET,  # IN
                self._rows, self._cols,  # OUT: mate
            )  # fmt: skip
            done += more
        return True

    def renew(self, control: Control, matched: int) -> bool:
        """Begin the next phase, with the trees that had no path; False if ``control`` stopped it.

        They are kept, and released pairs grafted onto them, unless that reads more edges than
        growing them again would.
        """
        state = (self._rows, self._cols, self._marks)
        self._invested += self.read
        before = int(self._marks[:, _END].sum())
        released = self._released[: _release(*state, self._released)]  # OUT: label, queue
        kept = int(self._marks[:, _END].sum()) / max(before, 1)
        collided = bool(self._totals[_COLLIDED])
        self._totals[:] = 0
        growing_anew = float(self._grafting * kept * self._invested)
        if collided or _have_more_edges(released, self._rows, self._cols, growing_anew):
            self.replant()
            return True
        position = 0
        while position < len(released):
            position = _graft(
                position, released, BUDGET,  # IN
                *state, self._totals,  # OUT: label, parent, bridge, queue
            )  # fmt: skip
            if control.tick(matched):
                return False
        return True

    def replant(self) -> None:
        """Begin the next phase from the unmatched vertices alone.

        To be called before mates change in another way than by `augment`, and again after that.
        """
        self._totals[:] = 0
        self._invested = 0
        _replant(self._rows, self._cols, self._marks[_ROWS])
        _replant(self._cols, self._rows, self._marks[_COLS])
