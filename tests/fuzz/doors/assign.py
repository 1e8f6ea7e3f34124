"""`gpumatch.assign` of one problem: dense and sparse, every option, begun and stopped anywhere."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import gpumatch as gm
from gpumatch.dispatch.registry import algorithms
from tests.fuzz import oracles, problems
from tests.fuzz.containers import on_host
from tests.fuzz.judgement import assigned, judge, require, verified
from tests.fuzz.problems import Problem
from tests.fuzz.transformations import source_of
from tests.fuzz.trials import Trial

NAMED = 2**17
"""Costs up to which all algorithms answer within seconds."""
SLOW = 2**12
"""Costs up to which a round a bid, a paper's own search and the reference do."""
PROGRAMMED = 200
"""Pairs up to which HiGHS is asked, too."""


def assign(trial: Trial) -> None:
    """One call, with whatever options."""
    problem, C = _drawn(trial)
    options = {**problem.options, **_algorithm(trial, problem), **_run(trial)}
    _solve(trial, problem, C, options)


def large_integers(trial: Trial) -> None:
    """Integers beyond what float64 holds, with forbidden pairs, limits and equal costs."""
    problem, C = _drawn(trial, dtype=np.int64)
    bits = trial.integer(40, 61)
    most = min(2**bits, (2**62 - 1) // (8 * (min(problem.shape) + 2)))
    values = trial.rng.integers(-most, most, problem.values.size, endpoint=True)
    if trial.chance(0.5):
        values = most - trial.rng.integers(0, 10, values.size)
    limit = None
    if values.size and trial.chance(0.5):
        limit = int(values[trial.integer(0, values.size - 1)])
    shape = problem.shape
    problem = Problem(
        shape, problem.rows, problem.cols, values, problem.maximize, problem.cardinality, limit
    )
    C = source_of(problem)
    trial.note(C=C, **problem.options)
    _solve(trial, problem, C, problem.options)


def from_initial(trial: Trial) -> None:
    """Begun from a result, from one of other costs, or from pairs."""
    problem, C = _drawn(trial)
    kind = trial.pick(("own", "other costs", "pairs", "some pairs"))
    initial = _initial(trial, problem, kind)
    trial.note(initial=kind)
    options = {**problem.options, **_algorithm(trial, problem), **_run(trial)}
    if initial is not None:
        options["initial"] = initial
    _solve(trial, problem, C, options)


def from_hostile_initial(trial: Trial) -> None:
    """Begun from what is no such thing: a right answer, or an error that says so."""
    problem, C = _drawn(trial, most=2**17 + 2**10)
    initial = _hostile(trial, problem)
    options = {**problem.options, **_algorithm(trial, problem), "initial": initial}
    trial.note(C=C, **options)
    try:
        result, best = assigned(problem, lambda: gm.assign(C, **options))
    except (ValueError, TypeError) as exc:
        require("initial" in str(exc), f"an error that does not name initial: {exc!r}")
        return
    if result is None:
        return
    judge(trial, problem, result, best, may_stop=not result.proven)
    if result.proven:
        verified(C, result)


def stopped(trial: Trial) -> None:
    """Stopped by its time limit or its callback: nothing is called optimal that is not."""
    problem, C = _drawn(trial)
    options = {**problem.options, **_algorithm(trial, problem, named=0.8)}
    if trial.chance(0.5):
        initial = _initial(trial, problem, trial.pick(("pairs", "other costs")))
        if initial is not None:
            options["initial"] = initial
    if trial.chance(0.5):
        options["time_limit"] = trial.pick((0, 1e-9, 1e-3, 0.02))
    else:
        calls, last = itertools.count(1), trial.pick((1, 1, 2, 3, 5, 20))
        options["callback"] = lambda _: next(calls) >= last
        trial.note(stops_at_call=last)
    _solve(trial, problem, C, options, may_stop=True)


def _solve(
    trial: Trial, problem: Problem, C: Any, options: dict[str, Any], *, may_stop: bool = False
) -> None:
    trial.note(C=C, **options)
    may_stop = may_stop or _is_approximate(options)
    result, best = assigned(problem, lambda: gm.assign(C, **options))
    if result is None:
        return
    trial.note(result=result)
    judge(trial, problem, result, best, may_stop=may_stop)
    if result.proven:
        verified(C, result)
        _ask_programming(problem, result)
    elif np.isfinite(result.gap):
        verified(C, result, optimal=False)


def _ask_programming(problem: Problem, result: Any) -> None:
    """HiGHS's optimum, which is right to about 1e-7."""
    most = float(abs(problem.costs).max(initial=0))
    if problem.rows.size > PROGRAMMED or not 1e-6 < most < 1e6:
        return
    optimum = oracles.by_programming(
        problem.within() if problem.cardinality == "maximum" else problem
    )
    if optimum is not None:
        net = problem.net(on_host(result.row_ind), on_host(result.col_ind))
        require(abs(net - optimum) <= 1e-5 * (most + 1), f"{net}, but HiGHS finds {optimum}")


def _is_approximate(options: dict[str, Any]) -> bool:
    return options.get("algorithm") == "dgs" or options.get("finish") == "epsilon"


def _drawn(trial: Trial, most: int = 2**21 + 2**15, dtype: Any = None) -> tuple[Problem, Any]:
    as_sparse = trial.chance(0.4) and dtype is None
    problem = (
        problems.sparse_problem(trial, min(most, 2**20 + 2**12))
        if as_sparse
        else problems.dense_problem(trial, most, dtype)
    )
    return problem, problems.given(trial, problem, as_sparse=as_sparse)


def _algorithm(trial: Trial, problem: Problem, named: float = 0.4) -> dict[str, Any]:
    """An algorithm with some of its options, if the problem is small enough for it."""
    cells = problem.shape[0] * problem.shape[1]
    backend = {"backend": "cuda"} if trial.backend == "cuda" else {}
    if not trial.chance(named) or cells > NAMED or problem.rows.size > NAMED:
        return backend
    where = trial.backend
    if cells <= 400 and trial.chance(0.15):
        where, backend = "reference", {"backend": "reference"}
    able = [a for a in algorithms("assignment") if where in a.homes]
    algorithm = trial.pick(able)
    if algorithm.name == "hungarian-classical" and cells > 2**14:
        return backend
    options = {
        name: trial.pick(values)
        for name, values in algorithm.homes[where].values.items()
        if trial.chance(0.5)
    }
    is_wide = not problem.is_exact or int(abs(problem.costs).max(initial=0)) > 1000
    if cells > SLOW or is_wide or problem.rows.size < cells:  # price wars take for ever
        options.pop("scaling", None)
        if where == "reference" and algorithm.name == "auction":
            return {}
    return {"algorithm": algorithm.name, **backend, **options}


def _run(trial: Trial) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if trial.chance(0.3):
        options["threads"] = trial.pick((1, 2, 3))
    if trial.chance(0.2):
        options["seed"] = trial.integer(0, 2**31)
    if trial.chance(0.1):
        options["callback"] = lambda _: None
    return options


# -- what it begins from ---------------------------------------------------------------------------


def _initial(trial: Trial, problem: Problem, kind: str) -> Any:
    """None if there is none to be had."""
    if kind in ("own", "other costs"):
        values = problem.values
        if kind == "other costs" and values.dtype.kind == "f":
            values = values * trial.rng.uniform(0.5, 1.5, values.size).astype(values.dtype)
        elif kind == "other costs":
            values = np.minimum(values, values[::-1])
        other = Problem(
            problem.shape, problem.rows, problem.cols, values, problem.maximize,
            problem.cardinality, problem.limit,
        )  # fmt: skip
        try:
            return gm.assign(source_of(other), **other.options)
        except gm.InfeasibleError:
            return None
    mates = np.full(problem.shape[0], -1)
    if kind == "pairs":
        m = gm.maximum_matching(problem.csr())
        return m if trial.chance(0.5) else m.row_to_col
    count = trial.integer(0, min(problem.shape))
    mates[trial.rng.permutation(problem.shape[0])[:count]] = trial.rng.permutation(
        problem.shape[1]
    )[:count]
    return mates.tolist() if trial.chance(0.2) and mates.size else mates


def _hostile(trial: Trial, problem: Problem) -> Any:
    """Mutated results of the same or of another problem, and arrays that are no mates."""
    nrows, ncols = problem.shape
    kind = trial.pick(("duals", "duals", "duals", "mates", "mates", "shape"))
    initial = _initial(trial, problem, trial.pick(("own", "other costs")))
    if kind == "duals" and initial is not None:
        name = trial.pick(("row_dual", "col_dual"))
        for side in {name, "col_dual"}:
            dual = getattr(initial, side).astype(np.float64)
            bad = trial.pick((np.nan, np.inf, -np.inf, 1e308, -1e308, 1e18, -1e18, 1e-320))
            places = trial.rng.random(dual.size) < trial.pick((0.1, 1.0))
            dual[places] = bad
            kept = np.float64 if trial.chance(0.8) else np.float32
            setattr(initial, side, dual.astype(kept))
            trial.note(hostile=f"{side} {bad}")
        return initial
    mates = trial.rng.integers(-1, max(1, ncols), nrows)
    if kind == "shape":
        trial.note(hostile="shape")
        return trial.pick((mates[:-1], np.append(mates, 0), mates[None], mates.astype(float)))
    bad = trial.pick((-2, ncols, 2**31, 2**40, -(2**40), 0))
    mates[trial.rng.random(nrows) < 0.2] = bad
    trial.note(hostile=f"mates {bad}")
    return mates
