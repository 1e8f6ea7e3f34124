"""What the kernels of one rank do with its own rows and columns, on the CPU and without ranks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from gpumatch.cpu.assignment.hungarian.problem import far_of
from gpumatch.cpu.distributed import date2016, forests
from gpumatch.cpu.distributed.rows import DenseRows, SparseRows

FAR = far_of(np.dtype(np.int64))


# -- forests ---------------------------------------------------------------------------------------

#   own rows 0..3 are 10..13 of all; their columns
LISTS = [[0, 1], [1, 2], [], [2, 3, 0]]
INDPTR = np.cumsum([0, *map(len, LISTS)])
INDICES = np.concatenate(LISTS).astype(np.int32)


def offers_of(frontier, done=(), seen=(), budget=99, begin=0, count=0):
    """What `expand` returns, and the offers: column, row and root, by global numbers."""
    offers = np.full((9, 3), -1)
    marks = np.isin(np.arange(4), seen)
    came_back = forests.expand(
        np.array(frontier, np.int32), begin, budget, 10, INDPTR, INDICES,
        np.array([5, 6, 7, 5], np.int32), np.isin(np.arange(8), done), marks, offers, count,
    )  # fmt: skip
    return came_back, [tuple(offer) for offer in offers.tolist() if offer[0] >= 0], marks.tolist()


def test_each_unseen_column_is_offered_its_first_row():
    (k, count, read), offers, seen = offers_of([0, 1, 3])
    assert (k, count, read) == (3, 4, 7)
    assert offers == [(0, 10, 5), (1, 10, 5), (2, 11, 6), (3, 13, 5)]
    assert seen == [True] * 4
    (_, count, read), offers, seen = offers_of([3], seen=[2, 3])
    assert (count, read, offers, seen) == (1, 3, [(0, 13, 5)], [True, False, True, True])


def test_rows_of_trees_that_have_a_path_offer_nothing():
    (k, count, read), offers, _ = offers_of([0, 1, 2], done=[5])
    assert (k, count, read) == (3, 2, 2)
    assert offers == [(1, 11, 6), (2, 11, 6)]


def test_offers_stop_when_the_budget_of_edges_is_spent_and_go_on_there():
    assert offers_of([0, 1, 3], budget=2)[0] == (1, 2, 2)
    assert offers_of([0, 1, 3], budget=3)[0] == (2, 3, 4)
    (k, count, read), offers, _ = offers_of([0, 1, 3], budget=2, begin=1, seen=[0, 1], count=2)
    assert (k, count, read, offers) == (2, 3, 2, [(2, 11, 6)])


def test_own_columns_join_by_their_first_offer():
    """Columns 20..23; 20 is free, 21 and 22 have rows, 23 is in a tree. Root 4 has a path."""
    offers = np.array(
        [[21, 8, 2], [20, 9, 3], [21, 7, 3], [22, 6, 4], [23, 5, 2], [22, 5, 2], [20, 1, 2]]
    )
    col_to_row, col_root = np.array([-1, 30, 0, 32]), np.array([-1, -1, -1, 0])
    parent, done = np.full(4, -1), np.isin(np.arange(5), [4])
    followers, ends = np.full((4, 2), -1), np.full((4, 2), -1)
    assert forests.join(offers, 20, col_to_row, col_root, parent, done, followers, ends) == (2, 1)
    assert col_root.tolist() == [3, 2, 2, 0]
    assert parent.tolist() == [9, 8, 5, -1]
    assert followers[:2].tolist() == [[30, 2], [0, 2]]
    assert ends[:1].tolist() == [[3, 20]]


# -- the paper's -----------------------------------------------------------------------------------


def with_ties(seed, shape=(12, 5)):
    """Costs of which many are tight at the time 2, some forbidden, and duals and times."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, shape)
    values[rng.random(shape) < 0.2] = FAR
    row_dual, col_dual = -rng.integers(0, 2, shape[0]), -rng.integers(0, 2, shape[1])
    return values, (row_dual, col_dual), rng.integers(0, 3, shape[0])


def times_of(values, duals, time):
    slack = values - duals[0][:, None] - duals[1] + time[:, None]
    return np.where(values < FAR, slack, FAR)


@pytest.mark.parametrize("budget", [1, 5, 9, 2**20])
@pytest.mark.parametrize("seed", range(3))
def test_tight_pairs_are_compressed_into_lists(budget, seed):
    """There are more than the first room holds, which is for four rows."""
    values, duals, time = with_ties(seed)
    beats = []
    rows = date2016.CompressedRows(values, FAR, lambda: bool(beats.append(1)), budget)
    counts, cols = rows.compress(duals, time, 4)
    expected = times_of(values, duals, time) <= 4
    assert counts.tolist() == expected.sum(axis=1).tolist()
    assert cols.tolist() == np.nonzero(expected)[1].tolist()
    assert cols.size > 4 * 5
    assert len(beats) >= 12 * 5 // (budget + 4)
    assert budget < 60 or len(beats) <= 3


def test_compressing_ends_where_it_is_to_stop():
    values, duals, time = with_ties(0)
    rows = date2016.CompressedRows(values, FAR, lambda: True, budget=5)
    counts, cols = rows.compress(duals, time, 4)
    assert counts[0] == cols.size > 0
    assert not counts[1:].any()


