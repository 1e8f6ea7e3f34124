"""Deep Greedy Switching on the device: start, optimum, bound, numbers and control."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gpumatch as gm
from gpumatch.costs import as_costs
from graphs import costs
from tests.cuda.assignment.dgs_problems import (
    FORMS,
    SHAPES,
    STARTS,
    SWITCHING,
    check_mates,
    check_no_exchange_is_left,
    evaluator_for,
    optimum,
    problem_on_device,
    solve,
)
from tests.cuda.pools import fresh_pool, room_left

pytestmark = pytest.mark.gpu

# -- the whole -------------------------------------------------------------------------------------


@STARTS
@FORMS
@SWITCHING
@SHAPES
@pytest.mark.parametrize("family", ["uniform_float", "uniform_integer", "geom2", "two_cost"])
def test_no_exchange_is_left(family, shape, switching, form, start):
    matrix = costs.make(family, *shape, seed=2)
    a = solve(matrix, switching=switching, evaluation=form, start=start)
    check_mates(a)
    assert a.size == shape[0]
    assert a.objective <= optimum(matrix) + a.gap + 1e-9
    assert (matrix - a.row_dual[:, None] - a.col_dual >= -1e-9).all()
    check_no_exchange_is_left(matrix, a.row_to_col)


@STARTS
@pytest.mark.parametrize("n", [1000, 3000])
def test_it_is_as_near_as_the_paper_says(n, start):
    matrix = costs.geom(n, seed=3)
    best = optimum(matrix, maximize=True)
    a = solve(matrix, maximize=True, start=start)
    check_mates(a)
    assert a.objective >= (1 - 0.006) * best
    assert best - a.objective <= a.gap <= 0.006 * best
    assert not a.proven


def test_tall_costs_are_turned():
    matrix = np.random.default_rng(0).random((80, 50))
    a = solve(matrix, maximize=True)
    check_mates(a)
    assert a.size == 50
    assert a.gap >= optimum(matrix, maximize=True) - a.objective
    check_no_exchange_is_left(-matrix.T, a.col_to_row)


# -- start -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("windows", [1, 16])
@pytest.mark.parametrize("limit", [None, 4])
@pytest.mark.parametrize("shape", [(1, 1), (50, 50), (700, 700), (2500, 3000)])
def test_the_greedy_start_is_the_cpus(shape, limit, windows, monkeypatch):
    import cupy as cp

    from gpumatch.contracts import AssignmentTask, Solution
    from gpumatch.cpu.assignment.dgs.start import start_from
    from gpumatch.cuda.assignment.dgs import engine as dgs
    from tests.cpu.matching.cases import FreeRun

    monkeypatch.setattr(dgs, "WINDOWS_A_LAUNCH", windows)
    # Products: all rows want the same columns, and small numbers: many of them are equal.
    rng = np.random.default_rng(1)
    matrix = np.outer(rng.integers(1, 9, shape[0]), rng.integers(1, 9, shape[1]))
    problem = problem_on_device(matrix, limit)
    rows, cols = (np.full(size, -1, np.int32) for size in shape)
    rows[0], cols[shape[1] // 2] = shape[1] // 2, 0
    solution = Solution(rows, cols, np.zeros(shape[0]), np.zeros(shape[1]))
    on_host = as_costs(matrix).problem(False, False)
    task = AssignmentTask(on_host, solution, FreeRun(), limit, seed=5)
    there = Solution.empty(shape, is_integer=False, xp=cp)
    there.assign_from(solution)
    assert dgs._start(problem, dataclasses.replace(task, solution=there), "greedy")
    start_from("greedy", task)
    assert (problem.rows.mate.get() == rows).all()
    assert (problem.cols.mate.get() == cols).all()


def test_another_seed_makes_another_random_start():
    matrix = costs.make("uniform_float", 200)
    stopped = [solve(matrix, time_limit=0, seed=seed).row_to_col.tolist() for seed in (0, 0, 1)]
    assert stopped[0] == stopped[1] != stopped[2]


# -- what may be forbidden, and limits -------------------------------------------------------------


@STARTS
@SWITCHING
@pytest.mark.parametrize("sparse", [False, True])
def test_a_full_assignment_is_found_where_there_is_one(sparse, switching, start):
    """Few pairs are allowed, so that the start alone leaves rows over."""
    rng = np.random.default_rng(7)
    matrix = rng.integers(1, 400, (150, 160)).astype(float)
    hidden = rng.permutation(160)[:150]
    forbidden = rng.random(matrix.shape) < 0.97
    forbidden[np.arange(150), hidden] = False
    matrix[forbidden] = np.inf
    given = matrix
    if sparse:
        rows, cols = np.isfinite(matrix).nonzero()
        given = sp.csr_array((matrix[rows, cols].astype(int), (rows, cols)), shape=matrix.shape)
    a = solve(given, switching=switching, start=start)
    check_mates(a)
    assert a.size == 150
    assert optimum(matrix) <= a.objective <= optimum(matrix) + a.gap
    check_no_exchange_is_left(matrix, a.row_to_col)


@SWITCHING
def test_infeasible_costs_are_refused(switching):
    matrix = np.random.default_rng(0).random((60, 60))
    matrix[:7, 6:] = np.inf
    with pytest.raises(gm.InfeasibleError) as caught:
        solve(matrix, switching=switching)
    assert caught.value.rows.size > caught.value.cols.size


@FORMS
@STARTS
@SWITCHING
@pytest.mark.parametrize("limit", [-4, 2, 9])
def test_no_exchange_is_left_where_rows_may_go_without(limit, switching, start, form):
    rng = np.random.default_rng(limit + 9)
    matrix = rng.integers(-5, 6, (90, 100)) + np.repeat([-3, 8], 50)
    a = solve(matrix, cost_limit=limit, start=start, switching=switching, evaluation=form)
    check_mates(a)
    assert 0 < a.size < 90 or limit == 9
    check_no_exchange_is_left(matrix, a.row_to_col, limit)
    best = gm.assign(matrix, cost_limit=limit, backend="cpu")
    missed = (a.objective - limit * a.size) - (best.objective - limit * best.size)
    assert 0 <= missed <= a.gap


small = hnp.arrays(
    np.int64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.integers(-9, 9)
)
wishes = st.sampled_from(
    [{}, {"maximize": True}, {"cardinality": "any"}, {"cost_limit": 2}, {"cost_limit": -1.5}]
)


@STARTS
@SWITCHING
@given(matrix=small, holes=st.integers(0, 2**36 - 1), wish=wishes)
@settings(max_examples=40)
def test_the_gap_is_never_too_small(switching, start, matrix, holes, wish):
    forbidden = np.array([holes >> k & 1 for k in range(36)], bool).reshape(6, 6)
    forbidden = forbidden[: matrix.shape[0], : matrix.shape[1]]
    sign = -1 if wish.get("maximize") else 1
    dense = np.where(forbidden, sign * np.inf, matrix)
    rows, cols = (~forbidden).nonzero()
    indptr = np.searchsorted(rows, np.arange(matrix.shape[0] + 1))
    sparse = (indptr, cols, matrix[rows, cols], matrix.shape)
    for source in (dense, sparse):
        try:
            best = gm.assign(source, backend="cpu", **wish)
        except gm.InfeasibleError:
            with pytest.raises(gm.InfeasibleError):
                solve(source, start=start, switching=switching, **wish)
            continue
        a = solve(source, start=start, switching=switching, **wish)
        check_mates(a)
        limit = wish.get("cost_limit", 0)
        missed = (a.objective - limit * a.size) - (best.objective - limit * best.size)
        assert -1e-9 <= missed * sign <= a.gap + 1e-9


# -- numbers and devices ---------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e290])
def test_scales_do_not_matter(scale):
    matrix = np.random.default_rng(2).random((120, 120))
    a, b = solve(matrix * scale), solve(matrix)
    assert a.objective == pytest.approx(b.objective * scale, rel=0.2)
    check_no_exchange_is_left(matrix, a.row_to_col)


def test_the_largest_integers():
    most = (2**62 - 1) // 4
    matrix = np.array([[most, -most, most], [-most, most, -most], [most, most, -most]])
    for wish in ({}, {"maximize": True}):
        a = solve(matrix, **wish)
        best = gm.assign(matrix, backend="cpu", **wish).objective
        assert abs(a.objective - best) <= a.gap
    matrix = np.array([[2**55, 2**55 + 1], [2**55 + 2, 2**55 + 4]])
    assert solve(matrix).objective == 2**56 + 3
    assert solve(matrix, maximize=True).objective == 2**56 + 4


@SWITCHING
def test_costs_on_the_device_stay_there(switching):
    import cupy as cp

    matrix = costs.make("uniform_float", 100, 120)
    a = solve(cp.asarray(matrix), switching=switching)
    b = solve(matrix, switching=switching)
    assert isinstance(a.row_to_col, cp.ndarray)
    assert (a.row_to_col.get() == b.row_to_col).all()
    assert a.objective == b.objective


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_the_matrix_of_differences_must_fit(dtype):
    matrix = costs.make("uniform_integer", 1000).astype(dtype)
    with fresh_pool() as pool:
        problem = problem_on_device(matrix)
        with room_left(pool, 6_000_000):
            with pytest.raises(MemoryError, match="the matrix of differences needs 8000000 bytes"):
                evaluator_for(problem, "shared")
            evaluator_for(problem, "block")


def test_runs_are_alike():
    """Nothing depends on the order in which threads run."""
    matrix = costs.make("uniform_integer", 300, factor=0.1)
    first = solve(matrix)
    for _ in range(20):
        again = solve(matrix)
        assert (again.row_to_col == first.row_to_col).all()


# -- control ---------------------------------------------------------------------------------------


@STARTS
@SWITCHING
def test_it_stops_at_any_tick_with_an_assignment_and_a_bound(switching, start, monkeypatch):
    from gpumatch.cuda.assignment.dgs import engine as dgs

    for name in ("ROUNDS_A_LAUNCH", "WINDOWS_A_LAUNCH", "SWEEPS_A_LAUNCH"):
        monkeypatch.setattr(dgs, name, 1)
    matrix = costs.make("uniform_integer", 200, 220, factor=10, seed=1)
    best = optimum(matrix)
    seen = []
    whole = solve(matrix, start=start, switching=switching, callback=seen.append)
    assert len(seen) > (8 if switching == "parallel" else 4)
    for last in range(1, len(seen)):
        ticks = itertools.count(1)
        a = solve(
            matrix,
            start=start,
            switching=switching,
            callback=lambda _, last=last, ticks=ticks: next(ticks) >= last,
        )
        check_mates(a)
        assert not a.proven
        if a.size == 200:
            assert a.objective >= whole.objective
            assert a.objective - a.gap <= best
    resumed = solve(matrix, switching=switching, initial=a)
    assert resumed.objective <= a.objective
    check_no_exchange_is_left(matrix, resumed.row_to_col)


def test_a_time_limit_of_nothing_still_tells_a_bound():
    a = solve(costs.make("uniform_float", 200), time_limit=0)
    assert not a.proven
    assert a.gap >= 0


def test_ctrl_c_brings_what_there_is():
    def interrupt(progress):
        if progress.phase == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        solve(costs.make("uniform_float", 300), callback=interrupt)
    check_mates(caught.value.result)
    assert caught.value.result.size == 300


def test_statistics():
    a = solve(costs.geom(2000, seed=1), maximize=True)
    trace = a.stats["trace"]
    assert trace[0]["exchanges"] > 2000
    assert trace[0]["steps"] < trace[0]["exchanges"] / 10
    assert trace[-1]["exchanges"] == 0
    parts = {"transposition", "start", "difference evaluation", "switching", "bound"}
    assert parts <= a.stats["seconds"].keys()
