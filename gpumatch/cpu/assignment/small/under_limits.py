"""Small dense problems of a range under limits, by bids and paths, with their duals.

An unmatched row costs its limit, and no pair that is taken costs more. Each problem is copied to a
table as in `gpumatch.cpu.assignment.small.with_duals`, which says what comes in and out. Its rows
bid there (`gpumatch.cpu.assignment.small.bids`). If a problem is transposed and each of its rows
has its own limit, these are what the columns of the table cost, so prices begin there. Limits are
never taken off costs, which might round: only duals are less the limits, rounded down.

    gates[k]    the limits of the rows of problem k, to be minimised and finite; one for all of
                them, or one for each. There may be one line for all problems.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts.batch import LARGEST_INTEGER, UNFIT
from gpumatch.cpu.assignment.small.bids import match_under_limit
from gpumatch.cpu.assignment.small.search import NEAR_LINKS, NEAR_VECTORS, width_for
from gpumatch.cpu.assignment.small.whole import are_whole
from gpumatch.cpu.assignment.small.with_duals import (
    ACROSS,
    COLS,
    END,
    NEAR_FOUND,
    ROWS,
    START,
    add_up_problem,
    clear,
    copy_costs,
    places_for,
    write,
)
from gpumatch.cpu.numba_tools.compiled import vector_kernel
from gpumatch.cpu.numba_tools.vector_min import lesser
from gpumatch.cpu.numba_tools.views import on_stack, view

__all__ = ["solve_range"]

_ZERO = np.int32(0)


@vector_kernel
def solve_range(
    values, places, sign, gates, largest, first, last, room, mates, numbers, totals, ends
):  # fmt: skip
    """Solve the problems from ``first`` to ``last``; return how many pairs there are."""
    most_rows = numbers.shape[1] - mates.shape[1]
    is_exact = largest <= LARGEST_INTEGER
    near_vectors, near_links = on_stack(0.0, NEAR_VECTORS), on_stack(_ZERO, NEAR_LINKS)
    near_found = on_stack(0, NEAR_FOUND)
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
        fit, near, far = copy_costs(values, start, across, turned, sign, largest, table, ncols)
        if not fit:
            continue
        gate = view(gates, (lesser(k, gates.shape[0] - 1), 0), gates.shape[1])
        limits, starts = view(rest, 0, nrows), view(rest, nrows, width)
        _take_limits(gate, turned, rows, limits, starts)
        match_under_limit(table, vectors, links, found, 0.0, limits, starts, -np.inf, np.inf)
        is_whole = is_exact or are_whole(values, start, across, rows, cols, near, far, gate)
        own, other = (most_rows, 0) if turned else (0, most_rows)
        write(
            table, vectors, links, found, ncols, 0.0, limits, starts, is_whole,
            mate, number, own, other,
        )  # fmt: skip
        pairs += add_up_problem(
            table, turned, sign, limits, starts, is_exact, is_whole, ncols, k,
            mates, numbers, totals, ends,
        )  # fmt: skip
    return pairs


@vector_kernel
def _take_limits(gate, turned, rows, limits, starts):
    """Write the limits of the table's rows, and the prices with which its columns begin."""
    has_own = gate.size > 1
    for row in range(limits.size):
        limits[row] = 0.0 if has_own and turned else gate[row if has_own else 0]
    for col in range(starts.size):
        starts[col] = gate[col] if has_own and turned and col < rows else 0.0
