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
in the same blossom as u. Dissolving trees breaks this for their vertices with neighbours that are
outer in other trees. Each such vertex joins the tree of the first of these neighbours, if it has
not joined one by then (tree grafting after Azad, Buluç and Pothen).

Why it ends with a maximum matching. When the queue is empty, all outer vertices have been scanned.
Take the inner vertices away from the graph. By the invariant each blossom is then a component, and
it has an odd number of vertices. Each tree has one blossom more than inner vertices, and one
unmatched vertex. So there are as many unmatched vertices as odd components more than inner
vertices. By Tutte and Berge no matching has more edges, and by Gallai and Edmonds the outer
vertices are D, the inner ones A.

How long it takes. Between two augmentations each vertex is scanned, and joins a tree, once at most,
and blossoms are found by union–find: O(m α(n)). There are n / 2 augmentations at most: O(n m α(n)).
A tree is read twice before it is dissolved, when it grew and when its vertices are grafted; a tree
without an augmenting path is never read again. So many short augmentations cost about as much as a
few reads of the graph.

Encodings
---------
``mate[v]``      the mate of v, -1 means unmatched
``label[v]``     0 if v is in no tree; 1 + root if it is outer, -1 - root if it is inner; OUTSIDE if
                 the search must not enter it. Such a vertex counts as inner
``parent[v]``    of a vertex that joined as inner: the outer vertex that it was reached from
``bridge[v]``    of a vertex that joined as inner and became outer: the ends of the edge that closed
                 the blossom, the end on the side of v first; else -1 and anything
``group[v]``     union–find of the blossoms: minus the size at the representative, else a vertex
                 nearer to it
``base[r]``      of a representative: the vertex of the blossom that is nearest to the root
``chain[v]``     the next vertex of the tree that joined as outer, after v; -1 after the last
``last[root]``   the last of them, of a root
``queue``        a ring of outer vertices that wait to be scanned, each once: ``waits[v]``
``released``     vertices that were dissolved last, all before ``counts[GRAFTED]`` grafted
``stamp[v]``     of a base: the number of the last walk that has come by
``path``         memory for pairs of vertices

An even alternating path leads from the root to each outer vertex v. From v on it is: if v joined as
outer, its mate w, ``parent[w]``, and so on from there. If v joined as inner, and the edge xy with x
on its side closed the blossom, then the path from x to v backwards, the edge xy, and the path from
y on. A path so written is never walked while its mates change: its unmatched edges are listed
first, and become the matched ones.

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

__all__ = ["OUTSIDE", "search"]

OUTSIDE = np.int32(-(2**31))
"""The label of vertices that the search must not enter."""

_HEAD, _WAITING, _FOUND, _READ, _RELEASED, _GRAFTED, _WALKS = range(7)
_MOST_WALKS = 2**31 - 1


class Forest(NamedTuple):
    """The state of a search; see the module."""

    label: np.ndarray
    parent: np.ndarray
    bridge: np.ndarray
    group: np.ndarray
    base: np.ndarray
    chain: np.ndarray
    last: np.ndarray
    queue: np.ndarray
    waits: np.ndarray
    released: np.ndarray
    stamp: np.ndarray
    path: np.ndarray


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
    matched = int(np.count_nonzero(mate >= 0)) // 2
    forest, counts = _planted(mate.size, label, roots)
    done = not roots.size
    while not done:
        if control.tick(matched + int(counts[_FOUND])):
            return False
        done = _grow(indptr, indices, budget, mate, forest, counts)
    found, read = int(counts[_FOUND]), int(counts[_READ])
    control.phase(found=found, matched=matched + found, step="blossoms", edges=read)
    return True


