"""The auction: optima and proofs, gaps that are left, exact rounding, stops, threads, kernels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, eye_array, random_array

import gpumatch as gm
from gpumatch.costs import DenseCosts
from gpumatch.cpu.assignment import auction
from gpumatch.cpu.assignment.auction import Precision, award, bid, round_prices
from gpumatch.numeric.auction_schedule import WARM_STEPS, close_gaps
from graphs import costs
from tests.cpu.assignment.solved import Solved, Trace

FAMILIES = [
    ("uniform_integer", {"factor": 0.1}),
    ("uniform_integer", {"factor": 1}),
    ("uniform_integer", {"factor": 10}),
    ("uniform_float", {}),
    ("geom2", {}),
    ("low_rank", {}),
    ("machol_wien", {}),
    ("two_cost", {}),
    ("constant", {}),
]
SHAPES = [(n, n) for n in (1, 2, 17, 100, 300)] + [(17, 23), (100, 101), (300, 450), (450, 300)]


def optimum(matrix, maximize=False):
    rows, cols = linear_sum_assignment(matrix, maximize=maximize)
    return matrix[rows, cols].sum()


def solve(matrix, **wish):
    return gm.assign(matrix, algorithm="auction", **wish)


# -- optimal, and proven ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "{}x{}".format(*shape))
@pytest.mark.parametrize(("family", "parameters"), FAMILIES)
def test_it_is_optimal(family, parameters, shape):
    matrix = costs.make(family, *shape, seed=2, **parameters)
    a = solve(matrix)
    gm.verify(matrix, a)
    assert a.proven
    assert a.objective == pytest.approx(optimum(matrix), rel=1e-12)


def test_integers_leave_no_gap_to_close(monkeypatch):
    monkeypatch.setattr(auction.shortest_augmenting_path, "run", None)
    for matrix in (costs.make("uniform_integer", 60), costs.make("machol_wien", 40, 50)):
        assert solve(matrix).objective == optimum(matrix)


def test_integers_too_large_to_be_scaled_are_exact_nonetheless():
    matrix = np.random.default_rng(3).integers(2**52, 2**53, (40, 60))
    a = solve(matrix)
    gm.verify(matrix, a)
    assert a.objective == int(optimum(matrix))


def test_the_sooner_such_integers_are_left_the_larger_is_the_gap():
    """Prices in floats, rounded, bound what is stopped after any of the epsilons."""
    matrix = np.random.default_rng(3).integers(0, 2**54, (30, 30))
    gaps = []
    for most in itertools.count():
        calls = itertools.count()
        a = solve(matrix, callback=lambda _, calls=calls, most=most: next(calls) >= most)
        gaps.append(a.gap)
        if a.proven:
            break
        assert a.objective - a.gap <= int(optimum(matrix)) <= a.objective
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 2**54
    assert 0 == gaps[-1] < gaps[-2] < 2**54 / 50


def sparse_matrix(nrows, ncols, degree, seed):
    """Integers at random places, and large ones on the diagonal."""
    rng = np.random.default_rng(seed)
    matrix = random_array((nrows, ncols), density=degree / ncols, rng=rng, format="csr")
    matrix.data = np.ceil(matrix.data * 100)
    return csr_array(matrix + 150 * eye_array(nrows, ncols), dtype=np.int64)


@pytest.mark.parametrize("shape", [(30, 30), (200, 200), (200, 260)])
@pytest.mark.parametrize("number", [np.int64, np.float64])
def test_it_is_optimal_on_sparse_costs(shape, number):
    matrix = sparse_matrix(*shape, degree=4, seed=5).astype(number)
    for wish in ({}, {"cardinality": "any", "maximize": True}, {"cost_limit": 60}):
        a = solve(matrix, **wish)
        gm.verify(matrix, a)
        assert a.proven
    rows = np.where(matrix.toarray() > 0, matrix.toarray(), 1e6)
    assert solve(matrix).objective == optimum(rows)


small_integers = hnp.arrays(
    np.int64,
    st.tuples(st.integers(1, 7), st.integers(1, 7)),
    elements=st.integers(-3, 3) | st.integers(-500, 500),
)
wishes = st.sampled_from(
    [{}, {"maximize": True}, {"cardinality": "any"}, {"cost_limit": 2}, {"cost_limit": -1.5}]
)


@given(matrix=small_integers, wish=wishes)
def test_small_integers_are_proven(matrix, wish):
    a = solve(matrix, **wish)
    gm.verify(matrix, a)
    assert a.proven


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_it_never_loops_where_no_full_assignment_exists(form):
    matrix = np.full((4, 6), np.inf) if form is np.asarray else np.zeros((4, 6))
    matrix[:3, :2] = 1
    matrix[3, 3:] = 2
    with pytest.raises(gm.InfeasibleError) as caught:
        solve(form(matrix))
    assert caught.value.rows.tolist() == [0, 1, 2]
    assert caught.value.cols.tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(40))
def test_prices_far_apart_still_prove_it(seed):
    """Each epsilon drives prices on where a row has no other choice, or would pay any of them."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 9), rng.integers(9, 12)
    sparse = random_array((n, m), density=0.4, rng=rng, format="csr", dtype=np.float64)
    sparse.data = np.ceil(255 * sparse.data)
    dense = rng.integers(0, 256, (n, n))
    for matrix, wish in (
        (sparse.astype(np.int64), {"cardinality": "maximum"}),
        (dense, {"cost_limit": 50_000}),
        (-dense, {"cardinality": "any", "cost_limit": -200, "maximize": True}),
    ):
        a = solve(matrix, **wish)
        assert a.proven
        gm.verify(matrix, a)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("finish", ["exact", "epsilon"])