@pytest.mark.parametrize("budget", [1, 2**20])
def test_the_soonest_pair_is_of_an_uncovered_row_and_an_uncovered_column(budget):
    for seed in range(20):
        values, duals, time = with_ties(seed)
        rng = np.random.default_rng(seed)
        row_cover, col_cover = rng.random(12) < 0.7, rng.random(5) < 0.5
        rows = date2016.CompressedRows(values, FAR, lambda: False, budget)
        found = rows.soonest(duals, time, row_cover, col_cover)
        times = times_of(values, duals, time)[np.ix_(~row_cover, ~col_cover)]
        assert found == times.min(initial=FAR)


def test_the_frontier_grows_by_the_mates_of_uncovered_columns():
    """Rows 0 and 1, of trees 7 and 8; row 1 has column 2. Column 0 is covered, column 3 is free."""
    indptr, indices = np.array([0, 3, 6]), np.array([0, 1, 3, 1, 2, 4])
    col_to_row = np.array([5, 2, 1, -1, 3])
    row_cover, col_cover = np.ones(6, bool), np.isin(np.arange(5), [0])
    row_cover[:2] = False
    pred, root = np.full(5, -1), np.array([7, 8, -1, -1, -1, -1])
    is_end, following = np.zeros(5, bool), np.full(6, -1)
    count = date2016.expand(
        np.array([0, 1]), indptr, indices, col_to_row, row_cover, col_cover, pred, root, is_end,
        following,
    )  # fmt: skip
    assert following[:count].tolist() == [2, 3]
    assert pred.tolist() == [-1, 0, -1, 0, 1]
    assert is_end.tolist() == [False, False, False, True, False]
    assert np.flatnonzero(~row_cover).tolist() == [0, 1, 2, 3]
    assert np.flatnonzero(col_cover).tolist() == [0, 1, 4]
    assert root.tolist() == [7, 8, 7, 8, -1, -1]


# -- rows ------------------------------------------------------------------------------------------


def both_kinds(values, budget):
    stored = values < FAR
    matrix = csr_array((values[stored], stored.nonzero()), shape=values.shape)
    entries = matrix.indptr, matrix.indices, matrix.data
    return (
        DenseRows(values, FAR, lambda: False, budget),
        SparseRows(entries, FAR, lambda: False, budget),
    )


@pytest.mark.parametrize("budget", [1, 7, 2**20])
@pytest.mark.parametrize("seed", range(10))
def test_rows_in_csr_do_as_rows_of_a_matrix(seed, budget):
    values, (_, col_dual), time = with_ties(seed, (9, 7))
    results = []
    for rows in both_kinds(values, budget):
        least = np.empty(9, np.int64)
        rows.least(col_dual, least)
        duals = np.where(least < FAR, least, 0) - 1, col_dual
        slacks, near, before = np.full(7, FAR), np.full(7, FAR), np.full(7, -1, np.int32)
        near[2] = 1
        rows.least_slacks(*duals, slacks)
        rows.offer(np.arange(0, 9, 2, dtype=np.int32), duals, time, near, before)
        mates = np.full(9, -1, np.int32), np.full(7, -1, np.int32)
        mates[0][3], mates[1][4] = 4, 3
        rows.match_tight(duals[0] + 1, col_dual, *mates)
        results.append([least, slacks, near, before, *mates])
    reduced = np.where(values < FAR, values - col_dual, FAR)
    assert np.array_equal(results[0][0], reduced.min(axis=1))
    row_to_col, col_to_row = results[1][-2:]
    matched = np.flatnonzero(row_to_col >= 0)
    assert np.array_equal(col_to_row[row_to_col[matched]], matched)
    assert (row_to_col[3], col_to_row[4]) == (4, 3)
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("budget", "blocks"), [(1, 5), (4, 4), (5, 4), (6, 2), (12, 1)])
def test_rows_in_csr_return_after_a_budget_of_entries(budget, blocks):
    """Rows of 2, 2, 2, 5 and 1 entries."""
    indptr, beats = np.array([0, 2, 4, 6, 11, 12]), []
    entries = indptr, np.arange(12, dtype=np.int32) % 5, np.arange(12)
    rows = SparseRows(entries, FAR, lambda: bool(beats.append(1)), budget)
    out = np.full(5, FAR)
    rows.least_slacks(np.zeros(5, int), np.zeros(5, int), out)
    assert out.tolist() == [0, 1, 2, 3, 4]
    assert len(beats) == blocks


@pytest.mark.parametrize(("budget", "blocks"), [(1, 6), (2, 6), (4, 3), (5, 3), (12, 1), (13, 1)])
def test_rows_of_a_matrix_return_after_a_budget_of_entries(budget, blocks):
    beats = []
    rows = DenseRows(np.arange(12).reshape(6, 2), FAR, lambda: bool(beats.append(1)), budget)
    out = np.full(2, FAR)
    rows.least_slacks(np.zeros(6, int), np.zeros(2, int), out)
    assert out.tolist() == [0, 1]
    assert len(beats) == blocks


@pytest.mark.parametrize("nrows", [3, 4, 5, 9])
def test_lists_may_fill_their_room_to_the_last_place(nrows):
    """There is room for four rows of equal costs at first."""
    beats = []
    values, duals = np.ones((nrows, 6), int), (np.zeros(nrows, int), np.zeros(6, int))
    rows = date2016.CompressedRows(values, FAR, lambda: beats.append(1) or len(beats) > 5)
    counts, cols = rows.compress(duals, np.zeros(nrows, int), 1)
    assert counts.tolist() == [6] * nrows
    assert cols.tolist() == [*range(6)] * nrows
