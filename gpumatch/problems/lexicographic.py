"""Lexicographic bottlenecks: the largest cost least, then the next one, and so on.

First the least threshold is found (`bottleneck`). Pairs above it are of no use. The entries up to
it are then visited from the greatest down (`gpumatch.cpu.ranking.lexicographic`), on the host.

The levels need a square problem. With n rows and m > n columns it has each pair twice: row i and
column j at their cost, and row n + j and column m + i at a cost below all levels. At that cost, row
n + j may take column j as well, if no row has it.

Proof. Each level t that is needed has integers u_i and v_j for the rows and columns of the square.
Read in order, from the greatest level down, they are a vector for each vertex. Let w_ij be the
vector with a 1 at the level of the pair's cost, and 0 elsewhere. Then lexicographically

    u_i + v_j <= w_ij    for all pairs that are allowed, with equality for those of the assignment.

This order is kept by sums. So every assignment has a sum of w_ij no less than all u and v together,
which is that of the result: as few pairs of the greatest level as can be, then of the next, and so
on.

Reference: Burkard, Dell'Amico, Martello, *Assignment Problems*, SIAM 2009, section 6.6.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.costs import Costs
from gpumatch.dispatch.registry import LEXICOGRAPHIC, load
from gpumatch.numeric.arrays import array_of
from gpumatch.problems import bottleneck
from gpumatch.problems.request import Goal, Request
from gpumatch.results.bottleneck import BottleneckAssignment
from gpumatch.results.lexicographic import LevelDuals, LexicographicAssignment
from gpumatch.running.control import attach_result

__all__ = ["solve"]


def solve(costs: Costs, request: Request) -> LexicographicAssignment:
    """Find the assignment whose costs, from the largest on, are lexicographically least."""
    control, goal = request.control, request.goal(costs)
    try:
        begun = bottleneck.solve(costs, request._replace(objective="bottleneck"))
    except KeyboardInterrupt as exc:
        best = getattr(exc, "result", None)
        if best is not None:
            attach_result(exc, _result(costs, goal, best, best.row_to_col, [], request))
        raise
    worst = begun.objective
    if worst is None or not begun.proven:
        return _result(costs, goal, begun, begun.row_to_col, [], request)
    with control.part("costs"):
        problem = goal.problem(costs.to_host())
        indptr, indices, weights = problem.up_to(-worst if goal.maximize else worst).entries()
        mates = begun.col_to_row if goal.transposed else begun.row_to_col
        square, mate, none = _squared(
            indptr.astype(np.int64), indices, weights, array_of(np, mates), problem.shape
        )
    levels: list[Any] = []
    try:
        with control.part("search"):
            levels, has_ended = load(LEXICOGRAPHIC)(square, mate, none, control.tick)
    except KeyboardInterrupt as exc:
        attach_result(exc, _result(costs, goal, begun, begun.row_to_col, [], request))
        raise
    nrows, ncols = problem.shape
    values = square[2]
    row_to_col = np.empty(nrows, np.int32)
    (cols,) = (mate[:ncols] < nrows).nonzero()
    row_to_col[mate[cols]] = cols
    if goal.transposed:
        turned = np.full(ncols, -1, np.int32)
        turned[row_to_col] = np.arange(nrows)
        row_to_col = turned
    sign = -1 if goal.maximize else 1
    duals = [
        LevelDuals(sign * values[level.entry].item(), level.vertices, level.numbers)
        for level in levels
    ]
    return _result(costs, goal, begun, row_to_col, duals, request, has_ended=has_ended)


def _squared(
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    mates: np.ndarray,
    shape: tuple[int, int],
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray, float | None]:
    """The pairs of a square problem in CSR, the row of each column, and what counts as no cost."""
    nrows, ncols = shape
    number = np.int64 if weights.dtype.kind in "iu" else np.float64
    weights = weights.astype(number)
    mate = np.full(ncols, -1)
    mate[mates] = np.arange(nrows)
    if nrows == ncols:
        return (indptr, indices.astype(np.int32), weights), mate, None
    none = np.iinfo(number).min if number is np.int64 else -np.inf
    rows = np.repeat(np.arange(nrows), np.diff(indptr))
    by_column = np.argsort(indices, kind="stable")
    counts = np.bincount(indices, minlength=ncols) + 1
    below = np.concatenate([[0], counts.cumsum()])
    heads = np.empty(below[-1], np.int32)
    heads[below[:-1]] = np.arange(ncols)
    is_copy = np.ones(heads.size, bool)
    is_copy[below[:-1]] = False
    heads[is_copy] = ncols + rows[by_column]
    every = np.concatenate([mate, np.empty(nrows, mate.dtype)])
    every[ncols:] = nrows + mates
    (free,) = (mate < 0).nonzero()
    every[free] = nrows + free
    return (
        (
            np.concatenate([indptr, indptr[-1] + below[1:]]),
            np.concatenate([indices, heads]).astype(np.int32),
            np.concatenate([weights, np.full(heads.size, none, number)]),
        ),
        every,
        none,
    )


def _result(
    given: Costs,
    goal: Goal,
    begun: BottleneckAssignment,
    row_to_col: Any,
    levels: list[LevelDuals],
    request: Request,
    *,
    has_ended: bool | None = None,
) -> LexicographicAssignment:
    """Return the assignment with the caller's rows, columns, signs and kind of arrays."""
    xp = given.xp
    row_to_col = array_of(xp, row_to_col)
    rows = (row_to_col >= 0).nonzero()[0]
    cols = row_to_col[rows]
    col_to_row = xp.full(given.shape[1], -1, np.int32)
    col_to_row[cols] = rows
    costs = given.at(rows, cols).astype(np.int64 if given.is_integer else np.float64)
    return LexicographicAssignment(
        row_to_col,
        col_to_row,
        pair_costs=costs,
        proven=begun.proven if has_ended is None else has_ended,
        maximize=goal.maximize,
        levels=levels,
        labels=given.labels,
        stats=begun.stats | {"objective": "lexicographic"} | request.control.statistics(),
    )
