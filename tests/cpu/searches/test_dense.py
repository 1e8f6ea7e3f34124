"""The kernels of paths in dense costs, against plain loops and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpumatch.cpu.searches import dense as dense_search
from gpumatch.cpu.searches.dense import LANES
from gpumatch.cpu.searches.paths import bid, take_nearest
from gpumatch.cpu.searches.state import FOUND, HEAD, KEPT, NEXT, SCANS, SPENT

FAR = math.inf


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("seed", range(10))
def test_columns_are_priced_at_their_least_costs_and_given_to_the_first_rows(seed, dtype):
    """In parts, too; and a row takes the first column that is its own."""
    rng = np.random.default_rng(seed)
    nrows, ncols = rng.integers(1, 40, 2)
    costs = rng.integers(0, 4, (nrows, ncols)).astype(dtype)
    price, nearest = np.full(ncols, 9, dtype), np.full(ncols, -7, np.int32)
    cut = int(rng.integers(0, nrows + 1))
    for first, last in ((0, cut), (cut, nrows)):
        dense_search.lower_to_minima(costs, price, nearest, first, last)
        assert np.array_equal(price, costs[:last].min(axis=0, initial=9))
        if last:
            assert np.array_equal(nearest, costs[:last].argmin(axis=0))
    row_to_col, col_to_row = np.full(nrows, -1, np.int32), np.full(ncols, -1, np.int32)
    take_nearest(nearest, row_to_col, col_to_row)
    for row in range(nrows):
        own = np.flatnonzero(nearest == row)
        assert row_to_col[row] == (own[0] if own.size else -1)
        assert (col_to_row[own] == np.where(np.arange(own.size) == 0, row, -1)).all()


NOTHING = {"mates": [-1, 0, 1], "price": [-1, -1, 0], "waiting": [], "following": [7]}
WAITS = {**NOTHING, "waiting": [0]}
TAKES = {"free": {"mates": [2, 0, 1]}, "held": {"mates": [0, -1, 1], "following": [1, 7]}}
BIDS = {
    "of a free column": ((2, 2, 5, 0), None, {**NOTHING, **TAKES["free"], "price": [-1, -1, -3]}),
    "of a row's": ((2, 0, 5, 1), None, {**NOTHING, **TAKES["held"], "price": [-4, -1, 0]}),
    "a tie": ((2, 0, 2, 2), None, {**NOTHING, **TAKES["free"]}),
    "a tie of rows'": ((2, 0, 2, 1), None, {**NOTHING, "mates": [1, 0, -1], "waiting": [2]}),
    "a tie with a free one first": ((2, 2, 2, 0), None, {**NOTHING, **TAKES["free"]}),
    "a tie with one not known": ((2, 0, 2, -1), None, WAITS),
    "the only one": ((2, 0, FAR, -1), None, WAITS),
    "the only one, free": ((2, 2, FAR, -1), None, {**NOTHING, **TAKES["free"]}),
    "none": ((FAR, -1, FAR, -1), None, WAITS),
    "none, but the limit": ((FAR, -1, FAR, -1), 9, NOTHING),
    "as dear as the limit": ((2, 2, 5, 0), 2, NOTHING),
    "dearer than the limit": ((2, 0, 5, 1), 1, NOTHING),
    "a limit before the second": (
        (2, 0, 5, 1), 3, {**NOTHING, **TAKES["held"], "price": [-2, -1, 0]}
    ),
    "a limit after the second": (
        (2, 0, 5, 1), 6, {**NOTHING, **TAKES["held"], "price": [-4, -1, 0]}
    ),
    "the only one, and a limit": (
        (2, 0, FAR, -1), 4, {**NOTHING, **TAKES["held"], "price": [-3, -1, 0]}
    ),
    "too fine for the price": ((0.25, 0, math.nextafter(0.25, 1), 1), None, WAITS),
    "too fine for the price, of a tie": ((0.25, 0, math.nextafter(0.25, 1), 2), None, WAITS),
}  # fmt: skip
"""Least reduced costs with their columns, the limit, and what follows.

Row 0 bids, rows 1 and 2 have the columns 0 and 1, column 2 is free; row 7 is next.
"""


@pytest.mark.parametrize(("offers", "limit", "expected"), BIDS.values(), ids=BIDS)
def test_bids_by_hand(offers, limit, expected):
    one, col, two, other = offers
    price = np.array([-1.0, -1.0, 0.0])
    row_to_col, col_to_row = np.array([-1, 0, 1]), np.array([1, 2, -1])
    free, spot = np.array([8, 0, 7]), np.zeros(6, np.int64)
    spot[NEXT] = 2
    bid(
        0, float(one), col, float(two), other, price, row_to_col, col_to_row, free, spot,
        float(limit or 0), limit is not None, FAR,
    )  # fmt: skip
    assert row_to_col.tolist() == expected["mates"]
    held = {col: row for row, col in enumerate(expected["mates"]) if col >= 0}
    assert col_to_row.tolist() == [held.get(col, -1) for col in range(3)]
    assert price.tolist() == expected["price"]
    assert free[: spot[KEPT]].tolist() == expected["waiting"]
    assert free[spot[NEXT] :].tolist() == expected["following"]


@pytest.mark.parametrize("limit", [None, 3.0])
@pytest.mark.parametrize("lines", [1, 3])
def test_a_search_goes_on_where_its_budget_ended(lines, limit):
    """It reads as many lines as the budget has, and none again; rows pay their least in the end."""
    pauses = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        nrows, ncols = np.sort(rng.integers(1, 12, 2))
        costs = rng.integers(0, 9, (nrows, ncols)).astype(float)
        ends = []
        for budget in (10**9, lines * ncols):
            price = np.zeros(ncols)
            row_to_col, col_to_row = (np.full(count, -1, np.int32) for count in (nrows, ncols))
            spot, mark = np.zeros(6, np.int64), np.zeros(2)
            spot[HEAD] = -1
            dist, reach, least = np.empty(ncols), np.empty(ncols), np.empty(LANES)
            pred, tree = np.empty((2, ncols), np.int32)
            free = np.arange(nrows, dtype=np.int32)
            outcome = SPENT
            while outcome == SPENT:
                before = spot[SCANS]
                outcome = dense_search.augment(
                    costs, (price, row_to_col, col_to_row), free, spot, mark,
                    (dist, pred, least, tree, reach),
                    (limit or 0.0, limit is not None, -FAR, FAR), budget,
                )  # fmt: skip
                assert (spot[SCANS] - before == lines) or outcome != SPENT
                pauses += outcome == SPENT
            assert outcome == FOUND
            ends.append((price.tolist(), row_to_col.tolist(), col_to_row.tolist(), spot[SCANS]))
            reduced = costs - price
            row_dual, rows = reduced.min(axis=1), np.flatnonzero(row_to_col >= 0)
            assert (reduced[rows, row_to_col[rows]] == row_dual[rows]).all()
            assert limit is None or (row_dual[row_to_col < 0] >= limit).all()
            assert limit is not None or rows.size == nrows
        assert ends[0] == ends[1]
    assert pauses > 10
