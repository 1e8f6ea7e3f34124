"""The auction of the engine: its phases, how epsilon falls and rises, wars of prices, threads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.cpu.assignment.sparse import engine as sparse_engine
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.cpu.assignment.sparse.auction import Auction
from gpumatch.cpu.assignment.sparse.bidders import Bidders
from gpumatch.cpu.assignment.sparse.joint_search import JointSearch
from gpumatch.cpu.assignment.sparse.tuning import SHORT
from gpumatch.cpu.searches.state import DONE, SPENT
from gpumatch.numeric.auction_schedule import FallingEpsilon
from gpumatch.numeric.multiples import Units
from graphs import adversarial, costs
from tests.cpu.assignment.solved import Trace
from tests.cpu.assignment.sparse.forced import (
    EVERY_PATH,
    UNTRIED,
    solve,
)
from tests.cpu.assignment.tuned import tune
from tests.cpu.interleaved import one_by_one

pytestmark = pytest.mark.usefixtures("path", "no_rival")


@EVERY_PATH
def test_the_first_epsilon_is_that_of_what_rows_can_save(monkeypatch):
    """Bids by a quarter of the range, which is 20 orders of magnitude, read 1.7 times as much."""
    tune(monkeypatch, sparse_tuning, trial=sparse_tuning.DEFAULT.trial._replace(unmatched=-1))
    matrix = costs.make("kkt", 20_000, seed=1)
    trace = gm.assign(matrix, algorithm="engine", backend="cpu", threads=1).stats["trace"]
    assert sum(phase["scans"] for phase in trace) < 10 * matrix.nnz


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
        spread = float(np.ptp(matrix.data))
        halfway = math.sqrt(before) * math.sqrt(spread)
        assert epsilon == min(max(16 * before, halfway), spread)
        assert bidders == left
    last = [epsilon for epsilon, *_ in phases[wars[-1] + 1 :]]
    assert last == sorted(last, reverse=True)


@pytest.mark.parametrize("quantum", [5e-324, 1e-250])
def test_floats_that_differ_by_too_little_have_no_auction(quantum):
    """One divided by epsilon would be infinite."""
    matrix = adversarial.make("far_clusters", 1000, seed=2)
    matrix.data = np.rint(matrix.data)
    scaled = matrix.copy()
    scaled.data *= quantum
    a = gm.assign(scaled, threads=1)
    gm.verify(scaled, a)
    steps = {phase.get("step") for phase in a.stats["trace"]}
    assert ("auction" in steps) == (quantum == 1e-250)
    expected = gm.assign(matrix, threads=1).objective
    assert a.objective / quantum == pytest.approx(expected, rel=1e-12)


def test_wars_at_the_same_epsilon_take_longer_each_time(monkeypatch):
    """The first one is allowed one reading of all entries, and each later one twice as many.

    In the fifth phase no coarser epsilon may follow, so that joint searches end it.
    """
    tune(monkeypatch, sparse_tuning, longest=1, trusted=4, most=4, coarser=1)
    monkeypatch.setattr(FallingEpsilon, "_halfway", lambda epsilon: epsilon.now)
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


@pytest.mark.parametrize(("n", "sigma", "seed"), [(3000, 14.0, 1), (20_000, 12.0, 0)])
def test_prices_stay_near_what_pairs_cost(n, sigma, seed):
    """Columns of one entry do not bid the range of the costs, beside which others lose digits.

    So exact paths need not close a coarse gap, which reads the entries 44 and 34 times in all, and
    leaves the second problem unproven.
    """
    matrix = adversarial.make("log_normal", n, sigma=sigma, seed=seed)
    a = gm.assign(matrix, threads=1)
    assert a.proven
    assert [phase["step"] for phase in a.stats["trace"]].count("paths") == 1
    assert sum(phase["scans"] for phase in a.stats["trace"]) < 20 * matrix.nnz


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
    "far_clusters": 110,
    "nearest_matched": 72,
    "log_normal": 28,
    "decades": 23,
    "few_dear": 17,
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
    tune(monkeypatch, sparse_tuning, shared_rows=0)
    matrix = costs.make("mesh", 14, seed=3)
    budgets = []
    hold = Bidders._hold

    def spy(self, queues, epsilon, few, budget, worker):
        budgets.append(budget)
        return hold(self, queues, epsilon, few, budget, worker)

    monkeypatch.setattr(Bidders, "_hold", spy)
    optima = []
    for threads in (2, 1):
        budgets.clear()
        a = gm.assign(matrix, algorithm="engine", backend="cpu", threads=threads)
        gm.verify(matrix, a)
        optima.append(a.objective)
        assert budgets.count(matrix.nnz) == threads - 1
    assert optima[0] == optima[1]


def workers_that_alternate(monkeypatch):
    """The workers that let rows and columns bid in turns: a set that fills."""
    workers, alternate = set(), Bidders._alternate

    def spy(self, *given):
        workers.add(given[-1])
        return alternate(self, *given)

    monkeypatch.setattr(Bidders, "_alternate", spy)
    return workers


@EVERY_PATH
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_threads_bid_in_turns_at_once(monkeypatch, dtype):
    """Each has rows and columns of its own; the optimum is that of one thread."""
    monkeypatch.setattr("gpumatch.cpu.numba_tools.workers._EDGES_EACH", 1)
    tune(monkeypatch, sparse_tuning, each=1, each_in_turns=1)
    workers = workers_that_alternate(monkeypatch)
    for seed in range(5):
        matrix = costs.make("mesh", 10, 10 ** (1 + seed), seed=seed).astype(dtype)
        workers.clear()
        several = gm.assign(matrix, algorithm="engine", backend="cpu", threads=4)
        gm.verify(matrix, several)
        assert several.objective == gm.assign(matrix, backend="cpu", threads=1).objective
    assert workers in (set(), set(range(4)))


def test_few_rows_bid_in_turns_on_one_thread(monkeypatch):
    """Several threads undo each other's bids, and so read several times as much."""
    one_by_one(monkeypatch)
    workers = workers_that_alternate(monkeypatch)
    matrix = adversarial.make("decades", 5000, seed=1)
    reads = {}
    for threads in (1, 2):
        trace = gm.assign(matrix, backend="cpu", threads=threads).stats["trace"]
        reads[threads] = sum(phase["scans"] for phase in trace)
    assert workers == {0}
    assert reads[2] < 1.4 * reads[1]


