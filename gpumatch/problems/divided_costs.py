"""Assignments of floats so large that sums of them overflow.

Costs from about 1e307 / n on are divided by a power of 2, for n rows or columns. Only numbers below
1e-290 lose digits then, and beside such costs these are no more than rounding. The duals and the
objective of the result are multiplied by the power. If they overflow, there is no number to return.
"""

from __future__ import annotations

import copy
import math

import numpy as np

from gpumatch.costs import Costs
from gpumatch.problems.request import Request
from gpumatch.results.assignment import Assignment

__all__ = ["divided", "multiplied"]


def divided(given: Costs, request: Request, power: int) -> tuple[Costs, Request]:
    """The costs divided by 2**power, and the request for them."""
    scale = 2.0**-power
    limit, initial = request.cost_limit, request.initial
    if isinstance(initial, Assignment):
        initial = copy.copy(initial)
        initial.row_dual, initial.col_dual = initial.row_dual * scale, initial.col_dual * scale
    limit = None if limit is None else math.ldexp(float(limit), -power)
    return given.divided(power), request._replace(cost_limit=limit, initial=initial)


def multiplied(a: Assignment, given: Costs, cost_limit: float | None, power: int) -> Assignment:
    """The result for the given costs, from that for the divided ones.

    Raises
    ------
    ValueError
        If the objective or a dual is beyond float64.
    """
    scale, result = 2.0**power, copy.copy(a)
    with np.errstate(over="ignore"):
        result.row_dual, result.col_dual = a.row_dual * scale, a.col_dual * scale
    result.objective, result.gap = a.objective * scale, a.gap * scale
    duals = (result.row_dual, result.col_dual)
    if not math.isfinite(result.objective):
        raise ValueError(_overflow("total", a, power))
    if not all(bool(abs(dual).max() < math.inf) for dual in duals if dual.size):
        raise ValueError(_overflow("dual prices", a, power))
    result.pair_costs = given.at(a.row_ind, a.col_ind).astype(np.float64)
    result.cost_limit = cost_limit
    return result


def _overflow(what: str, a: Assignment, power: int) -> str:
    return f"the {what} of {a.size} pairs overflow float64: pass the costs divided by 2**{power}"
