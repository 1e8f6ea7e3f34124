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

If a tree has read much, and few vertices are left to try, it is dissolved, and its root tried last.
So the last one often is the only unmatched vertex without a tree that stays. No path can lead from
it, because the other end would be another such vertex. The caller may do without its tree, which
would read all of a large graph to label its vertices.

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
Vertices get slots in the order in which they join the tree that grows, and all but the sign of
`place` is kept by slot. So what is read together lies together. Of a tree that stays only that sign
is ever read. So the next tree begins with the first slot again, and small trees stay in a cache. A
pair of mates gets two neighbouring slots: the inner vertex the even one, and its mate the next. So
the mate of slot s is in slot ``s ^ 1``; no mate changes in a tree that grows. The root is in slot
ROOT, and the even one before it stays empty.

``mate[v]``      the mate of v, -1 means unmatched
``place[v]``     0 if v is in no tree; the slot that it has or had if v is outer, minus the slot if
                 v is inner; OUTSIDE if the search must not enter it. Such a vertex counts as inner
``roots``        the vertices that are unmatched at first: ``counts[END]`` in this round, of which
                 ``roots[:counts[NEXT]]`` were tried; ``roots[:counts[LATER]]`` come once more in
                 the next round
``vertex[s]``    the vertex in slot s, for slots from ROOT on and before ``counts[TOP]``
``queue``        the outer slots of the tree that grows, in the order in which they became that;
                 ``queue[:counts[HEAD]]`` are scanned, ``queue[:counts[TAIL]]`` are all
``path``         memory for pairs of slots
``group[s]``     union–find of the blossoms: minus the size at the representative, else a slot
                 nearer to it
``base[s]``      of a representative: the slot of its blossom that is nearest to the root
``link[s]``      of an even slot: the outer slot that it was reached from; -1 in the empty one
``near[s]``      of an even slot that became outer: the end on its side of the edge that closed the
                 blossom
``far[s]``       the other end of that edge; of an odd slot: the number of the last walk that has
                 come by

An even alternating path leads from the root to each outer slot s. From s on it is this. If s is
odd: its mate w, ``link[w]``, and so on from there. If s is even, and the edge xy with x on its side
closed the blossom: the path from x to s backwards, the edge xy, and the path from y on. No such
path is walked while its mates change: its unmatched edges are listed first, and then become the
matched ones.

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

_HEAD, _TAIL, _FOUND, _READ, _WALKS, _NEXT, _TOP, _BEFORE, _SPENT = range(9)
"""Of edges, ``counts[BEFORE]`` were read before the tree that grows, ``counts[SPENT]`` by trees
that were dissolved.
"""
_END, _LATER, _OPEN, _SPARED, _PATIENCE, _COUNTS = range(9, 15)
"""``counts[OPEN]`` roots are unmatched and have no tree that stays; the search ends when there are
``counts[SPARED]``. A tree of the first round reads ``counts[PATIENCE]`` edges if few are open.
"""
FEW, PART = 8, 32
"""So many roots are few, and then a tree of the first round may read the entries divided by PART.
So trees that are dissolved for that read a quarter of the entries at most.
"""
_FOREVER = 2**62
_ROOT = 3  # the slot 0 would look like no tree
_MOST_WALKS = 2**31 - 1
SLACK, LEAST = 0.1, 2**14
"""Share of the entries after which a search first asks whether to give up, and how many at least.
"""
AHEAD = 3
"""Vertices of the queue from one step of fetching to the next."""


class Forest(NamedTuple):
    """The state of a search; see the module."""

    mate: np.ndarray
    place: np.ndarray
    roots: np.ndarray
    vertex: np.ndarray
    group: np.ndarray
    base: np.ndarray
    link: np.ndarray
    near: np.ndarray
    far: np.ndarray
    queue: np.ndarray
    path: np.ndarray


