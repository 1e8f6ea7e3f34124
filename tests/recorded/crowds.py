"""Crowds: many random problems of a kind, added up, on one thread.

Few problems leave most comparisons, ties and bounds of an algorithm without one that falls on both
sides of them. Of a crowd, some problem shows any other turn that a search takes. Every second one
is solved in small steps, from which searches return to Python.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
from scipy.sparse import csr_array

from gpumatch import InfeasibleError, algorithms, assign, linalg, maximum_matching
from gpumatch.cpu.assignment.dense import tuning as dense_tuning
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.cpu.assignment.sparse.tuning import LONG, SHORT
from gpumatch.cpu.matching.engine import Tuning
from gpumatch.optimize import linear_sum_assignment
from tests.cpu.assignment.tuned import tuned
from tests.recorded import assignment, matching
from tests.recorded.record import Fields, Group, added, in_small_steps, work_of

MEMBERS = 40
SMALL_BUDGET = 60
SIDES = 1, 40
WIDE = 60, 150
"""Sides of the problems of the last two kinds: vectors and rows' lists are full."""

Make = Callable[[np.random.Generator, tuple[int, int]], Any]


def _dense(low: int, high: int, unit: float = 1) -> Make:
    def make(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        drawn = rng.integers(low, high, shape)
        return drawn if unit == 1 else drawn * unit

    return make


def _holed(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    costs = rng.integers(-20, 60, shape) * 0.5
    costs[rng.random(shape) < rng.choice([0.2, 0.7])] = np.inf
    return costs


def _products(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    rows, cols = (rng.integers(1, 30, side) for side in shape)
    return np.multiply.outer(rows, cols)


def _sparse(high: int, unit: float = 1) -> Make:
    def make(rng: np.random.Generator, shape: tuple[int, int]) -> csr_array:
        is_stored = rng.random(shape) < rng.choice([1.2, 2.5, 6]) / max(shape)
        if rng.random() < 0.5:
            np.fill_diagonal(is_stored, True)
        rows, cols = is_stored.nonzero()
        drawn = rng.integers(-high // 4, high, rows.size)
        return csr_array((drawn if unit == 1 else drawn * unit, (rows, cols)), shape=shape)

    return make


KINDS: dict[str, Make] = {
    "few values": _dense(0, 4),
    "many values": _dense(-300, 3000),
    "halves": _dense(-40, 90, 0.5),
    "holed": _holed,
    "products": _products,
    "sparse, few values": _sparse(4),
    "sparse": _sparse(900),
    "sparse halves": _sparse(80, 0.5),
    "wide": _dense(0, 40),
    "sparse, wide": _sparse(30),
}


def _told(rng: np.random.Generator) -> dict[str, Any]:
    """What `assign` is told besides."""
    return [
        {},
        {"maximize": True},
        {"cardinality": "maximum"},
        {"cardinality": "any"},
        {"cost_limit": int(rng.integers(0, 30))},
        {"cardinality": "maximum", "cost_limit": 9},
    ][rng.integers(6)]


def _shape(rng: np.random.Generator, low: int, high: int) -> tuple[int, int]:
    rows, cols = rng.integers(low, high, 2).tolist()
    return rows, rows if rng.random() < 0.5 else cols


def _assign(arguments: Mapping[str, Any], patches: Mapping[str, Any]) -> dict[str, Fields]:
    return {
        kind: _crowd(functools.partial(_one, arguments, kind), assignment.WITH_BUDGETS, patches)
        for kind in KINDS
    }


def _assign_tuned(
    tuning: ModuleType, fields: Mapping[str, Any], patches: Mapping[str, Any]
) -> dict[str, Fields]:
    """Assign by the engine, with other numbers in its tuning."""
    with tuned(tuning, **fields):
        return _assign({"algorithm": "engine", "backend": "cpu"}, patches)


def _crowd(one: Callable[[int], Fields], budgets: list[str], patches: Mapping[str, Any]) -> Fields:
    with contextlib.ExitStack() as patched:
        for name, value in patches.items():
            patched.enter_context(mock.patch(f"gpumatch.cpu.{name}", value))
        parts = [one(number) for number in range(0, MEMBERS, 2)]
        with in_small_steps(budgets, SMALL_BUDGET):
            parts += [one(number) for number in range(1, MEMBERS, 2)]
    return added(parts)


def _one(arguments: Mapping[str, Any], kind: str, number: int) -> Fields:
    rng = np.random.default_rng([number, *kind.encode()])
    costs = KINDS[kind](rng, _shape(rng, *(WIDE if kind.endswith("wide") else SIDES)))
    ticks: list[Any] = []
    try:
        a = assign(costs, threads=1, seed=1, callback=ticks.append, **_told(rng), **arguments)
    except InfeasibleError:
        return {"infeasible": 1, "ticks": len(ticks)}
    except ValueError:  # no algorithm takes everything
        return {"refused": 1}
    found = {"size": a.size, "objective": a.objective, "ticks": len(ticks)}
    return {**found, **work_of(a.stats)}


def _assign_small() -> dict[str, Fields]:
    """Each dense problem in one compiled call, all in a batch, and under SciPy's name."""
    return {
        kind: _crowd(functools.partial(_one_small, kind), [], {})
        for kind in KINDS
        if not kind.startswith("sparse")
    }


def _one_small(kind: str, number: int) -> Fields:
    rng = np.random.default_rng([number, *kind.encode()])
    costs = KINDS[kind](rng, _shape(rng, *(WIDE if kind.endswith("wide") else SIDES)))
    told = {**_told(rng), "threads": 1}
    batch = assign([costs, costs[::-1], costs[:, ::-1].T], on_error="mark", **told)
    found = {
        "size": int(batch.size.sum()),
        "objective": batch.objective[batch.proven].sum().item(),
        "infeasible": len(batch.errors),
    }
    if not batch.errors:
        found["alone"] = assign(costs, **told).objective
    if np.isfinite(costs).all():
        pairs = linear_sum_assignment(costs, told.get("maximize", False))
        found["under SciPy's name"] = costs[pairs].sum().item()
    return found


def _match(arguments: Mapping[str, Any], patches: Mapping[str, Any]) -> dict[str, Fields]:
    return {
        f"init {init}": _crowd(
            functools.partial(_one_matching, arguments, init), matching.WITH_BUDGETS, patches
        )
        for init in ("none", "cheap", "karp-sipser")
    }


def _one_matching(arguments: Mapping[str, Any], init: str, number: int) -> Fields:
    rng = np.random.default_rng([number, 7])
    shape = _shape(rng, *(WIDE if number % 3 == 0 else SIDES))
    graph = csr_array(rng.random(shape) < rng.choice([0.7, 1.5, 2.5, 6]) / max(shape))
    ticks: list[Any] = []
    m = maximum_matching(graph, init=init, threads=1, seed=1, callback=ticks.append, **arguments)
    rows, cols = m.vertex_cover()
    cover = {"rows of the cover": len(rows), "columns of the cover": len(cols)}
    return {"size": m.size, **cover, "ticks": len(ticks), **work_of(m.stats)}


def _decompose() -> dict[str, Fields]:
    def one(number: int) -> Fields:
        rng = np.random.default_rng([number, 11])
        shape = _shape(rng, *SIDES)
        matrix = csr_array((rng.random(shape) < rng.choice([1.2, 2.5]) / max(shape)).astype(float))
        d = linalg.dmperm(matrix, backend="cpu", threads=1)
        return {"blocks": len(d.r) - 1, "corners": int(np.sum(d.rr) + np.sum(d.cc))}

    return {"dmperm": _crowd(one, matching.WITH_BUDGETS, {})}


ALONE = dict.fromkeys(["trial", "trial_with_spare"], SHORT._replace(unmatched=-1))
STEPS = 400
SMALL_STEPS = {
    "assignment.dense.engine.BUDGET": STEPS,
    "assignment.dense.auction.BUDGET": STEPS,
    "assignment.dense.candidate_paths.BUDGET": STEPS,
    "assignment.dense.candidate_paths.KnownPaths.budget": STEPS,
}
ENGINE: dict[str, tuple[ModuleType, dict[str, Any]]] = {
    "auctions of sparse costs": (sparse_tuning, {"small": -1}),
    "auctions alone": (sparse_tuning, {"small": -1, **ALONE, "few": 1, "few_paths": 1}),
    "bids in turns": (
        sparse_tuning,
        {"small": -1, **ALONE, "few": 0, "few_paths": 0, "tail": 1},
    ),
    "honest bids": (sparse_tuning, {"small": -1, "trial": LONG, "few": 2, "few_paths": 2}),
    "lines": (dense_tuning, {"small": -1, "few": 1, "patience": 30}),
    "trial": (dense_tuning, {"small": -1, "few": 1, "middle": -1}),
    "auction": (dense_tuning, {"small": -1, "few": 1, "middle": -1, "trial": -1, "lines": 0}),
}
"""Which steps the engine takes; the last three for dense costs."""


def _groups() -> dict[str, Group]:
    groups: dict[str, Group] = {"linalg": _decompose, "small": _assign_small}
    for algorithm in algorithms("assignment"):
        if "cpu" in algorithm.homes:
            for wish in assignment._wishes(algorithm.homes["cpu"].options):
                told = {"algorithm": algorithm.name, "backend": "cpu", **wish}
                groups["-".join(told.values())] = functools.partial(_assign, told, {})
    for name, (tuning, fields) in ENGINE.items():
        groups[f"engine-cpu by {name}"] = functools.partial(_assign_tuned, tuning, fields, {})
    groups["engine-cpu by auction in small steps"] = functools.partial(
        _assign_tuned, *ENGINE["auction"], SMALL_STEPS
    )
    for run in matching.RUNS:
        if run.backend == "cpu":
            groups[f"match {run}"] = functools.partial(_match, run.arguments, {})
    forests = (
        {"algorithm": "engine", "backend": "cpu"},
        {"matching.engine.DEFAULT": Tuning(most_read=0)},
    )
    groups["match engine-cpu by forests"] = functools.partial(_match, *forests)
    return groups


GROUPS = _groups()
