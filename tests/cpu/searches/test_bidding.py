"""Gauss and Seidel's bids in sparse costs: by hand, and what holds of prices after any of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from gpumatch.cpu.assignment.sparse.paths import transpose
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.cpu.searches import bidding
from gpumatch.cpu.searches.state import DONE, LOCKED, LOW, SCANS, SPENT, Queue
from tests.cpu.interleaved import interleave

FAR, LEAST, NEVER = np.int64(10**6), np.int64(-(10**6)), 10**9
COUNTED = 1  # what a bid counts besides its entries


def entries_of(table):
    """CSR arrays of rows that are given as {column: cost}, in the engine's types."""
    lengths = [len(row) for row in table]
    return (
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        np.array([col for row in table for col in row], np.int32),
        np.array([cost for row in table for cost in row.values()], np.int64),
    )


class Sides:
    """Prices, mates and marks before the first bid."""

    def __init__(self, nrows, ncols):
        self.row_dual, self.price = np.zeros(nrows, np.int64), np.zeros(ncols, np.int64)
        self.row_to_col, self.col_to_row = (
            np.full(nrows, -1, np.int32),
            np.full(ncols, -1, np.int32),
        )
        self.is_slack, self.is_slack_col = np.zeros(nrows, bool), np.zeros(ncols, bool)
        self.rows, self.cols = Queue(np.arange(nrows)), Queue(np.arange(ncols))
        self.left = np.array([nrows])

    def side(self):
        return self.row_dual, self.price, self.row_to_col, self.col_to_row, self.is_slack

    def side_of_cols(self):
        return self.price, self.row_dual, self.col_to_row, self.row_to_col, self.is_slack_col

    def hold(
        self, entries, epsilon, jump, *,
        reach=NEVER, limit=None, floor=LEAST, few=0, budget=NEVER, queue=None,
    ):  # fmt: skip
        queue = queue or self.rows
        return bidding.hold(
            entries, self.side(), queue.ring,
            np.int64(epsilon), np.int64(jump), np.int64(reach), np.int64(limit or 0),
            limit is not None, FAR, np.int64(floor), few, budget,
        )  # fmt: skip

    def alternate(self, entries, epsilon, jump, *, reach=NEVER, floor=LEAST, few=0, budget=NEVER):
        return bidding.alternate(
            entries, transpose(entries, self.price.size), self.side(), self.side_of_cols(),
            self.rows.ring, self.cols.ring, self.left,
            np.int64(epsilon), np.int64(jump), np.int64(reach), FAR, np.int64(floor), few, budget,
        )  # fmt: skip

    def drop_slack(self, entries, first, last, epsilon, limit=None, rounding=0.0):
        bidding.drop_slack(
            entries, self.side(),
            np.int64(limit or 0), limit is not None, FAR, np.int64(epsilon), rounding, first, last,
        )  # fmt: skip


# -- rows bid --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "limit", "mates", "prices", "row_duals", "slack"),
    [
        ([{0: 5, 1: 9}], None, [0], [-4, 0], [9], [False]),
        ([{0: 9, 1: 5}], None, [1], [0, -4], [9], [False]),
        ([{0: 5, 1: 5}], None, [0], [-2, 0], [7], [True]),
        ([{0: 5, 1: 7}], None, [0], [-2, 0], [7], [False]),
        ([{0: 5}], None, [0], [-100], [105], [False]),
        ([{0: 5}], 8, [0], [-3], [8], [False]),
        ([{0: 5, 1: 6}], 8, [0], [-2, 0], [7], [True]),
        ([{0: 8}], 8, [-1], [0], [0], [False]),
        ([{}], None, [-1], [], [0], [False]),
        ([{0: 5}, {0: 1, 1: 4}], None, [0, 1], [-100, -97], [105, 101], [False, False]),
        ([{0: 5, 1: 7}, {0: 1}], None, [1, 0], [-102, -100], [107, 103], [False, False]),
    ],
)
def test_rows_bid_by_hand(table, limit, mates, prices, row_duals, slack):
    """A row lowers its price by its lead, epsilon at least; one without a choice by the jump."""
    sides = Sides(len(table), len(prices))
    assert sides.hold(entries_of(table), 2, 100, limit=limit) == DONE
    assert sides.row_to_col.tolist() == mates
    assert sides.price.tolist() == prices
    assert sides.row_dual.tolist() == row_duals
    assert sides.is_slack.tolist() == slack
    for row, col in enumerate(mates):
        assert col < 0 or sides.col_to_row[col] == row
    assert sides.rows.waiting.size == 0


