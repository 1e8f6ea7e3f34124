"""`transport` with masses, bounds and capacities of all kinds, and maximum b-matchings."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, vstack
from scipy.sparse.csgraph import maximum_flow

import gpumatch as gm
from gpumatch.certificates import CertificateError, check_violator
from tests.fuzz import containers, problems
from tests.fuzz.containers import on_host
from tests.fuzz.doors.matching import pattern
from tests.fuzz.judgement import require, verified
from tests.fuzz.problems import Problem
from tests.fuzz.trials import Trial, Wrong

MOST = 2**13
"""Pairs up to which HiGHS solves a problem in a second."""
MODERATE = 1e6
"""Numbers up to which HiGHS agrees to eight digits."""


def transport(trial: Trial) -> None:
    as_sparse = trial.chance(0.5)
    draw = problems.sparse_problem if as_sparse else problems.dense_problem
    problem = draw(trial, MOST, plain=True)
    C = problems.given(trial, problem, as_sparse=as_sparse)
    supply, demand, exact = _masses(trial, problem.shape)
    options: dict[str, Any] = {"maximize": problem.maximize}
    options["cardinality"] = trial.pick(("full", "full", "maximum", "any"))
    if trial.chance(0.3) and problem.values.size:
        options["cost_limit"] = float(problem.values[trial.integer(0, problem.values.size - 1)])
    capacity = None
    if trial.chance(0.3):
        capacity = trial.rng.integers(0, 6, problem.shape)
        options["pair_capacity"] = capacity = capacity if trial.chance(0.7) else 2
    if trial.chance(0.3):
        duals = (trial.rng.normal(size=length) for length in problem.shape)
        options["initial"] = tuple(duals)
    stops = trial.chance(0.1)
    if stops:
        calls, last = itertools.count(1), trial.integer(1, 6)
        options["callback"] = lambda _: next(calls) >= last
    how = {name: options[name] for name in options.keys() - {"initial", "callback"}}
    given = {"supply": supply, "demand": demand}
    trial.note(C=C, **given, **options)
    least = None if stops else _least(problem, exact, how)
    try:
        t = gm.transport(C, **given, **options)
    except gm.InfeasibleError as exc:
        require(least is None or least[0] is None, f"it is feasible: {exc}")
        try:
            check_violator(C, supply, demand, exc, **how)
        except CertificateError as wrong:
            raise Wrong(f"the violator is none: {wrong}") from wrong
        return
    room = {} if capacity is None else {"pair_capacity": capacity}
    if not t.proven:
        require(stops, "it is not proven")
        verified(C, t, optimal=False, **given, **room)
        return
    verified(C, t, **given, **room)
    if least is not None:
        require(least[0] is not None, "it is infeasible")
        value = float(t.objective) - (least[1] * t.total if least[1] else 0)
        value *= -1 if problem.maximize else 1
        bar = 1e-7 * max(1.0, abs(least[0]), float(abs(t.pair_costs * t.flow).sum()))
        require(abs(value - least[0]) <= bar, f"{value} is called optimal, but not {least[0]}")


def _masses(trial: Trial, shape: tuple[int, int]) -> tuple[Any, Any, list[Any]]:
    """Supply and demand as they are given, and the bounds of both sides as floats."""
    kind = trial.pick(("small", "ones", "large", "floats", "single"))
    found, exact = [], []
    for length in shape:
        upper: Any = trial.rng.integers(0, 7, length)
        if kind == "ones":
            upper = np.ones(length, np.int64)
        elif kind == "large":
            upper = trial.rng.integers(0, 10**9, length)
        elif kind == "floats":
            upper = trial.rng.random(length)
        elif kind == "single":
            upper = np.int64(trial.integer(0, 5))
        lower = upper * 0
        if trial.chance(0.25):
            lower = upper * 0.5 if kind == "floats" else upper // 2
        found.append((lower, upper) if np.any(lower) else upper)
        exact.append([np.broadcast_to(part, length).astype(float) for part in (lower, upper)])
    return found[0], found[1], exact


def _least(problem: Problem, masses: list[Any], how: dict[str, Any]) -> Any:
    """The least cost by HiGHS, and what a unit's limit is; the cost is None if infeasible.

    None where HiGHS would not be exact enough.
    """
    sign, limit = (-1 if problem.maximize else 1), how.get("cost_limit")
    costs = problem.values.astype(np.float64) * sign
    lower, upper = (np.concatenate([side[k] for side in masses]) for k in (0, 1))
    largest = max(abs(costs).max(initial=0), upper.max(initial=0))
    if not largest <= MODERATE or upper.sum() > MODERATE:
        return None
    rows, cols = problem.rows, problem.cols
    is_largest = how["cardinality"] == "maximum"
    if limit is not None and is_largest:
        kept = costs <= sign * limit
        rows, cols, costs = rows[kept], cols[kept], costs[kept]
    is_free = not is_largest and (how["cardinality"] == "any" or limit is not None)
    base = limit if is_free and limit is not None else 0
    most = np.broadcast_to(how.get("pair_capacity", np.inf), problem.shape)[rows, cols]
    entry = np.arange(rows.size)
    one = np.ones(rows.size)
    width = max(rows.size, 1)
    ends = vstack(
        [
            coo_array((one, (rows, entry)), shape=(problem.shape[0], width)),
            coo_array((one, (cols, entry)), shape=(problem.shape[1], width)),
        ]
    )
    weights = np.zeros(width)
    weights[entry] = costs - sign * base
    bounds = [(0, bound) for bound in most] or [(0, 0)]
    given = {
        "A_ub": csr_array(vstack([ends, -ends])),
        "b_ub": np.concatenate([upper, -lower]),
        "bounds": bounds,
    }
    if is_free:
        found = linprog(weights, **given)
        return found.fun, base
    every = np.zeros(width)
    every[entry] = 1
    total = min(side[1].sum() for side in masses)
    if is_largest:
        largest_flow = linprog(-every, **given)
        if largest_flow.status == 2:
            return None, 0
        total = -largest_flow.fun
    slack = 1e-12 * max(total, 1)
    given["A_ub"] = csr_array(vstack([given["A_ub"], csr_array(-every[None])]))
    given["b_ub"] = np.append(given["b_ub"], slack - total)
    found = linprog(weights, **given)
    return (None, 0) if found.status == 2 else (found.fun, 0)


def b_matching(trial: Trial) -> None:
    problem = pattern(trial)
    A = containers.pattern_form(trial, problem.rows, problem.cols, problem.shape)
    most = trial.pick((1, 2, 5, 50))
    capacities = [trial.rng.integers(0, most + 1, length) for length in problem.shape]
    trial.note(A=A, row_capacity=capacities[0], col_capacity=capacities[1])
    m = gm.maximum_matching(A, row_capacity=capacities[0], col_capacity=capacities[1])
    rows, cols = on_host(m.edges()).T
    require((problem.places(rows, cols) >= 0).all(), "a pair is no edge")
    require(len(set(zip(rows.tolist(), cols.tolist()))) == m.size, "an edge is there twice")
    for side, ends, room in zip(("row", "column"), (rows, cols), capacities):
        degrees = np.bincount(ends, minlength=room.size)
        require((degrees <= room).all(), f"a {side} is beyond its capacity")
    require(m.proven, "it is not proven")
    size = _size_by_flow(problem, capacities)
    require(m.size == size, f"{m.size} edges are called maximum, but {size} exist")
    verified(A, m)


def _size_by_flow(problem: Problem, capacities: list[Any]) -> int:
    nrows, ncols = problem.shape
    source, sink = nrows + ncols, nrows + ncols + 1
    tails = np.concatenate([np.full(nrows, source), problem.rows, nrows + np.arange(ncols)])
    heads = np.concatenate([np.arange(nrows), nrows + problem.cols, np.full(ncols, sink)])
    room = np.concatenate([capacities[0], np.ones(problem.rows.size, int), capacities[1]])
    arcs = csr_array((room.astype(np.int32), (tails, heads)), shape=(sink + 1, sink + 1))
    return int(maximum_flow(arcs, source, sink).flow_value)
