"""The sparse core of dense costs: what it reads, when it is given up, and its bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from gpumatch.cpu.assignment.dense import engine as dense_engine
from gpumatch.cpu.assignment.dense import tuning as dense_tuning
from gpumatch.cpu.assignment.dense.candidate_paths import KnownPaths
from gpumatch.cpu.assignment.dense.core import Core
from graphs import adversarial, costs
from tests.cpu.assignment.solved import Solved
from tests.cpu.assignment.tuned import tune


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small problems have a core, too."""
    tune(monkeypatch, dense_tuning, small=-1, middle=-1)


def solve(matrix, **given):
    solved = Solved(dense_engine.run, matrix, **given)
    solved.check_optimal(0 if matrix.dtype.kind == "i" else 1e-10)
    return solved


def rounds(solved):
    return [phase for phase in solved.control.phases if phase.get("step") == "pricing"]


def distances(n, dim=2, seed=0):
    return costs.points(n, dim=dim, seed=seed)


@pytest.mark.parametrize(("dim", "most"), [(2, 4), (3, 3)])
def test_distances_are_read_a_few_times(dim, most):
    """Without a core, these read their entries 15 and 21 times."""
    matrix = distances(1000, dim)
    solved = solve(matrix)
    assert rounds(solved)
    assert "auction" in [phase.get("step") for phase in solved.control.phases]
    assert sum(phase.get("scans", 0) for phase in solved.control.phases) < most * matrix.size


def test_the_trial_comes_first_if_most_rows_are_matched():
    assert not rounds(solve(costs.uniform_float(300, seed=1)))


@pytest.mark.parametrize("family", ["outer", "clusters"])
def test_no_core_where_rows_want_the_same_columns(family, monkeypatch):
    """Bids tell it of products, and a matching of clusters that have more rows than columns."""
    tune(monkeypatch, dense_tuning, too_many=0.5, joined=10)
    matrix = adversarial.make(family, 300, seed=1)
    matrix = matrix + 1e-3 * np.random.default_rng(2).random(matrix.shape)
    assert not rounds(solve(matrix))


@pytest.mark.parametrize("is_integer", [False, True])
def test_a_core_that_grows_too_much_is_given_up(is_integer, monkeypatch):
    """What it has found is where the trial begins."""
    matrix = distances(600, seed=2)
    if is_integer:
        matrix = (matrix * 1e4).astype(np.int64)
    pairs = rounds(solve(matrix))[0]["pairs"]
    tune(monkeypatch, dense_tuning, core=(pairs - 1) / matrix.size)
    solved = solve(matrix)
    assert len(rounds(solved)) == 1
    assert solved.control.phases[-1]["step"] != "pricing"


@pytest.mark.parametrize("threads", [1, 2])
def test_bounds_hold_after_each_round(threads, monkeypatch):
    """No column that a row does not know is below its bound, though prices rise, too."""
    checked, price = [], Core._add_undercutting

    def add(core):
        new = price(core)
        cols, known, bound = core.paths.known
        reduced = core.paths.values - core.paths.price
        for row in range(bound.size):
            reduced[row, cols[row][known[row] < math.inf]] = math.inf
        assert (reduced.min(axis=1) >= bound - 1e-9).all()
        checked.append(new)
        return new

    monkeypatch.setattr(Core, "_add_undercutting", add)
    solve(distances(600, seed=2), threads=threads)
    assert len(checked) > 2
    assert checked[-1] == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_duals_are_fair_as_numbers(sign):
    """Only few rows read their lines for that."""
    matrix = sign * 1e3 + distances(300, seed=4)
    solved = solve(matrix)
    for row in range(300):
        exact = [
            Fraction(cost) - Fraction(dual) for cost, dual in zip(matrix[row], solved.col_dual)
        ]
        assert Fraction(solved.row_dual[row]) <= min(exact)


def test_duals_are_not_read_again(monkeypatch):
    """Bounds tell that no pair undercuts the duals of most rows."""
    kept = []

    def keep(paths, row_dual):
        keep_row_duals(paths, row_dual)
        kept.append(paths.kept[2].mean())

    keep_row_duals = KnownPaths.keep_row_duals
    monkeypatch.setattr(KnownPaths, "keep_row_duals", keep)
    solve(distances(300, seed=4))
    assert kept[0] > 0.9
