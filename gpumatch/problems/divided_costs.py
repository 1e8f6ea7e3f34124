"""Assignments of floats so large that sums of them overflow.

Costs from about 1e307 / n on are divided by a power of 2, for n rows or columns. That changes no
digit but of numbers below 1e-290, which next to such costs are no more than rounding. The duals and
the objective are multiplied by it in the end. If these overflow, there is no number to return.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.costs import Costs
from gpumatch.results.assignment import Assignment
from gpumatch.running.control import attach_result

__all__ = ["assign_divided", "divided_limit"]


def divided_limit(limit: Any, power: int) -> Any:
    """A cost limit, or one for each row, in the divided costs."""
    if limit is None:
        return None
    return math.ldexp(float(limit), -power) if np.ndim(limit) == 0 else limit * 2.0**-power


def assign_divided(
    given: Costs,
    power: int,
    solve: Callable[..., Assignment],
    cost_limit: Any,
    initial: Any,
) -> Assignment:
    """What `solve` finds for the costs divided by 2**power, as the caller's result."""
    if isinstance(initial, Assignment):
        initial = copy.copy(initial)
        initial.row_dual = initial.row_dual * 2.0**-power
        initial.col_dual = initial.col_dual * 2.0**-power
    try:
        a = solve(
            given.divided(power), cost_limit=divided_limit(cost_limit, power), initial=initial
        )
    except KeyboardInterrupt as exc:
        best = getattr(exc, "result", None)
        attach_result(exc, best and _as_callers(best, given, power, cost_limit))
        raise
    return _as_callers(a, given, power, cost_limit)


def _as_callers(a: Assignment, given: Costs, power: int, cost_limit: Any) -> Assignment:
    """The result of divided costs for the caller's."""
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
