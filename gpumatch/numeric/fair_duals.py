"""Duals that no pair undercuts, as numbers: found from any duals by exact signs of slacks.

Duals u and v are *fair* for costs c and limits L of the rows if u_i + v_j <= c_ij - L_i for every
pair, as real numbers. Duals of floats come from rounded differences, so they may exceed costs by
some units in the last place. `make_fair` lowers them until they are fair
(docs/algorithms/correctness.md states the theorem and its proof):

- *Filter.* Let U_i be u_i + L_i, rounded up. If c - u - L - v < 0, then c - U < v. Rounding is
  monotone, so the rounded c - U is at most v. One subtraction and one comparison find all pairs
  that need a closer look.
- *Sign.* Of these pairs, c - u - L - v is an expansion: a few floats with exactly this sum, found
  by error-free transformations (Knuth's two-sum). The expansion is nonadjacent, so its sum in
  floats has the right sign, and is wrong by less than 2**-48 of itself (Shewchuk 1997, theorem 10).
- *Repair.* What a pair lacks, rounded up, is taken from its row if that is matched, else from its
  column. Of several pairs of a vertex, the largest amount counts. The difference is rounded down.

Algorithms whose last pass over the costs rounds each row's dual down have fair duals already
(`gpumatch.contracts.Solution.are_fair`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpumatch.contracts import Costs, Solution
from gpumatch.numeric.arrays import array_module, array_of

__all__ = [
    "difference_below",
    "differences_below",
    "lacks",
    "lower",
    "make_fair",
    "make_solution_fair",
    "sum_of",
]

ROUNDING = 2.0**-48
"""The largest relative error of the sum of an expansion in floats."""
BLOCK = 2**15
"""Floats on the host that are subtracted from at a time. Their temporaries fit into a cache."""
HALF = 32
"""Bits of the lower part of an int64 number, which a float holds exactly, as it holds the upper."""


def difference_below(values: Any, number: float) -> Any:
    """The differences of floats and a number, rounded down."""
    if not isinstance(values, np.ndarray) or values.size <= BLOCK:
        return differences_below(values, number)
    below = np.empty_like(values)
    for first in range(0, values.size, BLOCK):
        part = slice(first, first + BLOCK)
        below[part] = differences_below(values[part], number)
    return below


def differences_below(values: Any, others: Any) -> Any:
    """The differences of two arrays of floats, rounded down."""
    xp = array_module(values)
    with np.errstate(invalid="ignore"):  # inf - inf, of forbidden pairs
        total, error = two_sum(values, -others)
    return xp.where(error < 0, xp.nextafter(total, -math.inf), total)


def make_solution_fair(
    costs: Costs, solution: Solution, limit: float | None, cover: Any = None
) -> None:
    """Lower the duals of a solution of float costs until they are fair, and note that they are.

    Before the limit is subtracted, no row's dual may exceed it. Without a cover, no column's dual
    may be above 0. With one, a pair with both vertices in it may have any slack.
    """
    if solution.are_fair:
        return
    xp, marks = costs.xp, None
    if limit is not None:
        xp.minimum(solution.row_dual, limit, out=solution.row_dual)
    if cover is None:
        xp.minimum(solution.col_dual, 0, out=solution.col_dual)
    else:
        marks = xp.zeros(costs.shape[0], bool), xp.zeros(costs.shape[1], bool)
        for mark, side in zip(marks, cover):
            mark[array_of(xp, side)] = True
    make_fair(costs, solution.row_to_col, *solution.duals, inside=marks)
    solution.are_fair = True


def make_fair(
    costs: Costs,
    row_to_col: Any,
    row_dual: Any,
    col_dual: Any,
    *,
    limits: Any = None,
    inside: Any = None,
) -> None:
    """Lower the duals in place until no pair undercuts them. It reads the costs once.

    Parameters
    ----------
    costs : Costs
        The costs, to be minimised.
    row_to_col : int array
        The mates of the rows; matched rows are lowered, rather than columns.
    row_dual, col_dual : float64 arrays
        They are where the costs are.
    limits : array, optional
        The limit of each row, which is subtracted from the costs.
    inside : pair of bool arrays, optional
        Marks of the rows and columns of a cover. A pair of two that are marked may have any slack.
    """
    found = lacks(costs, row_to_col, row_dual, col_dual, limits=limits, inside=inside)
    for dual, lack in zip((row_dual, col_dual), found):
        lower(dual, lack)


def lower(dual: Any, lack: np.ndarray) -> None:
    """Subtract from duals what they lack, rounded down."""
    places = lack.nonzero()[0]
    if places.size:
        xp = array_module(dual)
        at = array_of(xp, places)
        dual[at] = differences_below(dual[at], array_of(xp, lack[places]))


def lacks(
    costs: Costs,
    row_to_col: Any,
    row_dual: Any,
    col_dual: Any,
    *,
    limits: Any = None,
    inside: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """By how much each row and each column must be lowered, on the host; `make_fair` says how."""
    xp, (nrows, ncols) = costs.xp, costs.shape
    row_dual, col_dual = array_of(xp, row_dual), array_of(xp, col_dual)
    of_rows = [row_dual] if limits is None else [row_dual, *_parts(array_of(xp, limits))]
    tops = _sum_above(of_rows)
    found = np.zeros(nrows), np.zeros(ncols)
    is_matched = array_of(np, row_to_col) >= 0
    if inside is not None:
        inside = tuple(array_of(xp, marks) for marks in inside)
    for tile in costs.tiles():
        rows, cols, values = costs.tile(tile)
        least = values.astype(np.float64, copy=False)
        if values.dtype.kind != "f":
            least = xp.nextafter(least, -math.inf)
        with np.errstate(over="ignore", invalid="ignore"):  # inf - inf, of forbidden pairs
            is_near = least - tops[rows] <= col_dual[cols]
        if inside is not None:
            is_near &= ~(inside[0][rows] & inside[1][cols])
        near_rows, near_cols, near = _picked(is_near, rows, cols, values)
        terms = [*_parts(near), *(-part[near_rows] for part in of_rows), -col_dual[near_cols]]
        with np.errstate(over="ignore", invalid="ignore"):
            slack, lower_parts = sum_of(terms)
        short = (slack < 0).nonzero()[0]
        amounts = -slack[short]
        rounding = xp.where(lower_parts[short] > 0, amounts * ROUNDING, 0)
        amounts = array_of(np, amounts + rounding)
        own, other = array_of(np, near_rows[short]), array_of(np, near_cols[short])
        of_row = is_matched[own]
        np.maximum.at(found[0], own[of_row], amounts[of_row])
        np.maximum.at(found[1], other[~of_row], amounts[~of_row])
    return found


def two_sum(one: Any, other: Any) -> tuple[Any, Any]:
    """The rounded sum, and its exact rounding error (Knuth)."""
    total = one + other
    part = total - one
    return total, (one - (total - part)) + (other - part)


def sum_of(terms: list[Any]) -> tuple[Any, Any]:
    """The sums of some arrays, with their exact signs, and magnitudes of 0 where they are exact."""
    expansion = terms[:1]  # the least component first
    for term in terms[1:]:
        grown = []
        for component in expansion:
            term, error = two_sum(term, component)
            grown.append(error)
        expansion = [*grown, term]
    total = lower_parts = 0.0
    for component in expansion:
        total = total + component
    for component in expansion[:-1]:
        lower_parts = lower_parts + abs(component)
    return total, lower_parts


def _sum_above(terms: list[Any]) -> Any:
    """Floats that are no less than the sums of some arrays."""
    total = terms[0]
    for term in terms[1:]:
        total, error = two_sum(total, term)
        total = array_module(total).where(
            error > 0, array_module(total).nextafter(total, math.inf), total
        )
    return total


def _parts(values: Any) -> list[Any]:
    """Float64 arrays whose sums the numbers are, exactly."""
    if values.dtype.kind == "f":
        return [values.astype(np.float64, copy=False)]
    values = values.astype(np.int64, copy=False)
    high = (values >> HALF).astype(np.float64) * 2.0**HALF
    return [high, (values & (2**HALF - 1)).astype(np.float64)]


def _picked(marks: Any, rows: Any, cols: Any, values: Any) -> tuple[Any, Any, Any]:
    """Rows, columns and values of the marked pairs of a tile."""
    at = marks.ravel().nonzero()[0]
    if marks.ndim == 1:
        return rows[at], cols[at], values[at]
    at = at // marks.shape[1], at % marks.shape[1]
    return rows[at[0], 0], cols[0, at[1]], values[at]
