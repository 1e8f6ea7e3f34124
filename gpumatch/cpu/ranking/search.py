"""A shortest path from one row to the place that it left: the best assignment of a part.

A part of all assignments has rows that keep what they have (fixed), and options that are excluded.
One row loses its option. The best assignment of the part follows from the one before by one path,
which begins at the row and ends at the place that it left (Miller, Stone, Cox).

A row's options are its pairs, and to stay unmatched at the price of its limit. All columns that are
unmatched, and all ways to stay unmatched, are one place, the hub, whose dual is 0. A path may go
through it: a row takes an unmatched column, or none, and another column, or unmatched row, gives up
what it has. So a path is a cycle of a network, and rectangles and limits need no padding.

Encodings
---------
``taken[slot, i]``  the entry of the row's pair; NONE: the row is unmatched
``u[slot, i]``, ``v[slot, j]``  duals: u_i + v_j <= w_ij, equal on pairs; u_i <= limit_i, equal for
                    unmatched rows; v_j <= 0, and 0 for unmatched columns. They hold for the options
                    of the part: rows that are not fixed, columns that fixed rows don't have
``limit[i]``        what the row costs if it is unmatched; ``far`` if it must be matched
``zero``            0 in the type of the costs
``dist[j]``         distance of a column; that of the hub is ``dist[m]``
``lead[j]``         the row that leads to it; HUB if the hub does, by giving the column up
``by[j]``           its entry that leads there; NONE for a row that becomes unmatched
``mate[j]``         the row of a column; FREE for an unmatched one; FIXED for a fixed row's
``out[e]``          1 if the entry is excluded; ``stays[i]`` 1 if the row may not become unmatched
``done[j]``         1 if the distance is final

References
----------
Miller, Stone, Cox, *Optimizing Murty's ranked assignment method*, IEEE Transactions on Aerospace
and Electronic Systems 33(3), 1997.
"""

from __future__ import annotations

from gpumatch.cpu.heap import drop_top, push
from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["FIXED", "FREE", "HUB", "NONE", "find_path", "total_of"]

NONE = -1
FREE, FIXED = -1, -2
HUB = -2


@kernel
def find_path(problem, slots, slot, root, room):
    """Give `root`, which has lost its option, the best one; return the entries read.

    It is negative if there is no path. Then ``done`` marks the columns that are reached.
    """
    indptr, indices, weights, limit, far, zero = problem
    taken, u, v = slots[0], slots[1], slots[2]
    dist, lead, by, mate, done, out, stays, is_fixed, keys, heap = room
    ncols = len(mate)
    for col in range(ncols + 1):
        dist[col] = far
        done[col] = 0
    entry = taken[slot, root]
    target = ncols if entry == NONE else indices[entry]
    if target < ncols:
        mate[target] = FREE
    waiting = 0
    read = 0
    front = zero
    row = root
    while True:
        waiting, steps = _look(problem, u, v, slot, row, front, target, room, waiting)
        read += steps
        col = -1
        while waiting > 0 and col < 0:
            front, col = keys[0], heap[0]
            waiting -= 1
            drop_top(keys, heap, waiting)
            if done[col] == 1:
                col = -1
        if col < 0:
            return -1 - read
        done[col] = 1
        if col == target:
            break
        if col < ncols:
            row = mate[col]
            continue
        waiting, steps = _leave_hub(problem, slots, slot, root, front, target, room, waiting)
        read += steps
        row = -1
    hub = dist[ncols] if done[ncols] == 1 else front
    _change_duals(u, v, slot, root, target, front, hub, room)
    _follow(indices, taken, slot, root, target, lead, by, mate)
    return read + ncols


@kernel
def _look(problem, u, v, slot, row, front, target, room, waiting):
    """Offer a row's options from the distance of the row; return the heap's size and the entries.

    Nothing farther than what the target has is of use.
    """
    indptr, indices, weights, limit, far, zero = problem
    dist, lead, by, mate, done, out, stays, is_fixed, keys, heap = room
    if row < 0:
        return waiting, 0
    ncols = len(mate)
    base = front - u[slot, row]
    for entry in range(indptr[row], indptr[row + 1]):
        col = indices[entry]
        there = base + weights[entry] - v[slot, col]
        holder = mate[col]
        if holder == FREE and col != target:
            col = ncols
        if there >= dist[col] or there >= dist[target] or holder == FIXED or out[entry] == 1:
            continue
        if done[col] == 1:
            continue
        there = max(there, front)
        dist[col] = there
        lead[col] = row
        by[col] = entry
        push(keys, heap, waiting, there, col)
        waiting += 1
    if limit[row] < far and stays[row] == 0 and done[ncols] == 0:
        there = max(base + limit[row], front)
        if there < dist[ncols] and there < dist[target]:
            dist[ncols] = there
            lead[ncols] = row
            by[ncols] = NONE
            push(keys, heap, waiting, there, ncols)
            waiting += 1
    return waiting, indptr[row + 1] - indptr[row]


@kernel
def _leave_hub(problem, slots, slot, root, front, target, room, waiting):
    """Go on from the hub: columns give up their rows, unmatched rows may take a column."""
    taken, u, v = slots[0], slots[1], slots[2]
    dist, lead, by, mate, done, out, stays, is_fixed, keys, heap = room
    read = len(mate)
    for col in range(len(mate)):
        if done[col] == 1 or mate[col] == FIXED or (mate[col] == FREE and col != target):
            continue
        there = max(front - v[slot, col], front)
        if there < dist[col] and there < dist[target]:
            dist[col] = there
            lead[col] = HUB
            push(keys, heap, waiting, there, col)
            waiting += 1
    for row in range(len(is_fixed)):
        if taken[slot, row] == NONE and is_fixed[row] == 0 and row != root:
            waiting, steps = _look(problem, u, v, slot, row, front, target, room, waiting)
            read += steps
    return waiting, read


@kernel
def _change_duals(u, v, slot, root, target, end, hub, room):
    """Make the path tight. The hub keeps its dual of 0, so all others move against it."""
    dist, lead, by, mate, done, out, stays, is_fixed, keys, heap = room
    for col in range(len(mate)):
        row = mate[col]
        if row == FIXED or (row == FREE and col != target):
            continue
        shift = (dist[col] if done[col] == 1 else end) - hub
        v[slot, col] += shift
        if row >= 0:
            u[slot, row] -= shift
    u[slot, root] += hub


@kernel
def _follow(indices, taken, slot, root, target, lead, by, mate):
    """Change the pairs along the path, from its end on."""
    col = target
    while True:
        row = lead[col]
        if row == HUB:
            mate[col] = FREE
            col = len(mate)
            continue
        entry = taken[slot, row]
        taken[slot, row] = by[col]
        if by[col] != NONE:
            mate[indices[by[col]]] = row
        if row == root:
            return
        col = len(mate) if entry == NONE else indices[entry]


@kernel
def total_of(problem, taken, slot):
    """Return what an assignment costs: its pairs, and the limits of unmatched rows, by row."""
    indptr, indices, weights, limit, far, zero = problem
    total = zero
    for row in range(len(limit)):
        entry = taken[slot, row]
        total += limit[row] if entry == NONE else weights[entry]
    return total
