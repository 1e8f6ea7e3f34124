"""The engine for sparse costs with its kernels on the CPU, threads in any order: no race shows."""

from __future__ import annotations

import functools
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import gpumatch as gm
from graphs import costs

pytest.importorskip("cupy")

from gpumatch import backends
from gpumatch.cpu import csr as cpu_csr
from gpumatch.cuda import launches
from gpumatch.cuda.assignment.sparse import engine, full
from tests.cuda.emulator import COMPILER, ArraysOfDevice, Emulator

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

BLOCK = 64  # two warps
TREES = {
    **{"kBlock": BLOCK, "kAlone": 12, "kAloneMost": 24},
    **{"kLongRow": 4, "kHugeRow": 16, "kHugeRows": 2},
}


@pytest.fixture(scope="module")
def emulators(tmp_path_factory):
    folder = tmp_path_factory.mktemp("emulator")
    return {
        engine.PRICES: Emulator(engine.PRICES, folder, {}),
        engine.TREES: Emulator(engine.TREES, folder, TREES),
    }


@pytest.fixture
def solve(emulators, monkeypatch):
    """The engine's answer, checked."""
    cp = ArraysOfDevice()
    names = engine.PRICES.types["Cost"]

    def kernels_for(source, Cost):
        return emulators[source].bound_to({"Cost": names[Cost.name]})

    def unmatched(count):
        return cp.full(count, -1, np.int32)

    for module in (engine, full, launches):
        monkeypatch.setattr(module, "cp", cp)
    monkeypatch.setattr(launches, "cupyx", SimpleNamespace(zeros_pinned=np.zeros))
    monkeypatch.setattr(engine, "kernels_for", kernels_for)
    monkeypatch.setattr(engine, "blocks_for", lambda _: 2)
    monkeypatch.setattr(engine, "BLOCK", BLOCK)
    monkeypatch.setattr(engine, "_BLOCK", BLOCK)
    monkeypatch.setattr(engine, "_LEFT", (4, 1024))
    monkeypatch.setattr(engine, "unmatched", unmatched)
    monkeypatch.setattr(engine.memory, "require_memory", lambda *_: None)
    monkeypatch.setattr(full, "unmatched", unmatched)
    monkeypatch.setattr(full, "csr", cpu_csr)

    def solve(matrix, **wish):
        with monkeypatch.context() as patch:
            patch.setattr(backends.Choice, "search", lambda _: engine.run)
            return gm.assign(matrix, backend="cpu", **wish)

    return solve


def vary(emulators, rng):
    for emulator in emulators.values():
        emulator.seed = int(rng.integers(2**31))
        emulator.odds = int(rng.choice([2, 6, 30]))
        emulator.blocks = int(rng.choice([1, 2, 4]))


def random_costs(rng, dtype, *, most=90):
    nrows, ncols = rng.integers(1, most, 2)
    ncols = nrows if rng.random() < 0.5 else ncols
    density = min(1.0, rng.choice([1, 3, 6, 20]) / ncols)
    matrix = random_array((nrows, ncols), density=density, rng=rng, format="csr")
    values = matrix.data * rng.choice([2, 10, 1000])
    values = values if dtype is np.float64 else np.floor(values)
    shape = matrix.shape
    return csr_array((values.astype(dtype), matrix.indices, matrix.indptr), shape=shape)


def check(solve, matrix, **wish):
    """The answer proves itself, and is that of the CPU."""
    try:
        best = gm.assign(matrix, backend="cpu", **wish)
    except gm.InfeasibleError:
        with pytest.raises(gm.InfeasibleError):
            solve(matrix, **wish)
        return
    a = solve(matrix, **wish)
    gm.verify(matrix, a)
    assert a.proven
    limit = wish.get("cost_limit", 0)
    ours, theirs = (x.objective - limit * x.size for x in (a, best))
    assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)


WISHES = [
    {},
    {"cardinality": "maximum"},
    {"cardinality": "any", "maximize": True},
    {"cardinality": "maximum", "maximize": True},
    {"cost_limit": 3},
    {"cost_limit": 0.75},
]


@pytest.mark.parametrize("wish", WISHES, ids=str)
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_random_problems(solve, emulators, wish, dtype):
    rng = np.random.default_rng(5)
    for _ in range(12):
        vary(emulators, rng)
        check(solve, random_costs(rng, dtype), **wish)


@pytest.mark.parametrize("has_prices", [True, False])
@pytest.mark.parametrize("family", ["mesh", "spread", "kkt"])
def test_families(solve, emulators, family, has_prices, monkeypatch):
    """Also with no prices, so that all rows begin as roots."""
    if not has_prices:
        monkeypatch.setattr(engine, "_hold_auctions", lambda *_: None)
    rng = np.random.default_rng(9)
    matrix = costs.make(family, 7 if family == "mesh" else 150, seed=1)
    for _ in range(4):
        vary(emulators, rng)
        check(solve, matrix)


def test_a_row_and_a_column_with_all_entries(solve, emulators):
    rng = np.random.default_rng(3)
    matrix = np.where(rng.random((80, 80)) < 0.03, rng.integers(1, 50, (80, 80)), 0)
    matrix[7], matrix[:, 9] = rng.integers(1, 50, (2, 80))
    np.fill_diagonal(matrix, 45)
    for _ in range(6):
        vary(emulators, rng)
        check(solve, csr_array(matrix))


def test_short_launches_change_nothing(solve, emulators, monkeypatch):
    rng = np.random.default_rng(4)
    for levels, rows in ((1, 2**27), (3, 1), (2, 50)):
        monkeypatch.setattr(engine, "_LEVELS_A_LAUNCH", levels)
        monkeypatch.setattr(engine, "_ROWS_A_LAUNCH", rows)
        for dtype in (np.int64, np.float64):
            vary(emulators, rng)
            check(solve, random_costs(rng, dtype), cardinality="maximum")


@pytest.mark.parametrize("wish", [{}, {"cardinality": "any", "maximize": True}], ids=str)
def test_an_assignment_to_begin_from_is_kept(solve, wish):
    matrix = costs.make("spread", 60)
    a = solve(matrix, **wish)
    again = solve(matrix, initial=a, **wish)
    gm.verify(matrix, again)
    assert math.isclose(again.objective, a.objective, rel_tol=1e-12)
    assert sum(phase["found"] for phase in again.stats["trace"]) == 0


@pytest.mark.parametrize("wish", [{}, {"cardinality": "any"}], ids=str)
def test_it_stops_when_asked_with_a_matching(solve, wish, monkeypatch):
    monkeypatch.setattr(engine, "_LEVELS_A_LAUNCH", 2)
    matrix = costs.make("mesh", 6)
    matrix.data -= 2000
    best = solve(matrix, **wish).objective
    for last in (1, 3, 6):
        ticks = itertools.count(1)
        a = solve(matrix, callback=functools.partial(is_over, ticks, last), **wish)
        assert not a.proven
        assert a.gap >= a.objective - best
        rows = np.flatnonzero(a.row_to_col >= 0)
        assert (a.col_to_row[a.row_to_col[rows]] == rows).all()


def is_over(ticks, last, _):
    return next(ticks) >= last


@pytest.mark.parametrize("scale", [2.0**-1060, 1e-300, 1e300])
def test_floats_of_any_scale(solve, scale):
    matrix = costs.make("spread", 40)
    check(solve, csr_array((matrix.data * scale, matrix.indices, matrix.indptr)))
