"""How a part of all assignments is divided around its best one, with a bound for each child.

Let the rows that are not fixed be r_1, r_2, ... in some order. Child s fixes r_1 to r_(s-1), and
excludes what r_s has. So the children and the best assignment make up the part (Murty).

Bounds. Row r_s must take another option, which costs at least its least slack among those that it
may take. The column that it left must be taken by a later row, or stay unmatched: at least the
least slack of these. They are different pairs, so the child costs at least both more than its
parent. The rows come in the order of falling bounds, because the more rows are fixed, the higher
the bounds of the rest (Miller, Stone, Cox).

Encodings: those of `state`.

Reference: Murty, *An algorithm for ranking all the assignments in order of increasing cost*,
Operations Research 16(3), 1968.
"""

from __future__ import annotations

from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.ranking.state import FIXED, FREE, LAST, NONE
from gpumatch.cpu.searches.heap import drop_top, push

__all__ = ["bound_children", "enter", "mark_exclusions"]


@kernel
def mark_exclusions(slots, tree, node, mark, room):
    """Mark what a node and those above it exclude, or take the marks away again."""
    taken, order, node_of = slots.taken, slots.order, slots.node_of
    parent, place = tree.parent, tree.place
    while parent[node] >= 0:
        above = parent[node]
        row = order[above, place[node]]
        entry = taken[above, row]
        if entry == NONE:
            room.stays[row] = mark
        else:
            room.out[entry] = mark
        node = node_of[above]


@kernel
def enter(problem, slots, slot, room):
    """Read the mates of a slot; those of fixed rows are out of reach."""
    indices, limit = problem.indices, problem.limit
    taken, order, depth = slots.taken, slots.order, slots.depth
    mate, is_fixed = room.mate, room.is_fixed
    for col in range(len(mate)):
        mate[col] = FREE
    for at in range(len(limit)):
        row = order[slot, at]
        is_fixed[row] = 1 if at < depth[slot] else 0
        entry = taken[slot, row]
        if entry != NONE:
            mate[indices[entry]] = FIXED if at < depth[slot] else row


@kernel
def bound_children(problem, slots, slot, room):
    """Put the free rows of a slot in order, and find the gains of its children."""
    indices, limit, far, zero = problem.indices, problem.limit, problem.far, problem.zero
    taken, order, depth = slots.taken, slots.order, slots.depth
    mate, stays, place_of, gain = room.mate, room.stays, room.place_of, room.gain
    _sort_rows(problem, slots, slot, room)
    for col in range(len(mate)):
        place_of[col] = LAST if mate[col] == FREE else -1
    first, count = depth[slot], len(limit)
    has_hub = False
    for at in range(first, count):
        row = order[slot, at]
        gain[0, at] = gain[1, at] = far
        has_hub |= limit[row] < far
        if taken[slot, row] != NONE:
            place_of[indices[taken[slot, row]]] = at
    for col in range(len(mate)):
        has_hub |= mate[col] == FREE
    for at in range(first, count):
        row = order[slot, at]
        entry = taken[slot, row]
        if entry == NONE:
            gain[1, at] = zero
        else:
            if has_hub:
                gain[1, at] = min(gain[1, at], -slots.v[slot, indices[entry]])
            if limit[row] < far and stays[row] == 0:
                gain[0, at] = max(limit[row] - slots.u[slot, row], zero)
        _find_gains(problem, slots, slot, at, room)


@kernel
def _find_gains(problem, slots, slot, at, room):
    """Look at the pairs of the row at a place, for its own gain and those of columns before it."""
    indptr, indices, weights = problem.indptr, problem.indices, problem.weights
    v, out, place_of, gain = slots.v, room.out, room.place_of, room.gain
    row = slots.order[slot, at]
    dual, own = slots.u[slot, row], gain[0, at]
    for entry in range(indptr[row], indptr[row + 1]):
        col = indices[entry]
        where = place_of[col]
        if where < 0 or where == at or out[entry] == 1:
            continue
        slack = max(weights[entry] - dual - v[slot, col], problem.zero)
        if where > at:
            own = min(own, slack)
        else:
            gain[1, where] = min(gain[1, where], slack)
    gain[0, at] = own


@kernel
def _sort_rows(problem, slots, slot, room):
    """Sort the free rows by the least slack of their other options, greatest first."""
    indptr, indices, weights = problem.indptr, problem.indices, problem.weights
    limit, far = problem.limit, problem.far
    taken, u, v, order, depth = slots.taken, slots.u, slots.v, slots.order, slots.depth
    mate, out, stays, keys, heap = room.mate, room.out, room.stays, room.keys, room.heap
    waiting = 0
    for at in range(depth[slot], len(limit)):
        row = order[slot, at]
        dual, own = u[slot, row], taken[slot, row]
        least = far
        if limit[row] < far and stays[row] == 0 and own != NONE:
            least = limit[row] - dual
        for entry in range(indptr[row], indptr[row + 1]):
            col = indices[entry]
            slack = weights[entry] - dual - v[slot, col]
            if slack < least and entry != own and out[entry] == 0 and mate[col] != FIXED:
                least = slack
        push(keys, heap, waiting, -least, row)
        waiting += 1
    for at in range(depth[slot], len(limit)):
        order[slot, at] = heap[0]
        waiting -= 1
        drop_top(keys, heap, waiting)
