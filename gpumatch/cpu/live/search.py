"""One augmenting path in a dense table that is live.

`state` names the arrays and what holds of them. A row that waits has a dual u that no pair
undercuts. Dijkstra's search from it raises u and the duals of the rows of its tree, and lowers
those of the tree's columns, until its path ends: in an unmatched column, or in a row of the tree
that is free and rather goes without a column.

A change of a row mostly unmatches one pair, so that a row r and a column j wait together. Then a
second tree grows from j. With radii F and B, no pair is undercut as long as F + B is at most the
length P of the shortest path from r to j that is known. The search ends as soon as

- F + B = P: the path joins both trees, or
- F is the distance R of the nearest end of r, B is the distance S of the nearest end of j, and
  R + S <= P: each gets a path of its own.

The smaller tree grows. So in a matrix of n rows, about the square root of n lines are read at
each end, where a search from r alone would read half of all lines.

All ways through pairs of which neither vertex is free are closed. If a row has no end, its tree
changes the class (`release`): the rows become free and the columns bound, with duals moved by one
number.

A scan of a line is a loop over vectors without a branch, as in
`gpumatch.cpu.assignment.small.search`. A vertex of the tree is shown at -inf and has the distance
inf.

Floats: a dual that rises is read off its line at the end, rounded down. So duals stay fair, and
the slack of a pair is rounding, which does not add up: later searches take pairs to be tight.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.live.state import (
    BACK,
    BOUND,
    COUNTS,
    DIST,
    DUAL,
    FREE,
    LINES,
    MATE,
    PARTNER,
    PRED,
    QUEUE,
    REACH,
    SCALARS,
    SHOWN,
    SLOTS,
    TOP,
    TREE,
    USED,
    WAITING,
    WAITS,
)
from gpumatch.cpu.numba_tools.compiled import fused, vector_kernel
from gpumatch.cpu.numba_tools.error_free import down, lost
from gpumatch.cpu.numba_tools.vector_min import greater, lesser

__all__ = [
    "dual_below",
    "flip",
    "hide_bound",
    "release",
    "serve_side",
    "set_dual",
    "show_bound",
    "wait",
]

_NONE = np.int32(2**31 - 1)
_NOBODY = np.int32(-1)
"""No vertex, as a number of the type of vertices: Numba compiles a function for each type."""


@vector_kernel
def serve_side(own, other, nums, nums2, marks, marks2, joins, is_exact, budget):
    """Serve the vertices of a side that wait, until ``budget`` entries are read; return these.

    ``joins`` is True if a pair at the limit is to be made. ``is_exact`` is True if no sum is
    rounded.
    """
    read = 0
    while marks[COUNTS, WAITING] > 0 and read < budget:
        marks[COUNTS, WAITING] -= 1
        x = marks[QUEUE, marks[COUNTS, WAITING]]
        if marks[WAITS, x] == 0:
            continue
        marks[WAITS, x] = 0
        if marks[USED, x] == 0 or marks[MATE, x] >= 0:
            continue
        if marks[FREE, x] == 1 and nums[DUAL, x] >= nums[SCALARS, TOP]:
            if joins:
                read += _join(own, nums, nums2, marks, marks2, x)
            continue
        j = _partner(marks, marks2, nums2, x)
        hides = marks[FREE, x] == 0 and marks2[COUNTS, BOUND] > 0
        hides2 = j >= 0 and marks2[FREE, j] == 0 and marks[COUNTS, BOUND] > 0
        hide_bound(nums2, marks2, hides)
        hide_bound(nums, marks, hides2)
        has_end, lines, leaver, leaver2 = _search(
            own, other, nums, nums2, marks, marks2, x, j, joins, is_exact
        )
        show_bound(nums2, marks2, hides)
        show_bound(nums, marks, hides2)
        nums[SCALARS, LINES] += lines
        read += lines * (marks[COUNTS, SLOTS] + marks2[COUNTS, SLOTS])
        if not has_end:
            marks2[BACK, lines - 1] = x
            release(own, nums, nums2, marks, marks2, lines, lines - 1)
            wait(marks, x)
        elif joins:
            if leaver >= 0:
                read += _join(own, nums, nums2, marks, marks2, leaver)
            if leaver2 >= 0:
                read += _join(other, nums2, nums, marks2, marks, leaver2)
    return read


@fused
def wait(marks, x):
    """Let an unmatched vertex wait."""
    if marks[WAITS, x] == 0:
        marks[WAITS, x] = 1
        marks[QUEUE, marks[COUNTS, WAITING]] = x
        marks[COUNTS, WAITING] += 1


@fused
def set_dual(nums, x, dual):
    """Set a dual, and show it."""
    nums[DUAL, x] = dual
    nums[SHOWN, x] = dual


@fused
def hide_bound(nums, marks, hides):
    """Hide the vertices that are not free, if ``hides``."""
    if hides:
        for x in range(marks[COUNTS, SLOTS]):
            if marks[FREE, x] == 0:
                nums[SHOWN, x] = -np.inf


@fused
def show_bound(nums, marks, hidden):
    """Show them again."""
    if hidden:
        for x in range(marks[COUNTS, SLOTS]):
            nums[SHOWN, x] = nums[DUAL, x]


@fused
def _partner(marks, marks2, nums2, x):
    """Return the mate that x has lost, if it is to be served and both are of one class; else -1."""
    j = marks[PARTNER, x]
    marks[PARTNER, x] = -1
    if j < 0 or marks2[WAITS, j] == 0 or marks2[USED, j] == 0 or marks2[MATE, j] >= 0:
        return _NOBODY
    if marks2[FREE, j] == 1 and nums2[DUAL, j] >= nums2[SCALARS, TOP]:
        return _NOBODY
    return j if marks[FREE, x] + marks2[FREE, j] > 0 else _NOBODY


@fused
def dual_below(costs, shown, x, count, is_exact):
    """Return the least reduced cost in a line, rounded down."""
    least = np.inf
    for k in range(count):
        least = lesser(least, costs[x, k] - shown[SHOWN, k])
    if is_exact or least == np.inf:
        return least
    error = 0.0
    for k in range(count):
        there = costs[x, k] - shown[SHOWN, k]
        error = lesser(error, lost(costs[x, k], shown[SHOWN, k], there) if there == least else 0.0)
    return down(least, error)


@fused
def _start(costs, nums, marks, root, dual, count):
    """Set the distances of the other side from ``root``; return the least."""
    least = np.inf
    for k in range(count):
        there = (costs[root, k] - nums[SHOWN, k]) - dual
        nums[DIST, k] = there
        marks[PRED, k] = root
        least = lesser(least, there)
    return greater(least, 0.0)


@fused
def _relax(costs, nums, marks, x, offset, count):
    """Offer the other side the way through ``x``; return the least distance outside the tree."""
    least = np.inf
    for k in range(count):
        there = (costs[x, k] - nums[SHOWN, k]) + offset
        known, before = nums[DIST, k], marks[PRED, k]
        nearest = lesser(there, known)
        nums[DIST, k] = nearest
        marks[PRED, k] = x if there < known else before
        least = lesser(least, nearest)
    return least


@fused
def _least_mate(nums, marks, front, count):
    """Return the least mate of the vertices within ``front``."""
    least = _NONE
    for k in range(count):
        least = lesser(least, marks[MATE, k] if nums[DIST, k] <= front else _NONE)
    return least


@fused
def _grow(costs, nums, nums2, marks, marks2, x, size, front, leave, leaver):
    """Scan x, whose mate is the nearest vertex outside the tree.

    Returns the new front, and the distance and the vertex at which one of this side would leave.
    """
    k = marks[MATE, x]
    offset = front - (costs[x, k] - nums2[DUAL, k])
    marks2[TREE, size] = k
    marks2[BACK, size] = x
    nums2[REACH, size] = front
    nums2[SHOWN, k] = -np.inf
    nums2[DIST, k] = np.inf
    if marks[FREE, x] == 1:
        going = greater(nums[SCALARS, TOP] + offset, front)  # by rounding, the sum may be less
        if going < leave:
            leave, leaver = going, x
    least = _relax(costs, nums2, marks2, x, offset, marks2[COUNTS, SLOTS])
    return greater(least, front), leave, leaver


@fused
def _shortest_joint(nums, nums2, marks2, root2, size2):
    """Return the length of the shortest path that leads into the second tree, and where it does.

    ``nums`` has the distances from the first root of the vertices that the second tree has scanned:
    its root and the mates that its vertices had.
    """
    least, at = nums[DIST, root2], root2
    for t in range(size2):
        k = marks2[BACK, t]
        there = nums[DIST, k] + nums2[REACH, t]
        if there < least:
            least, at = there, k
    return least, at


@fused
def _search(own, other, nums, nums2, marks, marks2, r, j, joins, is_exact):
    """Search from r, and from j if that is not -1; return if r is stuck, and how many lines.

    The tree of r has vertices of the other side, so its arrays are those of that side. The tree of
    j has vertices of r's side.
    """
    rows, cols = marks[COUNTS, SLOTS], marks2[COUNTS, SLOTS]
    size = size2 = 0  # of the trees of r and of j
    radius = radius2 = 0.0
    path, x_meet, k_meet = np.inf, r, j
    sink = sink2 = _NOBODY
    leaver, leaver2 = np.int32(r), np.int32(j)
    leave = nums[SCALARS, TOP] - nums[DUAL, r] if marks[FREE, r] == 1 else np.inf
    front = _start(own, nums2, marks2, r, nums[DUAL, r], cols)
    leave2 = front2 = np.inf
    if j >= 0:
        if marks2[FREE, j] == 1:
            leave2 = nums2[SCALARS, TOP] - nums2[DUAL, j]
        front2 = _start(other, nums, marks, j, nums2[DUAL, j], rows)
        path = greater(nums2[DIST, j], 0.0)
    meets = False
    while True:
        grows = sink < 0 and (front < leave or (joins and front == leave)) and front < np.inf
        grows2 = (
            j >= 0 and sink2 < 0 and front2 < np.inf
            and (front2 < leave2 or (joins and front2 == leave2))
        )  # fmt: skip
        if not (grows or grows2):
            break
        if grows and (not grows2 or size <= size2):
            if front + radius2 >= path:
                meets, leave = True, lesser(leave, path - radius2)
                break
            x = _least_mate(nums2, marks2, front, cols)
            k = -1 - x if x < 0 else marks[MATE, x]
            if x < 0 and k != j:
                sink, leave, leaver = np.int32(k), front, _NOBODY
                continue
            if x < 0 or nums[SHOWN, x] == -np.inf:  # by rounding, the trees meet before the radii
                meets, leave, path = True, front, front + radius2
                x_meet, k_meet = marks2[PRED, k], k
                break
            radius = front
            front, leave, leaver = _grow(
                own, nums, nums2, marks, marks2, x, size, front, leave, leaver
            )
            size += 1
            if j >= 0:
                there, k = _shortest_joint(nums2, nums, marks, j, size2)
                if there < path:
                    path, x_meet, k_meet = there, marks2[PRED, k], k
        else:
            if front2 + radius >= path:
                meets, leave = True, radius
                break
            k = _least_mate(nums, marks, front2, rows)
            x = -1 - k if k < 0 else marks2[MATE, k]
            if k < 0 and x != r:
                sink2, leave2, leaver2 = np.int32(x), front2, _NOBODY
                continue
            if k < 0 or nums2[SHOWN, k] == -np.inf:
                meets, leave, path = True, radius, radius + front2
                x_meet, k_meet = x, marks[PRED, x]
                break
            radius2 = front2
            front2, leave2, leaver2 = _grow(
                other, nums2, nums, marks2, marks, k, size2, front2, leave2, leaver2
            )
            size2 += 1
            there, x = _shortest_joint(nums, nums2, marks2, r, size)
            if there < path:
                path, x_meet, k_meet = there, x, marks[PRED, x]
    if not meets and path < np.inf and path <= leave + leave2:
        meets, leave = True, lesser(leave, path - radius2)
    _show_tree(nums2, marks2, size)
    _show_tree(nums, marks, size2)
    if leave == np.inf:
        return False, size + 1, _NOBODY, _NOBODY
    if meets:
        leave = greater(leave, radius)
        leave2 = greater(path - leave, radius2)
    lines, has_end2 = size + size2 + 2, leave2 < np.inf  # else j has no end of its own, or is none
    _lower(nums2, marks2, size, leave)
    if has_end2:
        _lower(nums, marks, size2, leave2)
    if meets:
        leaver = leaver2 = _NOBODY
        _join_trees(marks, marks2, r, j, x_meet, k_meet)
    else:
        leaver = flip(marks, marks2, r, sink, leaver)
        leaver2 = flip(marks2, marks, j, sink2, leaver2) if has_end2 else _NOBODY
    first = np.int32(x_meet) if meets else _NOBODY
    _raise(own, nums, nums2, marks, marks2, r, size, leave, first, is_exact)
    if has_end2:
        _raise(other, nums2, nums, marks2, marks, j, size2, leave2, _NOBODY, is_exact)
    return True, lines, leaver, leaver2


@fused
def _show_tree(nums, marks, size):
    """Show the vertices of a tree again."""
    for t in range(size):
        k = marks[TREE, t]
        nums[SHOWN, k] = nums[DUAL, k]


@fused
def _lower(nums, marks, size, radius):
    """Lower the duals of a tree's vertices by what they are nearer than ``radius``."""
    for t in range(size):
        k = marks[TREE, t]
        set_dual(nums, k, nums[DUAL, k] + lesser(nums[REACH, t] - radius, 0.0))


