"""The engine for costs: the contract on sparse costs, each of its steps, stops, threads, units."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.cpu.assignment.search.bid_queue import Queue
from gpumatch.cpu.assignment.search.state import DONE, LOW, NEXT, SCANS, SPENT
from gpumatch.cpu.assignment.sparse import bidding, feasibility
from gpumatch.cpu.assignment.sparse import engine as sparse_engine
from gpumatch.cpu.assignment.sparse import paths as sparse_paths
from gpumatch.cpu.assignment.sparse import search as sparse_search
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.cpu.assignment.sparse.auction import Auction
from gpumatch.cpu.assignment.sparse.paths import SparsePaths
from gpumatch.cpu.assignment.sparse.scaled_integers import BLOCK, FINE, Units
from gpumatch.cpu.assignment.sparse.tuning import LONG, SHORT, SPARE, Effort, Tuning
from gpumatch.cpu.matching.engine import match_rows
from graphs import adversarial, costs
from tests.cpu.assignment.solved import Solved, Trace, least, rounding
from tests.cpu.assignment.tuned import tune
from tests.pairwise import pairwise_product, parametrize_pairwise

PATHS = ["trial", "bids", "auction", "turns"]
UNTRIED = SPARE._replace(bids=0, unmatched=-1)
EVERY_PATH = pytest.mark.parametrize("path", PATHS, indirect=True)


@pytest.fixture(params=["trial"], autouse=True)
def path(request, monkeypatch):
    """With the trial that mostly serves small problems, a long one, which begins with bids, or the
    auction alone; columns bid, too.
    """
    trial = LONG if request.param == "bids" else SHORT
    is_alone = request.param in ("auction", "turns")
    tune(monkeypatch, sparse_tuning, trial=trial._replace(unmatched=-1) if is_alone else trial)
    if is_alone:
        tune(monkeypatch, sparse_tuning, small=0, fewest=1, few=1, few_paths=1)
        tune(monkeypatch, sparse_tuning, trial_with_spare=UNTRIED)
    if request.param == "turns":
        tune(monkeypatch, sparse_tuning, tail=1, fewest=0)
    return request.param


def solve(matrix, **given):
    """A run on the entries that are finite."""
    return Solved(sparse_engine.run, matrix, kind="sparse", **given)


def thinned(matrix, share, rng):
    """The costs as floats, with so many pairs allowed, and those of a diagonal."""
    allowed = rng.random(matrix.shape) < share
    np.fill_diagonal(allowed, True)
    return np.where(allowed, matrix, np.inf)


SHAPES = [(1, 1), (1, 6), (5, 5), (40, 40), (40, 41), (30, 90), (200, 200), (150, 220)]


@parametrize_pairwise(
    *("path", "limit"),
    path=PATHS,
    shape=SHAPES,
    top=[1, 5, 1000, 10**6],
    limit=[None, 0.75, 0],
    threads=[1, 2],
    indirect=["path"],
)
def test_floats(shape, top, limit, threads):
    rng = np.random.default_rng(top)
    matrix = thinned(rng.random(shape) * top, 0.3, rng)
    limit = None if limit is None else limit * top
    solved = solve(matrix, limit=limit, threads=threads)
    solved.check_optimal(rounding(matrix) * 8)
    assert math.isclose(solved.total, least(matrix, limit), rel_tol=1e-12, abs_tol=1e-12)


class Entries:
    """Integers of a sparse matrix; for `gm.assign`, which keeps them integers."""

    def __init__(self, shape, top, seed, share=0.3):
        rng = np.random.default_rng(seed)
        self.floats = thinned(rng.integers(-top, top, shape, endpoint=True), share, rng)
        rows, cols = np.isfinite(self.floats).nonzero()
        values = self.floats[rows, cols].astype(np.int64)
        self.matrix = csr_array((values, (rows, cols)), shape=shape)

    def assign(self, **wish):
        return gm.assign(self.matrix, algorithm="engine", backend="cpu", **wish)


@parametrize_pairwise(
    *("path", "limit"),
    path=PATHS,
    shape=SHAPES,
    top=[0, 1, 7, 1000, 10**9],
    limit=[None, 3, -1],
    turned=[False, True],
    indirect=["path"],
)
def test_integers_are_exact(shape, top, limit, turned):
    entries = Entries(shape, top, seed=top)
    if turned:
        entries.matrix = csr_array(entries.matrix.T)
    a = entries.assign(cost_limit=limit)
    gm.verify(entries.matrix, a)
    assert a.gap == 0
    assert a.row_dual.dtype == np.int64
    unmatched = min(shape) - a.size
    assert a.objective + (limit or 0) * unmatched == least(entries.floats, limit)


@EVERY_PATH
@pytest.mark.parametrize("top", [2**54, 2**55])
def test_integers_too_large_to_be_scaled(top):
    """There is room for prices of some times the largest cost only."""
    entries = Entries((40, 40), top, seed=1)
    weights = entries.matrix.data
    assert Units.of(weights, (weights.min(), weights.max()), None, 40).is_crude
    a = entries.assign()
    gm.verify(entries.matrix, a)
    assert a.gap == 0


@parametrize_pairwise(
    *("path", "cardinality"),
    path=PATHS,
    cardinality=["maximum", "any"],
    maximize=[False, True],
    shape=[(30, 30), (30, 50), (50, 30)],
    indirect=["path"],
)
def test_other_cardinalities(cardinality, maximize, shape):
    rng = np.random.default_rng(5)
    for share in (0.02, 0.05, 0.1):
        values = rng.integers(-20, 20, shape) * (rng.random(shape) < share)
        matrix = csr_array(values)
        wish = {"cardinality": cardinality, "maximize": maximize}
        a = gm.assign(matrix, algorithm="engine", backend="cpu", **wish)
        gm.verify(matrix, a)
        other = gm.assign(matrix, algorithm="auction", backend="cpu", **wish)
        assert (a.objective, a.gap) == (other.objective, 0)


@EVERY_PATH
@pytest.mark.parametrize(
    ("cost", "dtype", "limit"),
    pairwise_product({"cost": [0, 7, -3], "dtype": [int, float], "limit": [None, 2, 7]}),
)
def test_pairs_that_all_cost_the_same(cost, dtype, limit):
    """No price is needed, however many rows want the same column."""
    rng = np.random.default_rng(11)
    for shape in ((60, 60), (60, 70)):
        rows, cols = np.isfinite(thinned(np.zeros(shape), 0.05, rng)).nonzero()
        matrix = csr_array((np.full(rows.size, cost, dtype), (rows, cols)), shape=shape)
        a = gm.assign(matrix, algorithm="engine", backend="cpu", cost_limit=limit)
        gm.verify(matrix, a)
        assert a.proven
        if limit is None:
            assert (a.size, a.objective) == (60, 60 * cost)
            assert not a.col_dual.any()


@EVERY_PATH
def test_infeasible_costs_end():
    matrix = np.full((6, 6), np.inf)
    matrix[:, 0] = 1  # six rows want the same column
    matrix[0] = 2
    solved = solve(matrix)
    solved.check_matching()
    assert solved.ended
    assert solved.rows.size < 6
    with pytest.raises(gm.InfeasibleError):
        gm.assign(csr_array(([1, 1], ([0, 1], [0, 0])), shape=(2, 2)))


@EVERY_PATH
def test_a_row_without_entries():
    matrix = np.array([[1.0, 2.0, np.inf], [np.inf] * 3])
    assert solve(matrix).rows.size < 2
    solved = solve(matrix, limit=1.5)
    solved.check_optimal()
    assert solved.row_to_col.tolist() == [0, -1]
    empty = gm.assign(csr_array((3, 3)), cardinality="any")
    assert (empty.size, empty.objective) == (0, 0)


@EVERY_PATH
@given(
    seed=st.integers(0, 2**32),
    shape=st.tuples(st.integers(1, 9), st.integers(0, 5)),
    top=st.sampled_from([1, 4, 10**6]),
    limit=st.none() | st.integers(-2, 6),
    is_given=st.booleans(),
)
def test_any_small_problem(seed, shape, top, limit, is_given):
    rng = np.random.default_rng(seed)
    nrows, ncols = shape[0], shape[0] + shape[1]
    matrix = thinned(rng.integers(-top, top, (nrows, ncols), endpoint=True), rng.random(), rng)
    start = {}
    if is_given:
        count = rng.integers(0, nrows, endpoint=True)
        pairs = zip(rng.permutation(nrows)[:count], rng.permutation(ncols)[:count])
        start["mates"] = [pair for pair in pairs if np.isfinite(matrix[pair])]
        start["price"] = rng.integers(-top, top, ncols)
    solved = solve(matrix, limit=limit, **start)
    solved.check_optimal(1e-9)
    assert math.isclose(solved.total, least(matrix, limit), abs_tol=1e-9)


# -- what a run does -------------------------------------------------------------------------------


def steps(solved):
    return [phase["step"] for phase in solved.control.phases]


@EVERY_PATH
def test_one_thread_always_finds_the_same():
    rng = np.random.default_rng(2)
    matrix = thinned(rng.integers(0, 9, (300, 300)), 0.05, rng)
    one, other = (solve(matrix) for _ in range(2))
    assert np.array_equal(one.row_to_col, other.row_to_col)
    assert np.array_equal(one.col_dual, other.col_dual)


@EVERY_PATH
def test_the_trial_is_enough_if_rows_hardly_meet(path):
    """Two rows want the same column, which the one that is to lose it takes first."""
    matrix = np.full((100, 100), np.inf)
    np.fill_diagonal(matrix, 1.0)
    matrix[0, 1], matrix[1, 0], matrix[1, 2], matrix[2, 0] = 0.0, 0.5, 0.2, 0.9
    solved = solve(matrix)
    solved.check_optimal(1e-12)
    found = steps(solved)
    trial = ["bids", "trial"] if path == "bids" else ["trial"]
    assert found[: len(trial)] == trial
    assert found == trial or path == "auction"


def two_costs():
    return costs.make("goldberg_kennedy", 2048, 16, "two_cost", seed=1)


@EVERY_PATH
def test_rows_with_a_choice_are_matched_to_their_cheapest_columns():
    matrix = two_costs()
    a = gm.assign(matrix, algorithm="engine", backend="cpu")
    gm.verify(matrix, a)
    (trial,) = a.stats["trace"]
    assert (trial["step"], trial["matched"]) == ("trial", 2048)
    assert trial["scans"] < matrix.nnz / 10


@EVERY_PATH
def test_ties_are_searched_breadth_first(monkeypatch):
    """Depth first, the trial reads the entries 1.7 times."""
    tune(monkeypatch, sparse_tuning, choice=math.inf)
    tune(
        monkeypatch,
        sparse_tuning,
        trial=sparse_tuning.DEFAULT.trial._replace(
            looks_ahead=True, bids=0, unmatched=1, reads=math.inf
        ),
    )
    matrix = two_costs()
    (trial,) = gm.assign(matrix, algorithm="engine", backend="cpu").stats["trace"]
    assert 0 < trial["scans"] < 1.3 * matrix.nnz


@EVERY_PATH
def test_the_first_epsilon_is_that_of_what_rows_can_save(monkeypatch):
    """Bids by a quarter of the range, which is 20 orders of magnitude, read 1.7 times as much."""
    tune(monkeypatch, sparse_tuning, trial=sparse_tuning.DEFAULT.trial._replace(unmatched=-1))
    matrix = costs.make("kkt", 20_000, seed=1)
    trace = gm.assign(matrix, algorithm="engine", backend="cpu", threads=1).stats["trace"]
    assert sum(phase["scans"] for phase in trace) < 10 * matrix.nnz


@EVERY_PATH
def test_a_given_matching_is_kept_if_all_pairs_cost_the_same(monkeypatch):
    seen = []
    complete = sparse_engine.complete
    monkeypatch.setattr(
        sparse_engine,
        "complete",
        lambda task, *mates: seen.append(task.costs) or complete(task, *mates),
    )
    solved = solve(np.ones((3, 3)), mates=[(0, 2), (1, 0), (2, 1)])
    assert seen
    assert solved.row_to_col.tolist() == [2, 0, 1]


@EVERY_PATH
def test_most_pairs_of_the_auction_are_kept(path):
    """The exact paths are for few rows: those that wait, and those whose pair is not tight."""
    for matrix in (costs.spread(2000, seed=1), costs.mesh(11, 10, seed=1)):
        control = Trace()
        a = gm.assign(matrix, algorithm="engine", backend="cpu")
        trace = a.stats["trace"]
        if path == "auction":
            assert trace[-1]["step"] == "paths"
            assert trace[-1]["found"] <= 4
            assert trace[-1]["scans"] < 3 * matrix.nnz
        assert not control.phases


@EVERY_PATH
def test_the_first_phase_leaves_fewest_rows(monkeypatch):
    """Each later one may leave twice as many, up to a limit."""
    tune(
        monkeypatch,
        sparse_tuning,
        trial=sparse_tuning.DEFAULT.trial._replace(unmatched=-1),
        fewest=4,
        few=16,
    )
    allowed, left, hold_phase = [], [], Auction._hold_phase

    def spy(self, bidders, epsilon, few):
        outcome = hold_phase(self, bidders, epsilon, few)
        allowed.append(few)
        left.append(self.nrows - self.paths.matched)
        return outcome

    monkeypatch.setattr(Auction, "_hold_phase", spy)
    gm.assign(costs.mesh(11, 1000, seed=1), backend="cpu")
    assert allowed[:3] == [4, 8, 16]
    assert set(allowed[3:]) <= {16}
    assert all(few / 2 < count <= few for few, count in zip(allowed, left))


def test_a_tuning_that_is_passed_replaces_the_default():
    """Whatever the fixture has made the default."""
    matrix = np.random.default_rng(3).random((50, 50))
    alone = Tuning(trial=Effort(False, 0, 0, -1), small=-1, fewest=0, few=1, few_paths=0)
    assert "auction" in steps(solve(matrix, tuning=alone))
    assert "auction" not in steps(solve(matrix, tuning=Tuning()))


@EVERY_PATH
def test_a_war_of_prices_is_left_early(path, monkeypatch):
    """Two rows want one column, and the third is far away: no bid is too small to be repeated."""
    tune(monkeypatch, sparse_tuning, most=1, longest=1)
    control = Trace()
    solved = solve(np.random.default_rng(3).random((50, 50)), control=control)
    solved.check_optimal(1e-12)
    if path == "auction":
        read = [phase["scans"] for phase in control.phases if phase["step"] == "auction"]
        assert 0 < max(read) < 3 * 50 * 50


def phases_of(monkeypatch):
    """What the phases of auctions are held with, and how they end: a list that fills."""
    phases, hold_phase = [], Auction._hold_phase

    def spy(self, bidders, epsilon, few):
        outcome, left = hold_phase(self, bidders, epsilon, few)
        phases.append((float(epsilon), bidders.size, outcome, left.size))
        return outcome, left

    monkeypatch.setattr(Auction, "_hold_phase", spy)
    return phases


def test_after_a_war_the_next_epsilon_is_coarser(monkeypatch):
    """Only the rows that the war has left bid with it; then epsilon falls as always."""
    phases = phases_of(monkeypatch)
    matrix = adversarial.make("far_clusters", 2000, seed=2)
    gm.verify(matrix, gm.assign(matrix, threads=1))
    wars = [k for k, (*_, outcome, left) in enumerate(phases) if outcome == SPENT and left > 16]
    assert wars
    for k in wars:
        (before, _, _, left), (epsilon, bidders, _, _) = phases[k : k + 2]
        assert epsilon == min(256 * before, float(np.ptp(matrix.data)))
        assert bidders == left
    last = [epsilon for epsilon, *_ in phases[wars[-1] + 1 :]]
    assert last == sorted(last, reverse=True)


def test_wars_at_the_same_epsilon_take_longer_each_time(monkeypatch):
    """The first one is allowed one reading of all entries, and each later one twice as many.

    In the fifth phase no coarser epsilon may follow, so that joint searches end it.
    """
    tune(monkeypatch, sparse_tuning, longest=1, trusted=4, most=4, coarser=1)
    phases = phases_of(monkeypatch)
    matrix = adversarial.make("far_clusters", 2000, seed=2)
    a = gm.assign(matrix, threads=1)
    gm.verify(matrix, a)
    outcomes = [outcome for *_, outcome, _ in phases]
    assert outcomes[:4] == [SPENT] * 4
    assert outcomes[4:] == [DONE] * len(outcomes[4:])
    read = [one["scans"] / matrix.nnz for one in a.stats["trace"] if one["step"] == "auction"]
    assert all(most < count < 4 * most for count, most in zip(read, (1, 1, 2, 4)))


def test_epsilon_falls_on_while_many_pairs_are_slack(monkeypatch):
    """Costs of many magnitudes: at an epsilon of their middle, hardly any row must bid."""
    phases = phases_of(monkeypatch)
    matrix = adversarial.make("log_normal", 2000, seed=1)
    a = gm.assign(matrix, threads=1)
    gm.verify(matrix, a)
    (paths,) = (phase for phase in a.stats["trace"] if phase["step"] == "paths")
    assert len(phases) > 2
    assert paths["found"] < 2000 / 64


def test_rows_that_stay_unmatched_bid_once(monkeypatch):
    """Prices fall, so what was too dear for a row stays so: later phases are for parted rows."""
    phases = phases_of(monkeypatch)
    tune(monkeypatch, sparse_tuning, trial_with_spare=UNTRIED)
    matrix = adversarial.make("wide_integers", 2000, high=1000, seed=1)
    a = gm.assign(matrix, cardinality="any", cost_limit=150, threads=1)
    gm.verify(matrix, a)
    assert len(phases) > 2
    assert a.size < 1500
    assert all(bidders < 500 for _, bidders, *_ in phases[2:])


READINGS = {  # of all entries: twice the most of seeds 1 to 4
    "far_clusters": 214,
    "nearest_matched": 112,
    "log_normal": 78,
    "decades": 84,
    "few_dear": 18,
    "wide_integers": 16,
}


@pytest.mark.parametrize("family", READINGS)
def test_the_entries_read_on_costs_that_hurt(family):
    matrix = adversarial.make(family, 3000, seed=3)
    a = gm.assign(matrix, threads=1)
    gm.verify(matrix, a)
    assert sum(phase.get("scans", 0) for phase in a.stats["trace"]) < READINGS[family] * matrix.nnz


@pytest.mark.parametrize("options", [{}, {"cardinality": "any", "cost_limit": 2**43}])
def test_integers_too_large_for_steps_have_an_auction(options, monkeypatch):
    phases = phases_of(monkeypatch)
    matrix = adversarial.make("wide_integers", 20_000, seed=1)
    low, high = int(matrix.data.min()), int(matrix.data.max())
    assert Units.of(matrix.data, (low, high), None, 20_000).is_crude
    a = gm.assign(matrix, threads=1, **options)
    gm.verify(matrix, a)
    assert phases


@pytest.mark.parametrize("safe", [0, 2**20])
def test_an_auction_whose_crude_prices_come_near_an_overflow_is_undone(safe, monkeypatch):
    """Paths begin from the prices before it then."""
    monkeypatch.setattr(sparse_engine, "SAFE", safe)
    matrix = adversarial.make("wide_integers", 500, high=2**50, seed=1)
    a = gm.assign(matrix, threads=1)
    gm.verify(matrix, a)
    assert a.stats["trace"][-1]["step"] == "paths"


@EVERY_PATH
def test_stops_at_every_tick_leave_a_matching_and_a_bound(monkeypatch):
    tune(monkeypatch, sparse_tuning, budget=40)
    monkeypatch.setattr(sparse_search, "BUDGET", 40)
    rng = np.random.default_rng(4)
    for shape, limit in (((30, 30), None), ((30, 40), None), ((30, 40), 0.2)):
        matrix = thinned(rng.random(shape), 0.3, rng)
        best, stops = solve(matrix, limit=limit), 0
        for tick in range(1, len(best.control.ticks)):
            solved = solve(matrix, limit=limit, control=Trace(stop_at=tick))
            stops += not solved.ended
            solved.check_matching()
            solved.check_duals(1e-12)
            assert shape == (30, 30) or not solved.col_dual[solved.col_to_row < 0].any()
            assert solved.bound <= best.bound + 1e-9
        assert stops > 5
        assert stops >= len(best.control.ticks) - 4


@EVERY_PATH
def test_given_pairs_without_prices_are_not_begun_from():
    rng = np.random.default_rng(5)
    matrix = thinned(rng.integers(0, 4, (40, 40)), 0.2, rng)
    cold = solve(matrix)
    given = solve(matrix, mates=[(row, row) for row in range(0, 40, 2)])
    assert np.array_equal(given.row_to_col, cold.row_to_col)
    assert np.array_equal(given.col_dual, cold.col_dual)


@EVERY_PATH
def test_given_prices_leave_little_to_do(path):
    matrix = costs.mesh(11, 1000, seed=3)
    first = gm.assign(matrix, algorithm="engine", backend="cpu")
    again = gm.assign(matrix, algorithm="engine", backend="cpu", initial=first)
    assert again.objective == first.objective
    assert [phase["found"] for phase in again.stats["trace"]] == [0]
    changed = matrix.copy()
    changed.data[::500] += 7
    warm = gm.assign(changed, algorithm="engine", backend="cpu", initial=first)
    cold = gm.assign(changed, algorithm="engine", backend="cpu")
    gm.verify(changed, warm)
    assert warm.objective == cold.objective
    assert sum(p["scans"] for p in warm.stats["trace"]) < 3 * matrix.nnz


@EVERY_PATH
def test_dense_costs_are_served(path):
    matrix = costs.uniform_float(60, seed=1)
    a = gm.assign(matrix, algorithm="engine", backend="cpu")
    gm.verify(matrix, a)


# -- units -----------------------------------------------------------------------------------------


def test_integers_lose_their_common_divisor():
    units = Units.of(np.array([100, 10**8]), (100, 10**8), None, 1000)
    assert (units.origin, units.divisor, units.scale) == (100, 10**8 - 100, FINE)
    assert Units.of(np.array([4, 10, 16]), (4, 16), 7, 9)[:2] == (4, 3)
    assert Units.of(np.array([4, 10, 16]), (4, 16), 6, 9)[:2] == (4, 2)


def test_the_divisor_is_that_of_all_costs():
    weights = np.full(5000, 8)
    weights[-1] = 11
    assert Units.of(weights, (8, 11), None, 9)[:2] == (8, 3)


def test_costs_are_divided_block_by_block():
    weights = 17 + 12 * np.arange(2 * BLOCK + 3)  # without its origin, the limit is too many steps
    weights[-2] = 17 + 18
    units = Units.of(weights, (17, int(weights.max())), None, 9)
    assert units[:2] == (17, 6)
    costs, price, limit = units.scaled(weights, np.array([-60]), 17 + 36)
    np.testing.assert_array_equal(costs, (weights - 17) // 6 * units.scale)
    assert (price, limit) == (-10 * units.scale, 6 * units.scale)


# -- bids ------------------------------------------------------------------------------------------


def held(matrix, epsilon, few=0, limit=None, budget=10**9, is_slack=None):
    """One queue's auction on a full matrix of integers: mates, prices and how it ended."""
    is_slack = np.ones(len(matrix), bool) if is_slack is None else is_slack
    nrows, ncols = matrix.shape
    indptr = np.arange(0, matrix.size + 1, ncols)
    indices = np.tile(np.arange(ncols, dtype=np.int32), nrows)
    price = np.zeros(ncols, np.int64)
    mates = np.full(nrows, -1, np.int32), np.full(ncols, -1, np.int32)
    queue = Queue(np.arange(nrows, dtype=np.int32))
    far, floor = np.iinfo(np.int64).max, -(10**9)
    entries = indptr, indices, matrix.ravel()
    outcome = bidding.hold(
        entries, (np.zeros(nrows, np.int64), price, *mates, is_slack), queue.ring,
        epsilon, 100, 0 if limit is None else limit, limit is not None, far, floor, few, budget,
    )  # fmt: skip
    return entries, price, mates, queue, outcome


