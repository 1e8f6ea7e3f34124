"""Bids and shortest paths in a dense cost matrix of which each row knows a few columns.

Row i knows KNOWN columns, and a bound of all others: when it looked at its line of the matrix, none
of these had a reduced cost below ``bound[i]``. Prices only fall, so reduced costs only rise, and
the bound holds until the row looks again. A row bids for its cheapest known column, without reading
its line, as long as that column is within the bound. Else it looks again: it then knows the columns
that are cheapest now. So bids are those of an auction in the whole matrix, but few rows are read.

A search is Dijkstra's with a heap, pruned as in `sparse.search`. The heap holds columns, and also
rows of the tree, at the distance from which on their unknown columns may matter. A row on top of
the heap looks at its line. If the search ends before, the line is not read. So paths are exact,
too: no entry is left out but by a bound. Prices, pairs, limit and all names that are not listed
here are those of `dense.search` and `sparse.search`.

    known        (cols, costs, bound): the columns that each row knows, and what they cost. Unused
                 places cost inf. Columns are in the order of the matrix, not of cost.
    scratch      (lanes, found, near): room for a look, of one thread
    search       (dist, pred, near, keys, heap, tree, reached), as in `sparse.search`. In the heap,
                 j is a column, ncols + i a row that is to look again, and ncols + nrows + i one
                 whose known columns are good, but not enough: it is to find the nearest columns
                 that this search may still reach by it.
    spare        (cols, costs): what it finds, which is not good for other searches
    terms        (limit, leaves)

A look reads the line in lanes, in loops that compile to vector instructions, and then only the
lanes whose least reduced cost is among the lowest. Neighbouring columns belong to neighbouring
lanes, which are the numbers of a vector. How low is found by parting a range, because counting the
numbers within a level has no branch.

A look takes longer than reading a line for its least two reduced costs. Where rows outbid each
other by more than their known columns differ in, no row can bid a second time by what it has found.
So the rows of an auction only read their lines, for one bid each, unless the looks of the phase
have led to so many bids without a look that they pay. A few rows look nevertheless, to tell.

All numbers are float64, whatever the matrix holds. So integers are exact if sums of a few times the
largest cost are below 2**53.

References
----------
Bus, Tvrdík, *Look-back auction algorithm for the assignment problem and its distributed memory
implementation*, PDCS 2003: bidders that remember several columns, and what the next one costs.
Jonker, Volgenant, *A shortest augmenting path algorithm for dense and sparse linear assignment
problems*, Computing 38, 1987.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.assignment.dense.search import first_col
from gpumatch.cpu.assignment.search.heap import drop_top, push
from gpumatch.cpu.assignment.search.paths import bid, turn
from gpumatch.cpu.assignment.search.state import (
    DONE,
    FOUND,
    FRONT,
    HEAD,
    KNEW,
    LEAVE,
    LEAVER,
    LEFT,
    LOCKED,
    LOOKED,
    LOW,
    NEAR,
    NEXT,
    REACHED,
    SCANS,
    SINK,
    SPENT,
    STUCK,
    TAIL,
    WAITING,
)
from gpumatch.cpu.assignment.sparse.bidding import AHEAD
from gpumatch.cpu.numba_tools.atomics import cas, load, store
from gpumatch.cpu.numba_tools.compiled import inlined, kernel, vector_kernel
from gpumatch.cpu.numba_tools.prefetch import prefetch
from gpumatch.cpu.numba_tools.vector_min import greater, lesser

__all__ = ["KNOWN", "augment", "hold", "look_at_all", "looks_pay", "part_slack", "reduce_rows"]

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
STALE = 1 / 4
"""The share of known columns beyond the bound from which on a row looks again."""
STRETCH = 128
"""Neighbouring columns whose least reduced cost is found at once when a line is read for a bid."""
SAMPLED = 16
"""One of so many rows looks at its line, whether looks pay or not."""
A_LOOK = 3000
"""Entries that are read for bids in the time that a look takes longer than reading a line.

