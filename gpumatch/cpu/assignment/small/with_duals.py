"""Small dense problems of a range, solved by one compiled call, with their duals.

Each problem is copied to a table, and solved there by `gpumatch.cpu.assignment.small.search`. A
problem with more rows than columns is transposed. One call solves the problems from ``first`` to
``last``, so several threads may each call it for other ranges.

If as many pairs as can be are wanted and some row has no path, the mates are a maximum matching.
The rows that unmatched rows reach by alternating paths, and the columns between them, then make the
second of the two problems of `gpumatch.problems.cardinality`. There each column must have a row, so
it is solved from the columns' side. The first, of all other rows and columns, is solved already.

What comes in, for problem k of B:

    values            the costs from problem ``first`` on in one array; this is compiled for each
                      dtype
    places[k]         START of the problem, if all costs are in one array; the step ACROSS to the
                      next row, ROWS, COLS
    sign              -1 if costs are to be maximised, else 1
    limit             the cost of an unmatched row; inf if it must be matched
    takes_equal       whether a row rather takes a column that costs as much as the limit
    most              pairs that cost more are forbidden
    largest           a greater magnitude makes a problem unfit; up to LARGEST_INTEGER, all are
                      integers
    room              memory to work in, of `scratch_size` numbers

What comes out, in the orientation and with the sign of the values, for at most N rows and M
columns. What a problem does not have is -1 or 0, and marks are as they came in, which is False:

    mates[k]          N columns of the rows, M rows of the columns
    numbers[k]        N duals of the rows, M duals of the columns, what the pairs of N rows cost
    totals[:, k]      OBJECTIVE, and GAP
    marks[k]          whether N rows and M columns are in the vertex cover; marks are None unless as
                      many pairs as can be are wanted: what they need is two fifths of the code,
                      which is not compiled then
    ends[:, k]        END: SOLVED, INFEASIBLE (a row has no column), or UNFIT: there is NaN, an
                      infinity of the wrong sign, or too large a number, or the duals leave more
                      than rounding; and SIZE, the pairs

If a problem is INFEASIBLE, its mates are REACHED for the rows of a Hall violator and for their
neighbours: what alternating paths reach from the unmatched rows of a maximum matching.

Integers up to ``largest`` are exact in floats, as `gpumatch.contracts` states. What a pair leaves
of its cost is then the dual of its row. At last their numbers and their objective become int64, in
the memory of the floats. If costs are floats, the row's least reduced cost is read off the table
and rounded down, because by rounding, what a pair leaves may be more. So the duals are fair, and
the gap, which is rounded up, is a bound (`gpumatch.numeric.gaps`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.contracts.batch import INFEASIBLE, LARGEST_INTEGER, REACHED, SOLVED, UNFIT
from gpumatch.cpu.assignment.small.proof import add_up_pairs
from gpumatch.cpu.assignment.small.search import (
    COL,
    LINKS,
    MATE,
    NEAR,
    NEAR_LINKS,
    NEAR_VECTORS,
    PAD,
    PRED,
    PRICE,
    TREE,
    VECTORS,
    begin_prices,
    dual_below,
    match_rows,
    rows_at_once,
    vectors_in,
    width_for,
)
from gpumatch.cpu.numba_tools.compiled import fused, strict_kernel, vector_kernel
from gpumatch.cpu.numba_tools.error_free import difference_below
from gpumatch.cpu.numba_tools.vector_min import lesser
from gpumatch.cpu.numba_tools.views import as_bytes, as_halves, as_integers, on_stack, view

__all__ = [
    "END",
    "ROWS",
    "SIZE",
    "START",
    "add_up_problem",
    "clear",
    "lower_to_zero",
    "scratch_size",
    "solve_range",
    "take_costs",
    "write",
]

AHEAD = 2**12
"""Costs of a problem that is brought into the caches while the one before it is solved, at least.

