"""What the tests of batched kernels on the emulator share: problems, a way to solve them, checks.

solver          solves a list or an array of problems of one dtype, with teams of any shape
random_problem  of any sides, with forbidden pairs or without
hard_problem    whose shortest paths are long
check           pairs, duals, objective and gap of a problem
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from gpumatch.contracts.batch import (
    ENDLESS,
    INFEASIBLE,
    SOLVED,
    UNSOLVED,
    DeviceBatch,
    DeviceResults,
)
from gpumatch.cuda.assignment.batched import batch as device_batch
from tests.cuda.emulator import ArraysOfDevice

INF = math.inf
WISHES: list[dict[str, Any]] = [
    {},
    {"sign": -1.0},
    {"limit": 0.4},
    {"limit": 3.0},
    {"wants_maximum": True},
]
HOLD = 2000
"""Turns for which a warp may be held back: longer than a step of a search."""
HARD = ["products", "line", "low rank", "clusters"]


def solver(emulator, monkeypatch):
    """A function that solves problems of one dtype, a list or an array, on the emulator."""
    cp = ArraysOfDevice()
    names = device_batch.SOURCE.types["Cost"]
    monkeypatch.setattr(device_batch, "cp", cp)
    monkeypatch.setattr(device_batch, "require_memory", lambda *_: None)
    monkeypatch.setattr(
        device_batch, "kernels_for", lambda _, Cost: emulator.bound_to({"Cost": names[Cost.name]})
    )
    monkeypatch.setattr(device_batch, "largest_side", lambda: 1200)
    monkeypatch.setattr(device_batch, "most_blocks", lambda _: 1)
    monkeypatch.setattr(device_batch, "has_room", lambda _: False)
    monkeypatch.setattr(device_batch.driver, "funcSetAttribute", lambda *_: None)

    def solve(
        problems,
        *,
        sign=1.0,
        limit=INF,
        takes_equal=False,
        most=INF,
        wants_maximum=False,
        columns=1,
        blocks=1,
        steps=ENDLESS,
        together=None,
        asks_order=False,
        shape=None,
        hold=HOLD,
        tuning=None,
    ):
        team = shape or (lambda *sides: team_for(columns, blocks, *sides))
        monkeypatch.setattr(device_batch, "shape_for", team)
        emulator.at_once, emulator.hold, emulator.most_turns = blocks, hold, 2**28
        is_array = isinstance(problems, np.ndarray)
        count, dtype = len(problems), problems[0].dtype
        sizes = np.array([part.shape for part in problems]).reshape(-1, 2)
        rows, cols = sizes.max(axis=0).tolist()
        is_integer = dtype.kind == "i"
        number = np.int64 if is_integer else np.float64
        results = DeviceResults(
            cp.full((count, rows + cols), 77, np.int32),
            cp.full((count, 2 * rows + cols), 77, number),
            cp.full(count, 77, number),
            cp.full(count, 77.0),
            cp.full(count, 77, np.int64),
            cp.full(count, UNSOLVED, np.int64),
            cp.full(count, True),
            rows,
            cols,
        )
        task = DeviceBatch(
            dtype,
            np.array([part.ctypes.data for part in problems]),
            np.array([part.strides[0] // dtype.itemsize for part in problems]),
            sizes,
            rows * cols if is_array else None,
            (sign, limit, takes_equal, most, wants_maximum),
            2.0**47 if is_integer else 2.0**1000,
            is_integer,
            results,
            steps,
            together,
            asks_order,
        )
        monkeypatch.setattr(device_batch._Run, "_matrix", lambda _, k: problems[k])
        assert device_batch.run(task, tuning) is (together is None or together.costs_of is not None)
        return results

    return solve


def team_for(columns, blocks, short, long, *_):
    """As many threads as the longer side needs."""
    threads = -(-long // (32 * columns * blocks)) * 32
    kernel = "solve_alone" if threads * blocks == 32 else "solve"
    return device_batch._Shape(f"{kernel}<{{Cost}}, {columns}>", threads, 0, blocks)


def random_problem(rng, dtype, most=70):
    nrows, ncols = rng.integers(1, most, 2)
    ncols = nrows if rng.random() < 0.4 else ncols
    costs = rng.random((nrows, ncols)) * rng.choice([1, 1e3])
    if dtype.kind == "i" or rng.random() < 0.4:
        costs = rng.integers(-2, rng.choice([3, 50]), (nrows, ncols))
    costs = costs.astype(dtype)
    if dtype.kind == "f":
        costs[rng.random(costs.shape) < rng.choice([0, 0, 0.5])] = INF
    return costs


def least(costs, sign, limit, wants_maximum):
    """The least total, less the limit for each pair if there is one; None if it is infeasible."""
    costs = sign * costs.astype(float)
    nrows, ncols = costs.shape
    if limit < INF:
        gates = np.full((nrows, nrows), INF)
        np.fill_diagonal(gates, limit)
        padded = np.hstack([costs, gates]) if nrows <= ncols else None
        if padded is None:
            return least(costs.T, 1, limit, False)
        rows, cols = linear_sum_assignment(padded)
        return padded[rows, cols].sum() - limit * nrows
    try:
        rows, cols = linear_sum_assignment(costs)
    except ValueError:
        return None
    return costs[rows, cols].sum()


def check(results, k, costs, *, sign=1.0, limit=INF, wants_maximum=False):
    nrows, ncols = costs.shape
    best = least(costs, sign, limit, wants_maximum)
    mates, numbers = results.mates[k], results.numbers[k]
    row_to_col, col_to_row = mates[:nrows], mates[results.most_rows :][:ncols]
    if best is None:
        assert results.states[k] == (UNSOLVED if wants_maximum else INFEASIBLE)
        assert not results.proven[k]
        assert (mates == -1).all()
        assert results.gap[k] == INF
        return
    assert results.states[k] == SOLVED
    assert results.proven[k]
    rows = np.flatnonzero(row_to_col >= 0)
    assert (col_to_row[row_to_col[rows]] == rows).all()
    assert (col_to_row >= 0).sum() == len(rows) == results.pairs[k]
    paid = costs[rows, row_to_col[rows]].astype(float)
    tolerance = 1e-12 * max(1.0, np.abs(costs[np.isfinite(costs)]).max(initial=0)) * nrows
    base = limit if limit < INF else 0.0
    assert math.isclose(results.objective[k], paid.sum(), rel_tol=1e-12, abs_tol=tolerance)
    assert math.isclose(sign * paid.sum() - base * len(rows), best, abs_tol=tolerance)
    u, v = sign * numbers[:nrows], sign * numbers[results.most_rows :][:ncols]
    slack = sign * costs.astype(float) - base - u[:, None] - v
    assert slack.min() >= -tolerance
    assert abs(slack[rows, row_to_col[rows]]).max(initial=0) <= tolerance
    assert 0 <= results.gap[k] <= tolerance
    if limit < INF:
        assert max(u.max(), v.max()) <= tolerance
        assert abs(u[row_to_col < 0]).max(initial=0) <= tolerance
    if limit < INF or nrows < ncols:
        assert abs(v[col_to_row < 0]).max(initial=0) <= tolerance
    if nrows <= ncols:
        assert v.max() <= tolerance
    pays = numbers[results.most_rows + results.most_cols :][:nrows]
    assert pays[rows].tolist() == paid.tolist()
    assert not pays[row_to_col < 0].any()


def hard_problem(rng, kind, n, dtype, ncols=None):
    """Costs whose shortest paths are long. Integers have five digits."""
    ncols = ncols or n
    one, other = rng.random(n), rng.random(ncols)
    if kind == "products":
        costs = np.outer(one, other)
    elif kind == "line":
        costs = abs(one[:, None] - 2 * other)
    elif kind == "low rank":
        costs = rng.random((n, 3)) @ rng.random((3, ncols))
    else:
        one[n // 2 :] += 10
        other[ncols // 3 :] += 10
        costs = abs(one[:, None] - other) ** 1.5
    return (costs * (1 if dtype.kind == "f" else 1e5)).astype(dtype)
