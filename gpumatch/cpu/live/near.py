"""Paths of a live assignment of points, whose costs are computed.

A search is Dijkstra's, as in `search`, from one end. But no line is read. Each vertex keeps a list
of nearest vertices of the other side, in the order of the reduced costs that they had when it was
made. No vertex outside the list had a lower one than the last. Duals that fall leave that true.
When a dual of the other side rises, or a point comes, all lists of this side are out of date
(``epoch``), and each is made anew when it is needed (`boxes`).

The tree scans a vertex by a look at its list, which ends as soon as the costs that they had are
above the least one found. If the least is that of the last, or above, it is only a bound. Then the
bound goes into the heap. Once the search reaches that distance, it takes a few vertices outside the
tree from the boxes (``asked``), for this search only. If most of the list has risen beyond the
bound, the list is made anew instead.

What a search must leave
------------------------
Own duals rise, those of the other side fall, both only by what a vertex is nearer than the radius
where the search ends, at the nearest end. All vertices that the tree has scanned by then change,
and nothing else. Then no pair is undercut: a scanned own vertex x and an other vertex k outside the
tree had a distance of at least the radius. An end that is known but farther than the radius changes
nothing. A vertex that leaves gets its top exactly.

    state     the arrays of `state` of the two sides; all vertices of a side are free, or none is. A
              point that takes no part yet, or no more, has the dual -inf
    near[x], cost[x], had[x]  the list of x, the costs of its pairs, and the reduced costs that they
              had; -1 and inf where there are no more
    made[x]   the epoch at which the list was made; `_worn` of it if most has risen since
    few[x], reduced[x]  vertices outside the tree, with their reduced costs
    asked[x]  the search for which these are
    offset[x] what is added to the reduced costs of a scanned vertex
    next[x]   the vertex that x would bring into the tree; -1 if only the bound is known
    keys, heap     scanned vertices by the distance of what they would bring

Of pairs whose vertices a path has passed, numbers[LINE] has the costs, on both sides.
numbers[SCALARS, LARGEST] of the root's side has the greatest magnitude that a search has given to a
dual.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.assignment.points.distances import cost_of
from gpumatch.cpu.live.boxes import hide, nearest, show
from gpumatch.cpu.live.search import set_dual
from gpumatch.cpu.live.state import (
    BACK,
    DUAL,
    LARGEST,
    LINE,
    LINES,
    MATE,
    PRED,
    REACH,
    SCALARS,
    SHOWN,
    TREE,
)
from gpumatch.cpu.numba_tools.compiled import inlined, kernel, short_kernel
from gpumatch.cpu.numba_tools.views import view
from gpumatch.cpu.searches.heap import drop_top, push

__all__ = ["fair_duals", "serve_point"]

SPARE = 2.0**-40
"""The share by which the bound of a list is above what the former list still has."""


@kernel
def _list(own, other, nums2, boxes2, x, metric, sign, epoch, near, cost, had, made, stack, bounds):
    """Make the list of x. If it was worn, what is in it bounds the search."""
    length = near.shape[1]
    nears, reduced = view(near, (x, 0), length), view(had, (x, 0), length)
    limit = np.inf
    if made[x] == _worn(epoch) and near[x, length - 1] >= 0:
        limit = -np.inf
        for at in range(length):
            limit = max(limit, cost[x, at] - nums2[DUAL, near[x, at]])
        limit += SPARE * abs(limit)
    made[x] = epoch
    while True:
        nearest(
            own, x, other, nums2, DUAL, boxes2, metric, sign, limit, False, stack, bounds, nears,
            reduced,
        )  # fmt: skip
        if limit == np.inf or nears[length - 1] >= 0:
            break
        limit = np.inf
    for at in range(length):
        if nears[at] >= 0:
            cost[x, at] = cost_of(own, x, other, nears[at], metric, 1.0, sign, False, 0.0, 0.0)


@inlined
def _worn(epoch):
    """Return what marks a list of this epoch that is to be made anew."""
    return -1 - epoch


@kernel
def _look(nums2, x, near, cost, had):
    """Return the least reduced cost in a list of a vertex outside the tree, and the vertex.

    That is -1 if the cost is only a bound.
    """
    length = near.shape[1]
    least, nearest_one = had[x, length - 1], np.int32(-1)
    for at in range(length):
        if had[x, at] > least or near[x, at] < 0:
            break
        k = near[x, at]
        there = cost[x, at] - nums2[SHOWN, k]
        if there <= least:
            least, nearest_one = there, k
    return least, nearest_one


@kernel
def _look_at_few(nums2, x, few, reduced):
    """Do as `_look`, for those outside the tree that the boxes have named."""
    length = few.shape[1]
    for at in range(length):
        k = few[x, at]
        if k < 0:
            return np.inf, np.int32(-1)
        if nums2[SHOWN, k] > -np.inf:
            return reduced[x, at], k
    return reduced[x, length - 1], np.int32(-1)


@kernel
def _is_worn(nums2, x, near, cost, had):
    """Return if most of a list has risen beyond its bound."""
    length = near.shape[1]
    within = 0
    for at in range(length):
        k = near[x, at]
        within += k >= 0 and cost[x, at] - nums2[DUAL, k] <= had[x, length - 1]
    return 8 * within < length


@short_kernel
def serve_point(
    own, other, nums, nums2, marks, marks2,
    ids, place, leaf, across, box, tops, open_, loose, sizes, held, values,
    r, is_free, top, metric, sign, epoch, search,
    near, cost, had, made, few, reduced, asked, offset, next, keys, heap, stack, bounds,
):  # fmt: skip
    """Find the path of r, and change the pairs and duals along it; return how many duals fell."""
    boxes2 = ids, place, leaf, across, box, tops, open_, loose, sizes, held, values
    return _serve(
        own, other, nums, nums2, marks, marks2, boxes2, r, is_free, top, metric, sign, epoch,
        search, near, cost, had, made, few, reduced, asked, offset, next, keys, heap, stack, bounds,
    )  # fmt: skip


@kernel
def _serve(
    own, other, nums, nums2, marks, marks2, boxes2, r, is_free, top, metric, sign, epoch,
    search, near, cost, had, made, few, reduced, asked, offset, next, keys, heap, stack, bounds,
):  # fmt: skip
    """Do as `serve_point`."""
    size = waiting = 0
    leave, leaver, sink = top if is_free else np.inf, r, -1
    least = np.inf  # the distance of the nearest unmatched vertex that is known
    offset[r] = 0.0
    x, before = r, -1
    front = -np.inf
    while True:
        for y in (x, before):
            if y < 0:
                continue
            if asked[y] == search:
                there, k = _look_at_few(nums2, y, few, reduced)
            else:
                if made[y] != epoch:
                    _list(
                        own, other, nums2, boxes2, y, metric, sign, epoch, near, cost, had, made,
                        stack, bounds,
                    )  # fmt: skip
                there, k = _look(nums2, y, near, cost, had)
            there = max(there + offset[y], front)
            if there >= least or there >= leave:
                continue
            if k >= 0 and marks2[MATE, k] < 0:
                least, sink = there, k
                marks2[PRED, k] = y
            else:
                next[y] = k
                push(keys, heap, waiting, there, y)
                waiting += 1
        if waiting == 0 or keys[0] >= least or keys[0] >= leave:
            break
        front, before = keys[0], heap[0]
        waiting -= 1
        drop_top(keys, heap, waiting)
        x, k = -1, next[before]
        if k < 0 and asked[before] != search and _is_worn(nums2, before, near, cost, had):
            made[before] = _worn(epoch)
        elif k < 0:
            nearest(
                own, before, other, nums2, SHOWN, boxes2, metric, sign,
                min(leave, least) - offset[before], False, stack, bounds,
                view(few, (before, 0), few.shape[1]), view(reduced, (before, 0), few.shape[1]),
            )  # fmt: skip
            asked[before] = search
        if k < 0 or nums2[SHOWN, k] == -np.inf:  # else another has taken it
            continue
        x = marks2[MATE, k]
        marks2[PRED, k] = before
        marks2[TREE, size], marks2[BACK, size], nums2[REACH, size] = k, x, front
        size += 1
        offset[x] = front - (nums2[LINE, k] - nums2[DUAL, k])
        hide(nums2, boxes2, k)
        if is_free and max(top + offset[x], front) < leave:
            leave, leaver = max(top + offset[x], front), x
    radius = min(leave, least)
    largest = max(nums[SCALARS, LARGEST], abs(radius))
    for t in range(size):
        k, x = marks2[TREE, t], marks2[BACK, t]
        nums2[DUAL, k] += min(nums2[REACH, t] - radius, 0.0)
        show(nums2, boxes2, k)
        set_dual(nums, x, radius - offset[x])
        largest = max(largest, max(abs(nums2[DUAL, k]), abs(radius - offset[x])))
    set_dual(nums, r, radius)
    nums[SCALARS, LARGEST] = largest
    nums[SCALARS, LINES] += size + 1
    if least > leave:
        sink = marks[MATE, leaver]
        marks[MATE, leaver] = -1 - leaver
        nums[LINE, leaver] = 0.0
        set_dual(nums, leaver, top)
        if leaver == r:
            return size
    while True:
        x = marks2[PRED, sink]
        marks2[MATE, sink] = x
        price = cost_of(own, x, other, sink, metric, 1.0, sign, False, 0.0, 0.0)
        nums[LINE, x] = nums2[LINE, sink] = price
        sink, marks[MATE, x] = marks[MATE, x], sink
        if x == r:
            break
    return size


@kernel
def fair_duals(own, other, nums2, boxes2, used, metric, sign, stack, bounds, near, slack, duals):
    """Write the dual of each of these vertices as high as no pair undercuts.

    ``near`` and ``slack`` have room for one vertex.
    """
    for q in range(used.size):
        nearest(
            own, used[q], other, nums2, DUAL, boxes2, metric, sign, np.inf, True, stack, bounds,
            near, slack,
        )  # fmt: skip
        duals[q] = slack[0]
