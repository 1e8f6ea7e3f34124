"""Shortest augmenting paths in a sparse cost matrix: pruned searches with a heap.

The entries are in CSR, at most one a pair. Pairs that are not stored are forbidden. Prices and
pairs are kept as in `searches.dense`, and all names that are not listed here are explained there.

Before the searches, an unmatched row takes an unmatched column that is tight, or sends the mate of
a tight column to another tight one (Duff and Koster's start with one step of look-ahead). The
search from a row is Dijkstra's, pruned: once it has reached an unmatched column, or may go without
one, it keeps no column that is as far or farther (Duff and Koster). Columns no farther than the
front need no heap, and wait in a queue. So ties are searched breadth first. (In a matrix of 65,536
rows with 16 entries each, of two costs drawn at random, the paths so read all entries 3.2 times;
depth first, they read them 17.3 times.) The rows of the queue, and the one that is next in the
heap, are fetched into the caches ahead.

    dist[j]      distance of column j from the root; ``far`` if not reached
    pred[j]      row from which column j is reached
    place[i]     an entry of row i: that of its mate, unless the row had another mate when a search
                 last read it
    tree         columns that are nearest: tree[:TAIL] in the order of joining
    near         columns at the front: near[:HEAD] are scanned, near[HEAD:NEAR] wait
    keys, heap   distances and columns beyond the front, the nearest on top; WAITING of them. A
                 column may be there several times, and only its least distance counts;
                 the others are dropped once they are most of the heap.
    reached      columns that have a distance, whose ``dist`` becomes ``far`` again after the search
    spot         also SINK (the nearest unmatched column so far, or -1) and PUSHED
    mark         the distances FRONT and LEAVE (of the nearest end so far, the bound)

Several threads may search at once, each for its own rows. A column that a search reaches is its own
until it ends, by compare-and-swap, and so are the column's mate, price and distance. A search that
reaches a column of another search is given up, and its row put off. A column that is too far to be
reached needs no owner: prices only fall, so it can only become farther. So the paths that are found
are shortest ones in the order in which they are augmented.

    owner[j]     the thread whose search has reached column j, or NOBODY; empty for one thread alone
    me           this thread

`augment` takes arrays in tuples, and not in NamedTuples: Numba looks up the type of each of these
in Python, which takes 2 µs a call.

    entries      indptr, indices, costs
    pairs        price, row_to_col, col_to_row
    room         the fields of `Room`, in their order
    terms        limit, leaves, low, far

In integers a sum beyond 2**63 wraps around to below the front, where no true distance can be, and
is ignored. No shortest path is that long, because (rows + 1) · max |cost| < 2**62.

References
----------
Jonker, Volgenant, *A shortest augmenting path algorithm for dense and sparse linear assignment
problems*, Computing 38, 1987.
Duff, Koster, *On algorithms for permuting large entries to the diagonal of a sparse matrix*, SIAM
J. Matrix Analysis 22, 2001.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpumatch.cpu.numba_tools.atomics import cas, load, store
from gpumatch.cpu.numba_tools.compiled import kernel, vector_kernel
from gpumatch.cpu.numba_tools.error_free import down, lost
from gpumatch.cpu.numba_tools.prefetch import prefetch, prefetch_range
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.searches.heap import drop_top, push, tidy
from gpumatch.cpu.searches.paths import bid, turn
from gpumatch.cpu.searches.state import (
    CLASH,
    FOUND,
    FRONT,
    HEAD,
    KEPT,
    LEAVE,
    LEAVER,
    LEFT,
    LOCKED,
    NEAR,
    NEXT,
    NOBODY,
    PUSHED,
    REACHED,
    SCANS,
    SINK,
    SPENT,
    STUCK,
    TAIL,
    UNMATCHED,
    WAITING,
)

__all__ = [
    "BUDGET",
    "Room",
    "augment",
    "fair_row_duals",
    "known_reduced_cost",
    "least_reduced_cost",
    "lower_to_minima",
    "match_tight",
    "reduce_rows",
    "row_duals",
    "take_cheapest",
]

BUDGET = 2**22
"""Entries read between two returns to Python: under half a second even with the heap."""


class Room(NamedTuple):
    """The arrays of a search, as the header explains them."""

    owner: np.ndarray
    me: int
    dist: np.ndarray
    pred: np.ndarray
    place: np.ndarray
    near: np.ndarray
    keys: np.ndarray
    heap: np.ndarray
    tree: np.ndarray
    reached: np.ndarray


@vector_kernel
def lower_to_minima(indptr, indices, costs, price, first, last):
    """Lower prices to the least costs in rows first to last."""
    for entry in range(indptr[first], indptr[last]):
        col = indices[entry]
        price[col] = lesser(price[col], costs[entry])  # a branch would take five times as long


@kernel
def least_reduced_cost(indptr, indices, costs, price, row, far):
    """Return the least reduced cost of a row."""
    least = far
    for entry in range(indptr[row], indptr[row + 1]):
        there = costs[entry] - price[indices[entry]]
        least = there if there < least else least
    return least


@kernel
def take_cheapest(
    indptr, indices, costs, price, far, row_to_col, col_to_row, row_dual, first, last
):  # fmt: skip
    """Match rows first to last to the first unmatched columns whose prices are their costs.

    Also write the duals of these rows, their least reduced costs. Threads may share the columns.
    """
    for row in range(first, last):
        least, cheapest = far, -1
        for entry in range(indptr[row], indptr[row + 1]):
            there = costs[entry] - price[indices[entry]]
            cheapest = indices[entry] if there < least else cheapest
            least = there if there < least else least
        row_dual[row] = least
        if least != 0:
            continue
        if load(col_to_row, cheapest) < 0 and cas(col_to_row, cheapest, UNMATCHED, row):
            row_to_col[row] = cheapest
            continue
        for entry in range(indptr[row], indptr[row + 1]):
            col = indices[entry]
            is_unmatched = costs[entry] == price[col] and load(col_to_row, col) < 0
            if is_unmatched and cas(col_to_row, col, UNMATCHED, row):
                row_to_col[row] = col
                break


@kernel
def least_two(indptr, indices, costs, price, row, far):
    """Return the least two reduced costs of a row, and their columns: -1 if there is none."""
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
    indptr, indices, costs, price, row_to_col, col_to_row, unmatched, spot,
    limit, leaves, far, most_scans, budget,
):  # fmt: skip
    """Let the unmatched rows bid for their cheapest columns, as in `searches.dense`."""
    while spot[NEXT] < unmatched.size:
        if spot[SCANS] >= most_scans:
            return True
        if budget <= 0:
            return False
        row = unmatched[spot[NEXT]]
        spot[NEXT] += 1
        spot[SCANS] += 1
        budget -= 1 + indptr[row + 1] - indptr[row]
        one, col, two, other = least_two(indptr, indices, costs, price, row, far)
        bid(
            row, one, col, two, other, price, row_to_col, col_to_row, unmatched, spot, limit,
            leaves, far,
        )  # fmt: skip
    return True


@kernel
def row_duals(indptr, indices, costs, price, far, row_dual, first, last):
    """Write the duals of rows first to last, their least reduced costs."""
    for row in range(first, last):
        row_dual[row] = least_reduced_cost(indptr, indices, costs, price, row, far)


@kernel
def fair_row_duals(indptr, indices, costs, price, far, row_dual, first, last):
    """Write the duals of rows first to last for costs that are floats, rounded down.

    A row whose dual is 0 keeps it: a difference of floats is 0 only if nothing is rounded.
    """
    for row in range(first, last):
        if row_dual[row] == 0:
            continue
        least, error = far, 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            cost, price_there = costs[entry], price[indices[entry]]
            there = cost - price_there
            here = lost(cost, price_there, there)
            others = error if there == least else 0.0  # rounding keeps the order
            error = lesser(here, others) if there <= least else error
            least = lesser(there, least)
        row_dual[row] = down(least, error)


@kernel
def match_tight(
    indptr, indices, costs, price, row_to_col, col_to_row, limit, leaves, far, first, last
):  # fmt: skip
    """Match unmatched rows first to last to tight columns, as far as one step ahead shows.

    Threads may share the columns. A column is locked while its mate moves to another column.
    """
    for row in range(first, last):
        if row_to_col[row] >= 0:
            continue
        least = least_reduced_cost(indptr, indices, costs, price, row, far)
        if leaves and limit <= least:
            continue
        for entry in range(indptr[row], indptr[row + 1]):
            col = indices[entry]
            if least < far and costs[entry] - price[col] <= least:
                loser = load(col_to_row, col)
                if loser == LOCKED or not cas(col_to_row, col, loser, LOCKED):
                    continue
                if loser >= 0:
                    other = _take_unmatched_and_tight(
                        indptr, indices, costs, price, col_to_row, loser, col
                    )  # fmt: skip
                    if other < 0:
                        store(col_to_row, col, loser)
                        continue
                    row_to_col[loser] = other
                row_to_col[row] = col
                store(col_to_row, col, row)
                break


@kernel
def _take_unmatched_and_tight(indptr, indices, costs, price, col_to_row, row, mate):
    """Give a row an unmatched column that costs it no more than its mate; return it, or -1."""
    least = _reduced_cost(indptr, indices, costs, price, row, mate)
    for entry in range(indptr[row], indptr[row + 1]):
        col = indices[entry]
        is_unmatched = load(col_to_row, col) == UNMATCHED and costs[entry] - price[col] <= least
        if is_unmatched and cas(col_to_row, col, UNMATCHED, row):
            return col
    return -1


@kernel
def _reduced_cost(indptr, indices, costs, price, row, col):
    entry = indptr[row]
    while indices[entry] != col:
        entry += 1
    return costs[entry] - price[col]


@kernel
def known_reduced_cost(indptr, indices, costs, price, place, row, col):
    """Return the reduced cost of a pair, and remember the place of its entry."""
    entry = place[row]
    if indices[entry] != col:
        entry = indptr[row]
        while indices[entry] != col:
            entry += 1
        place[row] = entry
    return costs[entry] - price[col]


@kernel
def _grow(entries, pairs, root, spot, mark, room, terms, budget):
    """Grow the tree of ``root`` until no shorter path exists or the budget is spent.

    A row that is scanned offers its columns the way through it, if that is shorter than the known
    way and than the bound. A first loop finds these columns without a branch, which a processor
    could not predict, and keeps their numbers in the row behind the heap. Returns what ended the
    search, and the work.
    """
    indptr, indices, costs = entries
    price, _, col_to_row = pairs
    owner, me, dist, pred, place, near, keys, heap, tree, reached = room
    limit, leaves, low, far = terms
    shares = owner.size > 0
    front, leave = mark[FRONT], mark[LEAVE]
    head, tail, nears = spot[HEAD], spot[TAIL], spot[NEAR]
    waiting, count = spot[WAITING], spot[REACHED]
    sink, leaver = spot[SINK], spot[LEAVER]
    row, offset = -1, costs.dtype.type(0)
    if head < 0:
        head = tail = nears = waiting = count = 0
        row, sink, leaver = root, -1, root if leaves else -1
        front, leave = low, limit if leaves else far
    wraps = far < np.inf
    outcome, work, pushed = SPENT, 0, 0
    while True:
        if row >= 0:
            begin, degree = indptr[row], indptr[row + 1] - indptr[row]
            work += 1 + degree
            first = last = np.uintp(waiting)
            for k in range(degree):
                col = np.uintp(indices[begin + k])  # Numba does not check it for a sign
                there = (costs[begin + k] - price[col]) + offset
                heap[last] = k
                last += np.uintp((there < leave) & (shares | (there < dist[col])))
            for slot in range(first, last):
                entry = begin + heap[slot]
                col = np.uintp(indices[entry])
                there = (costs[entry] - price[col]) + offset
                if there >= leave:
                    continue
                if there < front:
                    if wraps:
                        continue
                    there = front  # but for rounding
                if shares and load(owner, col) != me:
                    if not cas(owner, col, NOBODY, me):
                        outcome = CLASH
                        break
                    reached[count] = col
                    count += 1
                    there = greater((costs[entry] - price[col]) + offset, front)
                    if there >= leave:
                        continue
                known = dist[col]
                if there >= known:
                    continue
                if known == far and not shares:
                    reached[count] = col
                    count += 1
                dist[col] = there
                pred[col] = row
                mate = col_to_row[col]
                if mate < 0:
                    leave, sink, leaver = there, np.intp(col), -1
                elif there <= front:
                    prefetch_range(costs, indptr[mate], indptr[mate + 1] - 1)
                    prefetch_range(indices, indptr[mate], indptr[mate + 1] - 1)
                    near[nears] = col
                    nears += 1
                else:
                    prefetch(indptr, mate)
                    push(keys, heap, waiting, there, col)
                    waiting += 1
                    pushed += 1
        if work >= budget or outcome == CLASH:
            break
        waiting = tidy(keys, heap, waiting, dist, count - tail)
        if head < nears and front < leave:
            col = np.uintp(near[head])
            head += 1
        else:
            if waiting == 0 or keys[0] >= leave:
                front = leave
                outcome = STUCK if leave == far else LEFT if leaver >= 0 else FOUND
                break
            key, col = keys[0], np.uintp(heap[0])
            waiting -= 1
            drop_top(keys, heap, waiting)
            if waiting > 0:
                soon = col_to_row[heap[0]]
                prefetch_range(costs, indptr[soon], indptr[soon + 1] - 1)
                prefetch_range(indices, indptr[soon], indptr[soon + 1] - 1)
            row = -1
            if key > dist[col]:
                continue
            front = key
        tree[tail] = col
        tail += 1
        row = col_to_row[col]
        offset = front - known_reduced_cost(indptr, indices, costs, price, place, row, col)
        if leaves and limit + offset < leave:
            leave, leaver = limit + offset, row
    mark[FRONT], mark[LEAVE] = front, leave
    spot[HEAD], spot[TAIL], spot[NEAR] = head, tail, nears
    spot[WAITING], spot[REACHED] = waiting, count
    spot[SINK], spot[LEAVER] = sink, leaver
    spot[PUSHED] += pushed
    return outcome, work


@kernel
def augment(entries, pairs, unmatched, spot, mark, room, terms, budget):
    """Match the rows of ``unmatched`` by shortest augmenting paths, as far as the budget goes.

    Returns how it ended: FOUND if all rows are served or put off, SPENT, or STUCK if a row has no
    path. A thread that shares the columns puts a row off, to unmatched[:KEPT], if its search
    clashes with another search, or the budget ends it. If a thread is alone, the next call
    continues the search.
    """
    price, row_to_col, col_to_row = pairs
    owner, _, dist, pred, _, _, _, _, tree, reached = room
    far = terms[3]
    shares = owner.size > 0
    while spot[NEXT] < unmatched.size:
        if shares and budget <= 0:
            return SPENT
        root = unmatched[spot[NEXT]]
        outcome, work = _grow(entries, pairs, root, spot, mark, room, terms, budget)
        budget -= work
        spot[SCANS] += work
        if outcome == SPENT and not shares:
            return SPENT
        if outcome < SPENT:
            for k in range(spot[TAIL]):
                price[tree[k]] += dist[tree[k]] - mark[FRONT]
            sink = spot[SINK] if outcome == FOUND else -1
            row = pred[sink] if outcome == FOUND else spot[LEAVER]
            turn(root, sink, row, pred, row_to_col, col_to_row)
        elif outcome != STUCK:
            unmatched[spot[KEPT]] = root
            spot[KEPT] += 1
        for k in range(spot[REACHED]):
            dist[reached[k]] = far
            if shares:
                store(owner, reached[k], NOBODY)
        spot[HEAD] = -1
        if outcome == STUCK:
            return STUCK
        spot[NEXT] += 1
    return FOUND


@kernel
def tight_pairs(
    indptr, indices, costs, price, limit, leaves, far, tight_indptr, tight_indices, first, last
):  # fmt: skip
    """Write the tight pairs of rows first to last: the ends of the rows, and the columns.

    Both begin where the entries of row ``first`` begin, and the ends count from there.
    """
    begin, count = indptr[first], 0
    for row in range(first, last):
        least = least_reduced_cost(indptr, indices, costs, price, row, far)
        if not leaves or least < limit:
            for entry in range(indptr[row], indptr[row + 1]):
                if costs[entry] - price[indices[entry]] <= least:
                    tight_indices[begin + count] = indices[entry]
                    count += 1
        tight_indptr[row + 1] = count