So many come from memory more slowly than they are copied.
"""
NEAR_FOUND = 2 * NEAR
_ZERO = np.int32(0)
START, ACROSS, ROWS, COLS = range(4)
OBJECTIVE, GAP = 0, 1
END, SIZE = 0, 1


def scratch_size(short: Any, longest: Any) -> Any:
    """Return how many numbers of scratch a problem of these sides needs, or each of several.

    For two tables, the vectors and links of many columns, what is found, and a list of each side.
    """
    return (short + VECTORS + LINKS + 1) * (short + longest + 2 * PAD)


@vector_kernel
def solve_range(
    values, places, sign, limit, takes_equal, most, largest, first, last, room,
    mates, numbers, totals, marks, ends,
):  # fmt: skip
    """Solve the problems from ``first`` to ``last``; return how many pairs there are."""
    most_rows = numbers.shape[1] - mates.shape[1]
    is_exact = largest <= LARGEST_INTEGER
    near_vectors, near_links = on_stack(0.0, NEAR_VECTORS), on_stack(_ZERO, NEAR_LINKS)
    near_found, come_to = on_stack(0, NEAR_FOUND), on_stack(0, 1)
    pairs = 0
    for k in range(first, last):
        start, across = places[k, START] - places[first, START], places[k, ACROSS]
        rows, cols = places[k, ROWS], places[k, COLS]
        turned = rows > cols
        nrows, ncols = (cols, rows) if turned else (rows, cols)
        width = width_for(ncols)
        table = view(room, 0, (nrows, width))
        begin = nrows * width
        if width <= NEAR:
            vectors = vectors_in(near_vectors, width)
            links = view(near_links, 0, (LINKS, width))
            found = view(near_found, 0, (2, nrows))
        else:
            vectors = view(room, begin, (VECTORS, width))
            begin += VECTORS * width
            links = view(as_halves(room), 2 * begin, (LINKS, width))
            begin += LINKS * width
            found = view(as_integers(room), begin, (2, nrows))
            begin += 2 * nrows
        rest = view(room, begin, room.size - begin)
        mate = view(mates, (k, 0), mates.shape[1])
        number = view(numbers, (k, 0), numbers.shape[1])
        clear(mate, number)
        ends[END, k] = UNFIT
        fit, complete = take_costs(
            values, start, across, turned, sign, largest, most, marks, table, vectors,
            links, ncols,
        )  # fmt: skip
        if not fit:
            continue
        reduces = nrows == ncols and limit == np.inf and (complete or marks is None)
        come_to[0] = 0
        next_start, length = _costs_of(places, first, k + 1, last)
        size = values.itemsize
        ahead = view(as_bytes(values), size * next_start, size * length), come_to
        stuck = match_rows(
            table, vectors, links, found, ncols, reduces, False, limit, takes_equal, np.inf, ahead
        )
        own, other = (most_rows, 0) if turned else (0, most_rows)
        if marks is None and stuck > 0:
            _name_violator(table, links, found, ncols, mate, own, other)
            ends[END, k] = INFEASIBLE
            continue
        if reduces:
            lower_to_zero(vectors, ncols)
        write(table, vectors, links, found, ncols, limit, is_exact, mate, number, own, other)
        if marks is not None:
            mark = view(marks, (k, 0), marks.shape[1])
            for row in range(nrows):
                mark[own + row] = True
            if stuck > 0:
                _solve_reached(
                    table, vectors, links, found, ncols, rest, mate, number, mark, own, other,
                    ahead,
                )  # fmt: skip
        pairs += add_up_problem(
            table, turned, sign, limit, is_exact, ncols, k, mates, numbers, totals, ends
        )
    return pairs


@fused
def add_up_problem(
    table, turned, sign, limit, is_exact, ncols, k, mates, numbers, totals, ends
):  # fmt: skip
    """Write what problem ``k`` costs and if its duals prove it; return how many pairs it has."""
    most_rows = numbers.shape[1] - mates.shape[1]
    most_cols = mates.shape[1] - most_rows
    own, other = (most_rows, 0) if turned else (0, most_rows)
    mate, number = view(mates, (k, 0), mates.shape[1]), view(numbers, (k, 0), numbers.shape[1])
    paid = view(number, most_rows + most_cols, most_rows)
    for row in range(table.shape[0]):
        col = mate[own + row]
        if col >= 0:
            paid[col if turned else row] = sign * table[row, col]
    size, total, rest, gap, is_proven = add_up_pairs(
        table, mate, number, own, other, ncols, limit, is_exact
    )
    total, rest = sign * total, sign * rest
    if not is_proven:
        clear(mate, number)
        ends[END, k] = UNFIT
        return 0
    ends[END, k], ends[SIZE, k] = SOLVED, size
    totals[OBJECTIVE, k], totals[GAP, k] = total + rest, gap
    if sign < 0:
        for vertex in range(most_rows + most_cols):
            number[vertex] = -number[vertex]
    if is_exact:
        integers, sums = as_integers(numbers), as_integers(totals)
        for place in range(number.size):
            integers[k, place] = np.int64(number[place])
        sums[OBJECTIVE, k] = np.int64(total) + np.int64(rest)
    return size


@vector_kernel
def clear(mate, number):
    """Remove all pairs, and set all duals to 0."""
    for vertex in range(mate.size):
        mate[vertex] = -1
    for place in range(number.size):
        number[place] = 0


@vector_kernel
def _costs_of(places, first, k, last):
    """Return where problem ``k`` starts, and its costs: 0 if they are few or beyond the range."""
    if k == last:
        return 0, 0
    size = places[k, ROWS] * places[k, ACROSS]
    return places[k, START] - places[first, START], size if size >= AHEAD else 0


@strict_kernel  # else the caller's is inherited, and NaN passes
def take_costs(
    values, start, across, turned, sign, largest, most, marks, table, vectors, links, ncols
):  # fmt: skip
    """Copy the costs to be minimised, and pad them; return if all are valid, and all allowed.

    The second answer holds only if the costs are not transposed and as many pairs as can be are
    wanted. If they are not transposed, the columns get their least costs as prices, because their
    rows are in the nearest cache.
    """
    nrows = table.shape[0]
    unfit, complete = False, True
    if turned:
        step = rows_at_once(table)
        for first in range(0, nrows, step):
            count = lesser(step, nrows - first)
            part = view(table, (first, 0), (count, table.shape[1]))
            for col in range(ncols):
                line = view(values, start + col * across + first, count)
                for row in range(count):
                    cost = sign * line[row]
                    unfit |= not ((abs(cost) <= largest) | (cost == np.inf))
                    if marks is not None:
                        cost = cost if cost <= most else np.inf
                    part[row, col] = cost
    else:
        begin_prices(vectors, links, np.inf)
        for row in range(nrows):
            begin = start + row * across
            line, costs = view(values, begin, ncols), view(table, (row, 0), ncols)
            for col in range(ncols):
                cost = sign * line[col]
                unfit |= not ((abs(cost) <= largest) | (cost == np.inf))
                if marks is not None:
                    cost = cost if cost <= most else np.inf
                    complete &= cost < np.inf
                costs[col] = cost
                price, before = vectors[PRICE, col], links[PRED, col]
                links[PRED, col] = row if cost < price else before
                vectors[PRICE, col] = cost if cost < price else price
    for row in range(nrows):
        for col in range(ncols, table.shape[1]):
            table[row, col] = np.inf
    return not unfit, complete


@vector_kernel
def lower_to_zero(vectors, ncols):
    """If all columns are matched, lower their prices so that none is above 0."""
    greatest = -np.inf
    for col in range(ncols):
        price = vectors[PRICE, col]
        greatest = price if price > greatest else greatest
    for col in range(vectors.shape[1]):
        vectors[PRICE, col] -= greatest


@fused
def write(table, vectors, links, found, ncols, limit, is_exact, mate, number, own, other):
    """Write pairs and duals: of the table's rows from ``own`` on, of its columns from ``other``."""
    base = limit if limit < np.inf else 0.0
    for row in range(found.shape[1]):
        col = found[COL, row]
        mate[own + row] = col
        if is_exact and col >= 0:
            number[own + row] = table[row, col] - vectors[PRICE, col] - base
            continue
        dual = lesser(dual_below(table, vectors, row, col, np.inf), limit)
        number[own + row] = difference_below(dual, base) if dual < np.inf else dual
    for col in range(ncols):
        row = links[MATE, col]
        mate[other + col] = row if row >= 0 else -1
        number[other + col] = vectors[PRICE, col]


