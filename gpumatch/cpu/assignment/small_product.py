"""Maximum product matchings of small square matrices, each tried in one compiled call.

A matrix of a hundred rows takes ten microseconds, and each step that goes through Python takes as
long. So all steps are one call here, on one thread. They are those of `engine` with its long trial,
and of `product`:

1. Offsets and columns are checked, and whether all weights are finite.
2. Rows and columns that are each other's cheapest are matched.
3. Rows bid without an epsilon, while that serves enough of them.
4. Shortest augmenting paths serve the rows that are left, while they may be expected to read few
   entries.
5. The prices become scales.

If already the paths of the first rows read too much, those of the columns may not: the rows of the
matrix bayer10 would read 820,000 entries, and its columns read 210,000. So the transposed matrix is
tried then. If that does not do it either, or only the last rows' paths read too much, the engine
goes on from what the rows have come to, with its auction.

The arrays are those of `bidding` and `sparse_paths`, one after the other in a few:

    mates       row_to_col, col_to_row
    scales      what rows pay, then their scales; the columns' prices, then their scales
    integers    the queue, pred, near, tree, reached, heap
    floats      dist, keys
    told        the state of the queue; the spot; FREE and LEFT, the rows that wait before and after
                the bids
    ends        the mark; the ends of prices and the total, as `product` has them
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpumatch.contracts import Control
from gpumatch.cpu import csr
from gpumatch.cpu.assignment import bidding, engine, sparse_paths
from gpumatch.cpu.assignment.dense_paths import FOUND, HEAD, NEXT, SCANS, SPENT
from gpumatch.cpu.assignment.product import (
    ENDS,
    LEAST_PAID,
    LEAST_PRICE,
    MOST_PAID,
    MOST_PRICE,
    REST,
    TOTAL,
    look_up,
)
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.numba_tools.views import view
from gpumatch.cpu.surveys import are_canonical
from gpumatch.kept_memory import kept_empty

__all__ = ["SmallProduct", "solve"]

BIDS = 4
"""Bids without an epsilon for each row that waits in a round of them.

