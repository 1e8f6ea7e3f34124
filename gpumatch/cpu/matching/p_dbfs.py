"""P-DBFS: maximum matching by disjoint breadth-first searches, run by several threads.

Workers take unmatched near vertices (``sides``) as roots from a common list. The search from a root
grows one alternating tree, breadth first, over far vertices that it is the first to claim in this
phase, and ends with an augmenting path at the first unmatched one. Phases follow each other until
one finds no path.

    predecessor[v]   near vertex from which far v was claimed
    following[u]     near vertex that was put into the queue of u's search after u, -1 if none
    position[u]      next edge of near u to try
    head[k], tail[k] the queue of worker k, -1 between two searches
    claimed, next_root, found   as in ``phases``

Searches never meet. A near vertex that is not a root is entered from its mate only, which one
search has claimed. The tree of a search stays claimed until the phase ends, whether it has found a
path or not. So a search may fail because of another's claims; it is repeated in the next phase. A
phase that finds no path proves the matching maximum. Every search failed and has tried all edges of
the near vertices in its tree. So each neighbour of these was claimed and was matched, and its mate
joined a tree. Together the trees hold all that alternating paths from unmatched near vertices
reach, and no unmatched far vertex is among them (Berge). Each phase is O(edges), and all but the
last match at least one vertex more: O(vertices · edges).

The paper searches from the columns; this searches from the smaller side. With several threads the
matching that is found may vary. Its size does not.

Reference: Azad, Halappanavar, Rajamanickam, Boman, Khan, Pothen, *Multithreaded algorithms for
maximum matching in bipartite graphs*, IPDPS 2012, section III.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import Control, MatchingTask
from gpumatch.cpu.matching.phases import DisjointSearches, run_phases
from gpumatch.cpu.matching.sides import BUDGET, Side, smaller_side
from gpumatch.cpu.numba_tools.atomics import cas, fetch_add, load
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["run"]


@kernel
def _augment(v, predecessor, mate, far_mate):
    while v >= 0:
        u = predecessor[v]
        far_mate[v] = u
        mate[u], v = v, mate[u]


@kernel
def _search(
    worker,
    budget,
    indptr,
    indices,
    roots,
    phase,
    mate,
    far_mate,
    claimed,
    predecessor,
    following,
    position,
    head,
    tail,
    next_root,
    found,
):
    """Search until the roots are used up (True) or the budget is spent."""
    u, last = head[worker], tail[worker]
    work = 0
    while work < budget:
        work += 1
        if u < 0:
            root = fetch_add(next_root, 0, 1)
            if root >= len(roots):
                head[worker] = -1
                return True
            u = last = roots[root]
            following[u] = -1
            position[u] = indptr[u]
        unmatched = -1
        start = position[u]
        while position[u] < indptr[u + 1] and unmatched < 0:
            v = indices[position[u]]
            position[u] += 1
            before = load(claimed, v)
            if before == phase or not cas(claimed, v, before, phase):
                continue
            predecessor[v] = u
            w = far_mate[v]
            if w < 0:
                unmatched = v
            else:
                following[last] = w
                following[w] = -1
                position[w] = indptr[w]
                last = w
        work += position[u] - start
        if unmatched >= 0:
            _augment(unmatched, predecessor, mate, far_mate)
            found[worker] += 1
            u = -1
        else:
            u = following[u]
    head[worker], tail[worker] = u, last
    return False


class _BreadthFirstSearch(DisjointSearches):
    """The arrays of the searches from one side, kept from phase to phase."""

    def __init__(self, side: Side, workers: Workers) -> None:
        super().__init__(side, workers)
        near, far = len(side.mate), len(side.far_mate)
        self._predecessor = np.empty(far, np.int32)
        self._following = np.empty(near, np.int32)
        self._position = np.empty(near, side.indptr.dtype)
        self._head, self._tail = np.full((2, workers.threads), -1, np.int32)

    def phase(self, control: Control, matched: int) -> int:
        """Search once from each unmatched near vertex; the paths found, -1 if stopped."""
        self._begin()
        side = self.side

        def kernel(worker: int, next_root: np.ndarray, found: np.ndarray) -> bool:
            return _search(
                worker, BUDGET, side.indptr, side.indices, self._roots, np.int32(self.phases),  # IN
                side.mate, side.far_mate, self._claimed, self._predecessor, self._following,  # OUT
                self._position, self._head, self._tail, next_root, found,  # OUT
            )  # fmt: skip

        return self._search(kernel, control, matched)


def run(task: MatchingTask) -> bool:
    """Extend the matching to a maximum one; True unless ``control`` stopped it."""
    with Workers(task.threads, task.graph.nnz) as workers:
        return run_phases(_BreadthFirstSearch(smaller_side(task.graph, *task.mates), workers), task)
