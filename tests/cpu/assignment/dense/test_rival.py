"""Paths that go on if the auction takes too long: when they do, and that either way ends right."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.adversary import Problem
from gpumatch.cpu.assignment import shortest_augmenting_path
from gpumatch.cpu.assignment.dense import engine
from gpumatch.cpu.assignment.dense import tuning as dense_tuning
from gpumatch.cpu.assignment.dense.paths import DensePaths
from gpumatch.cpu.assignment.dense.rival import Rival
from tests.cpu.assignment.solved import Solved, Trace, problem
from tests.cpu.assignment.tuned import tune

FLOATS = Problem("clusters", {"nrows": 150}).costs()
TIED = Problem("clusters", {"nrows": 150, "share": 0.95}, "many values").costs()
INTEGERS = TIED.astype(np.int64)
ALL = pytest.mark.parametrize("matrix", [FLOATS, TIED, INTEGERS], ids=["floats", "tied", "int"])


@pytest.fixture(autouse=True)
def soon_auctions(monkeypatch):
    tune(monkeypatch, dense_tuning, small=-1, few=1, patience=-1, trial=-1, ties=math.inf)


def steps(solved):
    return [phase["step"] for phase in solved.control.phases]


@ALL
@pytest.mark.parametrize("middle", [-1, 2**20])
@pytest.mark.parametrize("threads", [1, 2])
def test_paths_end_what_an_auction_began(matrix, middle, threads, monkeypatch):
    tune(monkeypatch, dense_tuning, middle=middle, lines=1e-9, faster=1e9)
    solved = Solved(engine.run, matrix, threads=threads)
    assert "auction" not in steps(solved)  # a phase that has not ended is not told
    assert steps(solved)[-1] == "paths"
    solved.check_optimal(1e-12)


@ALL
def test_an_auction_is_left_alone_while_paths_seem_long(matrix, monkeypatch):
    tune(monkeypatch, dense_tuning, faster=0)
    solved = Solved(engine.run, matrix)
    assert "auction" in steps(solved)
    solved.check_optimal(1e-12)


@ALL
def test_any_turn_may_be_the_last(matrix, monkeypatch):
    """Paths that go on for a while, and stop, change nothing that the auction has."""
    for faster in (1, 4, 16, 64):
        tune(monkeypatch, dense_tuning, faster=faster, step=1 / 64)
        Solved(engine.run, matrix).check_optimal(1e-12)


def test_a_stop_leaves_a_matching_and_a_bound(monkeypatch):
    tune(monkeypatch, dense_tuning, faster=8, step=1 / 64)
    best = Solved(engine.run, TIED)
    for tick in range(1, len(best.control.ticks) + 1, 3):
        solved = Solved(engine.run, TIED, control=Trace(stop_at=tick))
        solved.check_matching()
        solved.check_duals(1e-12)


def test_ties_read_little_more_than_the_paths_alone(monkeypatch):
    """Without the rival, the engine reads 5 times as much."""
    tune(monkeypatch, dense_tuning, ties=3, patience=0, lone_patience=0, trial=1 / 2)
    matrix = Problem("clusters", {"nrows": 400, "share": 0.95}, "many values").costs()
    known, alone = (Solved(way, matrix) for way in (engine.run, shortest_augmenting_path.run))
    lines = sum(phase["scans"] for phase in alone.control.phases)
    assert sum(phase["scans"] for phase in known.control.phases) < 3 * lines * len(matrix)


def test_paths_among_ties_are_given_longer(monkeypatch):
    """An auction would take longer than they, too."""
    tune(monkeypatch, dense_tuning, ties=3, patience=0)
    matrix = Problem("clusters", {"nrows": 400, "share": 0.95}, "many values").costs()
    solved = Solved(engine.run, matrix)
    solved.check_optimal(1e-12)
    assert steps(solved)[0] == "ties"
    assert steps(solved)[-1] == "trial"
    assert "auction" not in steps(solved)


def kept(ahead):
    """The rival of paths that have a start, and these paths."""
    n = len(FLOATS)
    pairs = np.full((2, n), -1, np.int32)
    paths = DensePaths(FLOATS, problem(FLOATS), *pairs, np.zeros(n), None)
    assert paths.begin(Trace())
    rival = Rival()
    rival.keep(paths, ahead)
    return rival, paths


def test_nobody_goes_on_before_paths_are_kept():
    assert not Rival().goes_on(math.inf)
    assert not Rival().wins(math.inf, 100, Trace(), lambda: None)


def test_the_rival_has_pairs_and_prices_of_its_own():
    rival, paths = kept(10.0)
    before = rival.paths.price.copy(), rival.paths.row_to_col.copy()
    paths.price[:] = -1
    paths.row_to_col[:] = -1
    assert (rival.paths.price == before[0]).all()
    assert (rival.paths.row_to_col == before[1]).all()
    assert rival.wins(math.inf, 10**9, Trace(), lambda: None)
    assert (paths.row_to_col == -1).all()
    assert rival.paths.matched == len(FLOATS)


def test_the_rival_reads_no_more_than_is_allowed():
    rival, _ = kept(10.0)
    assert not rival.goes_on(10 * len(FLOATS))
    allowed, beats = 40 * len(FLOATS), []
    assert not rival.wins(allowed, len(FLOATS), Trace(), lambda: beats.append(1))
    assert 0 < len(beats) <= 40
    assert not rival.goes_on(allowed)
