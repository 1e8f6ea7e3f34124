"""What the tests of the engine for sparse costs on the emulator share: kernels and problems."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import gpumatch as gm
from gpumatch.cpu import csr as cpu_csr
from gpumatch.cuda.assignment.sparse import auction, engine, full, problem, product, trees, tuning
from gpumatch.cuda.assignment.sparse.tuning import Trial
from gpumatch.dispatch import backends
from tests.cpu.assignment.tuned import tune
from tests.cuda.emulator import Emulator, lead_drivers_here

BLOCK = 64  # two warps
TRIALS = [
    pytest.param(Trial(0, 1, 4096, 1), id="least costs"),
    pytest.param(Trial(8, 1, 4096, 1), id="exact bids"),
    pytest.param(Trial(8, 1, 4096, 1, finest=3), id="wide bounds"),
    pytest.param(Trial(0, -1, 1, 1), id="auctions"),
    pytest.param(Trial(8, 1, 2, 0), id="few levels"),
]
DRIVERS = auction, engine, full, problem, product, trees
TREES = {"kBlock": BLOCK, "kPatience": 1, "kWide": 4, "kLongRow": 4}


def small_emulators():
    return {
        problem.PRICES: Emulator(problem.PRICES, {}),
        trees.TREES: Emulator(trees.TREES, TREES),
        product.SCALES: Emulator(product.SCALES, {}),
    }


def solver(emulators, monkeypatch):
    """A function that has the engine solve a problem on the emulator."""
    lead_drivers_here(monkeypatch, emulators, *DRIVERS, block=BLOCK)
    tune(monkeypatch, tuning, unmatched=(4, 1024))
    for module in (full, product):
        monkeypatch.setattr(module, "csr", cpu_csr)

    def solve(matrix, **wish):
        with monkeypatch.context() as patch:
            patch.setattr(backends.Choice, "search", lambda _: engine.run)
            return gm.assign(matrix, backend="cpu", algorithm="engine", **wish)

    return solve


def vary(emulators, rng):
    for emulator in emulators.values():
        emulator.vary(rng)


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


def random_rows(rng, n, entries, draw):
    """A square matrix with so many entries a row, and a full assignment."""
    order = rng.random((n, n))
    order[np.arange(n), rng.permutation(n)] = -1
    cols = np.argsort(order, axis=1)[:, :entries]
    indptr = np.arange(n + 1) * entries
    return csr_array((draw(n * entries), cols.ravel(), indptr), shape=(n, n))


def is_over(ticks, last, _):
    return next(ticks) >= last
