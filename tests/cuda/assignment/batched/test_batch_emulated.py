"""The kernels for batches on the CPU, threads in any order: right answers, and no race shows."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import gpumatch as gm

pytest.importorskip("cupy")

from gpumatch.contracts.batch import INFEASIBLE, ORDERED, SOLVED, UNFIT
from gpumatch.cuda.assignment.batched import batch as device_batch
from gpumatch.cuda.assignment.batched.tuning import Tuning
from tests.cuda.assignment.batched.emulated import INF, WISHES, check, random_problem
from tests.cuda.emulator import COMPILER

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")


@pytest.mark.parametrize("wish", WISHES, ids=str)
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
def test_lists_of_random_problems(solve, emulator, wish, dtype):
    rng = np.random.default_rng(3)
    dtype = np.dtype(dtype)
    for columns, most, count in ((1, 70, 4), (2, 70, 4), (1, 160, 2)):
        emulator.odds = int(rng.choice([3, 30]))
        tuning = Tuning(rows_at_once=2 * (int(rng.choice([1, 2, 8])),))
        problems = [random_problem(rng, dtype, most) for _ in range(count)]
        if wish.get("sign") == -1:
            problems = [-part for part in problems]
        if dtype.kind == "i" and wish.get("limit") == 0.4:
            continue  # fractions are for floats
        results = solve(problems, columns=columns, tuning=tuning, **wish)
        for k, costs in enumerate(problems):
            check(results, k, costs, **wish)


@pytest.mark.parametrize("shape", [(7, 40), (65, 7), (33, 33)], ids=str)
@pytest.mark.parametrize("kind", ["random", "ties", "constant", "points", "product"])
def test_arrays_of_problems(solve, emulator, kind, shape):
    rng = np.random.default_rng(4)
    emulator.odds = 10
    problems = {
        "random": lambda: rng.random((3, *shape), np.float32),
        "ties": lambda: rng.integers(0, 4, (3, *shape)),
        "constant": lambda: np.ones((3, *shape)),
        "points": lambda: (rng.random((3, shape[0], 1)) - rng.random((3, 1, shape[1]))) ** 2,
        "product": lambda: np.broadcast_to(np.outer(*map(np.arange, shape)), (3, *shape)).copy(),
    }[kind]()
    results = solve(problems)
    for k in range(3):
        check(results, k, problems[k])


@pytest.mark.parametrize("limit", [0.0, 2.0])
@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("takes_equal", [False, True])
def test_a_row_pays_its_limit_or_leaves(solve, emulator, takes_equal, blocks, limit):
    """Whether it bids last or begins a path, as on the CPU."""
    rng = np.random.default_rng(8)
    emulator.odds = 10
    alike = [np.full(sides, limit) for sides in ((1, 1), (2, 2), (2, 5), (40, 40), (44, 40))]
    problems = alike + [rng.integers(0, 4, sides).astype(float) for sides in ((9, 9), (30, 33))]
    results = solve(problems, limit=limit, takes_equal=takes_equal, blocks=blocks)
    pairs = [min(costs.shape) if takes_equal else 0 for costs in alike]
    assert results.pairs[: len(alike)].tolist() == pairs
    for k, costs in enumerate(problems):
        check(results, k, costs, limit=limit)
        nrows, ncols = costs.shape
        own = results.mates[k][:nrows], results.mates[k][results.most_rows :][:ncols]
        both = np.ix_(own[0] < 0, own[1] < 0)
        assert not takes_equal or (costs[both] > limit).all()
    if takes_equal:  # there are then as many pairs as there can be
        assert results.pairs.tolist() == gm.assign(problems, cost_limit=limit).size.tolist()


TENTHS = {  # a row would stay unmatched nearer than the column that it may have at the limit, if
    # its distance from that were added up in another order
    1: (
        [[8, -6, 6, 8], [1, 8, -1, 1], [-5, 2, -9, -3], [0, -9, -6, -2]],
        [[-6, 1, 6, 0], [5, 1, -2, 2], [-2, 9, -5, 0]],
        [[-2, -1, -8], [1, -5, 5], [-1, -8, -6]],
    ),
    6: (
        [[6, 6, 3], [2, 9, -3], [-4, 2, -8]],
        [[-1, 4, -1, -9], [-7, -5, 6, -1], [-9, 6, 8, 4], [-2, -3, 6, 8]],
    ),
    7: (
        [[9, -6, 7], [7, 2, 1], [3, -5, -3]],
        [[-7, 6, 6], [7, 7, 5], [-1, 9, -1]],
        [[7, -2, 5], [7, 8, 6], [9, -8, -2]],
    ),
}


@pytest.mark.parametrize("team", ["warp", "block", "cluster"])
def test_rounded_sums_leave_no_pair_at_the_limit(solve, emulator, team):
    """Free columns and rows that may stay unmatched are as far as each other, to the last bit."""
    threads, blocks = {"warp": (32, 1), "block": (64, 1), "cluster": (32, 2)}[team]
    kernel = "solve_alone" if team == "warp" else "solve"
    chosen = device_batch._Shape(f"{kernel}<{{Cost}}, 1>", threads, 0, blocks)
    emulator.odds = 30
    for limit, numbers in TENTHS.items():
        problems = [0.1 * np.array(part) for part in numbers]
        results = solve(
            problems,
            limit=0.1 * limit,
            takes_equal=True,
            blocks=blocks,
            shape=lambda *_: chosen,
        )
        for k, costs in enumerate(problems):
            check(results, k, costs, limit=0.1 * limit)
            nrows, ncols = costs.shape
            own = results.mates[k][:nrows], results.mates[k][results.most_rows :][:ncols]
            assert (costs[np.ix_(own[0] < 0, own[1] < 0)] > 0.1 * limit).all()


def test_what_is_not_valid_is_marked(solve, emulator):
    emulator.odds = 10
    problems = np.random.default_rng(5).random((5, 6, 6))
    problems[1, 2, 3] = math.nan
    problems[2, :, 4] = INF
    problems[3, 0, 0] = -INF
    results = solve(problems)
    assert results.states.tolist() == [SOLVED, UNFIT, INFEASIBLE, UNFIT, SOLVED]
    assert results.proven.tolist() == [True, False, False, False, True]
    assert (results.mates[1:4] == -1).all()
    assert not results.numbers[1:4].any()
    check(results, 4, problems[4])


@pytest.mark.parametrize("blocks", [1, 2])
def test_what_seems_to_be_sorted_is_left_to_others(solve, emulator, blocks, monkeypatch):
    """A few of its rows and columns are in one order, or in opposite ones."""
    monkeypatch.setattr(device_batch.sorting, "LEAST", 40)
    emulator.odds = 30
    rng = np.random.default_rng(27)
    product = np.outer(rng.random(40), rng.random(40))
    problems = np.stack([product, rng.random((40, 40)), 1 - product, rng.random((40, 40))])
    for costs in (problems, np.floor(1e6 * problems).astype(np.int32)):
        results = solve(costs, blocks=blocks, asks_order=True)
        assert results.states.tolist() == [ORDERED, SOLVED, ORDERED, SOLVED]
        results = solve(costs, blocks=blocks)
        for k in range(4):
            check(results, k, costs[k])
    smaller = np.ascontiguousarray(problems[:, :39, :39])
    assert (solve(smaller, blocks=blocks, asks_order=True).states == SOLVED).all()


def test_forbidden_by_a_limit(solve, emulator):
    emulator.odds = 10
    problems = np.random.default_rng(6).random((2, 20, 24))
    results = solve(problems, most=0.7, wants_maximum=True)
    for k in range(2):
        check(results, k, np.where(problems[k] > 0.7, INF, problems[k]), wants_maximum=True)


@pytest.mark.parametrize("wish", [{}, {"limit": 0.3}, {"sign": -1.0}], ids=str)
def test_more_threads_than_columns(solve, wish):
    """Some warps have no columns, but read rows, and bid."""
    rng = np.random.default_rng(12)
    problems = [rng.random((40, 70)), rng.integers(0, 9, (30, 70)) / 9, rng.random((3, 5))]
    wide = device_batch._Shape("solve<{Cost}, 1>", 256, 0, 1)
    results = solve(problems, shape=lambda *_: wide, **wish)
    for k in range(3):
        check(results, k, problems[k], **wish)


def test_more_warps_than_lanes(solve, emulator):
    """Then a lane sees the columns that two warps name."""
    emulator.odds = 100
    rng = np.random.default_rng(9)
    problems = [np.hstack([rng.random((9, 1020)) + 1, rng.random((9, 130))]), rng.random((5, 9))]
    problems[0][:, 1100:1104] = rng.integers(0, 2, (9, 4)) / 10
    results = solve(problems)
    for k in range(2):
        check(results, k, problems[k])


@pytest.mark.parametrize("limit", [INF, 0.7])
def test_gap_of_floats_is_a_bound(solve, limit):
    rng = np.random.default_rng(5)
    shapes = [*itertools.repeat((20, 20), 12), (5, 12), (12, 5)]
    problems = [10.0 ** rng.uniform(-9, 9, shape) for shape in shapes]
    results = solve(problems, limit=limit)
    base = Fraction(limit) if limit < INF else 0
    for k, costs in enumerate(problems):
        nrows, ncols = costs.shape
        row_dual = [*map(Fraction, results.numbers[k, :nrows].tolist())]
        col_dual = [*map(Fraction, results.numbers[k, 20 : 20 + ncols].tolist())]
        for (row, col), cost in np.ndenumerate(costs):
            assert row_dual[row] + col_dual[col] <= Fraction(cost.item()) - base
        pairs = [(row, col) for row, col in enumerate(results.mates[k, :nrows]) if col >= 0]
        paid = sum((Fraction(costs[pair].item()) - base for pair in pairs), Fraction(0))
        exact = paid - sum(row_dual) - sum(col_dual)
        assert exact <= results.gap[k] <= 2 * exact