@fused
def _raise(costs, nums, nums2, marks, marks2, root, size, radius, first, is_exact):
    """Raise the duals of the vertices that a tree has scanned: by what they are nearer than
    ``radius``; of floats, as high as no pair undercuts.

    ``first`` is where this tree meets the other, or -1. The slack of its new pair is for both
    trees, so it must not take more than its share.
    """
    for t in range(-1, size):
        x = root if t < 0 else marks2[BACK, t]
        dual = nums[DUAL, x] + (radius if t < 0 else radius - nums2[REACH, t])
        if not is_exact:
            below = dual_below(costs, nums2, x, marks2[COUNTS, SLOTS], False)
            dual = lesser(dual, below) if x == first else below
            if marks[FREE, x] == 1:
                dual = lesser(dual, nums[SCALARS, TOP])
        set_dual(nums, x, dual)


@fused
def _augment(marks, marks2, root, k):
    """Match ``k``, of the other side, to the vertex before it, and so on up to the root."""
    while True:
        x = marks2[PRED, k]
        marks2[MATE, k] = x
        last = marks[MATE, x]
        marks[MATE, x] = k
        k = last
        if x == root:
            break


@fused
def flip(marks, marks2, root, sink, leaver):
    """Change the pairs along the path from the root to its end; return who is unmatched now."""
    marks[WAITS, root] = 0
    if sink >= 0:
        marks2[WAITS, sink] = 0
        _augment(marks, marks2, root, sink)
        return _NOBODY
    k = marks[MATE, leaver]
    marks[MATE, leaver] = -1 - leaver
    if leaver != root:
        _augment(marks, marks2, root, k)
    return leaver