@pytest.mark.parametrize(
    ("cost", "dearer", "prices", "row_dual", "slack"),
    [(5, 9000, [-10, 0], 15, False), (50, 9000, [-50, 0], 100, False), (5, 6, [-20, 0], 25, True)],
)
def test_bids_reach_no_farther_than_they_may(cost, dearer, prices, row_dual, slack):
    """A bid adds what it may reach to what its row pays, or doubles it, or adds epsilon."""
    sides = Sides(1, 2)
    epsilon = 20 if slack else 2
    assert sides.hold(entries_of([{0: cost, 1: dearer}]), epsilon, 100, reach=10) == DONE
    assert sides.price.tolist() == prices
    assert (sides.row_dual.tolist(), sides.is_slack.tolist()) == ([row_dual], [slack])


def test_bids_are_counted_and_end_in_time():
    table = [{0: 1}, {0: 1}, {0: 1, 1: 3, 2: 9}]
    for budget, outcome, left in ((1, SPENT, [1, 2]), (3, SPENT, [2, 0]), (NEVER, DONE, [0])):
        sides = Sides(3, 3)
        few = 1 if outcome == DONE else 0
        assert sides.hold(entries_of(table), 1, 50, few=few, budget=budget) == outcome
        assert sides.rows.waiting.tolist() == left
        assert (sides.row_to_col[left] == -1).all()
        bids = {1: 1, 3: 2, NEVER: 3}[budget]
        entries = {1: 1, 3: 2, NEVER: 5}[budget]
        assert sides.rows.state[SCANS] == bids * COUNTED + entries
    sides = Sides(3, 3)
    assert sides.hold(entries_of(table), 1, 50, floor=-50) == LOW
    assert sides.price[0] == -100  # the second bid went below the floor; the first was at it


def test_a_column_that_another_thread_holds_is_not_touched():
    """The row looks again and again, as long as its budget lasts, and still waits."""
    sides = Sides(1, 2)
    sides.col_to_row[0] = LOCKED
    assert sides.hold(entries_of([{0: 5, 1: 9}]), 2, 100, budget=7) == SPENT
    assert sides.rows.state[SCANS] == 3 * (2 + COUNTED)
    assert sides.col_to_row.tolist() == [LOCKED, -1]
    assert sides.price.tolist() == [0, 0]
    assert sides.row_to_col.tolist() == [-1]
    assert sides.rows.waiting.tolist() == [0]


def test_a_bid_at_a_price_that_has_fallen_is_made_again(monkeypatch):
    """Another thread lowers it just before the column is locked; who then has it is told first."""
    interleave(monkeypatch, bidding)
    sides, told = Sides(1, 2), []

    def load(mates, col):
        sides.price[0] = sides.price[0] or -3
        return mates[col]

    def store(mates, col, row):
        told.append((col, row, *sides.row_to_col.tolist()))
        mates[col] = row

    monkeypatch.setattr(bidding, "load", load)
    monkeypatch.setattr(bidding, "store", store)
    assert sides.hold(entries_of([{0: 5, 1: 9}]), 2, 100, budget=9) == DONE
    assert told == [(0, -1, -1), (0, 0, 0)]
    assert sides.price.tolist() == [-5, 0]
    assert (sides.row_dual.tolist(), sides.is_slack.tolist()) == ([10], [True])


# -- rows and columns bid --------------------------------------------------------------------------


def test_rows_and_columns_bid_by_hand():
    sides = Sides(2, 2)
    assert sides.alternate(entries_of([{0: 5}, {0: 1, 1: 4}]), 2, 100) == DONE
    assert sides.row_to_col.tolist() == [0, 1]
    assert sides.col_to_row.tolist() == [0, 1]
    assert sides.row_dual.tolist() == [105, -100]
    assert sides.price.tolist() == [-100, 104]
    assert [queue.state[SCANS] for queue in (sides.rows, sides.cols)] == [2, 2]
    assert sides.left[0] == 0


