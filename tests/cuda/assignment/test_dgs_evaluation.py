"""Deep Greedy Switching on the device: how exchanges are evaluated, and which are made."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import gpumatch as gm
from tests.cuda.assignment.dgs_problems import (
    DTYPES,
    FORMS,
    SHAPES,
    STARTS,
    all_savings,
    best_savings,
    evaluator_for,
    problem_on_device,
    put_mates,
    solve,
    total,
)

pytestmark = pytest.mark.gpu

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
    from gpumatch.cuda.assignment.dgs import engine as dgs

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
    from gpumatch.cuda.assignment.dgs import engine as dgs
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
