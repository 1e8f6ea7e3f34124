"""Small dense transport problems, many in one compiled call, with their duals and their proof.

Each problem is copied to a table, costs to be minimised, and turned if its rows have more mass than
its columns. Rows ship by tight pairs first. Then each row that has units left looks for a shortest
augmenting path among all columns, without a heap, and ships the bottleneck, as
`gpumatch.cpu.transport.search` does in CSR. All numbers are floats; integers up to
`LARGEST_INTEGER` are exact in them.

What comes in, for problem k of B with at most N rows and M columns:

    values            the costs from problem ``first`` on in one array
    places[k]         START of the problem, if all costs are in one array; the step ACROSS to the
                      next row, ROWS, COLS
    supply, demand    int64 arrays of shape (B, N) and (B, M)
    sign              -1 if costs are to be maximised, else 1
    limit             what a unit costs that is not shipped; inf if the smaller side ships all
    takes_equal       True if a unit rather goes by a pair that costs as much as the limit
    largest           a greater magnitude makes a problem unfit; up to LARGEST_INTEGER, all costs
                      are integers
    room, places_room memory to work in, as `room_for` says

What comes out, in the orientation and with the sign of the values:

    pairs, paid       int64 array of shape (3, P): row, column and units of all pairs with flow, one
                      problem after the other; and what a unit costs, for each pair
    numbers[k]        N duals of the rows, M duals of the columns, less the limit for those that
                      may keep units
    totals[:, k]      OBJECTIVE in two floats, HIGH and LOW, and GAP, in units of mass
    ends[:, k]        END: SOLVED or UNFIT; PAIRS of the problem; PATHS, SCANS

A problem is UNFIT if there is NaN, an infinity of the wrong sign or too large or too small a
number, if some row has no path, or if the duals leave more than rounding. Then other code answers.

The proof is that of `gpumatch.problems.transport`. Duals of floats are rounded down, so they are
fair. Products of costs and units are added without error, but for what rounds the gap up, and
`gpumatch.numeric.gaps` decides what is proven (`gpumatch.cpu.assignment.small.proof`).
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts.batch import LARGEST_INTEGER, SOLVED, UNFIT
from gpumatch.cpu.assignment.small.proof import gap_above, plus
from gpumatch.cpu.numba_tools.compiled import kernel, strict_kernel
from gpumatch.cpu.numba_tools.error_free import difference_below, two_product
from gpumatch.cpu.numba_tools.views import view
from gpumatch.numeric.gaps import ULPS, UNIT

__all__ = [
    "COLS", "END", "GAP", "LEAST", "MOST", "PAIRS", "PATHS", "ROWS", "SCANS", "START",
    "add_paid", "room_for", "solve_range",
]  # fmt: skip

START, ACROSS, ROWS, COLS = range(4)
HIGH, LOW, GAP = range(3)
END, PAIRS, PATHS, SCANS = range(4)
LEAST, MOST = 2.0**-300, 2.0**300
"""Magnitudes of costs other than 0 whose products with units neither overflow nor lose a bit."""
PATIENCE = 64
"""Paths for each pair of a problem, after which rounding is taken for the cause."""
_ROOT, _NONE = -1, -2
_DIGIT = 31


def room_for(entries: int, vertices: int) -> tuple[int, int]:
    """Return how many floats and how many int64 a problem of so many pairs and vertices needs."""
    return entries + 3 * vertices, entries + 4 * vertices


@kernel
def solve_range(
    values, places, supply, demand, sign, limit, takes_equal, largest, first, last, room,
    places_room, pairs, paid, numbers, totals, ends,
):  # fmt: skip
    """Solve the problems from ``first`` to ``last``; return how many pairs have flow."""
    count = 0
    for k in range(first, last):
        ends[END, k], ends[PAIRS, k] = UNFIT, 0
        rows, cols = places[k, ROWS], places[k, COLS]
        has, takes = view(supply, (k, 0), rows), view(demand, (k, 0), cols)
        turned = _total(has) > _total(takes)
        nrows, ncols = (cols, rows) if turned else (rows, cols)
        entries = nrows * ncols
        table = view(room, 0, (nrows, ncols))
        row_dual, offset = view(room, entries, nrows), view(room, entries + nrows, nrows)
        price = view(room, entries + 2 * nrows, ncols)
        dist = view(room, entries + 2 * nrows + ncols, ncols)
        flow = view(places_room, 0, (nrows, ncols))
        waiting, spare = (
            view(places_room, entries, nrows),
            view(places_room, entries + nrows, ncols),
        )
        begin = entries + nrows + ncols
        via, pred = view(places_room, begin, nrows), view(places_room, begin + nrows, ncols)
        begin += nrows + ncols
        tree, reached = view(places_room, begin, nrows), view(places_room, begin + nrows, ncols)
        start = places[k, START] - places[first, START]
        if entries == 0 or not _take(
            values, start, places[k, ACROSS], turned, sign, limit, largest, table
        ):  # fmt: skip
            continue
        for row in range(nrows):
            waiting[row] = takes[row] if turned else has[row]
        for col in range(ncols):
            spare[col] = has[col] if turned else takes[col]
        is_even = limit == np.inf and _total(waiting) == _total(spare)
        sides = flow, waiting, spare, row_dual, price
        _begin(table, sides, limit, is_even)
        paths, scans = _ship_all(table, sides, (offset, dist, via, pred, tree, reached), limit)
        if paths < 0:
            continue
        if takes_equal:
            _ship_at_limit(table, sides, takes if turned else has, limit)
        is_exact = largest <= LARGEST_INTEGER
        _settle_duals(table, row_dual, price, limit, is_even, is_exact)
        masses = (takes, has) if turned else (has, takes)
        high, low, gap, is_proven = _prove(table, flow, masses, row_dual, price, limit, is_exact)
        if not is_proven:
            continue
        ends[END, k], ends[PATHS, k], ends[SCANS, k] = SOLVED, paths, scans
        totals[HIGH, k], totals[LOW, k], totals[GAP, k] = sign * high, sign * low, gap
        most_rows = supply.shape[1]
        for row in range(rows):
            numbers[k, row] = sign * (price[row] if turned else row_dual[row])
            for col in range(cols):
                units = flow[col, row] if turned else flow[row, col]
                if units > 0:
                    pairs[0, count], pairs[1, count], pairs[2, count] = row, col, units
                    paid[count] = sign * (table[col, row] if turned else table[row, col])
                    ends[PAIRS, k] += 1
                    count += 1
        for col in range(cols):
            numbers[k, most_rows + col] = sign * (row_dual[col] if turned else price[col])
    return count


@kernel
def _total(units):
    """Return the sum of units, which is below 2**63."""
    total = 0
    for k in range(units.size):
        total += units[k]
    return total


@strict_kernel  # else NaN passes
def _take(values, start, across, turned, sign, limit, largest, table):
    """Copy the costs to be minimised; return if all of them, and the limit, are fit."""
    nrows, ncols = table.shape
    fit = limit == np.inf or limit == 0 or LEAST <= abs(limit) <= largest
    for row in range(nrows):
        for col in range(ncols):
            cost = sign * values[start + (col * across + row if turned else row * across + col)]
            fit &= cost == 0 or LEAST <= abs(cost) <= largest or cost == np.inf
            table[row, col] = cost
    return fit


@kernel
def _begin(table, sides, limit, is_even):
    """Find first duals, and ship what goes by tight pairs."""
    flow, waiting, spare, row_dual, price = sides
    nrows, ncols = table.shape
    for col in range(ncols):
        least = np.inf if is_even else 0.0
        for row in range(nrows if is_even else 0):
            least = min(least, table[row, col])
        price[col] = least if least < np.inf else 0.0
    for row in range(nrows):
        least, left = limit, waiting[row]
        for col in range(ncols):
            flow[row, col] = 0
            least = min(least, table[row, col] - price[col])
        for col in range(ncols):
            if left > 0 and spare[col] > 0 and table[row, col] - price[col] <= least:
                units = min(left, spare[col])
                flow[row, col] = units
                spare[col] -= units
                left -= units
        row_dual[row] = least
        waiting[row] = 0 if least == limit < np.inf else left


@kernel
def _ship_all(table, sides, room, limit):
    """Ship what waits by shortest paths; return the paths and entries read, or -1 if it cannot."""
    waiting = sides[1]
    paths = scans = 0
    for root in range(waiting.size):
        while waiting[root] > 0:
            sink, leaver, work = _grow(table, sides, room, limit, root)
            scans += work
            paths += 1
            if (sink < 0 and leaver < 0) or paths > PATIENCE * table.size:
                return -1, scans
            _augment(sides, room, root, sink, leaver)
    return paths, scans


@kernel
def _grow(table, sides, room, limit, root):
    """Find the nearest column that is not full, or row whose units may stay, and change the duals.

    via[row] is the column against whose flow a row is reached, pred[col] the row before a column.
    Returns the column and the row, -1 for none, and how many entries were read.
    """
    flow, _, spare, row_dual, price = sides
    offset, dist, via, pred, tree, reached = room
    nrows, ncols = table.shape
    for row in range(nrows):
        via[row] = _NONE
    for col in range(ncols):
        dist[col], pred[col], reached[col] = np.inf, _NONE, col
    via[root], offset[root], tree[0] = _ROOT, 0.0, root
    rows, scanned, settled, work = 1, 0, 0, 0
    leave, leaver, sink, front = limit - row_dual[root], root, -1, 0.0
    if limit == np.inf:
        leaver = -1
    while True:
        while scanned < rows:
            row = tree[scanned]
            scanned += 1
            work += ncols - settled
            base = front - row_dual[row]
            for place in range(settled, ncols):
                col = reached[place]
                there = max((table[row, col] - price[col]) + base, front)
                if there < dist[col]:
                    dist[col], pred[col] = there, row
        best, nearest = np.inf, -1
        for place in range(settled, ncols):
            there = dist[reached[place]]
            if there < best:
                best, nearest = there, place
        if best >= leave or nearest < 0:
            front = leave
            break
        front, col = best, reached[nearest]
        leaver = leaver if leave < np.inf else -1
        if spare[col] > 0:
            sink, leaver = col, -1
            break
        reached[nearest], reached[settled] = reached[settled], col
        settled += 1
        for row in range(nrows):
            if flow[row, col] > 0 and via[row] == _NONE:
                via[row], offset[row], tree[rows] = col, front, row
                rows += 1
                if limit - row_dual[row] + front < leave:
                    leave, leaver = limit - row_dual[row] + front, row
    if sink < 0 and leaver < 0:
        return sink, leaver, work
    for place in range(settled):
        price[reached[place]] -= front - dist[reached[place]]
    for place in range(rows):
        row_dual[tree[place]] += front - offset[tree[place]]
    return sink, leaver, work


@kernel
def _augment(sides, room, root, sink, leaver):
    """Ship the bottleneck of the path from the root to a column, or to a row whose units stay."""
    flow, waiting, spare, _, _ = sides
    via, pred = room[2], room[3]
    units = waiting[root] if sink < 0 else min(waiting[root], spare[sink])
    row = leaver if sink < 0 else pred[sink]
    while row != root:
        units = min(units, flow[row, via[row]])
        row = pred[via[row]]
    waiting[root] -= units
    row = leaver
    if sink >= 0:
        row = pred[sink]
        spare[sink] -= units
        flow[row, sink] += units
    while row != root:
        col = via[row]
        flow[row, col] -= units
        row = pred[col]
        flow[row, col] += units


@kernel
def _ship_at_limit(table, sides, masses, limit):
    """Ship units that stay by pairs that cost no more than the limit."""
    flow, _, spare, _, _ = sides
    nrows, ncols = table.shape
    for row in range(nrows):
        left = masses[row]
        for col in range(ncols):
            left -= flow[row, col]
        for col in range(ncols):
            units = min(left, spare[col])
            if units > 0 and table[row, col] <= limit:
                flow[row, col] += units
                spare[col] -= units
                left -= units


@kernel
def _settle_duals(table, row_dual, price, limit, is_even, is_exact):
    """Lower prices so that none is above 0; make the duals of rows fair, and less the limit."""
    nrows, ncols = table.shape
    if is_even:
        greatest = -np.inf
        for col in range(ncols):
            greatest = max(greatest, price[col])
        for col in range(ncols):
            price[col] -= max(greatest, 0.0)
    base = limit if limit < np.inf else 0.0
    for row in range(nrows):
        least = limit
        for col in range(ncols):
            if table[row, col] < np.inf:
                least = min(least, difference_below(table[row, col], price[col]))
        row_dual[row] = difference_below(least, base) if least < np.inf else 0.0


@kernel
def _prove(table, flow, masses, row_dual, price, limit, is_exact):
    """Return the cost in two floats, the gap, and True if the duals prove the flow."""
    supply, demand = masses
    nrows, ncols = table.shape
    total = rest = bound = bound_rest = lost = 0.0
    used = largest = shipped = 0.0
    for row in range(nrows):
        for col in range(ncols):
            if flow[row, col] > 0:
                total, rest, lost = add_paid(total, rest, lost, table[row, col], flow[row, col])
                if limit < np.inf:
                    units = flow[row, col]
                    bound, bound_rest, lost = add_paid(bound, bound_rest, lost, limit, units)
                used = max(used, abs(table[row, col]))
                shipped += flow[row, col]
        bound, bound_rest, lost = add_paid(bound, bound_rest, lost, row_dual[row], supply[row])
        largest = max(largest, abs(row_dual[row]))
    for col in range(ncols):
        bound, bound_rest, lost = add_paid(bound, bound_rest, lost, price[col], demand[col])
        largest = max(largest, abs(price[col]))
    if is_exact and lost > 0:
        return total, rest, np.inf, False
    if limit < np.inf and shipped > 0:
        used = max(used, abs(limit))
    gap = gap_above(total, rest, bound, bound_rest, lost)
    scale = max(used, min(largest, 4.0 * (min(nrows, ncols) + 1) * used))
    is_proven = gap == 0 or (not is_exact and 0 < gap <= ULPS * UNIT * shipped * scale)
    return total, rest, gap, is_proven


@kernel
def add_paid(high, low, lost, cost, units):
    """Add the product of a cost and units to a sum of two floats."""
    for part in (units >> _DIGIT << _DIGIT, units & ((1 << _DIGIT) - 1)):
        product, error = two_product(cost, float(part))
        high, low, lost = plus(high, low, lost, product)
        high, low, lost = plus(high, low, lost, error)
    return high, low, lost
