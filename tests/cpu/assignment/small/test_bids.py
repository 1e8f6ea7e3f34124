"""Rows that bid under a limit: how much they read, prices that paths may begin from, and ties."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from gpumatch.cpu.assignment.small.bids import STEPS, _bid, match_under_limit
from gpumatch.cpu.assignment.small.search import COL, LINKS, MATE, PRICE, VECTORS, WAITS
from tests.frames import KINDS, frame

FLOOR = -(2.0**1000)


def state(table):
    rows, cols = table.shape
    vectors, links = np.empty((VECTORS, cols)), np.empty((LINKS, cols), np.int32)
    return vectors, links, np.empty((2, rows), np.int64)


@pytest.mark.parametrize("kind", KINDS)
def test_prices_prove_what_bids_have_found(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(60):
        rows, cols = np.sort(rng.integers(1, 40, 2)).tolist()
        table, limit = frame(rng, kind, rows, cols), float(rng.choice([0.02, 0.25, 1.0]))
        vectors, links, found = state(table)
        waiting = _bid(table, vectors, links, found, limit, None, None, FLOOR)
        col, price, mate = found[COL], vectors[PRICE], links[MATE]
        assert (col == WAITS).sum() == waiting
        assert (price <= 0).all()
        assert (price[mate < 0] == 0).all()
        has = (col >= 0).nonzero()[0]
        assert (mate[col[has]] == has).all()
        assert (mate >= 0).sum() == has.size
        distances = table - price
        own = distances[has, col[has]]
        assert (own <= limit + 1e-15).all()
        assert (own <= distances[has].min(axis=1, initial=np.inf) + 1e-15).all()
        given_up = (col == -1).nonzero()[0]
        assert (distances[given_up] >= limit).all()
        assert (table[given_up][:, mate < 0] > limit).all()


def test_a_frame_of_a_tracker_needs_no_path():
    """Each detection is near its own track, so each row looks once or twice."""
    rng = np.random.default_rng(1)
    places = 100 * rng.random((60, 2))
    seen = places[rng.permutation(60)] + 0.1 * rng.standard_normal((60, 2))
    table = ((places[:, None] - seen) ** 2).sum(axis=2)
    vectors, links, found = state(table)
    assert _bid(table, vectors, links, found, 4.0, None, None, FLOOR) == 0
    assert (found[COL] == table.argmin(axis=1)).all()


def test_rows_wait_once_the_steps_are_used_up():
    """All rows want the same columns, which bids alone would part after many steps."""
    rng = np.random.default_rng(2)
    table = np.add.outer(rng.random(50), rng.random(50)) + 1e-3 * rng.random((50, 50))
    vectors, links, found = state(table)
    waiting = _bid(table, vectors, links, found, 10.0, None, None, FLOOR)
    assert waiting > 5
    assert STEPS == 1
    assert match_under_limit(table, vectors, links, found, 10.0, None, None, FLOOR, np.inf)
    best = table[linear_sum_assignment(table)].sum()
    assert np.isclose(table[np.arange(50), found[COL]].sum(), best, rtol=1e-14)


def test_a_tie_is_parted_by_an_unmatched_column():
    table = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
    vectors, links, found = state(table)
    assert _bid(table, vectors, links, found, 1.0, None, None, FLOOR) == 1  # the limit is tied, too
    for limit in (1.0, 1.5):
        assert match_under_limit(table, vectors, links, found, limit, None, None, FLOOR, np.inf)
        assert sorted(found[COL].tolist()) == [0, 1, 2]