@pytest.mark.parametrize("epsilon", [1, 3, 50])
@pytest.mark.parametrize("limit", [None, 40])
def test_bids_are_within_epsilon(epsilon, limit):
    matrix = np.random.default_rng(6).integers(0, 100, (40, 45))
    _, price, (row_to_col, col_to_row), queue, outcome = held(matrix, epsilon, limit=limit)
    assert outcome == DONE
    assert queue.waiting.size == 0
    rows = np.flatnonzero(row_to_col >= 0)
    assert np.array_equal(col_to_row[row_to_col[rows]], rows)
    reduced = matrix - price
    cheapest = reduced.min(axis=1) if limit is None else np.minimum(reduced.min(axis=1), limit)
    assert (reduced[rows, row_to_col[rows]] <= cheapest[rows] + epsilon).all()
    assert (price[col_to_row < 0] == 0).all()
    if limit is None:
        assert rows.size == 40
    else:
        assert (cheapest[row_to_col < 0] == limit).all()


def test_a_queue_ends_when_few_wait_or_the_budget_is_spent():
    matrix = np.random.default_rng(7).integers(0, 10, (64, 64))
    for few in (1, 5, 20):
        *_, queue, outcome = held(matrix, 1, few=few)
        assert (outcome, queue.waiting.size) == (DONE, few)
    _, _, (row_to_col, _), queue, outcome = held(matrix, 1, budget=500)
    assert outcome == SPENT
    assert np.array_equal(np.sort(queue.waiting), np.flatnonzero(row_to_col < 0))


