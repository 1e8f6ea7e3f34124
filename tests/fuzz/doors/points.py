"""Points in place of costs: every metric, cloud and option, against their matrix."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

import gpumatch as gm
from gpumatch.certificates import boxes
from gpumatch.certificates import pairs as checked_pairs
from gpumatch.costs import called
from gpumatch.costs import points as points_module
from gpumatch.cpu.assignment.points import tuning as host_tunings
from gpumatch.cuda.assignment.points import tuning as device_tunings
from tests.cpu.assignment.tuned import tuned
from tests.fuzz.judgement import (
    assigned,
    check_cardinality,
    check_objective,
    check_optimum,
    is_comparable,
    pairs_of,
    require,
    verified,
)
from tests.fuzz.problems import Problem
from tests.fuzz.trials import Trial

METRICS = ("sqeuclidean", "euclidean", "cityblock", "chebyshev", "cosine", "called")
CLOUDS = (
    *("normal", "uniform", "shifted", "lattice", "copies", "line", "outliers", "equal"),
    *("clusters", "one coordinate"),
)
SCALES = (1.0, 1e6, 1e-6, 1e-25, 1e100, 1e-100, 1e200, 1e-200)
DTYPES = (np.float64, np.float32, np.int64, np.int8)


def along(x: np.ndarray, y: np.ndarray) -> float:
    """A metric of the caller that is not symmetric, with ties."""
    return float(np.rint(2 * abs(x - y).max()) + (x[0] > y[0]))


def points(trial: Trial) -> None:
    """One call, or a batch with it, on the CPU or a GPU."""
    costs, problem = _drawn(trial)
    options = problem.options
    if trial.chance(0.3):
        options["threads"] = trial.pick((1, 2))
    if trial.chance(0.15):
        options["initial"] = _initial(trial, problem)
    is_batch = trial.chance(0.15) and np.ndim(problem.limit) == 0 and "initial" not in options
    trial.note(costs=costs, X=costs.X, Y=costs.Y, is_batch=is_batch, **options)
    if trial.backend == "cuda":
        options["backend"] = "cuda"
    with _led_everywhere(trial):

        def run() -> Any:
            if not is_batch:
                return gm.assign(costs, **options)
            return gm.assign([costs] * trial.integer(1, 3), **options)[0]

        result, best = assigned(problem, run)
        if result is None:
            return
        trial.note(result=result)
        _judge(problem, result, best)
        verified(costs, result, optimal=result.proven)
        if trial.chance(0.3):
            _forge(trial, costs, problem, result)


def _judge(problem: Problem, result: Any, best: Any) -> None:
    rows, cols = pairs_of(problem, result)
    check_objective(problem, result, rows, cols)
    require(result.proven, f"a run to the end is not proven: gap {result.gap}")
    check_cardinality(problem, rows, cols)
    if best is None or not is_comparable(problem, rows, cols):
        return
    duals = [abs(dual).max(initial=0) for dual in (result.row_dual, result.col_dual)]
    # The gap has the rounding of the costs, too: the certificate is held against it.
    check_optimum(problem, (rows, cols), best, 0.0, True, float(max(duals)))


def _forge(trial: Trial, costs: Any, problem: Problem, result: Any) -> None:
    """A dual that is too good must be refused, whatever boxes leave out."""
    most = float(abs(problem.costs).max(initial=0))
    if not (result.size and most):
        return
    side, mates = trial.pick((("row_dual", result.row_ind), ("col_dual", result.col_ind)))
    dual = getattr(result, side).copy()
    dual[trial.pick(mates)] += (-1 if problem.maximize else 1) * 1e-3 * most
    setattr(result, side, dual)
    try:
        gm.verify(costs, result)
    except gm.CertificateError:
        return
    require(False, f"a {side} that is too good was accepted")


def _drawn(trial: Trial) -> tuple[Any, Problem]:
    """Costs of points, and the problem of their matrix."""
    kind = trial.pick(("tiny", "small", "some", "empty"), (6, 8, 2, 1))
    most = {"tiny": 4, "small": 40, "some": 150, "empty": 3}[kind]
    shape = trial.scaled(trial.integer(1, most)), trial.scaled(trial.integer(1, most))
    if kind == "empty":
        shape = trial.pick(((0, shape[1]), (shape[0], 0), (0, 0)))
    elif trial.chance(0.6):
        shape = shape[0], shape[0]
    metric = trial.pick(METRICS, (4, 4, 3, 3, 3, 1))
    cloud, dtype = trial.pick(CLOUDS), trial.pick(DTYPES, (5, 3, 2, 1))
    d = trial.pick((1, 2, 3, 4, 7, 16), (3, 5, 4, 1, 2, 1))
    X, Y = _clouds(trial, cloud, shape, d)
    scale = 1.0
    if dtype == np.float64:
        scale = trial.pick(SCALES, (9, 1, 1, 1, 1, 1, 1, 1))
        if metric == "sqeuclidean" and scale > 1e100:
            scale = 1.0
        X, Y = X * scale, Y * scale
        if metric == "euclidean" and trial.chance(0.1):
            X[trial.rng.random(len(X)) < 0.5] *= 1e-200
    else:
        X, Y = X.astype(dtype), Y.astype(dtype)
    if metric == "cosine":
        X[(X == 0).all(axis=1)], Y[(Y == 0).all(axis=1)] = 1, 1
    offsets = {}
    if trial.chance(0.25):
        for side, count in zip(("row_offset", "col_offset"), shape):
            if trial.chance(0.8):
                offsets[side] = trial.rng.normal(size=count) * scale
    costs = gm.PointCosts(X, Y, along if metric == "called" else metric, **offsets)
    matrix = costs.dense()
    rows, cols = (part.ravel() for part in np.indices(shape))
    maximize = trial.chance(0.4)
    cardinality = trial.pick(("full", "maximum", "any"), (5, 2, 2))
    limit: Any = None
    if trial.chance(0.4) and matrix.size:
        limit = float(np.quantile(matrix, trial.rng.random()))
        if trial.chance(0.5):
            limit = float(matrix[trial.integer(0, shape[0] - 1), trial.integer(0, shape[1] - 1)])
        if trial.chance(0.25):
            limit = trial.rng.choice(matrix.ravel(), shape[0])
    trial.sized(matrix.size)
    trial.note(metric=metric, cloud=cloud, shape=shape, d=d, dtype=dtype, scale=scale)
    return costs, Problem(shape, rows, cols, matrix.ravel(), maximize, cardinality, limit)


def _clouds(trial: Trial, cloud: str, shape: tuple[int, int], d: int) -> list[np.ndarray]:
    rng = trial.rng
    sides = [rng.normal(size=(count, d)) for count in shape]
    if cloud == "uniform":
        sides = [rng.random((count, d)) for count in shape]
    elif cloud == "shifted":
        sides[1] = sides[1] * rng.uniform(0.1, 2) + rng.uniform(-5, 5)
    elif cloud == "lattice":
        sides = [np.rint(trial.pick((0.7, 2.0, 5.0)) * side) for side in sides]
    elif cloud == "copies":
        few = rng.normal(size=(3, d))
        sides = [few[rng.integers(0, 3, count)] for count in shape]
    elif cloud == "line":
        sides = [side[:, :1] * np.arange(1, d + 1) for side in sides]
    elif cloud == "outliers":
        for side in sides:
            side[rng.random(len(side)) < 0.1] += 1e6
    elif cloud == "equal":
        sides = [np.ones_like(side) for side in sides]
    elif cloud == "clusters":
        middles = 10 * rng.normal(size=(4, d))
        sides = [0.1 * side + middles[rng.integers(0, 4, len(side))] for side in sides]
    elif cloud == "one coordinate":
        for side in sides:
            side[:, 1:] = 0
    return [side + 0.0 for side in sides]


def _initial(trial: Trial, problem: Problem) -> np.ndarray:
    """Some pairs, each vertex once."""
    nrows, ncols = problem.shape
    initial = np.full(nrows, -1)
    count = trial.integer(0, min(nrows, ncols))
    initial[trial.rng.permutation(nrows)[:count]] = trial.rng.permutation(ncols)[:count]
    return initial


@contextlib.contextmanager
def _led_everywhere(trial: Trial) -> Iterator[None]:
    """Small constants lead small problems through all steps, of the engine and of the checker."""
    with contextlib.ExitStack() as stack:
        if trial.chance(0.75):
            stack.enter_context(
                tuned(
                    device_tunings if trial.backend == "cuda" else host_tunings,
                    stored=-1,
                    nearest=trial.integer(1, 6),
                    nearest_of_many=trial.integer(2, 6),
                    priced=trial.integer(1, 4),
                    given=trial.integer(1, 4),
                    useless=trial.pick((0.0, 1.0)),
                    sampled_first=trial.integer(0, 2),
                    added=trial.integer(1, 4),
                    least_sampled=trial.pick((8, 30, 2048)),
                    few=trial.pick((0, 4, 256)),
                    share=trial.pick((0.3, 2.0)),
                )
            )
        changes: list[tuple[Any, str, Any]] = []
        if trial.chance(0.5):
            changes += [(checked_pairs, name, -1) for name in ("MANY", "MANY_ON_DEVICE")]
            changes += [(boxes, "LEAF", trial.integer(1, 4))]
        if trial.chance(0.5):
            changes += [(points_module, "FEW", -1)]
        if trial.chance(0.5):
            changes += [(called, "KEPT", -1)]
        for module, name, value in changes:
            stack.enter_context(mock.patch.object(module, name, value))
        yield
