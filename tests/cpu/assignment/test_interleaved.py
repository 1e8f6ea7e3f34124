"""Bids and searches whose threads take turns in a drawn order, at each atomic operation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpumatch.cpu.assignment.dense import (
    candidate_bids,
    candidate_paths,
    candidate_search,
    candidates,
)
from gpumatch.cpu.assignment.dense import engine as dense_engine
from gpumatch.cpu.assignment.dense import tuning as dense_tuning
from gpumatch.cpu.assignment.sparse import engine as sparse_engine
from gpumatch.cpu.assignment.sparse import paths as sparse_paths
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.cpu.assignment.sparse.tuning import LONG, SHORT
from gpumatch.cpu.searches import bidding
from gpumatch.cpu.searches import sparse as sparse_search
from tests.cpu.assignment.solved import Solved, least
from tests.cpu.assignment.tuned import tune
from tests.cpu.interleaved import interleave

TRIALS = {
    "paths": SHORT._replace(unmatched=1, reads=math.inf),
    "honest bids": LONG,
    "auction": SHORT._replace(unmatched=-1),
}


@pytest.fixture(autouse=True)
def crowd(monkeypatch):
    """Threads for a few rows each."""
    monkeypatch.setattr(sparse_paths, "EACH", 1)
    for tuning in sparse_tuning, dense_tuning:
        tune(monkeypatch, tuning, each=1, few=1, small=-1)


def problems(shape, share, has_limit):
    """Some with many equal costs and some with few, and a limit that a few rows rather pay."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        matrix = rng.integers(0, rng.choice([4, 100]), shape).astype(float)
        is_allowed = (rng.random(shape) < share) | np.eye(*shape, dtype=bool)
        limit = float(np.quantile(matrix[is_allowed], 0.7)) if has_limit else None
        yield seed, np.where(is_allowed, matrix, math.inf), limit


def check(solved):
    solved.check_optimal(1e-9)
    assert solved.total == least(solved.matrix, solved.limit)


@pytest.mark.parametrize("trial", TRIALS)
@pytest.mark.parametrize("has_limit", [False, True])
@pytest.mark.parametrize("shape", [(12, 12), (12, 15)], ids=str)
def test_any_order_of_turns_in_sparse_costs(trial, shape, has_limit, monkeypatch):
    tune(monkeypatch, sparse_tuning, trial=TRIALS[trial], trial_with_spare=TRIALS[trial], chained=0)
    taken = 0
    for seed, matrix, limit in problems(shape, 0.4, has_limit):
        turns = interleave(monkeypatch, bidding, sparse_search, seed=seed)
        check(Solved(sparse_engine.run, matrix, limit=limit, kind="sparse", threads=3))
        taken += turns.taken
    assert taken > 100


def test_any_order_of_turns_in_dense_costs(monkeypatch):
    """Rows know four columns, and look again where bids have made these dear."""
    tune(monkeypatch, dense_tuning, middle=-1, trial=-1, lines=0)
    callers = candidate_bids, candidate_paths, candidate_search
    for module in callers:
        monkeypatch.setattr(module, "KNOWN", 4)
    taken = 0
    for seed, matrix, _ in problems((12, 12), 1, False):
        turns = interleave(monkeypatch, candidates, *callers, seed=seed)
        check(Solved(dense_engine.run, matrix, threads=3))
        taken += turns.taken
    assert taken > 100
