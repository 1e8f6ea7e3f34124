"""The trial of sparse costs on the CPU: when it does without auctions, and when it is given up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from graphs import costs

pytest.importorskip("cupy")

from gpumatch.cuda.assignment.sparse import tuning
from gpumatch.cuda.assignment.sparse.tuning import Trial
from tests.cpu.assignment.tuned import tune
from tests.cuda.assignment.sparse.emulated import TRIALS, check, random_costs, vary
from tests.cuda.emulator import COMPILER

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")


def test_the_least_costs_do_where_few_rows_are_left(solve):
    """If all rows want one column, an auction finds prices."""
    rng = np.random.default_rng(2)
    easy = np.where(rng.random((40, 40)) < 0.2, rng.integers(20, 90, (40, 40)), 0)
    np.fill_diagonal(easy, rng.integers(1, 9, 40))
    a = solve(csr_array(easy))
    assert a.objective == easy.trace()
    assert not a.stats["trace"]
    dear = solve(csr_array(easy + np.where(np.arange(40) % 2, 500, 0) * (easy > 0)))
    assert dear.objective == easy.trace() + 20 * 500
    assert not dear.stats["trace"]
    crowded = solve(csr_array(np.outer(np.arange(1, 41), np.arange(1, 41))))
    assert {phase["step"] for phase in crowded.stats["trace"]} == {"auction", "trees"}


def test_many_more_columns_than_rows_need_no_prices(solve, emulators):
    """No unmatched column gets a price that trees of spare rows would have to take back."""
    rng = np.random.default_rng(14)
    points, others = rng.random((90, 2)), rng.random((120, 2))
    apart = np.sqrt(np.square(points[:, None] - others).sum(axis=2))
    nearest = apart.argsort(axis=1).argsort(axis=1) < 20
    for share in (60, 90):
        vary(emulators, rng)
        matrix = csr_array(np.where(nearest, apart, 0)[:share])
        check(solve, matrix)
        steps = [phase["step"] for phase in solve(matrix).stats["trace"]]
        assert "auction" not in steps


@pytest.mark.parametrize("trial", TRIALS)
def test_columns_of_negative_costs_begin_at_the_least(solve, emulators, trial, monkeypatch):
    tune(monkeypatch, tuning, trial=trial)
    rng = np.random.default_rng(6)
    for dtype in (np.int64, np.float64):
        for _ in range(2):
            vary(emulators, rng)
            matrix = random_costs(rng, dtype, most=40)
            matrix.data -= dtype(rng.choice([1, 5, 900]))
            check(solve, matrix)


@pytest.mark.parametrize("bids", [0, 8])
def test_it_stops_in_its_first_trees(solve, bids, monkeypatch):
    tune(monkeypatch, tuning, trial=Trial(bids, unmatched=1, looks=2, rest=1), looks_a_launch=2)
    a = solve(costs.make("mesh", 6), callback=lambda _: True)
    assert not a.proven
    assert 0 < a.size < a.row_to_col.size
