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
    limit             0 if a row may stay unmatched, inf if it must be matched; any other limit is
                      for `gpumatch.cpu.assignment.small.under_limits`
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
the memory of the floats. The same holds for floats that are integers in some unit
(`gpumatch.cpu.assignment.small.whole`), which float32 mostly is. Of other floats, the row's least
reduced cost is read off the table and rounded down, because by rounding, what a pair leaves may be
more. So the duals are fair, and the gap, which is rounded up, is a bound (`gpumatch.numeric.gaps`).
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
    price_columns,
    rows_at_once,
    vectors_in,
    width_for,
)
from gpumatch.cpu.assignment.small.whole import are_whole
from gpumatch.cpu.numba_tools.compiled import fused, inlined, strict_kernel, vector_kernel
from gpumatch.cpu.numba_tools.error_free import difference_below
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.numba_tools.views import as_bytes, as_halves, as_integers, on_stack, view

__all__ = [
    "COLS",
    "END",
    "NEAR_FOUND",
    "ROWS",
    "SIZE",
    "START",
    "add_up_problem",
    "clear",
    "copy_costs",
    "lower_to_zero",
    "places_for",
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
    values, places, sign, limit, most, largest, first, last, room,
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
        table, vectors, links, found, rest = places_for(
            room, near_vectors, near_links, near_found, nrows, width
        )
        mate = view(mates, (k, 0), mates.shape[1])
        number = view(numbers, (k, 0), numbers.shape[1])
        clear(mate, number)
        ends[END, k] = UNFIT
        fit, near, far = take_costs(
            values, start, across, turned, sign, largest, most, marks, table, vectors,
            links, ncols,
        )  # fmt: skip
        if not fit:
            continue
        reduces = nrows == ncols and limit == np.inf and (far < np.inf or marks is None)
        come_to[0] = 0
        next_start, length = _costs_of(places, first, k + 1, last)
        size = values.itemsize
        ahead = view(as_bytes(values), size * next_start, size * length), come_to
        stuck = match_rows(
            table, vectors, links, found, ncols, reduces, False, limit, False, np.inf, ahead
        )
        own, other = (most_rows, 0) if turned else (0, most_rows)
        if marks is None and stuck > 0:
            _name_violator(table, links, found, ncols, mate, own, other)
            ends[END, k] = INFEASIBLE
            continue
        if reduces:
            lower_to_zero(vectors, ncols)
        is_whole = is_exact or are_whole(values, start, across, rows, cols, near, far, None)
        write(
            table, vectors, links, found, ncols, limit, None, None, is_whole,
            mate, number, own, other,
        )  # fmt: skip
        if marks is not None:
            mark = view(marks, (k, 0), marks.shape[1])
            for row in range(nrows):
                mark[own + row] = True
            if stuck > 0:
                _solve_reached(
                    table, vectors, links, found, ncols, rest, is_whole, mate, number, mark, own,
                    other, ahead,
                )  # fmt: skip
        pairs += add_up_problem(
            table, turned, sign, None, None, is_exact, is_whole, ncols, k,
            mates, numbers, totals, ends,
        )  # fmt: skip
    return pairs


@inlined
def places_for(room, near_vectors, near_links, near_found, nrows, width):
    """Return a table, vectors, links, and what is found, of so many rows and columns, and the rest.

    Up to NEAR columns, all but the table are in the near memory.
    """
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
    return table, vectors, links, found, view(room, begin, room.size - begin)


@fused
def add_up_problem(
    table, turned, sign, limits, starts, is_exact, is_whole, ncols, k,
    mates, numbers, totals, ends,
):  # fmt: skip
    """Write what problem ``k`` costs and if its duals prove it; return how many pairs it has."""
    most_rows = numbers.shape[1] - mates.shape[1]
    most_cols = mates.shape[1] - most_rows
    own, other = (most_rows, 0) if turned else (0, most_rows)
    mate, number = view(mates, (k, 0), mates.shape[1]), view(numbers, (k, 0), numbers.shape[1])
    paid = view(number, most_rows + most_cols, most_rows)
    size, total, rest, gap, is_proven = add_up_pairs(
        table, mate, number, own, other, ncols, limits, starts, is_whole, turned, sign, paid
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
    """Do as `copy_costs`, and give the columns of a square problem their least costs as prices."""
    nrows = table.shape[0]
    if nrows != ncols or marks is not None:
        fit, near, far = copy_costs(values, start, across, turned, sign, largest, table, ncols)
        if marks is not None:
            far = _forbid(table, ncols, most, far)
            if nrows == ncols:
                price_columns(table, vectors, links, np.inf)
        return fit, near, far
    begin_prices(vectors, links, np.inf)
    near, far, is_wrong = np.inf, 0.0, False
    for row in range(nrows):  # which is in the nearest cache then
        line, costs = view(values, start + row * across, ncols), view(table, (row, 0), ncols)
        for col in range(ncols):
            cost = sign * line[col]
            near, far = lesser(near, abs(cost)), greater(far, abs(cost))
            is_wrong |= cost != cost
            costs[col] = cost
            price, before = vectors[PRICE, col], links[PRED, col]
            links[PRED, col] = row if cost < price else before
            vectors[PRICE, col] = cost if cost < price else price
    _pad(table, ncols)
    return not is_wrong and _are_valid(table, far, largest), near, far


@strict_kernel
def copy_costs(values, start, across, turned, sign, largest, table, ncols):
    """Copy the costs to be minimised, and pad them.

    Return if all are valid, their least magnitude, and the largest, which may be infinite.
    """
    nrows = table.shape[0]
    near, far, is_wrong = np.inf, 0.0, False
    if turned:
        step = rows_at_once(table)
        for first in range(0, nrows, step):
            count = lesser(step, nrows - first)
            part = view(table, (first, 0), (count, table.shape[1]))
            for col in range(ncols):
                line = view(values, start + col * across + first, count)
                for row in range(count):
                    cost = sign * line[row]
                    near, far = lesser(near, abs(cost)), greater(far, abs(cost))
                    is_wrong |= cost != cost
                    part[row, col] = cost
    else:
        for row in range(nrows):
            line, costs = view(values, start + row * across, ncols), view(table, (row, 0), ncols)
            for col in range(ncols):
                cost = sign * line[col]
                near, far = lesser(near, abs(cost)), greater(far, abs(cost))
                is_wrong |= cost != cost
                costs[col] = cost
    _pad(table, ncols)
    return not is_wrong and _are_valid(table, far, largest), near, far


@vector_kernel
def _are_valid(table, far, largest):
    """Return if no cost but infinity is above ``largest``; ``far`` is the largest magnitude."""
    if far < np.inf:
        return far <= largest
    wrong = False
    for row in range(table.shape[0]):
        for col in range(table.shape[1]):
            cost = table[row, col]
            wrong |= (cost < np.inf) & (abs(cost) > largest)
    return not wrong


@vector_kernel
def _forbid(table, ncols, most, far):
    """Forbid pairs that cost more than ``most``; return ``far``, infinity if there are any."""
    for row in range(table.shape[0]):
        costs = view(table, (row, 0), ncols)
        for col in range(ncols):
            cost = costs[col] if costs[col] <= most else np.inf
            far = greater(far, cost)
            costs[col] = cost
    return far


@inlined
def _pad(table, ncols):
    """Forbid all pairs of columns from ``ncols`` on."""
    for row in range(table.shape[0]):
        for col in range(ncols, table.shape[1]):
            table[row, col] = np.inf


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
def write(
    table, vectors, links, found, ncols, limit, limits, starts, is_whole, mate, number, own, other
):  # fmt: skip
    """Write pairs and duals: of the table's rows from ``own`` on, of its columns from ``other``.

    Duals of rows are less their ``limits``, and those of columns less their ``starts``, if there
    are any. The dual of an unmatched row means nothing if it must be matched.
    """
    for row in range(found.shape[1]):
        col = found[COL, row]
        mate[own + row] = col
        most = 0.0
        if col >= 0:
            most = table[row, col] - vectors[PRICE, col]
            if limits is not None:
                most = lesser(most, limits[row])  # by rounding, it may be more
        elif limits is not None:
            most = limits[row]
        is_known = is_whole or (col < 0 and limit == np.inf)
        dual = most if is_known else dual_below(table, vectors, row, most)
        if limits is not None:
            dual = difference_below(dual, limits[row])
        number[own + row] = dual
    for col in range(ncols):
        row = links[MATE, col]
        mate[other + col] = row if row >= 0 else -1
        price = vectors[PRICE, col]
        if starts is not None:
            price = difference_below(price, starts[col])
        number[other + col] = price


@vector_kernel
def _solve_reached(
    table, vectors, links, found, ncols, room, is_whole, mate, number, mark, own, other, ahead,
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
            col = mate[own + row]
            most = table[row, col] - vectors[PRICE, col]
            number[own + row] = most if is_whole else dual_below(table, vectors, row, most)
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
        most = part[k, partner] - paid[PRICE, partner]
        number[other + between[k]] = most if is_whole else dual_below(part, paid, k, most)


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