@pytest.mark.parametrize(("rows", "threads"), [(2**16, 1), (0, 2)], ids=["few rows", "any"])
def test_threads_are_for_matrices_of_many_rows(monkeypatch, rows, threads):
    """Its entries would suffice for two threads."""
    tune(monkeypatch, sparse_tuning, shared_rows=rows)
    used, hold = [], Auction.hold
    monkeypatch.setattr(
        Auction, "hold", lambda self: used.append(self.paths.workers.threads) or hold(self)
    )
    gm.assign(adversarial.make("decades", 8000, seed=1), backend="cpu", threads=2)
    assert used == [threads]


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


def test_a_phase_whose_rows_hardly_get_fewer_is_a_war_early(monkeypatch):
    phases = phases_of(monkeypatch)
    matrix = adversarial.make("far_clusters", 3000, seed=2)
    a = gm.assign(matrix, threads=1)
    first = next(phase for phase in a.stats["trace"] if phase["step"] == "auction")
    assert phases[0][2] == SPENT
    assert 4 < first["scans"] / matrix.nnz < 12


def test_a_war_is_seen_as_early_with_a_thread_that_transposes(monkeypatch):
    """What another thread has bid in the meantime counts."""
    one_by_one(monkeypatch)
    matrix, reads = adversarial.make("far_clusters", 3000, seed=2), []
    for threads in (1, 2):
        trace = gm.assign(matrix, threads=threads, backend="cpu").stats["trace"]
        reads.append(next(phase["scans"] for phase in trace if phase["step"] == "auction"))
    assert reads[1] < 1.1 * reads[0]


@pytest.mark.parametrize("pace", [1, 2, 4])
@pytest.mark.parametrize(
    ("waiting", "is_steady"),
    [
        ([1265, 963, 718, 545], True),  # the same share each time
        ([2002, 1997, 1952, 1626], True),  # a greater one
        ([1437, 829, 655, 583], False),
        ([3000, 3000, 3000], False),
        ([504, 504, 503], False),  # greater, but little
        ([1000, 1], False),  # nothing to compare it with
        ([1000, 500, 0], True),
        (np.geomspace(1000, 1, 12), False),  # it has read enough to be trusted
    ],
)
def test_a_phase_that_is_as_fast_as_before_is_not_judged(waiting, is_steady, pace):
    """The rate counts, however much a phase reads between two returns to Python."""
    auction = object.__new__(Auction)
    auction.tuning = sparse_tuning.DEFAULT
    steps = np.arange(0, len(waiting) - 1 + 1e-9, 1 / pace)
    counts = np.interp(steps, np.arange(len(waiting)), waiting)
    progress = [(2.0 * step, round(rows)) for step, rows in zip(steps.tolist(), counts.tolist())]
    assert auction._is_steady(progress) == is_steady


def test_two_searches_begin_the_phase_after_a_war(monkeypatch):
    """They are lenient, with the epsilon of that phase; no search ends the war."""
    phases, epsilons, search = phases_of(monkeypatch), [], JointSearch.round

    def spy(self, epsilon, beat):
        if not self.is_exact:
            epsilons.append((len(phases), float(epsilon), self.strict))
        return search(self, epsilon, beat)

    monkeypatch.setattr(JointSearch, "round", spy)
    matrix = adversarial.make("far_clusters", 3000, seed=2)
    gm.verify(matrix, gm.assign(matrix, threads=1))
    wars = [k for k, (*_, outcome, left) in enumerate(phases) if outcome == SPENT and left > 16]
    assert wars
    assert not any(number == 0 for number, *_ in epsilons)
    for k in wars:
        assert epsilons.count((k + 1, phases[k + 1][0], 0.0)) >= 2


def test_columns_bid_early_if_rows_are_slow():
    """The last rows of the first phase would read the entries of `decades` 23 more times."""
    matrix = adversarial.make("decades", 5000, seed=1)
    a = gm.assign(matrix, threads=1)
    gm.verify(matrix, a)
    assert sum(phase["scans"] for phase in a.stats["trace"]) < 12 * matrix.nnz


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