@vector_kernel
def _solve_reached(
    table, vectors, links, found, ncols, room, mate, number, mark, own, other, ahead,
):  # fmt: skip
    """Solve the problem of the rows that unmatched rows reach, and of the columns between them."""
    nrows, integers = found.shape[1], as_integers(room)
    reached, between = view(integers, 0, nrows), view(integers, nrows, ncols)
    rows, cols = _reached(table, nrows, ncols, reached, between, mate, mark, own, other)
    # The rest is solved, but for its duals, which need not care for these columns.
    for k in range(cols):
        vectors[PRICE, between[k]] = -np.inf
    for row in range(nrows):
        if mark[own + row]:
            number[own + row] = dual_below(table, vectors, row, mate[own + row], np.inf)
    width = width_for(rows)
    part = view(room, -(-(nrows + ncols) // PAD) * PAD, (cols, width))
    for k in range(cols):
        for i in range(rows):
            part[k, i] = table[reached[i], between[k]]
        for i in range(rows, width):
            part[k, i] = np.inf
    # There are fewer columns, because all of them have mates among these rows, and some row has
    # none. So nothing is reduced. The vectors and links are needed no more.
    paid, joints = view(vectors, (0, 0), (VECTORS, width)), view(links, (0, 0), (LINKS, width))
    partners = view(found, (0, 0), (2, cols))
    match_rows(
        part, paid, joints, partners, rows, rows < cols, False, np.inf, False, np.inf, ahead
    )  # fmt: skip
    for i in range(rows):
        mate[own + reached[i]] = -1
        number[own + reached[i]] = paid[PRICE, i]
    for k in range(cols):
        partner = partners[COL, k]
        row = reached[partner]
        mate[own + row] = between[k]
        mate[other + between[k]] = row
        number[other + between[k]] = dual_below(part, paid, k, partner, np.inf)


@vector_kernel
def _reached(table, nrows, ncols, rows, cols, mate, mark, own, other):
    """List the rows that unmatched rows reach, and the columns between them; return both numbers.

    The cover is then the other rows and these columns.
    """
    tail = between = head = 0
    for row in range(nrows):
        if mate[own + row] < 0:
            mark[own + row] = False
            rows[tail] = row
            tail += 1
    while head < tail:
        row = rows[head]
        head += 1
        for col in range(ncols):
            if table[row, col] < np.inf and not mark[other + col]:
                mark[other + col] = True
                cols[between] = col
                between += 1
                partner = mate[other + col]
                mark[own + partner] = False
                rows[tail] = partner
                tail += 1
    return tail, between


@vector_kernel
def _name_violator(table, links, found, ncols, mate, own, other):
    """Mark the rows that unmatched rows reach, and the columns between them."""
    tail = head = 0
    for row in range(found.shape[1]):
        if found[COL, row] < 0:
            mate[own + row] = REACHED
            links[TREE, tail] = row
            tail += 1
    while head < tail:
        row = links[TREE, head]
        head += 1
        for col in range(ncols):
            if table[row, col] < np.inf and mate[other + col] != REACHED:
                mate[other + col] = mate[own + links[MATE, col]] = REACHED
                links[TREE, tail] = links[MATE, col]
                tail += 1
