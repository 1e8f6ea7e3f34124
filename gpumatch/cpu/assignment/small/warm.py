"""One small square problem, begun from the pairs and prices of another, in one compiled call.

A pair is kept if its column is nearest to its row at the given prices, exactly. The other rows bid
(`gpumatch.cpu.assignment.small.bids`), and paths match those that wait. So rows whose costs have
not changed are looked at once, and a change costs a few paths. If more than one row in LOOSE must
be matched anew, or one of them cannot, the answer is COLD: then `solve_range` is as fast, or tells
why there is no assignment. It is the same if rows and columns differ. Then, or without prices, or
if not all rows must be matched, the start is only looked at.

BAD says that its mates are no matching, or a number is not finite.

    row_to_col[i]    column of row i to begin with, -1 for none
    price[j]         dual of column j to begin with, with the sign of the values; if there are more
                     rows than columns, of the rows, as they are only checked then
    all others       as in `gpumatch.cpu.assignment.small.with_duals`, for problem 0

The answer is SOLVED, UNFIT, COLD or BAD, in ends[END].
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts.batch import BAD, COLD, LARGEST_INTEGER, UNFIT
from gpumatch.cpu.assignment.small.bids import STEPS, bid_from, look
from gpumatch.cpu.assignment.small.search import (
    COL,
    LINKS,
    MATE,
    PRICE,
    VECTORS,
    WAITS,
    augment_rows,
    width_for,
)
from gpumatch.cpu.assignment.small.with_duals import (
    COLS,
    END,
    ROWS,
    add_up_problem,
    clear,
    lower_to_zero,
    take_costs,
    write,
)
from gpumatch.cpu.numba_tools.compiled import strict_kernel, vector_kernel
from gpumatch.cpu.numba_tools.views import as_halves, as_integers, view

__all__ = ["KEPT", "LOOSE", "solve_warm"]

KEPT = 2
"""The row of ``ends`` that says how many rows have kept their columns."""

LOOSE = 4
"""More than one row in so many that must be matched anew: it is as quick to begin from nothing."""


@vector_kernel
def solve_warm(
    values, places, sign, helps, largest, row_to_col, price, room, mates, numbers, totals, ends
):  # fmt: skip
    """Solve the problem; ``helps`` is False if the start is only to be looked at."""
    rows, cols = places[0, ROWS], places[0, COLS]
    if not _is_start(row_to_col, price, cols, view(as_integers(room), 0, cols)):
        ends[END, 0] = BAD
        return
    ends[END, 0] = COLD
    if rows != cols or not helps:
        return
    width, is_exact = width_for(cols), largest <= LARGEST_INTEGER
    table = view(room, 0, (rows, width))
    begin = rows * width
    vectors = view(room, begin, (VECTORS, width))
    begin += VECTORS * width
    links = view(as_halves(room), 2 * begin, (LINKS, width))
    begin += LINKS * width
    found = view(as_integers(room), begin, (2, rows))
    fit, _, _ = take_costs(
        values, 0, cols, False, sign, largest, np.inf, None, table, vectors, links, cols
    )
    if not fit:
        ends[END, 0] = UNFIT
        return
    for col in range(width):
        vectors[PRICE, col] = 0
    for col in range(cols):
        dual = sign * price[col]
        vectors[PRICE, col] = np.rint(dual) if is_exact else dual
        if not abs(dual) <= largest:
            return
    anew = _match(table, vectors, links, found, row_to_col)
    if anew < 0:
        return
    lower_to_zero(vectors, cols)
    mate, number = view(mates, (0, 0), mates.shape[1]), view(numbers, (0, 0), numbers.shape[1])
    clear(mate, number)
    write(
        table, vectors, links, found, cols, np.inf, None, None, is_exact, mate, number, 0, rows
    )  # fmt: skip
    add_up_problem(
        table, False, sign, None, None, is_exact, is_exact, cols, 0, mates, numbers, totals, ends
    )  # fmt: skip
    ends[KEPT, 0] = rows - anew


@strict_kernel  # else NaN passes
def _is_start(row_to_col, price, cols, holder):
    """Whether the mates are a matching, and all numbers finite."""
    for col in range(cols):
        holder[col] = -1
    for row in range(row_to_col.size):
        col = row_to_col[row]
        if col < -1 or col >= cols or (col >= 0 and holder[col] >= 0):
            return False
        if col >= 0:
            holder[col] = row
    finite = True
    for k in range(price.size):
        finite &= abs(price[k]) < np.inf
    return finite


@vector_kernel
def _match(table, vectors, links, found, row_to_col):
    """Match all rows, and return how many could not keep their columns; -1 if it does not pay."""
    nrows, width = table.shape
    prices = view(vectors, (PRICE, 0), width)
    for col in range(width):
        links[MATE, col] = col - width
    loose = 0
    for row in range(nrows):
        least, _, _, _ = look(table, row, prices, -np.inf)
        if least == np.inf:
            return -1
        col = row_to_col[row]
        if col >= 0 and table[row, col] - prices[col] <= least:
            found[COL, row] = col
            links[MATE, col] = row
        else:
            found[COL, row] = WAITS
            loose += 1
    if loose * LOOSE > nrows:
        return -1
    left = STEPS * nrows
    for row in range(nrows if loose > 0 else 0):
        if found[COL, row] == WAITS:
            least, second, col, _ = look(table, row, prices, -np.inf)
            left = bid_from(
                table, links, prices, found, row, least, second, col,
                np.inf, None, -np.inf, np.inf, left,
            )  # fmt: skip
    stuck = augment_rows(table, vectors, links, found, 0, True, np.inf, None, False, np.inf, None)
    return loose if stuck == 0 else -1
