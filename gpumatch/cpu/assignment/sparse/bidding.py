"""Gauss and Seidel's auction in a sparse cost matrix: free rows, and columns, bid one by one.

The entries are in CSR, at most one a pair; prices, mates and limit are those of `dense_paths`. A
row takes its cheapest column, and lowers its price until the second cheapest is as cheap, by
``epsilon`` at least. The row that had it waits at the end of the queue. So every matched row pays
at most epsilon more than it must, and a row whose last bid was higher than epsilon pays no more
than it must, as long as prices only fall. That is why most pairs of a fine auction are tight.

Threads may bid at once, each for the rows of its own queue. A column is locked while it changes
hands. A thread that finds the price changed since it looked bids again. Prices of other columns may
fall meanwhile, which makes them dearer, so the bid remains within epsilon of what the row must pay.
With one thread the result is always the same. A lock waits for all stores before it. So a row that
loses its column is marked as free at the end only, and what a bid stores into is fetched ahead.

    queue        rows that wait: ``state[WAITING]`` of them from queue[state[HEAD]] on, in a ring
                 whose length is a power of two
    state        HEAD, WAITING and SCANS of `search.state`
    col_to_row   LOCKED while a thread changes the column's row and price; `row_to_col` in turns

Few rows that are left fight for fewer columns nearby, and lower their prices for long until one of
them takes a column far away. So these bids alternate, if all rows and columns must be matched: when
a row has got a free column, the free columns bid for rows, in the same manner, until one of them
has got a free row. A column raises its price by what it lowers that of a row. A row's price is what
it pays for its column, or would have paid when it bid last. No cost is more than epsilon below the
prices of its row and its column, and pairs are tight. (A mesh of 262,144 rows so takes 21 million
entries in place of 40, and half of the paths' work after.)

Threads may take turns at once, too. Each has rows and columns of its own, and goes from one side to
the other by itself. A bidder is locked as well as what it bids for, and the mate that this loses is
freed in one step. Who finds an end locked, or the price changed, waits again. While a row bids, the
price of another of its columns may rise, because that column bids. Then the row pays too much and
has no mark. So all rows are asked in the end.

What is bidded for soon is fetched into the caches ahead: rows wait in a known order.

    row_price    what each row pays; empty if it is not asked for, and then `is_slack` is not kept
    left         the number of rows that are free, which threads that take turns share

Between auctions, rows and columns are parted from mates that cost them too much. An entry can cost
less than the prices of its ends only if the last bid of one of them went epsilon beyond what it had
to. So only such vertices are looked at.

    is_slack, is_slack_col   rows, and columns, whose last bid did, or that nothing is known of

References
----------
Bertsekas, *Auction algorithms for network flow problems*, Computational Optimization and
Applications 1, 1992; section 4 for the alternation.
"""

from __future__ import annotations

from gpumatch.cpu.assignment.search.state import (
    DONE,
    HEAD,
    LOCKED,
    LOW,
    SCANS,
    SPENT,
    UNMATCHED,
    WAITING,
)
from gpumatch.cpu.numba_tools.atomics import cas, fetch_add, load, store
from gpumatch.cpu.numba_tools.compiled import fused, vector_kernel
from gpumatch.cpu.numba_tools.prefetch import prefetch, prefetch_range
from gpumatch.cpu.numba_tools.vector_min import greater, lesser

__all__ = ["AHEAD", "alternate", "drop_slack", "hold"]

AHEAD = 12
"""Rows by which the bidder's row pointer is fetched ahead; half for its entries, then prices."""
FETCHED = 8
"""Prices fetched ahead for a bidder, at most."""