def test_bids_in_turns_reach_no_farther_than_they_may():
    """The row without a choice adds 10 to its cost of 5; so does the column to its cost of 4."""
    sides = Sides(2, 2)
    assert sides.alternate(entries_of([{0: 5}, {0: 1, 1: 4}]), 2, 100, reach=10) == DONE
    assert sides.row_to_col.tolist() == [0, 1]
    assert sides.row_dual.tolist() == [15, -10]
    assert sides.price.tolist() == [-10, 14]


@pytest.mark.parametrize("held", ["bidder", "column", "loser"])
def test_a_pair_of_which_another_thread_holds_an_end_is_not_touched(held):
    """The row looks again and again, as long as its budget lasts, and still waits."""
    sides = Sides(2, 2)
    sides.rows = Queue(np.array([1]))
    sides.row_to_col[0], sides.col_to_row[0] = 0, 0
    side, place = {
        "bidder": (sides.row_to_col, 1),
        "column": (sides.col_to_row, 0),
        "loser": (sides.row_to_col, 0),
    }[held]
    side[place] = LOCKED
    before = sides.row_to_col.tolist(), sides.col_to_row.tolist()
    table = entries_of([{0: 5, 1: 9}, {0: 5, 1: 9}])
    assert sides.alternate(table, 2, 100, budget=7) == SPENT
    assert sides.rows.state[SCANS] == 3 * (2 + COUNTED)
    assert (sides.row_to_col.tolist(), sides.col_to_row.tolist()) == before
    assert not sides.price.any()
    assert sides.rows.waiting.tolist() == [1]


def test_turns_end_when_nobody_waits():
    """Another thread's bidders are left."""
    sides = Sides(2, 2)
    sides.rows, sides.cols = Queue(np.array([0])), Queue(np.array([], int))
    assert sides.alternate(entries_of([{0: 5}, {1: 4}]), 2, 100) == DONE
    assert sides.row_to_col.tolist() == [0, -1]
    assert sides.left[0] == 1


@pytest.mark.parametrize(("floor", "outcome"), [(-100, DONE), (-99, LOW)])
def test_bids_in_turns_end_below_the_floor(floor, outcome):
    """The first bid, of a row without a choice, lowers a price to -100."""
    table = entries_of([{0: 5}, {0: 1, 1: 4}])
    assert Sides(2, 2).alternate(table, 2, 100, floor=floor) == outcome


def test_who_can_have_nobody_ends_the_auction():
    for table in ([{0: 5, 1: 5}, {}], [{0: 5}, {0: 5}]):
        assert Sides(2, 2).alternate(entries_of(table), 2, 100) == LOW


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 40))
    allowed = rng.random((n, n)) < rng.choice([0.1, 0.3, 1])
    allowed[np.arange(n), rng.permutation(n)] = True
    matrix = csr_array(np.where(allowed, rng.integers(1, rng.choice([3, 30, 1000]), (n, n)), 0))
    arrays = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
    return rng, (*arrays, matrix.data.astype(np.int64))


def above(entries, sides):
    """By how much the prices of both ends are above the cost, of each entry; its row and column."""
    indptr, indices, costs = entries
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    return sides.row_dual[rows] + sides.price[indices] - costs, rows, indices


@pytest.mark.parametrize("way", ["hold", "alternate"])
@pytest.mark.parametrize("budget", [1, 40, NEVER])
def test_what_holds_after_any_bids(way, budget):
    """See `check_bids`, and the rows that are left wait."""
    pauses = 0
    for seed in range(40):
        rng, entries = random_problem(seed)
        n, epsilon = entries[0].size - 1, int(rng.integers(1, 20))
        sides, few = Sides(n, n), int(rng.integers(0, 3))
        bid = getattr(sides, way)
        while bid(entries, epsilon, 1000, few=few, budget=budget) == SPENT:
            pauses += 1
            assert pauses < 100_000
            counts = [int(queue.state[SCANS]) for queue in (sides.rows, sides.cols)]
            assert budget <= max(counts) < budget + n + COUNTED
            sides.rows.state[SCANS] = sides.cols.state[SCANS] = 0
        free = np.flatnonzero(sides.row_to_col < 0)
        assert free.size <= few
        if way == "hold":
            assert np.sort(sides.rows.waiting).tolist() == free.tolist()
        check_bids(entries, sides, epsilon)
    assert (pauses == 0) == (budget == NEVER)