def _planted(n: int, label: np.ndarray, roots: np.ndarray) -> tuple[Forest, np.ndarray]:
    """A forest of roots alone, and its counts."""
    forest = Forest(
        label=label,
        parent=np.empty(n, np.int32),
        bridge=np.full((n, 2), -1, np.int32),
        group=np.full(n, -1, np.int32),
        base=np.arange(n, dtype=np.int32),
        chain=np.empty(n, np.int32),
        last=np.empty(n, np.int32),
        queue=np.empty(n, np.int32),
        waits=np.zeros(n, np.bool_),
        released=np.empty(n, np.int32),
        stamp=np.zeros(n, np.int32),
        path=np.empty((n, 2), np.int32),
    )
    label[roots] = 1 + roots
    forest.chain[roots] = -1
    forest.last[roots] = roots
    forest.queue[: roots.size] = roots
    forest.waits[roots] = True
    counts = np.zeros(7, np.int64)
    counts[_WAITING] = roots.size
    return forest, counts


# -- growing -----------------------------------------------------------------------------------


@kernel
def _grow(indptr, indices, budget, mate, forest, counts):
    """Graft and scan until no vertex waits (True) or the budget is spent (False)."""
    limit = counts[_READ] + budget
    while counts[_READ] < limit:
        if counts[_GRAFTED] < counts[_RELEASED]:
            v = forest.released[counts[_GRAFTED]]
            counts[_GRAFTED] += 1
            if forest.label[v] == 0:
                _graft(v, indptr, indices, mate, forest, counts)
        elif counts[_WAITING] > 0:
            u = forest.queue[counts[_HEAD]]
            counts[_HEAD] = counts[_HEAD] + 1 if counts[_HEAD] + 1 < len(mate) else 0
            counts[_WAITING] -= 1
            forest.waits[u] = False
            if forest.label[u] > 0:
                _scan(u, indptr, indices, mate, forest, counts)
        else:
            return True
    return False


@kernel
def _scan(u, indptr, indices, mate, forest, counts):
    """Look at all neighbours of an outer vertex, until its tree is dissolved."""
    label = forest.label
    tree = label[u]
    counts[_READ] += indptr[u + 1] - indptr[u]
    for e in range(indptr[u], indptr[u + 1]):
        v = indices[e]
        other = label[v]
        if other < 0:
            continue
        if other == 0:
            _join(v, u, mate, forest, counts)
        elif other != tree:
            _augment(u, v, mate, forest, counts)
            return
        elif _representative(u, forest.group) != _representative(v, forest.group):
            _shrink(u, v, mate, forest, counts)


@kernel
def _graft(v, indptr, indices, mate, forest, counts):
    """Let a vertex join a tree next to it, if there is one."""
    for e in range(indptr[v], indptr[v + 1]):
        counts[_READ] += 1
        u = indices[e]
        if forest.label[u] > 0:
            _join(v, u, mate, forest, counts)
            return


@kernel
def _join(v, u, mate, forest, counts):
    """Let ``v`` join the tree of the outer vertex ``u`` as inner, and its mate as outer."""
    tree = forest.label[u]
    root = tree - 1
    w = mate[v]
    forest.label[v] = -tree
    forest.parent[v] = u
    forest.label[w] = tree
    forest.chain[forest.last[root]] = w
    forest.chain[w] = -1
    forest.last[root] = w
    _push(w, forest, counts)


@kernel
def _push(v, forest, counts):
    """Let an outer vertex wait to be scanned, unless it does so already."""
    if forest.waits[v]:
        return
    forest.waits[v] = True
    slot = counts[_HEAD] + counts[_WAITING]
    forest.queue[slot if slot < len(forest.queue) else slot - len(forest.queue)] = v
    counts[_WAITING] += 1


# -- blossoms ----------------------------------------------------------------------------------


@kernel
def _representative(v, group):
    """The representative of the blossom of ``v``; halves the way there."""
    while group[v] >= 0:
        above = group[v]
        if group[above] >= 0:
            group[v] = group[above]
        v = above
    return v


@kernel
def _unite(u, v, group):
    """Make one set of those of two vertices."""
    one, other = _representative(u, group), _representative(v, group)
    if one == other:
        return
    if group[one] > group[other]:
        one, other = other, one
    group[one] += group[other]
    group[other] = one


@kernel
def _base_of(v, forest):
    return np.int64(forest.base[_representative(v, forest.group)])


