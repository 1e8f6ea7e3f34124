"""Assignments of floats so large that sums of them overflow, and of points far from 1.

Costs from about 1e307 / n on are divided by a power of 2, for n rows or columns. Only numbers below
1e-290 lose digits then, and beside such costs these are no more than rounding. The duals and the
objective of the result are multiplied by the power. If they overflow, there is no number to return.

Distances of points are divided, too, if squares of their coordinates overflow or lose digits, and
if no number loses any by the division. A negative power multiplies them.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from gpumatch.costs import Costs
from gpumatch.numeric.arrays import array_module
from gpumatch.problems.request import Request
from gpumatch.results.assignment import Assignment

__all__ = ["divided", "is_divided_exactly", "multiplied"]


def is_divided_exactly(number: float, power: int) -> bool:
    """True if no digit is lost when a float is divided by 2**power."""
    try:
        return math.ldexp(math.ldexp(float(number), -power), power) == number
    except OverflowError:
        return False


def divided(given: Costs, request: Request, power: int) -> tuple[Costs, Request]:
    """Return the costs divided by 2**power, and the request for them."""
    limit, initial = request.cost_limit, request.initial
    if isinstance(initial, Assignment):
        initial = copy.copy(initial)
        initial.row_dual = _times(initial.row_dual, -power)
        initial.col_dual = _times(initial.col_dual, -power)
    limit = None if limit is None else math.ldexp(float(limit), -power)
    return given.divided(power), request._replace(cost_limit=limit, initial=initial)


def multiplied(a: Assignment, given: Costs, cost_limit: float | None, power: int) -> Assignment:
    """Return the result for the given costs, from that for the divided ones.

    Raises
    ------
    ValueError
        If the objective or a dual is beyond float64.
    """
    result = copy.copy(a)
    result.row_dual, result.col_dual = _times(a.row_dual, power), _times(a.col_dual, power)
    ends = _times(np.array([a.objective, a.gap]), power)
    result.objective, result.gap = ends.tolist()
    # Pairs of the given costs may be rounded where the multiplied ones are not, and so may the gap.
    # A checker, which computes the given ones, finds as much more, or nothing.
    if power < 0:
        result.gap += 2 * min(given.shape) * given.rounding.pair
    duals = (result.row_dual, result.col_dual)
    if not math.isfinite(result.objective):
        raise ValueError(_overflow("total", a, power))
    if not all(bool(abs(dual).max() < math.inf) for dual in duals if dual.size):
        raise ValueError(_overflow("dual prices", a, power))
    result.pair_costs = given.at(a.row_ind, a.col_ind).astype(np.float64)
    result.cost_limit = cost_limit
    return result


def _times(values: Any, power: int) -> Any:
    """Return the floats multiplied by 2**power; infinity where that overflows."""
    with np.errstate(over="ignore"):
        return array_module(values).ldexp(values, power)


def _overflow(what: str, a: Assignment, power: int) -> str:
    return f"the {what} of {a.size} pairs overflow float64: pass the costs divided by 2**{power}"