def test_floats_that_are_all_0_leave_no_gap(backend, finish):
    matrix = np.zeros((3, 4))
    a = solve(matrix, backend=backend, finish=finish)
    assert a.proven
    assert a.gap == 0
    gm.verify(matrix, a)


def test_gaps_between_prices_are_closed():
    price = np.array([0, -3, -100, -104, -101, -300])
    assert close_gaps(price, 10).tolist() == [0, -3, -13, -17, -14, -27]
    assert close_gaps(price[:0], 10).size == 0


def test_prices_as_far_apart_as_costs_and_limit_allow_are_kept_so():
    """Two rows want one column: it falls until the other is as cheap, or going without."""
    a = solve(np.array([[-9, 9], [-9, 9]]))
    assert (a.objective, a.gap, np.ptp(a.col_dual)) == (0, 0, 18)
    both = csr_array((np.ones(2, int), ([0, 1], [0, 0])), shape=(2, 3))
    a = solve(both, cost_limit=50)
    assert (a.size, a.gap, a.col_dual[0]) == (1, 0, -49)


def test_prices_to_begin_from_do_no_harm():
    matrix = costs.make("uniform_integer", 50, 80, seed=1)
    other = costs.make("uniform_integer", 50, 80, seed=2)
    a = solve(matrix, initial=solve(other))
    gm.verify(matrix, a)
    assert a.objective == optimum(matrix)
    assert a.stats["phases"] < solve(matrix).stats["phases"]


def test_without_rows_all_prices_are_0():
    Solved(auction.run, np.zeros((0, 3)), price=np.array([-1, 0, -2])).check_optimal()


def test_the_papers_auction_begins_from_prices_of_0_whatever_is_given():
    matrix = costs.make("uniform_integer", 40, 60, seed=1)
    cold = solve(matrix, scaling="none")
    warm = solve(matrix, scaling="none", initial=solve(matrix))
    gm.verify(matrix, warm)
    assert warm.row_to_col.tolist() == cold.row_to_col.tolist()
    assert warm.stats["trace"] == cold.stats["trace"]
    assert [phase["step"] for phase in cold.stats["trace"]] == ["forward"]