@kernel
def _base_above(b, mate, forest):
    """The base of the blossom above that with base ``b``; -1 if that has the root."""
    w = mate[b]
    return np.int64(-1) if w < 0 else _base_of(forest.parent[w], forest)


@kernel
def _meeting(u, v, mate, forest, counts):
    """The base of the nearest blossom above both ``u`` and ``v``; walks from both in turns."""
    if counts[_WALKS] == _MOST_WALKS:
        forest.stamp[:] = 0
        counts[_WALKS] = 0
    counts[_WALKS] += 1
    one, other = _base_of(u, forest), _base_of(v, forest)
    while True:
        if one >= 0:
            if forest.stamp[one] == counts[_WALKS]:
                return one
            forest.stamp[one] = counts[_WALKS]
            one = _base_above(one, mate, forest)
        one, other = other, one


@kernel
def _shrink(u, v, mate, forest, counts):
    """Make one blossom of the cycle that the edge ``uv`` of outer vertices of a tree closes."""
    top = _meeting(u, v, mate, forest, counts)
    _absorb(u, v, top, mate, forest, counts)
    _absorb(v, u, top, mate, forest, counts)


@kernel
def _absorb(near, far, top, mate, forest, counts):
    """Unite what is from ``near`` up to the blossom with base ``top`` with that blossom."""
    b = _base_of(near, forest)
    while b != top:
        w = mate[b]
        forest.label[w] = -forest.label[w]
        forest.bridge[w, 0], forest.bridge[w, 1] = near, far
        _push(w, forest, counts)
        above = forest.parent[w]
        next_base = _base_of(above, forest)
        _unite(b, w, forest.group)
        _unite(w, above, forest.group)
        b = next_base
    forest.base[_representative(top, forest.group)] = top


# -- augmenting --------------------------------------------------------------------------------


@kernel
def _augment(u, v, mate, forest, counts):
    """Flip the path from root to root over the edge ``uv``, and dissolve both trees."""
    count = _list_edges(u, 0, mate, forest)
    count = _list_edges(v, count, mate, forest)
    one, other = forest.label[u] - 1, forest.label[v] - 1
    forest.path[count, 0], forest.path[count, 1] = u, v
    counts[_RELEASED] = counts[_GRAFTED] = 0
    _dissolve(one, mate, forest, counts)
    _dissolve(other, mate, forest, counts)
    for k in range(count + 1):
        a, b = forest.path[k, 0], forest.path[k, 1]
        mate[a] = b
        mate[b] = a
    counts[_FOUND] += 1


@kernel
def _list_edges(v, count, mate, forest):
    """List the unmatched edges of the path from an outer vertex to the root in ``path[count:]``.

    A segment of the path, from a vertex down to the mate of the vertex where it ends, may have to
    wait. Those that do are at the end of `path`. Returns the number of edges in the list.
    """
    path = forest.path
    waiting = len(path)
    end = -1
    while True:
        if forest.bridge[v, 0] >= 0:
            near, far = forest.bridge[v, 0], forest.bridge[v, 1]
            path[count, 0], path[count, 1] = near, far
            count += 1
            waiting -= 1
            path[waiting, 0], path[waiting, 1] = near, v
            v = far
            continue
        w = mate[v]
        if w != end:
            path[count, 0], path[count, 1] = w, forest.parent[w]
            count += 1
            v = forest.parent[w]
        elif waiting < len(path):
            v, end = path[waiting, 0], path[waiting, 1]
            waiting += 1
        else:
            return count


@kernel
def _dissolve(root, mate, forest, counts):
    """Take all vertices of a tree out of it, before mates change, and list them."""
    outer = np.int32(root)
    while outer >= 0:
        _release(outer, forest, counts)
        if mate[outer] >= 0:
            _release(mate[outer], forest, counts)
        outer = forest.chain[outer]


@kernel
def _release(v, forest, counts):
    forest.label[v] = 0
    forest.bridge[v, 0] = -1
    forest.group[v] = -1
    forest.base[v] = v
    forest.released[counts[_RELEASED]] = v
    counts[_RELEASED] += 1