def search(
    indptr: np.ndarray,
    indices: np.ndarray,
    mate: np.ndarray,
    label: np.ndarray,
    control: Control,
    budget: int = BUDGET,
    share: float = np.inf,
    spared: int = 0,
) -> bool:
    """Extend a matching to a maximum one of the vertices that are not OUTSIDE.

    Parameters
    ----------
    indptr, indices : int arrays
        The graph, as in `gpumatch.contracts.GeneralMatchingTask`.
    mate : int32 array
        The matching. It holds one whenever Python runs.
    label : int32 array
        0 for each vertex, or `OUTSIDE`, or the label of a search before this one. At the end above
        0 for D and below 0 for A of what is not OUTSIDE.
    control : Control
    budget : int
        Edges that are read between two returns to Python.
    share : float
        The search gives up when trees that were dissolved have read more than this share of the
        entries for each share of the roots tried, and `SLACK`. Trees that stay do not count: they
        read each entry once in all, whatever the matching that a search begins with.
    spared : {0, 1}
        With 1, one unmatched vertex may keep the label 0, and what its tree would label, too.

    Returns
    -------
    bool
        True if the search has ended. False if ``control`` has stopped it, or it has given up; then
        the labels mean nothing.
    """
    roots = np.flatnonzero((mate < 0) & (label == 0)).astype(np.int32)
    if roots.size:
        matched = int(np.count_nonzero(mate >= 0)) // 2
        forest, counts = _empty_forest(mate, label, roots), np.zeros(_COUNTS, np.int64)
        counts[_END] = counts[_OPEN] = roots.size
        counts[_SPARED] = spared
        counts[_PATIENCE] = indices.size // PART if spared else _FOREVER
        if share < np.inf:
            budget = min(budget, max(int(SLACK * indices.size), LEAST))
        is_done = is_stopped = False
        while not (is_done or is_stopped):
            is_done = _grow(
                indptr, indices, budget,  # IN
                forest, counts,  # OUT
            )  # fmt: skip
            tried = max(roots.size - int(counts[_END] - counts[_NEXT]), 1)
            allowed = share * tried / roots.size + SLACK
            is_stopped = not is_done and (
                control.tick(matched + int(counts[_FOUND]))
                or counts[_SPENT] > allowed * indices.size
            )
        found, read = int(counts[_FOUND]), int(counts[_READ])
        control.phase(found=found, matched=matched + found, step="blossoms", edges=read)
        return is_done
    return True


def _empty_forest(mate: np.ndarray, label: np.ndarray, roots: np.ndarray) -> Forest:
    slots = _ROOT + int(np.count_nonzero(label == 0))
    return Forest(
        mate=mate,
        place=label,
        roots=roots,
        vertex=np.empty(slots, np.int32),
        group=np.empty(slots, np.int32),
        base=np.empty(slots, np.int32),
        link=np.empty(slots, np.int32),
        near=np.empty(slots, np.int32),
        far=np.empty(slots, np.int32),
        queue=np.empty(slots, np.int32),
        path=np.empty((slots, 2), np.int32),
    )


# -- growing -----------------------------------------------------------------------------------


@kernel
def _grow(indptr, indices, budget, forest, counts):
    """Grow tree after tree until no root is left (True) or the budget is spent (False)."""
    limit = counts[_READ] + budget
    while counts[_READ] < limit:
        if counts[_HEAD] < counts[_TAIL]:
            s = np.int64(forest.queue[counts[_HEAD]])
            counts[_HEAD] += 1
            _foresee(indptr, indices, forest, counts)
            _scan(s, indptr, indices, forest, counts)
            if counts[_OPEN] <= FEW and counts[_READ] - counts[_BEFORE] > counts[_PATIENCE]:
                _postpone(forest, counts)
            continue
        if counts[_TAIL] > 0:  # of a tree that stays
            counts[_HEAD] = counts[_TAIL] = 0
            counts[_OPEN] -= 1
        if counts[_OPEN] <= counts[_SPARED]:
            return True
        if counts[_NEXT] == counts[_END]:
            counts[_END], counts[_NEXT], counts[_LATER] = counts[_LATER], 0, 0
            counts[_PATIENCE] = _FOREVER
        root = np.int64(forest.roots[counts[_NEXT]])
        counts[_NEXT] += 1
        if forest.mate[root] < 0:
            _plant(root, forest, counts)
    return False


