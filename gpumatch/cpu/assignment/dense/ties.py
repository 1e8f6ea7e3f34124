"""Maximum matchings in the tight pairs of a dense matrix, by sets of bits.

A pair is tight if no column is cheaper for the row, at the prices. Where many costs are equal, rows
have many tight columns, and a shortest path is one among tight pairs only: a search of cardinality.
The tight columns of a row are bits of 64-bit words, so that a phase of searches takes as long as
reading a hundredth of the matrix.

    tight        (nrows, words): the tight columns of each row
    unseen       (words,): matched columns that no search of this phase has reached
    unmatched    (words,): columns without a row
    stack        rows of the path of a search, from its root
    cursor       the word at which each row of the stack goes on; -1 for a row that has not begun

Each phase searches depth-first from all unmatched rows, and looks for unmatched columns first
(Pothen, Fan). A column is reached once in a phase.

References
----------
Pothen, Fan, *Computing the block triangular form of a sparse matrix*, ACM TOMS 16, 1990.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.contracts import Control, Stopped
from gpumatch.cpu.assignment.dense.paths import DensePaths
from gpumatch.cpu.numba_tools.compiled import kernel, vector_kernel
from gpumatch.cpu.searches.dense import lane_minima, least_of_lanes
from gpumatch.cpu.searches.paths import Paths
from gpumatch.cpu.searches.state import SCANS

__all__ = ["have_ties", "match_tight"]

BITS = 64
SAMPLE = 16
"""Unmatched rows that the engine takes for a sample of all."""


# -- kernels ---------------------------------------------------------------------------------------


@vector_kernel
def mark_tight(costs, price, far, least, tight, first, last):
    """Mark the tight columns of rows first to last; ``least`` is room for the minima of lanes."""
    number = price.dtype.type
    for row in range(first, last):
        line = costs[row]
        lane_minima(line, price, least, far)
        nearest = least_of_lanes(least)
        for word in range(tight.shape[1]):
            begin = word * BITS
            part, prices = line[begin : begin + BITS], price[begin : begin + BITS]
            marks = np.uint64(0)
            for col in range(part.size):
                is_tight = number(part[col] - prices[col]) <= nearest
                marks |= np.uint64(is_tight) << np.uint64(col)
            tight[row, word] = marks if nearest < far else np.uint64(0)


@kernel
def _lowest(marks):
    """Return the place of the lowest bit."""
    place = 0
    for shift in (32, 16, 8, 4, 2, 1):
        low = marks & ((np.uint64(1) << np.uint64(shift)) - np.uint64(1))
        if low == 0:
            marks >>= np.uint64(shift)
            place += shift
    return place


@kernel
def _first_common(tight, row, marks, first):
    """Return the first column of a row's that is in a set, from a word on, or -1."""
    for word in range(first, marks.size):
        both = tight[row, word] & marks[word]
        if both:
            return word * BITS + _lowest(both)
    return -1


@kernel
def search_phase(tight, row_to_col, col_to_row, unseen, unmatched, stack, cursor):
    """Search from all unmatched rows once."""
    for root in range(row_to_col.size):
        if row_to_col[root] >= 0:
            continue
        depth = 0
        stack[0] = root
        cursor[0] = -1
        while depth >= 0:
            row = stack[depth]
            end = _first_common(tight, row, unmatched, 0) if cursor[depth] < 0 else -1
            if end >= 0:
                unmatched[end // BITS] &= ~(np.uint64(1) << np.uint64(end % BITS))
                while depth >= 0:
                    row = stack[depth]
                    end, row_to_col[row] = row_to_col[row], end
                    col_to_row[row_to_col[row]] = row
                    depth -= 1
                break
            col = _first_common(tight, row, unseen, max(cursor[depth], 0))
            if col < 0:
                depth -= 1
                continue
            cursor[depth] = col // BITS
            unseen[col // BITS] &= ~(np.uint64(1) << np.uint64(col % BITS))
            depth += 1
            stack[depth] = col_to_row[col]
            cursor[depth] = -1


# -- their driver ----------------------------------------------------------------------------------


def have_ties(paths: Paths, values: Any, many: float) -> bool:
    """Tell by a sample whether the unmatched rows have that many tight columns, on average."""
    rows = np.flatnonzero(paths.row_to_col < 0)
    rows = rows[:: rows.size // SAMPLE + 1]
    reduced = values[rows] - paths.price
    least = reduced.min(axis=1, initial=paths.far)
    ties = np.count_nonzero((reduced == least[:, None]) & (reduced < paths.far))
    return bool(rows.size and ties >= many * rows.size)


def match_tight(paths: DensePaths, control: Control) -> int:
    """Match as many rows as can be by tight pairs; return how many these are. Raises Stopped."""
    rows = paths.start_with_unmatched_rows()
    nrows, ncols = paths.values.shape
    tight = np.empty((nrows, -(-ncols // BITS)), np.uint64)
    for first, last in paths.blocks():
        mark_tight(
            paths.values, paths.price, paths.far,  # IN
            paths.least, tight,  # OUT
            first, last,  # IN
        )  # fmt: skip
        if control.tick(nrows - rows.size):
            raise Stopped
    stack, cursor = np.empty((2, nrows + 1), np.int32)
    before, matched = -1, nrows - rows.size
    while before < matched:
        before = matched
        search_phase(
            tight,  # IN
            paths.row_to_col, paths.col_to_row,  # OUT
            _bits(paths.col_to_row >= 0), _bits(paths.col_to_row < 0), stack, cursor,  # OUT
        )  # fmt: skip
        matched = paths.matched
        if control.tick(matched):
            raise Stopped
    paths.spot[SCANS] = nrows
    paths.record("ties", rows, matched, control)
    return matched - (nrows - rows.size)


def _bits(marks: np.ndarray) -> np.ndarray:
    """Marks of columns as bits of words."""
    padded = np.zeros(-(-marks.size // BITS) * BITS, bool)
    padded[: marks.size] = marks
    return np.packbits(padded, bitorder="little").view(np.uint64)