A look takes 0.7, 1.1 and 2.8 µs in lines of 394, 1,000 and 2,000 columns, and a reading 0.1, 0.4
and 0.8 µs.
"""
A_STEP = 4
"""Entries of a line that are read while a search tries one column."""

FAR = np.inf
LARGEST = np.finfo(np.float64).max
KNOWS, LOOKS, SEEKS = range(3)  # what a row offers: what it knows, after a look, for this search


# -- looks -----------------------------------------------------------------------------------------


@inlined
def _least(line, price):
    """Return the least reduced cost of neighbouring columns."""
    least = FAR
    for col in range(price.size):
        least = lesser(least, line[col] - price[col])
    return least


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
def _look_again(values, row, price, known, scratch):
    """Let a row know the columns that are cheapest for it now."""
    cols, costs, bound = known
    way = price[:0], 0.0, 0.0
    start = _start(values, row)
    bound[row] = look(values[row], price, way, start, scratch, cols[row], costs[row])


@inlined
def _start(values, row):
    """Return where a row begins to choose among equals, so that rows spread over the columns."""
    return row * values.shape[1] // values.shape[0]


@vector_kernel
def look_at_all(values, price, known, scratch, first, last):
    """Let the rows first to last look at their lines."""
    for row in range(first, last):
        _look_again(values, row, price, known, scratch)


# -- bids ------------------------------------------------------------------------------------------


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
    values, price, row_to_col, col_to_row, free, spot, known, scratch, terms, most_scans, budget
):
    """Let the unmatched rows bid for their cheapest columns, as in `dense.search`."""
    cols, costs, bound = known
    limit, leaves = terms
    while spot[NEXT] < free.size:
        if spot[SCANS] >= most_scans:
            return True
        if budget <= 0:
            return False
        row = free[spot[NEXT]]
        one, col, two, other = _least_two(cols[row], costs[row], price)
        budget -= KNOWN
        if one > bound[row]:
            _look_again(values, row, price, known, scratch)
            budget -= price.size
            continue
        spot[NEXT] += 1
        spot[SCANS] += 1
        if bound[row] < two:
            two, other = bound[row], -1
        bid(
            row, one, col, two, other, price, row_to_col, col_to_row, free, spot, limit, leaves, FAR
        )
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
                _look_again(values, row, price, known, scratch)
                looks += 1
                continue
            one, col, two = _least_two_of_line(values[row], price, _start(values, row), scratch[0])
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
            _look_again(values, row, price, known, scratch)
            one = _least_two(cols[row], costs[row], price)[0]
        elif bound[row] < fair <= one:
            one = _least(values[row], price)
        if one < fair:
            row_to_col[row] = -1
            col_to_row[mate] = -1


# -- paths -----------------------------------------------------------------------------------------


@vector_kernel
def _tidy(keys, heap, waiting, dist):
    """Drop from the heap what is out of date; return how many entries it has."""
    kept = 0
    for slot in range(waiting):
        key, code = keys[slot], heap[slot]
        if code >= dist.size or key <= dist[code]:
            push(keys, heap, kept, key, code)
            kept += 1
    return kept


@inlined
def _offset(values, price, dist, row_to_col, row):
    """Return the distance of a row in the tree less the reduced cost of its pair."""
    mate = row_to_col[row]
    return 0.0 if mate < 0 else dist[mate] - (values[row, mate] - price[mate])


@vector_kernel
def _grow(
    values, price, row_to_col, col_to_row, root, spot, mark, search, known, scratch, spare, terms,
    budget,
):  # fmt: skip
    """Grow the tree of ``root`` until no shorter path exists or the budget is spent.

    Returns what ended the search, and the work.
    """
    nrows, ncols = values.shape
    dist, pred, near, keys, heap, tree, reached = search
    limit, leaves = terms
    front, leave = mark[FRONT], mark[LEAVE]
    head, tail, nears = spot[HEAD], spot[TAIL], spot[NEAR]
    waiting, count = spot[WAITING], spot[REACHED]
    sink, leaver = spot[SINK], spot[LEAVER]
    row, offset, kind = -1, 0.0, KNOWS
    if head < 0:
        head = tail = nears = waiting = count = 0
        row, sink, leaver = root, -1, root if leaves else -1
        front, leave = -FAR, limit if leaves else FAR
    outcome, work = SPENT, 0
    while True:
        if row >= 0:
            cols, costs, rest = known[0][row], known[1][row], known[2][row]
            if kind == LOOKS:
                _look_again(values, row, price, known, scratch)
                rest = known[2][row]
            elif kind == SEEKS:
                cols, costs = spare
                way = dist, offset, front
                rest = look(values[row], price, way, _start(values, row), scratch, cols, costs)
            work += A_STEP * KNOWN + (ncols if kind != KNOWS else 0)
            if waiting + KNOWN >= keys.size:
                waiting = _tidy(keys, heap, waiting, dist)
            stale = 0
            for place in range(KNOWN):
                col = cols[place]
                reduced = costs[place] - price[col]
                stale += reduced > rest
                there = max(reduced + offset, front)  # but for rounding, it is not before
                if there >= leave or there >= dist[col]:
                    continue
                if dist[col] == FAR:
                    reached[count] = col
                    count += 1
                dist[col] = there
                pred[col] = row
                if col_to_row[col] < 0:
                    leave, sink, leaver = there, col, -1
                elif there <= front:
                    near[nears] = col
                    nears += 1
                else:
                    push(keys, heap, waiting, there, col)
                    waiting += 1
            if rest + offset < leave:
                is_good = kind != KNOWS or stale < STALE * KNOWN
                code = row + ncols + (nrows if is_good else 0)
                push(keys, heap, waiting, max(rest + offset, front), code)
                waiting += 1
        if work >= budget:
            break
        if head < nears and front < leave:
            col = near[head]
            head += 1
        else:
            if waiting == 0 or keys[0] >= leave:
                front = leave
                outcome = STUCK if leave == FAR else LEFT if leaver >= 0 else FOUND
                break
            key, col = keys[0], heap[0]
            waiting -= 1
            drop_top(keys, heap, waiting)
            row = -1
            if col < ncols and key > dist[col]:
                continue
            front = key
        kind = KNOWS if col < ncols else LOOKS if col < ncols + nrows else SEEKS
        if kind != KNOWS:
            row = (col - ncols) % nrows
            offset = _offset(values, price, dist, row_to_col, row)
            continue
        tree[tail] = col
        tail += 1
        row = col_to_row[col]
        offset = front - (values[row, col] - price[col])
        if leaves and limit + offset < leave:
            leave, leaver = limit + offset, row
    mark[FRONT], mark[LEAVE] = front, leave
    spot[HEAD], spot[TAIL], spot[NEAR] = head, tail, nears
    spot[WAITING], spot[REACHED] = waiting, count
    spot[SINK], spot[LEAVER] = sink, leaver
    return outcome, work


@vector_kernel
def augment(
    values, price, row_to_col, col_to_row, free, spot, mark, search, known, scratch, spare, terms,
    budget,
):  # fmt: skip
    """Match the rows of ``free`` by shortest augmenting paths, as far as the budget goes.

    Returns how it ended: FOUND if all rows are served, SPENT, or STUCK if a row has no path.
    """
    dist, pred, _, _, _, tree, reached = search
    while spot[NEXT] < free.size:
        root = free[spot[NEXT]]
        outcome, work = _grow(
            values, price, row_to_col, col_to_row, root, spot, mark, search, known, scratch, spare,
            terms, budget,
        )  # fmt: skip
        budget -= work
        spot[SCANS] += work
        if outcome == SPENT:
            return SPENT
        if outcome != STUCK:
            for col in tree[: spot[TAIL]]:
                price[col] += dist[col] - mark[FRONT]
            sink = spot[SINK] if outcome == FOUND else -1
            row = pred[sink] if outcome == FOUND else spot[LEAVER]
            turn(root, sink, row, pred, row_to_col, col_to_row)
        for col in reached[: spot[REACHED]]:
            dist[col] = FAR
        spot[HEAD] = -1
        if outcome == STUCK:
            return STUCK
        spot[NEXT] += 1
    return FOUND
