"""Rounds of joint searches: what holds after each, when strict ones end, and infeasible costs."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import gpumatch as gm
from bench.adversary import Problem
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.cpu.assignment.sparse.auction import Auction
from gpumatch.cpu.assignment.sparse.joint_search import JointSearch
from gpumatch.cpu.assignment.sparse.paths import SparsePaths
from gpumatch.cpu.assignment.sparse.tuning import SHORT
from gpumatch.cpu.searches import sparse as sparse_search
from graphs import adversarial, costs
from tests.cpu.assignment.solved import least, problem
from tests.cpu.assignment.tuned import tune

INTEGER, FLOAT = np.int64, np.float64
NUMBERS = pytest.mark.parametrize("number", [INTEGER, FLOAT])


class Drawn:
    """A square matrix with a full assignment, inf where nothing is allowed, and prices of 0.

    Some rows are matched to columns whose slack is at least -epsilon.
    """

    def __init__(self, seed, number, epsilon, full=True):
        rng = np.random.default_rng(seed)
        n = self.n = int(rng.integers(2, 30))
        matrix = rng.integers(0, rng.choice([4, 40, 400]), (n, n)).astype(number)
        if number is FLOAT:
            matrix += rng.random((n, n))
        self.is_stored = rng.random((n, n)) < rng.choice([0.1, 0.3])
        if full:
            self.is_stored[np.arange(n), rng.permutation(n)] = True
        self.is_stored[~self.is_stored.any(axis=1), 0] = True
        self.matrix = np.where(self.is_stored, matrix, math.inf)
        self.costs = problem(self.matrix, "sparse")
        indptr = np.append(0, np.cumsum(self.is_stored.sum(axis=1))).astype(np.int32)
        indices = self.is_stored.nonzero()[1].astype(np.int32)
        mates = np.full((2, n), -1, np.int32)
        price = np.zeros(n, number)
        for row in np.flatnonzero(rng.random(n) < 0.5):
            near = self.matrix[row] <= self.matrix[row].min() + epsilon
            for col in np.flatnonzero(near & (mates[1] < 0))[:1]:
                mates[0][row], mates[1][col] = col, row
        entries = indptr, indices, matrix[self.is_stored]
        self.paths = SparsePaths(entries, self.costs, *mates, price, None)
        self.row_dual, self.is_slack = self.rows_price.astype(number), np.zeros(n, bool)
        self.search = JointSearch(self.paths, self.row_dual, self.is_slack, sparse_tuning.DEFAULT)
        self.epsilon = number(epsilon)

    @property
    def free(self):
        """The unmatched rows, and the unmatched columns."""
        return tuple(
            np.flatnonzero(side < 0) for side in (self.paths.row_to_col, self.paths.col_to_row)
        )

    @property
    def rows_price(self):
        """What rows pay, or the least that unmatched ones must."""
        reduced = self.matrix - self.paths.price
        own = reduced.min(axis=1)
        rows = np.flatnonzero(self.paths.row_to_col >= 0)
        own[rows] = reduced[rows, self.paths.row_to_col[rows]]
        return own

    def check(self, most):
        """Mates are mutual and allowed, and no slack is below -most."""
        rows = np.flatnonzero(self.paths.row_to_col >= 0)
        cols = self.paths.row_to_col[rows]
        assert (self.paths.col_to_row[cols] == rows).all()
        assert (self.paths.col_to_row >= 0).sum() == rows.size
        assert self.is_stored[rows, cols].all()
        slack = self.matrix - self.paths.price - self.rows_price[:, None]
        assert slack.min() >= -most - 1e-9
        assert (self.paths.room.dist == self.paths.far).all()

    def has_path(self):
        """True if an unmatched row reaches an unmatched column by pairs of the length 0."""
        own, seen = np.where(self.paths.row_to_col < 0, self.row_dual, self.rows_price), set()
        steps = np.floor((self.matrix - self.paths.price) / self.epsilon)
        steps -= np.floor(own / self.epsilon)[:, None]
        stack = self.free[0].tolist()
        while stack:
            for col in np.flatnonzero(steps[stack.pop()] < 0):
                mate = int(self.paths.col_to_row[col])
                if mate < 0:
                    return True
                if col not in seen:
                    seen.add(col)
                    stack.append(mate)
        return False


def nothing():
    """Nobody listens."""


@NUMBERS
@pytest.mark.parametrize("lenient", [0, 1, 16])
def test_rounds_match_all_rows_within_epsilon(number, lenient, monkeypatch):
    """After strict rounds alone, each pair has cost its row at most epsilon more than its best."""
    tune(monkeypatch, sparse_tuning, lenient=lenient)
    for seed in range(40):
        drawn = Drawn(seed, number, epsilon=3)
        free = drawn.free[0].size
        while free:
            found, is_strict = drawn.search.round(drawn.epsilon, nothing), drawn.search.strict
            assert found > 0
            free -= found
            assert drawn.free[0].size == free
            drawn.check(3 * (2 + min(drawn.search.rounds, lenient)))
            assert is_strict == (drawn.search.rounds >= lenient)
        total = drawn.matrix[np.arange(drawn.n), drawn.paths.row_to_col].sum()
        slack = 3 * (2 + min(drawn.search.rounds, lenient)) * drawn.n
        assert least(drawn.matrix) - 1e-9 <= total <= least(drawn.matrix) + slack
        assert drawn.row_dual == pytest.approx(drawn.rows_price, abs=1e-9)


@NUMBERS
def test_strict_rounds_make_progress(number, monkeypatch):
    """No path of length 0 remains, and all unmatched ends rise together by epsilon or more."""
    tune(monkeypatch, sparse_tuning, lenient=0, good_round=2)
    counted = 0
    for seed in range(80):
        drawn = Drawn(seed, number, epsilon=2)
        ends = None
        while drawn.free[0].size:
            found = drawn.search.round(drawn.epsilon, nothing)
            assert found > 0
            assert not drawn.has_path()
            rows, cols = drawn.free
            before, ends = ends, np.add.outer(drawn.row_dual, drawn.paths.price)
            if before is not None and rows.size:
                counted += 1
                rise = (ends - before)[np.ix_(rows, cols)]
                assert rise.min() >= 2 - 1e-9
    assert counted > 20


def test_integers_that_are_multiples_of_epsilon_are_exact():
    """A slack below epsilon is 0 then."""
    for seed in range(30):
        drawn = Drawn(seed, INTEGER, epsilon=0)
        while drawn.free[0].size:
            drawn.search.round(INTEGER(1), nothing)
        drawn.check(0)
        total = drawn.matrix[np.arange(drawn.n), drawn.paths.row_to_col].sum()
        assert total == least(drawn.matrix)


def test_depth_first_search_finds_paths_that_trees_do_not(monkeypatch):
    """One tree takes all columns first, but the others have ways to some of them."""
    tune(monkeypatch, sparse_tuning, good_round=2)
    more, augment = [], JointSearch._augment_depth_first

    def spy(self, *given):
        scans = augment(self, *given)
        more.append(int(self.paths.spot[sparse_search.REACHED]))
        return scans

    monkeypatch.setattr(JointSearch, "_augment_depth_first", spy)
    for seed in range(40):
        drawn = Drawn(seed, INTEGER, epsilon=40)
        while drawn.free[0].size:
            assert drawn.search.round(drawn.epsilon, nothing) > 0
    assert sum(more) > 10


@NUMBERS
def test_a_budget_does_not_change_the_result(number, monkeypatch):
    tune(monkeypatch, sparse_tuning, good_round=2)
    calls = []
    for seed in range(12):
        whole = Drawn(seed, number, epsilon=3)
        whole.search.round(whole.epsilon, nothing)
        with monkeypatch.context() as patch:
            patch.setattr(sparse_search, "BUDGET", 1)
            parted = Drawn(seed, number, epsilon=3)
            parted.search.round(parted.epsilon, partial(calls.append, seed))
        assert (whole.paths.row_to_col == parted.paths.row_to_col).all()
        assert (whole.paths.price == parted.paths.price).all()
    assert len(calls) > 200


@NUMBERS
def test_a_round_tells_that_no_full_assignment_exists(number):
    """Only then does it find nothing; else the rounds match all rows."""
    outcomes = set()
    for seed in range(60):
        drawn = Drawn(seed, number, epsilon=3, full=False)
        is_feasible = least(drawn.matrix) < 1e11
        while drawn.free[0].size and drawn.search.round(drawn.epsilon, nothing):
            pass
        assert is_feasible == (drawn.free[0].size == 0)
        outcomes.add(is_feasible)
    assert outcomes == {True, False}


def test_slacks_of_countless_epsilons_are_lengths_as_they_are():
    """Their numbers would be infinite, and no column would be reached."""
    matrix = np.array([[1e300, 1.0], [math.inf, 2.0]])
    drawn = Drawn(0, FLOAT, epsilon=1)
    drawn.matrix = matrix
    paths = SparsePaths(
        (np.array([0, 2, 3], np.int32), np.array([0, 1, 1], np.int32), np.array([1e300, 1.0, 2.0])),
        problem(matrix, "sparse"), *np.full((2, 2), -1, np.int32), np.zeros(2), None,
    )  # fmt: skip
    search = JointSearch(paths, np.zeros(2), np.zeros(2, bool), sparse_tuning.DEFAULT)
    while (paths.row_to_col < 0).any():
        assert search.round(FLOAT(1e-300), nothing) > 0
    assert paths.row_to_col.tolist() == [0, 1]


# -- in the engine ---------------------------------------------------------------------------------


def auction_alone(monkeypatch, **tuning):
    tune(monkeypatch, sparse_tuning, trial=SHORT._replace(unmatched=-1), small=0, **tuning)


def spied(monkeypatch):
    """How many rows each round matches: a list that fills."""
    found, search_round = [], JointSearch.round

    def spy(self, epsilon, beat):
        found.append(search_round(self, epsilon, beat))
        return found[-1]

    monkeypatch.setattr(JointSearch, "round", spy)
    return found


@pytest.mark.parametrize("kind", ["floats", "integers"])
def test_costs_on_which_bids_take_long_are_searched(kind, monkeypatch):
    auction_alone(monkeypatch, turns=0, trusted=4)
    found = spied(monkeypatch)
    matrix = adversarial.make("far_clusters", 1500, seed=1)
    if kind == "integers":
        matrix.data = np.rint(1000 * matrix.data).astype(np.int64)
    a = gm.assign(matrix, threads=1)
    gm.verify(matrix, a)
    assert found
    assert all(found)
    assert gm.assign(matrix, threads=2).objective == pytest.approx(a.objective, rel=1e-12)


def test_searches_tell_that_costs_are_infeasible(monkeypatch):
    """No row is searched from after them."""
    auction_alone(monkeypatch, turns=0, trusted=4)
    found = spied(monkeypatch)
    matrix = costs.make("nearest", 2000, seed=1)
    phases = []
    monkeypatch.setattr(Auction, "repair", lambda self: phases.append("repair"))
    with pytest.raises(ValueError, match="infeasible"):
        gm.assign(matrix, threads=1)
    assert found[-1:] == [0]
    assert not phases


def test_turns_that_serve_no_row_after_a_search_are_a_price_war():
    """Else a phase of 45 unmatched rows reads all entries 35 times to serve four of them."""
    parameters = {"n": 4884, "k": 11, "share": 0.505103, "distance": 473.055}
    C = Problem("far_clusters", parameters, "squared").costs()
    a = gm.assign(C, threads=1, backend="cpu")
    gm.verify(C, a)
    assert sum(phase["scans"] for phase in a.stats["trace"]) < 240 * C.nnz


def test_searches_end_a_phase_that_no_coarser_epsilon_may_follow(monkeypatch):
    """Neither wars nor searches with few paths end the auction then."""
    auction_alone(monkeypatch, longest=1, trusted=4, most=0, turns=0, poor=0)
    found = spied(monkeypatch)
    outcomes, hold_phase = [], Auction._hold_phase

    def spy(self, bidders, epsilon, few):
        outcome, left = hold_phase(self, bidders, epsilon, few)
        outcomes.append((outcome, left.size <= few))
        return outcome, left

    monkeypatch.setattr(Auction, "_hold_phase", spy)
    matrix = adversarial.make("nearest_matched", 2000, 8, seed=2)
    gm.verify(matrix, gm.assign(matrix, threads=1))
    assert found
    assert all(is_done for _, is_done in outcomes)


@pytest.mark.parametrize("lenient", [1, 2])
def test_strict_searches_begin_from_the_prices_of_the_phase(lenient, monkeypatch):
    """They end each phase from there, whatever bids and lenient searches have done."""
    auction_alone(monkeypatch, longest=1, trusted=4, most=0, turns=0, poor=0)
    tune(monkeypatch, sparse_tuning, lenient=lenient, good_round=1)
    begun, search_round, hold_phase = [], JointSearch.round, Auction._hold_phase

    def round_spy(self, epsilon, beat):
        if self.rounds == lenient:
            begun.append(self.paths.price.copy())
        return search_round(self, epsilon, beat)

    def phase_spy(self, *given):
        before, count = self.paths.price.copy(), len(begun)
        outcome = hold_phase(self, *given)
        assert all((prices == before).all() for prices in begun[count:])
        return outcome

    monkeypatch.setattr(JointSearch, "round", round_spy)
    monkeypatch.setattr(Auction, "_hold_phase", phase_spy)
    matrix = adversarial.make("nearest_matched", 1200, 8, seed=2)
    gm.verify(matrix, gm.assign(matrix, threads=1))
    assert begun


def few_values(values, n=2000, kind="floats"):
    """Costs 1 to `values` of two far clusters."""
    matrix = adversarial.make("far_clusters", n, seed=2)
    matrix.data = np.ceil(values * matrix.data / matrix.data.max())
    return matrix.astype(np.int64) if kind == "integers" else matrix


def steps_of(a):
    return [phase["step"] for phase in a.stats["trace"]]


@pytest.fixture
def no_groups(monkeypatch):
    """The trial gives up the paths of groups at once."""
    tune(monkeypatch, sparse_tuning, group_first=0, group_reads=0)


@pytest.mark.usefixtures("no_groups", "no_rival")
@pytest.mark.parametrize("kind", ["floats", "integers"])
@pytest.mark.parametrize("values", [2, 8, 64])
def test_costs_of_few_values_are_searched_exactly(values, kind):
    """The auction of the first phase is undone; nearly all rows have tight pairs after searches."""
    matrix = few_values(values, kind=kind)
    a = gm.assign(matrix, threads=1)
    gm.verify(matrix, a)
    assert steps_of(a) == ["trial", "auction", "search", "paths"]
    assert sum(phase["scans"] for phase in a.stats["trace"]) < 40 * matrix.nnz
    assert a.objective == gm.assign(matrix, algorithm="shortest-augmenting-path").objective


def test_many_values_are_not_searched_exactly():
    matrix = few_values(8)
    matrix.data += np.random.default_rng(1).integers(0, 100, matrix.nnz)
    assert "search" not in steps_of(gm.assign(matrix, threads=1))


@pytest.mark.usefixtures("no_groups", "no_rival")
def test_exact_searches_that_find_few_paths_are_given_up(monkeypatch):
    tune(monkeypatch, sparse_tuning, slow=1)
    matrix = few_values(8)
    a = gm.assign(matrix, threads=1)
    gm.verify(matrix, a)
    assert steps_of(a)[:4] == ["trial", "auction", "search", "auction"]


def test_exact_searches_tell_that_costs_are_infeasible(monkeypatch):
    auction_alone(monkeypatch, turns=0)
    found = spied(monkeypatch)
    matrix = costs.make("nearest", 2000, seed=1)
    matrix.data = np.ceil(4 * matrix.data / matrix.data.max())
    with pytest.raises(ValueError, match="infeasible"):
        gm.assign(matrix, threads=1)
    assert found[-1:] == [0]
