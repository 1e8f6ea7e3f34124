"""A limit for each row: the problem that has one limit for all, and what becomes of its result.

With limits L_i, row i left unmatched costs L_i. So a pair is worth taking if it costs no more, and
for k pairs of costs to be minimised

    sum(c x) + sum of L over unmatched rows  =  sum((c - L) x) + sum(L)

Costs c_ij - L_i with limit 0 have the same best assignments, and their duals prove them: u_i + v_j
<= c_ij - L_i, which is what `gpumatch.problems.cardinality` states with L_i instead of L. With
"maximum", pairs above their row's limit are left out, as for one limit; a row's may be infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.costs import TOO_LARGE, Costs, DenseCosts, check_sums
from gpumatch.numeric.arrays import any_true, array_of, as_array, first_true
from gpumatch.numeric.exact_sums import magnitude, summands
from gpumatch.numeric.gaps import Magnitudes, Proof, proof_of
from gpumatch.results.assignment import Assignment
from gpumatch.running.control import attach_result

__all__ = ["assign_by_row_limits", "checked_row_limits"]


def checked_row_limits(cost_limit: Any, costs: Costs, maximize: bool, cardinality: str) -> Any:
    """The limits as an array where the costs are; None if none leaves a pair out.

    They are int64 if they and the costs are integers, else float64, so that nothing else, nor
    `gpumatch.verify`, need know of other dtypes. With integer costs and "maximum", a limit beyond
    2**62 becomes 2**62, which is above all costs, too.
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
        none = -math.inf if maximize else math.inf
        is_none = limits == none
        with np.errstate(over="ignore"):  # of long doubles, which are then refused
            limits = limits.astype(np.float64)
        if nrows and not any_true(~is_none):
            return None
        stray = ~(abs(limits) < math.inf)
        if cardinality == "maximum":
            stray &= ~is_none
        if any_true(stray):
            raise ValueError(
                f"cost_limit[{int(stray.argmax())}] is {limits[stray.argmax()]}: the limits of the "
                f"rows must be finite, or all be {none}"
            )
        if costs.is_integer and not any_true(_are_not_int64(costs.xp, limits)):
            limits = limits.astype(np.int64)
    elif costs.is_integer:
        return _as_int64(costs.xp, limits, cardinality)
    return limits if costs.is_integer and limits.dtype.kind != "f" else limits.astype(np.float64)


def _are_not_int64(xp: Any, limits: Any) -> Any:
    """Which floats have a fraction, or are so large that integers of 64 bits have no sums of them.

    As of one limit for all, the costs are then floats.
    """
    return (limits != xp.rint(limits)) | (abs(limits) >= TOO_LARGE)


def _as_int64(xp: Any, limits: Any, cardinality: str) -> Any:
    """Integers, or bools, as int64."""
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


def assign_by_row_limits(
    given: Costs,
    limits: Any,
    solve: Callable[..., Assignment],
    maximize: bool,
    cardinality: str,
) -> Assignment:
    """What `solve` finds for costs without limits, or with the limit 0, as the caller's result."""
    if cardinality == "maximum":
        problem, base = given.within(_bounds(given, limits, maximize), maximize), None
    else:
        ends = [limits.min(), limits.max()] if limits.size else []
        most = max((abs(end.item()) for end in ends), default=0)
        check_sums(given.largest + most, min(given.shape))
        problem, base = given.below(limits), limits
    source: Any = problem
    if isinstance(problem, DenseCosts) and not problem.on_device:
        source = problem.values  # which is quicker if they are few
    try:
        a = solve(source, cost_limit=None if base is None else 0)
    except KeyboardInterrupt as exc:
        best = getattr(exc, "result", None)
        attach_result(exc, best and _as_callers(best, given, limits, base))
        raise
    return _as_callers(a, given, limits, base)


def _bounds(given: Costs, limits: Any, maximize: bool) -> Any:
    """Limits as numbers that are compared with the costs without rounding."""
    if not given.is_integer or limits.dtype.kind != "f":
        return limits
    whole = given.xp.ceil(limits) if maximize else given.xp.floor(limits)
    return given.xp.clip(whole, -float(TOO_LARGE), float(TOO_LARGE)).astype(np.int64)


def _as_callers(a: Assignment, given: Costs, limits: Any, base: Any) -> Assignment:
    """The result of the problem with the caller's costs and limits."""
    rows, cols = a.row_ind, a.col_ind
    paid = given.at(rows, cols).astype(a.row_dual.dtype)
    sign = -1 if a.maximize else 1
    terms = summands(paid)
    is_integer = a.row_dual.dtype.kind == "i"
    proof = Proof(a.gap, a.proven)
    if base is not None and a.gap < math.inf:
        limits_of_pairs = base[rows]
        numbers = [*(-term for term in terms), *summands(limits_of_pairs)]
        numbers += summands(a.row_dual) + summands(a.col_dual)
        proof = proof_of(
            [-sign * number for number in numbers],
            max(a.size, 1),
            has_ended=a.proven,
            is_integer=is_integer,
            magnitudes=lambda: Magnitudes(
                max(map(magnitude, (paid, limits_of_pairs))),
                max(map(magnitude, (a.row_dual, a.col_dual))),
            ),
            undercut=lambda: 0.0,  # `solve` has looked, with costs that are in use here, too
        )
    cover = a.cover_ind() if a.cardinality == "maximum" and a.gap < math.inf else None
    return Assignment(
        a.row_to_col, a.col_to_row, a.row_dual, a.col_dual,
        pair_costs=paid, objective=(sum if is_integer else math.fsum)(terms),
        gap=proof.gap, proven=proof.proven,
        maximize=a.maximize, cardinality=a.cardinality, cost_limit=limits, cover=cover,
        labels=given.labels, size=a.size, stats=a.stats,
    )  # fmt: skip
