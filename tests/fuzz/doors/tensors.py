"""torch: `batch_linear_assignment`, matchers side by side, and tensors in and out of `assign`."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpumatch as gm
from tests.fuzz import containers, oracles, problems
from tests.fuzz.containers import on_host
from tests.fuzz.doors.batches import _like
from tests.fuzz.judgement import check_allowed, judge, require
from tests.fuzz.problems import Problem
from tests.fuzz.trials import Trial


def tensors(trial: Trial) -> None:
    trial.pick((_assign, _batch, _side_by_side))(trial)


def _assign(trial: Trial) -> None:
    problem = problems.dense_problem(trial, 2**18 + 2**10)
    if problem.values.dtype.name not in containers._TORCH:
        return
    C = _on_its_device(trial, containers.DENSE["tensor"](problem.matrix()))
    trial.note(C=C, **problem.options)
    best = oracles.best(problem)
    try:
        result = gm.assign(C, **problem.options)
    except gm.InfeasibleError:
        require(oracles.is_infeasible(problem), "it is feasible")
        return
    require(hasattr(result.row_to_col, "detach"), "the mates are no tensor")
    judge(trial, problem, result, best)


def _batch(trial: Trial) -> None:
    import torch

    from gpumatch.interop.torch import batch_linear_assignment

    _, every = _drawn(trial)
    cost = _on_its_device(trial, torch.from_numpy(np.stack([p.matrix() for p in every])))
    ties = "scipy" if trial.backend == "cpu" and trial.chance(0.3) else "any"
    errors = _on_error(trial)
    trial.note(cost=cost, ties=ties, **errors)
    bests = [oracles.best(problem) for problem in every]
    found = _called(
        trial, lambda: batch_linear_assignment(cost, ties=ties, **errors), errors, None in bests
    )
    if found is None:
        return
    require(str(found.dtype) == "torch.int64", f"the dtype is {found.dtype}")
    for k, (problem, best) in enumerate(zip(every, bests)):
        mates = on_host(found[k])
        rows = np.flatnonzero(mates >= 0)
        _check(problem, rows, mates[rows], best)


def _side_by_side(trial: Trial) -> None:
    import torch

    from gpumatch.interop.torch import linear_sum_assignment

    first, every = _drawn(trial)
    nrows, ncols = first.shape
    count = len(every)
    C = np.zeros((count, nrows, count * ncols), first.values.dtype)
    for k, problem in enumerate(every):
        C[k, :, k * ncols : (k + 1) * ncols] = problem.matrix()
    bests = [oracles.best(problem) for problem in every]
    tensor = _on_its_device(trial, torch.from_numpy(C))
    errors = _on_error(trial)
    trial.note(C=tensor, **errors)
    found = _called(
        trial,
        lambda: linear_sum_assignment(tensor, [ncols] * count, **errors),
        errors,
        None in bests,
    )
    if found is None:
        return
    for problem, best, pairs in zip(every, bests, found):
        rows, cols = (on_host(side) for side in pairs)
        require(rows.size == min(problem.shape), f"{rows.size} pairs of {problem.shape}")
        if best is not None:
            _check(problem, rows, cols, best)


def _on_error(trial: Trial) -> dict[str, str]:
    what = trial.pick((None, None, "raise", "mark"))
    return {} if what is None else {"on_error": what}


def _called(trial: Trial, run: Any, errors: dict[str, str], is_infeasible: bool) -> Any:
    """What a call gives; None if it rightly raises. Unasked, only the CPU raises."""
    default = "mark" if trial.backend == "cuda" else "raise"
    is_raised = is_infeasible and errors.get("on_error", default) == "raise"
    try:
        found = run()
    except ValueError as exc:
        require(is_raised, f"it must not raise: {exc}")
        return None
    require(not is_raised, "an infeasible problem is passed over in silence")
    return found


def _check(problem: Problem, rows: Any, cols: Any, best: Any) -> None:
    if best is None:
        require(rows.size == 0, "an infeasible problem has pairs")
        return
    require(rows.size == min(problem.shape), f"{rows.size} pairs of {problem.shape}")
    check_allowed(problem, rows, cols)
    net, other = problem.net(rows, cols), problem.net(*best)
    allowance = problem.allowance((rows, cols), best, dual=np.inf)
    require(net <= other + allowance, f"{net!r}, but {other!r} is possible")


def _drawn(trial: Trial) -> tuple[Problem, list[Problem]]:
    dtype = trial.pick((np.float32, np.float32, np.float64, np.int64, np.int32))
    first = problems.dense_problem(trial, 2**14 + 200, dtype, plain=True)
    first = Problem(first.shape, first.rows, first.cols, first.values)  # minimised
    most = max(1, 2**17 // max(1, first.rows.size))
    count = min(most, trial.integer(1, 8))
    every = [first, *(_like(trial, first, "array") for _ in range(count - 1))]
    trial.sized(sum(problem.rows.size for problem in every))
    return first, every


def _on_its_device(trial: Trial, tensor: Any) -> Any:
    import torch

    return tensor.cuda() if trial.backend == "cuda" and torch.cuda.is_available() else tensor