@kernel
def _postpone(forest, counts):
    """Dissolve a tree that has not ended, and try its root in the next round."""
    if counts[_HEAD] == counts[_TAIL]:
        return
    forest.roots[counts[_LATER]] = forest.vertex[_ROOT]
    counts[_LATER] += 1
    _dissolve(forest, counts)


@kernel
def _dissolve(forest, counts):
    for t in range(_ROOT, counts[_TOP]):
        forest.place[forest.vertex[t]] = 0
    counts[_HEAD] = counts[_TAIL] = 0
    counts[_SPENT] += counts[_READ] - counts[_BEFORE]


@kernel
def _plant(root, forest, counts):
    """Begin a tree."""
    counts[_HEAD] = counts[_TAIL] = 0
    counts[_BEFORE] = counts[_READ]
    forest.link[_ROOT - 1] = -1
    _become_outer(root, _ROOT, forest, counts)


@kernel
def _foresee(indptr, indices, forest, counts):
    """Fetch what will be read of vertices that are AHEAD in the queue, in four steps."""
    at, queue, vertex = counts[_HEAD], forest.queue, forest.vertex
    if at + 4 * AHEAD >= counts[_TAIL]:
        return
    prefetch(indptr, vertex[queue[at + 4 * AHEAD]])
    u = vertex[queue[at + 3 * AHEAD]]
    first, last = indptr[u], indptr[u + 1]
    prefetch_range(indices, first, last - 1)
    u = vertex[queue[at + 2 * AHEAD]]
    for e in range(indptr[u], indptr[u + 1]):
        prefetch(forest.place, indices[e])
    u = vertex[queue[at + AHEAD]]
    for e in range(indptr[u], indptr[u + 1]):
        v = np.int64(indices[e])
        if forest.place[v] == 0:
            prefetch(forest.mate, v)


@kernel
def _scan(s, indptr, indices, forest, counts):
    """Look at all neighbours of an outer slot, until one of them is unmatched."""
    mate, place, group = forest.mate, forest.place, forest.group
    u, blossom = np.int64(forest.vertex[s]), _representative(s, group)
    counts[_READ] += indptr[u + 1] - indptr[u]
    for e in range(indptr[u], indptr[u + 1]):
        v = np.int64(indices[e])
        t = np.int64(place[v])
        if t < 0:
            continue
        if t == 0:
            w = np.int64(mate[v])
            if w < 0:
                _augment(s, v, forest, counts)
                return
            _join(v, w, s, forest, counts)
        elif group[t] != blossom and _representative(t, group) != blossom:
            _shrink(s, t, forest, counts)
            blossom = _representative(s, group)


@kernel
def _join(v, w, s, forest, counts):
    """Let ``v`` with its mate ``w`` join the tree of its neighbour in slot ``s``."""
    inner = counts[_TOP]
    forest.vertex[inner], forest.place[v], forest.link[inner] = v, -inner, s
    _become_outer(w, inner + 1, forest, counts)


@kernel
def _become_outer(w, s, forest, counts):
    """Let ``w`` join the tree in the odd slot ``s``, which is its last one."""
    forest.vertex[s], forest.place[w] = w, s
    forest.group[s], forest.base[s], forest.far[s] = -1, s, 0
    forest.queue[counts[_TAIL]] = s
    counts[_TAIL] += 1
    counts[_TOP] = s + 1


# -- blossoms ----------------------------------------------------------------------------------


@kernel
def _representative(s, group):
    """The representative of the blossom of a slot; halves the way there."""
    s = np.int64(s)
    while group[s] >= 0:
        above = np.int64(group[s])
        if group[above] >= 0:
            group[s] = group[above]
        s = above
    return s


