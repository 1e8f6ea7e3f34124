"""Bids for lots of columns: a transport auction in CSR, with an epsilon.

A row with units to ship bids for its cheapest column: up to what its second cheapest option costs,
and for `epsilon` more than the cheapest at least. It takes the units of the column that are free,
then those whose holders bid less, as many as it needs. Units that one bid has taken are a lot, and
keep the price of that bid. So a column has as many prices as lots; the price that others see is the
highest dual among them: that of the lot which is cheapest to take. A row that loses units waits
at the end of the queue. So the slack of a pair with flow is at most epsilon, as long as prices of
columns only fall. A bid takes any number of units at once, and the masses do not matter.

    entries        indptr, indices, costs (float64)
    price[j]       the dual of column j: that of its free units, or of its cheapest lot
    spare[j]       free units of column j
    unmatched[i]   units of row i that are to ship; a row waits in the queue while it has some
    top[j]         the cheapest lot of column j, the root of a pairing heap; NONE if it has none
    lot_entry, lot_units, lot_price, lot_child, lot_next   the lots; lot_next[l] is the next
                   child of the same parent, or the next lot of the list of unused ones
    limit[i]       what a unit of row i costs that stays; empty if all must be shipped
    state          FIRST, ROWS: the queue; UNUSED: the first unused lot; READ: entries that were
                   read

References
----------
Bertsekas, Castañón, *The auction algorithm for the transportation problem*, Annals of Operations
Research 20, 1989: similar persons and objects.
Fredman, Sedgewick, Sleator, Tarjan, *The pairing heap*, Algorithmica 1, 1986.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.compiled import kernel, vector_kernel
from gpumatch.cpu.numba_tools.prefetch import prefetch, prefetch_range
from gpumatch.cpu.numba_tools.vector_min import greater, lesser

__all__ = [
    "CALM", "FIRST", "FULL", "LONG", "LOW", "NONE", "READ", "ROWS", "STATES", "UNUSED",
    "collect", "find_savings", "hold", "hold_on", "start_lots",
]  # fmt: skip

NONE = -1
FIRST, ROWS, UNUSED, READ, STATES = range(5)
CALM, LONG, LOW, FULL = range(4)
AHEAD = 6
"""Rows by which pointers are fetched ahead; half for their entries."""


@kernel
def start_lots(lots, top, state):
    """Make all lots unused."""
    lot_next = lots[4]
    for lot in range(lot_next.size):
        lot_next[lot] = lot + 1
    lot_next[lot_next.size - 1] = NONE
    state[UNUSED] = 0
    for col in range(top.size):
        top[col] = NONE


@kernel
def _melt(one, two, lot_price, lot_child, lot_next):
    """Merge two heaps, neither of them empty; return the root."""
    if lot_price[one] < lot_price[two]:
        one, two = two, one
    lot_next[two] = lot_child[one]
    lot_child[one] = two
    return one


@kernel
def _add(lots, top, state, col, entry, units, price):
    """Give a column a lot. There is an unused one."""
    lot_entry, lot_units, lot_price, lot_child, lot_next = lots
    lot = state[UNUSED]
    state[UNUSED] = lot_next[lot]
    lot_entry[lot], lot_units[lot], lot_price[lot] = entry, units, price
    lot_child[lot] = lot_next[lot] = NONE
    root = top[col]
    top[col] = lot if root == NONE else _melt(lot, root, lot_price, lot_child, lot_next)


@kernel
def _drop(lots, top, state, col):
    """Drop the cheapest lot of a column."""
    _, _, lot_price, lot_child, lot_next = lots
    root = top[col]
    child, pairs = lot_child[root], NONE
    while child != NONE:  # merge children two by two, into a list in reverse order
        other = lot_next[child]
        if other == NONE:
            lot_next[child] = pairs
            pairs = child
            break
        after = lot_next[other]
        merged = _melt(child, other, lot_price, lot_child, lot_next)
        lot_next[merged] = pairs
        pairs, child = merged, after
    if pairs != NONE:
        child = lot_next[pairs]
        while child != NONE:
            after = lot_next[child]
            pairs = _melt(pairs, child, lot_price, lot_child, lot_next)
            child = after
        lot_next[pairs] = NONE
    top[col] = pairs
    lot_next[root] = state[UNUSED]
    state[UNUSED] = root


@vector_kernel
def _two_least(entries, price, limit, far, row):
    """Return the entry of the cheapest column, what it costs, and what the second option costs."""
    indptr, indices, costs = entries
    place, one, two = NONE, limit[row] if limit.size > 0 else far, far
    for entry in range(indptr[row], indptr[row + 1]):
        there = costs[entry] - price[indices[entry]]
        two = lesser(two, greater(one, there))
        place = entry if there < one else place
        one = lesser(one, there)
    return place, one, two


@kernel
def find_savings(entries, price, rows, saved):
    """Write what the second cheapest column costs each of some rows more; 0 if it has one or none.

    Neither costs nor prices are infinite.
    """
    far = np.inf
    for place in range(rows.size):
        _, one, two = _two_least(entries, price, price[:0], far, rows[place])
        saved[place] = two - one if two < far else 0.0


@kernel
def hold(entries, owner, sides, lots, queue, state, limit, terms, few, budget):
    """Let rows bid until ``few`` wait: CALM; LONG if the budget is spent, LOW below the floor.

    FULL if there is no unused lot.
    """
    indptr, indices, costs = entries
    price, spare, unmatched, unshipped, top = sides
    lot_entry, lot_units, lot_price, _, _ = lots
    epsilon, jump, floor, far = terms
    mask = queue.size - 1
    read, outcome = 0, CALM
    while state[ROWS] > few:
        if read >= budget:
            outcome = LONG
            break
        first = state[FIRST]
        row = queue[first & mask]
        if state[ROWS] > AHEAD:
            prefetch(indptr, queue[(first + AHEAD) & mask])
            later = queue[(first + AHEAD // 2) & mask]
            prefetch_range(costs, indptr[later], indptr[later + 1] - 1)
            prefetch_range(indices, indptr[later], indptr[later + 1] - 1)
        while unmatched[row] > 0 and outcome == CALM and read < budget:
            read += 1 + indptr[row + 1] - indptr[row]
            place, one, two = _two_least(entries, price, limit, far, row)
            if place == NONE:
                if limit.size == 0:
                    outcome = LOW
                else:
                    unshipped[row] += unmatched[row]
                    unmatched[row] = 0
                break
            if state[UNUSED] == NONE:
                outcome = FULL
                break
            col = indices[place]
            pays = greater(two if two < far else one + jump, one + epsilon)
            offer = costs[place] - pays
            units = min(spare[col], unmatched[row])
            spare[col] -= units
            unmatched[row] -= units
            while top[col] != NONE and lot_price[top[col]] > offer and (unmatched[row] > 0):
                lot = top[col]
                loser = owner[lot_entry[lot]]
                taken = lot_units[lot]
                if loser != row:
                    taken = min(taken, unmatched[row])
                    unmatched[row] -= taken
                    if unmatched[loser] == 0:
                        queue[(first + state[ROWS]) & mask] = loser
                        state[ROWS] += 1
                    unmatched[loser] += taken
                units += taken
                lot_units[lot] -= taken
                if lot_units[lot] == 0:
                    _drop(lots, top, state, col)
            if units > 0:
                _add(lots, top, state, col, place, units, offer)
            if spare[col] == 0 and top[col] != NONE:
                price[col] = lot_price[top[col]]
            elif spare[col] == 0:
                price[col] = offer  # a column without demand
            if price[col] < floor:
                outcome = LOW
        if outcome != CALM:
            break
        if unmatched[row] > 0:
            continue  # the budget is spent
        state[FIRST] = (first + 1) & mask
        state[ROWS] -= 1
    state[READ] += read
    return outcome


@kernel
def collect(lots, top, flow, waits, col_count):
    """Add the units of all lots to the flow of their entries; ``waits`` is room for lots."""
    lot_entry, lot_units, _, lot_child, lot_next = lots
    for col in range(col_count):
        if top[col] == NONE:
            continue
        waits[0], count = top[col], 1
        while count > 0:
            count -= 1
            lot = waits[count]
            flow[lot_entry[lot]] += lot_units[lot]
            if lot_next[lot] != NONE:
                waits[count] = lot_next[lot]
                count += 1
            if lot_child[lot] != NONE:
                waits[count] = lot_child[lot]
                count += 1


@kernel
def hold_on(entries, sides, lots, queue, state, limit, terms, flow):
    """Let each row keep the units whose slack is at most epsilon, as lots at what it would bid.

    All lots are unused before, and the flow becomes 0. Rows that have units to ship enter the
    queue.
    """
    indptr, indices, costs = entries
    price, spare, unmatched, unshipped, top = sides
    epsilon, jump, _, far = terms
    state[FIRST] = state[ROWS] = 0
    for row in range(indptr.size - 1):
        place, one, two = _two_least(entries, price, limit, far, row)
        for entry in range(indptr[row], indptr[row + 1]):
            if flow[entry] == 0:
                continue
            col = indices[entry]
            other = two if entry == place else one
            pays = greater(other if other < far else one + jump, one + epsilon)
            if costs[entry] - price[col] <= pays and state[UNUSED] != NONE:
                _add(lots, top, state, col, entry, flow[entry], costs[entry] - pays)
            else:
                spare[col] += flow[entry]
                unmatched[row] += flow[entry]
            flow[entry] = 0
        if unshipped[row] > 0 and limit[row] > one + epsilon:
            unmatched[row] += unshipped[row]
            unshipped[row] = 0
        if unmatched[row] > 0:
            queue[state[ROWS]] = row
            state[ROWS] += 1
    for col in range(top.size):
        if spare[col] == 0 and top[col] != NONE:
            price[col] = lots[2][top[col]]
