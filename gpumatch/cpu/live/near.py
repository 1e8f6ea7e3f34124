"""Paths of a live assignment of points, whose costs are computed.

A search is Dijkstra's, as in `search`, from one end. But no line is read. Each vertex that has been
scanned knows a few of its nearest vertices outside the tree, which a tree of boxes finds; a heap
holds the first of each. Within a search, duals change only in that vertices join the tree. So what
is left of such a list stays right, and only when all of it has joined, the boxes are asked again.

Of the boxes, `gpumatch.cpu.assignment.points.tree` says how they lie and why none of their bounds
is too high. Here their prices change one by one: the largest price of each node (``top``) follows,
also when a vertex joins the tree and is hidden. So nodes inside a tree are not entered. Points
that came after the boxes were made are ``loose``, a few, and are looked at one by one.

    state     the arrays of `state` of the two sides; all vertices of a side are free, or none is
    place[k]  place of k in the order of the boxes, or -1 if it is loose or not in use
    loose[q]  the loose points
    points[p], price[p]   coordinates and shown dual, by place
    offset[x] what is added to the reduced costs of a scanned vertex
    near[x], slack[x]     its nearest vertices, least first, -1 where there is none; their reduced
              costs
    next[x]   how many of them have joined the tree

Of pairs whose vertices a path has passed, numbers[LINE] has the costs, on both sides.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.assignment.points.distances import cost_of
from gpumatch.cpu.assignment.points.least import insert
from gpumatch.cpu.assignment.points.tree import bound_of
from gpumatch.cpu.heap import drop_top, push
from gpumatch.cpu.live.state import (
    BACK,
    DUAL,
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
from gpumatch.cpu.numba_tools.error_free import difference_below
from gpumatch.cpu.numba_tools.views import view

__all__ = ["fair_duals", "nearest", "serve_point", "show"]

_NO_OFFSETS = np.zeros((1, 2))


@kernel
def _bound(own, x, box, node, metric, sign):
    return bound_of(own, x, box, node, metric, 1.0, sign, False, 0.0, _NO_OFFSETS)


@inlined
def _less(cost, dual, is_rounded_down):
    """Return the difference; rounding down takes longer than all else here."""
    return difference_below(cost, dual) if is_rounded_down else cost - dual


@kernel
def nearest(
    own, x, other, nums2, boxes, metric, sign, limit, is_rounded_down, stack, bounds, near, slack
):  # fmt: skip
    """List the vertices of the least costs less shown duals, which are below the limit.

    ``near`` and ``slack`` are lists, and are filled.
    """
    ids, _, points, price, box, top, loose, sizes = boxes
    levels, count = sizes[0], points.shape[0]
    near[:] = -1
    slack[:] = np.inf
    most = limit
    for q in range(sizes[1]):
        k = loose[q]
        if nums2[SHOWN, k] > -np.inf:
            cost = cost_of(own, x, other, k, metric, 1.0, sign, False, 0.0, 0.0)
            value = _less(cost, nums2[SHOWN, k], is_rounded_down)
            if value < most:
                most = min(insert(value, k, slack, near), limit)
    waiting = 0
    if count > 0:
        stack[0], bounds[0], waiting = 1, -np.inf, 1
    while waiting > 0:
        waiting -= 1
        if bounds[waiting] >= most:
            continue
        node = stack[waiting]
        if node < 1 << levels:
            left, right = 2 * node, 2 * node + 1
            one = _bound(own, x, box, left, metric, sign) - top[left]
            two = _bound(own, x, box, right, metric, sign) - top[right]
            if one <= two:
                left, right, one, two = right, left, two, one
            if one < most:
                stack[waiting], bounds[waiting] = left, one
                waiting += 1
            if two < most:
                stack[waiting], bounds[waiting] = right, two
                waiting += 1
            continue
        first = node - (1 << levels)
        for p in range((first * count) >> levels, ((first + 1) * count) >> levels):
            if price[p] > -np.inf:
                cost = cost_of(own, x, points, p, metric, 1.0, sign, False, 0.0, 0.0)
                value = _less(cost, price[p], is_rounded_down)
                if value < most:
                    most = min(insert(value, ids[p], slack, near), limit)


@kernel
def show(nums, boxes, k, dual):
    """Show a dual, or hide a vertex by -inf, to the searches from the other side."""
    _, place, points, price, _, top, _, sizes = boxes
    nums[SHOWN, k] = dual
    p = place[k]
    if p < 0:
        return
    price[p] = dual
    levels, count = sizes[0], points.shape[0]
    leaf = ((p + 1) << levels) // count  # the node whose range has p, or the next
    while (leaf * count) >> levels > p:
        leaf -= 1
    most = -np.inf
    for q in range((leaf * count) >> levels, ((leaf + 1) * count) >> levels):
        most = max(most, price[q])
    node = (1 << levels) + leaf
    while top[node] != most:
        top[node] = most
        if node == 1:
            return
        node >>= 1
        most = max(top[2 * node], top[2 * node + 1])


@short_kernel
def serve_point(
    own, other, nums, nums2, marks, marks2,
    ids, place, points, price, box, tops, loose, sizes,
    r, is_free, top, metric, sign, offset, near, slack, next, keys, heap, stack, bounds,
):  # fmt: skip
    """Find the path of r, and change the pairs and duals along it."""
    boxes2 = ids, place, points, price, box, tops, loose, sizes
    _serve(
        own, other, nums, nums2, marks, marks2, boxes2, r, is_free, top, metric, sign,
        offset, near, slack, next, keys, heap, stack, bounds,
    )  # fmt: skip


@kernel
def _serve(
    own, other, nums, nums2, marks, marks2, boxes2, r, is_free, top, metric, sign,
    offset, near, slack, next, keys, heap, stack, bounds,
):  # fmt: skip
    """Do as `serve_point`."""
    length = near.shape[1]
    size = waiting = 0
    leave, leaver, sink = top if is_free else np.inf, r, -1
    least = np.inf  # the distance of the nearest unmatched vertex that is known
    offset[r] = 0.0
    next[r] = length
    x, before = r, -1
    front = -np.inf
    while True:
        for y in (x, before):
            if y < 0:
                continue
            at = next[y]
            while at < length and near[y, at] >= 0 and nums2[SHOWN, near[y, at]] == -np.inf:
                at += 1
            if at == length:
                limit = min(leave, least) - offset[y]
                nearest(
                    own, y, other, nums2, boxes2, metric, sign, limit, False, stack, bounds,
                    view(near, (y, 0), length), view(slack, (y, 0), length),
                )  # fmt: skip
                at = 0
            next[y] = at
            k = near[y, at]
            if k < 0:
                continue
            there = max(slack[y, at] + offset[y], front)
            if marks2[MATE, k] >= 0:
                push(keys, heap, waiting, there, y)
                waiting += 1
            elif there < least:
                least, sink = there, k
                marks2[PRED, k] = y
        if waiting == 0 or keys[0] >= least or keys[0] >= leave:
            break
        front, before = keys[0], heap[0]
        waiting -= 1
        drop_top(keys, heap, waiting)
        k = near[before, next[before]]
        x = -1
        if nums2[SHOWN, k] == -np.inf:  # another has taken it
            continue
        x = marks2[MATE, k]
        marks2[PRED, k] = before
        marks2[TREE, size], marks2[BACK, size], nums2[REACH, size] = k, x, front
        size += 1
        offset[x] = front - (nums2[LINE, k] - nums2[DUAL, k])
        next[x] = length
        show(nums2, boxes2, k, -np.inf)
        if is_free and max(top + offset[x], front) < leave:
            leave, leaver = max(top + offset[x], front), x
    radius = min(leave, least)
    for t in range(size):
        k, x = marks2[TREE, t], marks2[BACK, t]
        nums2[DUAL, k] += min(nums2[REACH, t] - radius, 0.0)
        show(nums2, boxes2, k, nums2[DUAL, k])
        nums[DUAL, x] = radius - offset[x]
    nums[DUAL, r] = nums[SHOWN, r] = radius
    nums[SCALARS, LINES] += size + 1
    if least > leave:
        sink = marks[MATE, leaver]
        marks[MATE, leaver] = -1 - leaver
        nums[LINE, leaver] = 0.0
        if leaver == r:
            return
    while True:
        x = marks2[PRED, sink]
        marks2[MATE, sink] = x
        cost = cost_of(own, x, other, sink, metric, 1.0, sign, False, 0.0, 0.0)
        nums[LINE, x] = nums2[LINE, sink] = cost
        sink, marks[MATE, x] = marks[MATE, x], sink
        if x == r:
            break


@kernel
def fair_duals(own, other, nums2, boxes2, used, metric, sign, stack, bounds, near, slack, duals):
    """Write the dual of each of these vertices as high as no pair undercuts.

    ``near`` and ``slack`` have room for one vertex.
    """
    for q in range(used.size):
        nearest(
            own, used[q], other, nums2, boxes2, metric, sign, np.inf, True, stack, bounds, near,
            slack,
        )  # fmt: skip
        duals[q] = slack[0]
