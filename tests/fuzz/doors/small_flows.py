"""`transport` of a few rows and columns, alone or in batches, by each way through the engine.

The problems are those of `tests/transport_problems.py`, which HiGHS solves in milliseconds. Here
they get capacities, initial duals, points for costs and units of all sizes. The bounds from which
the engine takes a way are lowered, so that each way sees small problems.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.certificates import CertificateError, check_violator
from gpumatch.cpu.transport import dense, engine, few_columns
from gpumatch.problems import small_transports
from tests.fuzz.judgement import require
from tests.fuzz.trials import Trial, Wrong
from tests.transport_problems import Problem, problem

METRICS = ("sqeuclidean", "euclidean", "cityblock", "chebyshev")
SCALES = (2.0**-40, 3 * 2.0**20, 10**9)
"""Units of masses: each has whole multiples only."""
CORE = dense.Tuning(whole=0, features=2, row_arcs=2, col_arcs=1, more_arcs=2, loose=0)
LARGER = 24
"""Rows and columns of a few problems, at most."""


def small_transport(trial: Trial) -> None:
    count = trial.pick((1, trial.integer(2, 4)), (85, 15))
    first = _drawn(trial, trial.seed)
    drawn = [first]
    while len(drawn) < count:
        other = _drawn(trial, trial.integer(0, 2**40))
        drawn.append(_with_wish(other, first.wish))
    options: dict[str, Any] = {"threads": 1, **first.wish}
    trial.sized(sum(p.matrix.size for p in drawn))
    with _by_a_way(trial):
        if count > 1:
            _judge_batch(trial, drawn, options)
            return
        if trial.chance(0.5):
            first = first._replace(source=_as_one_of_many(first.source))
        if trial.chance(0.15):
            options["initial"] = tuple(
                trial.rng.normal(size=length) for length in first.matrix.shape
            )
        trial.note(C=first.source, masses=first.masses, **_room_of(first), **options)
        supply, demand = first.masses
        try:
            t = gm.transport(first.source, supply, demand, **_room_of(first), **options)
        except gm.InfeasibleError as exc:
            t = exc
        _judge(first, t)


def _judge_batch(trial: Trial, drawn: list[Problem], options: dict[str, Any]) -> None:
    """Solve all of them in one call, and judge each."""
    if any(p.capacity is not None for p in drawn):  # then each has some
        drawn = [p if p.capacity is not None else _with_capacity(p, np.inf) for p in drawn]
    costs = [_as_one_of_many(p.source) for p in drawn]
    supply, demand = ([p.masses[side] for p in drawn] for side in (0, 1))
    rooms = [_room_of(p) for p in drawn]
    given = {name: [room[name] for room in rooms] for name in rooms[0]}
    trial.note(C=costs, supply=supply, demand=demand, **given, **options)
    batch = gm.transport(costs, supply, demand, on_error="mark", **given, **options)
    for k, p in enumerate(drawn):
        _judge(p, batch.errors.get(k, batch[k]))


def _judge(p: Problem, t: Any) -> None:
    """Compare a result, or the error in its place, with that of HiGHS, and check its proof."""
    least, room, (supply, demand) = p.least(), _room_of(p), p.masses
    if isinstance(t, gm.InfeasibleError):
        require(least is None, f"it is feasible: {t}")
        try:
            check_violator(p.source, supply, demand, t, **room, **p.wish)
        except CertificateError as wrong:
            raise Wrong(f"the violator is none: {wrong}") from wrong
        return
    require(not isinstance(t, Exception), f"it raised {t!r}")
    require(least is not None, "it is infeasible")
    require(t.proven, "it is not proven")
    try:
        gm.verify(p.source, t, supply=supply, demand=demand, **room)
    except CertificateError as wrong:
        raise Wrong(f"verify refused it: {wrong}") from wrong
    flow = np.zeros(p.matrix.shape)
    flow[t.row_ind, t.col_ind] = t.flow / p.scale
    cost = float((flow * p.matrix).sum())
    limit = p.wish["cost_limit"] or 0
    value = p.sign * (cost - (limit * flow.sum() if p.is_free else 0))
    bar = 1e-7 * max(1, abs(least[0]))
    require(abs(float(t.objective) / p.scale - cost) <= bar, "the objective is another one")
    require(abs(value - least[0]) <= bar, f"{value} is called optimal, but not {least[0]}")
    require(p.is_free or abs(flow.sum() - least[1]) <= 1e-9 * flow.sum(), "it ships another total")


# -- what is drawn ---------------------------------------------------------------------------------


def _drawn(trial: Trial, seed: int) -> Problem:
    p = problem(seed, LARGER if trial.chance(0.05) else 6)
    if trial.chance(0.15) and p.matrix.size:
        p = _of_points(trial, p)
    if trial.chance(0.2):
        p = _of_units(p, trial.pick(SCALES))
    if trial.chance(0.25):
        capacity = trial.rng.integers(0, 5, p.matrix.shape).astype(float)
        capacity[trial.rng.random(capacity.shape) < 0.2] = np.inf
        p = p._replace(capacity=capacity) if trial.chance(0.7) else _with_capacity(p, 2.0)
    return p


def _of_points(trial: Trial, p: Problem) -> Problem:
    """The problem with distances as costs."""
    X, Y = (trial.rng.integers(-4, 5, (length, 2)).astype(float) for length in p.matrix.shape)
    if trial.chance(0.5):
        X += trial.rng.random(X.shape)
    source = gm.PointCosts(X, Y, trial.pick(METRICS))
    matrix = source.dense()
    return p._replace(source=source, matrix=matrix, allowed=np.ones(matrix.shape, bool))


def _of_units(p: Problem, scale: Any) -> Problem:
    """The same masses in other units."""
    masses = [
        (lower * scale, upper * scale) if lower.any() else upper * scale
        for lower, upper in (p.supply, p.demand)
    ]
    return p._replace(masses=(masses[0], masses[1]), scale=float(scale))


def _with_capacity(p: Problem, most: float) -> Problem:
    """The problem with the same capacity of all pairs."""
    return p._replace(capacity=np.full(p.matrix.shape, most))


def _as_one_of_many(source: Any) -> Any:
    """Costs as a list takes them: a tuple would be a part of the list."""
    if isinstance(source, tuple):
        indptr, indices, data, shape = source
        return csr_array((data, indices, indptr), shape=shape)
    return source


def _with_wish(p: Problem, wish: dict[str, Any]) -> Problem:
    """The problem with the options of another one; what it forbids stays forbidden."""
    source = p.source
    if isinstance(source, np.ndarray) and source.dtype.kind == "f":
        far = -np.inf if wish["maximize"] else np.inf
        source = np.where(p.allowed, p.matrix, far)
    return p._replace(source=source, wish=wish)


def _room_of(p: Problem) -> dict[str, Any]:
    """The capacities of pairs as the library takes them."""
    return {} if p.capacity is None else {"pair_capacity": p.capacity * p.scale}


@contextlib.contextmanager
def _by_a_way(trial: Trial) -> Iterator[None]:
    """Let the library take one of its ways, which only larger problems take otherwise."""
    ways = ("small", "network", "paths", "auction", "core", "few", "pivots")
    way = trial.pick(ways, (3, 2, 1, 2, 2, 2, 1))
    trial.note(way=way)
    lowered: list[tuple[Any, dict[str, Any]]]
    lowered = [(small_transports, {"MOST": 0, "MOST_OF_NETWORK": 0})]
    if way == "small":
        lowered = []
    elif way == "network":
        lowered = [(small_transports, {"MOST": 0})]
    elif way == "auction":
        lowered.append((engine, {"FEW": 0}))
    elif way != "paths":
        lowered += [(engine, {"SMALL": 0}), (dense, {"DEFAULT": CORE})]
    if way in ("few", "pivots"):
        lowered.append((few_columns, {"LEAST": 4, "RATIO": 1}))
    if way == "pivots":
        lowered.append((few_columns, {"NARROW": 1}))
    with contextlib.ExitStack() as stack:
        for module, values in lowered:
            stack.enter_context(mock.patch.multiple(module, **values))
        yield
