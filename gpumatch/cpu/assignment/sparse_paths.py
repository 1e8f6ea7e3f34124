"""Shortest augmenting paths in a sparse cost matrix: Jonker and Volgenant's, with a heap.

The entries are in CSR, at most one a pair. Pairs that are not stored are forbidden. All names that
are not listed here are those of `dense_paths`. One row's search is Dijkstra's:

    dist[j]      distance of column j from the root, once reached
    place[j]     its place in the heap; -1 not reached, -2 in the tree
    heap         columns reached and not in the tree, the nearest on top; spot[WAITING] of them
    pred[j]      row from which column j is reached
    tree, reach  columns in the order of joining, and their distances

In integers a sum beyond 2**63 wraps around to below the front, where no true distance can be, and
is ignored. No shortest path is that long, because (rows + 1) · max |cost| < 2**62.

References
----------
Jonker, Volgenant, *A shortest augmenting path algorithm for dense and sparse linear assignment
problems*, Computing 38, 1987.
"""

from __future__ import annotations

from gpumatch.cpu.assignment.dense_paths import (
    FOUND,
    FRONT,
    HEAD,
    LEAVE,
    LEAVER,
    LEFT,
    NEXT,
    SCANS,
    SPENT,
    STUCK,
    TAIL,
    bid,
    turn,
)
from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["BUDGET", "augment", "lower_to_minima", "reduce_rows", "row_minima"]

BUDGET = 2**22
"""Entries scanned between two returns to Python: under half a second even with the heap."""

WAITING = 6


@kernel
def lower_to_minima(indptr, indices, costs, price, nearest, first, last):
    """Lower prices to the least costs in rows first to last, and name the ``nearest`` rows."""
    for row in range(first, last):
        for entry in range(indptr[row], indptr[row + 1]):
            if costs[entry] < price[indices[entry]]:
                price[indices[entry]] = costs[entry]
                nearest[indices[entry]] = row


@kernel
def least_two(indptr, indices, costs, price, row, far):
    """The least two reduced costs of a row, and their columns: -1 if there is none."""
    one = two = far
    first = second = -1
    for entry in range(indptr[row], indptr[row + 1]):
        there = costs[entry] - price[indices[entry]]
        if there < one:
            two, second = one, first
            one, first = there, indices[entry]
        elif there < two:
            two, second = there, indices[entry]
    return one, first, two, second


@kernel
def reduce_rows(
    indptr, indices, costs, price, row_to_col, col_to_row, free, spot,
    limit, leaves, far, most_scans, budget,
):  # fmt: skip
    """Let the free rows bid for their cheapest columns, as in `dense_paths`."""
    while spot[NEXT] < free.size:
        if spot[SCANS] >= most_scans:
            return True
        if budget <= 0:
            return False
        row = free[spot[NEXT]]
        spot[NEXT] += 1
        spot[SCANS] += 1
        budget -= 1 + indptr[row + 1] - indptr[row]
        one, col, two, other = least_two(indptr, indices, costs, price, row, far)
        bid(
            row, one, col, two, other, price, row_to_col, col_to_row, free, spot, limit, leaves, far
        )
    return True


@kernel
def row_minima(indptr, indices, costs, price, far, minima, first, last):
    """The least reduced costs of rows first to last."""
    for row in range(first, last):
        minima[row] = least_two(indptr, indices, costs, price, row, far)[0]


@kernel
def _raise(heap, place, dist, slot):
    """Move the column at ``slot`` of the heap towards the top, to where it belongs."""
    col = heap[slot]
    while slot > 0:
        above = (slot - 1) >> 1
        other = heap[above]
        if dist[other] <= dist[col]:
            break
        heap[slot] = other
        place[other] = slot
        slot = above
    heap[slot] = col
    place[col] = slot


@kernel
def _take_nearest(heap, place, dist, waiting):
    """Take the column on top of the heap, which has ``waiting`` ones left after that."""
    nearest, col = heap[0], heap[waiting]
    place[nearest] = -2
    slot = 0
    while 2 * slot + 1 < waiting:
        below = 2 * slot + 1
        if below + 1 < waiting and dist[heap[below + 1]] < dist[heap[below]]:
            below += 1
        other = heap[below]
        if dist[col] <= dist[other]:
            break
        heap[slot] = other
        place[other] = slot
        slot = below
    if waiting > 0:
        heap[slot] = col
        place[col] = slot
    return nearest


