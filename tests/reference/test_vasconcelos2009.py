"""The auction's two kernels as threads: each step by hand, any order, and the whole."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.cpu.assignment import auction
from gpumatch.reference.interleaving import Grid
from gpumatch.reference.vasconcelos2009 import assignment, bidding, count_assigned, rounds
from graphs import costs

CONVERGENCE = pytest.mark.parametrize("convergence", ["counter", "reduction"])
SEEDS = pytest.mark.parametrize("seed", range(5))


def solve(matrix, **wish):
    return gm.assign(matrix, algorithm="auction", backend="reference", **wish)


def optimum(matrix):
    rows, cols = linear_sum_assignment(matrix)
    return matrix[rows, cols].sum()


def free(size):
    return np.full(size, -1, np.int32)


# -- the kernels -----------------------------------------------------------------------------------


@SEEDS
def test_persons_without_an_object_bid_for_the_best(seed):
    benefit = np.array([[9.0, 5, 1], [9, 7, 1], [3, 8, 2], [0, 0, 9]])
    price = np.array([1.0, 0, 0])
    row_to_col = np.array([-1, -1, -1, 2], np.int32)
    value, target = np.zeros(4), np.full(4, 7, np.int32)
    grid = Grid("mt", seed)
    bidding(benefit, price, row_to_col, value, target, 0.25, 100, grid=grid)
    assert target.tolist() == [0, 0, 1, -1]
    assert value[:3].tolist() == [1 + 3.25, 1 + 1.25, 6.25]
    assert price.tolist() == [1, 0, 0]


@SEEDS
def test_of_equal_bids_the_first_persons_wins(seed):
    price, row_to_col, col_to_row, counter = np.zeros(2), free(4), free(2), np.zeros(1, np.int64)
    bids, target = np.array([2.0, 3.0, 3.0, 1.0]), np.array([0, 0, 0, 1], np.int32)
    grid = Grid("mt", seed)
    assignment(price, row_to_col, col_to_row, bids, target, counter, grid=grid)
    assert col_to_row.tolist() == [1, 3]
    assert row_to_col.tolist() == [-1, 0, -1, 1]
    assert price.tolist() == [3, 1]
    assert counter[0] == 2


@SEEDS
def test_a_person_who_may_have_one_object_bids_by_the_jump(seed):
    benefit = np.array([[-np.inf, 4.0]])
    value, target = np.zeros(1), free(1)
    bidding(benefit, np.zeros(2), free(1), value, target, 0.25, 100, grid=Grid("mt", seed))
    assert (target[0], value[0]) == (1, 100.25)


@SEEDS
def test_objects_go_to_the_highest_bidders(seed):
    """Object 0 is free, object 1 is person 3's; no person wants object 2."""
    price = np.array([0.0, 2, 0])
    row_to_col, col_to_row = np.array([-1, -1, -1, 1], np.int32), np.array([-1, 3, -1], np.int32)
    value, target = np.array([4.25, 5.0, 3.0, 99]), np.array([0, 0, 1, -1], np.int32)
    counter = np.array([1])
    state = price, row_to_col, col_to_row, value, target, counter
    assignment(*state, grid=Grid("mt", seed))
    assert price.tolist() == [5, 3, 0]
    assert row_to_col.tolist() == [-1, 0, 1, -1]
    assert col_to_row.tolist() == [1, 2, -1]
    assert counter[0] == 2  # object 1 was assigned before


@SEEDS
@pytest.mark.parametrize("size", [0, 1, 2, 7, 33])
def test_the_reduction_counts_what_the_counter_counts(seed, size):
    col_to_row = np.random.default_rng(seed).integers(-1, 2, size).astype(np.int32)
    count = count_assigned(col_to_row, grid=Grid("ct", seed))
    assert count == np.count_nonzero(col_to_row >= 0)


# -- rounds ----------------------------------------------------------------------------------------


def steps(matrix, seed, convergence="counter", launch="ct"):
    """Rounds with the state after each."""
    benefit, price = -matrix.astype(float), np.zeros(matrix.shape[1])
    mates = free(matrix.shape[0]), free(matrix.shape[1])
    epsilon = 2.0 ** -matrix.shape[0].bit_length()
    auctions = rounds(benefit, price, *mates, epsilon, 99, convergence, Grid(launch, seed))
    for step in auctions:
        yield step, price.copy(), mates[0].copy(), mates[1].copy()


