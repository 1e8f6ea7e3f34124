"""Maximal sets of shortest augmenting paths: breadth-first levels, disjoint searches down them.

Used by HK, HKDW and P-HK; one call of ``LevelSearch.phase`` is one phase of Hopcroft and Karp.

Levels. The unmatched near vertices (``sides``) have level 0; a near vertex has level l + 1 if its
mate is a neighbour of one of level l and it has no lower level. The last level is the first on
which some vertex has an unmatched neighbour. One thread grows successive narrow levels. A wide
level is shared out, in blocks of its queue, to all workers.

    level[u]       level of near u, -1 when not reached
    queue          near vertices reached, by level
    span           [first, last, end, depth, ends]: this level is queue[first:last] and has number
                   ``depth``; vertices for the next go to queue[end]; ``ends`` counts the vertices
                   of this level seen with an unmatched neighbour
    next_slot[0]   next place in queue to be read
    fresh          vertices that a worker has found, and not yet put into the queue

Paths. Workers take roots and search depth-first along edges that lead to the next level, on the
last level to unmatched vertices. The first search to reach a far vertex claims it.

    position[u]    next edge of near u to try in this phase
    parent[u], current[k]           as in ``lookahead_search``
    claimed, next_root, found       as in ``phases``

The paths are a maximal set in whatever order the searches run. Suppose that there is another
shortest augmenting path, which shares no vertex with them. The search from its root failed, so it
tried all edges, and the path's first far vertex was claimed. No path that was found holds that
vertex. So the search that claimed it went to its mate, tried all edges there, and left it again.
The same holds for each further vertex of the path. So its last far vertex, an unmatched one, was
claimed. But a search that claims an unmatched vertex has found a path, which is a contradiction. So
there are O(sqrt(vertices)) phases of O(edges). If no level has an unmatched neighbour, no
augmenting path exists.

Reference: Hopcroft, Karp, *An n^5/2 algorithm for maximum matchings in bipartite graphs*, SIAM J.
Comput. 2(4), 1973; in parallel: Azad, Halappanavar, Rajamanickam, Boman, Khan, Pothen,
*Multithreaded algorithms for maximum matching in bipartite graphs*, IPDPS 2012.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import Control
from gpumatch.cpu.matching.lookahead_search import augment
from gpumatch.cpu.matching.phases import DisjointSearches
from gpumatch.cpu.matching.sides import BUDGET, Side
from gpumatch.cpu.numba_tools.atomics import cas, fetch_add, load
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["LevelSearch"]

_FIRST, _LAST, _END, _DEPTH, _ENDS = range(5)
_BLOCK = 64  # vertices a thread takes from the queue at a time: a 64th of a level of _WIDE
_WIDE = 4096
# A level with so many vertices is worth waking the other threads. With 16 edges each these are the
# 2**16 edges of `workers`.


@kernel
def _expand(indptr, indices, far_mate, level, queue, span, next_slot, position, fresh, budget):
    """Expand blocks of this level until none is left or the budget is spent; the edges read."""
    last, below = span[_LAST], span[_DEPTH] + 1
    work = 0
    while work < budget:
        first = fetch_add(next_slot, 0, _BLOCK)
        if first >= last:
            break
        count = 0
        for slot in range(first, min(first + _BLOCK, last)):
            u = queue[slot]
            is_end = False
            for e in range(indptr[u], indptr[u + 1]):
                w = far_mate[indices[e]]
                if w < 0:
                    is_end = True
                elif load(level, w) < 0 and cas(level, w, -1, below):
                    position[w] = indptr[w]
                    fresh[count] = w
                    count += 1
                    if count == fresh.size:
                        _append(fresh, count, queue, span)
                        count = 0
            if is_end:
                fetch_add(span, _ENDS, 1)
            work += 1 + indptr[u + 1] - indptr[u]
        _append(fresh, count, queue, span)
    return work


@kernel
def _append(fresh, count, queue, span):
    if count:
        end = fetch_add(span, _END, count)
        for k in range(count):
            queue[end + k] = fresh[k]


@kernel
def _grow(indptr, indices, far_mate, level, queue, span, next_slot, position, fresh, wide, budget):
    """Grow levels to the last (True), or to a ``wide`` one or the end of the budget (False)."""
    work = 0
    while True:
        if next_slot[0] >= span[_LAST]:
            if span[_ENDS] > 0 or span[_LAST] == span[_END]:
                return True
            span[_FIRST], span[_LAST] = span[_LAST], span[_END]
            span[_DEPTH] += 1
            next_slot[0] = span[_FIRST]
        if work >= budget or span[_LAST] - span[_FIRST] >= wide:
            return False
        work += _expand(
            indptr, indices, far_mate, level, queue, span, next_slot, position, fresh, budget - work
        )


@kernel
def _step(u, indptr, indices, far_mate, level, last_level, phase, claimed, position):
    """Claim the next far vertex for near ``u``; return it and its mate, or -1 and -1."""
    below = level[u] + 1
    while position[u] < indptr[u + 1]:
        v = indices[position[u]]
        position[u] += 1
        last = load(claimed, v)
        if last == phase:
            continue
        w = load(far_mate, v)
        leads = level[w] == below and below <= last_level if w >= 0 else below > last_level
        if leads and cas(claimed, v, last, phase):
            return v, w
    return np.int32(-1), np.int32(-1)


@kernel
def _search(
    worker,
    budget,
    indptr,
    indices,
    roots,
    level,
    last_level,
    phase,
    mate,
    far_mate,
    claimed,
    position,
    parent,
    current,
    next_root,
    found,
):
    """Search until the roots are used up (True) or the budget is spent."""
    u = current[worker]
    work = 0
    while work < budget:
        work += 1
        if u < 0:
            root = fetch_add(next_root, 0, 1)
            if root >= len(roots):
                current[worker] = -1
                return True
            u = roots[root]
            parent[u] = -1
        start = position[u]
        v, below = _step(u, indptr, indices, far_mate, level, last_level, phase, claimed, position)
        work += position[u] - start
        if v < 0:
            u = parent[u]
        elif below >= 0:
            parent[below] = u
            u = below
        else:
            augment(u, v, parent, mate, far_mate)
            found[worker] += 1
            u = -1
    current[worker] = u
    return False


class LevelSearch(DisjointSearches):
    """The arrays of the phases from one side; ``levels`` is how many the last phase had."""

    def __init__(self, side: Side, workers: Workers) -> None:
        super().__init__(side, workers)
        near = len(side.mate)
        self._level = np.full(near, -1, np.int32)
        self._queue = np.empty(near, np.int32)
        self._position = np.empty(near, side.indptr.dtype)
        self._parent = np.empty(near, np.int32)
        self._current = np.full(workers.threads, -1, np.int32)
        self._fresh = np.empty((workers.threads, _BLOCK), np.int32)

    def phase(self, control: Control, matched: int) -> int:
        """Augment along shortest paths: how many, -1 if ``control`` stopped it."""
        self._begin()
        roots = self._roots
        self._queue[: len(roots)] = roots
        self._level[roots] = 0
        self._position[roots] = self.side.indptr[roots]
        span = np.array([0, len(roots), len(roots), 0, 0], np.int64)
        if not self._grow_levels(span, control, matched):
            return -1
        last_level = int(span[_DEPTH])
        self.levels = last_level + 1
        found = self._search_down(last_level, control, matched) if span[_ENDS] else 0
        self._level[self._queue[: span[_END]]] = -1
        return found

    def _grow_levels(self, span: np.ndarray, control: Control, matched: int) -> bool:
        next_slot = np.zeros(1, np.int64)
        state = (
            self.side.indptr, self.side.indices, self.side.far_mate,  # IN
            self._level, self._queue, span, next_slot, self._position,  # OUT
        )  # fmt: skip
        wide = _WIDE if self.workers.threads > 1 else len(self._level) + 1

        def share(worker: int) -> bool:
            return _expand(*state, self._fresh[worker], BUDGET) < BUDGET

        while not _grow(*state, self._fresh[0], wide, BUDGET):
            if control.tick(matched):
                return False
            size = int(span[_LAST] - span[_FIRST])
            if size >= wide:
                while not self.workers.run(share, 1 + size // _WIDE):
                    if control.tick(matched):
                        return False
        return True

    def _search_down(self, last_level: int, control: Control, matched: int) -> int:
        side = self.side

        def kernel(worker: int, next_root: np.ndarray, found: np.ndarray) -> bool:
            return _search(
                worker, BUDGET, side.indptr, side.indices, self._roots, self._level,  # IN
                np.int32(last_level), np.int32(self.phases),  # IN
                side.mate, side.far_mate, self._claimed, self._position, self._parent,  # OUT
                self._current, next_root, found,  # OUT
            )  # fmt: skip

        return self._search(kernel, control, matched)