# -- gaps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(60, 60), (60, 90), (90, 60)])
@pytest.mark.parametrize("family", ["uniform_float", "geom2", "low_rank"])
def test_a_gap_that_is_left_is_at_most_n_epsilon(family, shape):
    matrix = costs.make(family, *shape, seed=4)
    a = solve(matrix, finish="epsilon")
    precision = Precision.of(DenseCosts(matrix), None)
    bound = a.row_dual.sum() + a.col_dual.sum()
    assert not a.proven
    assert bound <= optimum(matrix) + 1e-12 <= a.objective + 2e-12
    assert 0 <= a.gap <= min(shape) * precision.epsilon * (1 + 1e-9)
    assert (matrix - a.row_dual[:, None] - a.col_dual >= -1e-12).all()


def test_the_gap_is_closed_from_the_auctions_prices(monkeypatch):
    seen = []
    close = auction.shortest_augmenting_path.run

    def spy(task):
        seen.append((int((task.solution.row_to_col >= 0).sum()), task.solution.col_dual.min()))
        return close(task)

    monkeypatch.setattr(auction.shortest_augmenting_path, "run", spy)
    matrix = costs.make("uniform_float", 50)
    assert solve(matrix).objective == pytest.approx(optimum(matrix))
    assert seen[0][0] == 50
    assert seen[0][1] < 0


def test_floats_of_any_scale_end():
    base = costs.make("uniform_float", 30, 40, seed=7)
    for matrix in (base * 1e-30, base * 1e30, base + 1e9, np.full((9, 9), 1e30), base * 5e-324):
        a = solve(matrix)
        gm.verify(matrix, a)
        assert a.proven


# -- exact rounding --------------------------------------------------------------------------------


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.tuples(
            st.lists(st.integers(-60, 0), min_size=n, max_size=n + 3),
            st.permutations(range(n)),
            st.integers(0, n),
        )
    )
)
def test_rounded_prices_keep_what_epsilon_allowed(problem):
    steps, order, idle = problem
    scale = 2.0 ** len(order).bit_length()
    row_to_col = np.array(order)
    row_to_col[:idle] = -1
    prices = np.array(steps) / scale
    prices[np.setdiff1d(np.arange(prices.size), row_to_col)] = 0
    rounded = round_prices(prices, row_to_col, 1 / scale)
    taken = row_to_col[row_to_col >= 0]
    # Whatever integer y has price[j] <= price[i] + y + epsilon, still has it rounded.
    least = np.ceil(prices[None, :] - prices[taken, None] - 1 / scale)
    assert (rounded[None, :] <= rounded[taken, None] + least).all()
    if idle:
        assert (rounded <= np.ceil(prices - 1 / scale)).all()
    assert (rounded[np.setdiff1d(np.arange(prices.size), taken)] == 0).all()


# -- the two kernels -------------------------------------------------------------------------------


def test_a_round_by_hand():
    """Two rows bid for column 0; the one to which it is worth more gets it, and pays its lead."""
    entries = np.array([[1, 5, 9], [1, 3, 9], [7, 2, 8]])
    row_dual, price = np.zeros(3), np.zeros(3)
    row_mate, col_mate, winner = (np.full(3, -1, np.int32) for _ in range(3))
    bidders = np.arange(3, dtype=np.int32)
    target, offer = np.empty(3, np.int32), np.empty(3)
    bid(
        entries, row_dual, price, bidders, 0, 3, target, offer,
        np.inf, 9.0, 0.25, np.empty(auction.LANES),
    )  # fmt: skip
    assert target.tolist() == [0, 0, 1]
    assert offer.tolist() == [-4.25, -2.25, -5.25]
    waiting = award(row_dual, price, row_mate, col_mate, winner, bidders, 3, target, offer, np.inf)
    assert bidders[:waiting].tolist() == [1]
    assert row_mate.tolist() == [0, -1, 1]
    assert price.tolist() == [-4.25, -5.25, 0]
    assert (winner == -1).all()


def test_of_equal_offers_the_first_is_taken():
    """Rows 2, 0 and 1 bid in this order, and the last two offer as much; column 1 has row 3."""
    row_dual, price = np.zeros(4), np.zeros(2)
    row_mate, col_mate = np.array([-1, -1, -1, 1], np.int32), np.array([-1, 3], np.int32)
    bidders, target = np.array([2, 0, 1], np.int32), np.array([1, 0, 0], np.int32)
    offer, winner = np.array([-3.0, -2.0, -2.0]), np.full(2, -1, np.int32)
    waiting = award(row_dual, price, row_mate, col_mate, winner, bidders, 3, target, offer, np.inf)
    assert bidders[:waiting].tolist() == [3, 1]
    assert (row_mate.tolist(), col_mate.tolist()) == ([0, -1, 1, -1], [0, 2])