def test_slack_pairs_are_parted():
    matrix = np.random.default_rng(8).integers(0, 100, (40, 40))
    is_slack = np.ones(40, bool)
    entries, price, (row_to_col, col_to_row), *_ = held(matrix, 9, is_slack=is_slack)
    reduced = matrix - price
    slack = reduced[np.arange(40), row_to_col] - reduced.min(axis=1)
    assert 0 < (slack > 0).sum() < is_slack.sum() < 40  # a bid above epsilon leaves the pair tight
    row_dual = reduced[np.arange(40), row_to_col]
    for epsilon in (9, 3, 0):
        bidding.drop_slack(
            entries, (row_dual, price, row_to_col, col_to_row, is_slack),
            0, False, np.iinfo(np.int64).max, epsilon, 0.0, 0, 40,
        )  # fmt: skip
        assert np.array_equal(row_to_col < 0, slack > epsilon)
        is_kept = row_to_col >= 0
        assert np.array_equal(row_dual - reduced.min(axis=1), np.where(is_kept, slack, 0))
        assert np.array_equal(is_slack, slack > 0)
        assert (col_to_row >= 0).sum() == (row_to_col >= 0).sum()


def in_turns(matrix, epsilon, few=0, budget=10**9):
    """Bids of rows and columns on a sparse square of integers: the prices, mates and outcome."""
    by_rows, by_cols = csr_array(matrix), csr_array(matrix.T)
    number = np.iinfo(np.int64)
    row_dual = np.where(matrix > 0, matrix, number.max).min(axis=1)
    price = np.zeros(len(matrix), np.int64)
    mates = np.full((2, len(matrix)), -1, np.int32)
    queues = [Queue(np.arange(len(matrix))) for _ in mates]
    entries = [(side.indptr, side.indices, side.data) for side in (by_rows, by_cols)]
    left = np.array([len(matrix)])
    outcome, slacks = SPENT, np.zeros((2, len(matrix)), bool)
    while outcome == SPENT:
        for queue in queues:
            queue.state[SCANS] = 0
        outcome = bidding.alternate(
            *entries, (row_dual, price, *mates, slacks[0]),
            (price, row_dual, *mates[::-1], slacks[1]), *(queue.ring for queue in queues), left,
            epsilon, 100, number.max, -(10**6), few, budget,
        )  # fmt: skip
    return row_dual, price, mates, slacks, outcome


