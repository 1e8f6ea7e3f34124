"""Bids by the columns that rows of a dense matrix know."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpumatch.cpu.assignment.dense import candidate_bids, candidates
from gpumatch.cpu.assignment.dense.candidates import KNOWN, look_at_all
from gpumatch.cpu.searches.state import (
    DONE,
    KEPT,
    KNEW,
    LOCKED,
    LOOKED,
    LOW,
    NEXT,
    SCANS,
    SPENT,
    Queue,
)
from tests.cpu.interleaved import interleave


class Bidding:
    """What `candidate_bids.hold` works on, from prices of 0."""

    def __init__(self, values):
        nrows, ncols = values.shape
        self.values, self.price = values, np.zeros(ncols)
        self.mates = np.full(nrows, -1, np.int32), np.full(ncols, -1, np.int32)
        known = np.empty((nrows, KNOWN), np.int32), np.empty((nrows, KNOWN)), np.empty(nrows)
        self.known, self.queue = known, Queue(np.arange(nrows))
        self.scratch = np.empty(ncols + 1), *np.empty((2, ncols + 1), np.int32)
        look_at_all(values, self.price, known, self.scratch, 0, nrows)

    def hold(self, epsilon, jump, floor=-1e300, few=0, budget=10**9):
        return candidate_bids.hold(
            self.values, self.price, *self.mates, self.known, self.scratch,
            self.queue.rows, self.queue.state, epsilon, jump, float(floor), few, budget,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "mates", "prices"),
    [
        ([[5, 9]], [0], [-4, 0]),
        ([[5, 5]], [0], [-2, 0]),
        ([[5, math.inf]], [0], [-100, 0]),
        ([[math.inf, math.inf]], [-1], [0, 0]),
        ([[5, math.inf], [1, 4]], [0, 1], [-100, -97]),
        ([[5, 7], [1, math.inf]], [1, 0], [-102, -100]),
    ],
)
def test_rows_bid_by_hand(values, mates, prices):
    state = Bidding(np.array(values, float))
    assert state.hold(2.0, 100.0) == DONE
    assert state.mates[0].tolist() == mates
    assert state.price.tolist() == prices
    low = Bidding(np.array(values, float))
    below = low.hold(2.0, 100.0, floor=min(prices) + 1.0)
    assert below == (LOW if any(prices) else DONE)
    assert Bidding(np.array(values, float)).hold(2.0, 100.0, floor=min(prices)) == DONE


def test_a_column_that_another_thread_holds_is_not_touched():
    state = Bidding(np.array([[5.0, 9.0]]))
    state.mates[1][0] = LOCKED
    assert state.hold(2.0, 100.0, budget=2 * KNOWN + 1) == SPENT
    assert state.queue.state[SCANS] == 3 * KNOWN
    assert state.mates[1].tolist() == [LOCKED, -1]
    assert state.price.tolist() == [0, 0]
    assert state.queue.waiting.tolist() == [0]


def test_a_bid_at_a_price_that_has_fallen_is_made_again(monkeypatch):
    """Another thread lowers it just before row 1 locks the column; row 0 loses it before that."""
    interleave(monkeypatch, candidates, candidate_bids)
    state, told = Bidding(np.array([[5.0, 50.0], [4.0, 9.0]])), []
    state.mates[0][0], state.mates[1][0] = 0, 0
    state.queue = Queue(np.array([1]))

    def load(mates, col):
        state.price[0] = state.price[0] or -3
        return mates[col]

    def store(mates, col, row):
        told.append((col, row, *state.mates[0].tolist()))
        mates[col] = row

    monkeypatch.setattr(candidate_bids, "load", load)
    monkeypatch.setattr(candidate_bids, "store", store)
    state.hold(2.0, 100.0, budget=2 * KNOWN)
    assert told == [(0, 0, 0, -1), (0, 1, -1, 0)]
    assert state.price.tolist() == [-5, 0]
    assert state.queue.waiting.tolist() == [0]


@pytest.mark.parametrize("budget", [1, 500, 10**9])
def test_bids_of_known_columns_are_those_of_the_whole_matrix(budget):
    """Rows pay at most epsilon more than they must, though they read few lines."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        nrows, ncols = int(rng.integers(60, 90)), 90
        values = rng.integers(0, rng.choice([5, 1000]), (nrows, ncols)).astype(float)
        if seed % 2:  # all want the same columns, so that rows look again
            values += 40 * np.arange(ncols)
        state, epsilon, few = Bidding(values), float(rng.integers(1, 9)), int(rng.integers(0, 2))
        pauses, work = 0, 0
        while state.hold(epsilon, 1000.0, few=few, budget=budget) == SPENT:
            assert budget <= state.queue.state[SCANS] < budget + KNOWN + ncols + 1
            work += int(state.queue.state[SCANS])
            state.queue.state[SCANS] = 0
            pauses += 1
        assert pauses <= (work + budget) // budget
        assert (pauses > 0) or budget > 1
        row_to_col, col_to_row = state.mates
        free, held = np.flatnonzero(row_to_col < 0), np.flatnonzero(row_to_col >= 0)
        assert free.size <= few
        assert np.sort(state.queue.waiting).tolist() == free.tolist()
        assert (col_to_row[row_to_col[held]] == held).all()
        assert np.count_nonzero(col_to_row >= 0) == held.size
        reduced = values - state.price
        assert (reduced[held, row_to_col[held]] <= reduced[held].min(axis=1) + epsilon).all()
        assert (state.price[col_to_row < 0] == 0).all()


