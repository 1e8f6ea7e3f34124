"""Assignments whose duals are scales: what maximum product matchings need, on the CPU.

The costs are minus the logarithms of a matrix's entries, which span orders of magnitude. So the
engine tries for long to do without an auction. All rows must be matched. The dual of a column, its
price, then is the logarithm of its scale, and the dual of a row that of the row. A common factor
moves from the rows to the columns, or back, so that the middles of both are equal. What rounding
leaves of matched entries is taken off their rows.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import AssignmentTask
from gpumatch.cpu.assignment.sparse import engine as sparse_engine
from gpumatch.cpu.assignment.sparse.paths import FirstPairs
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.numeric.arrays import count_matched

__all__ = ["ENDS", "REST", "TOTAL", "look_up", "run", "shift_of"]

BUDGET = 2**25
"""Entries read between two returns to Python: under half a second."""
LEAST_PRICE, MOST_PRICE, LEAST_ROW_DUAL, MOST_ROW_DUAL, TOTAL, REST, ENDS = range(7)


def run(task: AssignmentTask) -> float | None:
    """Match all rows at least cost, and make the duals scales.

    Given pairs and prices are those of a trial. The duals of unmatched columns are undefined.
    Returns the total cost, or None if a row is unmatched.
    """
    entries, nnz, solution = task.costs.entries(), task.costs.nnz, task.solution
    row_to_col, (row_dual, price) = solution.row_to_col, solution.duals
    with Workers(task.threads, nnz) as workers:
        first = sparse_engine.run_for_prices(task, workers) or FirstPairs(row_to_col[:0], price[:0])
        if count_matched(row_to_col) < row_to_col.size:
            return None
        if row_to_col.size == 0:
            return 0.0
        count = workers.threads * (1 + nnz // (workers.threads * BUDGET))
        bounds = [row_to_col.size * share // count for share in range(count + 1)]
        found = np.zeros((count, ENDS))

        def look(share: int) -> None:
            look_up(
                *entries, *first, row_to_col, price, *bounds[share : share + 2],  # IN
                row_dual, found[share],  # OUT
            )  # fmt: skip

        def settle(share: int) -> None:
            rows = slice(*bounds[share : share + 2])
            row_dual[rows] -= price[row_to_col[rows]]

        workers.deal(look, count)
        price -= shift_of(found.min(axis=0).tolist(), found.max(axis=0).tolist())
        workers.deal(settle, count)
    return float(found[:, TOTAL].sum() + found[:, REST].sum())


def shift_of(low: list[float], high: list[float]) -> float:
    """Return what moves from the columns to the rows, by the ends that `look_up` finds."""
    return (low[LEAST_PRICE] + high[MOST_PRICE] - low[LEAST_ROW_DUAL] - high[MOST_ROW_DUAL]) / 4


@kernel
def look_up(
    indptr, indices, costs, first_mate, first_price, row_to_col, price, first, last, row_dual, found
):  # fmt: skip
    """Write what the pairs of rows first to last cost; find the ends of duals, and the total.

    ``row_dual`` gets the costs, from which the caller takes the prices. The first prices say what
    the first pairs cost. The total has two parts: the sum, and what rounding took from it (Knuth's
    TwoSum).
    """
    least_price = least = np.inf
    most_price = most = -np.inf
    total = rest = 0.0
    for row in range(first, last):
        mate = row_to_col[row]
        if first_mate.size > 0 and first_mate[row] == mate:
            cost = first_price[mate]
        else:
            place = 0
            for entry in range(indptr[row], indptr[row + 1]):
                place = entry if indices[entry] == mate else place
            cost = costs[place]
        row_dual[row] = cost
        least_price = lesser(least_price, price[mate])
        most_price = greater(most_price, price[mate])
        above = cost - price[mate]
        least, most = lesser(least, above), greater(most, above)
        both = total + cost
        added = both - total
        rest += (total - (both - added)) + (cost - added)
        total = both
    found[LEAST_PRICE], found[MOST_PRICE] = least_price, most_price
    found[LEAST_ROW_DUAL], found[MOST_ROW_DUAL] = least, most
    found[TOTAL], found[REST] = total, rest
