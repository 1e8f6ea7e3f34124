"""Maximum matching by alternating trees with blossoms, from one unmatched vertex after the other.

A tree grows breadth first from an unmatched vertex, its root. A vertex of a tree is *outer* if an
alternating path of even length leads to it from the root, else *inner*. An edge from an outer
vertex u to a vertex v does one of these:

- v is unmatched, and in no tree: there is an augmenting path from the root to v. It is flipped, and
  the tree is dissolved: its vertices are in no tree;
- v is matched, and in no tree: v joins as an inner vertex, and its mate as an outer one;
- v is outer, in another blossom: the cycle that the edge closes has odd length. All blossoms and
  inner vertices on it become one blossom, all of whose vertices are outer;
- v is inner, or in the same blossom as u: nothing.

A tree that finds no augmenting path stays. Each neighbour of its outer vertices is in it, so no
other tree ever meets an outer vertex of it. Its inner vertices are as good as taken away.

Why it ends with a maximum matching. In the end each unmatched vertex has such a tree. Take all
inner vertices away from the graph. Each blossom is then a component, and it has an odd number of
vertices. Each tree has one blossom more than inner vertices, and one unmatched vertex. So there are
as many unmatched vertices as odd components more than inner vertices. By Tutte and Berge no
matching has more edges, and by Gallai and Edmonds the outer vertices are D, the inner ones A.

How long it takes. Each tree reads an edge twice at most, and finds blossoms by union–find:
O(m α(n)). At most n / 2 trees find a path: O(n m α(n)). All others together read each edge twice.
Roots come in the order of their numbers. Where neighbours have near numbers, as in most meshes,
there are then unmatched vertices ahead until the end, paths are short, and what a tree reads is in
a cache. Trees that grow from all roots at once were tried, with grafting of what is dissolved; they
read as many edges, and took 1.3 (rgg 20) to 2.4 times as long (Delaunay 2**20).

Encodings
---------
``mate[v]``      the mate of v, -1 means unmatched
``roots``        the vertices that are unmatched at first, those before ``counts[NEXT]`` tried
``queue``        the outer vertices of the tree that grows, in the order in which they became that;
                 ``queue[:counts[HEAD]]`` are scanned, ``queue[:counts[TAIL]]`` are all
``path``         memory for pairs of vertices

Two arrays have a record for each vertex v, because a search comes to vertices in no order, and each
record is one access to memory. ``marks`` holds what a scan reads of each neighbour, and ``facts``
the rest. Of a vertex in no tree, only LABEL means anything: a vertex gets the others when it joins
a tree, so memory that no tree comes to is never touched.

``marks[v, LABEL]``   0 if v is in no tree, 1 if it is outer, -1 if it is inner; OUTSIDE if the
                      search must not enter it. Such a vertex counts as inner
``marks[v, GROUP]``   union–find of the blossoms: minus the size at the representative, else a
                      vertex nearer to it
``facts[v, BASE]``    of a representative: the vertex of its blossom that is nearest to the root
``facts[v, LINK]``    of a vertex that joined as inner: the outer vertex that it was reached from
``facts[v, NEAR]``    of a vertex that joined as inner and became outer: the end on its side of the
                      edge that closed the blossom; else -1
``facts[v, FAR]``     the other end of that edge; of a vertex that joined as outer: the number of
                      the last walk that has come by
``facts[v, MATE]``    the mate of v; as long as v is in a tree, no mate in it changes

An even alternating path leads from the root to each outer vertex v. From v on it is this. If v
joined as outer: its mate w, ``facts[w, LINK]``, and so on from there. If v joined as inner, and the
edge xy with x on its side closed the blossom: the path from x to v backwards, the edge xy, and the
path from y on. No such path is walked while its mates change: its unmatched edges are listed first,
and then become the matched ones.

References
----------
Edmonds, *Paths, trees, and flowers*, Canadian J. Math. 17, 1965; Gabow, *An efficient
implementation of Edmonds' algorithm for maximum matching on graphs*, J. ACM 23, 1976 (bridges);
Tarjan, *Data structures and network algorithms*, SIAM 1983, chapter 9.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpumatch.contracts import Control
from gpumatch.cpu.matching.sides import BUDGET
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.prefetch import prefetch, prefetch_range

__all__ = ["OUTSIDE", "search"]

OUTSIDE = np.int32(-(2**31))
"""The label of vertices that the search must not enter."""

_LABEL, _GROUP = range(2)
_BASE, _LINK, _NEAR, _FAR, _MATE = range(5)
_FACTS = 8  # numbers in a record of facts, three of them unused: records do not lie across lines
_HEAD, _TAIL, _FOUND, _READ, _WALKS, _NEXT = range(6)
_OUTER, _INNER = 1, -1
_MOST_WALKS = 2**31 - 1
AHEAD = 3
"""Vertices of the queue from one step of fetching to the next."""


class Forest(NamedTuple):
    """The state of a search; see the module."""

    mate: np.ndarray
    marks: np.ndarray
    facts: np.ndarray
    roots: np.ndarray
    queue: np.ndarray
    path: np.ndarray
    flat_marks: np.ndarray
    flat_facts: np.ndarray


def search(
    indptr: np.ndarray,
    indices: np.ndarray,
    mate: np.ndarray,
    label: np.ndarray,
    control: Control,
    budget: int = BUDGET,
) -> bool:
    """Extend a matching to a maximum one of the vertices that are not OUTSIDE.

    Parameters
    ----------
    indptr, indices : int arrays
        The graph, as in `gpumatch.contracts.GeneralMatchingTask`.
    mate : int32 array
        The matching. It holds one whenever Python runs.
    label : int32 array
        0 for each vertex, or `OUTSIDE`. At the end 1 for D and -1 for A of what is not OUTSIDE.
    control : Control
    budget : int
        Edges that are read between two returns to Python.

    Returns
    -------
    bool
        True unless ``control`` has stopped the search.
    """
    roots = np.flatnonzero((mate < 0) & (label == 0)).astype(np.int32)
    if roots.size:
        matched = int(np.count_nonzero(mate >= 0)) // 2
        forest, counts = _empty_forest(mate, label, roots), np.zeros(6, np.int64)
        while not _grow(
            indptr, indices, budget,  # IN
            forest, counts,  # OUT
        ):  # fmt: skip
            if control.tick(matched + int(counts[_FOUND])):
                return False
        label[:] = forest.marks[:, _LABEL]
        found, read = int(counts[_FOUND]), int(counts[_READ])
        control.phase(found=found, matched=matched + found, step="blossoms", edges=read)
    return True


def _empty_forest(mate: np.ndarray, label: np.ndarray, roots: np.ndarray) -> Forest:
    n = mate.size
    marks, facts = np.zeros((n, 2), np.int32), np.zeros((n, _FACTS), np.int32)
    outside = np.flatnonzero(label)
    marks[outside, _LABEL] = label[outside]
    return Forest(
        mate=mate,
        marks=marks,
        facts=facts,
        roots=roots,
        queue=np.empty(n, np.int32),
        path=np.empty((n, 2), np.int32),
        flat_marks=marks.reshape(-1),
        flat_facts=facts.reshape(-1),
    )


# -- growing -----------------------------------------------------------------------------------


@kernel
def _grow(indptr, indices, budget, forest, counts):
    """Grow tree after tree until no root is left (True) or the budget is spent (False)."""
    limit = counts[_READ] + budget
    while counts[_READ] < limit:
        if counts[_HEAD] < counts[_TAIL]:
            u = forest.queue[counts[_HEAD]]
            counts[_HEAD] += 1
            _foresee(indptr, indices, forest, counts)
            _scan(u, indptr, indices, forest, counts)
        elif counts[_NEXT] < len(forest.roots):
            root = forest.roots[counts[_NEXT]]
            counts[_NEXT] += 1
            if forest.mate[root] < 0:
                counts[_HEAD] = counts[_TAIL] = 0
                _become_outer(root, -1, forest.marks, forest.facts, forest.queue, counts)
        else:
            return True
    return False


@kernel
def _foresee(indptr, indices, forest, counts):
    """Fetch what will be read of vertices that are AHEAD in the queue, in four steps."""
    at, queue = counts[_HEAD], forest.queue
    if at + 4 * AHEAD >= counts[_TAIL]:
        return
    prefetch(indptr, queue[at + 4 * AHEAD])
    u = queue[at + 3 * AHEAD]
    first, last = indptr[u], indptr[u + 1]
    prefetch_range(indices, first, last - 1)
    u = queue[at + 2 * AHEAD]
    for e in range(indptr[u], indptr[u + 1]):
        prefetch(forest.flat_marks, 2 * np.int64(indices[e]))
    u = queue[at + AHEAD]
    for e in range(indptr[u], indptr[u + 1]):
        v = np.int64(indices[e])
        if forest.marks[v, _LABEL] == 0:
            prefetch(forest.mate, v)
            prefetch(forest.flat_facts, _FACTS * v)


@kernel
def _scan(u, indptr, indices, forest, counts):
    """Look at all neighbours of an outer vertex, until one of them is unmatched."""
    mate, marks, facts, queue = forest.mate, forest.marks, forest.facts, forest.queue
    blossom = _representative(u, marks)
    counts[_READ] += indptr[u + 1] - indptr[u]
    for e in range(indptr[u], indptr[u + 1]):
        v = indices[e]
        label = marks[v, _LABEL]
        if label < 0:
            continue
        if label == 0:
            w = mate[v]
            if w < 0:
                _augment(u, v, forest, counts)
                return
            _become_inner(v, u, w, marks, facts)
            _become_outer(w, v, marks, facts, queue, counts)
        elif marks[v, _GROUP] != blossom and _representative(v, marks) != blossom:
            _shrink(u, v, marks, facts, queue, counts)
            blossom = _representative(u, marks)


@kernel
def _become_inner(v, u, w, marks, facts):
    """Let ``v`` with its mate ``w`` join the tree of its neighbour ``u``."""
    marks[v, _LABEL], marks[v, _GROUP] = _INNER, -1
    facts[v, _BASE], facts[v, _MATE], facts[v, _LINK], facts[v, _NEAR] = v, w, u, -1


@kernel
def _become_outer(w, v, marks, facts, queue, counts):
    """Let ``w`` join the tree of its mate ``v``, or begin one if that is -1."""
    marks[w, _LABEL], marks[w, _GROUP] = _OUTER, -1
    facts[w, _BASE], facts[w, _MATE], facts[w, _NEAR], facts[w, _FAR] = w, v, -1, 0
    queue[counts[_TAIL]] = w
    counts[_TAIL] += 1


# -- blossoms ----------------------------------------------------------------------------------


@kernel
def _representative(v, marks):
    """The representative of the blossom of ``v``; halves the way there."""
    v = np.int64(v)
    while marks[v, _GROUP] >= 0:
        above = np.int64(marks[v, _GROUP])
        if marks[above, _GROUP] >= 0:
            marks[v, _GROUP] = marks[above, _GROUP]
        v = above
    return v


@kernel
def _unite(one, other, marks):
    """Make one blossom of those of two representatives; return its own."""
    if marks[one, _GROUP] > marks[other, _GROUP]:
        one, other = other, one
    marks[one, _GROUP] += marks[other, _GROUP]
    marks[other, _GROUP] = one
    return one


@kernel
def _base_of(v, marks, facts):
    return np.int64(facts[_representative(v, marks), _BASE])


@kernel
def _base_above(b, marks, facts):
    """The base of the blossom above that with base ``b``; -1 if that has the root."""
    w = facts[b, _MATE]
    return np.int64(-1) if w < 0 else _base_of(facts[w, _LINK], marks, facts)


@kernel
def _meeting(u, v, marks, facts, counts):
    """The base of the nearest blossom above both ``u`` and ``v``; walks from both in turns."""
    if counts[_WALKS] == _MOST_WALKS:
        _forget_walks(facts)
        counts[_WALKS] = 0
    counts[_WALKS] += 1
    one, other = _base_of(u, marks, facts), _base_of(v, marks, facts)
    while True:
        if one >= 0:
            if facts[one, _FAR] == counts[_WALKS]:
                return one
            facts[one, _FAR] = counts[_WALKS]
            one = _base_above(one, marks, facts)
        one, other = other, one


@kernel
def _forget_walks(facts):
    for v in range(len(facts)):
        if facts[v, _NEAR] < 0:
            facts[v, _FAR] = 0


@kernel
def _shrink(u, v, marks, facts, queue, counts):
    """Make one blossom of the cycle that the edge ``uv`` of outer vertices closes."""
    top = _meeting(u, v, marks, facts, counts)
    _absorb(u, v, top, marks, facts, queue, counts)
    _absorb(v, u, top, marks, facts, queue, counts)


@kernel
def _absorb(near, far, top, marks, facts, queue, counts):
    """Unite what is from ``near`` up to the blossom with base ``top`` with that blossom."""
    blossom = _representative(near, marks)
    b = facts[blossom, _BASE]
    while b != top:
        w = facts[b, _MATE]
        marks[w, _LABEL] = _OUTER
        facts[w, _NEAR], facts[w, _FAR] = near, far
        queue[counts[_TAIL]] = w
        counts[_TAIL] += 1
        marks[w, _GROUP] = blossom
        marks[blossom, _GROUP] -= 1
        above = _representative(facts[w, _LINK], marks)
        b = facts[above, _BASE]
        blossom = _unite(blossom, above, marks)
        facts[blossom, _BASE] = b


# -- augmenting --------------------------------------------------------------------------------


@kernel
def _augment(u, v, forest, counts):
    """Flip the path from the root to ``u`` and on to the unmatched ``v``; dissolve the tree."""
    count = _list_edges(u, forest)
    forest.path[count, 0], forest.path[count, 1] = u, v
    for k in range(counts[_TAIL]):
        outer = forest.queue[k]
        inner = forest.facts[outer, _MATE]
        forest.marks[outer, _LABEL] = 0
        if inner >= 0:
            forest.marks[inner, _LABEL] = 0
    for k in range(count + 1):
        a, b = forest.path[k, 0], forest.path[k, 1]
        forest.mate[a] = b
        forest.mate[b] = a
    counts[_HEAD] = counts[_TAIL] = 0
    counts[_FOUND] += 1


@kernel
def _list_edges(v, forest):
    """List the unmatched edges of the path from an outer vertex to the root in ``path``.

    A segment of the path, from a vertex down to the mate of the vertex where it ends, may have to
    wait. Those that do are at the end of `path`. Returns the number of edges in the list.
    """
    facts, path = forest.facts, forest.path
    count, waiting, end = 0, len(path), -1
    while True:
        near = facts[v, _NEAR]
        if near >= 0:
            far = facts[v, _FAR]
            path[count, 0], path[count, 1] = near, far
            count += 1
            waiting -= 1
            path[waiting, 0], path[waiting, 1] = near, v
            v = far
            continue
        w = facts[v, _MATE]
        if w != end:
            v = facts[w, _LINK]
            path[count, 0], path[count, 1] = w, v
            count += 1
        elif waiting < len(path):
            v, end = path[waiting, 0], path[waiting, 1]
            waiting += 1
        else:
            return count