@pytest.mark.parametrize("epsilon", [1, 3, 50])
@pytest.mark.parametrize("budget", [1, 10**9])
def test_bids_in_turns_are_within_epsilon(epsilon, budget):
    rng = np.random.default_rng(3)
    matrix = rng.integers(1, 100, (60, 60)) * (rng.random((60, 60)) < 0.2)
    np.fill_diagonal(matrix, 100)
    row_dual, price, (row_to_col, col_to_row), (is_slack, is_slack_col), outcome = in_turns(
        matrix, epsilon, budget=budget
    )
    assert outcome == DONE
    assert np.array_equal(col_to_row[row_to_col], np.arange(60))
    over = np.where(matrix > 0, row_dual[:, None] + price - matrix, -1)
    assert over.max() <= epsilon
    assert (over[np.arange(60), row_to_col] == 0).all()
    assert is_slack_col.any()
    assert (over > 0).any()
    assert (is_slack[:, None] | is_slack_col)[over > 0].all()


def test_columns_are_parted_as_rows_are():
    """Whoever has bidden epsilon too high gives way; then none is more than the next too high."""
    matrix = np.random.default_rng(5).integers(1, 100, (60, 60))
    row_dual, price, (row_to_col, col_to_row), slacks, _ = in_turns(matrix, 50)
    for own, others, mate, mate_of_other, is_slack, costs_of_side in (
        (price, row_dual, col_to_row, row_to_col, slacks[1], matrix.T),
        (row_dual, price, row_to_col, col_to_row, slacks[0], matrix),
    ):
        entries = csr_array(costs_of_side)
        bidding.drop_slack(
            (entries.indptr, entries.indices, entries.data),
            (own, others, mate, mate_of_other, is_slack),
            0, False, np.iinfo(np.int64).max, 6, 0.0, 0, 60,
        )  # fmt: skip
        assert 0 < np.count_nonzero(mate < 0) < 60
        assert np.array_equal(np.flatnonzero(mate_of_other >= 0), np.sort(mate[mate >= 0]))
    assert (row_dual[:, None] + price - matrix).max() <= 6