@fused
def _fetch_ahead(entries, side, queue, head):
    """Bring what the next bidders need into the caches, as far as it is known where it is."""
    indptr, indices, costs = entries
    own, others, mate, mate_of_other, is_slack = side
    mask = queue.size - 1
    prefetch(indptr, queue[(head + AHEAD) & mask])
    later = queue[(head + AHEAD // 2) & mask]
    prefetch_range(costs, indptr[later], indptr[later + 1] - 1)
    prefetch_range(indices, indptr[later], indptr[later + 1] - 1)
    later = queue[(head + AHEAD // 4) & mask]
    prefetch(mate, later)
    if own.size > 0:
        prefetch(own, later)
        prefetch(is_slack, later)
    begin = indptr[later]
    end = begin + FETCHED
    for entry in range(begin, end if end < indptr[later + 1] else indptr[later + 1]):
        prefetch(others, indices[entry])
        prefetch(mate_of_other, indices[entry])


@vector_kernel
def hold(entries, side, ring, epsilon, jump, limit, leaves, far, floor, few, budget):
    """Let the rows of a queue bid until ``few`` are left; why it ended."""
    indptr, indices, costs = entries
    row_price, price, row_to_col, col_to_row, is_slack = side
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
        col, one, two, seen = -1, limit if leaves else far, far, far
        for entry in range(indptr[row], indptr[row + 1]):
            other = indices[entry]
            price_there = price[other]
            there = costs[entry] - price_there
            two = lesser(two, greater(one, there))
            nearer = there < one
            col = other if nearer else col
            seen = price_there if nearer else seen
            one = lesser(one, there)
        scans += 1 + indptr[row + 1] - indptr[row]
        if col < 0:
            row_to_col[row] = -1  # goes without
            head = (head + 1) & mask
            count -= 1
            continue
        honest = two - one if two < far else jump
        gap = greater(honest, epsilon)
        loser = load(col_to_row, col)
        if loser == LOCKED or not cas(col_to_row, col, loser, LOCKED):
            continue
        if price[col] > seen or price[col] < seen:
            store(col_to_row, col, loser)
            continue
        lowered = seen - gap
        price[col] = lowered
        if row_price.size > 0:
            row_price[row] = one + gap
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
    epsilon, jump, far, floor, few, budget,
):  # fmt: skip
    """Let rows and columns bid in turns until ``few`` are left, or none waits; why it ended."""
    row_state, col_state = rows[1], cols[1]
    outcome = DONE
    while load(left, 0) > few and row_state[WAITING] + col_state[WAITING] > 0 and outcome == DONE:
        outcome = _take_turn(entries, side, rows, left, epsilon, jump, far, floor, budget)
        if load(left, 0) > few and outcome == DONE:
            outcome = _take_turn(
                entries_by_col, side_of_cols, cols, left, epsilon, jump, far, floor, budget
            )
    return outcome


@vector_kernel
def _take_turn(entries, side, ring, left, epsilon, jump, far, floor, budget):
    """Let the vertices of one side bid until one has got a free one of the other."""
    indptr, indices, costs = entries
    own, others, mate, mate_of_other, is_slack = side
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
        other, paid, one, two = -1, jump, far, far
        for entry in range(indptr[bidder], indptr[bidder + 1]):
            there = costs[entry] - others[indices[entry]]
            two = lesser(two, greater(one, there))
            nearer = there < one
            other = indices[entry] if nearer else other
            paid = costs[entry] if nearer else paid
            one = lesser(one, there)
        scans += 1 + indptr[bidder + 1] - indptr[bidder]
        if other < 0:
            outcome = LOW
            break
        is_locked = cas(mate, bidder, UNMATCHED, LOCKED)
        loser = load(mate_of_other, other)
        is_held = is_locked and loser != LOCKED and cas(mate_of_other, other, loser, LOCKED)
        is_open = is_held and paid - others[other] == one
        if not is_open or (loser >= 0 and not cas(mate, loser, other, UNMATCHED)):
            if is_held:
                store(mate_of_other, other, loser)
            if is_locked:
                store(mate, bidder, UNMATCHED)
            queue[(head + count) & mask] = bidder
            count += 1
            continue
        honest = two if two < far else one + jump
        pays = greater(honest, one + epsilon)
        is_slack[bidder] = honest < pays
        own[bidder] = pays
        others[other] = paid - pays
        store(mate_of_other, other, bidder)
        store(mate, bidder, other)
        if loser >= 0:
            queue[(head + count) & mask] = loser
            count += 1
        if paid - pays < floor:
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
    """Part the vertices first to last from mates that cost them over epsilon more than they must.

    ``rounding`` is the share of costs and prices that may be an error of rounding. The vertices'
    own prices become what they pay, or must.
    """
    indptr, indices, costs = entries
    own, others, mate, mate_of_other, is_slack = side
    for vertex in range(first, last):
        partner = mate[vertex]
        if partner >= 0 and not is_slack[vertex]:
            continue
        paid = least = limit if leaves else far
        for entry in range(indptr[vertex], indptr[vertex + 1]):
            there = costs[entry] - others[indices[entry]]
            least = lesser(least, there)
            paid = there if indices[entry] == partner else paid
        if partner >= 0:
            slack = paid - least - rounding * (abs(paid) + abs(others[partner]))
            is_slack[vertex] = slack > 0
            if slack > epsilon:
                mate[vertex] = -1
                mate_of_other[partner] = -1
                paid = least
        own[vertex] = paid if partner >= 0 else least
