"""The cheapest pairs under a limit in a small dense table: rows bid, then paths match the rest.

Each row may take a column or stay unmatched at ``limit``, or at its own of ``limits``. Rows bid one
after the other (augmenting row reduction): a row takes its nearest column, and lowers the price of
that until its second nearest one, or the limit, is as near. The row that had the column bids next.
A row gives up if its nearest column is beyond the limit. It waits for a shortest augmenting path
(`gpumatch.cpu.assignment.small.search`) if it is tied between columns that others have, or if all
steps are used up. Most rows of a tracker's frame need one look and no path.

A first look checks a row's costs, too. So each cost is read once, and most are not read again:
there is no copy of the table. Under a limit, large costs do no harm, even infinite ones. Only what
is below ``floor`` must be refused, and NaN.

Prices begin at 0 or at ``starts`` and only fall, those of unmatched columns stay there, and a
matched column stays matched. A row that has a column is as near to no other, and not farther than
the limit, so prices and pairs are what a path may begin from. No row and column are both unmatched
at the end whose pair costs the limit or less: at price 0 that distance is the cost itself, and a
row that gives up has found no unmatched column within the limit. Such rows never need another look.
If columns begin at prices, these are limits of the columns, and those of the rows are 0. Rounding
keeps the sign of a difference, so a column whose pair costs its limit or less is within 0.

    table[i, j], vectors, links, found    as in `gpumatch.cpu.assignment.small.search`; the table
                                          need not be padded
    limit, limits[i]                      finite; ``limits`` and ``starts`` may be None
    starts[j]                             the price of column j to begin with
    floor                                 the least valid cost

Reference: Jonker and Volgenant, "A shortest augmenting path algorithm for dense and sparse linear
assignment problems", Computing 38, 1987.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.assignment.small.search import COL, MATE, PRICE, UNMATCHED, WAITS, augment_rows
from gpumatch.cpu.numba_tools.compiled import inlined, strict_kernel, vector_kernel
from gpumatch.cpu.numba_tools.two_least import two_least
from gpumatch.cpu.numba_tools.vector_min import lesser
from gpumatch.cpu.numba_tools.views import view

__all__ = ["bid_from", "look", "match_under_limit"]

STEPS = 1
"""Times that rows may lose their columns, for each row: then paths take over.

With 0, 1, 2 and 16, a uniform table of 300² takes 320, 290, 280 and 480 µs, one of squared
distances of points 42, 49, 50 and 50, and 50 × 80 4.1, 3.2, 3.2 and 3.2 (AMD EPYC 9004).
"""
_NONE = np.int32(2**31 - 1)


@vector_kernel
def match_under_limit(table, vectors, links, found, limit, limits, starts, floor, far):
    """Match the rows; False if a cost is not valid."""
    waiting = _bid(table, vectors, links, found, limit, limits, starts, floor)
    if waiting > 0:
        augment_rows(table, vectors, links, found, 0, False, limit, limits, True, far, None)
    return waiting >= 0


@vector_kernel
def _bid(table, vectors, links, found, limit, limits, starts, floor):
    """Let all rows bid; return how many wait for a path, or -1 if a cost is not valid."""
    nrows, width = table.shape
    for row in range(nrows):
        found[COL, row] = UNMATCHED
    for col in range(width):
        links[MATE, col] = col - width
        vectors[PRICE, col] = 0
        if starts is not None:
            vectors[PRICE, col] = starts[col]
    prices = view(vectors, (PRICE, 0), width)
    left = STEPS * nrows
    for row in range(nrows):
        least, second, col, fit = look(table, row, prices, floor)
        if not fit:
            return -1
        left = bid_from(
            table, links, prices, found, row, least, second, col, limit, limits, floor, np.inf, left
        )
    waiting = 0
    for row in range(nrows):
        waiting += found[COL, row] == WAITS
    return waiting


@vector_kernel
def bid_from(
    table, links, prices, found, row, least, second, col, limit, limits, floor, far, left
):  # fmt: skip
    """Let a row bid, and those that lose their columns; return how many more may lose theirs.

    ``least``, ``second`` and ``col`` are what a look at the row has found. The limit may be
    ``far`` if the row has an allowed column.
    """
    width = prices.size
    if limits is not None:
        limit = limits[row]
    while least <= limit:
        second = lesser(second, limit)
        mate = links[MATE, col]
        if mate >= 0 and (least == second or second == far or left == 0):
            mate = _least_mate(table, links, prices, row, least)
            if mate >= 0:
                found[COL, row] = WAITS
                break
            col = mate + width
        if second < far:
            prices[col] -= second - least
        found[COL, row] = col
        links[MATE, col] = row
        if mate < 0:
            break
        left -= 1
        found[COL, mate] = UNMATCHED
        row = mate
        if limits is not None:
            limit = limits[row]
        least, second, col, _ = look(table, row, prices, floor)
    return left


@strict_kernel  # else NaN passes
def look(table, row, prices, floor):
    """Return the distances of a row's nearest columns, the first, and if its costs are valid."""
    return two_least(view(table, (row, 0), prices.size), prices, floor)


@inlined
def _least_mate(table, links, prices, row, least):
    """Return the least mate of the columns at this distance: below 0 if one is unmatched."""
    mate = _NONE
    for col in range(prices.size):
        there = table[row, col] - prices[col]
        mate = lesser(mate, links[MATE, col] if there <= least else _NONE)
    return mate
