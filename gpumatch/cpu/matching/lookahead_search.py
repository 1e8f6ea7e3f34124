"""Vertex-disjoint augmenting paths by depth-first searches with lookahead, one phase at a time.

Used by PFP, P-PFP and HKDW. Workers take unmatched near vertices (``sides``) as roots from a common
list and search from one at a time. A far vertex is *claimed* once a phase, by the search that
reaches it first. Before it goes deeper, a search looks for an unmatched far vertex among all
neighbours of its current near vertex. These are read once in the whole run, because a matched
vertex stays matched. Fairness: every other phase goes through the edges backward.

    looked[u]      edges before it in u's list lead to far vertices that are matched, or will be
                   before the phase ends
    position[u]    edges of u tried in this phase, counted in the direction of the phase
    parent[u]      near vertex from which the search came to u, -1 at a root
    current[k]     current near vertex of worker k, -1 between two searches
    claimed, next_root, found   as in ``phases``

Two searches never meet. A near vertex that is not a root is entered from its mate only, and one
search claims that mate. Mates change only along the path of the search that claimed them, and a
search that claims an unmatched far vertex matches it at once. So a far vertex that is seen
unmatched is still unmatched if claiming it succeeds, and one that is claimed on the way down is not
unmatched.

A phase that finds no path proves the matching maximum. All its claims are by searches that failed,
and such a search has tried every edge of every near vertex that it entered. So each neighbour of an
entered vertex was claimed and was matched (an unmatched one would have ended a search in a path),
and its mate was entered. So the entered vertices are all that alternating paths from unmatched near
vertices reach. No unmatched far vertex is among them, so no augmenting path exists (Berge). If a
phase does find a path, a search may have failed because of another's claims, so another phase
follows. Each phase is O(edges), and all but the last match at least one vertex more.

Reference: Pothen, Fan, *Computing the block triangular form of a sparse matrix*, ACM TOMS 16(4),
1990; fairness: Duff, Kaya, Uçar, ACM TOMS 38(2), 2011; in parallel: Azad, Halappanavar,
Rajamanickam, Boman, Khan, Pothen, *Multithreaded algorithms for maximum matching in bipartite
graphs*, IPDPS 2012.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import Control
from gpumatch.cpu.matching.phases import DisjointSearches
from gpumatch.cpu.matching.sides import BUDGET, Side
from gpumatch.cpu.numba_tools.atomics import cas, fetch_add, load, store
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["LookaheadSearch", "augment"]


@kernel
def augment(u, v, parent, mate, far_mate):
    """Match near ``u`` to unmatched far ``v`` and so on up to the root."""
    while u >= 0:
        above = mate[u]
        mate[u] = v
        store(far_mate, v, u)
        u, v = parent[u], above


@kernel
def _look_ahead(u, indptr, indices, far_mate, phase, claimed, looked):
    """Claim an unmatched neighbour of near ``u``; -1 if there is none."""
    end = indptr[u + 1]
    e = looked[u]
    unmatched = -1
    while e < end and unmatched < 0:
        v = indices[e]
        e += 1
        if load(far_mate, v) < 0:
            last = load(claimed, v)
            if last != phase and cas(claimed, v, last, phase):
                unmatched = v
    looked[u] = e
    return unmatched


@kernel
def _descend(u, indptr, indices, far_mate, phase, backward, claimed, position):
    """Claim a neighbour of near ``u`` and return its mate; -1 if all are claimed."""
    first, degree = indptr[u], indptr[u + 1] - indptr[u]
    k = position[u]
    below = -1
    while k < degree and below < 0:
        v = indices[first + (degree - 1 - k if backward else k)]
        k += 1
        last = load(claimed, v)
        if last != phase and cas(claimed, v, last, phase):
            below = load(far_mate, v)
    position[u] = k
    return below


@kernel
def _search(
    worker,
    budget,
    indptr,
    indices,
    roots,
    phase,
    backward,
    mate,
    far_mate,
    claimed,
    looked,
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
            position[u] = 0
        start = looked[u]
        unmatched = _look_ahead(u, indptr, indices, far_mate, phase, claimed, looked)
        work += looked[u] - start
        if unmatched >= 0:
            augment(u, unmatched, parent, mate, far_mate)
            found[worker] += 1
            u = -1
            continue
        start = position[u]
        below = _descend(u, indptr, indices, far_mate, phase, backward, claimed, position)
        work += position[u] - start
        if below >= 0:
            parent[below] = u
            position[below] = 0
            u = below
        else:
            u = parent[u]
    current[worker] = u
    return False


class LookaheadSearch(DisjointSearches):
    """The arrays of the searches from one side, kept from phase to phase."""

    def __init__(self, side: Side, workers: Workers) -> None:
        super().__init__(side, workers)
        near = len(side.mate)
        self._looked = side.indptr[:-1].copy()
        self._position = np.empty(near, side.indptr.dtype)
        self._parent = np.empty(near, np.int32)
        self._current = np.full(workers.threads, -1, np.int32)

    def phase(self, control: Control, matched: int) -> int:
        """Search once from each unmatched near vertex; the paths found, -1 if stopped."""
        self._begin()
        side = self.side

        def kernel(worker: int, next_root: np.ndarray, found: np.ndarray) -> bool:
            return _search(
                worker, BUDGET, side.indptr, side.indices, self._roots,  # IN
                np.int32(self.phases), self.phases % 2 == 0,  # IN
                side.mate, side.far_mate, self._claimed, self._looked, self._position,  # OUT
                self._parent, self._current, next_root, found,  # OUT
            )  # fmt: skip

        return self._search(kernel, control, matched)
