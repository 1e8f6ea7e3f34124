"""Maximum matching by one alternating forest with blossoms, from all unmatched vertices.

A tree grows breadth first from each unmatched vertex, all of them in one queue. A vertex of a tree
is *outer* if an alternating path of even length leads to it from the root, else *inner*. An edge
from an outer vertex u to a vertex v does one of these:

- v is in no tree: v joins as an inner vertex, and its mate as an outer one;
- v is outer in another tree: there is an augmenting path from root to root. It is flipped at once,
  and both trees are dissolved: their vertices are in no tree;
- v is outer in the same tree, and in another blossom: the cycle that the edge closes has odd
  length. All blossoms and inner vertices on it become one blossom, all of whose vertices are outer;
- v is inner, or in the same blossom as u: nothing.

Invariant. Let u be an outer vertex that has been scanned, and v its neighbour. Then v is inner, or
in the same blossom as u, or v is outer in another blossom and has not been scanned. Dissolving
trees breaks this for their vertices with neighbours that have been scanned in other trees. By the
invariant these vertices are inner, or outer and not scanned, at that time. Each of them joins the
tree of the first of its outer neighbours, if it has not joined one by then (tree grafting after
Azad, Buluç and Pothen). In a mesh most vertices of a tree are in one blossom and have been scanned.

Why it ends with a maximum matching. When the queue is empty, all outer vertices have been scanned.
Take the inner vertices away from the graph. By the invariant each blossom is then a component, and
it has an odd number of vertices. Each tree has one blossom more than inner vertices, and one
unmatched vertex. So there are as many unmatched vertices as odd components more than inner
vertices. By Tutte and Berge no matching has more edges, and by Gallai and Edmonds the outer
vertices are D, the inner ones A.

How long it takes. Between two augmentations each vertex is scanned, and joins a tree, once at most,
and blossoms are found by union–find: O(m α(n)). There are n / 2 augmentations at most: O(n m α(n)).
A tree without an augmenting path is never read again. On the double covers' meshes, some thousand
augmentations together read each edge about twice.

Encodings
---------
``mate[v]``      the mate of v, -1 means unmatched
``queue``        a ring of outer vertices that wait to be scanned, each once
``released``     vertices of the trees dissolved last that may have to join others; those before
                 ``counts[GRAFTED]`` have been looked at
``last[root]``   the vertex of a tree that was the last to join it as outer
``path``         memory for pairs of vertices

Two arrays have a record for each vertex v, because a search comes to vertices in no order, and each
record is one access to memory. What all neighbours are asked is in ``marks``, the rest in
``facts``. Of a vertex in no tree, only LABEL and WAITS mean anything: a vertex gets the others when
it joins a tree, so memory that no tree comes to is never touched.

``marks[v, LABEL]``   0 if v is in no tree; 1 + root if it is outer, -1 - root if it is inner;
                      OUTSIDE if the search must not enter it. Such a vertex counts as inner
``marks[v, GROUP]``   union–find of the blossoms: minus the size at the representative, else a
                      vertex nearer to it
``facts[v, BASE]``    of a representative: the vertex of its blossom that is nearest to the root
``facts[v, LINK]``    of a vertex that joined as inner: the outer vertex that it was reached from;
                      of one that joined as outer: the next that did so in its tree, -1 after the
                      last
``facts[v, NEAR]``    of a vertex that joined as inner and became outer: the end on its side of the
                      edge that closed the blossom; else -1
``facts[v, FAR]``     the other end of that edge; of a vertex that joined as outer: the number of
                      the last walk that has come by
``facts[v, MATE]``    the mate of v; as long as v is in a tree, no mate in it changes
``facts[v, WAITS]``   1 if v is in the queue or is being scanned, else 0

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
_BASE, _LINK, _NEAR, _FAR, _MATE, _WAITS = range(6)
_FACTS = 8  # numbers in a record of facts, two of them unused: records do not lie across lines
_HEAD, _WAITING, _FOUND, _READ, _RELEASED, _GRAFTED, _WALKS = range(7)
_MOST_WALKS = 2**31 - 1
AHEAD = 3
"""Vertices of the queue from one step of fetching to the next."""


class Forest(NamedTuple):
    """The state of a search; see the module."""

    mate: np.ndarray
    marks: np.ndarray
    facts: np.ndarray
    queue: np.ndarray
    released: np.ndarray
    last: np.ndarray
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
        0 for each vertex, or `OUTSIDE`. At the end it has the forest's labels.
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
        forest, counts = _planted(mate, label, roots)
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


def _planted(mate: np.ndarray, label: np.ndarray, roots: np.ndarray) -> tuple[Forest, np.ndarray]:
    """A forest of roots alone, and its counts."""
    n = mate.size
    marks, facts = np.zeros((n, 2), np.int32), np.zeros((n, _FACTS), np.int32)
    forest = Forest(
        mate=mate,
        marks=marks,
        facts=facts,
        queue=np.empty(n, np.int32),
        released=np.empty(n, np.int32),
        last=np.empty(n, np.int32),
        path=np.empty((n, 2), np.int32),
        flat_marks=marks.reshape(-1),
        flat_facts=facts.reshape(-1),
    )
    outside = np.flatnonzero(label)
    forest.marks[outside, _LABEL] = label[outside]
    forest.marks[roots, _LABEL], forest.marks[roots, _GROUP] = 1 + roots, -1
    forest.facts[roots, _BASE], forest.facts[roots, _WAITS] = roots, 1
    for fact in _LINK, _NEAR, _MATE:
        forest.facts[roots, fact] = -1
    forest.last[roots] = roots
    forest.queue[: roots.size] = roots
    counts = np.zeros(7, np.int64)
    counts[_WAITING] = roots.size
    return forest, counts


# -- growing -----------------------------------------------------------------------------------


@kernel
def _grow(indptr, indices, budget, forest, counts):
    """Graft and scan until no vertex waits (True) or the budget is spent (False)."""
    limit = counts[_READ] + budget
    while counts[_READ] < limit:
        if counts[_GRAFTED] < counts[_RELEASED]:
            v = forest.released[counts[_GRAFTED]]
            counts[_GRAFTED] += 1
            if forest.marks[v, _LABEL] == 0:
                _graft(v, indptr, indices, forest, counts)
        elif counts[_WAITING] > 0:
            u = forest.queue[counts[_HEAD]]
            counts[_HEAD] = counts[_HEAD] + 1 if counts[_HEAD] + 1 < len(forest.queue) else 0
            counts[_WAITING] -= 1
            _foresee(indptr, indices, forest, counts)
            if forest.marks[u, _LABEL] > 0:
                _scan(u, indptr, indices, forest, counts)
            forest.facts[u, _WAITS] = 0
        else:
            return True
    return False


@kernel
def _foresee(indptr, indices, forest, counts):
    """Fetch what will be read of vertices that are AHEAD in the queue, in four steps."""
    if counts[_WAITING] <= 4 * AHEAD:
        return
    queue, slot = forest.queue, counts[_HEAD]
    prefetch(indptr, queue[_slot(slot, 4 * AHEAD, queue)])
    u = queue[_slot(slot, 3 * AHEAD, queue)]
    first, last = indptr[u], indptr[u + 1]
    prefetch_range(indices, first, last - 1)
    u = queue[_slot(slot, 2 * AHEAD, queue)]
    for e in range(indptr[u], indptr[u + 1]):
        prefetch(forest.flat_marks, 2 * np.int64(indices[e]))
    u = queue[_slot(slot, AHEAD, queue)]
    for e in range(indptr[u], indptr[u + 1]):
        v = np.int64(indices[e])
        if forest.marks[v, _LABEL] == 0:
            prefetch(forest.mate, v)
            prefetch(forest.flat_facts, _FACTS * v)


@kernel
def _slot(head, ahead, queue):
    slot = head + ahead
    return slot if slot < len(queue) else slot - len(queue)


@kernel
def _scan(u, indptr, indices, forest, counts):
    """Look at all neighbours of an outer vertex, until its tree is dissolved."""
    marks, facts = forest.marks, forest.facts
    tree = marks[u, _LABEL]
    blossom = _representative(u, marks)
    counts[_READ] += indptr[u + 1] - indptr[u]
    for e in range(indptr[u], indptr[u + 1]):
        v = indices[e]
        other = marks[v, _LABEL]
        if other < 0:
            continue
        if other == 0:
            _join(v, u, forest.mate, marks, facts, forest.queue, forest.last, counts)
        elif other != tree:
            _augment(u, v, forest, counts)
            return
        elif marks[v, _GROUP] != blossom and _representative(v, marks) != blossom:
            _shrink(u, v, marks, facts, forest.queue, counts)
            blossom = _representative(u, marks)


@kernel
def _graft(v, indptr, indices, forest, counts):
    """Let a vertex join a tree next to it, if there is one."""
    marks, facts = forest.marks, forest.facts
    for e in range(indptr[v], indptr[v + 1]):
        counts[_READ] += 1
        u = indices[e]
        if marks[u, _LABEL] > 0:
            _join(v, u, forest.mate, marks, facts, forest.queue, forest.last, counts)
            return


@kernel
def _join(v, u, mate, marks, facts, queue, last, counts):
    """Let ``v`` join the tree of the outer vertex ``u`` as inner, and its mate as outer."""
    tree = marks[u, _LABEL]
    root = tree - 1
    w = mate[v]
    marks[v, _LABEL], marks[v, _GROUP] = -tree, -1
    facts[v, _BASE], facts[v, _MATE], facts[v, _LINK], facts[v, _NEAR] = v, w, u, -1
    marks[w, _LABEL], marks[w, _GROUP] = tree, -1
    facts[w, _BASE], facts[w, _MATE], facts[w, _LINK], facts[w, _NEAR] = w, v, -1, -1
    facts[w, _FAR] = 0
    facts[last[root], _LINK] = w
    last[root] = w
    _push(w, facts, queue, counts)


@kernel
def _push(v, facts, queue, counts):
    """Let an outer vertex wait to be scanned, unless it does so already."""
    if facts[v, _WAITS] != 0:
        return
    facts[v, _WAITS] = 1
    slot = counts[_HEAD] + counts[_WAITING]
    queue[slot if slot < len(queue) else slot - len(queue)] = v
    counts[_WAITING] += 1


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
    """Make one blossom of the cycle that the edge ``uv`` of outer vertices of a tree closes."""
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
        marks[w, _LABEL] = -marks[w, _LABEL]
        facts[w, _NEAR], facts[w, _FAR] = near, far
        _push(w, facts, queue, counts)
        marks[w, _GROUP] = blossom
        marks[blossom, _GROUP] -= 1
        above = _representative(facts[w, _LINK], marks)
        b = facts[above, _BASE]
        blossom = _unite(blossom, above, marks)
        facts[blossom, _BASE] = b


# -- augmenting --------------------------------------------------------------------------------


@kernel
def _augment(u, v, forest, counts):
    """Flip the path from root to root over the edge ``uv``, and dissolve both trees."""
    count = _list_edges(u, 0, forest)
    count = _list_edges(v, count, forest)
    forest.path[count, 0], forest.path[count, 1] = u, v
    one, other = forest.marks[u, _LABEL] - 1, forest.marks[v, _LABEL] - 1
    counts[_RELEASED] = counts[_GRAFTED] = 0
    _dissolve(one, forest, counts)
    _dissolve(other, forest, counts)
    for k in range(count + 1):
        a, b = forest.path[k, 0], forest.path[k, 1]
        forest.mate[a] = b
        forest.mate[b] = a
    counts[_FOUND] += 1


@kernel
def _list_edges(v, count, forest):
    """List the unmatched edges of the path from an outer vertex to the root in ``path[count:]``.

    A segment of the path, from a vertex down to the mate of the vertex where it ends, may have to
    wait. Those that do are at the end of `path`. Returns the number of edges in the list.
    """
    facts, path = forest.facts, forest.path
    waiting = len(path)
    end = -1
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


@kernel
def _dissolve(root, forest, counts):
    """Take all vertices of a tree out of it, before mates change; list those to be grafted."""
    outer = np.int64(root)
    while outer >= 0:
        after, inner = forest.facts[outer, _LINK], forest.facts[outer, _MATE]
        _release(outer, forest, counts)
        if inner >= 0:
            _release(inner, forest, counts)
        outer = np.int64(after)


@kernel
def _release(v, forest, counts):
    marks, facts = forest.marks, forest.facts
    if marks[v, _LABEL] < 0 or facts[v, _WAITS] != 0:
        forest.released[counts[_RELEASED]] = v
        counts[_RELEASED] += 1
    marks[v, _LABEL] = 0
