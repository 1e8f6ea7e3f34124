"""The engine for sparse costs with its kernels on the CPU, threads in any order: no race shows."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from graphs import costs

pytest.importorskip("cupy")

from gpumatch.costs import SparseCosts
from gpumatch.cuda.assignment.sparse import engine, tuning
from gpumatch.numeric import fair_duals
from tests.cpu.assignment.tuned import tune
from tests.cuda.assignment.sparse.emulated import (
    TRIALS,
    WISHES,
    check,
    is_over,
    random_costs,
    random_rows,
    vary,
)
from tests.cuda.emulator import COMPILER

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")


@pytest.mark.parametrize("wish", WISHES, ids=str)
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize(("count", "most"), [(5, 60), pytest.param(12, 90, marks=pytest.mark.long)])
def test_random_problems(solve, emulators, wish, dtype, count, most):
    rng = np.random.default_rng(5)
    for _ in range(count):
        vary(emulators, rng)
        check(solve, random_costs(rng, dtype, most=most), **wish)


@pytest.mark.parametrize("trial", TRIALS)
@pytest.mark.parametrize("family", ["mesh", "spread", "kkt"])
def test_families(solve, emulators, family, trial, monkeypatch):
    """From the least costs, from exact bids, from prices of auctions, and from trees given up."""
    tune(monkeypatch, tuning, trial=trial)
    rng = np.random.default_rng(9)
    matrix = costs.make(family, 7 if family == "mesh" else 150, seed=1)
    for _ in range(2):
        vary(emulators, rng)
        check(solve, matrix)


def test_a_row_and_a_column_with_all_entries(solve, emulators):
    rng = np.random.default_rng(3)
    matrix = np.where(rng.random((80, 80)) < 0.03, rng.integers(1, 50, (80, 80)), 0)
    matrix[7], matrix[:, 9] = rng.integers(1, 50, (2, 80))
    np.fill_diagonal(matrix, 45)
    for _ in range(6):
        vary(emulators, rng)
        check(solve, csr_array(matrix))


@pytest.mark.parametrize("wish", [{}, {"cardinality": "any", "maximize": True}], ids=str)
def test_an_assignment_to_begin_from_is_kept(solve, wish):
    """If no sum is rounded: a pair that is not tight any more would be found again."""
    matrix = costs.make("mesh", 7)
    a = solve(matrix, **wish)
    again = solve(matrix, initial=a, **wish)
    gm.verify(matrix, again)
    assert math.isclose(again.objective, a.objective, rel_tol=1e-12)
    assert sum(phase["found"] for phase in again.stats["trace"]) == 0


@pytest.mark.parametrize("wish", [{}, {"cardinality": "any"}], ids=str)
def test_it_stops_when_asked_with_a_matching(solve, wish, monkeypatch):
    tune(monkeypatch, tuning, looks_a_launch=2, wide_trial=tuning.WIDE._replace(looks=2, rest=1))
    matrix = costs.make("mesh", 6)
    matrix.data -= 2000
    best = solve(matrix, **wish).objective
    for last in (1, 3, 6):
        ticks = itertools.count(1)
        a = solve(matrix, callback=functools.partial(is_over, ticks, last), **wish)
        assert not a.proven
        assert a.gap >= a.objective - best
        rows = np.flatnonzero(a.row_to_col >= 0)
        assert (a.col_to_row[a.row_to_col[rows]] == rows).all()


@pytest.mark.parametrize("scale", [2.0**-1060, 1e-300, 1e300])
def test_floats_of_any_scale(solve, scale):
    matrix = costs.make("spread", 40)
    check(solve, csr_array((matrix.data * scale, matrix.indices, matrix.indptr)))


# -- large integers --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["random", "products", "infeasible"])
def test_sums_of_integers_below_the_limit_are_exact(solve, emulators, kind):
    """Prices fall far in products. If there is no full assignment, they fall as far as they may."""
    n = {"random": 50, "products": 18, "infeasible": 30}[kind]
    most = 2**60 // (n + 1) - 2
    rng = np.random.default_rng(22)
    vary(emulators, rng)
    if kind == "products":
        matrix = csr_array(np.outer(np.arange(1, n + 1), np.arange(1, n + 1)) * (most // n**2))
    else:
        matrix = random_rows(rng, n, 5, lambda size: rng.integers(1, most, size))
    if kind == "infeasible":
        some = matrix.toarray()
        some[:5, 4:] = 0
        matrix = csr_array(some)
        with pytest.raises(gm.InfeasibleError):
            solve(matrix)
        return
    assert engine.takes(SparseCosts(matrix), None)
    a, best = solve(matrix), gm.assign(matrix, backend="cpu")
    gm.verify(matrix, a)
    assert a.proven
    assert a.objective == best.objective


def test_sums_beyond_the_limit_are_for_others():
    for limit, fits in ((None, True), (2**56, True), (2**58, False)):
        matrix = csr_array(np.diag(np.arange(1, 9)) * 2**50)
        assert engine.takes(SparseCosts(matrix), limit) == fits
    assert not engine.takes(SparseCosts(csr_array(np.array([[1, 2**60], [3, 4]]))), None)


# -- gaps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wish", [{}, {"cost_limit": 0.4}])
def test_gap_of_floats_is_a_bound(monkeypatch, solve, wish):
    """The last pass rounds the rows' duals down, so that no pair undercuts them."""
    monkeypatch.setattr(fair_duals, "lacks", None)  # it would read the costs again
    rng = np.random.default_rng(3)
    for shape in ((30, 30), (25, 40)):
        values = np.exp(2 * rng.standard_normal(shape))
        matrix = csr_array(np.where(rng.random(shape) < 0.3, values, 0) + np.eye(*shape))
        a = solve(matrix, **wish)
        assert gm.verify(matrix, a).gap == a.gap
