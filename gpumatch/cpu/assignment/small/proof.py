"""What the duals of a small problem prove: the gap of its pairs, and if they are optimal."""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.compiled import inlined, vector_kernel
from gpumatch.cpu.numba_tools.error_free import two_sum
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
    unit = ULPS * UNIT * size
    is_fine = gap <= greater(unit * used, FINE * abs(total))
    is_small = gap <= unit * greater(used, lesser(largest, 4.0 * (size + 1) * used))
    is_proven = gap == 0 if is_exact else (gap >= 0) & is_fine & is_small
    return size, total, rest, gap, is_proven


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
