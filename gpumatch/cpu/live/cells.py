"""A live assignment whose allowed pairs are cells in lists: its changes and its paths.

`state` names what is kept of each side, and what holds of it. Costs are cells of one pool. A cell
is in the list of its row and in that of its column; free cells are in a list of their own. So a
pair comes and goes in the time that its two lists take, and memory grows with the pairs that are
allowed.

    head[x]         the first cell of own x, or -1
    ends[s, e]      the vertex of cell e on side s: 0 for rows, 1 for columns
    after[s, e]     the next cell of that vertex, or -1
    cost[e]         the cost of the pair, to be minimised; inf if the cell is free
    free[0]         the first free cell; the next ones by after[0]
    free[1]         how many there are
    numbers[LINE, x]  the cost of the pair of x
    keys, heap      room for the heap of a search: one place for each cell
    seen            room for the vertices that a search has reached
    numbers[DIST, x]  inf between searches

The search is Dijkstra's from one end, as in `search`, but by a heap.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.live.changes import AT_LIMIT, BY_COVER, FIT, checked, note_largest, part
from gpumatch.cpu.live.search import flip, set_dual, wait
from gpumatch.cpu.live.state import (
    BACK,
    BOUND,
    COUNTS,
    DIST,
    DUAL,
    FREE,
    LINE,
    LINES,
    LIVE,
    MATE,
    PARTNER,
    PRED,
    QUEUE,
    REACH,
    SCALARS,
    SLOTS,
    TOP,
    TREE,
    USED,
    WAITING,
    WAITS,
)
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.error_free import difference_below
from gpumatch.cpu.searches.heap import drop_top, push

__all__ = [
    "add_cell",
    "bind_all",
    "clear_line",
    "note_pairs",
    "remove_line",
    "serve",
    "set_cost",
    "set_line",
]


# -- cells -----------------------------------------------------------------------------------------


@kernel
def _find(head, ends, after, s, x, k):
    """Return the cell of the pair of own x and other k, or -1."""
    e = head[x]
    while e >= 0 and ends[1 - s, e] != k:
        e = after[s, e]
    return e


@kernel
def _unlink(head, ends, after, s, e):
    """Take a cell out of the list of its vertex on side s."""
    x = ends[s, e]
    before = head[x]
    if before == e:
        head[x] = after[s, e]
        return
    while after[s, before] != e:
        before = after[s, before]
    after[s, before] = after[s, e]


@kernel
def add_cell(head, head2, ends, after, cost, free, s, x, k, value):
    """Allow a pair that has no cell."""
    e = free[0]
    free[0] = after[0, e]
    free[1] -= 1
    ends[s, e], ends[1 - s, e], cost[e] = x, k, value
    after[s, e], after[1 - s, e] = head[x], head2[k]
    head[x] = head2[k] = e


@kernel
def _free_cell(after, cost, free, e):
    cost[e], after[0, e] = np.inf, free[0]
    free[0] = e
    free[1] += 1


@kernel
def clear_line(head, head2, ends, after, cost, free, s, x):
    """Forbid all pairs of x."""
    e = head[x]
    while e >= 0:
        following = after[s, e]
        _unlink(head2, ends, after, 1 - s, e)
        _free_cell(after, cost, free, e)
        e = following
    head[x] = -1


@kernel
def note_pairs(head, nums, nums2, marks, ends, after, cost, s):
    """Write what each pair costs, for both of its vertices."""
    for x in range(marks[COUNTS, SLOTS]):
        k = marks[MATE, x]
        if k >= 0:
            nums[LINE, x] = nums2[LINE, k] = cost[_find(head, ends, after, s, x, k)]


# -- changes ---------------------------------------------------------------------------------------


@kernel
def set_line(
    head, head2, nums, nums2, marks, marks2, ends, after, cost, free, s, x, values, sign, limit,
    most, mode,
):  # fmt: skip
    """Give a vertex new costs, as `changes.set_line` does. There must be free cells for them."""
    for place in range(values.size):
        fit, _ = checked(values[place], sign, limit, most)
        if fit != FIT:
            return fit
    if x == marks[COUNTS, SLOTS]:
        marks[COUNTS, SLOTS] += 1
        marks[COUNTS, LIVE] += 1
        marks[USED, x], marks[FREE, x], marks[WAITS, x] = 1, 1, 0
        marks[MATE, x] = -1 - x
    clear_line(head, head2, ends, after, cost, free, s, x)
    place = 0
    for k in range(marks2[COUNTS, SLOTS]):
        if marks2[USED, k] == 1:
            _, value = checked(values[place], sign, limit, most)
            note_largest(nums2, values[place])
            place += 1
            if value < np.inf:
                add_cell(head, head2, ends, after, cost, free, s, x, k, value)
    _refresh(head, nums, nums2, marks, marks2, ends, after, cost, s, x, mode)
    return FIT


@kernel
def set_cost(
    head, head2, nums, nums2, marks, marks2, ends, after, cost, free, s, x, k, value, sign, limit,
    most, mode,
):  # fmt: skip
    """Give a pair another cost, as `changes.set_cost` does. There must be a free cell."""
    fit, least = checked(value, sign, limit, most)
    if fit != FIT:
        return fit
    note_largest(nums2, value)
    value = least
    e = _find(head, ends, after, s, x, k)
    if value == np.inf and e >= 0:
        _unlink(head, ends, after, s, e)
        _unlink(head2, ends, after, 1 - s, e)
        _free_cell(after, cost, free, e)
    elif value < np.inf and e < 0:
        add_cell(head, head2, ends, after, cost, free, s, x, k, value)
    elif e >= 0:
        cost[e] = value
    changes = marks[MATE, x] == k
    if not changes and value < np.inf and marks[FREE, x] + marks2[FREE, k] > 0:
        changes = mode == BY_COVER and marks[FREE, x] + marks2[FREE, k] == 2
        changes |= difference_below(value, nums2[DUAL, k]) < nums[DUAL, x]
        if not changes and mode == AT_LIMIT and marks[MATE, x] < 0 and marks2[MATE, k] < 0:
            wait(marks, x)
    if changes:
        _refresh(head, nums, nums2, marks, marks2, ends, after, cost, s, x, mode)
    return FIT


@kernel
def remove_line(head, head2, nums, marks, marks2, ends, after, cost, free, s, x):
    """Remove a vertex."""
    if marks[MATE, x] >= 0:
        part(marks, marks2, x)
    marks[COUNTS, LIVE] -= 1
    marks[COUNTS, BOUND] -= 1 - marks[FREE, x]
    marks[USED, x], marks[FREE, x], marks[WAITS, x], marks[PARTNER, x] = 0, 1, 0, -1
    set_dual(nums, x, 0.0)
    clear_line(head, head2, ends, after, cost, free, s, x)


@kernel
def _dual_below(head, nums2, marks2, ends, after, cost, s, x, only_free):
    """Return the least reduced cost of x, rounded down; of pairs with free vertices alone."""
    least = np.inf
    e = head[x]
    while e >= 0:
        k = ends[1 - s, e]
        if not only_free or marks2[FREE, k] == 1:
            least = min(least, difference_below(cost[e], nums2[DUAL, k]))
        e = after[s, e]
    return least


@kernel
def _refresh(head, nums, nums2, marks, marks2, ends, after, cost, s, x, mode):
    """Do as `changes._refresh`."""
    hides = mode == BY_COVER and marks2[COUNTS, BOUND] > 0
    dual = _dual_below(head, nums2, marks2, ends, after, cost, s, x, hides)
    is_free = np.int32(1 if mode != BY_COVER or dual == np.inf else 0)
    if is_free == 1:
        if hides:
            dual = _dual_below(head, nums2, marks2, ends, after, cost, s, x, False)
        dual = min(dual, nums[SCALARS, TOP])
    set_dual(nums, x, dual)
    k = marks[MATE, x]
    if k >= 0:
        e = _find(head, ends, after, s, x, k)
        pair = cost[e] if e >= 0 else np.inf
        nums[LINE, x] = nums2[LINE, k] = pair
        if is_free == marks[FREE, x] and difference_below(pair, nums2[DUAL, k]) <= dual:
            return
    marks[COUNTS, BOUND] += marks[FREE, x] - is_free
    marks[FREE, x] = is_free
    if k >= 0:
        part(marks, marks2, x)
    wait(marks, x)


# -- paths -----------------------------------------------------------------------------------------


@kernel
def serve(
    head, head2, nums, nums2, marks, marks2, ends, after, cost, mode, is_exact, keys, heap, seen,
    budget,
):  # fmt: skip
    """Serve all that wait, until so many cells are read; return how many may wait still."""
    joins = mode == AT_LIMIT
    read = 0
    while read < budget and marks[COUNTS, WAITING] + marks2[COUNTS, WAITING] > 0:
        read += 1
        if marks[COUNTS, WAITING] > 0:
            read += _serve_one(
                head, nums, nums2, marks, marks2, ends, after, cost, 0, joins, is_exact, keys,
                heap, seen,
            )  # fmt: skip
        else:
            read += _serve_one(
                head2, nums2, nums, marks2, marks, ends, after, cost, 1, joins, is_exact, keys,
                heap, seen,
            )  # fmt: skip
    return marks[COUNTS, WAITING] + marks2[COUNTS, WAITING]


@kernel
def _serve_one(
    head, nums, nums2, marks, marks2, ends, after, cost, s, joins, is_exact, keys, heap, seen
):
    """Serve the last vertex of a queue; return the cells read."""
    marks[COUNTS, WAITING] -= 1
    r = marks[QUEUE, marks[COUNTS, WAITING]]
    if marks[WAITS, r] == 0:
        return 0
    marks[WAITS, r], marks[PARTNER, r] = 0, -1
    if marks[USED, r] == 0 or marks[MATE, r] >= 0:
        return 0
    if marks[FREE, r] == 1 and nums[DUAL, r] >= nums[SCALARS, TOP]:
        if joins:
            _join(head, nums, nums2, marks, marks2, ends, after, cost, s, r)
        return 0
    has_end, size, read, leaver = _search(
        head, nums, nums2, marks, marks2, ends, after, cost, s, r, joins, is_exact, keys, heap, seen
    )
    nums[SCALARS, LINES] += size + 1
    if not has_end:
        marks2[BACK, size] = r
        _release(head, nums, nums2, marks, marks2, ends, after, cost, s, size + 1, size)
        wait(marks, r)
    elif joins and leaver >= 0:
        _join(head, nums, nums2, marks, marks2, ends, after, cost, s, leaver)
    return read


@kernel
def _search(
    head, nums, nums2, marks, marks2, ends, after, cost, s, r, joins, is_exact, keys, heap, seen
):
    """Find the path of r, and change pairs and duals along it.

    Returns if there is one, the size of the tree, the cells read, and who is unmatched now, or -1.
    """
    hides = marks[FREE, r] == 0 and marks2[COUNTS, BOUND] > 0
    leave, leaver = np.inf, np.int32(r)
    if marks[FREE, r] == 1:
        leave = nums[SCALARS, TOP] - nums[DUAL, r]
    x, offset, front, sink = np.int32(r), -nums[DUAL, r], 0.0, np.int32(-1)
    size = waiting = reached = read = 0
    while True:
        e = head[x]
        while e >= 0:
            k = ends[1 - s, e]
            read += 1
            if not (hides and marks2[FREE, k] == 0):
                there = max((cost[e] - nums2[DUAL, k]) + offset, front)
                if there < nums2[DIST, k]:
                    if nums2[DIST, k] == np.inf:
                        seen[reached] = k
                        reached += 1
                    nums2[DIST, k], marks2[PRED, k] = there, x
                    push(keys, heap, waiting, there, k)
                    waiting += 1
            e = after[s, e]
        while waiting > 0 and keys[0] != nums2[DIST, heap[0]]:
            waiting -= 1
            drop_top(keys, heap, waiting)
        if waiting == 0 or keys[0] > leave or (keys[0] == leave and not joins):
            break
        front, k = keys[0], heap[0]
        if marks2[MATE, k] < 0:
            sink, leave, leaver = k, front, np.int32(-1)
            break
        waiting -= 1
        drop_top(keys, heap, waiting)
        x = marks2[MATE, k]
        marks2[TREE, size], marks2[BACK, size], nums2[REACH, size] = k, x, front
        size += 1
        nums2[DIST, k] = -np.inf
        offset = front - (nums[LINE, x] - nums2[DUAL, k])
        if marks[FREE, x] == 1 and max(nums[SCALARS, TOP] + offset, front) < leave:
            leave, leaver = max(nums[SCALARS, TOP] + offset, front), x
    for q in range(reached):
        nums2[DIST, seen[q]] = np.inf
    if leave == np.inf:
        return False, size, read, np.int32(-1)
    for t in range(size):
        k = marks2[TREE, t]
        set_dual(nums2, k, nums2[DUAL, k] + min(nums2[REACH, t] - leave, 0.0))
    leaver = flip(marks, marks2, r, sink, leaver)
    for t in range(-1, size):
        x = np.int32(r) if t < 0 else marks2[BACK, t]
        dual = nums[DUAL, x] + (leave if t < 0 else leave - nums2[REACH, t])
        if not is_exact:
            dual = _dual_below(head, nums2, marks2, ends, after, cost, s, x, hides)
            if marks[FREE, x] == 1:
                dual = min(dual, nums[SCALARS, TOP])
        set_dual(nums, x, dual)
        k = marks[MATE, x]
        if k >= 0:
            nums[LINE, x] = nums2[LINE, k] = cost[_find(head, ends, after, s, x, k)]
    return True, size, read, leaver


@kernel
def _join(head, nums, nums2, marks, marks2, ends, after, cost, s, x):
    """Match an unmatched vertex to another whose pair costs the limit."""
    top = nums2[SCALARS, TOP]
    most = nums[SCALARS, TOP] + top
    e = head[x]
    while e >= 0:
        k = ends[1 - s, e]
        is_settled = marks2[WAITS, k] == 0 or nums2[DUAL, k] >= top
        if is_settled and marks2[MATE, k] < 0 and cost[e] <= most:
            marks[MATE, x], marks2[MATE, k], marks2[WAITS, k] = k, x, 0
            nums[LINE, x] = nums2[LINE, k] = cost[e]
            return
        e = after[s, e]


@kernel
def _release(head, nums, nums2, marks, marks2, ends, after, cost, s, size, size2):
    """Do as `search.release`."""
    move = -np.inf
    for t in range(size):
        x = marks2[BACK, t]
        move = max(move, nums[DUAL, x] - nums[SCALARS, TOP])
        e = head[x]
        while e >= 0:
            k = ends[1 - s, e]
            if marks2[FREE, k] == 0:
                move = max(move, nums[DUAL, x] + nums2[DUAL, k] - cost[e])
            e = after[s, e]
    for t in range(size2):
        k = marks2[TREE, t]
        marks2[FREE, k] = 0
        set_dual(nums2, k, nums2[DUAL, k] + move)
    for t in range(size):
        x = marks2[BACK, t]
        marks[FREE, x] = 1
        dual = _dual_below(head, nums2, marks2, ends, after, cost, s, x, False)
        set_dual(nums, x, min(dual, nums[SCALARS, TOP]))
    marks[COUNTS, BOUND] -= size
    marks2[COUNTS, BOUND] += size2


@kernel
def bind_all(head, nums, nums2, marks, marks2, ends, after, cost, s):
    """Bind all vertices of the other side if all of them are matched, so that these are free."""
    size = 0
    for x in range(marks[COUNTS, SLOTS]):
        if marks[FREE, x] == 0:
            marks2[BACK, size], marks2[TREE, size] = x, marks[MATE, x]
            size += 1
    for k in range(marks2[COUNTS, SLOTS]):
        if marks2[USED, k] == 1 and marks2[MATE, k] < 0:
            return
    if size > 0:
        _release(head, nums, nums2, marks, marks2, ends, after, cost, s, size, size)
