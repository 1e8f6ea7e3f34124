"""Batches: arrays of problems, padded ones, lists of matrices of any shapes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import gpumatch as gm
from tests.fuzz import containers, oracles, problems, values
from tests.fuzz.judgement import judge, require, verified
from tests.fuzz.problems import Problem
from tests.fuzz.trials import Trial

KINDS = ("array", "sizes", "list", "sparse list")


def batch(trial: Trial) -> None:
    kind = trial.pick(KINDS, (5, 3, 3, 1))
    first = (
        problems.sparse_problem(trial, 2**12)
        if kind == "sparse list"
        else problems.dense_problem(trial, 2**18 + 2**10)
    )
    limit = first.limit
    if limit is not None and (np.ndim(limit) or first.values.dtype.kind == "b"):
        limit = None
    first = dataclasses.replace(first, limit=limit)
    most = max(1, 2**19 // max(1, first.rows.size))
    count = min(most, trial.integer(1, 6) if first.rows.size > 100 else trial.integer(1, 40))
    every = [first, *(_like(trial, first, kind) for _ in range(count - 1))]
    C, options = _given(trial, every, kind)
    trial.sized(sum(problem.rows.size for problem in every))
    options |= first.options
    on_error = trial.pick(("raise", "mark"))
    if on_error == "mark" or trial.chance(0.3):
        options["on_error"] = on_error
    if trial.chance(0.3):
        options["threads"] = trial.pick((1, 2))
    if trial.backend == "cuda":
        options["backend"] = "cuda"
    trial.note(kind=kind, C=C, **options)
    _check(trial, every, C, options, is_marked=on_error == "mark")


def _check(
    trial: Trial, every: list[Problem], C: Any, options: dict[str, Any], *, is_marked: bool
) -> None:
    bests = [oracles.best(problem) for problem in every]
    infeasible = [k for k, problem in enumerate(every) if oracles.is_infeasible(problem)]
    try:
        result = gm.assign(C, **options)
    except gm.InfeasibleError as exc:
        require(not is_marked, "an error is raised where it is to be marked")
        require(exc.problem in infeasible, f"problem {exc.problem} is feasible")
        return
    require(len(result) == len(every), f"{len(result)} results of {len(every)}")
    require(is_marked or not infeasible, f"problem {infeasible[:1]} is infeasible")
    require(sorted(result.errors) == infeasible, f"errors {sorted(result.errors)[:5]}")
    for k, (problem, best) in enumerate(zip(every, bests)):
        trial.note(problem=k)
        if k in infeasible:
            require(not result[k].proven and result[k].size == 0, "it has pairs")
            continue
        judge(trial, problem, result[k], best)
    if not infeasible and bool(np.all(np.asarray(result.proven.tolist()))):
        verified(C, result, **{name: options[name] for name in ("sizes",) if name in options})


def _like(trial: Trial, first: Problem, kind: str) -> Problem:
    """A problem of the same dtype and options; in a list, of a shape of its own."""
    shape = first.shape
    if kind != "array":
        shape = tuple(trial.integer(min(1, size), size) for size in shape)
    rows, cols = (part.ravel() for part in np.indices(shape))
    if kind == "sparse list":
        kept = trial.rng.random(rows.size) < 0.5
    elif first.values.dtype.kind == "f" and trial.chance(0.5):
        kept = trial.rng.random(rows.size) >= trial.pick(problems.FORBIDDEN)
    else:
        kept = np.ones(rows.size, bool)
    found = values.drawn(trial, rows, cols, shape, first.values.dtype)
    return dataclasses.replace(
        first, shape=shape, rows=rows[kept], cols=cols[kept], values=found[kept]
    )


def _given(trial: Trial, every: list[Problem], kind: str) -> tuple[Any, dict[str, Any]]:
    if kind == "sparse list":
        only = ("csr", "csc", "coo", "csr_matrix")
        return [
            containers.sparse_form(trial, p.rows, p.cols, p.values, p.shape, only=only)
            for p in every
        ], {}
    matrices = [problem.matrix() for problem in every]
    if kind == "list":
        return [containers.dense(trial, matrix, in_batch=True) for matrix in matrices], {}
    if kind == "array":
        return containers.dense(trial, np.stack(matrices), in_batch=True), {}
    most = np.max([problem.shape for problem in every], axis=0)
    padded = np.zeros((len(every), *most), matrices[0].dtype)
    if trial.chance(0.5) and padded.dtype.kind == "f":
        padded[...] = np.nan  # what is behind the sizes is not looked at
    for k, matrix in enumerate(matrices):
        padded[k, : matrix.shape[0], : matrix.shape[1]] = matrix
    sizes = np.array([problem.shape for problem in every])
    C = containers.dense(trial, padded, in_batch=True)
    return C, {"sizes": (sizes[:, 0], sizes[:, 1])}