def test_a_bidder_at_the_cap_goes_without():
    entries = np.array([[4.0, 6.0]])
    dual, target = np.zeros(1), np.empty(1, np.int32)
    for cap, expected in ((4.25, -1), (4.5, 0)):
        offer = np.empty(1)
        bid(
            entries, dual, np.zeros(2), np.zeros(1, np.int32), 0, 1, target, offer,
            cap, 9.0, 0.25, np.empty(auction.LANES),
        )  # fmt: skip
        assert target[0] == expected
    assert offer[0] == -0.5  # not 2.25 lower: more than the cap it never pays
    assert dual[0] == 4.5


# -- control ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_nothing(monkeypatch, threads):
    monkeypatch.setattr(auction, "WIDE", 1)
    matrix = costs.make("uniform_float", 300, 320, seed=3)
    monkeypatch.setattr("gpumatch.cpu.numba_tools.workers._EDGES_EACH", 1)
    a = solve(matrix, threads=threads, finish="epsilon")
    b = solve(matrix, threads=1, finish="epsilon", seed=5)
    assert (a.row_to_col == b.row_to_col).all()
    assert (a.col_dual == b.col_dual).all()
    assert a.stats["trace"] == b.stats["trace"]


@pytest.mark.parametrize("shape", [(40, 40), (40, 60)])
@pytest.mark.parametrize("number", [np.int64, np.float64])
def test_it_stops_at_any_tick_with_a_matching_and_a_bound(monkeypatch, shape, number):
    monkeypatch.setattr(auction, "BUDGET", 1)
    matrix = costs.make("uniform_integer", *shape, factor=10, seed=1).astype(number)
    best = optimum(matrix)
    seen = []
    solve(matrix, callback=lambda _: seen.append(0))
    assert len(seen) >= 30
    stopped = [solve_until(matrix, last) for last in range(1, len(seen), len(seen) // 12)]
    for a in stopped:
        bound = a.row_dual.sum() + a.col_dual.sum()
        assert np.unique(a.col_ind).size == a.size
        assert a.gap == (np.inf if a.size < 40 else a.objective - bound)
        assert bound <= best + 1e-9
        assert (matrix - a.row_dual[:, None] - a.col_dual >= -1e-9).all()
        resumed = solve(matrix, initial=a)
        gm.verify(matrix, resumed)
        assert resumed.objective == best
    assert sum(not a.proven for a in stopped) >= 10
    assert {a.size == 40 for a in stopped} == {False, True}


def solve_until(matrix, last):
    """Stop at that tick."""
    ticks = itertools.count(1)
    return solve(matrix, callback=lambda _: next(ticks) >= last)


def test_after_the_first_epsilon_a_stop_keeps_a_full_assignment():
    matrix = costs.make("machol_wien", 80)
    a = solve(matrix, callback=lambda progress: progress.phase == 3)
    assert (a.size, a.proven) == (80, False)
    assert 0 < a.gap < np.inf


def test_a_stop_within_a_later_epsilon_keeps_the_state_at_the_end_of_the_last(monkeypatch):
    monkeypatch.setattr(auction, "BUDGET", 300)
    matrix = np.random.default_rng(0).integers(0, 10**6, (60, 60)).astype(float)
    whole = Solved(auction.run, matrix)
    stops = range(1, len(whole.control.ticks) + 1)
    kept = [Solved(auction.run, matrix, control=Trace(stop_at=stop)) for stop in stops]
    full = [solved for solved in kept if solved.rows.size == 60]
    states = {(*solved.row_to_col.tolist(), *solved.col_dual.tolist()) for solved in full}
    assert len(full) > 90
    assert len(states) <= len(whole.control.phases)


def test_a_time_limit_of_nothing_is_kept():
    a = solve(costs.make("uniform_float", 200), time_limit=0)
    assert not a.proven


def test_a_budget_spent_is_the_same_auction(monkeypatch):
    matrix = costs.make("low_rank", 60, 90)
    whole = solve(matrix, finish="epsilon")
    monkeypatch.setattr(auction, "BUDGET", 100)
    split = solve(matrix, finish="epsilon")
    assert (whole.row_to_col == split.row_to_col).all()
    assert (whole.col_dual == split.col_dual).all()


def test_a_budget_of_short_rows_is_spent_soon():
    """Three rows that want two columns bid a quarter more each time, for ever almost."""
    costs_ = DenseCosts(np.array([[0, 0, 10**9]] * 3))
    precision = Precision.of(costs_, None)
    ours = auction._Auction(costs_, np.zeros(3), None, precision)
    terms = np.inf, precision.spread, precision.epsilon
    floor = auction._Floor(ours.rows, ours.cols, np.arange(3, dtype=np.int32), *terms)
    floor.rounds_alone()
    assert floor.waiting == 1
    assert 1000 < floor.rounds < 10**6  # some tenths of a microsecond each


def test_the_trace_names_the_steps():
    trace = solve(costs.make("uniform_float", 100, 140)).stats["trace"]
    steps = [phase["step"] for phase in trace if "epsilon" in phase]
    epsilons = [phase["epsilon"] for phase in trace if phase["step"] == "forward"]
    assert {"forward", "reverse"} == set(steps)
    assert epsilons == sorted(epsilons, reverse=True)
    for before, phase in itertools.pairwise(trace):
        kept = before["matched"] if phase["step"] == "reverse" else 0
        assert phase["found"] == phase["matched"] - kept or phase["step"] == "paths"


def test_progress_is_that_of_the_last_epsilon_that_has_ended(monkeypatch):
    """All rows are free again when the next begins, but its predecessor's assignment is kept."""
    monkeypatch.setattr(auction, "BUDGET", 1)
    matched = []
    solve(costs.make("machol_wien", 40), callback=lambda progress: matched.append(progress.matched))
    assert matched.count(40) > 5
    assert matched == sorted(matched)


def test_prices_to_begin_from_are_no_farther_than_floats_hold():
    matrix = DenseCosts(costs.make("uniform_integer", 5))
    precision = Precision.of(matrix, None)
    least = -precision.farthest / 4
    given = np.array([-(2**60), int(least) - 1, int(least) + 1, -3, 7])
    begun = auction._Auction(matrix, given, None, precision)
    assert begun.cols.dual.tolist() == [least, least, int(least) + 1, -3, 0]
    assert begun.is_warm


@pytest.mark.parametrize(("limit", "spread"), [(None, 2), (0, 10), (-9, 18)])
def test_the_spread_is_that_of_costs_and_limit(limit, spread):
    assert Precision.of(DenseCosts(np.array([[3, 5], [4, 4]])), limit).spread == spread


def test_no_column_is_left_over_below_the_cheapest_one_assigned():
    """If many pairs cost the same, rows share the columns, and columns need not bid for rows."""
    trace = solve(costs.make("two_cost", 100, 150), threads=1).stats["trace"]
    assert {phase["step"] for phase in trace} == {"forward"}


def test_prices_to_begin_from_leave_the_last_epsilons():
    precision = Precision.of(DenseCosts(costs.make("uniform_integer", 100, factor=10)), None)
    cold, warm = precision.schedule(is_warm=False), precision.schedule(is_warm=True)
    assert len(warm) == WARM_STEPS + 1 < len(cold)
    assert warm == cold[-len(warm) :]
    assert warm[-1] == precision.epsilon


@pytest.mark.parametrize(("largest", "is_exact"), [(2**47 - 2, True), (2**47 - 1, False)])
def test_the_largest_costs_of_which_floats_hold_all_prices(largest, is_exact):
    """Prices stay within 16 times the largest cost plus 1, and are multiples of a quarter."""
    costs_ = DenseCosts(np.array([[largest, 0, 0]] * 3))
    assert Precision.of(costs_, None).is_exact is is_exact
