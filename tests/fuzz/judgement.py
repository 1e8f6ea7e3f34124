"""What must hold for the result of an assignment, whoever gives it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import gpumatch as gm
from tests.fuzz import oracles
from tests.fuzz.containers import on_host
from tests.fuzz.oracles import Optimum
from tests.fuzz.problems import Problem, total
from tests.fuzz.trials import Trial, Wrong


def require(holds: Any, text: str) -> None:
    if not holds:
        raise Wrong(text)


def assigned(problem: Problem, run: Any) -> tuple[Any, Optimum | None]:
    """What a call gives, and the optimum; the result is None if both say that there is none."""
    best, is_infeasible = oracles.best(problem), oracles.is_infeasible(problem)
    try:
        result = run()
    except gm.InfeasibleError as exc:
        require(is_infeasible, f"a feasible problem is called infeasible: {exc}")
        return None, None
    if is_infeasible:
        require(not result.proven, "an infeasible problem has a proven result")
    return result, best


def judge(
    trial: Trial, problem: Problem, result: Any, best: Optimum | None, *, may_stop: bool = False
) -> None:
    """Check pairs, objective, cardinality, gap and what is called proven."""
    rows, cols = pairs_of(problem, result)
    check_objective(problem, result, rows, cols)
    gap, net = result.gap, problem.net(rows, cols)
    require(gap >= 0 or abs(gap) <= 1e-9 * abs(net), f"the gap is {gap}")
    if result.proven:
        check_cardinality(problem, rows, cols)
    elif not may_stop and problem.is_exact:
        raise Wrong(f"a run to the end on integers is not proven: gap {gap}")
    trial.unproven += not (result.proven or may_stop)
    if best is None or not is_comparable(problem, rows, cols):
        return
    duals = [abs(on_host(d)).max(initial=0) for d in (result.row_dual, result.col_dual)]
    check_optimum(problem, (rows, cols), best, gap, result.proven, float(max(duals)))


def check_optimum(
    problem: Problem, pairs: Any, best: Optimum, gap: float, proven: bool, dual: float = 0.0
) -> None:
    """Check the sum of c - L over pairs, and the gap, against another assignment."""
    net, other = problem.net(*pairs), problem.net(*best)
    allowance = problem.allowance(pairs, best, dual=dual)
    if proven:
        require(net <= other + allowance, f"called optimal: {net!r}, but {other!r} is possible")
        require(gap <= allowance, f"called optimal with a gap of {gap!r}, above {allowance}")
    elif math.isfinite(gap):
        require(
            net - gap <= other + allowance,
            f"the gap is {gap!r} at {net!r}, but {other!r} is possible",
        )


def pairs_of(problem: Problem, result: Any) -> tuple[np.ndarray, np.ndarray]:
    """The pairs, which both mate arrays name, and which are allowed."""
    row_to_col, col_to_row = on_host(result.row_to_col), on_host(result.col_to_row)
    require(
        (row_to_col.size, col_to_row.size) == problem.shape,
        f"mates of {row_to_col.size} rows and {col_to_row.size} columns of {problem.shape}",
    )
    require(row_to_col.max(initial=-1) < problem.shape[1], "a row has a column out of range")
    rows = np.flatnonzero(row_to_col >= 0)
    cols = row_to_col[rows]
    require(np.array_equal(col_to_row[cols], rows), "the mates do not name each other")
    require((col_to_row >= 0).sum() == rows.size, "the sides have different numbers of mates")
    require(int(result.size) == rows.size, f"size is {result.size}, but there are {rows.size}")
    check_allowed(problem, rows, cols)
    return rows, cols


def check_allowed(problem: Problem, rows: Any, cols: Any) -> None:
    allowed = problem.within() if problem.cardinality == "maximum" else problem
    is_there = allowed.places(rows, cols) >= 0
    if not is_there.all():
        k = int((~is_there).argmax())
        raise Wrong(f"row {rows[k]} has column {cols[k]}, which is forbidden")


def check_objective(problem: Problem, result: Any, rows: Any, cols: Any) -> None:
    sign = -1 if problem.maximize else 1
    paid = (problem.costs[problem.places(rows, cols)] * sign).tolist()
    expected = total(paid, problem.is_exact)
    if problem.is_exact:
        require(
            type(result.objective) is int and result.objective == expected,
            f"the objective is {result.objective!r}, but the pairs cost {expected}",
        )
    else:
        room = 4 * math.ulp(1.0) * math.fsum(map(abs, paid)) + 5e-324
        require(
            abs(result.objective - expected) <= room,
            f"the objective is {result.objective!r}, but the pairs cost {expected!r}",
        )
    listed = on_host(result.pair_costs)
    require(listed.tolist() == paid, "pair_costs are not what the pairs cost")


def check_cardinality(problem: Problem, rows: Any, cols: Any) -> None:
    if problem.cardinality == "maximum":
        most = oracles.rank(problem.within())
        require(rows.size == most, f"{rows.size} pairs are called maximum, but {most} exist")
    elif not problem.is_free:
        require(rows.size == min(problem.shape), f"{rows.size} pairs are not full")
    elif problem.has_limit:
        check_limit(problem, rows, cols)


def check_limit(problem: Problem, rows: Any, cols: Any) -> None:
    """No row and column are both unmatched whose pair costs at most the limit."""
    free_rows, free_cols = np.ones(problem.shape[0], bool), np.ones(problem.shape[1], bool)
    free_rows[rows], free_cols[cols] = False, False
    within = free_rows[problem.rows] & free_cols[problem.cols]
    within &= problem.costs <= problem.limits[problem.rows]
    if within.any():
        k = int(within.argmax())
        raise Wrong(
            f"row {problem.rows[k]} and column {problem.cols[k]} are unmatched, but cost "
            f"{problem.values[k]}, within the limit"
        )


def is_comparable(problem: Problem, rows: Any, cols: Any) -> bool:
    """Whether the pairs are as many as those of any competing assignment."""
    if problem.is_free:
        return True
    if problem.cardinality == "full":
        return rows.size == min(problem.shape)
    return rows.size == oracles.rank(problem.within())


def verified(C: Any, result: Any, **options: Any) -> Any:
    """The certificate; a refusal is a fault."""
    try:
        return gm.verify(C, result, **options)
    except gm.CertificateError as exc:
        raise Wrong(f"verify refuses: {exc}") from exc