@SEEDS
def test_epsilon_complementary_slackness_holds_after_every_round(seed):
    matrix = costs.make("uniform_integer", 9, 12, factor=3, seed=seed)
    assigned = 0
    for step, price, row_to_col, col_to_row in steps(matrix, seed):
        rows = np.flatnonzero(row_to_col >= 0)
        net = -matrix - price
        assert (net[rows, row_to_col[rows]] >= net[rows].max(axis=1) - 1 / 16).all()
        assert (col_to_row[row_to_col[rows]] == rows).all()
        assert np.count_nonzero(col_to_row >= 0) == rows.size == step.assigned >= assigned
        assert (price[col_to_row < 0] == 0).all()
        assigned = step.assigned
    assert assigned == 9


def test_no_order_of_the_threads_changes_a_round():
    matrix = costs.make("uniform_integer", 12, 15, seed=4)
    runs = [
        [(s, p.tolist(), r.tolist()) for s, p, r, _ in steps(matrix, seed, convergence, launch)]
        for seed, convergence, launch in itertools.product(
            range(4), ["counter", "reduction"], ["ct", "mt"]
        )
    ]
    assert all(run == runs[0] for run in runs)


# -- the whole -------------------------------------------------------------------------------------


@CONVERGENCE
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (17, 17), (13, 20), (20, 13)])
@pytest.mark.parametrize(
    "family", ["uniform_integer", "uniform_float", "geom2", "machol_wien", "two_cost", "constant"]
)
def test_it_is_optimal(family, shape, convergence):
    matrix = costs.make(family, *shape, seed=2)
    a = solve(matrix, convergence=convergence)
    gm.verify(matrix, a)
    assert a.proven
    assert a.objective == pytest.approx(optimum(matrix), rel=1e-12)


def test_integers_of_a_moderate_range_leave_no_gap_to_close(monkeypatch):
    monkeypatch.setattr(auction.shortest_augmenting_path, "run", None)
    matrix = costs.make("uniform_integer", 17, 20)
    assert solve(matrix).objective == optimum(matrix)


@settings(max_examples=30)
@given(
    matrix=hnp.arrays(
        np.int64,
        st.tuples(st.integers(1, 5), st.integers(1, 5)),
        elements=st.integers(-4, 4) | st.sampled_from([10**6, -(10**12)]),
    ),
    wish=st.sampled_from([{}, {"maximize": True}, {"cardinality": "any"}, {"cost_limit": 2}]),
    seed=st.integers(0, 9),
)
def test_small_integers_are_proven(matrix, wish, seed):
    a = solve(matrix, seed=seed, **wish)
    gm.verify(matrix, a)
    assert a.proven


@pytest.mark.parametrize("shape", [(15, 15), (12, 18)])
def test_it_agrees_with_the_cpu(shape):
    """Without ties there is one optimum: both have it, and a gap within n · epsilon."""
    matrix = costs.make("uniform_float", *shape, seed=6)
    a = solve(matrix)
    b = gm.assign(matrix, algorithm="auction")
    assert (a.row_to_col == b.row_to_col).all()
    loose = solve(matrix, finish="epsilon")
    spread = matrix.max() - matrix.min()
    assert not loose.proven
    assert 0 <= loose.gap <= spread / 32 * (1 + 1e-9)
    assert loose.objective - loose.gap <= a.objective + 1e-12


def test_what_is_infeasible_does_not_loop():
    with pytest.raises(gm.InfeasibleError):
        solve(csr_array([[1, 0, 0], [2, 0, 0], [1, 1, 1]]))


def test_it_stops_between_rounds_with_a_matching():
    matrix = costs.make("machol_wien", 15)
    ticks = itertools.count()
    a = solve(matrix, callback=lambda _: next(ticks) > 20)
    assert not a.proven
    assert 0 < a.size < 15
    assert (a.col_to_row[a.col_ind] == a.row_ind).all()
    assert (matrix - a.row_dual[:, None] - a.col_dual >= 0).all()


def test_one_seed_makes_one_run():
    matrix = costs.make("uniform_integer", 17, factor=0.1)
    traces = [solve(matrix, seed=3).stats["trace"] for _ in range(2)]
    assert traces[0] == traces[1]
    assert traces[0][-1]["matched"] == 17


def test_the_first_row_goes_without():
    """Its own place to go without is the first after all columns."""
    for scaling in ({}, {"scaling": "none"}):
        how = {"algorithm": "auction", "backend": "reference", **scaling}
        a = gm.assign(np.array([[9, 9], [1, 2]]), cost_limit=3, **how)
        assert a.row_to_col.tolist() == [-1, 0]
        assert a.col_to_row.tolist() == [1, -1]
