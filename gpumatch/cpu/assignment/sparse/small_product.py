"""Maximum product matchings of small square matrices, in a few calls of kernels.

A matrix of a hundred rows takes ten microseconds, and each step of Python takes a good part of one.
So this file has only what such matrices need, on one thread. The steps are those of `engine` with
its long trial, and of `product`:

1. Offsets and columns are checked, and whether all weights are finite. Rows and columns that are
   each other's cheapest are matched.
2. Rows bid without an epsilon, while that serves enough of them.
3. Shortest augmenting paths serve the unmatched rows, while they are expected to read few entries.
4. The prices become scales.

If the paths of the first rows read too much already, those of the columns may not: the rows of the
matrix bayer10 would read 820,000 entries, and its columns read 210,000. So the transposed matrix is
tried then, unless rows and columns are alike. If it reads too much as well, or if only the paths of
the last rows do, the engine goes on with its auction, from the pairs and prices of the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpumatch.contracts import Control
from gpumatch.cpu import csr
from gpumatch.cpu.assignment.sparse.product import ENDS, REST, TOTAL, look_up, shift_of
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
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
from gpumatch.cpu.surveys import are_canonical
from gpumatch.running.kept_memory import kept_empty

__all__ = ["SmallProduct", "solve"]

NO_LIMIT = 0.0, False
"""The limit, and False: no row may go without a column."""
NO_MARKS = np.empty(0, bool)
"""Marks of rows whose last bid went an epsilon too far: without an epsilon nobody keeps them."""


@dataclass(frozen=True)
class Tuning:
    """What the steps decide by; no result depends on it."""

    bids: int = 4
    """Bids without an epsilon for each unmatched row in a round of them.

    With 1, 4 and 12, the matrix kkt-5000 takes 1.1, 0.9 and 0.7 ms, teko_szdMat 8.9, 7.5 and 9.6,
    and the columns of bayer10 4.5, 3.8 and 4.2.
    """
    served: float = 4 / 5
    """The share of its rows that a round of bids may leave unmatched if another follows."""
    reads: int = 4
    """How many times paths may be expected to read all entries, and `more` besides."""
    more: int = 2**16
    """Entries that paths may read in any case."""
    few: int = 16
    """Unmatched rows whose paths may read anything: an auction would take as long."""
    step: int = 4
    """Paths are judged whenever they have read all entries divided by this; at least `least`."""
    least: int = 2**12
    """Entries that paths read before they are judged."""
    choice: float = 2
    """Tight columns of an unmatched row, on average, from which on weights are taken to be tied.

    An auction is of little use then. With more than `tied` entries, such a matrix is the engine's,
    which first searches all tight pairs at once. With fewer, paths may read all entries `patience`
    times. Of 3,000 rows with 5 entries each, of two weights, the paths take 3.1 ms, and the engine
    10.0.
    """
    tied: int = 2**14
    """Entries up to which paths serve tied weights."""
    patience: int = 64
    """How many times paths may read all entries then."""
    alike: float = 1.1
    """Rows and columns are alike if the sums of the squares of their lengths differ by less.

    Those of bayer10 differ by a factor of 1.35.
    """


DEFAULT = Tuning()


class SmallProduct(NamedTuple):
    """Pairs, the logarithms of scales, and what the pairs cost in all, if the outcome is FOUND.

    If it is SPENT, some rows are unmatched yet, and the columns have prices instead of scales, at
    which all pairs are tight. If it is STUCK, no full assignment exists.
    """

    outcome: int
    row_to_col: np.ndarray
    col_to_row: np.ndarray
    row_log_scale: np.ndarray
    col_log_scale: np.ndarray
    total: float

    @property
    def is_full(self) -> bool:
        return self.outcome == FOUND

    @property
    def is_singular(self) -> bool:
        return self.outcome == STUCK

    def transpose(self) -> SmallProduct:
        outcome, row_to_col, col_to_row, row_log_scale, col_log_scale, total = self
        return SmallProduct(outcome, col_to_row, row_to_col, col_log_scale, row_log_scale, total)


def solve(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, control: Control
) -> SmallProduct | None:
    """Find the cheapest full assignment of a square matrix, and its scales, as far as is cheap.

    Offsets and columns are int32, and weights float64. Returns None if the engine is better for the
    matrix, if a row or a column has no entry, or if these are not the arrays of a matrix, as far as
    they could be wrong.
    """
    rows = _Trial(indptr, indices, weights)
    if not rows.begin():
        return None
    found = rows.run(control)
    is_dear_at_once = found.outcome == SPENT and 2 * rows.served <= rows.left
    if is_dear_at_once and not _are_alike(indptr, indices):
        cols = _Trial(*csr.transpose_values(indptr, indices, weights, indptr.size - 1))
        cols.begin()
        other = cols.run(control)
        return other.transpose() if other.is_full else found
    return found


def _are_alike(indptr: np.ndarray, indices: np.ndarray) -> bool:
    """True if searches of the columns may be expected to read as much as those of the rows."""
    lengths = np.diff(indptr).astype(np.int64), np.bincount(indices)
    squares = [int((side**2).sum()) for side in lengths]
    return max(squares) < DEFAULT.alike * min(squares)


class _Trial:
    """The steps for the rows of one matrix; arrays are those of `bidding` and `searches.sparse`."""

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> None:
        self.tuning, self.entries = DEFAULT, (indptr, indices, weights)
        self.nrows, self.nnz = indptr.size - 1, indices.size
        self.row_to_col, self.col_to_row = np.empty((2, self.nrows), np.int32)
        self.row_dual, self.price = np.empty((2, self.nrows))
        self.queue = np.empty(1 << self.nrows.bit_length(), np.int32)  # longer than all rows
        self.left = self.served = 0  # rows unmatched after the bids; how many of them paths serve
        self.first = self.row_to_col, self.price  # each row's first column, and its price then

    def begin(self) -> bool:
        """Match pairs of least weights; False if the arrays are wrong, or many weights tie."""
        self.waiting, self.spread, tight = _begin(
            *self.entries,  # IN
            self.row_to_col, self.col_to_row, self.row_dual, self.price, self.queue,  # OUT
        )  # fmt: skip
        self.is_tied = tight >= self.tuning.choice * self.waiting > 0
        return self.waiting >= 0 and not (self.is_tied and self.nnz > self.tuning.tied)

    def run(self, control: Control) -> SmallProduct:
        """Take the steps: bids, paths and scales."""
        self.left = scans = 0
        if self.waiting:
            self.first = self.row_to_col.copy(), self.price.copy()
            self.left, scans = self.bid()
        matched = self.nrows - self.left
        control.phase(found=self.waiting - self.left, matched=matched, step="bids", scans=scans)
        outcome, self.served, scans = self.serve() if self.left else (FOUND, 0, 0)
        matched += self.served
        control.phase(found=self.served, matched=matched, step="trial", scans=scans)
        total = self.scale() if outcome == FOUND else math.inf
        return SmallProduct(
            outcome, self.row_to_col, self.col_to_row, self.row_dual, self.price, total
        )

    def bid(self) -> tuple[int, int]:
        """Let rows bid while it serves enough; return the number unmatched and of entries read."""
        waiting, spread = self.waiting, self.spread
        state = np.zeros(SPOTS, np.int64)
        state[WAITING] = waiting
        unpriced, ring = self.price[:0], (self.queue, state)
        side = unpriced, self.price, self.row_to_col, self.col_to_row, NO_MARKS
        each = self.tuning.bids * (1 + self.nnz // self.nrows)
        is_worth_it = True
        while waiting and is_worth_it:
            bidding.hold(
                self.entries,  # IN
                side, ring,  # OUT
                0.0, spread, np.inf, *NO_LIMIT, np.inf, -np.inf, 0, each * waiting,  # IN
            )  # fmt: skip
            left = int(state[WAITING])
            waiting, is_worth_it = left, left <= self.tuning.served * waiting
        return waiting, int(state[SCANS])

    def serve(self) -> tuple[int, int, int]:
        """Augment while it is cheap; return how it ended, rows served, and the entries read."""
        unmatched = (self.row_to_col < 0).nonzero()[0].astype(np.int32)
        spot, mark = np.zeros(SPOTS, np.int64), np.zeros(2)
        spot[HEAD] = -1
        pairs, room = (self.price, self.row_to_col, self.col_to_row), tuple(self.room())
        terms = *NO_LIMIT, -np.inf, np.inf
        tuning = self.tuning
        reads = tuning.patience if self.is_tied else tuning.reads
        step, most = max(self.nnz // tuning.step, tuning.least), reads * self.nnz + tuning.more
        outcome, served, scans, is_cheap = SPENT, 0, 0, True
        while outcome == SPENT and is_cheap:
            outcome = sparse_search.augment(
                self.entries,  # IN
                pairs, unmatched, spot, mark, room,  # OUT
                terms, step,  # IN
            )  # fmt: skip
            served, scans = int(spot[NEXT]), int(spot[SCANS])
            is_few = unmatched.size - served <= tuning.few
            is_cheap = is_few or scans * unmatched.size <= most * (served + 1)
        return outcome, served, scans

    def room(self) -> sparse_search.Room:
        """Make the arrays of a search; a column may be in the heap once an entry."""
        nrows, size = self.nrows, self.nnz + 1
        links = kept_empty(4 * nrows + size, np.int32)
        pred, near, tree, reached = links[: 4 * nrows].reshape(4, nrows)
        lengths = kept_empty(nrows + size, np.float64)
        dist, keys = lengths[:nrows], lengths[nrows:]
        dist.fill(np.inf)
        heap = links[4 * nrows :]
        place = self.entries[0][:-1].copy()
        return sparse_search.Room(
            self.queue[:0], 0, dist, pred, place, near, keys, heap, tree, reached
        )

    def scale(self) -> float:
        """Make scales of the duals, as `product` does; return the total cost."""
        found = np.empty(ENDS)
        look_up(
            *self.entries, *self.first, self.row_to_col, self.price, 0, self.nrows,  # IN
            self.row_dual, found,  # OUT
        )  # fmt: skip
        ends = found.tolist()
        self.price -= shift_of(ends, ends)
        self.row_dual -= self.price.take(self.row_to_col)
        return ends[TOTAL] + ends[REST]


@kernel
def _begin(indptr, indices, weights, row_to_col, col_to_row, row_dual, price, queue):
    """Write prices and pairs of the least weights, and queue the unmatched rows.

    Returns how many rows are unmatched, the range of the weights, and how many tight pairs these
    rows have. The first is -1 if the arrays are not those of a matrix in canonical CSR, if a weight
    is not finite, or if a row or a column has none.
    """
    nrows = row_to_col.size
    is_fit = (indptr[0] == 0) & (indptr[nrows] == indices.size)
    for row in range(nrows):
        is_fit &= indptr[row] < indptr[row + 1]
    if not (is_fit and are_canonical(indptr, indices, nrows, 0, nrows)):
        return -1, 0.0, 0
    high = -np.inf
    for entry in range(indices.size):
        is_fit &= abs(weights[entry]) < np.inf
        high = greater(high, weights[entry])
    if not is_fit:
        return -1, 0.0, 0

    row_to_col[:] = -1
    col_to_row[:] = -1
    price[:] = np.inf
    sparse_search.lower_to_minima(indptr, indices, weights, price, 0, nrows)
    low, dearest = np.inf, -np.inf
    for col in range(nrows):
        low, dearest = lesser(low, price[col]), greater(dearest, price[col])
    if dearest == np.inf:
        return -1, 0.0, 0
    sparse_search.take_cheapest(
        indptr, indices, weights, price, np.inf, row_to_col, col_to_row, row_dual, 0, nrows
    )
    count = tight = 0
    for row in range(nrows):
        queue[count] = row
        if row_to_col[row] < 0:
            count += 1
            for entry in range(indptr[row], indptr[row + 1]):
                tight += weights[entry] - price[indices[entry]] == row_dual[row]
    return count, high - low, tight
