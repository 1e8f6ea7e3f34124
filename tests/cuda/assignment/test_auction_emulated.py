"""The auction with its kernels on the CPU, threads in any order."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from graphs import costs

pytest.importorskip("cupy")

from gpumatch.cpu.assignment.hungarian import tree
from gpumatch.cpu.matching import cheap, engine
from gpumatch.cuda.assignment import auction
from gpumatch.dispatch import backends
from tests.cuda.emulator import COMPILER, ArraysOfDevice, Emulator, lead_drivers_here

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

BLOCK = 64  # two warps
COSTS = {"Cost": {"int32": "int", "int64": "long long", "float64": "double"}}
SMALL = {"kBlock": BLOCK, "kAloneBidders": 1, "kAloneEntries": 200}
TRACED = ("step", "epsilon", "rounds", "found", "matched")
CONVERGENCE = pytest.mark.parametrize("convergence", ["counter", "reduction"])


@pytest.fixture(scope="module")
def emulator():
    source = dataclasses.replace(auction.SOURCE, types=COSTS)
    return Emulator(source, SMALL)


class Viewed:
    """Costs whose arrays are a device's."""

    def __init__(self, given):
        self._given = given

    def __getattr__(self, name):
        return getattr(self._given, name)

    def entries(self):
        entries = self._given.entries()
        return entries if isinstance(entries, tuple) else ArraysOfDevice().asarray(entries)


@pytest.fixture
def solve(emulator, monkeypatch):
    cp = ArraysOfDevice()
    lead_drivers_here(monkeypatch, {auction.SOURCE: emulator}, auction, block=BLOCK, cp=cp)
    monkeypatch.setattr(auction, "hungarian_tree", SimpleNamespace(run=tree.run))
    monkeypatch.setattr(auction, "cheap", cheap)
    monkeypatch.setattr(auction, "matching_engine", engine)
    cap, entries = auction._Auction._cap, auction._Entries.of
    monkeypatch.setattr(auction._Auction, "_cap", lambda own: cp.asarray(cap(own)))
    monkeypatch.setattr(auction._Entries, "of", lambda given, shift: entries(Viewed(given), shift))

    def solve(matrix, options=None, **wish):
        with monkeypatch.context() as patch:
            search = functools.partial(auction.run, **(options or {}))
            patch.setattr(backends.Choice, "search", lambda _: search)
            return gm.assign(matrix, algorithm="auction", backend="cpu", **wish)

    return solve


def auctions(a):
    """What the trace tells of the auctions."""
    return [tuple(p[name] for name in TRACED) for p in a.stats["trace"] if "epsilon" in p]


@CONVERGENCE
@pytest.mark.parametrize("shape", [(1, 1), (20, 20), (20, 27), (27, 20), (6, 90)], ids=str)
@pytest.mark.parametrize("family", ["uniform_float", "geom2"])
def test_it_is_the_auction_of_the_cpu(solve, emulator, family, shape, convergence):
    """Round for round: the same numbers of them, the same pairs and prices."""
    matrix = costs.make(family, *shape, seed=5)
    emulator.vary(np.random.default_rng(shape))
    a = solve(matrix, {"finish": "epsilon", "convergence": convergence})
    b = gm.assign(csr_array(matrix), algorithm="auction", backend="cpu", finish="epsilon")
    assert auctions(a) == auctions(b)
    assert (a.row_to_col == b.row_to_col).all()
    assert (a.col_dual == b.col_dual).all()


@CONVERGENCE
@pytest.mark.parametrize("shape", [(30, 30), (20, 30)], ids=str)
def test_integers_beyond_exact_prices_are_those_of_the_cpu(solve, shape, convergence):
    """Prices are in float64 then, and are rounded to integers that no pair undercuts."""
    matrix = np.random.default_rng(3).integers(2**53, 2**54, shape)
    options = {"finish": "epsilon", "convergence": convergence}
    a = solve(matrix, options)
    assert (matrix - a.row_dual[:, None] - a.col_dual).min() == 0
    b = gm.assign(csr_array(matrix), algorithm="auction", backend="cpu", finish="epsilon")
    assert a.col_dual.dtype == np.int64
    for one, other in ((a.col_dual, b.col_dual), (a.row_dual, b.row_dual)):
        assert one.tolist() == other.tolist()
    assert (a.objective, a.gap) == (b.objective, b.gap)


@CONVERGENCE
@pytest.mark.parametrize("rows", [2, 40])
def test_of_equal_offers_the_first_wins(solve, emulator, rows, convergence):
    """By one block alone, and by all."""
    for seed in range(3):
        emulator.vary(np.random.default_rng(seed))
        matrix = np.full((rows, rows), 99)
        matrix[:, 0] = 5
        options = {"convergence": convergence, "scaling": "none"}
        a = solve(matrix, options, cost_limit=12)
        assert np.flatnonzero(a.row_to_col >= 0).tolist() == [0]


