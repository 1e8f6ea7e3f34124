"""Augmenting paths between unmatched vertices, by alternating trees that grow from all at once.

A tree has pairs of mates: an inner vertex, which an outer one of the tree has reached, and its
mate, which is outer. Its root is unmatched, and outer, too. A vertex is in one tree at most. So an
edge between outer vertices of two trees closes an augmenting path from root to root. The two trees
then grow no further, and meet no others. At the end of a phase all these paths are flipped, and the
trees are dissolved. Phases follow as long as they match one root in `PART`.

An edge between two outer vertices of one tree would make a blossom. It is ignored, so a path that
leads around a blossom is not found. `blossoms` finds it, if there is one.

Two trees that meet have read a quarter of what one would read that comes from one root to the
other, on a mesh; on a random graph, the square root. From the vertices that odd cycles leave
(`double_cover`), the first phase matches 1,040 of 1,042 on the Delaunay graph of 2**20 points, and
all 8 on the uniform one with d = 3. It reads 0.34 and 0.001 of their entries, where searches from
one after the other read 1 and 0.5.

Encodings
---------
``tree[v]``      the root of the tree that v is in; NONE; OUTSIDE if no path may enter v
``parent[v]``    of an inner vertex: the outer vertex that has reached it; of an outer one NONE
``joint[r]``     of a root: the vertex of its tree at which it has met another one; NONE before
``partner[r]``   of a root with a joint: the root of that other tree
``queue``        the outer vertices, in the order in which they became that;
                 ``queue[:counts[HEAD]]`` are scanned, ``queue[:counts[TAIL]]`` are all
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpumatch.contracts import Control
from gpumatch.cpu.matching.sides import BUDGET
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.prefetch import prefetch, prefetch_range

__all__ = ["search"]

PART = 8
"""Another phase follows one that has matched a root in so many. Road graphs stop at the first."""

_NONE, _OUTSIDE = -1, -2
_HEAD, _TAIL, _FOUND, _READ = range(4)
_AHEAD = 4  # vertices of the queue, from one step of fetching to the next


class Forest(NamedTuple):
    """The state of a search; see the module."""

    mate: np.ndarray
    tree: np.ndarray
    parent: np.ndarray
    joint: np.ndarray
    partner: np.ndarray
    queue: np.ndarray


def search(
    indptr: np.ndarray,
    indices: np.ndarray,
    mate: np.ndarray,
    is_outside: np.ndarray,
    control: Control,
    budget: int = BUDGET,
) -> bool:
    """Match unmatched vertices, as long as trees meet.

    Parameters
    ----------
    indptr, indices : int arrays
        The graph, as in `gpumatch.contracts.GeneralMatchingTask`.
    mate : int32 array
        The matching. It holds one whenever Python runs.
    is_outside : bool array
        True for vertices that keep their mates.
    control : Control
    budget : int
        Edges that are read between two returns to Python.

    Returns
    -------
    bool
        True unless ``control`` has stopped the search.
    """
    roots = np.flatnonzero((mate < 0) & ~is_outside).astype(np.int32)
    if roots.size < 2:
        return True
    matched = int(np.count_nonzero(mate >= 0)) // 2
    forest = _empty_forest(mate, is_outside)
    while roots.size > 1:
        counts, is_grown, is_stopped = np.zeros(4, np.int64), False, False
        _plant(
            roots,  # IN
            forest, counts,  # OUT
        )  # fmt: skip
        while not (is_grown or is_stopped):
            is_grown = _grow(
                indptr, indices, budget,  # IN
                forest, counts,  # OUT
            )  # fmt: skip
            is_stopped = control.tick(matched + int(counts[_FOUND]))
        _flip(
            roots,  # IN
            forest, counts,  # OUT
        )  # fmt: skip
        found = int(counts[_FOUND])
        matched += found
        control.phase(found=found, matched=matched, step="trees", edges=int(counts[_READ]))
        if is_stopped:
            return False
        if PART * 2 * found < roots.size:
            break
        roots = roots[mate[roots] < 0]
    return True


def _empty_forest(mate: np.ndarray, is_outside: np.ndarray) -> Forest:
    n = mate.size
    return Forest(
        mate=mate,
        tree=np.where(is_outside, np.int32(_OUTSIDE), np.int32(_NONE)),
        parent=np.empty(n, np.int32),
        joint=np.empty(n, np.int32),
        partner=np.empty(n, np.int32),
        queue=np.empty(n, np.int32),
    )


@kernel
def _plant(roots, forest, counts):
    """Begin a tree at each root."""
    for k in range(len(roots)):
        root = roots[k]
        forest.tree[root], forest.parent[root], forest.joint[root] = root, _NONE, _NONE
        forest.queue[k] = root
    counts[_TAIL] = len(roots)


@kernel
def _grow(indptr, indices, budget, forest, counts):
    """Scan outer vertices until none is left (True) or the budget is spent (False)."""
    tree, joint, queue = forest.tree, forest.joint, forest.queue
    limit = counts[_READ] + budget
    while counts[_HEAD] < counts[_TAIL]:
        if counts[_READ] >= limit:
            return False
        _foresee(indptr, indices, forest, counts)
        u = np.int64(queue[counts[_HEAD]])
        counts[_HEAD] += 1
        if joint[tree[u]] == _NONE:
            counts[_READ] += indptr[u + 1] - indptr[u]
            _scan(u, indptr, indices, forest, counts)
    return True


@kernel
def _foresee(indptr, indices, forest, counts):
    """Fetch what will be read of vertices that are AHEAD in the queue, in three steps."""
    at, queue = counts[_HEAD], forest.queue
    if at + 3 * _AHEAD >= counts[_TAIL]:
        return
    prefetch(indptr, queue[at + 3 * _AHEAD])
    u = queue[at + 2 * _AHEAD]
    prefetch_range(indices, indptr[u], indptr[u + 1] - 1)
    u = queue[at + _AHEAD]
    for e in range(indptr[u], indptr[u + 1]):
        v = np.int64(indices[e])
        prefetch(forest.tree, v)
        prefetch(forest.mate, v)


@kernel
def _scan(u, indptr, indices, forest, counts):
    """Look at all neighbours of an outer vertex, until its tree meets another one."""
    mate, tree, parent, joint, partner, queue = forest
    root = tree[u]
    for e in range(indptr[u], indptr[u + 1]):
        v = np.int64(indices[e])
        other = tree[v]
        if other == _NONE:
            w = np.int64(mate[v])
            tree[v] = tree[w] = root
            parent[v], parent[w] = u, _NONE
            queue[counts[_TAIL]] = w
            counts[_TAIL] += 1
        elif other >= 0 and other != root and parent[v] == _NONE and joint[other] == _NONE:
            joint[root], joint[other] = u, v
            partner[root], partner[other] = other, root
            counts[_FOUND] += 1
            return


@kernel
def _flip(roots, forest, counts):
    """Flip the half of a path from each root up to its joint; dissolve all trees."""
    mate, tree, parent, joint, partner, queue = forest
    for k in range(counts[_TAIL]):
        outer = np.int64(queue[k])
        tree[outer] = _NONE
        if mate[outer] >= 0:
            tree[mate[outer]] = _NONE
    for k in range(len(roots)):
        root = roots[k]
        if joint[root] == _NONE:
            continue
        v, other = np.int64(joint[root]), joint[partner[root]]
        while v != root:
            inner = np.int64(mate[v])
            mate[v] = other
            other, v = inner, np.int64(parent[inner])
            mate[inner] = v
        mate[v] = other