@pytest.mark.parametrize(("epsilon", "pays"), [(1e-2, False), (1e-4, True)])
def test_rows_look_only_if_that_pays(epsilon, pays):
    """If each bid leads beyond what a row knows, the row reads its line for every bid."""
    places = np.random.default_rng(4).random((2, 300, 2))
    state = Bidding(-np.hypot(*(places[0][:, None] - places[1]).transpose(2, 0, 1)))
    assert state.hold(epsilon, 1e4) == DONE
    looks, knew, read = (int(state.queue.state[place]) for place in (LOOKED, KNEW, SCANS))
    lines = (read - KNOWN * knew) // (KNOWN + 300)
    assert candidate_bids.looks_pay(looks, knew, 300) == pays
    assert lines < 1.5 * looks if pays else lines > 10 * looks > 0
    reduced, mates = state.values - state.price, state.mates[0]
    assert (reduced[range(300), mates] <= reduced.min(axis=1) + epsilon * (1 + 1e-9)).all()


@pytest.mark.parametrize("ncols", [1, 2, 127, 128, 129, 700])
@pytest.mark.parametrize("top", [0, 2, 10**6])
def test_the_least_two_of_a_line(ncols, top):
    rng = np.random.default_rng(ncols + top)
    for start in (0, ncols // 2, ncols - 1):
        line, price = rng.integers(0, top, (2, ncols), endpoint=True).astype(float)
        line[rng.random(ncols) < 0.2] = math.inf
        one, col, two = candidate_bids._least_two_of_line(line, price, start, np.empty(ncols))
        least = np.sort(np.append(line - price, math.inf))
        assert (one, two) == (least[0], least[1])
        assert line[col] - price[col] == one
        stretches = np.flatnonzero(line - price == one) // candidate_bids.STRETCH
        first = start // candidate_bids.STRETCH
        after = stretches[stretches >= first]
        assert col // candidate_bids.STRETCH == (after if after.size else stretches)[0]


def test_no_column_is_found_whose_price_falls_meanwhile(monkeypatch):
    """Another thread lowers it after the least reduced cost of the line is known."""
    interleave(monkeypatch, candidates, candidate_bids)
    line, price = np.array([5.0, 3.0, 4.0]), np.zeros(3)
    least_number = candidate_bids._least_number

    def least(numbers):
        price[1] = -9
        return least_number(numbers)

    monkeypatch.setattr(candidate_bids, "_least_number", least)
    assert candidate_bids._least_two_of_line(line, price, 0, np.empty(3)) == (3, -1, math.inf)


@pytest.mark.parametrize("looks", [True, False])
def test_slack_pairs_part_whether_rows_look_or_read(looks):
    """Only rows that look know more afterwards."""
    rng = np.random.default_rng(8)
    state = Bidding(rng.random((120, 120)))
    assert state.hold(0.1, 10.0) == DONE
    state.price[rng.random(120) < 0.97] -= 0.6
    reduced = state.values - state.price
    slack = reduced[range(120), state.mates[0]] - reduced.min(axis=1)
    before = state.known[2].copy()
    candidate_bids.part_slack(
        state.values, state.price, *state.mates, state.known, state.scratch,
        0.05, 0.0, looks, 0, 120,
    )  # fmt: skip
    assert 0 < np.count_nonzero(slack > 0.05) < 120
    assert ((state.mates[0] < 0) == (slack > 0.05)).all()
    assert (state.known[2] == before).all() == (not looks)


def test_a_bid_heeds_columns_that_the_row_does_not_know():
    """It leaves no unknown column cheaper by more than epsilon, and looks where one is cheapest."""
    for is_first_cheap in (True, False):
        state = Bidding(np.arange(200.0)[None])
        cols, costs, (bound,) = state.known
        known = np.unique(cols[np.isfinite(costs)])
        state.price[known[is_first_cheap:]] = -1000
        before = state.price.copy()
        assert state.hold(2.0, 5000.0) == DONE
        col = state.mates[0][0]
        assert col == (0 if is_first_cheap else known.max() + 1)
        assert before[col] - state.price[col] == (bound if is_first_cheap else 2)
        assert state.queue.state[SCANS] == (KNOWN if is_first_cheap else 2 * KNOWN + 200)


def test_a_row_is_reduced_as_far_as_it_knows():
    """Of 200 columns it knows a few, which but one have become dearer than any that it does not."""
    state = Bidding(np.arange(200.0)[None])
    cols, costs, (bound,) = state.known
    known = np.unique(cols[np.isfinite(costs)])
    state.price[known[1:]] = -1000
    spot = np.zeros(6, np.int64)
    assert candidate_bids.reduce_rows(
        state.values, state.price, *state.mates, np.zeros(1, np.int32), spot, state.known,
        state.scratch, (math.inf, False), 10, 10**9,
    )  # fmt: skip
    assert state.mates[0].tolist() == [0]
    assert state.price[0] == -bound


def test_a_row_waits_where_columns_that_it_does_not_know_are_as_cheap():
    """It takes none from another row then: only a look at the line would name the others."""
    state = Bidding(np.array([np.arange(200.0), np.full(200, 1e4)]))
    cols, costs, bound = state.known
    known = np.unique(cols[0][np.isfinite(costs[0])])
    state.price[known] = -1000
    state.price[0] = -bound[0]
    state.mates[0][1], state.mates[1][0] = 0, 1
    before, spot, free = state.price.copy(), np.zeros(6, np.int64), np.zeros(1, np.int32)
    assert candidate_bids.reduce_rows(
        state.values, state.price, *state.mates, free, spot, state.known, state.scratch,
        (math.inf, False), 10, 10**9,
    )  # fmt: skip
    assert state.mates[0].tolist() == [-1, 0]
    assert np.array_equal(state.price, before)
    assert (spot[NEXT], spot[KEPT], free[0]) == (1, 1, 0)


@pytest.mark.parametrize("budget", [1, 10**9])
@pytest.mark.parametrize("limit", [math.inf, 3.0])
def test_rows_are_reduced_as_in_the_whole_matrix(budget, limit):
    """Each pays the least of its line, or waits for another round, or may take none."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        nrows, ncols = int(rng.integers(60, 90)), 90
        values = rng.integers(0, rng.choice([2, 5, 1000]), (nrows, ncols)).astype(float)
        if seed % 2:  # all want the same columns
            values += 40 * np.arange(ncols)
        state, spot, free = Bidding(values), np.zeros(6, np.int64), np.arange(nrows, dtype=np.int32)
        state.price[: rng.integers(0, ncols)] -= rng.integers(0, 2000)  # so that rows look again
        start = state.price.copy()
        leaves, most = limit < math.inf, 20 * nrows
        ended, calls = False, 0
        while not ended:
            calls += 1
            assert calls < 2 * most
            ended = candidate_bids.reduce_rows(
                state.values, state.price, *state.mates, free, spot, state.known, state.scratch,
                (limit, leaves), most, budget,
            )  # fmt: skip
        assert calls >= spot[SCANS] or budget > 1
        assert spot[NEXT] == nrows or spot[SCANS] == most
        row_to_col, col_to_row = state.mates
        held = np.flatnonzero(row_to_col >= 0)
        assert (col_to_row[row_to_col[held]] == held).all()
        assert np.count_nonzero(col_to_row >= 0) == held.size
        reduced = values - state.price
        assert (reduced[held, row_to_col[held]] == reduced[held].min(axis=1)).all()
        assert (reduced[held, row_to_col[held]] <= limit).all()
        assert (state.price == start)[col_to_row < 0].all()
        if leaves and spot[NEXT] == nrows:
            waiting = free[: spot[KEPT]]
            others = np.setdiff1d(np.flatnonzero(row_to_col < 0), waiting)
            assert (reduced[others].min(axis=1) >= limit).all()


@pytest.mark.parametrize(
    ("costs", "expected"),
    [([5, 1, 3], (1, 5, 3, 1)), ([5, 1, 9], (1, 5, 5, 3)), ([1, 5, 9], (1, 3, 5, 5))],
    ids=["found last", "passed by the least", "in order"],
)
def test_the_least_two_of_known_columns(costs, expected):
    cols, price = np.array([3, 5, 1]), np.zeros(6)
    assert candidate_bids._least_two(cols, np.array(costs, float), price) == expected