@CONVERGENCE
@pytest.mark.parametrize(("limit", "found"), [(12, 0), (13, 1)])
def test_a_row_goes_without_for_a_gain_of_epsilon(solve, limit, found, convergence):
    a = solve(np.array([[8, 20]]), {"convergence": convergence}, cost_limit=limit)
    assert auctions(a)[0][1] == 4
    assert auctions(a)[0][3] == found
    assert a.size == 1


def random_problem(rng, dtype):
    """Costs of any shape, dense or sparse, with pairs that are forbidden or without."""
    shape = rng.integers(1, 24, 2)
    matrix = rng.integers(-9, 40, shape).astype(dtype)
    if rng.random() < 0.5:
        return matrix
    rows, cols = np.nonzero(rng.random(shape) < rng.choice([0.2, 0.6]))
    return csr_array((matrix[rows, cols], (rows, cols)), shape=shape)


@CONVERGENCE
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_random_problems(solve, emulator, dtype, convergence):
    rng = np.random.default_rng(6)
    for _ in range(15):
        emulator.vary(rng)
        matrix = random_problem(rng, dtype)
        wish = {
            "cardinality": str(rng.choice(["maximum", "any"])),
            "cost_limit": [None, 7, 12.5][rng.integers(3)],
            "maximize": bool(rng.random() < 0.3),
        }
        a = solve(matrix, {"convergence": convergence}, **wish)
        gm.verify(matrix, a)
        assert a.proven
        best = gm.assign(matrix, algorithm="shortest-augmenting-path", backend="cpu", **wish)
        limit = wish["cost_limit"] or 0
        assert a.objective - limit * a.size == pytest.approx(best.objective - limit * best.size)


@pytest.mark.parametrize("shape", [(20, 20), (18, 25)], ids=str)
@pytest.mark.parametrize("scaling", ["epsilon", "none"])
def test_launches_and_convergence_change_nothing(solve, emulator, shape, scaling):
    """Neither does the order of threads."""
    matrix = np.random.default_rng(7).integers(0, 60, shape)
    wanted = None
    for seed, (loop, convergence) in enumerate(
        itertools.product(("batch", "round"), ("counter", "reduction"))
    ):
        emulator.vary(np.random.default_rng(seed))
        options = {"scaling": scaling, "host_loop": loop, "convergence": convergence}
        a = solve(matrix, options)
        told = auctions(a), a.row_to_col.tolist(), a.col_dual.tolist()
        assert wanted in (told, None)
        wanted = told
    assert {step for step, *_ in wanted[0]} <= {"forward", "reverse"}


def test_launches_end_by_the_entries_looked_at(solve, monkeypatch):
    matrix = np.random.default_rng(7).integers(0, 60, (20, 24))
    whole = solve(matrix)
    monkeypatch.setattr(auction, "_ENTRIES_A_LAUNCH", 24 * 20)
    ticks = []
    a = solve(matrix, callback=lambda progress: ticks.append(progress.matched))
    assert auctions(a) == auctions(whole)
    assert len(ticks) > 2 * len(auctions(a))
    assert max(ticks) == 20


@pytest.mark.parametrize("limit", [None, 9], ids=str)
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_it_stops_at_any_tick_with_a_matching_and_a_bound(solve, dtype, limit, monkeypatch):
    monkeypatch.setattr(auction, "_ROUNDS_A_LAUNCH", 2)
    matrix = np.random.default_rng(8).integers(0, 60, (20, 26)).astype(dtype)
    best = solve(matrix, cost_limit=limit)
    goal = best.objective - (limit or 0) * best.size
    sizes = set()
    for last in (1, 2, 3, 5, 9, 14, 20):
        stop = functools.partial(is_over, itertools.count(1), last)
        a = solve(matrix, cost_limit=limit, callback=stop)
        rows = np.flatnonzero(a.row_to_col >= 0)
        assert (a.col_to_row[a.row_to_col[rows]] == rows).all()
        assert np.count_nonzero(a.col_to_row >= 0) == rows.size
        assert (matrix - (a.row_dual[:, None] + (limit or 0)) - a.col_dual >= -1e-9).all()
        assert (a.col_dual <= 0).all()
        if a.size == 20 or limit is not None:
            assert a.objective - (limit or 0) * a.size <= goal + a.gap + 1e-9
        sizes.add(a.size)
    assert min(sizes) < best.size


def is_over(ticks, last, _):
    return next(ticks) >= last


def test_prices_to_begin_from(solve):
    matrix = np.random.default_rng(9).integers(0, 60, (20, 24))
    a = solve(matrix)
    again = solve(matrix, initial=a)
    assert again.objective == a.objective
    assert again.proven
    assert sum(rounds for _, _, rounds, _, _ in auctions(again)) < sum(
        rounds for _, _, rounds, _, _ in auctions(a)
    )


def test_no_rows_and_rows_that_have_no_column(solve):
    empty = np.zeros((0, 3))
    assert solve(empty).size == 0
    crowded = csr_array(([1, 2, 3], ([0, 1, 2], [0, 0, 1])), shape=(3, 4))
    with pytest.raises(gm.InfeasibleError) as caught:
        solve(crowded)
    assert caught.value.rows.size > caught.value.cols.size
    assert solve(crowded, cardinality="maximum").size == 2