def test_bids_in_turns_end_when_few_are_left_or_prices_fall_for_ever():
    matrix = np.random.default_rng(4).integers(1, 100, (30, 30))
    *_, mates, _, outcome = in_turns(matrix, 1, few=7)
    assert outcome == DONE
    assert [np.count_nonzero(mate < 0) for mate in mates] == [7, 7]
    matrix[:20, 19:] = 0  # 20 rows for 19 columns
    *_, outcome = in_turns(matrix, 1)
    assert outcome == LOW
    matrix[5] = 0
    *_, outcome = in_turns(matrix, 1)
    assert outcome == LOW


@EVERY_PATH
def test_threads_share_the_bids(monkeypatch):
    """Columns change hands between threads, and every row ends within epsilon."""
    matrix = costs.sparse_uniform(20_000, 24_000, 8.0, 50, seed=9)
    for seed in range(3):
        a = gm.assign(matrix, algorithm="engine", backend="cpu", threads=4, seed=seed)
        gm.verify(matrix, a)
        assert a.gap == 0


@EVERY_PATH
def test_rows_bid_while_another_thread_transposes(monkeypatch):
    """Bids of so many entries are held beside it, by two threads only; the optimum is the same."""
    matrix = costs.make("mesh", 14, seed=3)
    budgets = []
    hold = Auction._hold

    def spy(self, queues, epsilon, few, budget, worker):
        budgets.append(budget)
        return hold(self, queues, epsilon, few, budget, worker)

    monkeypatch.setattr(Auction, "_hold", spy)
    optima = []
    for threads in (2, 1):
        budgets.clear()
        a = gm.assign(matrix, algorithm="engine", backend="cpu", threads=threads)
        gm.verify(matrix, a)
        optima.append(a.objective)
        assert budgets.count(matrix.nnz) == threads - 1
    assert optima[0] == optima[1]


