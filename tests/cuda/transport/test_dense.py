"""The engine for dense transport, on a GPU or on the emulator of its kernels."""

from __future__ import annotations

import numpy as np
import pytest

cp = pytest.importorskip("cupy")

from gpumatch.cuda.transport import dense  # noqa: E402
from tests.cpu.transport.problems import least_cost, random_task, task_of  # noqa: E402
from tests.cuda.transport.on_device import confirm, proved, take_small_cores  # noqa: E402

pytestmark = pytest.mark.gpu


@pytest.mark.emulated
@pytest.mark.parametrize("limit", [False, True], ids=["all", "limits"])
@pytest.mark.parametrize("integer", [True, False], ids=["int", "float"])
def test_core_and_pricing(monkeypatch, limit, integer):
    take_small_cores(monkeypatch)
    for seed in range(6):
        task = random_task(seed, dense=True, integer=integer, limit=limit, size=14, allow=True)
        confirm(cp, dense.solve, task, least_cost(task))


@pytest.mark.parametrize("limit", [False, True], ids=["all", "limits"])
@pytest.mark.parametrize("integer", [True, False], ids=["int", "float"])
@pytest.mark.parametrize("kind", ["plane", "noise", "even"])
def test_larger_problems(kind, integer, limit):
    """Estimates by groups, and several pricings."""
    rng = np.random.default_rng(7)
    rows, cols = rng.random((600, 2)), rng.random((700, 2))
    costs = (
        np.square(rows[:, None] - cols).sum(axis=2) if kind == "plane" else rng.random((600, 700))
    )
    supply, demand = rng.integers(0, 9, 600), rng.integers(0, 9, 700)
    demand[0] += max(supply.sum() - demand.sum(), 0)
    supply[5] += (demand.sum() - supply.sum()) if kind == "even" else 0
    costs = np.floor(1e6 * costs).astype(np.int64) if integer else costs
    limits = (costs.mean(axis=1) / 4).astype(costs.dtype) if limit else None
    proved(cp, dense.solve, task_of(costs, supply, demand, limits=limits))
