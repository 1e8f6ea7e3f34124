"""Pairs that cost exactly as much as a limit: unmatched vertices with such a pair are joined.

A row that takes a column at the limit L costs as much as an unmatched one. Algorithms decide this
in different ways. So one rule holds for all: with a limit, no row and column are both unmatched
whose pair costs L or less.

In an optimal assignment such a pair costs L, because both duals show it: u = L and v = 0. Joining
the pair changes neither the minimised total nor the proof. Rounding may leave a pair that costs
less, and a heuristic may leave any. Joining that one makes the assignment better. Kernels for small
problems keep the rule as they go, which is as cheap there (`takes_equal` of
`gpumatch.contracts.batch.Wish`). `join_at_limit` keeps it after every other algorithm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpumatch.contracts import Costs, Mates
from gpumatch.dispatch.registry import JOIN, JOIN_LISTED, load
from gpumatch.numeric.arrays import any_true, array_of

__all__ = ["join_at_limit"]

ENTRIES = 2**24
"""Entries of a matrix that one step compares with the limit, where there is no kernel for it."""


def join_at_limit(costs: Costs, limit: float, mates: Mates, threads: int = 1) -> None:
    """Join unmatched rows and columns whose pairs cost no more than the limit, in their order.

    The costs are to be minimised. The mates are on their device, and change in place.
    """
    row_to_col, col_to_row = mates
    if not (any_true(row_to_col < 0) and any_true(col_to_row < 0)):
        return
    if not costs.on_device and (costs.has_matrix or costs.is_sparse):
        entries = costs.entries()
        weights = entries[2] if isinstance(entries, tuple) else entries
        bound = bound_in(weights.dtype, limit)
        if bound is not None and weights.size:
            load(JOIN)(entries, bound, row_to_col, col_to_row, threads)
        return
    xp = costs.xp
    own = [array_of(np, side).astype(np.int32) for side in mates]
    for rows, cols in _listed(costs, limit, mates):
        load(JOIN_LISTED)(array_of(np, rows), array_of(np, cols), *own)
        row_to_col[:], col_to_row[:] = (array_of(xp, side) for side in own)


def _near(costs: Costs, limit: float, mates: Mates) -> tuple[Any, Any] | None:
    """Pairs of unmatched vertices within the limit, one of each such row; None if no tree tells."""
    rows, cols = ((side < 0).nonzero()[0] for side in mates)
    return costs.near(limit, rows, cols)


def bound_in(dtype: np.dtype, limit: float) -> Any:
    """Return the greatest number of a dtype that is not above the limit; None without one."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return dtype.type(min(limit // 1, info.max)) if limit >= info.min else None
    bound = dtype.type(limit)
    return bound if bound.item() <= limit else np.nextafter(bound, dtype.type(-np.inf))


def _listed(costs: Costs, limit: float, mates: Mates) -> Iterator[tuple[Any, Any]]:
    """Pairs of unmatched vertices within the limit, for some rows at a time.

    Each step reads the mates of the columns again.
    """
    row_to_col, col_to_row = mates
    xp = costs.xp
    if costs.has_matrix:
        values = costs.dense()
        bound = bound_in(np.dtype(values.dtype), limit)
        unmatched = (row_to_col < 0).nonzero()[0]
        step = max(1, ENTRIES // max(1, values.shape[1]))
        for begin in range(0, unmatched.size if bound is not None else 0, step):
            own = unmatched[begin : begin + step]
            marks = values[own] <= bound
            marks &= col_to_row < 0
            if any_true(marks):
                rows, cols = marks.nonzero()
                yield own[rows], cols
        return
    while (found := _near(costs, limit, mates)) is not None:
        if not found[0].size:
            return
        yield found
    is_unmatched = row_to_col < 0
    for tile in costs.tiles():
        if any_true(is_unmatched[tile]):
            rows, cols, values = costs.tile(tile)
            number = np.int64 if costs.is_integer else np.float64
            marks = (values.astype(number) <= limit) & is_unmatched[rows] & (col_to_row < 0)[cols]
            if any_true(marks):
                yield tuple(xp.broadcast_to(side, marks.shape)[marks] for side in (rows, cols))
