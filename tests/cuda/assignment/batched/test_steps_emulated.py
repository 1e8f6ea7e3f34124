"""Problems whose paths are long: auctions come first, or they are left unsolved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cupy")

from gpumatch.contracts.batch import ENDLESS, SOLVED, UNSOLVED
from gpumatch.cuda.assignment.batched.tuning import Tuning
from tests.cuda.assignment.batched.emulated import HARD, INF, check, hard_problem
from tests.cuda.emulator import COMPILER

WITH_AUCTIONS = Tuning(steps_a_row=(-1, -1))
WITHOUT_AUCTIONS = Tuning(steps_a_row=(ENDLESS, ENDLESS))
WITHOUT_GUESSES = Tuning(steps_before_a_guess=ENDLESS)

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")


@pytest.mark.parametrize("n", [30, 40])
def test_a_problem_that_takes_more_steps_is_left_unsolved(solve, n):
    """Products of numbers take about n steps for each of n paths."""
    costs = np.multiply.outer(np.arange(n), np.arange(n)).astype(np.float64)
    many = np.stack([costs, 1 - np.eye(n), costs])
    for steps in (n // 2, n):
        results = solve(many, steps=steps, tuning=WITHOUT_AUCTIONS)
        assert results.states.tolist() == [UNSOLVED, SOLVED, UNSOLVED]
        assert not results.proven[0]
        assert (results.mates[0] == -1).all()
    enough = n * n
    assert solve(many, steps=enough, tuning=WITHOUT_AUCTIONS).states.tolist() == [SOLVED] * 3
    tuning = replace(WITHOUT_AUCTIONS, steps_before_a_guess=ENDLESS)
    assert solve(many, steps=enough // 3, tuning=tuning).states[0] == UNSOLVED


def test_the_rest_is_guessed_from_the_first_paths(solve):
    """The first path of products takes few steps, but as many for each would be too many."""
    costs = np.multiply.outer(np.arange(70), np.arange(70)).astype(np.float64)
    results = solve(costs[None], steps=60, tuning=Tuning(steps_before_a_guess=0))
    assert results.states.tolist() == [UNSOLVED]


@pytest.mark.parametrize(("dtype", "blocks"), [("i4", 1), ("f8", 2)])
def test_auctions_come_before_many_long_paths(solve, dtype, blocks):
    """Paths alone take n * n / 2 steps for products."""
    costs = hard_problem(np.random.default_rng(13), "products", 80, np.dtype(dtype))
    results = solve(costs[None], blocks=blocks, steps=1500, tuning=WITHOUT_GUESSES)
    check(results, 0, costs)


@pytest.mark.parametrize(
    ("dtype", "blocks", "sign"),
    [("i4", 1, 1.0), ("i8", 2, -1.0), ("f4", 1, -1.0), ("f4", 2, 1.0), ("f8", 1, 1.0)],
)
def test_auctions(solve, emulator, dtype, blocks, sign):
    """They may come after the first path that makes the steps more than the rows."""
    emulator.odds = 100
    rng = np.random.default_rng(14)
    problems = [sign * hard_problem(rng, kind, 34, np.dtype(dtype)) for kind in HARD]
    results = solve(problems, sign=sign, blocks=blocks, tuning=WITH_AUCTIONS)
    for k, costs in enumerate(problems):
        check(results, k, costs, sign=sign)


@pytest.mark.parametrize("dtype", ["i4", "f8"])
def test_few_costs_above_all_others_leave_prices_small(solve, emulator, dtype):
    """Prices as large as these costs would leave no digits for the others."""
    emulator.odds = 100
    costs = hard_problem(np.random.default_rng(14), "products", 40, np.dtype(dtype))
    costs[5, 20] = costs[8, 21] = 1e9 if dtype[0] == "i" else 1e30
    results = solve(costs[None], tuning=WITH_AUCTIONS)
    assert results.proven[0]
    assert abs(results.numbers[0]).max() <= 4 * np.partition(costs, -3, axis=None)[-3]


def test_no_auctions_where_pairs_are_forbidden(solve, emulator):
    """They would not end if there were no full assignment."""
    emulator.odds = 100
    costs = hard_problem(np.random.default_rng(15), "products", 34, np.dtype("f8"))
    some, none = np.where(costs > 0.9 * costs.max(), INF, costs), costs.copy()
    none[:20, 12:] = INF
    results = solve([some, none], tuning=WITH_AUCTIONS)
    check(results, 0, some)
    check(results, 1, none)


@pytest.mark.parametrize(
    ("dtype", "shape", "blocks", "sign"),
    [("f8", (80, 130), 1, 1.0), ("i4", (130, 80), 2, -1.0), ("f4", (70, 71), 2, 1.0)],
)
def test_columns_that_no_row_needs_are_left_out(solve, dtype, shape, blocks, sign):
    """Then auctions are held for products, though not all columns will be matched."""
    rng = np.random.default_rng(16)
    costs = sign * hard_problem(rng, "products", shape[0], np.dtype(dtype), shape[1])
    results = solve(costs[None], blocks=blocks, sign=sign, steps=1500, tuning=WITHOUT_GUESSES)
    check(results, 0, costs, sign=sign)


@pytest.mark.parametrize("blocks", [1, 2])
def test_rows_that_prefer_different_columns_go_on_by_paths(solve, emulator, blocks):
    emulator.odds = 100
    rng = np.random.default_rng(17)
    problems = [hard_problem(rng, kind, 36, np.dtype("f8"), 44) for kind in HARD]
    problems.append(np.outer(rng.normal(size=36), rng.normal(size=44)))
    problems.append(hard_problem(rng, "products", 36, np.dtype("f8"), 44))
    problems[-1][35, 43] = problems[-1].min() - 1  # the others leave out this column, or a near one
    problems.append(np.where(problems[0] > 0.9 * problems[0].max(), INF, problems[0]))
    problems.append(problems[0].copy())
    problems[-1][:20, 12:] = INF
    results = solve(problems, blocks=blocks, tuning=WITH_AUCTIONS)
    for k, costs in enumerate(problems):
        check(results, k, costs)


@pytest.mark.parametrize(("kind", "steps", "state"), [("products", 2250, 3), ("low rank", 1200, 0)])
def test_rows_scanned_again_are_then_scanned_one_by_one(solve, kind, steps, state):
    """That takes more steps, which are shorter. Few rows of low rank are scanned again."""
    costs = hard_problem(np.random.default_rng(18), kind, 68, np.dtype("f8"), 70)
    tuning = replace(WITHOUT_AUCTIONS, steps_before_a_guess=ENDLESS)
    assert solve(costs[None], steps=steps, tuning=tuning).states[0] == state
