"""Bids in a dense cost matrix by the columns that each row knows (`candidates`).

A row bids for its cheapest known column, without reading its line, as long as that column is within
the bound. Else it looks again: it then knows the columns that are cheapest now. So bids are those
of an auction in the whole matrix, but few rows are read.

A look takes longer than reading a line for its least two reduced costs. Where rows outbid each
other by more than their known columns differ in, no row can bid a second time by what it has found.
So the rows of an auction only read their lines, for one bid each, unless the looks of the phase
have led to so many bids without a look that they pay. A few rows look nevertheless, to tell.

    terms        (limit, leaves): the price of taking no column, and whether a row may
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.assignment.dense.candidates import KNOWN, look_again, start_of
from gpumatch.cpu.numba_tools.atomics import cas, load, store
from gpumatch.cpu.numba_tools.compiled import inlined, kernel, vector_kernel
from gpumatch.cpu.numba_tools.prefetch import prefetch
from gpumatch.cpu.numba_tools.vector_min import lesser
from gpumatch.cpu.searches.dense import first_col
from gpumatch.cpu.searches.paths import bid
from gpumatch.cpu.searches.state import (
    AHEAD,
    DONE,
    HEAD,
    KNEW,
    LOCKED,
    LOOKED,
    LOW,
    NEXT,
    SCANS,
    SPENT,
    WAITING,
)

__all__ = ["hold", "looks_pay", "part_slack", "reduce_rows"]

STRETCH = 128
"""Neighbouring columns whose least reduced cost is found at once when a line is read for a bid."""
SAMPLED = 16
"""One of so many rows looks at its line, whether looks pay or not."""
A_LOOK = 3000
"""Entries that are read for bids in the time that a look takes longer than reading a line.