def check_bids(entries, sides, epsilon):
    """Pairs are tight and mutual; nothing is epsilon below its prices, or at all without a mark."""
    held = np.flatnonzero(sides.row_to_col >= 0)
    assert (sides.col_to_row[sides.row_to_col[held]] == held).all()
    assert (sides.col_to_row == -1).sum() == sides.col_to_row.size - held.size
    excess, rows, cols = above(entries, sides)
    is_pair = sides.row_to_col[rows] == cols
    assert (excess[is_pair] == 0).all()
    bids = np.isin(rows, held)  # a row that is free has no price of its own yet
    assert (excess[bids] <= epsilon).all()
    marked = sides.is_slack[rows] | sides.is_slack_col[cols]
    assert marked[bids & (excess > 0)].all()


def test_what_holds_after_bids_of_threads_in_any_order(monkeypatch):
    """Each has rows of its own, and they want few columns; one row of each thread is left."""
    taken = 0
    for seed in range(8):
        turns = interleave(monkeypatch, bidding, seed=seed)
        rng, n = np.random.default_rng(seed), 12
        table = rng.integers(0, 4, (n, n)) + np.where(np.arange(n) < 4, 0, 25)
        entries = entries_of([dict(enumerate(costs)) for costs in table])
        sides, epsilon = Sides(n, n), int(rng.integers(1, 4))
        queues = [Queue(rows) for rows in np.array_split(np.arange(n), 3)]

        def bid(worker, sides=sides, entries=entries, epsilon=epsilon, queues=queues):
            given = {"few": 1, "budget": 50, "queue": queues[worker]}
            return sides.hold(entries, epsilon, 100, **given) == DONE

        with Workers(3, n) as workers:
            while not workers.run(bid, 3):
                check_bids(entries, sides, epsilon)
        check_bids(entries, sides, epsilon)
        assert (sides.row_to_col < 0).sum() == 3
        taken += turns.taken
    assert taken > 100


# -- between auctions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "mates", "row_duals", "marks"),
    [
        (None, [3, 1, -1, 0, -1], [7, 5, 2, 30, 5], [True, False, True, False, True]),
        (4, [-1, 1, -1, 0, -1], [4, 5, 2, 30, 4], [True, True, True, False, True]),
    ],
)
def test_pairs_are_parted_that_cost_over_epsilon_more(limit, mates, row_duals, marks):
    """Rows: at epsilon; tight; beyond it; not marked, whatever it pays; and a free one."""
    table = [{3: 8, 5: 4}, {1: 5, 5: 5}, {2: 5, 5: 1}, {0: 9, 5: 1}, {4: 6, 5: 4}]
    sides = Sides(5, 6)
    sides.price[[3, 5]] = [1, -1]
    sides.row_to_col[:] = [3, 1, 2, 0, -1]
    sides.col_to_row[:] = [3, 1, 2, 0, -1, -1]
    sides.is_slack[:] = [True, True, True, False, True]
    sides.row_dual[3] = 30
    sides.drop_slack(entries_of(table), 0, 2, 2, limit)
    assert sides.row_to_col[2] == 2  # not among the rows asked for
    sides.drop_slack(entries_of(table), 2, 5, 2, limit)
    assert sides.row_to_col.tolist() == mates
    for col in range(6):
        assert sides.col_to_row[col] == (mates.index(col) if col in mates else -1)
    assert sides.row_dual.tolist() == row_duals
    assert sides.is_slack.tolist() == marks


@pytest.mark.parametrize(("rounding", "is_kept"), [(0.5, True), (0.49, False)])
def test_slack_that_may_be_rounding_is_none(monkeypatch, rounding, is_kept):
    """Of what the row pays, 8, and of the price of its column, -4; it could pay 2."""
    interleave(monkeypatch, bidding)
    sides = Sides(1, 2)
    sides.price[0], sides.row_to_col[0], sides.col_to_row[0], sides.is_slack[0] = -4, 0, 0, True
    sides.drop_slack(entries_of([{0: 4, 1: 2}]), 0, 1, 0, rounding=rounding)
    assert (sides.row_to_col[0] == 0) == is_kept
    assert sides.is_slack[0] == (not is_kept)


# -- costs drawn at random -------------------------------------------------------------------------


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
        epsilon, 100, 10**9, 0 if limit is None else limit, limit is not None,
        far, floor, few, budget,
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
            epsilon, 100, 10**9, number.max, -(10**6), few, budget,
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
