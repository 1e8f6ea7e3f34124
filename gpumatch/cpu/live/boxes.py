"""Boxes around the points of one side, which find the least costs less duals of a point.

`gpumatch.cpu.assignment.points.tree` says how the boxes lie and why none of their bounds is too
high. Here the duals change one by one, and the bounds do not follow at once. A node's bound holds
as long as its ``top`` is no less than any dual of its points. So a dual that falls needs nothing;
its nodes are only entered more often than they need be, until `Boxes.take` reads all duals again.
A dual that rises makes the boxes stale, and they must be read again before the next search.

Points that came after the boxes were made are ``loose``, a few, and are looked at one by one.

    place[k]  place of k in the order of the boxes, or -1 if it is loose or not in use
    ids[p]    which point is at a place; across[:, p] has its coordinates
    held[DUAL, p], held[SHOWN, p]  its dual, and the same or -inf if it is hidden, as in `state`;
              both -inf if it takes no part
    leaf[p]   the node whose range holds the place
    top[t]    no less than the dual of any point of node t
    open[t]   of a leaf, how many of its points no search has hidden in its tree; of another node,
              how many of its children have such points
    loose[q]  the loose points, sizes[LOOSE_NOW] of them
    sizes[LEVELS_HERE]  the depth of the tree
    values    room for what `nearest` computes of a leaf, all of whose points it takes in one loop
"""

from __future__ import annotations

import math

import numpy as np

from gpumatch.cpu.assignment.points.distances import LARGEST_ROOT, LEAST_ROOT, cost_of
from gpumatch.cpu.assignment.points.least import insert
from gpumatch.cpu.assignment.points.tree import bound_of, raise_nodes, split
from gpumatch.cpu.live.state import DUAL, SHOWN
from gpumatch.cpu.numba_tools.compiled import inlined, kernel
from gpumatch.cpu.numba_tools.error_free import difference_below

__all__ = ["TYPES", "Boxes", "hide", "nearest", "show"]

LEAF = 32
"""Points of a leaf, at most."""
LOOSE = 64
"""Points that may come before the boxes are made anew."""
LEVELS_HERE, LOOSE_NOW = range(2)
TYPES = "i4,1 i4,1 i4,1 f8,2 f8,3 f8,1 i4,1 i4,1 i8,1 f8,2 f8,1 "
"""Those of `Boxes.arrays`, as `calls.compiled` names them."""

_NO_OFFSETS = np.zeros((1, 2))


class Boxes:
    """The boxes of some points of a side.

    Parameters
    ----------
    points : array with a row for each slot
    duals : array of all slots
    used : integer array
        The slots whose points get boxes.
    """

    def __init__(self, points: np.ndarray, duals: np.ndarray, used: np.ndarray) -> None:
        count, width = used.size, points.shape[1]
        self.levels = max(0, math.ceil(math.log2(max(count, 1) / LEAF)))
        nodes = 2 ** (self.levels + 1)
        order, box = np.arange(count, dtype=np.int32), np.empty((nodes, 2, width))
        own = points[used]
        split(own, order, self.levels, box)
        self.ids = used[order].astype(np.int32)
        self.place = np.full(points.shape[0], -1, np.int32)
        self.place[self.ids] = np.arange(count, dtype=np.int32)
        first = (np.arange(2**self.levels + 1, dtype=np.int64) * count) >> self.levels
        leaf = np.repeat(np.arange(2**self.levels, dtype=np.int32), np.diff(first))
        self.leaf = leaf + np.int32(2**self.levels)
        self.open = np.full(nodes, 2, np.int32)
        self.open[2**self.levels :] = np.diff(first)
        self.top, self.loose = np.zeros(nodes), np.zeros(LOOSE, np.int32)
        self.sizes, self.held = np.array([self.levels, 0]), np.empty((2, count))
        across = np.ascontiguousarray(own[order].T)
        self.arrays = (
            self.ids, self.place, self.leaf, across, box, self.top, self.open, self.loose,
            self.sizes, self.held, np.empty(LEAF),
        )  # fmt: skip
        self.take(duals)

    def take(self, duals: np.ndarray) -> None:
        """Read all duals again. One is -inf if its point takes no part."""
        self.held[:] = np.where(self.place[self.ids] >= 0, duals[self.ids], -np.inf)
        raise_nodes(self.held[DUAL], self.levels, self.top)

    def drop(self, slot: int) -> None:
        """Leave out a point, whose dual is -inf or becomes that of a loose point."""
        if self.place[slot] >= 0:
            self.held[:, self.place[slot]] = -np.inf
        self.place[slot] = -1
        count = int(self.sizes[LOOSE_NOW])
        kept = self.loose[:count][self.loose[:count] != slot]
        self.loose[: kept.size] = kept
        self.sizes[LOOSE_NOW] = kept.size

    def add_loose(self, slot: int) -> bool:
        """Note a point that has come; False if there is no room."""
        count = int(self.sizes[LOOSE_NOW])
        if count == LOOSE:
            return False
        self.loose[count] = slot
        self.sizes[LOOSE_NOW] += 1
        return True


