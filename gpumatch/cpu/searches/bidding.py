"""Gauss and Seidel's auction in a sparse cost matrix: unmatched rows, and columns, bid one by one.

Entries are in CSR, at most one a pair; prices, mates and limit are those of `searches.dense`. A row
takes its cheapest column, and lowers its price until the second cheapest column is as cheap, and by
``epsilon`` at least. The row that had the column waits at the end of the queue. So the slack of
a matched pair is at most epsilon. A row whose last bid was higher than epsilon has a tight pair, as
long as prices only fall. That is why most pairs of a fine auction are tight.

A bid may be far: the second cheapest column may be dearer by orders of magnitude, or there may be
none, and the bid is `jump`. Then prices lose the digits of lesser costs, in the end those of all
columns, because prices are shifted by the highest one. So a bid of floats adds `reach` at most to
what the bidder pays, or doubles it, if that is more. Its pair is tight all the same, and a rival
far away needs a few more bids.

Threads may bid at once, each for the rows of its own queue. A column is locked while it changes
hands. A thread that finds the price changed since it read it bids again. Prices of other columns
may fall meanwhile, which makes these dearer, so the slack of the bidder remains within epsilon.
With one thread the result is always the same. A lock waits for all stores before it. So a row that
loses its column is marked as unmatched at the end only, and what a bid writes is fetched ahead.

Kernels take arrays in tuples. A NamedTuple would cost a call 2 µs: Numba looks up its type in
Python.

    entries      indptr, indices, costs: CSR of the side that bids
    side         own_dual, other_dual, mate, mate_of_other, is_slack: duals and mates of the side
                 that bids and of the other side; row_dual, price, row_to_col, ... if rows bid.
                 `row_dual` is empty if nobody reads it; then `is_slack` is not kept.
    ring         queue, state: ``state[WAITING]`` bidders from queue[state[HEAD]] on, in a ring
                 whose length is a power of two; SCANS are the entries read
    mates        LOCKED while a thread changes the vertex
    left         the number of unmatched rows, which threads that take turns share

When few rows are unmatched, they fight for fewer columns nearby, and lower their prices for long
until one of them takes a column far away. So if all rows and columns must be matched, rows and
columns bid in turns: when a row has got an unmatched column, the unmatched columns bid for rows,
until one of them has got an unmatched row. A column raises its price by what it lowers the dual of
the row. The dual of a row is what it pays for its column, or would have paid when it bid last. The
duals of a pair exceed its cost by epsilon at most, and matched pairs are tight. (A mesh of 262,144
rows so reads 21 million entries instead of 40, and half of the entries of the paths after it.)

Threads may take turns at once, too. Each has rows and columns of its own, and turns from one side
to the other by itself. A bidder is locked as well as what it bids for, and the mate that this loses
is freed in one step. A bidder that finds an end locked, or the price changed, waits again. While
a row bids, the price of another of its columns may rise, because that column bids. Then the row
pays too much and has no mark. So the repair after the auction checks all rows.

Bids fetch ahead into the caches what the next bidders read: they wait in a known order.

Between phases, rows and columns are parted from mates whose slack is too large. The duals of a pair
can exceed its cost only if the last bid of an end went epsilon beyond what it had to. `is_slack`
marks such vertices, and those of which nothing is known; no other vertex is checked.

References
----------
Bertsekas, *Auction algorithms for network flow problems*, Computational Optimization and
Applications 1, 1992; section 4 for the alternation.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.atomics import cas, fetch_add, load, store
from gpumatch.cpu.numba_tools.compiled import fused, vector_kernel
from gpumatch.cpu.numba_tools.prefetch import prefetch, prefetch_range
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.searches.state import (
    AHEAD,
    DONE,
    HEAD,
    LOCKED,
    LOW,
    SCANS,
    SPENT,
    UNMATCHED,
    WAITING,
)

__all__ = ["alternate", "drop_slack", "hold"]

FETCHED = 8
"""Prices fetched ahead for a bidder, at most."""


@fused
def _fetch_ahead(entries, side, queue, head):
    """Fetch what the next bidders read into the caches, as far as its place is known."""
    indptr, indices, costs = entries
    own_dual, other_dual, mate, mate_of_other, is_slack = side
    mask = queue.size - 1
    prefetch(indptr, queue[(head + AHEAD) & mask])
    later = queue[(head + AHEAD // 2) & mask]
    prefetch_range(costs, indptr[later], indptr[later + 1] - 1)
    prefetch_range(indices, indptr[later], indptr[later + 1] - 1)
    later = queue[(head + AHEAD // 4) & mask]
    prefetch(mate, later)
    if own_dual.size > 0:
        prefetch(own_dual, later)
        prefetch(is_slack, later)
    begin = indptr[later]
    end = begin + FETCHED
    for entry in range(begin, end if end < indptr[later + 1] else indptr[later + 1]):
        prefetch(other_dual, indices[entry])
        prefetch(mate_of_other, indices[entry])


@vector_kernel
def hold(
    entries, side, ring, epsilon, jump, reach, limit, leaves, far, floor, few, budget,
):  # fmt: skip
    """Let the rows of a queue bid until ``few`` wait; return why it ended: DONE, SPENT or LOW."""
    indptr, indices, costs = entries
    row_dual, price, row_to_col, col_to_row, is_slack = side
    queue, state = ring
    mask = queue.size - 1
    head, count, scans = state[HEAD], state[WAITING], 0
    outcome = DONE
    while count > few:
        if scans >= budget:
            outcome = SPENT
            break
        if count > AHEAD:
            _fetch_ahead(entries, side, queue, head)
        row = queue[head]
        place, one, two = -1, limit if leaves else far, far
        begin, degree = indptr[row], indptr[row + 1] - indptr[row]
        for k in range(degree):
            there = costs[begin + k] - price[np.uintp(indices[begin + k])]
            two = lesser(two, greater(one, there))
            place = k if there < one else place
            one = lesser(one, there)
        scans += 1 + degree
        if place < 0:
            row_to_col[row] = -1  # the row stays unmatched, which is cheaper
            head = (head + 1) & mask
            count -= 1
            continue
        honest = lesser(two - one if two < far else jump, greater(reach, abs(one)))
        gap = greater(honest, epsilon)
        col, cost = indices[begin + place], costs[begin + place]
        loser = load(col_to_row, col)
        if loser == LOCKED or not cas(col_to_row, col, loser, LOCKED):
            continue
        seen = price[col]
        if cost - seen != one:
            store(col_to_row, col, loser)
            continue
        lowered = seen - gap
        price[col] = lowered
        if row_dual.size > 0:
            row_dual[row] = one + gap
            is_slack[row] = honest < epsilon
        row_to_col[row] = col
        store(col_to_row, col, row)
        head = (head + 1) & mask
        if loser >= 0:
            queue[(head + count - 1) & mask] = loser
        else:
            count -= 1
        if lowered < floor:
            outcome = LOW
            break
    for place in range(head, head + count):
        row_to_col[queue[place & mask]] = -1
    state[HEAD], state[WAITING] = head, count
    state[SCANS] += scans
    return outcome


@vector_kernel
def alternate(
    entries, entries_by_col, side, side_of_cols, rows, cols, left,
    epsilon, jump, reach, far, floor, few, budget,
):  # fmt: skip
    """Let rows and columns bid in turns until ``few`` rows are unmatched; return why it ended."""
    row_state, col_state = rows[1], cols[1]
    outcome = DONE
    while load(left, 0) > few and row_state[WAITING] + col_state[WAITING] > 0 and outcome == DONE:
        outcome = _take_turn(entries, side, rows, left, epsilon, jump, reach, far, floor, budget)
        if load(left, 0) > few and outcome == DONE:
            outcome = _take_turn(
                entries_by_col, side_of_cols, cols, left, epsilon, jump, reach, far, floor, budget
            )
    return outcome


@vector_kernel
def _take_turn(entries, side, ring, left, epsilon, jump, reach, far, floor, budget):
    """Let the vertices of one side bid until one of them has got an unmatched vertex."""
    indptr, indices, costs = entries
    own_dual, other_dual, mate, mate_of_other, is_slack = side
    queue, state = ring
    mask, scans = queue.size - 1, 0
    head, count = state[HEAD], state[WAITING]
    outcome = DONE
    while count > 0:
        if state[SCANS] + scans >= budget:
            outcome = SPENT
            break
        if count > AHEAD:
            _fetch_ahead(entries, side, queue, head)
        bidder = queue[head]
        head = (head + 1) & mask
        count -= 1
        if load(mate, bidder) >= 0:
            continue
        place, one, two = -1, far, far
        begin, degree = indptr[bidder], indptr[bidder + 1] - indptr[bidder]
        for k in range(degree):
            there = costs[begin + k] - other_dual[np.uintp(indices[begin + k])]
            two = lesser(two, greater(one, there))
            place = k if there < one else place
            one = lesser(one, there)
        scans += 1 + degree
        if place < 0:
            outcome = LOW
            break
        other, cost = indices[begin + place], costs[begin + place]
        is_locked = cas(mate, bidder, UNMATCHED, LOCKED)
        loser = load(mate_of_other, other)
        is_held = is_locked and loser != LOCKED and cas(mate_of_other, other, loser, LOCKED)
        is_open = is_held and cost - other_dual[other] == one
        if not is_open or (loser >= 0 and not cas(mate, loser, other, UNMATCHED)):
            if is_held:
                store(mate_of_other, other, loser)
            if is_locked:
                store(mate, bidder, UNMATCHED)
            queue[(head + count) & mask] = bidder
            count += 1
            continue
        honest = lesser(two if two < far else one + jump, one + greater(reach, abs(one)))
        pays = greater(honest, one + epsilon)
        is_slack[bidder] = honest < pays
        own_dual[bidder] = pays
        other_dual[other] = cost - pays
        store(mate_of_other, other, bidder)
        store(mate, bidder, other)
        if loser >= 0:
            queue[(head + count) & mask] = loser
            count += 1
        if cost - pays < floor:
            outcome = LOW
            break
        if loser < 0:
            fetch_add(left, 0, -1)
            break
    state[HEAD], state[WAITING] = head, count
    state[SCANS] += scans
    return outcome


@vector_kernel
def drop_slack(entries, side, limit, leaves, far, epsilon, rounding, first, last):
    """Part the vertices first to last from mates if the slack of the pair exceeds epsilon.

    ``rounding`` is the share of costs and prices that may be an error of rounding. The duals of the
    vertices become the reduced costs of their pairs, or the least of their reduced costs.
    """
    indptr, indices, costs = entries
    own_dual, other_dual, mate, mate_of_other, is_slack = side
    for vertex in range(first, last):
        partner = mate[vertex]
        if partner >= 0 and not is_slack[vertex]:
            continue
        reduced = least = limit if leaves else far
        for entry in range(indptr[vertex], indptr[vertex + 1]):
            there = costs[entry] - other_dual[indices[entry]]
            least = lesser(least, there)
            reduced = there if indices[entry] == partner else reduced
        if partner >= 0:
            slack = reduced - least - rounding * (abs(reduced) + abs(other_dual[partner]))
            is_slack[vertex] = slack > 0
            if slack > epsilon:
                mate[vertex] = -1
                mate_of_other[partner] = -1
                reduced = least
        own_dual[vertex] = reduced if partner >= 0 else least
