"""`maximum_matching` by every algorithm, from every start."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import gpumatch as gm
import graphs
from gpumatch.dispatch.registry import STARTS, algorithms
from tests.fuzz import containers, oracles, sizes
from tests.fuzz.containers import on_host
from tests.fuzz.judgement import require, verified
from tests.fuzz.problems import Problem
from tests.fuzz.trials import Trial

FAMILIES: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("rope", "ladder", "chain", "zipf", "bubbles"), ()),
    **{"uniform": (3,), "grid": (0.6,)},
}
SLOW = 2**13
"""Entries up to which the reference and SciPy's worst case take no long time."""


def maximum_matching(trial: Trial) -> None:
    problem = pattern(trial)
    A = containers.pattern_form(trial, problem.rows, problem.cols, problem.shape)
    options = _options(trial, problem)
    size = oracles.rank(problem)
    stops = trial.chance(0.15)
    if stops:
        calls, last = itertools.count(1), trial.integer(1, 4)
        options["callback"] = lambda _: next(calls) >= last
    trial.note(A=A, **options)
    result = gm.maximum_matching(A, **options)
    rows = np.flatnonzero(on_host(result.row_to_col) >= 0)
    cols = on_host(result.row_to_col)[rows]
    require(np.array_equal(on_host(result.col_to_row)[cols], rows), "mates differ")
    require((problem.places(rows, cols) >= 0).all(), "a pair is no edge")
    require(result.size == rows.size, f"size is {result.size}, but there are {rows.size} pairs")
    require(result.proven or stops, "it is not proven")
    if result.proven:
        require(result.size == size, f"{result.size} pairs are called maximum, but {size} exist")
        verified(A, result)


def pattern(trial: Trial) -> Problem:
    """A random pattern, or one of a family that is hard."""
    if trial.chance(0.3):
        family = trial.pick(list(FAMILIES))
        most = {"rope": 24, "ladder": 12}.get(family, 200)  # beyond, SciPy takes for ever
        count = trial.scaled(trial.integer(1, most))
        count = max(5, count // 10) if family in ("grid", "bubbles") else max(count, 2)
        parameters = () if family == "bubbles" else FAMILIES[family]
        seed = trial.integer(0, 2**31)
        matrix = graphs.make(family, count, *parameters, seed=seed).tocoo()
        if matrix.nnz <= SLOW or family in ("uniform", "zipf", "grid"):
            problem = _of(matrix.row, matrix.col, matrix.shape)
            trial.sized(problem.rows.size)
            trial.note(family=family)
            return problem
    nrows, ncols, entries = sizes.sparse_shape(trial)
    rows = trial.rng.integers(0, max(1, nrows), entries)
    cols = trial.rng.integers(0, max(1, ncols), entries)
    if trial.chance(0.3) and entries:  # few columns with most entries
        cols = (trial.rng.random(entries) ** 4 * ncols).astype(np.int64)
    problem = _of(rows, cols, (nrows, ncols))
    trial.sized(problem.rows.size)
    return problem


def _of(rows: Any, cols: Any, shape: tuple[int, int]) -> Problem:
    width = max(1, shape[1])
    keys = np.unique(np.asarray(rows, np.int64) * width + cols)
    return Problem(tuple(shape), keys // width, keys % width, np.ones(keys.size))


def _options(trial: Trial, problem: Problem) -> dict[str, Any]:
    options: dict[str, Any] = {}
    backend = trial.backend
    if problem.rows.size <= 2**10 and trial.chance(0.1):
        backend = "reference"
    if backend != "cpu":
        options["backend"] = backend
    if trial.chance(0.6):
        able = [a for a in algorithms("matching") if backend in a.homes]
        algorithm = trial.pick(able)
        options["algorithm"] = algorithm.name
        for name, values in algorithm.homes[backend].values.items():
            if trial.chance(0.5):
                options[name] = trial.pick(values)
    if trial.chance(0.4):
        options["init"] = trial.pick([name for name, homes in STARTS.items() if backend in homes])
    if trial.chance(0.3) and problem.shape[0]:
        half = gm.maximum_matching(problem.csr(), init="cheap").row_to_col.copy()
        half[trial.rng.random(half.size) < 0.5] = -1
        options["initial"] = half
    if trial.chance(0.3):
        options["threads"] = trial.pick((1, 2, 3))
    if trial.chance(0.2):
        options["seed"] = trial.integer(0, 2**31)
    return options
