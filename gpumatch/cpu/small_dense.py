"""Jonker and Volgenant's algorithm for small dense costs, in one compiled call.

The steps are those of `gpumatch.cpu.shortest_augmenting_path`, and the kernels, encodings and
reference those of `gpumatch.cpu.dense_paths`. But where a problem is so small that calls from
Python would take most of the time, there is only one, which neither stops on the way nor tells of
the duals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gpumatch.cpu.dense_paths import (
    HEAD,
    LANES,
    augment,
    lower_to_minima,
    reduce_rows,
    take_nearest,
)
from gpumatch.cpu.shortest_augmenting_path import BIDS, ROUNDS

__all__ = ["MOST", "run"]

MOST = 2**17
"""Costs up to which a call takes some milliseconds at worst."""

_NO_BUDGET = 2**62
_ENDS = {
    np.dtype(number): np.array(ends, number)
    for number, ends in (
        (np.int32, (-(2**31), 2**31 - 1)),
        (np.int64, (-(2**63), 2**63 - 1)),
        (np.float64, (-np.inf, np.inf)),
    )
}  # `low` and `far` of dense_paths, for each type of prices


def run(costs: Any, row_to_col: np.ndarray, col_to_row: np.ndarray) -> bool:
    """Match all rows at least cost, from an empty matching; False where no full one exists."""
    values = costs.values
    if costs.is_complete and costs.low == costs.high:  # one choice is as good as any
        pairs = row_to_col.size
        row_to_col[:] = col_to_row[:pairs] = np.arange(pairs)
        return True
    number = values.dtype if values.dtype.kind == "i" else np.dtype(np.float64)
    price = np.zeros(values.shape[1], number)
    _match(values, price, row_to_col, col_to_row, _ENDS[number])
    return bool((row_to_col >= 0).all())


@njit(cache=True, nogil=True)
def _match(costs, price, row_to_col, col_to_row, ends):
    low, far = ends
    spot = np.empty(7, np.int64)
    mark = np.empty(2, price.dtype)
    least = np.empty(LANES, price.dtype)
    dist = np.empty(price.size, price.dtype)
    reach = np.empty(price.size, price.dtype)
    pred = np.empty(price.size, np.int32)
    tree = np.empty(price.size, np.int32)
    if row_to_col.size == price.size:
        _reduce_columns(costs, price, row_to_col, col_to_row, pred, far)
    for _ in range(ROUNDS):
        free = _free_rows(row_to_col, spot)
        reduce_rows(
            costs, price, row_to_col, col_to_row, free, spot, least,
            far, False, far, BIDS * free.size, _NO_BUDGET,
        )  # fmt: skip
    free = _free_rows(row_to_col, spot)
    augment(
        costs, price, row_to_col, col_to_row, free, spot, mark,
        dist, pred, least, tree, reach, far, False, low, far, _NO_BUDGET,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _reduce_columns(costs, price, row_to_col, col_to_row, nearest, far):
    """Price the columns at their least costs, and give them to rows that have those."""
    price[:] = far
    nearest[:] = 0
    lower_to_minima(costs, price, nearest, 0, row_to_col.size)
    if (price < far).all():
        take_nearest(nearest, row_to_col, col_to_row)
    else:
        price[:] = 0


@njit(cache=True, nogil=True)
def _free_rows(row_to_col, spot):
    """The rows that are free, to be served from the first."""
    spot[:] = 0
    spot[HEAD] = -1
    return np.flatnonzero(row_to_col < 0).astype(np.int32)
