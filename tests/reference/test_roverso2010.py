"""Deep Greedy Switching's kernels as threads: evaluation, conflict check, exchanges, the whole."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import gpumatch as gm
from gpumatch.reference.interleaving import Grid
from gpumatch.reference.roverso2010 import (
    Differences,
    Exchanges,
    claim,
    evaluate,
    evaluate_exchanges,
    exchange,
    gain_of,
    select,
)
from graphs import costs

SWITCHING = pytest.mark.parametrize("switching", ["sequential", "parallel"])
SEEDS = pytest.mark.parametrize("seed", range(5))


def solve(matrix, **wish):
    return gm.assign(matrix, algorithm="dgs", backend="reference", **wish)


def assigned(row_to_col, ncols):
    """The mates of both sides."""
    rows = np.array(row_to_col, np.int32)
    cols = np.full(ncols, -1, np.int32)
    cols[rows] = np.arange(rows.size)
    return rows, cols


def total(matrix, row_to_col):
    return matrix[np.arange(row_to_col.size), row_to_col].sum()


# -- evaluation and exchange -----------------------------------------------------------------------


@given(seed=st.integers(0, 1000))
def test_a_difference_is_what_the_exchange_changes(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 20, (5, 7)).astype(float)
    rows, cols = assigned(rng.permutation(7)[:5], 7)
    row, col = int(rng.integers(5)), int(rng.integers(7))
    if rows[row] == col:
        return
    before, gain = total(matrix, rows), gain_of(matrix, rows, cols, row, col)
    exchange(np.array([row]), np.array([col]), rows, cols, grid=Grid("mt", seed))
    assert total(matrix, rows) == before - gain
    assert rows[row] == col
    assert (cols[rows] == np.arange(5)).all()
    assert np.count_nonzero(cols >= 0) == 5


@SEEDS
@pytest.mark.parametrize("evaluate", [evaluate, evaluate_exchanges])
def test_all_agents_find_their_best_exchanges(evaluate, seed):
    matrix = np.array([[9.0, 4, 1], [3, 9, 9], [8, 9, 9]])
    rows, cols = assigned([0, 1, 2], 3)
    agents = Differences.none(3)
    every = np.arange(3)
    grid = Grid("ct", seed)
    evaluate(lambda i, j: gain_of(matrix, rows, cols, i, j), every, agents, 3, grid=grid)
    assert agents.gain.tolist() == [11, 11, 9]
    assert agents.choice[:2].tolist() == [1, 0]
    jobs = Differences.none(3)
    evaluate(lambda j, i: gain_of(matrix, rows, cols, i, j), every, jobs, 3, grid=grid)
    assert jobs.gain.tolist() == [11, 11, 9]
    found = Exchanges.of(agents, jobs)
    assert found.row.tolist() == [0, 1, 2, 1, 0, 0]
    assert found.col.tolist() == [1, 0, 0, 0, 1, 2]


# -- the conflict check ----------------------------------------------------------------------------


def check_conflicts(exchanges, mates, seed):
    """Which exchanges may be made at a time."""
    claims = tuple(np.full(side.size, -1) for side in mates)
    is_selected = np.zeros(exchanges.gain.size, bool)
    grid = Grid("mt", seed)
    claim(exchanges, *mates, *claims, grid=grid)
    select(exchanges, *mates, *claims, is_selected, grid=grid)
    return is_selected.tolist()


@SEEDS
def test_the_better_one_of_two_in_conflict_is_made(seed):
    mates = assigned([0, 1, 2, 3], 4)
    pairs = np.array([0, 1, 2]), np.array([1, 2, 3])  # each shares a vertex with the next
    assert check_conflicts(Exchanges(np.array([5.0, 9, 7]), *pairs), mates, seed) == [0, 1, 0]
    assert check_conflicts(Exchanges(np.array([9.0, 5, 7]), *pairs), mates, seed) == [1, 0, 1]
    assert check_conflicts(Exchanges(np.array([7.0, 7, 7]), *pairs), mates, seed) == [1, 0, 0]


@SEEDS
def test_two_agents_in_conflict_for_a_job_that_no_agent_has(seed):
    mates = assigned([0, 1], 3)
    both = Exchanges(np.array([3.0, 4]), np.array([0, 1]), np.array([2, 2]))
    assert check_conflicts(both, mates, seed) == [0, 1]


@given(problem_seed=st.integers(0, 10**6), seed=st.integers(0, 50))
@settings(max_examples=80)
def test_what_is_selected_shares_nothing_and_gains_the_sum(problem_seed, seed):
    rng = np.random.default_rng(problem_seed)
    nrows, ncols = 8, 10
    matrix = rng.integers(0, 9, (nrows, ncols)).astype(float)
    mates = assigned(rng.permutation(ncols)[:nrows], ncols)
    every = [
        (gain_of(matrix, *mates, row, col), row, col)
        for row, col in itertools.product(range(nrows), range(ncols))
        if mates[0][row] != col
    ]
    chosen = [entry for entry in every if entry[0] > 0 and rng.random() < 0.4]
    if not chosen:
        return
    gains, rows, cols = map(np.array, zip(*chosen))
    is_selected = np.array(check_conflicts(Exchanges(gains, rows, cols), mates, seed))
    assert is_selected[gains.argmax()]
    taking_part = [
        [("row", row), ("col", col), ("row", mates[1][col]), ("col", mates[0][row])]
        for row, col in zip(rows[is_selected], cols[is_selected])
    ]
    parts = [part for part in itertools.chain(*taking_part) if part != ("row", -1)]
    assert len(parts) == len(set(parts))
    before = total(matrix, mates[0])
    exchange(rows[is_selected], cols[is_selected], *mates, grid=Grid("mt", seed))
    assert total(matrix, mates[0]) == before - gains[is_selected].sum()
    assert (mates[1][mates[0]] == np.arange(nrows)).all()


# -- the whole -------------------------------------------------------------------------------------


@SWITCHING
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (17, 17), (13, 20), (20, 13)])
@pytest.mark.parametrize("family", ["uniform_integer", "uniform_float", "geom2", "constant"])
def test_it_is_valid_and_no_exchange_is_left(family, shape, switching):
    matrix = costs.make(family, *shape, seed=2)
    a = solve(matrix, switching=switching)
    best = matrix[linear_sum_assignment(matrix)].sum()
    assert a.size == min(shape)
    assert best - 1e-9 <= a.objective <= best + a.gap + 1e-9
    if shape[0] <= shape[1]:
        for row, col in itertools.product(*map(range, shape)):
            assert gain_of(matrix.astype(float), a.row_to_col, a.col_to_row, row, col) <= 0


@SEEDS
def test_parallel_switching_makes_many_exchanges_at_a_time(seed):
    matrix = costs.geom(50, seed=seed)
    best = matrix[linear_sum_assignment(matrix, maximize=True)].sum()
    trace = {}
    for switching in ("sequential", "parallel"):
        a = solve(matrix, maximize=True, switching=switching, seed=seed)
        assert a.objective >= 0.98 * best
        assert a.gap >= best - a.objective - 1e-9
        trace[switching] = a.stats["trace"]
    assert trace["sequential"][0]["steps"] == trace["sequential"][0]["exchanges"]
    assert 2 * trace["parallel"][0]["steps"] < trace["parallel"][0]["exchanges"]
    assert [t[-1]["exchanges"] for t in trace.values()] == [0, 0]


@SEEDS
@SWITCHING
@pytest.mark.parametrize("limit", [None, 0.4])
def test_both_evaluations_lead_to_the_same_exchanges(limit, switching, seed):
    matrix = costs.make("uniform_float", 14, 17, seed=seed)
    wish = {"switching": switching, "cost_limit": limit, "seed": seed}
    a, b = (solve(matrix, evaluation=name, **wish) for name in ("global", "shared"))
    assert (a.row_to_col == b.row_to_col).all()
    assert a.stats["trace"] == b.stats["trace"]


@SEEDS
def test_sequential_switching_is_the_cpus(seed):
    """Where no two differences are the same, both make the same exchanges."""
    matrix = costs.make("uniform_float", 20, 24, seed=seed)
    a = solve(matrix, seed=seed)
    b = gm.assign(matrix, algorithm="dgs", seed=seed)
    assert (a.row_to_col == b.row_to_col).all()
    assert [p["exchanges"] for p in a.stats["trace"]] == [p["exchanges"] for p in b.stats["trace"]]


@SWITCHING
@given(seed=st.integers(0, 1000))
@settings(max_examples=25)
def test_forbidden_pairs_and_limits(switching, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-9, 9, (5, 6)).astype(float)
    matrix[rng.random((5, 6)) < 0.3] = np.inf
    for wish in ({"cardinality": "maximum"}, {"cardinality": "any"}, {"cost_limit": 2}):
        best = gm.assign(matrix, **wish)
        a = solve(matrix, switching=switching, seed=seed, **wish)
        limit = wish.get("cost_limit", 0)
        missed = (a.objective - limit * a.size) - (best.objective - limit * best.size)
        if wish == {"cardinality": "maximum"}:
            missed = a.objective - best.objective
            assert a.size == best.size
        assert -1e-9 <= missed <= a.gap + 1e-9


@SWITCHING
def test_it_stops_with_an_assignment_no_worse_than_the_start(switching):
    matrix = costs.make("uniform_integer", 15, factor=10)
    whole = solve(matrix, switching=switching)
    objectives = []
    for last in (10, 40, 80, 120):
        ticks = itertools.count()
        a = solve(
            matrix,
            switching=switching,
            callback=lambda _, last=last, ticks=ticks: next(ticks) >= last,
        )
        assert a.size == 15
        assert (a.col_to_row[a.col_ind] == a.row_ind).all()
        objectives.append(a.objective)
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[0] > objectives[-1] >= whole.objective
