"""`maximum_product_matching` and the five jobs of `mc64`."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

import gpumatch as gm
from tests.fuzz import containers, oracles, problems
from tests.fuzz.containers import on_host
from tests.fuzz.judgement import require, verified
from tests.fuzz.problems import Problem
from tests.fuzz.trials import Trial
from tests.fuzz.values import as_read

ONLY = ("csr", "csc", "coo", "unsorted", "csr_matrix", "tuple")


def products(trial: Trial) -> None:
    problem, A = drawn(trial)
    backend = {"backend": "cuda"} if trial.backend == "cuda" else {}
    if trial.chance(0.5):
        _product(problem, A, backend)
    else:
        job = trial.integer(1, 5)
        trial.note(job=job)
        _job(problem, A, job, backend)


def drawn(trial: Trial) -> tuple[Problem, Any]:
    """Entries that are not zero, real or complex, of a wide range or a narrow one."""
    problem = problems.sparse_problem(trial, 2**18 + 2**10, plain=True)
    count = problem.rows.size
    if trial.chance(0.5):
        spread = trial.pick((1, 10, 300))
        values = trial.rng.normal(size=count) * 10.0 ** trial.rng.uniform(-spread, spread, count)
        values = np.clip(values, -1e308, 1e308)
    else:
        values = problem.values.astype(np.float64)
    dtype = np.dtype(trial.pick((np.float64, np.float64, np.float32, np.complex128, np.complex64)))
    most = float(np.finfo(dtype).max)
    values = np.clip(values, -most, most)
    if dtype.kind == "c":
        angles = np.exp(2j * math.pi * trial.rng.random(count))
        values = values * (angles if trial.chance(0.5) else np.ones(count))
    with np.errstate(all="ignore"):
        values = as_read(trial, values.astype(dtype))
    kept = (values != 0) & np.isfinite(values)
    problem = dataclasses.replace(problem, maximize=True).of_pairs(kept)
    values = values[kept]
    problem = dataclasses.replace(problem, values=values)
    is_dense = problem.shape[0] * problem.shape[1] <= 2**16 and trial.chance(0.2)
    if is_dense:
        A = np.zeros(problem.shape, dtype)
        A[problem.rows, problem.cols] = values
    else:
        A = containers.sparse_form(
            trial, problem.rows, problem.cols, values, problem.shape, only=ONLY
        )
    trial.note(A=A, family="entries")
    return problem, A


def _magnitudes(values: np.ndarray) -> np.ndarray:
    """Absolute values in float64, without overflow as far as they are below its end."""
    if values.dtype.kind == "c":
        return np.hypot(values.real.astype(np.float64), values.imag.astype(np.float64))
    return abs(values.astype(np.float64))


def _logs(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "c":
        parts = np.sort([abs(values.real), abs(values.imag)], axis=0).astype(np.longdouble)
        return np.log(parts[1]) + np.log1p((parts[0] / parts[1]) ** 2) / 2
    return np.log(abs(values).astype(np.longdouble))


def _product(problem: Problem, A: Any, backend: dict[str, str]) -> None:
    s = gm.linalg.maximum_product_matching(A, **backend)
    rows = np.flatnonzero(on_host(s.row_to_col) >= 0)
    cols = on_host(s.row_to_col)[rows]
    _check_product(problem, rows, cols, float(s.log_product))
    verified(A, s)


def _check_product(problem: Problem, rows: Any, cols: Any, log_product: float) -> None:
    places = problem.places(rows, cols)
    require((places >= 0).all(), "a pair has no entry")
    logs = _logs(problem.values)
    size = oracles.rank(problem)
    require(rows.size == size, f"{rows.size} pairs, but the rank is {size}")
    total = math.fsum(logs[places].tolist())
    room = 1e-11 * (1 + float(abs(logs).max(initial=0))) * max(1, size)
    require(abs(total - log_product) <= room, f"log_product {log_product}, but it is {total}")
    weighed = dataclasses.replace(
        problem, values=logs.astype(np.float64), cardinality="maximum", maximize=True
    )
    best = oracles.best(weighed)
    if best is not None:
        other = math.fsum(logs[problem.places(*best)].tolist())
        require(total >= other - room, f"a log product of {total}, but {other} is possible")


def _job(problem: Problem, A: Any, job: int, backend: dict[str, str]) -> None:
    found = gm.linalg.mc64(A, job, **backend)
    row_perm, col_perm = on_host(found.row_perm), on_host(found.col_perm)
    nrows, ncols = problem.shape
    require(np.array_equal(np.sort(row_perm), np.arange(nrows)), "row_perm is no permutation")
    require(np.array_equal(np.sort(col_perm), np.arange(ncols)), "col_perm is no permutation")
    size = oracles.rank(problem)
    require(found.rank == size, f"the rank is {found.rank}, but must be {size}")
    least = min(problem.shape)
    places = problem.places(row_perm[:least], col_perm[:least])
    places = places[places >= 0]
    require(places.size >= size, f"{places.size} entries on the diagonal, not {size}")
    if places.size != size or job == 1:
        return
    cardinality = "full" if size == least else "maximum"
    if job == 5:
        _check_product(
            problem, problem.rows[places], problem.cols[places],
            math.fsum(_logs(problem.values)[places].tolist()),
        )  # fmt: skip
        return
    magnitudes = _magnitudes(problem.values)
    weighed = dataclasses.replace(
        problem, values=magnitudes, cardinality=cardinality, maximize=True
    )
    if job in (2, 3):
        optimum = oracles.bottleneck(weighed)
        if size:
            reached = float(magnitudes[places].min())
            require(reached >= -optimum * (1 - 1e-15), f"least {reached}, {-optimum} is possible")
        return
    best = oracles.best(weighed)
    if best is not None:
        used = magnitudes[weighed.places(*best)]
        reached, other = (math.fsum(part.tolist()) for part in (magnitudes[places], used))
        room = 1e-14 * max(1, size) * max(used.max(initial=0), magnitudes[places].max(initial=0))
        require(reached >= other - room, f"a sum of {reached!r}, but {other!r} is possible")
