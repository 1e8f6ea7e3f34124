"""Small sparse costs in one compiled call.

A matrix of some thousand entries takes ten microseconds, and each step of Python takes a good part
of one. So there is one call, on one thread. It checks the arrays of a caller, copies them, solves,
and writes pairs and duals. Its steps are those of `small_product`, for matrices of any shape:

1. The entries are copied, without those that are not allowed. If there are more rows than columns,
   the copy is transposed. If there are as many, a Hall violator must have rows, so CSC is
   transposed. Every number is read once, so what is checked is what is used.
2. Rows take unmatched columns that are cheapest. Of a square matrix, columns are first priced at
   their least costs. Otherwise unmatched columns keep the price 0.
3. Unmatched rows bid without an epsilon, while that serves enough of them.
4. Shortest augmenting paths serve the others, while they are expected to read few entries. Else
   the engine must solve the problem.

All costs are float64. Integers are exact in these up to the bound that the caller names.

    whole, real       memory to work in; `_sizes` says how much
    mates             columns of the rows, then rows of the columns; -1 if there is none. If a row
                      has no path, REACHED for the rows of a Hall violator and for their neighbours
    numbers           duals of the rows, duals of the columns, costs of the rows' pairs
    ends              ZEROS: stored zeros that were left out; SIZE: pairs; OBJECTIVE and GAP
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts.batch import (
    INFEASIBLE,
    LARGEST,
    LARGEST_PATH,
    REACHED,
    SOLVED,
    UNFIT,
)
from gpumatch.cpu.assignment.small.proof import add_up
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.numba_tools.views import as_integers, view
from gpumatch.cpu.own_csr import copy_offsets, int32_of
from gpumatch.cpu.searches import bidding
from gpumatch.cpu.searches import sparse as sparse_search
from gpumatch.cpu.searches.state import (
    FOUND,
    HEAD,
    NEXT,
    SCANS,
    SPENT,
    SPOTS,
    STUCK,
    WAITING,
)
from gpumatch.numeric.arrays import for_kernels

__all__ = ["MOST", "SmallSparse", "solve"]

MOST, MOST_OF_SQUARE, ROWS_OF_SQUARE = 2**19, 2**17, 2**11
"""Entries, and vertices, up to which one call is worth a try; entries and rows of a square matrix,
or of one that is nearly square.

Of 2,000 rows and 6,000 columns with 200,000 random entries, all rows have bid for unmatched columns
in 11 ms, where the engine takes 66 to 80. In square matrices the last rows get long paths: of 2,000
rows with 200,000 entries, they read all entries 13 times, and take as long as the engine. With 4 to
30 entries a row, 1,500 rows take 0.3 to 0.6 of the engine's time, 2,000 rows 0.6 to 0.8, 3,000 rows
0.9 to 1.1, and 5,000 rows 1.2 to 1.7.
"""
SPARE = 1 / 8
"""The share of the rows by which there must be more columns, or the matrix is as good as square."""
BIDS = 4
"""Bids without an epsilon for each unmatched row in a round of them."""
SERVED = 4 / 5
"""The share of its rows that a round of bids may leave unmatched if another follows."""
READS, MORE = 12, 2**16
"""Readings of all entries that all further paths may be expected to take, and entries beyond these.

