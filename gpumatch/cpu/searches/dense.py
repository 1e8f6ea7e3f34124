"""Shortest augmenting paths in a dense cost matrix: the kernels of Jonker and Volgenant.

Row i may take column j at ``costs[i, j]``, or take none at ``limit`` if ``leaves`` allows that.
With prices p of the columns, the reduced cost of a pair is costs[i, j] - p[j]. At all times, a
matched pair has the least reduced cost of its row. An unmatched column has the price 0, and a
matched one at most 0. If all rows and all columns must be matched, a column may have any price. So
no matching of the same rows is cheaper. The price of a column is its dual, and the least reduced
cost of a row is the dual of the row.

Columns are divided into lanes of neighbours, LANES of them at most. A row is read lane by lane, in
loops without a branch that compile to vector instructions. The loops run over slices, because Numba
checks for an index below 0 in any range that does not begin at 0. Only the least number of a lane
matters, and only lanes in which that is small are looked at again.

One row's search is Dijkstra's, with a tree of columns. All columns at the least distance join at
once, and the mate of a column that has joined is scanned. The path ends in an unmatched column, or
in a row of the tree for which taking none is cheaper.

    dist[j]      distance of column j from the root; ``low`` when it is in the tree
    least[k]     least distance outside the tree in lane k
    pred[j]      row from which column j is reached
    tree         columns in the order of joining: tree[:HEAD] are scanned, tree[HEAD:TAIL] wait
    reach[k]     distance of tree[k]
    unmatched    rows: unmatched[NEXT] is next, unmatched[:KEPT] wait for the next round
    spot         the integers NEXT, KEPT, HEAD, TAIL, LEAVER (the row that takes none), SCANS
    mark         the distances FRONT (of the last that joined) and LEAVE (of taking none)

``low`` and ``far`` are below and above every number: -inf and inf, or the ends of the integers'
range. A forbidden pair costs inf. Among integers there is none. So one step leads from any row to a
column of price 0, and prices and distances stay within a few times the largest cost.

`augment` takes ``pairs`` (price, row_to_col, col_to_row), ``room`` (dist, pred, least, tree, reach)
and ``terms`` (limit, leaves, low, far) as tuples.

Kernels stop after about ``budget`` entries. The mates are then a matching, and another call with
the same arrays goes on.

References
----------
Jonker, Volgenant, *A shortest augmenting path algorithm for dense and sparse linear assignment
problems*, Computing 38, 1987.
"""

from __future__ import annotations

from gpumatch.cpu.numba_tools.compiled import inlined, vector_kernel
from gpumatch.cpu.numba_tools.error_free import down, lost
from gpumatch.cpu.numba_tools.vector_min import lesser
from gpumatch.cpu.searches.paths import bid, turn
from gpumatch.cpu.searches.state import (
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
)

__all__ = [
    "BUDGET",
    "LANES",
    "augment",
    "fair_row_duals",
    "first_col",
    "lane_minima",
    "least_of_lanes",
    "lower_to_minima",
    "reduce_rows",
    "row_duals",
]

LANES = 32
"""Lanes of a row, at most: so few that the least of their row_dual costs next to nothing."""
WIDTH = 128
"""Columns of a lane, at least: 8 to 32 vectors. Fewer are not worth a loop."""
BUDGET = 2**26
"""Entries read between two returns to Python: a fifth of a second on a busy machine."""


@vector_kernel
def lower_to_minima(costs, price, nearest, first, last):
    """Lower prices to the least costs in rows first to last, and name the ``nearest`` rows."""
    for row in range(first, last):
        line = costs[row]
        for col in range(price.size):
            cheaper = line[col] < price[col]
            price[col] = line[col] if cheaper else price[col]
            nearest[col] = row if cheaper else nearest[col]


@vector_kernel
def row_duals(costs, price, least, far, row_dual, first, last):
    """Write the duals of rows first to last, their least reduced costs."""
    for row in range(first, last):
        lane_minima(costs[row], price, least, far)
        row_dual[row] = least_of_lanes(least)


