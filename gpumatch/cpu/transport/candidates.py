"""The pairs of a dense transport problem that are worth an arc: those of little reduced cost.

    costs        matrix
    row_dual, col_dual   u, v: the duals at which pairs are compared
    best_cols, best_vals of shape (n, k): the columns of each row whose c - v is least, and these;
                         ``far`` where there are fewer
    best_rows, best_redc of shape (m, k): the rows of each column whose c - u - v is least, and
                         these
    scratch      as long as a row

A row is read twice, and the second time from the caches.
"""

from __future__ import annotations

from gpumatch.cpu.numba_tools.compiled import fused, vector_kernel
from gpumatch.cpu.numba_tools.vector_min import greater, lesser

__all__ = ["conjugate", "extremes", "find", "row_minima", "undercuts"]

BLOCK = 32
"""Values that are compared together."""
NOTHING = -1


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
    """Put a value into the place of the greatest one; return the greatest one then."""
    worst = 0
    for slot in range(1, values.size):
        if values[slot] > values[worst]:
            worst = slot
    values[worst], places[worst] = value, place
    greatest = values[0]
    for slot in range(1, values.size):
        greatest = greatest if greatest > values[slot] else values[slot]
    return greatest


@vector_kernel
def find(
    costs, col_dual, row_dual, best_cols, best_vals, best_rows, best_redc, bar, scratch,
    first, last,
):  # fmt: skip
    """Find the best columns of rows first to last, and offer these rows to all columns.

    ``bar`` holds the greatest value of each column. Values are compared in blocks, because few of
    them are kept. As many blocks as a row keeps values have a value of at most the greatest of
    these blocks' least ones, so no greater value is kept.
    """
    ncols = costs.shape[1]
    for row in range(first, last):
        least = _reduce(costs[row], col_dual, scratch)
        row_dual[row] = least
        vals, cols = best_vals[row], best_cols[row]
        far = vals[0]
        bound = _bound(scratch, vals, cols, far)
        most = far
        for begin in range(0, ncols, BLOCK):
            end = min(begin + BLOCK, ncols)
            hits = 0
            for col in range(begin, end):
                is_low = (scratch[col] <= bound) & (scratch[col] < most)
                hits += is_low | (scratch[col] - least < bar[col])
            if hits == 0:
                continue
            for col in range(begin, end):
                if scratch[col] <= bound and scratch[col] < most:
                    most = _keep(vals, cols, scratch[col], col)
                if scratch[col] - least < bar[col]:
                    bar[col] = _keep(best_redc[col], best_rows[col], scratch[col] - least, row)


@fused
def _bound(scratch, vals, cols, far):
    """Return a bound of the values to keep: the greatest of the least values of as many blocks.

    Without so many blocks it is ``far``. All of ``vals`` is ``far`` before and after.
    """
    if scratch.size < BLOCK * vals.size:
        return far
    bound = far
    for begin in range(0, scratch.size, BLOCK):
        least = scratch[begin]
        for col in range(begin, min(begin + BLOCK, scratch.size)):
            least = lesser(least, scratch[col])
        if least < bound:
            bound = _keep(vals, cols, least, 0)
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
