"""The same problem, changed in ways that must not matter, and solved in others."""

from __future__ import annotations

import math
from typing import Any

import gpumatch as gm
from tests.fuzz import problems
from tests.fuzz.judgement import check_allowed, check_cardinality, require
from tests.fuzz.problems import Problem
from tests.fuzz.transformations import TRANSFORMATIONS, WAYS, Unproven, pairs_of_result, source_of
from tests.fuzz.trials import Trial

CHANGES = 3


def metamorphic(trial: Trial) -> None:
    """Some changes, and some ways."""
    draw = problems.sparse_problem if trial.chance(0.3) else problems.dense_problem
    problem = draw(trial)
    names = [*TRANSFORMATIONS, *WAYS]
    for name in dict.fromkeys(trial.pick(names) for _ in range(CHANGES)):
        trial.note(change=name, C=source_of(problem), **problem.options)
        check_change(trial, problem, name)


def check_change(trial: Trial, problem: Problem, name: str) -> bool:
    """Check one change; False if it does not apply to the problem."""
    try:
        if name in WAYS:
            return _check_way(trial, problem, name)
        changed = TRANSFORMATIONS[name](trial, problem)
        if changed is None:
            return False
        other, expected = changed
        trial.note(other=source_of(other), options_of_other=other.options)
        first, second = _solved(trial, problem), _solved(trial, other)
        _check_both(first, second, name)
        if first is not None and second is not None:
            rounding = problem.allowance(first) + other.allowance(second)
            _check_nets(expected(problem.net(*first)), other.net(*second), rounding, name)
    except Unproven:
        trial.unproven += 1
    return True


def _check_way(trial: Trial, problem: Problem, name: str) -> bool:
    first = _solved(trial, problem)
    try:
        second = WAYS[name](trial, problem)
    except gm.InfeasibleError as exc:
        require(first is None, f"{name}: a feasible problem is called infeasible: {exc}")
        return True
    except ValueError as exc:  # SciPy's names raise no error of their own kind
        if first is not None or not str(exc).endswith(("is infeasible", "matching exists")):
            raise
        return True
    if second is None:
        return False
    _check_both(first, second, name)
    if first is not None:
        check_allowed(problem, *second)
        check_cardinality(problem, *second)
        rounding = 2 * problem.allowance(first, second)
        _check_nets(problem.net(*first), problem.net(*second), rounding, name)
    return True


def _solved(trial: Trial, problem: Problem) -> Any:
    """The pairs; None if there is no full assignment."""
    backend = {"backend": "cuda"} if trial.backend == "cuda" else {}
    try:
        result = gm.assign(source_of(problem), **problem.options, **backend)
    except gm.InfeasibleError:
        return None
    pairs = pairs_of_result(result)
    check_allowed(problem, *pairs)
    check_cardinality(problem, *pairs)
    return pairs


def _check_both(first: Any, second: Any, name: str) -> None:
    require((first is None) == (second is None), f"{name}: one of the two is called infeasible")


def _check_nets(expected: Any, found: Any, rounding: float, name: str) -> None:
    if math.isinf(rounding):
        return
    require(
        abs(expected - found) <= rounding,
        f"{name}: {found!r} where {expected!r} must be, up to {rounding}",
    )
