"""Teams of several blocks on the CPU, and what they give up, which is solved together."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm

pytest.importorskip("cupy")

from gpumatch.contracts import Solution
from gpumatch.contracts.batch import ENDLESS, UNSOLVED, DeviceBatch, DeviceResults, Together
from gpumatch.costs import SparseCosts
from gpumatch.cuda.assignment.batched import batch as device_batch
from gpumatch.cuda.assignment.batched.tuning import Tuning
from tests.cuda.assignment.batched.emulated import (
    INF,
    WISHES,
    check,
    hard_problem,
    random_problem,
)
from tests.cuda.emulator import COMPILER

GIVES_UP = Tuning(together=9, steps_of_core=2, steps_of_its_rows=0)

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")


@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_teams_of_blocks(solve, emulator, wish):
    """A block may be long ahead of another one."""
    rng = np.random.default_rng(10)
    for blocks, most in ((2, 12), (2, 70), (3, 40)):
        emulator.odds = int(rng.choice([3, 30]))
        sign = wish.get("sign", 1.0)
        problems = [sign * random_problem(rng, np.dtype("f8"), most) for _ in range(4)]
        results = solve(problems, blocks=blocks, **wish)
        for k, costs in enumerate(problems):
            check(results, k, costs, **wish)


@pytest.mark.parametrize("seed", range(0, 8000, 1000))
def test_a_warp_that_does_not_bid_may_be_late(solve, emulator, seed):
    """Others may decide a round before it knows how many rows bid in that one."""
    emulator.odds, emulator.seed = 100, seed
    costs = hard_problem(np.random.default_rng(16), "products", 20, np.dtype("f8"))
    shape = device_batch._Shape("solve<{Cost}, 1>", 128, 0, 2)
    results = solve(
        costs[None], blocks=2, steps=20_000, shape=lambda *_: shape,
        tuning=Tuning(steps_a_row=(-1, -1)),
    )  # fmt: skip
    check(results, 0, costs)


def test_a_lane_may_be_late(solve, emulator):
    """A block that has all bids may change prices before each lane has read its own."""
    emulator.odds, emulator.seed = 30, 1000
    costs = -hard_problem(np.random.default_rng(16), "products", 70, np.dtype("f8"), 66)
    tuning = Tuning(steps_before_a_guess=ENDLESS, steps_a_row=(1, 1))
    results = solve(costs[None], blocks=2, sign=-1.0, steps=20_000, hold=300, tuning=tuning)
    check(results, 0, costs, sign=-1.0)


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
def test_what_teams_give_up_is_solved_together(solve, emulator, dtype, sign, blocks, monkeypatch):
    """Pairs and prices of the columns come from elsewhere; the kernel makes the rest of them."""
    emulator.odds = 10
    rng = np.random.default_rng(11)
    shapes = ((9, 9), (1, 1), (4, 70), (33, 33), (20, 5), (40, 44))
    problems = [(rng.integers(-9, 30, shape) * sign).astype(dtype) for shape in shapes]
    taken = []

    def solve_each(matrices, is_integer, _):
        assert is_integer == (dtype[0] == "i")
        taken.extend(matrix.shape for matrix in matrices)
        return [solution_of(matrix) for matrix in matrices]

    monkeypatch.setattr(
        device_batch.stacked, "signed", lambda matrix, sign: sign * matrix.astype(float)
    )
    monkeypatch.setattr(device_batch.stacked, "solve", solve_each)
    monkeypatch.setattr(device_batch, "_classes", one_by_one)
    together = Together(SparseCosts.of_csr, None)
    results = solve(problems, sign=sign, blocks=blocks, together=together, tuning=GIVES_UP)
    assert bool(taken) == (blocks > 1)
    assert {(1, 1), (20, 5)}.isdisjoint(taken)  # one is small, and one is turned
    for k, costs in enumerate(problems):
        check(results, k, costs, sign=sign)


def one_by_one(sizes, numbers):
    return [(numbers[k : k + 1], tuple(sizes[n].tolist())) for k, n in enumerate(numbers)]


def solution_of(matrix):
    a = gm.assign(matrix.astype(np.int64))
    return Solution(a.row_to_col, a.col_to_row, a.row_dual, a.col_dual)


def test_what_is_not_solved_together_either_is_left(solve, emulator, monkeypatch):
    emulator.odds = 10
    monkeypatch.setattr(device_batch.stacked, "signed", lambda matrix, _: matrix)
    monkeypatch.setattr(device_batch.stacked, "solve", lambda *_: None)
    costs = np.multiply.outer(np.arange(40), np.arange(40)).astype(np.float64)
    results = solve(costs[None], blocks=2, together=Together(None, None), tuning=GIVES_UP)
    assert results.states.tolist() == [UNSOLVED]
    assert not results.proven[0]
    assert (results.mates[0] == -1).all()


@pytest.mark.parametrize("is_even", [True, False], ids=["an array", "a list"])
def test_the_costs_of_a_problem_are_found_where_they_are(stand_in, is_even):
    """Those of an array are at even distances; rows of the others may be parts of longer ones."""
    values = stand_in.asarray(np.arange(3 * 4 * 6.0).reshape(3, 4, 6))
    problems = list(values) if is_even else [values[0, :, 2:], values[2, 1:3], values[1, :1, :1]]
    first = values.data.ptr if is_even else None
    task = DeviceBatch(
        values.dtype,
        [first] if is_even else np.array([part.data.ptr for part in problems]),
        [6] if is_even else np.array([6, 6, 6]),
        np.array([part.shape for part in problems]),
        24 if is_even else None,
        (1.0, INF, INF, False),
        2.0**1000,
        False,
        DeviceResults(*[0] * 9),
    )
    run = device_batch._Run(task, Tuning())
    for k, part in enumerate(problems):
        found = run._matrix(k)
        assert found.data.ptr == part.data.ptr
        assert found.tolist() == part.tolist()