All paths of random square matrices read the entries 3 times (300 rows with 5 to 100 entries each)
or 4 to 10 times (1,000 rows: 0.7 to 4 ms, where the engine takes 1.2 to 6).
"""
STEP = 2**11
"""Entries that paths read before they are judged again."""
FEW = 2
"""Rows that get their paths in any case: it takes longer to begin again."""

ZEROS, SIZE, OBJECTIVE, GAP, ENDS = range(5)


class SmallSparse(NamedTuple):
    """How a problem ended, as a problem of a batch does, and what was found.

    ``mates``, ``numbers`` and ``ends`` are as the header says. The last two are filled only if the
    call wanted them and the end is SOLVED.
    """

    end: int
    mates: np.ndarray
    numbers: np.ndarray
    ends: np.ndarray
    is_integer: bool

    @property
    def zeros(self) -> int:
        """The number of stored zeros that were left out."""
        return int(self.ends[ZEROS])


def solve(
    arrays: tuple[Any, Any, Any],
    shape: tuple[int, int],
    *,
    by_rows: bool,
    maximize: bool,
    drops_zeros: bool = False,
    wants_duals: bool = True,
) -> SmallSparse | None:
    """Find the cheapest full assignment of a sparse matrix in CSR, or in CSC if not `by_rows`.

    Parameters
    ----------
    arrays : (indptr, indices, data)
        As a caller gave them. They are checked here.
    drops_zeros : bool
        True if stored zeros are not entries.
    wants_duals : bool
        True if duals are written, and a Hall violator if there is no full assignment.

    Returns
    -------
    SmallSparse or None
        None if the arrays are not for this, whatever is wrong with them.
    """
    indptr, indices, data = int32_of(arrays[0]), int32_of(arrays[1]), arrays[2]
    if indptr is None or indices is None or not _is_fit(data):
        return None
    nrows, ncols = shape
    major, minor = shape if by_rows else shape[::-1]
    is_small = min(shape) > 0 and max(nrows, ncols, indices.size) <= MOST
    if is_small and abs(nrows - ncols) <= SPARE * min(shape):
        is_small = min(shape) <= ROWS_OF_SQUARE and indices.size <= MOST_OF_SQUARE
    if not is_small or indptr.size != major + 1:
        return None
    is_integer = data.dtype.kind != "f"
    weights = for_kernels(np.ascontiguousarray(data, np.float64))
    mates, numbers = np.empty(nrows + ncols, np.int32), np.empty(2 * nrows + ncols)
    ends, spots = np.zeros(ENDS), np.zeros((2, SPOTS), np.int64)
    wholes, reals = _sizes(major, minor, indices.size)
    largest = (LARGEST_PATH if is_integer else LARGEST) / min(shape)
    end = _solve(
        indptr, indices, weights, minor, by_rows,  # IN
        -1.0 if maximize else 1.0, drops_zeros, largest, is_integer, wants_duals,  # IN
        np.empty(wholes, np.int32), np.empty(reals), spots,  # memory
        mates, numbers, ends,  # OUT
    )  # fmt: skip
    if end == UNFIT:
        return None
    return SmallSparse(end, mates, numbers, ends, is_integer)


def _is_fit(data: Any) -> bool:
    """True if these are numbers that float64 may hold, in the order of this machine or not."""
    return (
        type(data) is np.ndarray
        and data.ndim == 1
        and data.dtype.kind in "biuf"
        and data.dtype.itemsize <= 8
    )


def _sizes(major: int, minor: int, size: int) -> tuple[int, int]:
    """Return the numbers of int32 and of float64 that `_solve` works in."""
    both = major + minor
    return 3 * size + 10 * both + 8, 3 * size + both + 8


@kernel
def _solve(
    indptr, indices, weights, minor, by_rows, sign, drops_zeros, largest, is_integer, wants_duals,
    whole, real, spots, mates, numbers, ends,
):  # fmt: skip
    """Solve the problem; return how it ended."""
    major, size = indptr.size - 1, lesser(indices.size, weights.size)
    few, many = lesser(major, minor), greater(major, minor)
    turned = major > minor or (wants_duals and major == minor and not by_rows)
    offsets, cols = view(whole, 0, major + 1), view(whole, major + 1, size)
    costs = view(real, 0, size)
    used = major + 1 + size
    if not copy_offsets(indptr, size, offsets):
        return UNFIT
    is_fit, zeros, low, high = _take(
        indices, weights, minor, sign, drops_zeros, offsets, cols, costs
    )  # fmt: skip
    ends[ZEROS] = zeros
    if not is_fit or greater(-low, high) > largest:
        return UNFIT
    if turned:
        offsets_of, rows_of = view(whole, used, minor + 1), view(whole, used + minor + 1, size)
        costs_of = view(real, size, size)
        _transpose(offsets, cols, costs, offsets_of, rows_of, costs_of)
        offsets, cols, costs = offsets_of, rows_of, costs_of
        used += minor + 1 + size
    entries, are_rows = (offsets, cols, costs), by_rows != turned
    row_to_col = view(mates, 0 if are_rows else many, few)
    col_to_row = view(mates, few if are_rows else 0, many)
    row_dual = view(numbers, 0 if are_rows else many, few)
    price = view(numbers, few if are_rows else 0, many)
    ring = 1
    while ring <= few:
        ring *= 2
    queue = view(whole, used, ring)
    used += ring
    _begin(entries, few == many, price, row_dual, row_to_col, col_to_row)
    left = _bid(entries, greater(high - low, 0.0), price, row_to_col, col_to_row, queue, spots)
    stuck = 0
    if left > 0:
        stuck = _augment(
            entries, left, price, row_to_col, col_to_row, queue, spots, wants_duals,
            view(whole, used, whole.size - used), view(real, 2 * size, real.size - 2 * size),
        )  # fmt: skip
    if stuck < 0:
        return UNFIT
    if stuck > 0:
        if wants_duals:
            _name_violator(entries, row_to_col, col_to_row, queue)
        return INFEASIBLE
    if not wants_duals:
        return SOLVED
    if few == many:
        highest = -np.inf
        for col in range(many):
            highest = greater(highest, price[col])
        for col in range(many):
            price[col] -= highest
    sparse_search.row_duals(*entries, price, np.inf, row_dual, 0, few)
    if not is_integer:
        sparse_search.fair_row_duals(*entries, price, np.inf, row_dual, 0, few)
    nrows = few if are_rows else many
    paid = view(numbers, few + many, nrows)
    _pay(entries, row_to_col, are_rows, sign, paid)
    number = view(numbers, 0, few + many)
    size, total, rest, gap, is_proven = add_up(
        sign, np.inf, mates, number, paid, nrows, nrows, few + many - nrows, is_integer
    )
    ends[SIZE], ends[OBJECTIVE], ends[GAP] = size, total + rest, gap
    if sign < 0:
        for vertex in range(few + many):
            number[vertex] = -number[vertex]
    if is_integer:
        integers = as_integers(numbers)
        for place in range(numbers.size):
            integers[place] = np.int64(numbers[place])
    return SOLVED if is_proven else UNFIT


@kernel
def _take(indices, weights, minor, sign, drops_zeros, offsets, cols, costs):
    """Copy the entries as costs to be minimised, and make the offsets theirs.

    Returns True if they are valid and those of a canonical matrix, the number of zeros that were
    dropped, and the range of the costs.
    """
    count, zeros, is_fit = 0, 0, True
    low, high = np.inf, -np.inf
    begin = offsets[0]
    for row in range(offsets.size - 1):
        end, before = offsets[row + 1], -1
        for entry in range(begin, end):
            col, cost = indices[entry], sign * weights[entry]
            is_fit &= (before < col) & (col < minor) & (cost > -np.inf)  # which no NaN is
            before = col
            is_zero = drops_zeros & (cost == 0)
            zeros += is_zero
            if is_fit and cost < np.inf and not is_zero:
                cols[count], costs[count] = col, cost
                count += 1
                low = cost if cost < low else low
                high = cost if cost > high else high
        begin = end
        offsets[row + 1] = count
    return is_fit, zeros, low, high


@kernel
def _transpose(offsets, cols, costs, by_col, rows, turned):
    """Write the transposed matrix, whose rows are in order, too."""
    for col in range(by_col.size):
        by_col[col] = 0
    for entry in range(offsets[offsets.size - 1]):
        by_col[cols[entry] + 1] += 1
    for col in range(1, by_col.size):
        by_col[col] += by_col[col - 1]
    for row in range(offsets.size - 1):
        for entry in range(offsets[row], offsets[row + 1]):
            place = by_col[cols[entry]]
            by_col[cols[entry]] += 1
            rows[place], turned[place] = row, costs[entry]
    for col in range(by_col.size - 1, 0, -1):
        by_col[col] = by_col[col - 1]
    by_col[0] = 0


@kernel
def _begin(entries, is_square, price, row_dual, row_to_col, col_to_row):
    """Price the columns, and match rows to cheapest columns."""
    offsets, cols, costs = entries
    row_to_col[:] = -1
    col_to_row[:] = -1
    nrows = row_to_col.size
    if is_square:
        price[:] = np.inf
        sparse_search.lower_to_minima(offsets, cols, costs, price, 0, nrows)
        for col in range(price.size):
            price[col] = price[col] if price[col] < np.inf else 0.0
        sparse_search.take_cheapest(
            offsets, cols, costs, price, np.inf, row_to_col, col_to_row, row_dual, 0, nrows
        )
    else:
        price[:] = 0.0
        sparse_search.match_tight(
            offsets, cols, costs, price, row_to_col, col_to_row, 0.0, False, np.inf, 0, nrows
        )


@kernel
def _bid(entries, spread, price, row_to_col, col_to_row, queue, spots):
    """Let rows bid while it serves enough; the number unmatched, which are listed in the queue."""
    nrows, state = row_to_col.size, view(spots, (0, 0), SPOTS)
    waiting = 0
    for row in range(nrows):
        queue[waiting] = row
        waiting += row_to_col[row] < 0
    state[WAITING] = waiting
    unpriced, no_marks = view(price, 0, 0), view(row_to_col, 0, 0)
    side = unpriced, price, row_to_col, col_to_row, no_marks
    each = BIDS * (1 + entries[0][nrows] // nrows)
    is_worth_it = True
    while waiting > 0 and is_worth_it:
        bidding.hold(
            entries, side, (queue, state),
            0.0, spread, np.inf, 0.0, False, np.inf, -np.inf, 0, each * waiting,
        )  # fmt: skip
        is_worth_it = state[WAITING] <= SERVED * waiting
        waiting = state[WAITING]
    waiting = 0
    for row in range(nrows):
        queue[waiting] = row
        waiting += row_to_col[row] < 0
    return waiting


@kernel
def _augment(
    entries, left, price, row_to_col, col_to_row, queue, spots, all_paths, whole, real
):  # fmt: skip
    """Serve the rows listed in the queue; how many have no path, or -1 if it takes too long.

    After the first without a path, the others are served only if ``all_paths`` says so.
    """
    offsets = entries[0]
    few, many, size = row_to_col.size, col_to_row.size, offsets[offsets.size - 1]
    unmatched, spot = view(queue, 0, left), view(spots, (1, 0), SPOTS)
    pred, near = view(whole, 0, many), view(whole, many, many)
    tree, reached = view(whole, 2 * many, many), view(whole, 3 * many, many)
    place, heap = view(whole, 4 * many, few), view(whole, 4 * many + few, size + 1)
    dist, keys = view(real, 0, many), view(real, many, size + 1)
    dist[:] = np.inf
    for row in range(few):
        place[row] = offsets[row]
    mark = view(real, many + size + 1, 2)
    room = view(queue, 0, 0), 0, dist, pred, place, near, keys, heap, tree, reached
    pairs, terms = (price, row_to_col, col_to_row), (0.0, False, -np.inf, np.inf)
    spot[HEAD] = -1
    most, stuck = READS * np.int64(size) + MORE, 0
    while True:
        outcome = sparse_search.augment(entries, pairs, unmatched, spot, mark, room, terms, STEP)
        if outcome == FOUND:
            return stuck
        if outcome == STUCK:
            stuck += 1
            if not all_paths:
                return stuck
            spot[NEXT] += 1
        rest = left - spot[NEXT]
        if outcome == SPENT and rest > FEW and spot[SCANS] * rest > most * (spot[NEXT] + 1):
            return -1


@kernel
def _name_violator(entries, row_to_col, col_to_row, queue):
    """Mark the rows that unmatched rows reach, and the columns between them."""
    offsets, cols, _ = entries
    tail = head = 0
    for row in range(row_to_col.size):
        if row_to_col[row] < 0:
            queue[tail] = row
            tail += 1
    while head < tail:
        row = queue[head]
        head += 1
        row_to_col[row] = REACHED
        for entry in range(offsets[row], offsets[row + 1]):
            mate = col_to_row[cols[entry]]
            if mate != REACHED:
                col_to_row[cols[entry]] = REACHED
                queue[tail] = mate
                tail += 1


@kernel
def _pay(entries, row_to_col, are_rows, sign, paid):
    """Write what each row of the caller pays, which are the rows here if ``are_rows``."""
    offsets, cols, costs = entries
    for row in range(paid.size):
        paid[row] = 0.0
    for row in range(row_to_col.size):
        entry = offsets[row]
        while cols[entry] != row_to_col[row]:
            entry += 1
        paid[row if are_rows else row_to_col[row]] = sign * costs[entry]
