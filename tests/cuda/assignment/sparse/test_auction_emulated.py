"""Auctions of sparse costs on the CPU, threads in any order: prices, epsilon and exact bids."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from graphs import adversarial

pytest.importorskip("cupy")

from gpumatch.costs import SparseCosts
from gpumatch.cuda.assignment.sparse import auction, trees, tuning
from gpumatch.cuda.assignment.sparse import problem as problems
from gpumatch.cuda.assignment.sparse import trial as trials
from gpumatch.cuda.assignment.sparse.full import FullProblem
from gpumatch.cuda.assignment.sparse.offers import Units
from gpumatch.cuda.assignment.sparse.tuning import Trial
from gpumatch.problems import one_problem
from gpumatch.running.control import Control
from tests.cpu.assignment.tuned import tune
from tests.cuda.assignment.sparse.emulated import (
    BLOCK,
    DRIVERS,
    check,
    is_over,
    random_costs,
    random_rows,
    vary,
)
from tests.cuda.emulator import COMPILER, lead_drivers_here

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")


@pytest.mark.parametrize(
    ("nrows", "lanes", "first", "others"),
    [
        (100, 2, (25, 4096, 1), (25, 4096, 1)),
        (20_000, 16, (32, 4096, 2), (32, 4096, 1)),
        (262_144, 16, (256, 4096, 32), (256, 4096, 1)),
        (846_827, 16, (256, 4096, 103), (826, 4096, 1)),
        (1_000_000, 4, (976, 4096, 122), (976, 4096, 1)),
        (3_000_000, 32, (128, 4096, 366), (1024, 4096, 1)),
    ],
)
def test_the_first_auction_of_many_long_rows_leaves_fewer(nrows, lanes, first, others):
    ends = auction._ends(nrows, lanes, tuning.DEFAULT)
    assert next(ends) == first
    assert {next(ends) for _ in range(9)} == {others}


@pytest.mark.parametrize("density", [0.1, 0.5])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_rows_have_columns_that_are_their_best_within_epsilon(
    solve, emulators, dtype, density, monkeypatch
):
    """The trees would do with any prices, so that they do not show what these are worth."""
    tune(monkeypatch, tuning, trial=Trial(0, -1, 1, 1))
    rng = np.random.default_rng(11)
    held = []
    hold = auction.Auctions.hold

    def watched(self, epsilon, end, control):
        hold(self, epsilon, end, control)
        held.append((self, epsilon, end, self.offers.copy()))

    monkeypatch.setattr(auction.Auctions, "hold", watched)
    for _ in range(4):
        vary(emulators, rng)
        matrix = rng.integers(1, 1000, (60, 60)) * (rng.random((60, 60)) < density).astype(dtype)
        np.fill_diagonal(matrix, 999)
        held.clear()
        check(solve, csr_array(matrix))
        lanes = held[0][0].problem.rows.lanes
        ends = itertools.islice(auction._ends(60, lanes, tuning.DEFAULT), len(held))
        for (auctions, epsilon, end, offers), planned in zip(held, ends, strict=True):
            assert end == planned
            units, row_bits = auctions.units, np.uint64(auctions.units.row_bits)
            rows = (offers & (np.uint64(1) << row_bits) - np.uint64(1)).astype(int) - 1
            cols = np.flatnonzero(rows >= 0)
            assert cols.size >= 60 - end.unmatched
            assert np.unique(rows[cols]).size == cols.size
            fallen = (offers >> row_bits).astype(float)
            low = auctions.problem.full.low
            reduced = np.where(matrix > 0, (matrix - low) * units.of_one, math.inf) + fallen
            excess = reduced[rows[cols], cols] - reduced[rows[cols]].min(axis=1)
            assert excess.max() <= epsilon


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_columns_bid_after_each_auction(solve, emulators, dtype, monkeypatch):
    tune(monkeypatch, tuning, trial=Trial(0, -1, 1, 1))
    rng = np.random.default_rng(33)
    for n in (30, 55, 70):
        vary(emulators, rng)
        matrix = random_rows(rng, n, 6, lambda size: np.floor(900 * rng.random(size)).astype(dtype))
        check(solve, matrix[: n - 2])


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_columns_that_bid_get_prices_that_fit(emulators, dtype, monkeypatch):
    """Each has a row at no slack, but for units, or a price of 0."""
    lead_drivers_here(monkeypatch, emulators, *DRIVERS, block=BLOCK)
    tune(monkeypatch, tuning, unmatched=(4, 1024))
    rng = np.random.default_rng(34)
    has_bid = []
    bid = auction.Auctions._bid

    def watched(auctions, side, *wishes):
        has_bid.append(side.rows is not auctions.problem.rows)
        bid(auctions, side, *wishes)

    monkeypatch.setattr(auction.Auctions, "_bid", watched)
    for _ in range(3):
        vary(emulators, rng)
        values = np.where(rng.random((60, 62)) < 0.15, rng.integers(1, 2**20, (60, 62)), 0)
        values[:, 7] = 5
        values[np.arange(60), rng.permutation(60)] = 2**21
        matrix = csr_array(values.astype(dtype))
        problem = problems.Problem(FullProblem.of(SparseCosts(matrix), None))
        units = auction._units_of(problem)
        auctions = auction.Auctions(problem, units, np.zeros(62, np.uint64))
        for number, epsilon in enumerate(units.epsilons()[:3]):
            has_bid.clear()
            auctions.hold(epsilon, auction._End(15, 4096), control=Control())
            assert has_bid == [False, True][: number + 1]  # at first, they have no price
            fallen = (auctions.offers >> np.uint64(units.row_bits)).astype(float)
            paid = np.where(values, (values - 5) * units.of_one + fallen, math.inf)
            slack = (paid - paid.min(axis=1, keepdims=True)).min(axis=0)
            assert number == 0 or (np.minimum(slack, fallen) <= 2).all()
        turned = problem.transposed.full
        transposed = csr_array((turned.weights, turned.indices, turned.indptr))
        assert (transposed.toarray() == matrix.toarray().T).all()


@pytest.mark.parametrize("rows_a_launch", [1, 60])
def test_rows_that_were_given_up_bid_again(solve, emulators, rows_a_launch, monkeypatch):
    """In another launch of the first auction, if there is one."""
    tune(
        monkeypatch, tuning, trial=Trial(0, -1, 1, 1), longest_chain=2, rows_a_launch=rows_a_launch,
        war=1.0,
    )  # fmt: skip
    rng = np.random.default_rng(12)
    bidders = []
    bid = auction.Auctions._bid

    def watched(self, side, rows, epsilon, end):
        bidders.append(rows)
        bid(self, side, rows, epsilon, end)

    monkeypatch.setattr(auction.Auctions, "_bid", watched)
    vary(emulators, rng)
    matrix = csr_array(np.outer(np.arange(1, 61), np.arange(1, 61)))
    check(solve, matrix)
    whole = [rows.size == 60 for rows in bidders]
    launches = whole.index(True, 1)
    assert (launches > 1) == (rows_a_launch == 1)
    assert all(whole[launches:])
    sizes = [rows.size for rows in bidders[:launches]]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(("war", "most_at_war"), [(0.0, 1.0), (1.0, 1.0), (0.0, 0.0)])
def test_after_a_war_chains_are_shorter(solve, war, most_at_war, monkeypatch):
    """A war: few rows bid, and a launch of the first auction leaves too many of them unmatched."""
    tune(
        monkeypatch, tuning, trial=Trial(0, -1, 1, 1), longest_chain=2, rows_a_launch=1, war=war,
        most_at_war=most_at_war, chain_of_war=3,
    )  # fmt: skip
    longest = []
    bid = auction.Auctions._bid

    def watched(self, side, rows, epsilon, end):
        longest.append(end.longest)
        bid(self, side, rows, epsilon, end)

    monkeypatch.setattr(auction.Auctions, "_bid", watched)
    check(solve, csr_array(np.outer(np.arange(1, 61), np.arange(1, 61))))
    if war < most_at_war:
        assert longest[:3] == [2, 2, 3]
        assert set(longest[3:]) == {3}
    else:
        assert longest.index(2, 2) == 2
        assert set(longest) == {2}


def test_prices_keep_the_digits_of_costs_in_use(solve, monkeypatch):
    """Although a first epsilon of 256 moves them far: paths on the host need not close a gap."""
    monkeypatch.setattr(one_problem, "load", lambda _: pytest.fail("there is a gap"))
    for seed in (0, 1):
        matrix = adversarial.few_dear(600, seed=seed)
        a = solve(matrix)
        assert a.proven
        assert max(phase.get("epsilon", 0) for phase in a.stats["trace"]) > 100


def test_an_auction_stops_between_its_launches(solve, monkeypatch):
    tune(monkeypatch, tuning, trial=Trial(0, -1, 1, 1), longest_chain=2, rows_a_launch=1, war=1.0)
    launches = []
    bid = auction.Auctions._bid
    monkeypatch.setattr(auction.Auctions, "_bid", lambda *auction: launches.append(bid(*auction)))
    matrix = csr_array(np.outer(np.arange(1, 61), np.arange(1, 61)))
    for last in (1, 2, 3):
        launches.clear()
        a = solve(matrix, callback=functools.partial(is_over, itertools.count(1), last))
        assert not a.proven
        assert len(launches) == last


@pytest.mark.parametrize(("spread", "nrows"), [(2**59, 1), (2**42, 200_000), (1000, 10)])
def test_prices_of_integers_fall_no_further_than_sums_have_room(spread, nrows):
    units = Units(spread, nrows, finest=24, is_integer=True)
    assert 0 < units.most <= 2**58 * units.of_one
    assert units.most < 2 ** (64 - units.row_bits)


# -- costs of all magnitudes -----------------------------------------------------------------------


def test_epsilon_follows_from_typical_costs(solve, monkeypatch):
    """If it follows from their range, the trees take 350 looks instead of 130."""
    rng = np.random.default_rng(21)
    matrix = random_rows(rng, 150, 8, lambda size: np.exp(7 * rng.normal(size=size)))
    looks = []
    grow = trees.Trees.grow

    def watched(trees, *wishes):
        ended = grow(trees, *wishes)
        looks.append(int(trees.board.seen["looks"]))
        return ended

    monkeypatch.setattr(trees.Trees, "grow", watched)
    check(solve, matrix)
    assert sum(looks) < 240


def test_typical_leads(emulators, monkeypatch):
    """Rows with fewer than two entries have none, and ties count for nothing."""
    lead_drivers_here(monkeypatch, emulators, *DRIVERS, block=BLOCK)
    values = np.array([[5.0, 2, 2.5, 0], [0, 0, 4, 0], [3, 0, 3, 0], [0, 1, 8, 1e15]])
    for repeats, typical in ((1, 3.75), (700, 3.75)):  # of 2,800 rows, every third one
        matrix = csr_array(np.tile(values, (repeats, 1)))
        problem = problems.Problem(FullProblem.of(SparseCosts(matrix), None))
        assert problem.span == 1e15 - 1
        problem.narrow_span()
        assert problem.span == tuning.DEFAULT.widest * typical


# -- exact bids ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_exact_bids_keep_the_pairs_tight(solve, emulators, dtype, monkeypatch):
    """They begin from the first pairs, and each column that was taken stays so."""
    tune(monkeypatch, tuning, trial=Trial(9, 1, 4096, 1))
    rng = np.random.default_rng(15)
    seen = []
    bid = trials.bid_exactly

    def watched(problem, bids):
        before = problem.mates[1] >= 0
        held = bid(problem, bids)
        seen.append((problem, before, held, problem.col_dual.copy()))
        return held

    monkeypatch.setattr(trials, "bid_exactly", watched)
    won = 0
    for _ in range(12):
        vary(emulators, rng)
        seen.clear()
        matrix = random_costs(rng, dtype, most=70)
        if dtype is np.float64:
            matrix.data = np.round(matrix.data * 64) / 64  # so that nothing is rounded
        check(solve, matrix)
        for problem, before, held, price in seen:
            rows = np.flatnonzero(held >= 0)
            assert np.unique(held[rows]).size == rows.size
            assert set(np.flatnonzero(before)) <= set(held[rows])
            won += rows.size - np.count_nonzero(before)
            full = problem.full
            costs_of = csr_array((full.weights + 1, full.indices, full.indptr), full.shape)
            dense = costs_of.toarray().astype(float)
            reduced = np.where(dense > 0, dense - 1 - price, np.inf)
            assert (reduced[rows, held[rows]] == reduced[rows].min(axis=1)).all()
    assert won > 20