@EVERY_PATH
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_threads_bid_in_turns_at_once(monkeypatch, dtype):
    """Each has rows and columns of its own; the optimum is that of one thread."""
    monkeypatch.setattr("gpumatch.cpu.numba_tools.workers._EDGES_EACH", 1)
    tune(monkeypatch, sparse_tuning, each=1)
    workers, alternate = set(), Auction._alternate

    def spy(self, *given):
        workers.add(given[-1])
        return alternate(self, *given)

    monkeypatch.setattr(Auction, "_alternate", spy)
    for seed in range(5):
        matrix = costs.make("mesh", 10, 10 ** (1 + seed), seed=seed).astype(dtype)
        workers.clear()
        several = gm.assign(matrix, algorithm="engine", backend="cpu", threads=4)
        gm.verify(matrix, several)
        assert several.objective == gm.assign(matrix, backend="cpu", threads=1).objective
    assert workers in (set(), set(range(4)))


@EVERY_PATH
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_pairs_that_no_mark_tells_of_are_parted_before_the_paths(monkeypatch, dtype):
    """Prices may have risen while a thread did not look."""
    raised, hold = [], Auction.hold

    def spy(self):
        hold(self)
        self.paths.price[::7] += self.number(self.spread / 50)
        raised.append(self.paths.price[::7].size)

    monkeypatch.setattr(Auction, "hold", spy)
    matrix = costs.make("mesh", 8, 1000, seed=1).astype(dtype)
    a = gm.assign(matrix, algorithm="engine", backend="cpu")
    gm.verify(matrix, a)
    assert a.proven
    assert raised in ([], [37])


