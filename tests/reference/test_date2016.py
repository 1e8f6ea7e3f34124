"""Date and Nagi's kernels as interleaved threads: each kernel, races, results."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

import gpumatch as gm
from gpumatch.reference import date2016 as reference
from gpumatch.reference.date2016 import ALGORITHMS, NONE, REVERSE, State
from gpumatch.reference.exact_slacks import Slacks
from gpumatch.reference.interleaving import Grid
from graphs import costs
from tests.assignment_cases import CASES
from tests.cpu.assignment.solved import Solved, Trace, optimum, rounding, tight_pairs

ALGORITHM = pytest.mark.parametrize("algorithm", ALGORITHMS)
SEEDS = range(12)


def solve(matrix, algorithm, **options):
    return Solved(reference.run, matrix, algorithm=algorithm, **options)


def grid(seed=0):
    return Grid("ct", seed)


def reduced_state(matrix, seed=0):
    """The state after Algorithm 1."""
    state = state_of(matrix)
    reference.reduce_rows(state, grid=grid(seed))
    if state.nrows == state.ncols:
        reference.reduce_columns(state, grid=grid(seed))
    return state


def state_of(matrix):
    return State(Slacks(matrix, np.ones(matrix.shape, bool)))


# -- results ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [c for c in CASES if max(c.shape) <= 34], ids=str)
@ALGORITHM
def test_every_family(algorithm, case):
    matrix = case.costs
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T.copy()
    wide = -wide if case.maximize else wide
    solved = solve(wide, algorithm)
    solved.check_optimal(rounding(wide))
    assert math.isclose(solved.total, optimum(wide), rel_tol=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
@ALGORITHM
def test_every_order_of_threads_ends_at_the_optimum(algorithm, seed):
    for matrix in (costs.uniform_integer(24, seed=seed), costs.two_cost(24, 28, 0.1, seed=seed)):
        solved = solve(matrix, algorithm, seed=seed)
        solved.check_optimal()
        assert solved.total == optimum(matrix)
        again = solve(matrix, algorithm, seed=seed)
        assert np.array_equal(again.row_to_col, solved.row_to_col)
        assert again.control.phases == solved.control.phases


def test_orders_differ():
    matrix = costs.two_cost(24, seed=1)
    results = {solve(matrix, "hungarian-classical", seed=s).row_to_col.tobytes() for s in SEEDS}
    assert len(results) > 1


entries = st.integers(-3, 3) | st.floats(-1e3, 1e3) | st.just(math.inf)
shapes = st.tuples(st.integers(0, 6), st.integers(0, 3)).map(lambda s: (s[0], s[0] + s[1]))


@ALGORITHM
@given(
    matrix=hnp.arrays(np.float64, shapes, elements=entries),
    limit=st.none() | st.integers(-3, 3),
    seed=st.integers(0, 99),
)
def test_agrees_with_scipy(algorithm, matrix, limit, seed):
    solved = solve(matrix, algorithm, limit=limit, seed=seed)
    assert solved.ended
    solved.check_matching()
    padded = matrix
    if limit is not None:
        own = np.full((len(matrix), len(matrix)), math.inf)
        np.fill_diagonal(own, limit)
        padded = np.hstack([matrix, own])
    try:
        expected = optimum(padded)
    except ValueError:
        assert (solved.row_to_col < 0).any()
        return
    slack = 1e-12
    solved.check_optimal(slack)
    assert math.isclose(solved.total, expected, rel_tol=1e-12, abs_tol=1e-12)


@ALGORITHM
def test_numbers_have_no_end(algorithm):
    rng = np.random.default_rng(1)
    matrix = rng.random((15, 15)) * 10.0 ** rng.integers(-300, 300, (15, 15))
    solved = solve(matrix, algorithm)
    solved.check_optimal(rounding(matrix))
    most = 2**62 // 16 - 1
    matrix = most * rng.integers(-1, 2, (15, 15))
    solve(matrix, algorithm).check_optimal()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@ALGORITHM
def test_from_the_front_door(algorithm, kind):
    matrix = costs.uniform_integer(20, 14, seed=2) + 1
    source = matrix if kind == "dense" else csr_array(matrix)
    for wish in ({}, {"maximize": True}, {"cost_limit": 3}, {"cardinality": "maximum"}):
        a = gm.assign(source, algorithm=algorithm, backend="reference", **wish)
        assert gm.verify(source, a).bound == a.objective
    with pytest.raises(gm.InfeasibleError):
        gm.assign(np.full((3, 3), math.inf), algorithm=algorithm, backend="reference")


@ALGORITHM
def test_stops_at_every_tick_leave_a_matching_and_a_bound(algorithm):
    matrix = costs.uniform_integer(12, 14, 10, seed=3)
    best = solve(matrix, algorithm)
    ticks = len(best.control.ticks)
    for tick in range(1, ticks + 1, 5):
        solved = solve(matrix, algorithm, control=Trace(tick))
        assert not solved.ended
        assert len(solved.control.ticks) == tick
        solved.check_matching()
        if solved.control.phases:
            solved.check_duals()
            assert solved.bound <= best.bound


# -- the kernels -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(9, 9), (9, 12)], ids=str)
def test_algorithm_1_makes_least_duals(shape):
    matrix = costs.uniform_integer(*shape, 10, seed=1)
    state = reduced_state(matrix)
    assert state.slacks.row_dual.tolist() == (2 * matrix.min(axis=1)).tolist()
    assert (state.slacks.all() >= 0).all()
    assert np.array_equal(state.slacks.all() == 0, tight_pairs(matrix))
    if shape[0] < shape[1]:
        assert not state.slacks.col_dual.any()


def test_algorithm_2_covers_and_counts():
    state = reduced_state(costs.uniform_integer(20, seed=1))
    state.row_to_col[3], state.row_to_col[8] = 1, 0
    assert reference.check_optimality(state, grid=grid()) == 2
    assert [row for row in range(20) if state.row_cover[row]] == [3, 8]


@given(st.lists(st.booleans(), max_size=50))
def test_compaction_keeps_relevant_elements_in_order(marks):
    relevant = reference.compact(np.array(marks, bool), grid=grid())
    assert relevant.tolist() == [k for k, mark in enumerate(marks) if mark]


def test_compression_lists_the_tight_pairs():
    matrix = costs.uniform_integer(15, seed=2)
    state = reduced_state(matrix)
    reference.compress_matrix(state, grid=grid())
    expected = csr_array(tight_pairs(matrix))
    assert state.indptr.tolist() == expected.indptr.tolist()
    assert state.indices.tolist() == expected.indices.tolist()


@pytest.mark.parametrize("seed", SEEDS)
@ALGORITHM
def test_algorithms_3_and_4_grow_disjoint_trees(monkeypatch, algorithm, seed):
    """At the end of each forward pass: trees of tight pairs, and covers that tell them."""
    searches = 0
    original = reference.reverse_pass

    def check(state, ends, *, grid):
        nonlocal searches
        searches += 1
        tight = state.slacks.all() == 0
        for col in ends:
            seen = set()
            while col != NONE:
                row = state.col_pred[col]
                assert tight[row, col]
                assert row not in seen
                assert not state.row_cover[row]
                seen.add(row)
                col = state.row_pred[row]
                assert col == state.row_to_col[row]
                assert col == NONE or state.col_cover[col]
            assert state.row_to_col[row] == NONE
        unmatched = {col for col in range(state.ncols) if state.col_to_row[col] == NONE}
        assert {*ends} <= unmatched
        in_trees = [row for row in range(state.nrows) if not state.row_cover[row]]
        reached = set(np.flatnonzero(tight[in_trees].any(axis=0)).tolist())
        covered = {col for col in range(state.ncols) if state.col_cover[col]}
        assert reached == covered | {*ends}
        original(state, ends, grid=grid)

    monkeypatch.setattr(reference, "reverse_pass", check)
    solve(costs.two_cost(20, p=0.12, seed=seed), algorithm, seed=seed).check_optimal()
    assert searches > 1


def test_races_give_several_paths_at_once_and_ends_that_lose():
    several = lost = 0
    for seed in SEEDS:
        state = reduced_state(costs.two_cost(20, p=0.12, seed=seed), seed)
        for step in reference.iterations(state, "hungarian-classical", grid(seed)):
            several += step.found > 1
            lost += np.count_nonzero(state.col_mark == REVERSE) > step.found
            check_mates(state)
    assert several > 5
    assert lost > 5


def check_mates(state):
    matched = [(row, col) for row, col in enumerate(state.row_to_col) if col != NONE]
    assert matched == sorted((row, col) for col, row in enumerate(state.col_to_row) if row != NONE)
    assert not state.slacks.at(*np.array(matched, int).reshape(-1, 2).T).any()


@pytest.mark.parametrize("seed", SEEDS)
@ALGORITHM
def test_each_iteration_leaves_tight_pairs_and_feasible_duals(algorithm, seed):
    matrix = costs.uniform_integer(18, 18 + seed % 3, 5, seed=seed)
    state = reduced_state(matrix, seed)
    before = 0
    for step in reference.iterations(state, algorithm, grid(seed)):
        assert step.matched == before + step.found > before
        assert step.matched == state.matched
        before = step.matched
        check_mates(state)
        assert state.slacks.all().min() >= 0
        assert (state.slacks.all() % 2 == 0).all()
    assert before == 18


@pytest.mark.parametrize("seed", SEEDS)
def test_algorithms_5_and_6_turn_one_path_a_tree(seed):
    """Row 0 reaches columns 0, 1 and, through row 1's, 2 and 3; row 2 reaches column 4 by its own.

    The four ends of row 0's tree race for it.
    """
    tight = np.array([[1, 1, 0, 0, 0, 1], [0, 0, 1, 1, 0, 1], [0, 0, 0, 0, 1, 0]], bool)
    state = state_of(np.where(tight, 0, 1))
    state.row_to_col[1], state.col_to_row[5] = 5, 1
    state.row_pred[:] = [NONE, 5, NONE]
    state.col_pred[:] = [0, 0, 1, 1, 2, 0]
    reference.reverse_pass(state, np.arange(5), grid=grid(seed))
    roots = np.flatnonzero(state.row_mark == reference.AUGMENT)
    assert roots.tolist() == [0, 2]
    reference.augmentation_pass(state, roots, grid=grid(seed))
    check_mates(state)
    assert state.matched == 3
    assert state.row_to_col[2] == 4


def test_all_ends_can_win():
    winners = set()
    for seed in range(60):
        state = state_of(np.zeros((1, 3), int))
        state.col_pred[:] = 0
        reference.reverse_pass(state, np.arange(3), grid=grid(seed))
        winners.add(int(state.row_next[0]))
    assert winners == {0, 1, 2}


def test_algorithm_7_finds_the_least_uncovered_slack():
    rng = np.random.default_rng(4)
    state = reduced_state(costs.uniform_integer(12, 15, 10, seed=4))
    state.row_cover[:] = rng.random(12) < 0.5
    state.col_cover[:] = rng.random(15) < 0.5
    uncovered = np.ix_(~state.row_cover, ~state.col_cover)
    least = state.slacks.all()[uncovered].min()
    assert reference.least_uncovered_slacks(state, grid=grid()) == least
    for cover in (state.row_cover, state.col_cover):
        kept = cover.copy()
        cover[:] = True
        assert reference.least_uncovered_slacks(state, grid=grid()) is None
        cover[:] = kept


@pytest.mark.parametrize("shape", [(12, 12), (12, 15)], ids=str)
def test_algorithm_8_moves_slacks_as_munkres_does(shape):
    rng = np.random.default_rng(5)
    state = reduced_state(costs.uniform_integer(*shape, 10, seed=5))
    state.row_cover[:] = rng.random(shape[0]) < 0.5
    state.col_cover[:] = rng.random(shape[1]) < 0.5
    before = state.slacks.all()
    theta = 6
    reference.update_classical(state, theta, grid=grid())
    row, col = state.row_cover[:, None], state.col_cover
    expected = before + theta * (row & col) - theta * (~row & ~col)
    assert np.array_equal(state.slacks.all(), expected)


def test_algorithm_9_keeps_slacks_true_and_wakes_rows(monkeypatch):
    updates = []
    original = reference.update_tree

    def check(state, theta, *, grid):
        of_trees = state.slacks.all()[~state.row_cover].min(axis=0)
        least = {col: of_trees[col] for col in np.flatnonzero(~state.col_cover).tolist()}
        assert {col: state.slack[col] for col in least} == least
        assert theta == min(slack for slack in least.values() if slack > 0)
        original(state, theta, grid=grid)
        now = [col for col, slack in least.items() if slack == theta]
        in_trees_too = [col for col in range(state.ncols) if state.col_cover[col]]
        assert all(state.slack[col] == 0 for col in [*now, *in_trees_too])
        active = {row for row, mark in enumerate(state.row_mark) if mark == reference.ACTIVE}
        assert active == {state.col_pred[col] for col in now}
        assert not state.slacks.at(state.col_pred[now], np.array(now)).any()
        updates.append(theta)

    monkeypatch.setattr(reference, "update_tree", check)
    solve(costs.uniform_integer(20, 20, 10, seed=6), "hungarian-tree").check_optimal()
    assert len(updates) > 5


# -- the drivers -----------------------------------------------------------------------------------


def test_lists_are_made_anew_after_dual_updates_only(monkeypatch):
    compressions = []
    original = reference.compress_matrix

    def count(state, *, grid):
        compressions.append(state)
        original(state, grid=grid)

    monkeypatch.setattr(reference, "compress_matrix", count)
    phases = solve(costs.uniform_integer(25, 25, 5, seed=7), "hungarian-classical").control.phases
    updates = sum(phase["updates"] for phase in phases)
    assert len(compressions) == 1 + updates
    assert len(phases) > 1 + sum(phase["updates"] > 0 for phase in phases)


@pytest.mark.parametrize("shape", [(30, 30), (20, 30)], ids=str)
@ALGORITHM
def test_the_first_update_waits_for_a_maximum_matching(algorithm, shape):
    matrix = costs.uniform_integer(*shape, seed=7)
    phases = solve(matrix, algorithm).control.phases
    first = next(k for k, phase in enumerate(phases) if phase["updates"])
    graph = csr_array(tight_pairs(matrix))
    most = np.count_nonzero(maximum_bipartite_matching(graph, "column") >= 0)
    assert phases[first - 1]["matched"] == most < shape[0]
    assert sum(phase["initial"] for phase in phases) == most


@pytest.mark.parametrize(
    ("algorithm", "at_first", "an_update"),
    [("hungarian-classical", 2, 7), ("hungarian-tree", 0, 3)],
)
def test_launches_are_those_of_the_steps(algorithm, at_first, an_update):
    """Six a search, two a level; the lists of the classical variant take two each time."""
    phases = solve(costs.uniform_integer(25, 25, 5, seed=7), algorithm).control.phases
    expected = [6 + 2 * phase["levels"] + an_update * phase["updates"] for phase in phases]
    expected[0] += at_first
    assert [phase["launches"] for phase in phases] == expected
    assert any(phase["updates"] for phase in phases)


def test_both_reductions_are_launches():
    state, counted = state_of(costs.uniform_integer(5, seed=1)), grid()
    for number, reduce in enumerate((reference.reduce_rows, reference.reduce_columns), start=1):
        reduce(state, grid=counted)
        assert counted.launches == number


def test_both_variants_and_the_cpu_raise_the_duals_alike():
    """From the same trees, theta is the same however it is found."""
    matrix = costs.machol_wien(12)
    runs = [solve(matrix, algorithm) for algorithm in ALGORITHMS]
    updates = [sum(phase["updates"] for phase in run.control.phases) for run in runs]
    assert updates[0] == updates[1] <= 12 * 11 / 2
    assert np.array_equal(runs[0].col_dual, runs[1].col_dual)