@vector_kernel
def fair_row_duals(costs, price, least, far, row_dual, first, last):
    """Write the duals of rows first to last for costs that are floats, rounded down.

    Rounding keeps the order. So the least reduced cost is where the rounded one is least, and only
    lanes that have it are looked at again.
    """
    width = _lane_width(price.size)
    for row in range(first, last):
        line = costs[row]
        lane_minima(line, price, least, far)
        dual = least_of_lanes(least)
        error = 0.0
        for lane, begin in enumerate(range(0, price.size, width)):
            if least[lane] > dual or dual == far:
                continue
            end = begin + width
            error = lesser(error, _most_lost(line[begin:end], price[begin:end], dual))
        row_dual[row] = down(dual, error)


@inlined
def _most_lost(line, price, reduced):
    """Return the least rounding error of the columns of this reduced cost, at most 0."""
    error = 0.0
    for col in range(price.size):
        there = line[col] - price[col]
        here = lost(line[col], price[col], there)
        error = lesser(error, here if there == reduced else 0.0)
    return error


@inlined
def _lane_width(ncols):
    """Return the columns of a lane; the last lane may have fewer."""
    return max(WIDTH, -(-ncols // LANES))


@vector_kernel
def lane_minima(line, price, least, far):
    """Write the least reduced cost of each lane."""
    width = _lane_width(price.size)
    least[:] = far
    for lane, begin in enumerate(range(0, price.size, width)):
        end = begin + width
        least[lane] = _least_reduced(line[begin:end], price[begin:end], far)


@inlined
def _least_reduced(line, price, far):
    """Return the least reduced cost of neighbouring columns."""
    number = price.dtype.type
    least = far
    for col in range(price.size):
        least = lesser(least, number(line[col] - price[col]))
    return least


@vector_kernel
def least_of_lanes(least):
    """Return the least number of all lanes."""
    nearest = least[0]
    for lane in range(1, LANES):
        nearest = lesser(nearest, least[lane])
    return nearest


@vector_kernel
def least_two(line, price, least, far):
    """Return the least two reduced costs of a row, and their columns: -1 if there is none."""
    lane_minima(line, price, least, far)
    width = _lane_width(price.size)
    one = least_of_lanes(least)
    if one == far:
        return far, -1, far, -1
    lane = _first_lane(least, one)
    begin = lane * width
    end = begin + width
    first = begin + first_col(line[begin:end], price[begin:end], one)
    after = first + 1
    least[lane] = lesser(
        _least_reduced(line[begin:first], price[begin:first], far),
        _least_reduced(line[after:end], price[after:end], far),
    )
    two = least_of_lanes(least)
    if two == far:
        return one, first, far, -1
    begin = _first_lane(least, two) * width
    end = begin + width
    if two == one:
        begin = max(begin, after)
    return one, first, two, begin + first_col(line[begin:end], price[begin:end], two)


@inlined
def _first_lane(least, nearest):
    """Return the first lane that has the least number of all."""
    lane = 0
    while least[lane] > nearest:
        lane += 1
    return lane


@inlined
def first_col(line, price, reduced):
    """Return the first column of this reduced cost."""
    number = price.dtype.type
    first = price.size
    for col in range(price.size):
        is_such = number(line[col] - price[col]) == reduced
        first = min(first, col if is_such else price.size)
    return first


@vector_kernel
def reduce_rows(
    costs, price, row_to_col, col_to_row, unmatched, spot, least, limit, leaves, far, most_scans,
    budget,
):  # fmt: skip
    """Let the rows of ``unmatched`` bid for their cheapest columns, each until it has one or waits.

    Returns True when all have bid, or ``most_scans`` rows were scanned; False when the budget is
    spent.
    """
    while spot[NEXT] < unmatched.size:
        if spot[SCANS] >= most_scans:
            return True
        if budget <= 0:
            return False
        row = unmatched[spot[NEXT]]
        spot[NEXT] += 1
        spot[SCANS] += 1
        budget -= price.size
        one, col, two, other = least_two(costs[row], price, least, far)
        bid(
            row, one, col, two, other, price, row_to_col, col_to_row, unmatched, spot, limit,
            leaves, far,
        )  # fmt: skip
    return True


@vector_kernel
def _relax(line, price, offset, row, dist, pred, least, low, far):
    """Offer every column outside the tree the way through ``row``, and update ``least``."""
    width = _lane_width(dist.size)
    least[:] = far
    for lane, begin in enumerate(range(0, dist.size, width)):
        end = begin + width
        least[lane] = _relax_lane(
            line[begin:end], price[begin:end], offset, row, dist[begin:end], pred[begin:end],
            low, far,
        )  # fmt: skip


@inlined
def _relax_lane(line, price, offset, row, dist, pred, low, far):
    """Offer the columns of one lane the way through ``row``; return their least distance."""
    number = price.dtype.type
    least = far
    for col in range(dist.size):
        there = number((line[col] - price[col]) + offset)
        known, before = dist[col], pred[col]
        near = lesser(there, known)
        dist[col] = near
        pred[col] = row if there < known else before
        least = lesser(least, near if near > low else far)
    return least


@vector_kernel
def _join(front, dist, least, col_to_row, tree, reach, tail, low):
    """Let the columns within ``front`` join; return an unmatched one or -1, and the tail."""
    width = _lane_width(dist.size)
    for lane, begin in enumerate(range(0, dist.size, width)):
        if least[lane] > front:
            continue
        first, last = _span(dist[begin : begin + width], front, low)
        for col in range(begin + first, begin + last + 1):
            if dist[col] > front or dist[col] == low:
                continue
            if col_to_row[col] < 0:
                return col, tail
            dist[col] = low
            tree[tail] = col
            reach[tail] = front
            tail += 1
    return -1, tail


@inlined
def _span(dist, front, low):
    """Return the first and the last column within ``front`` that is outside the tree."""
    first, last = dist.size, -1
    for col in range(dist.size):
        is_near = (dist[col] <= front) & (dist[col] > low)
        first = min(first, col if is_near else dist.size)
        last = max(last, col if is_near else -1)
    return first, last


@vector_kernel
def _grow(costs, pairs, root, spot, mark, room, terms, budget):
    """Grow the tree of ``root`` until a path ends or the budget is spent.

    Returns what ended it, the sink (the unmatched column, or -1 if a row takes none), and the
    scans.
    """
    price, _, col_to_row = pairs
    dist, pred, least, tree, reach = room
    limit, leaves, low, far = terms
    scans = 0
    front, leave = mark[FRONT], mark[LEAVE]
    head, tail, leaver = spot[HEAD], spot[TAIL], spot[LEAVER]
    outcome, sink = SPENT, -1
    if head < 0:
        head = tail = 0
        front = low
        leave, leaver = (limit, root) if leaves else (far, -1)
        dist[:] = far
        _relax(costs[root], price, price.dtype.type(0), root, dist, pred, least, low, far)
        scans = 1
    nearest = least_of_lanes(least)
    while scans * dist.size < budget:
        if head == tail:
            front = max(front, nearest)
            if leave <= front and leaver >= 0:
                front, outcome = leave, LEFT
                break
            if front == far:
                outcome = STUCK
                break
        if nearest <= front:
            sink, tail = _join(front, dist, least, col_to_row, tree, reach, tail, low)
            if sink >= 0:
                outcome = FOUND
                break
        col = tree[head]
        head += 1
        row = col_to_row[col]
        line = costs[row]
        offset = front - (line[col] - price[col])
        if leaves and limit + offset < leave:
            leave, leaver = limit + offset, row
        _relax(line, price, offset, row, dist, pred, least, low, far)
        nearest = least_of_lanes(least)
        scans += 1
    mark[FRONT], mark[LEAVE] = front, leave
    spot[HEAD], spot[TAIL], spot[LEAVER] = head, tail, leaver
    return outcome, sink, scans


@vector_kernel
def augment(costs, pairs, unmatched, spot, mark, room, terms, budget):
    """Match the rows of ``unmatched`` by shortest augmenting paths, as far as the budget goes.

    Returns how it ended: FOUND if all rows are served, SPENT, or STUCK if a row has no path.
    """
    price, row_to_col, col_to_row = pairs
    _, pred, _, tree, reach = room
    while spot[NEXT] < unmatched.size:
        root = unmatched[spot[NEXT]]
        outcome, sink, scans = _grow(costs, pairs, root, spot, mark, room, terms, budget)
        budget -= scans * price.size
        spot[SCANS] += scans
        if outcome >= SPENT:
            return outcome
        for k in range(spot[TAIL]):
            price[tree[k]] += reach[k] - mark[FRONT]
        row = spot[LEAVER] if outcome == LEFT else pred[sink]
        turn(root, sink, row, pred, row_to_col, col_to_row)
        spot[NEXT] += 1
        spot[HEAD] = -1
    return FOUND
