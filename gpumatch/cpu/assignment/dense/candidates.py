"""The columns that each row of a dense cost matrix knows: those that were cheapest when it looked.

Row i knows KNOWN columns, and a bound of all others: when it looked at its line of the matrix, none
of these had a reduced cost below ``bound[i]``. Prices only fall, so reduced costs only rise, and
the bound holds until the row looks again. As long as its cheapest known column is within the bound,
it is the cheapest of all, and the row need not read its line. `candidate_bids` and
`candidate_search` stand on that. Their prices, pairs, limit and all names that are not listed here
are those of `searches.dense` and `searches.sparse`.

    known        (cols, costs, bound): the columns that each row knows, and what they cost. Unused
                 places cost inf. Columns are in the order of the matrix, not of cost.
    scratch      (lanes, found, near): room for a look, of one thread

A look reads the line in lanes, in loops that compile to vector instructions, and then only the
lanes whose least reduced cost is among the lowest. Neighbouring columns belong to neighbouring
lanes, which are the numbers of a vector. How low is found by parting a range, because counting the
numbers within a level has no branch.

All numbers are float64, whatever the matrix holds. So integers are exact if sums of a few times the
largest cost are below 2**53.

References
----------
Bus, Tvrdík, *Look-back auction algorithm for the assignment problem and its distributed memory
implementation*, PDCS 2003: bidders that remember several columns, and what the next one costs.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.compiled import inlined, kernel, vector_kernel
from gpumatch.cpu.numba_tools.error_free import difference_below
from gpumatch.cpu.numba_tools.vector_min import greater, lesser

__all__ = [
    "KNOWN", "list_known", "look", "look_again", "look_at_all", "mark_fair", "price_rows",
    "start_of",
]  # fmt: skip

KNOWN = 40
"""Columns that a row knows, at most.

