"""The k cheapest assignments of dense problems that are on a device, by one launch for all."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.costs import DenseCosts
from gpumatch.dispatch.registry import FITS_RANKING, RANKING_ON_DEVICE, load
from gpumatch.numeric.arrays import any_true, array_module, has_length
from gpumatch.problems.ranking import Ranked
from gpumatch.problems.request import Goal
from gpumatch.problems.row_limits import checked_row_limits
from gpumatch.results.ranking import RankedAssignments, RankedBatch

__all__ = ["rank_on_device"]


def rank_on_device(values: Any, wish: Ranked) -> RankedBatch | None:
    """Rank the problems of an array of two or three dimensions; None if the host is to do it."""
    *_, nrows, ncols = values.shape
    if wish.proof or not values.size or not load(FITS_RANKING)(nrows, ncols, wish.k):
        return None
    flat = DenseCosts(values.reshape(-1, ncols))
    one = DenseCosts(values.reshape(-1, nrows, ncols)[0])
    xp, limit, sign = flat.xp, wish.cost_limit, -1 if wish.maximize else 1
    by_columns, bars = nrows > ncols, None
    if has_length(limit) and not isinstance(limit, str):
        limit, by_columns = checked_row_limits(limit, one, wish.maximize, "full"), False
        bars = None if limit is None else limit * sign
    else:
        goal = Goal.of(wish.maximize, "full", limit, one)
        limit = goal.cost_limit
        if limit is not None:
            bars = xp.full(min(nrows, ncols), goal.limit)
    is_integer = flat.is_integer and (bars is None or bars.dtype.kind == "i")
    number = np.int64 if is_integer else np.float64
    far = 2**62 if is_integer else np.inf
    costs = flat.problem(wish.maximize, False).dense().reshape(-1, nrows, ncols).astype(number)
    if by_columns:
        costs = costs.swapaxes(1, 2)
    count, rows, cols = costs.shape
    whole = xp.full((count, rows, cols + 1), far, number)
    whole[:, :, :cols] = costs
    if bars is not None:
        bars = bars.astype(number)
        whole[:, :, :cols][whole[:, :, :cols] > bars[None, :, None]] = far
        whole[:, :, cols] = bars
    found = load(RANKING_ON_DEVICE)(whole, wish.k, far)
    return _result(found, wish, limit, (nrows, ncols), by_columns=by_columns, far=far)


def _result(
    found: Any, wish: Ranked, limit: Any, shape: tuple[int, int], *, by_columns: bool, far: float
) -> RankedBatch:
    options, totals, counts = found.options, found.totals, found.counts
    xp = array_module(totals)
    numbers = xp.arange(wish.k)
    is_there = numbers[None, :] < counts[:, None]
    row_to_col = options
    if by_columns:
        row_to_col = xp.full((*totals.shape, shape[0]), -1, np.int32)
        frame, number, col = (options >= 0).nonzero()
        row_to_col[frame, number, options[frame, number, col]] = col
    totals = xp.where(is_there, totals, far)
    falls = (totals[:, 1:] <= totals[:, :-1]) & is_there[:, 1:]
    if any_true(falls):
        totals, row_to_col = _sorted(xp, totals, row_to_col)
    if wish.maximize:
        totals = 0 - totals
    if totals.dtype.kind == "i":
        largest = np.int64(2**63 - 1) * (-1 if wish.maximize else 1)
        totals = xp.where(is_there, totals, largest)

    def one(problem: int) -> RankedAssignments:
        size = int(counts[problem])
        return RankedAssignments(
            row_to_col[problem, :size],
            totals[problem, :size],
            shape[1],
            proven=True,
            is_complete=size < wish.k,
            tree=None,
            maximize=wish.maximize,
            cost_limit=limit,
            stats={"algorithm": "murty", "backend": "cuda", "paths": int(found.paths[problem])},
        )

    counts = counts.astype(np.int64)
    return RankedBatch(row_to_col, totals, counts, xp.ones(counts.size, bool), one)


def _sorted(xp: Any, totals: Any, row_to_col: Any) -> tuple[Any, Any]:
    """Assignments of each problem by their costs; those of equal cost in lexicographic order."""
    count, k, nrows = row_to_col.shape
    mates = row_to_col.reshape(count * k, nrows)
    keys = [mates[:, row].astype(totals.dtype) for row in reversed(range(nrows))]
    keys += [totals.ravel(), xp.arange(count).repeat(k).astype(totals.dtype)]
    order = xp.lexsort(xp.stack(keys))
    return totals.ravel()[order].reshape(count, k), mates[order].reshape(row_to_col.shape)
