"""Exact paths after the auction: what comes between them when they read much, and what they read.

Tuning makes them seem long in small problems, so that joint searches, finer epsilons and bids of
columns follow.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.cpu.assignment.sparse import engine as sparse_engine
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.cpu.assignment.sparse.auction import Auction
from gpumatch.cpu.assignment.sparse.joint_search import JointSearch
from gpumatch.cpu.assignment.sparse.tuning import SHORT
from graphs import adversarial
from tests.cpu.assignment.solved import Solved, least
from tests.cpu.assignment.tuned import tune


@pytest.fixture(autouse=True)
def long(monkeypatch):
    """All problems have auctions that leave much to do, and all paths seem to read much."""
    untried = SHORT._replace(bids=0, unmatched=-1)
    tune(monkeypatch, sparse_tuning, small=0, trial=untried, trial_with_spare=untried)
    tune(monkeypatch, sparse_tuning, watched=0, step=0, fewest=1, few=4, few_paths=0, loose=1)


def calls_of(monkeypatch, kind, name):
    """What a method returns, in a list that fills."""
    seen, method = [], getattr(kind, name)

    def spy(self, *args):
        seen.append(method(self, *args))
        return seen[-1]

    monkeypatch.setattr(kind, name, spy)
    return seen


def drawn(seed, shape, kind):
    """Costs of many orders of magnitude, at a quarter of the pairs and on a diagonal; sparse."""
    rng = np.random.default_rng(seed)
    is_stored = (rng.random(shape) < 0.25) | np.eye(*shape, dtype=bool)
    values = np.rint(4.0 ** rng.uniform(0, 12, is_stored.sum()))
    values = values / 4096 if kind == "floats" else values.astype(np.int64)
    return csr_array((values, is_stored.nonzero()), shape=shape)


def check(matrix, a, limit=None):
    """It is proven, and SciPy finds the same total."""
    gm.verify(matrix, a)
    filled = np.full(matrix.shape, math.inf)
    filled[matrix.tocoo().coords] = matrix.data
    total = a.objective + (limit or 0) * (matrix.shape[0] - a.size)
    assert math.isclose(total, least(filled, limit), rel_tol=1e-12)


@pytest.mark.usefixtures("no_rival")
@pytest.mark.parametrize("kind", ["integers", "floats"])
@pytest.mark.parametrize("shape", [(60, 60), (60, 64), (60, 90)], ids=str)
@pytest.mark.parametrize("has_limit", [False, True], ids=["full", "limit"])
def test_the_optimum_whatever_comes_between_paths(kind, shape, has_limit, monkeypatch):
    finer = calls_of(monkeypatch, Auction, "hold_finer")
    reverse = calls_of(monkeypatch, Auction, "hold_reverse")
    rounds = calls_of(monkeypatch, JointSearch, "round")
    for seed in range(8):
        matrix = drawn(seed, shape, kind)
        wish, limit = {"threads": 1 + seed % 2, "algorithm": "engine"}, None
        if has_limit:
            limit = np.quantile(matrix.data, 0.8).astype(matrix.dtype).item()
            wish |= {"cardinality": "any", "cost_limit": limit}
        check(matrix, gm.assign(matrix, **wish), limit)
    may_leave = has_limit or shape[0] < shape[1]
    assert bool(finer) == may_leave
    assert bool(rounds) == (not may_leave)
    assert bool(reverse) == (shape[0] < shape[1])


@pytest.mark.usefixtures("no_rival")
def test_ways_take_turns_if_no_epsilon_helps(monkeypatch):
    """The way that has matched more rows for what it has read comes next."""
    monkeypatch.setattr(Auction, "can_fall", property(lambda self: False))
    tune(monkeypatch, sparse_tuning, slow=2)  # no search is good enough
    rounds = calls_of(monkeypatch, JointSearch, "round")
    for seed in range(8):
        matrix = drawn(seed, (80, 80), "floats")
        a = gm.assign(matrix, threads=1, algorithm="engine")
        check(matrix, a)
        ways = [phase["step"] for phase in a.stats["trace"]]
        assert "paths" in ways
    assert len(rounds) > 8


def test_a_row_without_a_path_ends_them(monkeypatch):
    """A joint search tells; no row and no epsilon is tried after it."""
    monkeypatch.setattr(Auction, "can_fall", property(lambda self: False))
    rounds = calls_of(monkeypatch, JointSearch, "round")
    rng = np.random.default_rng(1)
    matrix = np.where(rng.random((40, 40)) < 0.3, rng.random((40, 40)), math.inf)
    matrix[:12] = math.inf
    matrix[:12, :9] = rng.random((12, 9))  # so that three rows have no column
    solved = Solved(sparse_engine.run, matrix, kind="sparse")
    assert solved.ended
    assert (solved.row_to_col < 0).any()
    assert rounds.count(0) <= 1


def test_the_finest_epsilon_of_integers_leaves_few_rows(monkeypatch):
    """With more steps than rows, all pairs are tight after prices are rounded."""
    left, repair = [], Auction.repair

    def spy(self):
        repair(self)
        left.append((self.epsilon.now, int((self.paths.row_to_col < 0).sum())))

    monkeypatch.setattr(Auction, "repair", spy)
    tune(monkeypatch, sparse_tuning, slow=2, fewest=4, few=16, finest=1 / 4)
    for seed in range(3):
        left.clear()
        matrix = adversarial.make("wide_integers", 600, high=1000, seed=seed)
        check(matrix, gm.assign(matrix, threads=1, algorithm="engine"))
        epsilons = [epsilon for epsilon, _ in left]
        assert epsilons == sorted(epsilons, reverse=True)
        assert left[0][1] > 16
        assert left[-1][0] == 1
        assert left[-1][1] <= 16


# -- what they read --------------------------------------------------------------------------------


def costs_that_hurt(name):
    """A problem, its limit as a quantile, and a bound of its readings."""
    if name == "wide range":  # read 765 times without a finer epsilon
        return adversarial.make("decades", 3000, seed=2), 0.9, 300
    if name == "few columns to spare":  # read 267 times without bids of columns
        return csr_array(adversarial.make("far_clusters", 3000, seed=1)[np.arange(2700)]), None, 180
    if name == "columns to spare":  # read 6.8 times without a trial
        return csr_array(adversarial.make("wide_integers", 8000, seed=1)[np.arange(7000)]), None, 4
    if name == "squares of decades":  # read 455 times without a rival
        matrix = adversarial.make("decades", 1000, 8, 20.0, seed=1)
        matrix.data = np.square(matrix.data)
        return matrix, 0.7, 300
    if name == "wars without end":  # epsilon rose as often as it fell, for ever
        matrix = adversarial.make("far_clusters", 3619, 4, 0.58463, 333.57, seed=1)
        matrix.data = np.ceil(200 * matrix.data / matrix.data.max())
        return csr_array(matrix[np.arange(3258)]), None, 60
    if name == "most rows must cross":  # read 127 times without a search after a war
        return adversarial.make("far_clusters", 1318, 3, 0.161, 3243.0, seed=1), None, 80
    matrix = adversarial.make("far_clusters", 3000, 2, 0.337, 463.0, seed=1)
    matrix.data = np.ceil(8 * matrix.data / matrix.data.max())
    return matrix, None, 45  # read 479 times with ever finer epsilons


@pytest.mark.parametrize(
    "name",
    [
        *("wide range", "few columns to spare", "columns to spare"),
        *("few values", "most rows must cross"),
        *("squares of decades", "wars without end"),
    ],
)
def test_readings(name, monkeypatch):
    monkeypatch.setattr(sparse_tuning, "DEFAULT", sparse_tuning.Tuning())
    matrix, share, most = costs_that_hurt(name)
    wish = {}
    if share is not None:
        wish = {"cardinality": "any", "cost_limit": float(np.quantile(matrix.data, share))}
    a = gm.assign(matrix, threads=1, **wish)
    gm.verify(matrix, a)
    assert sum(phase.get("scans", 0) for phase in a.stats["trace"]) < most * matrix.nnz
