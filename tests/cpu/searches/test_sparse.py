"""The kernels of paths in sparse costs, against plain loops, the dense kernels, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.cpu.searches import dense as dense_search
from gpumatch.cpu.searches import sparse as sparse_search
from gpumatch.cpu.searches.dense import LANES
from gpumatch.cpu.searches.sparse import Room
from gpumatch.cpu.searches.state import (
    FOUND,
    FRONT,
    HEAD,
    KEPT,
    NEXT,
    NOBODY,
    SCANS,
    SPENT,
    SPOTS,
    STUCK,
)
from tests.cpu.interleaved import interleave

FAR, LOW = np.iinfo(np.int64).max, np.iinfo(np.int64).min
NEVER = 10**9


class Drawn:
    """Costs of few values, of which some are forbidden, and prices; and rows that have columns."""

    def __init__(self, seed, share=0.5, prices=3):
        self.rng = np.random.default_rng(seed)
        self.shape = self.nrows, self.ncols = self.rng.integers(1, 9, 2)
        self.is_stored = self.rng.random(self.shape) < share
        self.costs = self.rng.integers(0, 4, self.shape)
        self.price = -self.rng.integers(0, prices, self.ncols)
        self.row_to_col = np.full(self.nrows, -1, np.int32)
        self.col_to_row = np.full(self.ncols, -1, np.int32)
        self.first, self.last = np.sort(self.rng.integers(0, self.nrows + 1, 2))

    @property
    def entries(self):
        counts = self.is_stored.sum(axis=1)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return indptr, self.is_stored.nonzero()[1].astype(np.int32), self.costs[self.is_stored]

    @property
    def mates(self):
        return self.row_to_col, self.col_to_row

    @property
    def reduced(self):
        return np.where(self.is_stored, self.costs - self.price, FAR)

    def match(self, share=0.5):
        """Some rows have the first of their columns that is free."""
        for row in np.flatnonzero(self.rng.random(self.nrows) < share):
            for col in np.flatnonzero(self.is_stored[row] & (self.col_to_row < 0))[:1]:
                self.pair(row, col)

    def pair(self, row, col):
        self.row_to_col[row], self.col_to_row[col] = col, row


def copies(*arrays):
    return [array.copy() for array in arrays]


@pytest.mark.parametrize("seed", range(30))
def test_rows_take_their_cheapest_columns_where_free(seed):
    """The first of these, else another whose price is the cost."""
    drawn = Drawn(seed)
    drawn.match(0.2)
    drawn.row_to_col[:] = -1
    drawn.price = np.where(drawn.is_stored, drawn.costs, 9).min(axis=0)
    mates, row_dual = copies(*drawn.mates), np.full(drawn.nrows, -1)
    sparse_search.take_cheapest(
        *drawn.entries, drawn.price, FAR, *mates, row_dual, drawn.first, drawn.last
    )
    for row in range(drawn.first, drawn.last):
        least = drawn.reduced[row].min()
        assert row_dual[row] == least
        for col in np.flatnonzero((drawn.reduced[row] == 0) & (drawn.col_to_row < 0))[:1]:
            drawn.pair(row, col)
    assert np.array_equal(mates[0], drawn.row_to_col)
    assert np.array_equal(mates[1], drawn.col_to_row)
    outside = np.r_[: drawn.first, drawn.last : drawn.nrows]
    assert (row_dual[outside] == -1).all()


@pytest.mark.parametrize("limit", [None, 1, 2])
@pytest.mark.parametrize("seed", range(30))
def test_free_rows_take_tight_columns_or_send_their_rows_to_others(seed, limit):
    drawn = Drawn(seed)
    drawn.match()
    mates, leaves = copies(*drawn.mates), limit is not None
    terms = limit or 0, leaves, FAR, drawn.first, drawn.last
    sparse_search.match_tight(*drawn.entries, drawn.price, *mates, *terms)
    reduced, (row_to_col, col_to_row) = drawn.reduced, drawn.mates
    for row in range(drawn.first, drawn.last):
        least = reduced[row].min()
        if row_to_col[row] >= 0 or least == FAR or (leaves and limit <= least):
            continue
        for col in np.flatnonzero(reduced[row] == least):
            loser = col_to_row[col]
            if loser >= 0:
                free = (col_to_row < 0) & (reduced[loser] <= reduced[loser, col])
                if not free.any():
                    continue
                drawn.pair(loser, free.argmax())
            drawn.pair(row, col)
            break
    assert np.array_equal(mates[0], row_to_col)
    assert np.array_equal(mates[1], col_to_row)


@pytest.mark.parametrize("limit", [None, 1, 2])
@pytest.mark.parametrize("seed", range(10))
def test_minima_and_tight_pairs_are_those_of_the_rows(seed, limit):
    drawn = Drawn(seed)
    indptr, indices, costs = drawn.entries
    row_dual = np.full(drawn.nrows, -1)
    given = indptr, indices, costs, drawn.price
    sparse_search.row_duals(*given, FAR, row_dual, drawn.first, drawn.last)
    rows = slice(drawn.first, drawn.last)
    least = drawn.reduced[rows].min(axis=1, initial=FAR)
    assert np.array_equal(row_dual[rows], least)
    ends, cols = np.full(drawn.nrows + 1, -1), np.full(indices.size, -1)
    terms = limit or 0, limit is not None, FAR
    sparse_search.tight_pairs(*given, *terms, ends, cols, drawn.first, drawn.last)
    is_tight = (drawn.reduced[rows] == least[:, None]) & (least < FAR)[:, None]
    if limit is not None:
        is_tight &= (least < limit)[:, None]
    assert ends[1:][rows].tolist() == is_tight.sum(axis=1).cumsum().tolist()
    begin, count = indptr[drawn.first], is_tight.sum()
    assert cols[begin : begin + count].tolist() == is_tight.nonzero()[1].tolist()
    assert (np.delete(cols, np.s_[begin : begin + count]) == -1).all()


@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("most_scans", [1, 4, 40])
def test_bids_are_those_of_the_dense_kernel(most_scans, limit):
    """In all that changes: pairs, prices, rows that wait, and what is counted."""
    for seed in range(30):
        drawn = Drawn(seed, share=1)
        drawn.match(0.3)
        free = np.flatnonzero(drawn.row_to_col < 0).astype(np.int32)
        terms = limit or 0, limit is not None, FAR, most_scans
        ends = []
        for kernel, values, more in (
            (sparse_search.reduce_rows, drawn.entries, ()),
            (dense_search.reduce_rows, (drawn.costs,), (np.empty(LANES, np.int64),)),
        ):
            state = *copies(drawn.price, *drawn.mates, free), np.zeros(6, np.int64)
            assert kernel(*values, *state, *more, *terms, NEVER)
            ends.append(state)
        for one, other in zip(*ends):
            assert np.array_equal(one, other)
        assert ends[0][-1][SCANS] <= most_scans


@pytest.mark.parametrize(("budget", "scans"), [(1, 1), (5, 1), (6, 2), (10, 2), (11, 3)])
def test_a_bid_spends_its_entries_and_one_more(budget, scans):
    costs = np.arange(16).reshape(4, 4) % 5
    rows = np.arange(4, dtype=np.int32)
    entries = np.arange(0, 17, 4, dtype=np.int32), np.tile(rows, 4), costs.ravel()
    mates, spot = np.full((2, 4), -1, np.int32), np.zeros(6, np.int64)
    assert not sparse_search.reduce_rows(
        *entries, np.zeros(4, int), *mates, rows, spot, 0, False, FAR, NEVER, budget
    )
    assert spot[SCANS] == scans


# -- searches --------------------------------------------------------------------------------------


class Search:
    """All that `augment` works on, of one thread alone or of one that shares the columns."""

    def __init__(self, drawn, me=None, owner=()):
        self.entries, ncols = drawn.entries, drawn.ncols
        self.price, self.row_to_col, self.col_to_row = copies(drawn.price, *drawn.mates)
        self.free = np.flatnonzero(self.row_to_col < 0).astype(np.int32)
        self.spot, self.mark = np.zeros(SPOTS, np.int64), np.zeros(2, np.int64)
        self.spot[HEAD] = -1
        pred, near, tree, reached = np.full((4, ncols), -1, np.int32)
        count = self.entries[1].size + 1
        keys, heap = np.empty(count, np.int64), np.empty(count, np.int32)
        self.owner = np.array(owner, np.int32)
        self.room = Room(
            self.owner,
            me or 0,
            np.full(ncols, FAR),
            pred,
            self.entries[0][:-1].copy(),
            near,
            keys,
            heap,
            tree,
            reached,
        )

    def augment(self, budget=NEVER, limit=None):
        return sparse_search.augment(
            self.entries, (self.price, self.row_to_col, self.col_to_row), self.free,
            self.spot, self.mark, tuple(self.room),
            (np.int64(limit or 0), limit is not None, LOW, FAR), budget,
        )  # fmt: skip


def by_hand(*rows, price=None):
    """A problem of rows that are given as {column: cost}."""
    drawn = Drawn(0)
    drawn.nrows, drawn.ncols = len(rows), 1 + max(col for row in rows for col in row)
    drawn.is_stored = np.zeros((drawn.nrows, drawn.ncols), bool)
    drawn.costs = np.zeros((drawn.nrows, drawn.ncols), int)
    for row, costs in enumerate(rows):
        for col, cost in costs.items():
            drawn.is_stored[row, col], drawn.costs[row, col] = True, cost
    drawn.price = np.zeros(drawn.ncols, int) if price is None else np.array(price)
    drawn.row_to_col = np.full(drawn.nrows, -1, np.int32)
    drawn.col_to_row = np.full(drawn.ncols, -1, np.int32)
    return drawn


@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("budget", [1, 6])
def test_a_search_goes_on_where_its_budget_ended(budget, limit):
    """To the same pairs and prices, and by no entry more."""
    pauses = 0
    for seed in range(40):
        drawn = Drawn(seed, prices=1)
        whole, parts = Search(drawn), Search(drawn)
        outcome = whole.augment(limit=limit)
        before = 0
        while (ended := parts.augment(budget, limit)) == SPENT:
            pauses += 1
            work = parts.spot[SCANS] - before
            assert budget <= work < budget + 1 + drawn.ncols
            before = int(parts.spot[SCANS])
        assert ended == outcome
        for name in ("row_to_col", "col_to_row", "price", "spot"):
            assert np.array_equal(getattr(parts, name), getattr(whole, name))
        for search in (whole, parts):
            assert (search.room.dist == FAR).all()
        rows = np.flatnonzero(whole.row_to_col >= 0)
        reduced = np.where(drawn.is_stored, drawn.costs - whole.price, FAR)
        assert (reduced[rows, whole.row_to_col[rows]] == reduced[rows].min(axis=1)).all()
        assert (outcome == STUCK) <= (rows.size < drawn.nrows)
        if limit is not None:
            assert (np.delete(reduced, rows, axis=0).min(axis=1, initial=FAR) >= limit).all()
    assert pauses > 20


def test_what_a_search_reads_is_counted():
    """Row 1 asks two columns, and then row 0, the mate of the nearer one, asks three."""
    drawn = by_hand({0: 1, 1: 1, 2: 9}, {0: 0, 3: 7})
    drawn.pair(0, 0)
    search = Search(drawn)
    assert search.augment() == FOUND
    assert search.row_to_col.tolist() == [1, 0]
    assert search.spot[SCANS] == 3 + 4


def test_a_search_that_meets_another_is_put_off():
    """Row 0 has taken column 0 when it meets thread 9 at column 1, and gives both up."""
    drawn = by_hand({0: 3, 1: 2}, {2: 1})
    search = Search(drawn, me=1, owner=[NOBODY, 9, NOBODY])
    assert search.augment() == FOUND
    assert search.row_to_col.tolist() == [-1, 2]
    assert (search.spot[KEPT], search.free[0], search.spot[NEXT]) == (1, 0, 2)
    assert search.owner.tolist() == [NOBODY, 9, NOBODY]
    assert (search.room.dist == FAR).all()


def test_a_column_that_is_too_far_needs_no_owner():
    search = Search(by_hand({0: 1, 1: 2}), me=1, owner=[NOBODY, 9])
    assert search.augment() == FOUND
    assert search.row_to_col.tolist() == [0]


@pytest.mark.parametrize(
    ("budget", "outcome", "matched", "put_off"),
    [(3, SPENT, [-1, -1], [0]), (4, FOUND, [0, -1], [1]), (7, FOUND, [0, 2], [])],
)
def test_a_thread_that_shares_columns_puts_off_what_its_budget_ends(
    budget, outcome, matched, put_off
):
    """Each search reads two columns; the rows after the first that is put off are not begun."""
    search = Search(by_hand({0: 1, 1: 2}, {1: 2, 2: 1}), me=1, owner=[NOBODY] * 3)
    assert search.augment(budget) == outcome
    assert search.row_to_col.tolist() == matched
    assert search.spot[NEXT] == (1 if outcome == SPENT else 2)
    assert search.free[: search.spot[KEPT]].tolist() == put_off
    assert (search.owner == NOBODY).all()


def test_the_price_of_a_column_is_read_again_when_it_is_owned(monkeypatch):
    """Another thread lowers that of column 0 before, which makes it farther than column 1."""
    interleave(monkeypatch, sparse_search)
    search = Search(by_hand({0: 1, 1: 3}), me=1, owner=[NOBODY] * 2)

    def cas(owner, col, before, after):
        search.price[0] = -4
        owner[col] = after
        return True

    monkeypatch.setattr(sparse_search, "cas", cas)
    assert search.augment() == FOUND
    assert search.row_to_col.tolist() == [1]
    assert search.mark[FRONT] == 3


def test_a_sum_beyond_the_range_of_integers_is_no_short_way():
    """From column 0 at 2**62, the row goes on to column 1 by as much again, or to column 2."""
    drawn = by_hand({0: 0, 1: 2**62, 2: 3}, {0: 2**62})
    drawn.pair(0, 0)
    search = Search(drawn)
    assert search.augment() == FOUND
    assert search.row_to_col.tolist() == [2, 0]
    assert search.mark[FRONT] == 2**62 + 3


@pytest.mark.parametrize("first", [1, 2, 3])
def test_the_place_of_a_mate_is_looked_up_again_if_it_is_another(first):
    """Row 1 has its entries at 1, 2 and 3, and column 4 is that at 2."""
    indptr, indices = np.array([0, 1, 4], np.int32), np.array([4, 1, 4, 7], np.int32)
    costs, price = np.array([9, 10, 20, 30]), np.arange(8)
    place = np.array([0, first], np.int32)
    paid = sparse_search.known_reduced_cost(indptr, indices, costs, price, place, 1, 4)
    assert (paid, place.tolist()) == (16, [0, 2])