With 1, 4 and 12, the matrix kkt-5000 takes 1.1, 0.9 and 0.7 ms, teko_szdMat 8.9, 7.5 and 9.6, and
the columns of bayer10 4.5, 3.8 and 4.2.
"""
SERVED = 4 / 5
"""The share of the rows that a round of bids may leave waiting, if another is to follow."""
READS, MORE = 4, 2**16
"""Times all entries, and entries beside, that paths may be expected to read."""
FEW = engine.FEW
"""Rows left for which the engine holds no auction: paths may read anything for these."""
STEP, LEAST = 4, 2**12
"""Paths are asked each time when they have read a STEP-th of all entries, and LEAST at least."""

SOLVED, DEAR, HARD, UNFIT = range(4)  # HARD: dear already at first
STATE, FREE, LEFT = 4, 4 + sparse_paths.SPOTS, 5 + sparse_paths.SPOTS
TOLD = np.array([FREE, LEFT, STATE + NEXT, bidding.SCANS, STATE + SCANS])
MARK = 2


class SmallProduct(NamedTuple):
    """Pairs, the logarithms of scales, and what the pairs cost in all.

    If that is None, some rows have no column yet. The columns have prices in place of scales, at
    which all pairs are tight.
    """

    row_to_col: np.ndarray
    col_to_row: np.ndarray
    row_log_scale: np.ndarray
    col_log_scale: np.ndarray
    total: float | None

    def transpose(self) -> SmallProduct:
        row_to_col, col_to_row, row_log_scale, col_log_scale, total = self
        return SmallProduct(col_to_row, row_to_col, col_log_scale, row_log_scale, total)


def solve(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, control: Control
) -> SmallProduct | None:
    """The cheapest full assignment of a square matrix, and its scales, as far as it is found.

    Offsets and columns are int32, and weights float64. None if this is no such matrix, or there is
    no full assignment.
    """
    outcome, found = _try(indptr, indices, weights, control)
    if outcome == HARD:
        turned = csr.transpose_values(indptr, indices, weights, indptr.size - 1)
        again, other = _try(*turned, control)
        found = other.transpose() if again == SOLVED else found
    return found if outcome != UNFIT else None


def _try(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, control: Control
) -> tuple[int, SmallProduct]:
    """How it ended, and what the rows have come to."""
    nrows, nnz = indptr.size - 1, indices.size
    mates, scales = np.empty((2, nrows), np.int32), np.empty((2, nrows))
    integers = kept_empty((1 << nrows.bit_length()) + 4 * nrows + nnz + 1, np.int32)
    floats = kept_empty(nrows + nnz + 1, np.float64)
    told, ends = np.zeros(LEFT + 1, np.int64), np.zeros(MARK + ENDS)
    each, step, most = BIDS * (1 + nnz // nrows), max(nnz // STEP, LEAST), READS * nnz + MORE
    outcome = _solve(
        indptr, indices, weights,  # IN
        mates, scales, integers, floats, told, ends,  # OUT
        each, step, most, FEW,  # IN
    )  # fmt: skip
    total = None
    if outcome != UNFIT:
        free, left, served, looks, scans = told[TOLD].tolist()
        matched = nrows - left
        control.phase(found=free - left, matched=matched, step="bids", scans=looks)
        control.phase(found=served, matched=matched + served, step="trial", scans=scans)
    if outcome == SOLVED:
        total = float(ends[MARK + TOTAL] + ends[MARK + REST])
    return outcome, SmallProduct(mates[0], mates[1], scales[0], scales[1], total)


@kernel
def _solve(
    indptr, indices, weights, mates, scales, integers, floats, told, ends, each, step, most, few
):  # fmt: skip
    """All steps; how it ended."""
    nrows, nnz = indptr.size - 1, indices.size
    row_to_col, col_to_row = view(mates, (0, 0), nrows), view(mates, (1, 0), nrows)
    paid, price = view(scales, (0, 0), nrows), view(scales, (1, 0), nrows)
    size = integers.size - 4 * nrows - nnz - 1
    queue, rest = view(integers, 0, size), view(integers, size, 4 * nrows + nnz + 1)
    state, spot = view(told, 0, STATE), view(told, STATE, sparse_paths.SPOTS)

    if not _is_fit(indptr, indices, weights):
        return UNFIT
    spread = _begin(indptr, indices, weights, row_to_col, col_to_row, price)
    if not spread < np.inf:
        return UNFIT
    sparse_paths.take_cheapest(
        indptr, indices, weights, price, np.inf, row_to_col, col_to_row, paid, 0, nrows
    )
    told[FREE] = state[bidding.COUNT] = _wait(row_to_col, queue)
    _bid(indptr, indices, weights, row_to_col, col_to_row, price, queue, state, spread, each)
    told[LEFT] = _wait(row_to_col, queue)
    spot[HEAD] = -1
    outcome = _serve(
        indptr, indices, weights, row_to_col, col_to_row, price, view(queue, 0, told[LEFT]), spot,
        view(ends, 0, MARK), rest, floats, step, most, few,
    )  # fmt: skip
    if outcome == SOLVED:
        _scale(indptr, indices, weights, row_to_col, price, paid, queue, view(ends, MARK, ENDS))
    return outcome


@kernel
def _is_fit(indptr, indices, weights):
    """Whether these are the arrays of a matrix in canonical CSR, and all weights are finite."""
    nrows = indptr.size - 1
    is_fit = (indptr[0] == 0) & (indptr[nrows] == indices.size)
    for row in range(nrows):
        is_fit &= indptr[row] <= indptr[row + 1]
    if not (is_fit and are_canonical(indptr, indices, nrows, 0, nrows)):
        return False
    for entry in range(indices.size):
        is_fit &= abs(weights[entry]) < np.inf
    return is_fit


@kernel
def _begin(indptr, indices, weights, row_to_col, col_to_row, price):
    """Price the columns at their least weights; the range of all, inf if a column has none."""
    nrows = row_to_col.size
    row_to_col[:] = -1
    col_to_row[:] = -1
    price[:] = np.inf
    sparse_paths.lower_to_minima(indptr, indices, weights, price, 0, nrows)
    low, dearest, high = np.inf, -np.inf, -np.inf
    for col in range(nrows):
        low, dearest = lesser(low, price[col]), greater(dearest, price[col])
    for entry in range(indices.size):
        high = greater(high, weights[entry])
    return high - low if dearest < np.inf else np.inf


@kernel
def _wait(row_to_col, queue):
    """Put the free rows into the queue; how many there are."""
    count = 0
    for row in range(row_to_col.size):
        queue[count] = row
        count += row_to_col[row] < 0
    return count


@kernel
def _bid(indptr, indices, weights, row_to_col, col_to_row, price, queue, state, spread, each):
    """Rounds of bids that look at so many entries for each waiting row, while they serve enough."""
    none, nothing = view(price, 0, 0), view(queue, 0, 0)
    waiting, is_worth_it = state[bidding.COUNT], True
    while waiting > 0 and is_worth_it:
        before = waiting
        bidding.hold(
            indptr, indices, weights, none, price, row_to_col, col_to_row, nothing, queue, state,
            0.0, spread, 0.0, False, np.inf, -np.inf, 0, each * before,
        )  # fmt: skip
        waiting = state[bidding.COUNT]
        is_worth_it = waiting <= SERVED * before


@kernel
def _serve(
    indptr, indices, weights, row_to_col, col_to_row, price, free, spot, mark, rest, floats,
    step, most, few,
):  # fmt: skip
    """Shortest augmenting paths for the free rows, while these are cheap; how it ended."""
    nrows, nnz = row_to_col.size, indices.size
    pred, near = view(rest, 0, nrows), view(rest, nrows, nrows)
    tree, reached = view(rest, 2 * nrows, nrows), view(rest, 3 * nrows, nrows)
    heap, no_owner = view(rest, 4 * nrows, nnz + 1), view(rest, 0, 0)
    dist, keys = view(floats, 0, nrows), view(floats, nrows, nnz + 1)
    dist[:] = np.inf
    outcome, is_cheap = SPENT if free.size else FOUND, True
    while outcome == SPENT and is_cheap:
        outcome = sparse_paths.augment(
            indptr, indices, weights, price, row_to_col, col_to_row, free, spot, mark,
            no_owner, 0, dist, pred, near, keys, heap, tree, reached,
            0.0, False, -np.inf, np.inf, step,
        )  # fmt: skip
        served = spot[NEXT]
        is_cheap = free.size - served <= few or spot[SCANS] * free.size <= most * (served + 1)
    if outcome == SPENT:
        return DEAR if 2 * spot[NEXT] > free.size else HARD
    return SOLVED if outcome == FOUND else UNFIT


@kernel
def _scale(indptr, indices, weights, row_to_col, price, paid, nothing, found):
    """Make scales of the prices and of what the rows pay, as `product` does."""
    look_up(
        indptr, indices, weights, view(nothing, 0, 0), view(price, 0, 0), row_to_col, price,
        0, row_to_col.size, paid, found,
    )  # fmt: skip
    middle = found[LEAST_PRICE] + found[MOST_PRICE] - found[LEAST_PAID] - found[MOST_PAID]
    for col in range(price.size):
        price[col] -= middle / 4
    for row in range(paid.size):
        paid[row] -= price[row_to_col[row]]
