"""The pairs of a dense transport problem that are worth an arc: those of little reduced cost.

    costs        matrix
    row_dual, col_dual   u, v: the duals at which pairs are compared
    best_cols, best_vals of shape (n, k): the columns of each row whose c - v is least, and these;
                         ``far`` where there are fewer
    best_rows, best_redc of shape (m, k): the rows of each column whose c - u - v is least, and
                         these
    scratch      as long as a row
    room         scratch, and two numbers of each lane: ``lows``, the least value of a row, and
                 ``tops``, the greatest bar

Of ``lanes`` lanes, lane k holds columns k, k + lanes, k + 2 lanes and so on.

A row is read twice, and the second time from the caches.
"""

from __future__ import annotations

from gpumatch.cpu.numba_tools.compiled import fused, vector_kernel
from gpumatch.cpu.numba_tools.vector_min import greater, lesser

__all__ = ["conjugate", "extremes", "find", "lanes_of", "row_minima", "undercuts"]

LANES = 64
"""Lanes at least, if there are as many columns."""
IN_LANE = 32
"""Columns in a lane, if there are many."""
NOTHING = -1


def lanes_of(ncols: int) -> int:
    """The lanes for so many columns."""
    return min(ncols, max(LANES, ncols // IN_LANE))


@fused
def _reduce(line, price, scratch):
    """Write costs less prices; return the least."""
    least = line[0] - price[0]
    for col in range(line.size):
        there = line[col] - price[col]
        scratch[col] = there
        least = lesser(least, there)
    return least


@fused
def _keep(values, places, value, place):
    """Put a value into its place among sorted ones, the greatest of which is greater.

    The greatest one leaves. Return the greatest one then.
    """
    slot = values.size - 1
    while slot > 0 and values[slot - 1] > value:
        values[slot], places[slot] = values[slot - 1], places[slot - 1]
        slot -= 1
    values[slot], places[slot] = value, place
    return values[values.size - 1]


@vector_kernel
def find(
    costs, col_dual, row_dual, best_cols, best_vals, best_rows, best_redc, bar, room, first, last
):
    """Find the best columns of rows first to last, and offer these rows to all columns.

    ``bar`` holds the greatest value of each column. A lane is looked at value by value only if its
    least value may be kept. As many lanes as a row keeps values have a value of at most the
    greatest of these lanes' least ones, so no greater value is kept.
    """
    scratch, lows, tops = room
    ncols, lanes = scratch.size, lows.size
    for lane in range(lanes):
        tops[lane] = _greatest(bar, lane, lanes)
    for row in range(first, last):
        least = _reduce(costs[row], col_dual, scratch)
        row_dual[row] = least
        _find_lows(scratch, lows)
        vals, cols = best_vals[row], best_cols[row]
        far = vals[0]
        bound = _bound(lows, vals, cols, far)
        most = far
        for lane in range(lanes):
            is_near = lows[lane] <= bound and lows[lane] < most
            if not is_near and lows[lane] - least >= tops[lane]:
                continue
            is_taken = False
            for col in range(lane, ncols, lanes):
                value = scratch[col]
                if value <= bound and value < most:
                    most = _keep(vals, cols, value, col)
                if value - least < bar[col]:
                    bar[col] = _keep(best_redc[col], best_rows[col], value - least, row)
                    is_taken = True
            if is_taken:
                tops[lane] = _greatest(bar, lane, lanes)


@fused
def _find_lows(values, lows):
    """Write the least value of each lane."""
    for lane in range(lows.size):
        lows[lane] = values[lane]
    for first in range(lows.size, values.size, lows.size):
        part = values[first : first + lows.size]
        for lane in range(part.size):
            lows[lane] = lesser(lows[lane], part[lane])


@fused
def _greatest(values, lane, lanes):
    """Return the greatest value of a lane."""
    most = values[lane]
    for place in range(lane, values.size, lanes):
        most = greater(most, values[place])
    return most


@fused
def _bound(lows, vals, cols, far):
    """Return a bound of the values to keep: the greatest of as many least values of lanes.

    Without so many lanes it is ``far``. All of ``vals`` is ``far`` before and after.
    """
    if lows.size < vals.size:
        return far
    bound = far
    for lane in range(lows.size):
        if lows[lane] < bound:
            bound = _keep(vals, cols, lows[lane], 0)
    for slot in range(vals.size):
        vals[slot], cols[slot] = far, 0
    return bound


@vector_kernel
def undercuts(
    costs, row_dual, col_dual, tolerance, vals, found_rows, found_cols, scratch, first, last
):  # fmt: skip
    """Find the pairs that cost less than their duals, a few of each row from first to last.

    Returns how many there are.
    """
    count = 0
    for row in range(first, last):
        bound = row_dual[row] - tolerance
        if _reduce(costs[row], col_dual, scratch) >= bound:
            continue
        cols = found_cols[count : count + vals.size]
        for slot in range(vals.size):
            vals[slot], cols[slot] = bound, NOTHING
        most = bound
        for col in range(scratch.size):
            if scratch[col] < most:
                most = _keep(vals, cols, scratch[col], col)
        for slot in range(vals.size):
            if cols[slot] != NOTHING:
                found_cols[count], found_rows[count] = cols[slot], row
                count += 1
    return count


@vector_kernel
def extremes(values, low, high):
    """Write the least and the greatest of some numbers into arrays of one."""
    least = most = values[0]
    for place in range(values.size):
        least = lesser(least, values[place])
        most = greater(most, values[place])
    low[0], high[0] = least, most


@vector_kernel
def row_minima(costs, col_dual, row_dual, scratch):
    """Write the least reduced cost of each row."""
    for row in range(costs.shape[0]):
        row_dual[row] = _reduce(costs[row], col_dual, scratch)


@vector_kernel
def conjugate(costs, rows, row_dual, col_dual):
    """Lower the dual of each column to the least of c - u in some rows."""
    for place in range(rows.size):
        line, dual = costs[rows[place]], row_dual[place]
        for col in range(line.size):
            col_dual[col] = lesser(col_dual[col], line[col] - dual)