With 16, 24, 40 and 64, 5,000 rows of products of two factors (rank 4) take 0.60, 0.31, 0.22 and
0.23 s, and 5,000 points of a plane whose distances are maximised 1.99, 1.22, 1.28 and 0.94 s.
"""
WIDTH = 8
"""Columns of a lane, at least, if there are enough for that many lanes."""
LANES = 48
"""Lanes that a line is divided into, at least: several vectors."""
PARTS = 12
"""Times that the range of a level is parted, at most."""

FAR = np.inf
LARGEST = np.finfo(np.float64).max


@inlined
def _lower(lanes, line, price):
    """Lower the least reduced costs of lanes by a column of each."""
    for lane in range(price.size):
        lanes[lane] = lesser(lanes[lane], line[lane] - price[lane])


@inlined
def _lower_by_offers(lanes, line, price, dist, offset, front):
    """Lower them by the columns to which the row is a shorter way."""
    for lane in range(price.size):
        reduced = line[lane] - price[lane]
        is_offer = max(reduced + offset, front) < dist[lane]
        lanes[lane] = lesser(lanes[lane], reduced if is_offer else FAR)


@inlined
def _count_within(numbers, level):
    count = 0
    for place in range(numbers.size):
        count += numbers[place] <= level
    return count


@inlined
def _extent(numbers):
    """Return the least number and the greatest one that is finite: -inf if there is none."""
    least, greatest = FAR, -FAR
    for place in range(numbers.size):
        least = lesser(least, numbers[place])
        greatest = greater(greatest, numbers[place])
    if greatest == FAR:
        greatest = -FAR
        for place in range(numbers.size):
            if numbers[place] < FAR:
                greatest = greater(greatest, numbers[place])
    return least, greatest


@vector_kernel
def _levels(numbers, fewest, most):
    """Return two levels: at most ``most`` numbers are within the first, more within the second.

    At least ``fewest`` are within the first, if parting the range finds such a level. Below all
    numbers is -inf, and beyond all that are finite is inf.
    """
    least, greatest = _extent(numbers)
    within = _count_within(numbers, LARGEST)
    if within <= most:
        return greatest, FAR
    below, pull = _count_within(numbers, least), 1.0
    if below > most:
        return -FAR, least
    for _ in range(PARTS):
        share = (fewest - below) / (within - below)
        middle = least + (greatest - least) * share * pull
        count = _count_within(numbers, middle)
        if count > most:
            pull = pull * share if count == within else 1.0
            greatest, within = middle, count
        else:
            least, below, pull = middle, count, 1.0
            if count >= fewest:
                break
    return least, greatest


@vector_kernel
def look(line, price, way, start, scratch, cols, costs):
    """Find the columns of least reduced cost; return a bound of all others.

    Among equals, those from column ``start`` on come first. ``way`` is (dist, offset, front): only
    columns count to which the row is a shorter way; all if ``dist`` is empty.
    """
    dist, offset, front = way
    lanes, found, near = scratch
    ncols, room = price.size, costs.size
    nlanes = min(ncols, max(LANES, ncols // max(WIDTH, int(np.sqrt(ncols)) // 3)))
    lanes[:nlanes] = FAR
    for begin in range(0, ncols, nlanes):
        end = begin + nlanes
        if dist.size:
            _lower_by_offers(
                lanes, line[begin:end], price[begin:end], dist[begin:end], offset, front
            )
        else:
            _lower(lanes, line[begin:end], price[begin:end])
    bound, ties = _levels(lanes[:nlanes], room // 2, 5 * room // 8)
    is_tied = bound == -FAR
    if ties == FAR or _count_within(lanes[:nlanes], bound) < room // 4:
        bound = ties
    level, count = min(bound, LARGEST), 0
    if is_tied:
        for step in range(ncols):
            col = start + step if start + step < ncols else start + step - ncols
            found[count] = col
            count += _counts(line, price, way, col, level)
            if count == room:
                break
        return _keep(line, price, found[:count], lanes, cols, costs, bound)
    nnear, first = 0, start % nlanes
    for step in range(nlanes):
        lane = first + step if first + step < nlanes else first + step - nlanes
        near[nnear] = lane
        nnear += lanes[lane] <= level
    for place in range(nnear):
        col = near[place]
        while col < ncols:
            found[count] = col
            count += _counts(line, price, way, col, level)
            col += nlanes
    return _keep(line, price, found[:count], lanes, cols, costs, bound)


@inlined
def _counts(line, price, way, col, level):
    """True if a column is within the level, and the row is a shorter way to it."""
    dist, offset, front = way
    reduced = line[col] - price[col]
    counts = reduced <= level
    if dist.size:
        counts &= max(reduced + offset, front) < dist[col]
    return counts


@vector_kernel
def _keep(line, price, found, reduced, cols, costs, bound):
    """Keep the cheapest of the columns found, as many as there is room for; lower the bound."""
    room, kept, spare = costs.size, 0, 0
    low = high = FAR
    if found.size > room:
        for place in range(found.size):
            reduced[place] = line[found[place]] - price[found[place]]
        low, high = _levels(reduced[: found.size], room - room // 8, room)
        spare = room - _count_within(reduced[: found.size], low)
    for col in found:
        there = line[col] - price[col]
        is_spare = there > low
        if kept == room or there > high or (is_spare and spare == 0):
            bound = min(bound, there)
            continue
        spare -= is_spare
        cols[kept], costs[kept] = col, line[col]
        kept += 1
    for place in range(kept, room):
        cols[place], costs[place] = 0, FAR
    return bound


@vector_kernel
def look_again(values, row, price, known, scratch):
    """Let a row know the columns that are cheapest for it now."""
    cols, costs, bound = known
    way = price[:0], 0.0, 0.0
    start = start_of(values, row)
    bound[row] = look(values[row], price, way, start, scratch, cols[row], costs[row])


@inlined
def start_of(values, row):
    """Return where a row begins to choose among equals, so that rows spread over the columns."""
    return row * values.shape[1] // values.shape[0]


@vector_kernel
def look_at_all(values, price, known, scratch, first, last):
    """Let the rows first to last look at their lines."""
    for row in range(first, last):
        look_again(values, row, price, known, scratch)


@vector_kernel
def price_rows(values, price, row_dual, rise, known, scratch, is_short, first, last):
    """Mark the rows first to last for which a column costs less than their duals allow.

    Prices have risen by at most ``rise`` since bounds were right. A row looks at its line if its
    bound does not tell. All columns that cost less are then among those that it knows, if it knows
    so many. Returns how many rows have looked.
    """
    cols, costs, bound = known
    looks = 0
    for row in range(first, last):
        bound[row] -= rise
        if bound[row] < row_dual[row]:
            look_again(values, row, price, known, scratch)
            looks += 1
        least = FAR
        for place in range(costs.shape[1]):
            least = min(least, costs[row, place] - price[cols[row, place]])
        is_short[row] = least < row_dual[row]
    return looks


@kernel
def mark_fair(row_dual, price, margin, known, is_fair):
    """Mark the rows whose duals no column undercuts, by what the rows know.

    A bound must exceed the dual by ``margin``, which is what rounding may have cost it.
    """
    cols, costs, bound = known
    for row in range(row_dual.size):
        is_fair[row] = bound[row] - margin >= row_dual[row]
        for place in range(costs.shape[1]):
            if costs[row, place] < FAR:
                least = difference_below(costs[row, place], price[cols[row, place]])
                is_fair[row] &= least >= row_dual[row]


@vector_kernel
def list_known(cols, costs, keys, weights):
    """List the pairs that rows know, in the order of the matrix; return how many there are.

    ``keys`` are the row times the number of columns, which is that of rows, plus the column.
    """
    nrows, known = costs.shape
    count = 0
    for row in range(nrows):
        begin = count
        for place in range(known):
            cost = costs[row, place]
            if cost == FAR:
                continue
            key = row * nrows + np.int64(cols[row, place])
            at = count
            while at > begin and keys[at - 1] > key:
                keys[at], weights[at] = keys[at - 1], weights[at - 1]
                at -= 1
            keys[at], weights[at] = key, cost
            count += 1
    return count
