"""A limit for each row: the problem with one limit that it becomes, and the caller's result.

With limits L_i, row i costs L_i if it is unmatched. So a pair is worth taking if it costs no more,
and for k pairs of costs to be minimised

    sum(c x) + sum of L over unmatched rows  =  sum((c - L) x) + sum(L)

Costs c_ij - L_i with limit 0 have the same best assignments, and their duals prove them: u_i + v_j
<= c_ij - L_i, as `gpumatch.problems.cardinality` states with L in place of L_i. With ``"maximum"``,
pairs above their row's limit are forbidden, as for one limit. Some limits may then be infinite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpumatch.costs import TOO_LARGE, Costs, DenseCosts, check_sums
from gpumatch.numeric.arrays import any_true, array_of, as_array, first_true
from gpumatch.numeric.exact_sums import magnitude, summands
from gpumatch.numeric.fair_duals import make_fair
from gpumatch.numeric.gaps import Proof, proof_of, rounding_above
from gpumatch.problems import one_problem
from gpumatch.problems.request import Request
from gpumatch.problems.small_problems import SMALL, assign_small
from gpumatch.results.assignment import Assignment
from gpumatch.running.control import converted_result

__all__ = ["checked_row_limits", "solve"]


def solve(costs: Costs, request: Request) -> Assignment:
    """Return the assignment of a request whose `cost_limit` has a number for each row."""
    maximize, cardinality = request.maximize, request.cardinality
    limits = checked_row_limits(request.cost_limit, costs, maximize, cardinality)
    if limits is None:
        return one_problem.solve(costs, request._replace(cost_limit=None))
    a = _at_once(costs, limits, request)
    if a is not None:
        return a
    if cardinality == "maximum":
        problem, base, limit = costs.within(_bounds(costs, limits, maximize), maximize), None, None
    else:
        ends = [limits.min(), limits.max()] if limits.size else []
        most = max((abs(end.item()) for end in ends), default=0)
        check_sums(costs.largest + most, min(costs.shape))
        problem, base, limit = costs.below(limits), limits, 0
    return converted_result(
        lambda: _solve(problem, request._replace(cost_limit=limit)),
        lambda a: _as_callers(a, costs, limits, base),
    )


def _at_once(costs: Costs, limits: Any, request: Request) -> Assignment | None:
    """Return the assignment by one compiled call that takes the limits as they are; else None."""
    if (
        isinstance(costs, DenseCosts)
        and not costs.on_device
        and costs.nnz <= SMALL
        and costs.labels == (None, None)
        and request.is_plain
        and request.initial is None
    ):
        return assign_small(
            costs.values, request.maximize, request.cardinality, None, limits=limits
        )
    return None


def _solve(problem: Costs, request: Request) -> Assignment:
    """Return the assignment with one limit or none, by one compiled call if the costs are few."""
    if (
        isinstance(problem, DenseCosts)
        and not problem.on_device
        and problem.nnz <= SMALL
        and request.is_plain
    ):
        a = assign_small(
            problem.values, request.maximize, request.cardinality, request.cost_limit,
            request.initial,
        )  # fmt: skip
        if a is not None:
            return a
    return one_problem.solve(problem, request)


def checked_row_limits(cost_limit: Any, costs: Costs, maximize: bool, cardinality: str) -> Any:
    """Return the limits as an array on the device of the costs; None if none leaves a pair out.

    They are int64 if they and the costs are integers, else float64. No other dtype reaches a
    kernel or `gpumatch.verify`. With integer costs and ``"maximum"``, a limit beyond 2**62 becomes
    2**62, which is above all costs, too.
    """
    limits = as_array(cost_limit, "cost_limit")
    nrows = costs.shape[0]
    if limits.dtype.kind not in "biuf":
        raise TypeError(f"cost_limit must be real numbers; got dtype {limits.dtype}")
    if limits.shape != (nrows,):
        raise ValueError(
            f"cost_limit must be a number, or {nrows} numbers, one for each row; "
            f"got the shape {limits.shape}"
        )
    limits = array_of(costs.xp, limits)
    if limits.dtype.kind == "f":
        given = limits
        with np.errstate(over="ignore"):  # of long doubles; the check below refuses them
            limits = limits.astype(np.float64)
        stray = ~costs.xp.isfinite(limits)
        if any_true(stray):
            none = -math.inf if maximize else math.inf
            is_none = given == none
            if not any_true(~is_none):
                return None
            if cardinality == "maximum":
                stray &= ~is_none
            if any_true(stray):
                raise ValueError(
                    f"cost_limit[{int(stray.argmax())}] is {limits[stray.argmax()]}: the limits of "
                    f"the rows must be finite, or all be {none}"
                )
        if costs.is_integer and not any_true(_are_not_int64(costs.xp, limits)):
            limits = limits.astype(np.int64)
    elif costs.is_integer:
        return _as_int64(costs.xp, limits, cardinality)
    return limits if costs.is_integer and limits.dtype.kind != "f" else limits.astype(np.float64)


def _are_not_int64(xp: Any, limits: Any) -> Any:
    """Marks floats with a fraction, or so large that sums of them overflow 64-bit integers.

    If there are any, the costs become floats, as for one limit.
    """
    return (limits != xp.rint(limits)) | (abs(limits) >= TOO_LARGE)


def _as_int64(xp: Any, limits: Any, cardinality: str) -> Any:
    """Integers or bools as int64."""
    if limits.dtype.kind == "b" or limits.dtype.itemsize < 8:
        return limits.astype(np.int64)
    most = limits.dtype.type(TOO_LARGE)
    if cardinality == "maximum":
        limits = xp.minimum(limits, most)
        return (limits if limits.dtype.kind == "u" else xp.maximum(limits, -most)).astype(np.int64)
    stray = first_true(limits > most)
    if stray is not None:
        raise ValueError(
            f"cost_limit[{stray}] is {int(limits[stray])}: the limits of integer costs must be "
            "below 2**62"
        )
    return limits.astype(np.int64)


def _bounds(given: Costs, limits: Any, maximize: bool) -> Any:
    """Limits as numbers that compare with the costs without rounding."""
    if not given.is_integer or limits.dtype.kind != "f":
        return limits
    whole = given.xp.ceil(limits) if maximize else given.xp.floor(limits)
    return given.xp.clip(whole, -float(TOO_LARGE), float(TOO_LARGE)).astype(np.int64)


def _as_callers(a: Assignment, given: Costs, limits: Any, base: Any) -> Assignment:
    """Return the result of the problem with the caller's costs and limits."""
    rows, cols = a.row_ind, a.col_ind
    costs = given.at(rows, cols).astype(a.row_dual.dtype, copy=False)
    terms = summands(costs)
    is_integer = a.row_dual.dtype.kind == "i"
    proof, duals = Proof(a.gap, a.proven), (a.row_dual, a.col_dual)
    if base is not None and a.gap < math.inf:
        sign = -1 if a.maximize else 1
        row_dual, col_dual = (dual * sign for dual in duals)
        if not is_integer:  # costs less limits were rounded
            problem = given.problem(a.maximize, False)
            make_fair(problem, a.row_to_col, row_dual, col_dual, limits=base * sign)
        duals = row_dual * sign, col_dual * sign
        limits_of_pairs = base[rows]
        numbers = [*terms, *(-term for term in summands(limits_of_pairs))]
        bounds = summands(row_dual) + summands(col_dual)
        proof = proof_of(
            [*(sign * number for number in numbers), *(-bound for bound in bounds)],
            a.size,
            has_ended=a.proven,
            is_integer=is_integer,
            largest=lambda: max(map(magnitude, (costs, limits_of_pairs))),
            largest_dual=lambda: max(map(magnitude, (row_dual[rows], col_dual[cols]))),
            rounding=rounding_above(
                given.rounding, min(given.shape), float(abs(costs).sum()), magnitude(base)
            )
            if given.rounding.share
            else None,
        )
    cover = a.cover_ind() if a.cardinality == "maximum" and a.gap < math.inf else None
    return Assignment(
        a.row_to_col, a.col_to_row, *duals,
        pair_costs=costs, objective=(sum if is_integer else math.fsum)(terms),
        gap=proof.gap, proven=proof.proven,
        maximize=a.maximize, cardinality=a.cardinality, cost_limit=limits, cover=cover,
        labels=given.labels, size=a.size, stats=a.stats,
    )  # fmt: skip
