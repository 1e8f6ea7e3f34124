"""Bottlenecks by thresholds and by paths."""

from __future__ import annotations

import dataclasses
from typing import Any

import gpumatch as gm
from tests.fuzz import oracles, problems
from tests.fuzz.containers import on_host
from tests.fuzz.judgement import check_allowed, require, verified
from tests.fuzz.trials import Trial


def bottleneck(trial: Trial) -> None:
    as_sparse = trial.chance(0.5)
    draw = problems.sparse_problem if as_sparse else problems.dense_problem
    problem = draw(trial, 2**18 + 2**10, plain=True)
    cardinality = trial.pick(("full", "full", "maximum"))
    problem = dataclasses.replace(problem, cardinality=cardinality)
    C = problems.given(trial, problem, as_sparse=as_sparse)
    options: dict[str, Any] = {"objective": "bottleneck", **problem.options}
    if as_sparse and cardinality == "full" and trial.backend == "cpu":
        options["algorithm"] = trial.pick(("auto", "thresholds", "paths"))
        if options["algorithm"] == "paths" and not hasattr(C, "tocsr") and type(C) is not tuple:
            options["algorithm"] = "auto"
    if trial.backend == "cuda":
        options["backend"] = "cuda"
    trial.note(C=C, **options)
    least = oracles.bottleneck(problem)
    is_infeasible = oracles.is_infeasible(problem)
    try:
        result = gm.assign(C, **options)
    except gm.InfeasibleError as exc:
        require(is_infeasible, f"it is feasible: {exc}")
        return
    require(not is_infeasible, "it is infeasible")
    require(result.proven, "it is not proven")
    rows, cols = on_host(result.edges()).T
    check_allowed(problem, rows, cols)
    objective = result.objective
    if objective is not None and problem.maximize:
        objective = -objective
    require(objective == least, f"the bottleneck is {objective!r}, but {least!r} is possible")
    verified(C, result)
