"""What the duals of a small problem prove: the gap of its pairs, and if they are optimal."""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.compiled import fused, inlined, vector_kernel
from gpumatch.cpu.numba_tools.error_free import lost, two_sum
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.numeric.gaps import FINE, ULPS, UNIT

__all__ = ["add_up", "gap_above", "plus"]


@vector_kernel
def add_up(sign, limit, mate, number, paid, rows, most_rows, cols, is_exact):
    """Return the number of pairs, their cost, the gap, and if the duals prove them optimal.

    The cost is a sum of two floats. The gap is rounded up. It must be 0, or for floats no more than
    `gpumatch.numeric.gaps` calls proven, and not coarse.
    """
    size = 0
    total = rest = bound = bound_rest = lost = 0.0
    used = largest = 0.0
    for row in range(rows):
        dual = number[row]
        if mate[row] >= 0:
            total, rest, lost = plus(total, rest, lost, paid[row])
            used = greater(used, abs(paid[row]))
            largest = greater(largest, abs(dual))
            size += 1
        bound, bound_rest, lost = plus(bound, bound_rest, lost, dual)
    for col in range(cols):
        dual = number[most_rows + col]
        bound, bound_rest, lost = plus(bound, bound_rest, lost, dual)
        largest = greater(largest, abs(dual) if mate[most_rows + col] >= 0 else 0.0)
    if limit < np.inf:
        for _ in range(size):
            bound, bound_rest, lost = plus(bound, bound_rest, lost, limit)
        used = greater(used, abs(limit) if size > 0 else 0.0)
    gap = gap_above(sign * total, sign * rest, bound, bound_rest, lost)
    is_proven = gap == 0 if is_exact else is_within(gap, size, total, used, largest)
    return size, total, rest, gap, is_proven


@fused
def add_up_pairs(
    table, mate, number, own, other, ncols, limits, starts, is_whole, turned, sign, paid
):  # fmt: skip
    """The same for the pairs of a table, whose costs are to be minimised, by their slacks.

    ``mate`` and ``number`` have the rows of the table from ``own`` on, and its columns from
    ``other`` on. Duals are less the ``limits`` of rows and the ``starts`` of columns, of which one
    of each pair is 0, or None. What pairs cost is written to ``paid`` with its sign, by the table's
    columns if these are the rows of the problem. The duals of a pair and its limit are at most its
    cost, and those of unmatched vertices are at most 0. So the gap is a sum of numbers that are not
    below 0: the slacks of the pairs, and the magnitudes of the other duals. This is sooner found
    than sums of costs and duals, which cancel. A slack is wrong by less than 2**-50 of itself and
    of the rounding of a dual plus a limit. So is the sum of up to 2**22 of them by less than
    2**-30. If all numbers are whole, all is exact.
    """
    size = 0
    total = rest = gap = errors = used = 0.0
    for row in range(table.shape[0]):
        col, dual = mate[own + row], number[own + row]
        if col < 0:
            gap -= dual
            continue
        cost, price, less = table[row, col], number[other + col], 0.0
        paid[col if turned else row] = sign * cost
        if limits is not None:
            dual, error = two_sum(dual, limits[row])
            price, more = two_sum(price, starts[col])
            used = greater(used, greater(abs(limits[row]), abs(starts[col])))
            errors += abs(error) + abs(more)
            less = error + more
        there = cost - price
        gap += (there - dual) + (lost(cost, price, there) - less)
        total, lower = two_sum(total, cost)
        rest += lower
        used = greater(used, abs(cost))
        size += 1
    for col in range(ncols):
        if mate[other + col] < 0:
            gap -= number[other + col]
    if is_whole:
        return size, total, rest, gap, gap == 0
    if gap > 0 or errors > 0:
        gap = np.nextafter(gap * (1 + 2.0**-30) + errors * 2.0**-49, np.inf)
    if 0 <= gap <= ULPS * UNIT * size * used:  # whatever the duals are
        return size, total, rest, gap, True
    largest = 0.0
    for row in range(table.shape[0]):
        col = mate[own + row]
        if col >= 0:
            dual = greater(abs(number[own + row]), abs(number[other + col]))
            largest = greater(largest, dual)
    return size, total, rest, gap, is_within(gap, size, total, used, largest)


@inlined
def is_within(gap, size, total, used, largest):
    """Whether a gap of floats counts as proven, and is not coarse (`gpumatch.numeric.gaps`).

    ``used`` and ``largest`` are the largest magnitudes of costs and limits, and of duals.
    """
    unit = ULPS * UNIT * size
    is_fine = gap <= greater(unit * used, FINE * abs(total))
    is_small = gap <= unit * greater(used, lesser(largest, 4.0 * (size + 1) * used))
    return (gap >= 0) & is_fine & is_small


@inlined
def plus(high, low, lost, term):
    """Add a term to a sum of two floats (Neumaier), and what is rounded off the lower to ``lost``.

    ``lost`` is a sum of magnitudes.
    """
    total, error = two_sum(high, term)
    rest, error = two_sum(low, error)
    return total, rest, lost + abs(error)


@inlined
def gap_above(total, rest, bound, bound_rest, lost):
    """Return the difference of two sums of two floats, rounded up.

    ``lost`` is what was rounded off them, which is wrong by less than 2**-30 of itself, for up to
    2**22 terms. The sum of the three errors is wrong by less than 2**-50 of their magnitudes.
    """
    high, one = two_sum(total, -bound)
    low, two = two_sum(rest, -bound_rest)
    gap, three = two_sum(high, low)
    errors = abs(one) + abs(two) + abs(three)
    if errors == 0 and lost == 0:
        return gap
    more = ((one + two) + three) + (errors * 2.0**-49 + lost * (1 + 2.0**-30))
    return np.nextafter(gap + more, np.inf)
