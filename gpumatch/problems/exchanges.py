"""The exchanges of an optimal assignment: a graph whose cycles lead to all other assignments.

Each row is a vertex, which stands for its column, too. One more vertex is the hub. An arc from row
i to row k says that i takes the column of k; its length is the slack of that pair. An arc from row
i to the hub says that i takes an unmatched column, or stays unmatched. An arc from the hub to a row
says that its column becomes unmatched, or that the row, unmatched so far, takes one. An arc by
which a vertex becomes unmatched, or no longer is, has the length that the vertex's dual gives.

Along a cycle, the total rises by the sum of its slacks, which are at least 0. So a pair is in some
optimal assignment if it lies on a cycle of slacks 0: if its ends are in one strong component of
these arcs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpumatch.costs import Costs
from gpumatch.numeric.arrays import array_of
from gpumatch.results.assignment import Assignment

__all__ = ["Exchanges", "exchanges_within", "tolerance_of"]

_ULPS = 16  # for each pair, of the largest number in use, as gaps of floats are accepted


class Exchanges(NamedTuple):
    """Arcs of slacks up to a bound.

    Attributes
    ----------
    rows, cols, slack : arrays
        The pairs, by row.
    places : int array
        The arc of each pair.
    indptr, heads, lengths : arrays
        All arcs in CSR. The last vertex is the hub.
    """

    rows: Any
    cols: Any
    slack: Any
    places: Any
    indptr: Any
    heads: Any
    lengths: Any


class _Sides(NamedTuple):
    """Duals to be minimised, and who may stay unmatched; True in the cover of a maximum one."""

    duals: tuple[Any, Any]
    may_stay: tuple[Any, Any]
    in_cover: tuple[Any, Any] | None
    base: Any


def tolerance_of(costs: Costs, a: Assignment) -> float:
    """Up to which slack floats are taken for 0; 0 if all numbers are integers."""
    duals = a.row_dual, a.col_dual
    if all(dual.dtype.kind == "i" for dual in duals):
        return 0.0
    largest = max(
        (float(abs(part).max()) for part in (*duals, a.pair_costs) if part.size), default=0.0
    )
    return _ULPS * np.finfo(np.float64).eps * max(1, a.size) * largest


def exchanges_within(costs: Costs, a: Assignment, within: float) -> Exchanges:
    """The arcs whose slacks are at most `within`."""
    xp, (nrows, _) = costs.xp, costs.shape
    sides = _sides_of(costs, a)
    parts = [_near(costs, a, sides, tile, within) for tile in costs.tiles()]
    rows, cols, slack = (xp.concatenate(part) for part in zip(*parts)) if parts else _nothing(xp)
    row_to_col, col_to_row = a.row_to_col, a.col_to_row
    heads = col_to_row[cols]
    heads = xp.where(heads < 0, nrows, heads)
    is_matched = row_to_col >= 0
    to_hub = sides.may_stay[0] & is_matched & (-sides.duals[0] <= within)
    (leaving,) = to_hub.nonzero()
    held = row_to_col[is_matched.nonzero()[0]]
    ends = xp.zeros(nrows, slack.dtype)
    gives = ~is_matched
    matched = is_matched.nonzero()[0]
    ends[matched] = -sides.duals[1][held]
    gives[matched] = sides.may_stay[1][held] & (ends[matched] <= within)
    (entering,) = gives.nonzero()

    before = xp.zeros(nrows + 1, np.int64)
    before[1:] = to_hub.cumsum()
    firsts = xp.zeros(nrows + 1, np.int64)
    firsts[1:] = xp.bincount(rows, minlength=nrows).cumsum() if rows.size else 0
    places = xp.arange(rows.size) + before[rows]
    size = rows.size + leaving.size
    indptr = xp.empty(nrows + 2, np.int64)
    indptr[:-1], indptr[-1] = firsts + before, size + entering.size
    all_heads = xp.empty(size + entering.size, np.int32)
    lengths = xp.empty(all_heads.size, slack.dtype)
    hubs = firsts[leaving + 1] + before[leaving]
    all_heads[places], lengths[places] = heads, slack
    all_heads[hubs], lengths[hubs] = nrows, -sides.duals[0][leaving]
    all_heads[size:], lengths[size:] = entering, ends[entering]
    return Exchanges(rows, cols, slack, places, indptr, all_heads, xp.maximum(lengths, 0))


def _nothing(xp: Any) -> tuple[Any, Any, Any]:
    return xp.zeros(0, np.int64), xp.zeros(0, np.int64), xp.zeros(0, np.int64)


def _sides_of(costs: Costs, a: Assignment) -> _Sides:
    xp, (nrows, ncols) = costs.xp, costs.shape
    sign = -1 if a.maximize else 1
    duals = tuple(array_of(xp, dual) * sign for dual in (a.row_dual, a.col_dual))
    is_largest = a.cardinality == "maximum"
    is_free = not is_largest and (a.cardinality == "any" or a.cost_limit is not None)
    in_cover = None
    if is_largest:
        in_cover = tuple(xp.zeros(length, bool) for length in costs.shape)
        for marks, members in zip(in_cover, a.cover_ind()):
            marks[array_of(xp, members)] = True
        may_stay = tuple(~marks for marks in in_cover)
    else:
        may_stay = (
            xp.full(nrows, is_free or nrows > ncols),
            xp.full(ncols, is_free or ncols > nrows),
        )
    base = None
    if is_free and a.cost_limit is not None:
        base = (
            array_of(xp, np.asarray(a.cost_limit)) if np.ndim(a.cost_limit) == 0 else a.cost_limit
        )
        base = xp.broadcast_to(base * sign, (nrows,))
    return _Sides(duals, may_stay, in_cover, base)


def _near(
    costs: Costs, a: Assignment, sides: _Sides, tile: slice, within: float
) -> tuple[Any, Any, Any]:
    """The allowed pairs of a tile with slacks up to `within`."""
    rows, cols, values = costs.tile(tile)
    number = np.float64 if any(dual.dtype.kind == "f" for dual in sides.duals) else np.int64
    slack = values.astype(number) * (-1 if a.maximize else 1)
    slack = slack - sides.duals[0][rows] - sides.duals[1][cols]
    if sides.base is not None:
        slack = slack - sides.base[rows]
    marks = slack <= within
    if values.dtype.kind == "f":
        marks &= abs(values) < np.inf
    if sides.in_cover is not None:
        marks &= ~(sides.in_cover[0][rows] & sides.in_cover[1][cols])
        if a.cost_limit is not None:
            limit = a.cost_limit if np.ndim(a.cost_limit) == 0 else a.cost_limit[rows]
            marks &= (values >= limit) if a.maximize else (values <= limit)
    at = marks.nonzero()
    if slack.ndim == 1:
        return rows[at[0]], cols[at[0]], slack[at[0]]
    return rows[at[0], 0], cols[0, at[1]], slack[at]