@kernel
def _unite(one, other, group):
    """Make one blossom of those of two representatives; return its own."""
    if group[one] > group[other]:
        one, other = other, one
    group[one] += group[other]
    group[other] = one
    return one


@kernel
def _base_of(s, forest):
    return np.int64(forest.base[_representative(s, forest.group)])


@kernel
def _base_above(b, forest):
    """The base of the blossom above that with base ``b``; -1 if that has the root."""
    s = forest.link[b ^ 1]
    return np.int64(-1) if s < 0 else _base_of(s, forest)


@kernel
def _meeting(s, t, forest, counts):
    """The base of the nearest blossom above both slots; walks from both in turns."""
    if counts[_WALKS] == _MOST_WALKS:
        _forget_walks(forest, counts)
        counts[_WALKS] = 0
    counts[_WALKS] += 1
    one, other = _base_of(s, forest), _base_of(t, forest)
    while True:
        if one >= 0:
            if forest.far[one] == counts[_WALKS]:
                return one
            forest.far[one] = counts[_WALKS]
            one = _base_above(one, forest)
        one, other = other, one


@kernel
def _forget_walks(forest, counts):
    for s in range(_ROOT, counts[_TOP], 2):
        forest.far[s] = 0


@kernel
def _shrink(s, t, forest, counts):
    """Make one blossom of the cycle that the edge between two outer slots closes."""
    top = _meeting(s, t, forest, counts)
    _absorb(s, t, top, forest, counts)
    _absorb(t, s, top, forest, counts)


@kernel
def _absorb(near, far, top, forest, counts):
    """Unite what is from ``near`` up to the blossom with base ``top`` with that blossom."""
    group, base = forest.group, forest.base
    blossom = _representative(near, group)
    b = np.int64(base[blossom])
    while b != top:
        w = b ^ 1
        forest.place[forest.vertex[w]] = w
        forest.near[w], forest.far[w] = near, far
        forest.queue[counts[_TAIL]] = w
        counts[_TAIL] += 1
        group[w] = blossom
        group[blossom] -= 1
        above = _representative(forest.link[w], group)
        b = np.int64(base[above])
        blossom = _unite(blossom, above, group)
        base[blossom] = b


# -- augmenting --------------------------------------------------------------------------------


@kernel
def _augment(s, v, forest, counts):
    """Flip the path from the root to slot ``s`` and on to unmatched ``v``; dissolve the tree."""
    mate, vertex = forest.mate, forest.vertex
    count = _list_edges(s, forest)
    _dissolve(forest, counts)
    for k in range(count):
        a, b = vertex[forest.path[k, 0]], vertex[forest.path[k, 1]]
        mate[a] = b
        mate[b] = a
    u = vertex[s]
    mate[u] = v
    mate[v] = u
    counts[_FOUND] += 1
    counts[_OPEN] -= 2


@kernel
def _list_edges(s, forest):
    """List the unmatched edges of the path from an outer slot to the root in ``path``.

    A segment of the path, from a slot down to the mate of the slot where it ends, may have to wait.
    Those that do are at the end of `path`. Returns the number of edges in the list.
    """
    path, link = forest.path, forest.link
    count, waiting, end = 0, len(path), np.int64(_ROOT - 1)
    while True:
        if s & 1 == 0:
            near, far = forest.near[s], np.int64(forest.far[s])
            path[count, 0], path[count, 1] = near, far
            count += 1
            waiting -= 1
            path[waiting, 0], path[waiting, 1] = near, s
            s = far
            continue
        w = s ^ 1
        if w != end:
            s = np.int64(link[w])
            path[count, 0], path[count, 1] = w, s
            count += 1
        elif waiting < len(path):
            s, end = np.int64(path[waiting, 0]), np.int64(path[waiting, 1])
            waiting += 1
        else:
            return count