@pytest.mark.parametrize("path", ["bids"], indirect=True)
def test_threads_that_search_at_once_find_shortest_paths(path, monkeypatch):
    """Whatever they put off because another has the column; one thread ends what is left."""
    monkeypatch.setattr("gpumatch.cpu.numba_tools.workers._EDGES_EACH", 1)
    monkeypatch.setattr(sparse_paths, "EACH", 1)
    tune(
        monkeypatch,
        sparse_tuning,
        trial=sparse_tuning.DEFAULT.trial._replace(
            looks_ahead=True, bids=0, unmatched=1, reads=math.inf
        ),
    )
    rounds = []
    at_once = SparsePaths._augment_at_once

    def spy(paths, free, budget):
        before = free.size - paths.spot[NEXT]
        scans = int(paths.spot[SCANS])
        outcome = at_once(paths, free, budget)
        assert paths.spot[SCANS] - scans >= before - (free.size - paths.spot[NEXT])
        rounds.append(before - (free.size - paths.spot[NEXT]))
        return outcome

    monkeypatch.setattr(SparsePaths, "_augment_at_once", spy)
    for family, size in (("kkt", 3000), ("spread", 300), ("mesh", 8)):
        matrix = costs.make(family, size, seed=1)
        for cost_limit in (None, float(np.median(matrix.data))):
            run = partial(gm.assign, matrix, cost_limit=cost_limit, backend="cpu")
            several, one = run(threads=4), run(threads=1)
            gm.verify(matrix, several)
            assert math.isclose(several.objective, one.objective, rel_tol=1e-12)
    assert sum(rounds) > 300


