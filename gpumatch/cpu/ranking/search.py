"""A shortest path from one row to the place that it left: the best assignment of a part.

A part of all assignments has rows that keep what they have (fixed), and options that are excluded.
One row loses its option. The best assignment of the part follows from the one before by one path,
which begins at the row and ends at the place that it left (Miller, Stone, Cox).

A row's options are its pairs, and to stay unmatched at the price of its limit. All columns that are
unmatched, and all ways to stay unmatched, are one place, the hub, whose dual is 0. A path may go
through it: a row takes an unmatched column, or none, and another column, or unmatched row, gives up
what it has. So a path is a cycle of a network, and rectangles and limits need no padding.

Encodings: those of `state`.

References
----------
Miller, Stone, Cox, *Optimizing Murty's ranked assignment method*, IEEE Transactions on Aerospace
and Electronic Systems 33(3), 1997.
"""

from __future__ import annotations

from gpumatch.cpu.numba_tools.compiled import inlined, kernel
from gpumatch.cpu.ranking.state import FIXED, FREE, HUB, NONE
from gpumatch.cpu.searches.heap import drop_top, push

__all__ = ["change_duals", "find_path", "follow_path", "total_of"]


@kernel
def find_path(problem, slots, slot, root, most, last, room):
    """Find the path of `root`, which has lost its option; return its end, and the entries read.

    Only a path shorter than `most` is of use, whose last step costs `last` at least. The end is
    the place that the root left, or NONE: there is no such path. Then all that is nearer than
    ``most - last`` is done, and if that is all there is, the root has no path at all.
    """
    indptr, far = problem.indptr, problem.far
    label, dist, mate, done, keys, heap, price = (
        room.label,
        room.dist,
        room.mate,
        room.done,
        room.keys,
        room.heap,
        room.price,
    )
    ncols = len(mate)
    for col in range(ncols):
        price[col] = slots.v[slot, col]
        label[col] = -far if mate[col] == FIXED else far
        done[col] = 0
    label[ncols], done[ncols] = far, 0
    entry = slots.taken[slot, root]
    target = ncols if entry == NONE else problem.indices[entry]
    label[target] = most
    if target < ncols:
        mate[target] = FREE
    waiting = 0
    front = problem.zero
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
            read += len(problem.weights)
            waiting = _leave_hub(problem, slots, slot, front, target, last, room, waiting)
    return NONE, read


@kernel
def _look(problem, slots, slot, row, front, target, last, room, waiting):
    """Offer a row's options from the distance of the row; return the size of the heap."""
    indices, weights = problem.indices, problem.weights
    label, mate, out, stays, price = room.label, room.mate, room.out, room.stays, room.price
    hub = len(mate)
    base = front - slots.u[slot, row]
    for entry in range(problem.indptr[row], problem.indptr[row + 1]):
        col = indices[entry]
        there = base + weights[entry] - price[col]
        if there < label[col] and out[entry] == 0:
            if mate[col] == FREE and col != target:
                label[col] = there
                col = hub
            waiting = _offer(max(there, front), col, row, entry, target, last, room, waiting)
    if problem.limit[row] < problem.far and stays[row] == 0:
        there = max(base + problem.limit[row], front)
        waiting = _offer(there, hub, row, NONE, target, last, room, waiting)
    return waiting


@inlined
def _offer(there, col, row, entry, target, last, room, waiting):
    """Offer a place a distance. Nothing is of use from which the target is no nearer."""
    label, lead, by, keys, heap = room.label, room.lead, room.by, room.keys, room.heap
    if there < label[col] and (col == target or there + last < label[target]):
        label[col], lead[col], by[col] = there, row, entry
        push(keys, heap, waiting, there, col)
        waiting += 1
    return waiting


@kernel
def _leave_hub(problem, slots, slot, front, target, last, room, waiting):
    """Go on from the hub: columns give up their rows, unmatched rows may take a column."""
    taken = slots.taken
    mate, is_fixed, price = room.mate, room.is_fixed, room.price
    for col in range(len(mate)):
        if mate[col] >= 0 or col == target:
            there = max(front - price[col], front)
            waiting = _offer(there, col, HUB, NONE, target, last, room, waiting)
    for row in range(len(is_fixed)):
        if taken[slot, row] == NONE and is_fixed[row] == 0:
            waiting = _look(problem, slots, slot, row, front, target, last, room, waiting)
    return waiting


@kernel
def change_duals(slots, slot, root, target, end, last, room):
    """Move the duals by what a search has found, with a path of length `end` or none below it.

    All that is nearer than ``end - last`` is done. The target alone may rise by `last` more: its
    slacks are at least as large. The hub keeps its dual of 0, so all others move against it.
    """
    u, v = slots.u, slots.v
    dist, mate, done = room.dist, room.mate, room.done
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
    taken = slots.taken
    lead, by, mate = room.lead, room.by, room.mate
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
    """Return what an assignment costs: its pairs, and the limits of unmatched rows.

    The sum is compensated (Neumaier), so floats are rounded as if once.
    """
    weights, limit, zero = problem.weights, problem.limit, problem.zero
    total = lost = zero
    for row in range(len(limit)):
        entry = taken[slot, row]
        term = limit[row] if entry == NONE else weights[entry]
        more = total + term
        if abs(total) >= abs(term):
            lost += (total - more) + term
        else:
            lost += (term - more) + total
        total = more
    return total + lost
