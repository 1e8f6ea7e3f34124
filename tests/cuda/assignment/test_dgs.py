"""Deep Greedy Switching on the device: evaluation, exchanges, start, bound, and the whole."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linear_sum_assignment

import gpumatch as gm
from gpumatch.costs import as_costs
from graphs import costs
from tests.cuda.pools import fresh_pool, room_left

pytestmark = pytest.mark.gpu

DTYPES = ["int32", "int64", "float32", "float64"]
FORMS = pytest.mark.parametrize("form", ["global", "shared", "block"])
STARTS = pytest.mark.parametrize("start", ["random", "greedy"])
SWITCHING = pytest.mark.parametrize("switching", ["sequential", "parallel"])
SHAPES = pytest.mark.parametrize(
    "shape", [(1, 1), (2, 2), (17, 17), (100, 100), (90, 131), (1, 40), (333, 350)]
)


def solve(matrix, **wish):
    return gm.assign(matrix, algorithm="dgs", backend="cuda", **wish)


def optimum(matrix, maximize=False):
    rows, cols = linear_sum_assignment(matrix, maximize=maximize)
    return matrix[rows, cols].sum()


def check_mates(a):
    assert (a.row_to_col[a.row_ind] == a.col_ind).all()
    assert (a.col_to_row[a.col_ind] == a.row_ind).all()
    assert np.count_nonzero(a.col_to_row >= 0) == a.size


def problem_on_device(matrix, limit=None):
    """The problem of `gpumatch.cuda.assignment.dgs`, without mates."""
    from gpumatch.cuda.assignment import dgs

    return dgs.Problem(as_costs(matrix).problem(False, False).to_device(), limit)


def evaluator_for(problem, form, *, serves_mates=False):
    from gpumatch.cuda.assignment import dgs

    return dgs.Evaluator(problem, dgs.FORMS[form], serves_mates=serves_mates)


def put_mates(problem, row_to_col):
    """Give both sides their mates, and what they pay."""
    col_to_row = np.full(problem.ncols, -1, np.int32)
    rows = np.flatnonzero(row_to_col >= 0)
    col_to_row[row_to_col[rows]] = rows
    problem.rows.mate.set(np.asarray(row_to_col, np.int32))
    problem.cols.mate.set(col_to_row)
    problem.pay()
    return col_to_row


def total(matrix, row_to_col, limit=0):
    rows = np.flatnonzero(row_to_col >= 0)
    return matrix[rows, row_to_col[rows]].sum() + limit * (row_to_col.size - rows.size)


def all_savings(matrix, row_to_col, limit=None):
    """What each exchange saves, by row and wanted column; what a row saves that goes without."""
    matrix = matrix.astype(np.float64)
    nrows, ncols = matrix.shape
    idle = np.inf if limit is None else limit
    rows = np.flatnonzero(row_to_col >= 0)
    row_paid, col_paid, owner = np.full(nrows, float(idle)), np.zeros(ncols), np.full(ncols, -1)
    row_paid[rows] = col_paid[row_to_col[rows]] = matrix[rows, row_to_col[rows]]
    owner[row_to_col[rows]] = rows
    rest = matrix[owner][:, row_to_col].T  # the wanted column's owner takes the row's
    rest[row_to_col < 0] = idle
    rest[:, owner < 0] = 0
    with np.errstate(invalid="ignore"):
        savings = row_paid[:, None] + col_paid - (matrix + rest)
    return np.where(np.isnan(savings), -np.inf, savings), row_paid - idle


def best_savings(matrix, row_to_col, limit=None):
    """The best saving of each row, and of each column; 0 where there is none."""
    savings, drops = all_savings(matrix, row_to_col, limit)
    rows = np.maximum(savings.max(axis=1), drops)
    cols = savings.max(axis=0)
    matched = np.flatnonzero(row_to_col >= 0)
    np.maximum.at(cols, row_to_col[matched], drops[matched])
    return np.maximum(rows, 0), np.maximum(cols, 0)


def check_no_exchange_is_left(matrix, row_to_col, limit=None):
    least = 1e-9 * max(1, abs(total(np.where(np.isinf(matrix), 0, matrix), row_to_col)))
    assert all(best.max() <= least for best in best_savings(matrix, row_to_col, limit))


# -- evaluation ------------------------------------------------------------------------------------


def check_evaluation(matrix, row_to_col, form, limit=None):
    problem = problem_on_device(matrix, limit)
    put_mates(problem, row_to_col)
    evaluator_for(problem, form).all()
    agents, jobs = best_savings(matrix, row_to_col, limit)
    savings, _ = all_savings(matrix, row_to_col, limit)
    for side, best, saved in (
        (problem.rows, agents, savings),
        (problem.cols, jobs, savings.T),
    ):
        gain, choice = side.gain.get(), side.choice.get()
        np.testing.assert_allclose(gain, best, rtol=1e-12, atol=1e-12 * np.abs(best).max())
        found = np.flatnonzero((gain > 0) & (choice >= 0))
        np.testing.assert_allclose(saved[found, choice[found]], gain[found], rtol=1e-9)


@FORMS
@SHAPES
@pytest.mark.parametrize("dtype", DTYPES)
def test_differences_are_what_numpy_finds(dtype, shape, form):
    rng = np.random.default_rng(shape)
    matrix = rng.integers(-500, 500, shape).astype(dtype)
    check_evaluation(matrix, rng.permutation(shape[1])[: shape[0]], form)


@FORMS
@pytest.mark.parametrize("limit", [-100, 0, 250])
def test_differences_where_rows_go_without(limit, form):
    rng = np.random.default_rng(3)
    matrix = rng.integers(-500, 500, (70, 90)).astype(float)
    row_to_col = rng.permutation(90)[:70]
    row_to_col[rng.random(70) < 0.3] = -1
    check_evaluation(matrix, row_to_col, form, limit)


@FORMS
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_differences_lead_to_no_forbidden_pair(dtype, form):
    rng = np.random.default_rng(4)
    matrix = rng.integers(1, 500, (60, 80)).astype(float)
    row_to_col = rng.permutation(80)[:60]
    forbidden = rng.random((60, 80)) < 0.9
    forbidden[np.arange(60), row_to_col] = False
    matrix[forbidden] = np.inf
    given = matrix
    if dtype == "int64":
        rows, cols = np.isfinite(matrix).nonzero()
        given = sp.csr_array((matrix[rows, cols], (rows, cols)), shape=matrix.shape)
    problem = problem_on_device(given.astype(dtype))
    put_mates(problem, row_to_col)
    evaluator_for(problem, form).all()
    agents, jobs = best_savings(matrix, row_to_col)
    assert (problem.rows.gain.get() == agents).all()
    assert (problem.cols.gain.get() == jobs).all()
    assert 0 < np.count_nonzero(agents) < 60


@pytest.mark.parametrize("shape", [(20, 40_000), (5, 25_000)])
def test_vertices_whose_costs_no_block_holds(shape):
    rng = np.random.default_rng(5)
    matrix = rng.random(shape)
    row_to_col = rng.permutation(shape[1])[: shape[0]]
    problem = problem_on_device(matrix)
    evaluator = evaluator_for(problem, "block")
    assert (evaluator.room == 0) == (shape[1] == 40_000)
    put_mates(problem, row_to_col)
    evaluator.all()
    paid = matrix[np.arange(shape[0]), row_to_col]
    col_paid = np.zeros(shape[1])
    col_paid[row_to_col] = paid
    rest = np.zeros(shape)
    rest[:, row_to_col] = matrix[:, row_to_col].T
    savings = paid[:, None] + col_paid - (matrix + rest)
    np.testing.assert_allclose(problem.rows.gain.get(), savings.max(axis=1).clip(0))
    np.testing.assert_allclose(problem.cols.gain.get(), savings.max(axis=0).clip(0), atol=1e-15)


@FORMS
def test_only_listed_vertices_are_evaluated(form):
    import cupy as cp

    rng = np.random.default_rng(6)
    matrix = rng.random((200, 230))
    row_to_col = rng.permutation(230)[:200]
    problem = problem_on_device(matrix)
    put_mates(problem, row_to_col)
    problem.rows.gain.fill(-7)
    listed = rng.permutation(200)[:37]
    evaluator_for(problem, form).rows(cp.asarray(listed, np.int32))
    expected = np.full(200, -7.0)
    expected[listed] = best_savings(matrix, row_to_col)[0][listed]
    np.testing.assert_allclose(problem.rows.gain.get(), expected)


@FORMS
def test_agents_and_jobs_agree_on_what_is_best(form):
    """Columns know the exchanges of their rows, whether they were evaluated or not."""
    rng = np.random.default_rng(8)
    matrix = rng.random((120, 120))
    row_to_col = rng.permutation(120)
    problem = problem_on_device(matrix)
    col_to_row = put_mates(problem, row_to_col)
    evaluator = evaluator_for(problem, form, serves_mates=True)
    assert evaluator.serves_mates == (form == "block")
    evaluator.all()
    savings, _ = all_savings(matrix, row_to_col)
    gain, choice = problem.cols.gain.get(), problem.cols.choice.get()
    np.testing.assert_allclose(gain, best_savings(matrix, row_to_col)[1])
    found = np.flatnonzero(gain > 0)
    assert found.size > 100
    np.testing.assert_allclose(savings[choice[found], found], gain[found])
    assert (choice[found] != col_to_row[found]).all()


@FORMS
def test_the_papers_forms_evaluate_jobs_and_ours_does_not(form):
    """Only where exchanges are equal does it show: a job's first agent, or its agent's choice."""
    row_to_col = np.random.default_rng(1).permutation(50)
    matrix = np.ones((50, 50))
    matrix[np.arange(50), row_to_col] = 9
    problem = problem_on_device(matrix)
    owner = put_mates(problem, row_to_col)
    evaluator_for(problem, form, serves_mates=True).all()
    first = np.where(owner == 0, 1, 0)
    served = np.where(row_to_col == 0, owner[1], owner[0])[owner]
    assert not (first == served).all()
    expected = served if form == "block" else first
    assert problem.cols.choice.get().tolist() == expected.tolist()


@pytest.mark.parametrize("form", ["global", "shared"])
@pytest.mark.parametrize("shape", [(40, 40), (33, 47)])
def test_evaluations_are_the_references_number_by_number(shape, form):
    from gpumatch.reference import roverso2010 as reference
    from gpumatch.reference.interleaving import Grid

    rng = np.random.default_rng(shape)
    matrix = rng.random(shape)
    row_to_col = rng.permutation(shape[1])[: shape[0]].astype(np.int32)
    problem = problem_on_device(matrix)
    col_to_row = put_mates(problem, row_to_col)
    evaluator_for(problem, form, serves_mates=True).all()
    state = reference._State(matrix, row_to_col, col_to_row, form)
    state.evaluate_all(Grid("mt", 0))
    for side, differences in ((problem.rows, state.agents), (problem.cols, state.jobs)):
        gains = differences.gain > 0
        assert (side.gain.get() == differences.gain).all()
        assert (side.choice.get() == differences.choice)[gains].all()


@FORMS
def test_of_equal_exchanges_the_first_is_chosen(form):
    problem = problem_on_device(np.where(np.eye(100, dtype=bool), 9, 1))
    put_mates(problem, np.arange(100))
    evaluator_for(problem, form).all()
    assert (problem.rows.gain.get() == 16).all()
    assert problem.rows.choice.get().tolist() == [1] + [0] * 99


# -- switching -------------------------------------------------------------------------------------


@FORMS
@pytest.mark.parametrize(
    ("shape", "limit"), [((150, 150), None), ((90, 110), None), ((90, 99), 6000)]
)
def test_each_round_leaves_a_better_assignment(shape, limit, form, monkeypatch):
    """Exchanges of a round share no vertex: mates stay mates, and the total goes down."""
    from gpumatch.cuda.assignment import dgs

    monkeypatch.setattr(dgs, "ROUNDS_A_LAUNCH", 1)
    rng = np.random.default_rng(shape)
    matrix = rng.integers(0, 10_000, shape)
    problem = problem_on_device(matrix, limit)
    row_to_col = rng.permutation(shape[1])[: shape[0]]
    put_mates(problem, row_to_col)
    evaluator = evaluator_for(problem, form, serves_mates=True)
    evaluator.all()
    totals, made = [total(matrix, row_to_col, limit or 0)], [0]

    class Watch:
        def tick(self, _):
            rows, cols = problem.rows.mate.get(), problem.cols.mate.get()
            matched = np.flatnonzero(rows >= 0)
            assert (cols[rows[matched]] == matched).all()
            assert np.count_nonzero(cols >= 0) == matched.size
            assert matched.size == shape[0] or limit is not None
            totals.append(total(matrix, rows, limit or 0))
            made.append(switching.made)
            return False

    switching = dgs._Switching(problem, evaluator)
    assert switching.finish(Watch(), shape[0])
    steps = np.diff(totals)
    assert (steps[:-1] < 0).all()
    assert steps[-1] == 0
    assert (np.diff(made)[:-1] > 0).all()
    assert max(np.diff(made)) > 5
    assert switching.rounds == len(made) - 2


@FORMS
@pytest.mark.parametrize("shape", [(30, 30), (30, 38)])
@pytest.mark.parametrize("seed", range(3))
def test_parallel_switching_is_the_references(seed, shape, form):
    matrix = np.random.default_rng(seed).random(shape)
    initial = np.random.default_rng(seed).permutation(shape[1])[: shape[0]]
    wish = {"algorithm": "dgs", "initial": initial, "switching": "parallel"}
    a = gm.assign(matrix, backend="cuda", evaluation=form, **wish)
    b = gm.assign(matrix, backend="reference", **wish)
    assert (a.row_to_col == b.row_to_col).all()
    for one, other in zip(a.stats["trace"], b.stats["trace"], strict=True):
        assert (one["exchanges"], one["steps"]) == (other["exchanges"], other["steps"])


@FORMS
@pytest.mark.parametrize("shape", [(30, 30), (30, 38)])
def test_every_round_of_switching_is_the_references(shape, form, monkeypatch):
    """The same mates after each round, and the same gains for the next."""
    from gpumatch.cuda.assignment import dgs
    from gpumatch.reference import roverso2010 as reference
    from gpumatch.reference.interleaving import Grid

    monkeypatch.setattr(dgs, "ROUNDS_A_LAUNCH", 1)
    rng = np.random.default_rng(shape)
    matrix = rng.random(shape)
    row_to_col = rng.permutation(shape[1])[: shape[0]].astype(np.int32)
    problem = problem_on_device(matrix)
    col_to_row = put_mates(problem, row_to_col)
    evaluator = evaluator_for(problem, form, serves_mates=True)
    evaluator.all()
    state = reference._State(matrix, row_to_col, col_to_row, "global")
    state.evaluate_all(Grid("mt", 0))
    rounds = reference.switch_in_parallel(state, Grid("mt", 0))
    made = []

    class Compare:
        def tick(self, _):
            made.append(next(rounds, 0))
            assert (problem.rows.mate.get() == state.mates[0]).all()
            assert (problem.cols.mate.get() == state.mates[1]).all()
            assert (problem.rows.gain.get() == state.agents.gain).all()
            assert (problem.cols.gain.get() == state.jobs.gain).all()
            return False

    switching = dgs._Switching(problem, evaluator)
    assert switching.finish(Compare(), shape[0])
    assert len(made) > 4
    assert made[-1] == 0
    assert sum(made) == switching.made


@FORMS
@STARTS
@SHAPES
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_mixed_form_is_the_cpus(dtype, shape, start, form):
    """The same exchanges one by one, and the same bound."""
    matrix = np.random.default_rng(shape).integers(0, 1000, shape).astype(dtype)
    a = solve(matrix, switching="sequential", evaluation=form, start=start)
    b = gm.assign(matrix, algorithm="dgs", backend="cpu", start=start)
    assert (a.row_to_col == b.row_to_col).all()
    assert (a.row_dual == b.row_dual).all()
    assert (a.col_dual == b.col_dual).all()
    assert a.gap == b.gap


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
    from gpumatch.cpu.assignment import dgs as on_cpu
    from gpumatch.cuda.assignment import dgs
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
    on_cpu.start_from("greedy", task)
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
    from gpumatch.cuda.assignment import dgs

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