@kernel
def _bound(own, x, box, node, metric, sign):
    return bound_of(own, x, box, node, metric, 1.0, sign, False, 0.0, _NO_OFFSETS)


@inlined
def _less(cost, dual, is_rounded_down):
    """Return the difference; rounding down takes longer than all else here."""
    return difference_below(cost, dual) if is_rounded_down else cost - dual


@kernel
def nearest(
    own, x, other, nums2, line, boxes, metric, sign, limit, is_rounded_down, stack, bounds, near,
    slack,
):  # fmt: skip
    """List the vertices of the least costs less duals, of those below the limit.

    ``line`` is DUAL for all vertices, SHOWN to leave out the hidden ones. ``near`` and ``slack``
    are lists, and are filled; -1 and inf where there are no more.
    """
    ids, _, _, across, box, top, open_, loose, sizes, held, values = boxes
    levels, count = sizes[0], ids.size
    near[:] = -1
    slack[:] = np.inf
    most = limit
    for q in range(sizes[1]):
        k = loose[q]
        cost = cost_of(own, x, other, k, metric, 1.0, sign, False, 0.0, 0.0)
        value = _less(cost, nums2[line, k], is_rounded_down)
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
            one = two = np.inf
            if line == DUAL or open_[left] > 0:
                one = _less(_bound(own, x, box, left, metric, sign), top[left], is_rounded_down)
            if line == DUAL or open_[right] > 0:
                two = _less(_bound(own, x, box, right, metric, sign), top[right], is_rounded_down)
            if one <= two:
                left, right, one, two = right, left, two, one
            if one < most:
                stack[waiting], bounds[waiting] = left, one
                waiting += 1
            if two < most:
                stack[waiting], bounds[waiting] = right, two
                waiting += 1
            continue
        leaf = node - (1 << levels)
        first, last = (leaf * count) >> levels, ((leaf + 1) * count) >> levels
        _costs_of(own, x, across, first, last - first, metric, sign, values)
        for p in range(first, last):
            value = _less(values[p - first], held[line, p], is_rounded_down)
            if value < most:
                most = min(insert(value, ids[p], slack, near), limit)


@kernel
def _costs_of(own, x, across, first, count, metric, sign, values):
    """Write the costs of x and ``count`` points at places that follow each other, as `cost_of`."""
    values[:count] = 0.0
    for k in range(across.shape[0]):
        here = own[x, k]
        if metric <= 1:
            for q in range(count):
                step = here - across[k, first + q]
                values[q] += step * step
        elif metric == 2:
            for q in range(count):
                values[q] += abs(here - across[k, first + q])
        else:
            for q in range(count):
                values[q] = max(values[q], abs(here - across[k, first + q]))
    if metric == 1:
        strange = 0
        for q in range(count):
            root = np.sqrt(values[q])
            values[q] = root
            strange += (root <= LEAST_ROOT) + (root >= LARGEST_ROOT)
        if strange > 0:
            for q in range(count):
                values[q] = cost_of(
                    own, x, across.T, first + q, metric, 1.0, 1.0, False, 0.0, 0.0
                )  # fmt: skip
    if sign < 0:
        for q in range(count):
            values[q] = -values[q]


@inlined
def hide(nums, boxes, k):
    """Hide a vertex from `nearest`."""
    nums[SHOWN, k] = -np.inf
    _count(boxes, k, -1, -np.inf)


@inlined
def show(nums, boxes, k):
    """Show it again, with its dual."""
    nums[SHOWN, k] = nums[DUAL, k]
    _count(boxes, k, 1, nums[DUAL, k])


@kernel
def _count(boxes, k, more, shown):
    """Note a dual as it is shown, and count its point in or out."""
    _, place, leaf, _, _, _, open_, _, _, held, _ = boxes
    if place[k] >= 0:
        held[SHOWN, place[k]] = shown
        if more > 0:
            held[DUAL, place[k]] = shown
        node, ends = leaf[place[k]], max(more, 0)
        open_[node] += more
        while open_[node] == ends and node > 1:
            node >>= 1
            open_[node] += more