@EVERY_PATH
def test_the_largest_assignment_needs_no_matching_if_the_trial_has_all_rows(path):
    """Else one tells what the trial's pairs leave in doubt; nothing is solved twice."""
    rng = np.random.default_rng(1)
    matrix = rng.random((300, 300)) + 1
    kept = rng.random((300, 300)) < 0.02
    np.fill_diagonal(kept, True)
    np.fill_diagonal(matrix, 1e-3)
    full = csr_array(matrix * kept)
    assignment = gm.assign(full, cardinality="maximum", backend="cpu")
    gm.verify(full, assignment)
    steps = [phase.get("step") for phase in assignment.stats["trace"]]
    assert assignment.size == 300
    if path in ("trial", "bids"):
        assert steps == ["trial"]
    kept[:, :3] = False
    kept[:5] = False
    lacking = csr_array(matrix * kept)
    assignment = gm.assign(lacking, cardinality="maximum", backend="cpu")
    gm.verify(lacking, assignment)
    assert assignment.size == 295
    assert math.isclose(
        assignment.objective, gm.assign(lacking, cardinality="maximum", algorithm="auction",
        backend="cpu").objective, rel_tol=1e-6
    )  # fmt: skip


WAYS = {
    "all have columns": (300, 2**17, []),
    "some have none": (3000, 2**17, ["row by row"]),
    "many entries": (300, 0, ["row by row"]),
    "many entries, some have none": (3000, 0, ["row by row", "forests"]),
}


@EVERY_PATH
@pytest.mark.parametrize(("rows", "middle", "steps"), WAYS.values(), ids=WAYS)
def test_short_searches_tell_whether_all_rows_can_be_matched(monkeypatch, rows, middle, steps):
    """Phases if columns abound, searches row by row if some rows have no path, then forests."""
    tune(
        monkeypatch,
        sparse_tuning,
        trial=sparse_tuning.DEFAULT.trial._replace(looks_ahead=True, bids=0, unmatched=-1),
        trial_with_spare=UNTRIED,
    )
    tune(monkeypatch, sparse_tuning, small=0, middle=middle)
    row_by_row, forests, seen = match_rows, feasibility.complete_matching, []
    monkeypatch.setattr(
        feasibility, "match_rows", lambda *args: seen.append("row by row") or row_by_row(*args)
    )
    monkeypatch.setattr(
        feasibility, "complete_matching", lambda *args: seen.append("forests") or forests(*args)
    )
    matrix = costs.make("sparse_uniform", rows, 3000, 4.0, 1000, seed=1)
    a = gm.assign(matrix, cardinality="maximum")
    gm.verify(matrix, a)
    assert seen == steps


def test_a_phase_whose_rows_hardly_get_fewer_is_a_war_early(monkeypatch):
    phases = phases_of(monkeypatch)
    matrix = adversarial.make("far_clusters", 3000, seed=2)
    a = gm.assign(matrix, threads=1)
    first = next(phase for phase in a.stats["trace"] if phase["step"] == "auction")
    assert phases[0][2] == SPENT
    assert 16 < first["scans"] / matrix.nnz < 40


def test_a_phase_that_will_soon_be_done_is_no_war(monkeypatch):
    """Its last rows do not count: they get fewer faster."""
    tune(monkeypatch, sparse_tuning, trusted=4)
    phases = phases_of(monkeypatch)
    matrix = csr_array(costs.make("nearest", 3000, seed=1))
    a = gm.assign(matrix, cardinality="maximum", threads=1)
    gm.verify(matrix, a)
    assert phases
    assert {outcome for *_, outcome, _ in phases} == {DONE}


def test_a_few_paths_are_better_than_an_auction(monkeypatch):
    """Of few values many are tied: bids of the last rows would change hands for long."""
    phases = phases_of(monkeypatch)
    matrix = adversarial.make("nearest_matched", 1500, k=10, dimension=4, seed=1)
    matrix.data = np.ceil(8 * matrix.data / matrix.data.max())
    a = gm.assign(matrix, threads=1)
    gm.verify(matrix, a)
    assert phases == []
    assert sum(phase["scans"] for phase in a.stats["trace"]) < 16 * matrix.nnz


def test_ties_do_not_let_epsilon_fall_on(monkeypatch):
    """Tied pairs are slack at any epsilon."""
    phases = phases_of(monkeypatch)
    matrix = adversarial.make("wide_integers", 2000, degree=22, high=9, seed=1)
    matrix.data = matrix.data.astype(np.float64)
    gm.verify(matrix, gm.assign(matrix, threads=1))
    assert phases
    assert all(epsilon >= 2.0**-20 * 8 / 16**3 for epsilon, *_ in phases)


def test_columns_that_bid_in_vain_end_the_phase(monkeypatch):
    """Else the last rows would read all entries 128 times."""
    tune(
        monkeypatch,
        sparse_tuning,
        few_paths=0,
        fewest=0,
        small=0,
        trial=SHORT._replace(unmatched=-1),
    )
    matrix = adversarial.make("nearest_matched", 1500, k=10, dimension=4, seed=1)
    matrix.data = np.ceil(8 * matrix.data / matrix.data.max())
    a = gm.assign(matrix, threads=1)
    gm.verify(matrix, a)
    read = [one["scans"] / matrix.nnz for one in a.stats["trace"] if one["step"] == "auction"]
    assert read
    assert max(read) < 60
