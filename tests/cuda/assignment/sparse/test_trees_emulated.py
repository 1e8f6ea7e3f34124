"""Alternating trees of sparse costs on the CPU: steps of bounds, labels at one time, launches."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

pytest.importorskip("cupy")

from gpumatch.cuda.assignment.sparse import tuning
from gpumatch.cuda.assignment.sparse.tuning import Trial
from tests.cpu.assignment.tuned import tune
from tests.cuda.assignment.sparse.emulated import check, random_costs, vary
from tests.cuda.emulator import COMPILER

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_narrow_steps_keep_labels_beyond_the_bound(solve, emulators, dtype, monkeypatch):
    tune(monkeypatch, tuning, width_of_a_step=1)
    rng = np.random.default_rng(7)
    for wish in ({}, {"cardinality": "maximum"}, {"cardinality": "any", "maximize": True}):
        for _ in range(4):
            vary(emulators, rng)
            check(solve, random_costs(rng, dtype), **wish)


def test_columns_that_many_rows_want_at_once(solve, emulators, monkeypatch):
    """Labels come at the same time, from roots and others, and only one of them lasts."""
    tune(monkeypatch, tuning, trial=Trial(0, 1, 4096, 1))
    rng = np.random.default_rng(10)
    for _ in range(20):
        vary(emulators, rng)
        for emulator in emulators.values():
            emulator.odds = 2
        matrix = rng.integers(1, 4, (24, 24)) + 3 * rng.random((24, 24))
        check(solve, csr_array(matrix))


def test_short_launches_change_nothing(solve, emulators, monkeypatch):
    rng = np.random.default_rng(4)
    for looks in (1, 3, 20):
        tune(monkeypatch, tuning, looks_a_launch=looks)
        for dtype in (np.int64, np.float64):
            vary(emulators, rng)
            check(solve, random_costs(rng, dtype), cardinality="maximum")