A look takes 0.7, 1.1 and 2.8 µs in lines of 394, 1,000 and 2,000 columns, and a reading 0.1, 0.4
and 0.8 µs.
"""

FAR = np.inf


@inlined
def _least(line, price):
    """Return the least reduced cost of neighbouring columns."""
    least = FAR
    for col in range(price.size):
        least = lesser(least, line[col] - price[col])
    return least


@inlined
def _least_two(cols, costs, price):
    """Return the least two reduced costs of known columns, and these: -1 if there is none."""
    one = two = FAR
    first = second = -1
    for place in range(cols.size):
        there = costs[place] - price[cols[place]]
        if there < one:
            two, second = one, first
            one, first = there, cols[place]
        elif there < two:
            two, second = there, cols[place]
    return one, first, two, second


@vector_kernel
def _least_two_of_line(line, price, start, least):
    """Return the least reduced cost of a line, a column that has it, and the second least.

    Among equals, it takes one in the stretch of column ``start``, or in the first one after it. The
    column is -1 if another thread changes its price meanwhile.
    """
    count = 0
    for begin in range(0, price.size, STRETCH):
        end = begin + STRETCH
        least[count] = _least(line[begin:end], price[begin:end])
        count += 1
    one = _least_number(least[:count])
    stretch = start // STRETCH
    while least[stretch] > one:
        stretch = stretch + 1 if stretch + 1 < count else 0
    begin = stretch * STRETCH
    end = begin + STRETCH
    place = first_col(line[begin:end], price[begin:end], one)
    if place == price[begin:end].size:
        return one, -1, FAR  # another thread has lowered its price since
    col = begin + place
    after = col + 1
    least[stretch] = lesser(
        _least(line[begin:col], price[begin:col]), _least(line[after:end], price[after:end])
    )
    return one, col, _least_number(least[:count])


@inlined
def _least_number(numbers):
    least = FAR
    for place in range(numbers.size):
        least = lesser(least, numbers[place])
    return least


@vector_kernel
def reduce_rows(
    values, price, row_to_col, col_to_row, unmatched, spot, known, scratch, terms, most_scans,
    budget,
):  # fmt: skip
    """Let the unmatched rows bid for their cheapest columns, as in `searches.dense`."""
    cols, costs, bound = known
    limit, leaves = terms
    while spot[NEXT] < unmatched.size:
        if spot[SCANS] >= most_scans:
            return True
        if budget <= 0:
            return False
        row = unmatched[spot[NEXT]]
        one, col, two, other = _least_two(cols[row], costs[row], price)
        budget -= KNOWN
        if one > bound[row]:
            look_again(values, row, price, known, scratch)
            budget -= price.size
            continue
        spot[NEXT] += 1
        spot[SCANS] += 1
        if bound[row] < two:
            two, other = bound[row], -1
        bid(
            row, one, col, two, other, price, row_to_col, col_to_row, unmatched, spot, limit,
            leaves, FAR,
        )  # fmt: skip
    return True


@kernel
def looks_pay(looks, knew, ncols):
    """True if so many looks have led to so many bids without a look that they pay."""
    return knew * ncols >= looks * A_LOOK


@vector_kernel
def hold(
    values, price, row_to_col, col_to_row, known, scratch, queue, state,
    epsilon, jump, floor, few, budget,
):  # fmt: skip
    """Let the rows of a queue bid until ``few`` wait, as in `bidding`; return why it ended."""
    cols, costs, bound = known
    mask = queue.size - 1
    head, count, work = state[HEAD], state[WAITING], 0
    looks, knew, stale = state[LOOKED], state[KNEW], 0
    outcome = DONE
    while count > few:
        if work >= budget:
            outcome = SPENT
            break
        if count > AHEAD:
            later = queue[(head + AHEAD) & mask]
            for place in range(0, KNOWN, 8):  # a line of the cache
                prefetch(costs[later], place)
                prefetch(cols[later], place)
        row = queue[head]
        col, one, two, seen = -1, FAR, FAR, FAR
        for place in range(KNOWN):
            other = cols[row, place]
            price_there = price[other]
            there = costs[row, place] - price_there
            two = min(two, max(one, there))
            nearer = there < one
            col = other if nearer else col
            seen = price_there if nearer else seen
            one = min(one, there)
        work += KNOWN
        if one <= bound[row]:
            two = min(two, bound[row])
            knew += 1
        else:
            work += price.size
            stale += 1
            if looks_pay(looks, knew, price.size) or stale % SAMPLED == 0:
                look_again(values, row, price, known, scratch)
                looks += 1
                continue
            one, col, two = _least_two_of_line(
                values[row], price, start_of(values, row), scratch[0]
            )
            if col < 0:
                continue
            seen = price[col]
            if one < FAR and values[row, col] - seen > one:
                continue  # another thread has lowered it
        if one == FAR:
            head = (head + 1) & mask  # there is none
            count -= 1
            continue
        gap = max(two - one if two < FAR else jump, epsilon)
        loser = load(col_to_row, col)
        if loser == LOCKED or not cas(col_to_row, col, loser, LOCKED):
            continue
        if price[col] > seen or price[col] < seen:
            store(col_to_row, col, loser)
            continue
        lowered = seen - gap
        price[col] = lowered
        row_to_col[row] = col
        if loser >= 0:
            row_to_col[loser] = -1
        store(col_to_row, col, row)
        head = (head + 1) & mask
        if loser >= 0:
            queue[(head + count - 1) & mask] = loser
        else:
            count -= 1
        if lowered < floor:
            outcome = LOW
            break
    state[HEAD], state[WAITING] = head, count
    state[LOOKED], state[KNEW] = looks, knew
    state[SCANS] += work
    return outcome


@vector_kernel
def part_slack(
    values, price, row_to_col, col_to_row, known, scratch, epsilon, rounding, looks, first, last
):
    """Part the rows first to last from their mates if the slack of the pair exceeds epsilon.

    ``rounding`` is the share of costs and prices that may be an error of rounding. Rows whose known
    columns do not tell look again if ``looks`` is True; else they only read their lines.
    """
    cols, costs, bound = known
    for row in range(first, last):
        mate = row_to_col[row]
        if mate < 0:
            continue
        reduced = values[row, mate] - price[mate]
        fair = reduced - epsilon - rounding * (abs(reduced) + abs(price[mate]))
        one = _least_two(cols[row], costs[row], price)[0]
        if bound[row] < fair <= one and looks:
            look_again(values, row, price, known, scratch)
            one = _least_two(cols[row], costs[row], price)[0]
        elif bound[row] < fair <= one:
            one = _least(values[row], price)
        if one < fair:
            row_to_col[row] = -1
            col_to_row[mate] = -1
