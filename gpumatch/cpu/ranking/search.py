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
``label[j]``        the best known distance of a column; that of the hub is ``label[m]``. -far if it
                    is final, or the column is a fixed row's: nothing is offered to it any more
``dist[j]``         the final distance, where ``done[j]`` is 1
``lead[j]``         the row that leads to it; HUB if the hub does, by giving the column up
``by[j]``           its entry that leads there; NONE for a row that becomes unmatched
``mate[j]``         the row of a column; FREE for an unmatched one; FIXED for a fixed row's
``out[e]``          1 if the entry is excluded; ``stays[i]`` 1 if the row may not become unmatched
``price[j]``        the column's dual, for the search

References
----------
Miller, Stone, Cox, *Optimizing Murty's ranked assignment method*, IEEE Transactions on Aerospace
and Electronic Systems 33(3), 1997.
"""

from __future__ import annotations

from gpumatch.cpu.heap import drop_top, push
from gpumatch.cpu.numba_tools.compiled import inlined, kernel

__all__ = ["FIXED", "FREE", "HUB", "NONE", "change_duals", "find_path", "follow_path", "total_of"]

NONE = -1
FREE, FIXED = -1, -2
HUB = -2


@kernel
def find_path(problem, slots, slot, root, most, last, room):
    """Find the path of `root`, which has lost its option; return its end, and the entries read.

    Only a path shorter than `most` is of use, whose last step costs `last` at least. The end is
    the place that the root left, or NONE: there is no such path. Then all that is nearer than
    ``most - last`` is done, and if that is all there is, the root has no path at all.
    """
    indptr, indices, weights, limit, far, zero = problem
    taken, u, v = slots[0], slots[1], slots[2]
    label, dist, lead, by, mate, done, out, stays, is_fixed, keys, heap, price = room
    ncols = len(mate)
    for col in range(ncols):
        price[col] = v[slot, col]
        label[col] = -far if mate[col] == FIXED else far
        done[col] = 0
    label[ncols], done[ncols] = far, 0
    entry = taken[slot, root]
    target = ncols if entry == NONE else indices[entry]
    label[target] = most
    if target < ncols:
        mate[target] = FREE
    waiting = 0
    front = zero
    waiting = _look(problem, slots, slot, root, front, target, last, room, waiting)
    read = indptr[root + 1] - indptr[root]
    while waiting > 0:
        front, col = keys[0], heap[0]
        waiting -= 1
        drop_top(keys, heap, waiting)
        if done[col] == 1:
            continue
        done[col] = 1
        dist[col] = front
        if col == target:
            return target, read
        label[col] = -far
        if col < ncols:
            row = mate[col]
            read += indptr[row + 1] - indptr[row]
            waiting = _look(problem, slots, slot, row, front, target, last, room, waiting)
        else:
            read += len(weights)
            waiting = _leave_hub(problem, slots, slot, root, front, target, last, room, waiting)
    return NONE, read


@kernel
def _look(problem, slots, slot, row, front, target, last, room, waiting):
    """Offer a row's options from the distance of the row; return the size of the heap."""
    indptr, indices, weights, limit, far, zero = problem
    u = slots[1]
    label, dist, lead, by, mate, done, out, stays, is_fixed, keys, heap, price = room
    hub = len(mate)
    base = front - u[slot, row]
    for entry in range(indptr[row], indptr[row + 1]):
        col = indices[entry]
        there = base + weights[entry] - price[col]
        if there < label[col] and out[entry] == 0:
            if mate[col] == FREE and col != target:
                label[col] = there
                col = hub
            waiting = _offer(max(there, front), col, row, entry, target, last, room, waiting)
    if limit[row] < far and stays[row] == 0:
        there = max(base + limit[row], front)
        waiting = _offer(there, hub, row, NONE, target, last, room, waiting)
    return waiting


@inlined
def _offer(there, col, row, entry, target, last, room, waiting):
    """Offer a place a distance. Nothing is of use from which the target is no nearer."""
    label, dist, lead, by, mate, done, out, stays, is_fixed, keys, heap, price = room
    if there < label[col] and (col == target or there + last < label[target]):
        label[col], lead[col], by[col] = there, row, entry
        push(keys, heap, waiting, there, col)
        waiting += 1
    return waiting


@kernel
def _leave_hub(problem, slots, slot, root, front, target, last, room, waiting):
    """Go on from the hub: columns give up their rows, unmatched rows may take a column."""
    taken = slots[0]
    label, dist, lead, by, mate, done, out, stays, is_fixed, keys, heap, price = room
    for col in range(len(mate)):
        if mate[col] >= 0 or col == target:
            there = max(front - price[col], front)
            waiting = _offer(there, col, HUB, NONE, target, last, room, waiting)
    for row in range(len(is_fixed)):
        if taken[slot, row] == NONE and is_fixed[row] == 0 and row != root:
            waiting = _look(problem, slots, slot, row, front, target, last, room, waiting)
    return waiting


@kernel
def change_duals(slots, slot, root, target, end, last, room):
    """Move the duals by what a search has found, with a path of length `end` or none below it.

    All that is nearer than ``end - last`` is done. The target alone may rise by `last` more: its
    slacks are at least as large. The hub keeps its dual of 0, so all others move against it.
    """
    u, v = slots[1], slots[2]
    dist, mate, done = room[1], room[4], room[5]
    ncols = len(mate)
    near = end - last
    hub = min(dist[ncols], near) if done[ncols] == 1 else near
    for col in range(ncols):
        row = mate[col]
        if row >= 0:
            shift = (min(dist[col], near) if done[col] == 1 else near) - hub
            v[slot, col] += shift
            u[slot, row] -= shift
    if target < ncols:
        v[slot, target] += end - hub
    u[slot, root] += hub


@kernel
def follow_path(indices, slots, slot, root, target, room):
    """Change the pairs along the path, from its end on."""
    taken = slots[0]
    lead, by, mate = room[2], room[3], room[4]
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