@fused
def _join_trees(marks, marks2, r, j, x, k):
    """Change the pairs along the path from r to x, k and j."""
    before, after = marks[MATE, x], marks2[MATE, k]
    marks[MATE, x], marks2[MATE, k] = k, x
    if x != r:
        _augment(marks, marks2, r, before)
    if k != j:
        _augment(marks2, marks, j, after)
    marks[WAITS, r] = marks2[WAITS, j] = 0


@vector_kernel
def release(costs, nums, nums2, marks, marks2, size, size2):
    """Make bound vertices of this side free, marks2[BACK], and bind the others, marks2[TREE].

    The others are all free vertices that the first ones have pairs with. So pairs of the first ones
    with bound vertices are all that is left, and they count from now on. All duals move by one
    number, so that none of these pairs is undercut and no dual is above the top.
    """
    count = marks2[COUNTS, SLOTS]
    move = -np.inf
    for t in range(size):
        x = marks2[BACK, t]
        move = greater(move, nums[DUAL, x] - nums[SCALARS, TOP])
        for k in range(count):
            is_bound = marks2[FREE, k] == 0 and marks2[USED, k] == 1
            over = nums[DUAL, x] + nums2[DUAL, k] - costs[x, k]
            move = greater(move, over if is_bound else -np.inf)
    for t in range(size2):
        k = marks2[TREE, t]
        marks2[FREE, k] = 0
        set_dual(nums2, k, nums2[DUAL, k] + move)
    for t in range(size):
        x = marks2[BACK, t]
        marks[FREE, x] = 1
        dual = dual_below(costs, nums2, x, count, False)
        set_dual(nums, x, lesser(dual, nums[SCALARS, TOP]))
    marks[COUNTS, BOUND] -= size
    marks2[COUNTS, BOUND] += size2


@vector_kernel
def _join(costs, nums, nums2, marks, marks2, x):
    """Match an unmatched vertex to another whose pair costs the limit; return the entries read."""
    top = nums2[SCALARS, TOP]
    most = nums[SCALARS, TOP] + top
    for k in range(marks2[COUNTS, SLOTS]):
        is_settled = marks2[WAITS, k] == 0 or nums2[DUAL, k] >= top
        is_settled &= marks2[MATE, k] < 0 and marks2[USED, k] == 1
        if is_settled and costs[x, k] <= most:  # one that is below the top is served yet
            marks[MATE, x], marks2[MATE, k] = k, x
            marks2[WAITS, k] = 0
            break
    return marks2[COUNTS, SLOTS]