@kernel
def _relax(indptr, indices, costs, price, offset, row, dist, pred, place, heap, waiting):
    """Offer the row's columns outside the tree the way through it; return how many wait then."""
    for entry in range(indptr[row], indptr[row + 1]):
        col = indices[entry]
        if place[col] == -2:
            continue
        there = (costs[entry] - price[col]) + offset
        if place[col] < 0:
            heap[waiting] = col
            place[col] = waiting
            waiting += 1
        elif there >= dist[col]:
            continue
        dist[col] = there
        pred[col] = row
        _raise(heap, place, dist, place[col])
    return waiting


@kernel
def _reduced_cost(indptr, indices, costs, price, row, col):
    entry = indptr[row]
    while indices[entry] != col:
        entry += 1
    return costs[entry] - price[col]


@kernel
def _grow(
    indptr, indices, costs, price, col_to_row, root, spot, mark,
    dist, pred, place, heap, tree, reach, limit, leaves, low, far, budget,
):  # fmt: skip
    """Grow the tree of ``root`` until a path ends or the budget is spent.

    Returns what ended it, the sink (the free column, or -1 if a row takes none), and the work.
    """
    front, leave = mark[FRONT], mark[LEAVE]
    tail, leaver, waiting = spot[TAIL], spot[LEAVER], spot[WAITING]
    work = 0
    if spot[HEAD] < 0:
        tail = 0
        front = low
        leave, leaver = (limit, root) if leaves else (far, -1)
        waiting = _relax(
            indptr, indices, costs, price, costs.dtype.type(0), root,
            dist, pred, place, heap, 0,
        )  # fmt: skip
        work = 1 + indptr[root + 1] - indptr[root]
    outcome, sink = SPENT, -1
    while work < budget:
        if waiting > 0:
            front = max(front, min(dist[heap[0]], leave))
        if leaver >= 0 and (waiting == 0 or leave <= front):
            front, outcome = leave, LEFT
            break
        if waiting == 0:
            outcome = STUCK
            break
        waiting -= 1
        col = _take_nearest(heap, place, dist, waiting)
        tree[tail] = col
        reach[tail] = front
        tail += 1
        row = col_to_row[col]
        if row < 0:
            outcome, sink = FOUND, col
            break
        offset = front - _reduced_cost(indptr, indices, costs, price, row, col)
        if leaves and limit + offset < leave:
            leave, leaver = limit + offset, row
        waiting = _relax(
            indptr, indices, costs, price, offset, row,
            dist, pred, place, heap, waiting,
        )  # fmt: skip
        work += 1 + indptr[row + 1] - indptr[row]
    mark[FRONT], mark[LEAVE] = front, leave
    spot[HEAD], spot[TAIL], spot[LEAVER], spot[WAITING] = 0, tail, leaver, waiting
    return outcome, sink, work


@kernel
def augment(
    indptr, indices, costs, price, row_to_col, col_to_row, free, spot, mark,
    dist, pred, place, heap, tree, reach, limit, leaves, low, far, budget,
):  # fmt: skip
    """Match the free rows by shortest augmenting paths, as far as the budget goes.

    Returns how it ended: FOUND if all rows are served, SPENT, or STUCK if a row has no path.
    """
    while spot[NEXT] < free.size:
        root = free[spot[NEXT]]
        outcome, sink, work = _grow(
            indptr, indices, costs, price, col_to_row, root, spot, mark,
            dist, pred, place, heap, tree, reach, limit, leaves, low, far, budget,
        )  # fmt: skip
        budget -= work
        spot[SCANS] += work
        if outcome >= SPENT:
            return outcome
        for k in range(spot[TAIL]):
            price[tree[k]] += reach[k] - mark[FRONT]
            place[tree[k]] = -1
        for k in range(spot[WAITING]):
            place[heap[k]] = -1
        row = spot[LEAVER] if outcome == LEFT else pred[sink]
        turn(root, sink, row, pred, row_to_col, col_to_row)
        spot[NEXT] += 1
        spot[HEAD] = -1
    return FOUND
