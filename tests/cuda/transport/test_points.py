"""The engine for transport of points, on a GPU or on the emulator of its kernels."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

cp = pytest.importorskip("cupy")

from gpumatch.contracts import Points  # noqa: E402
from gpumatch.cuda.transport import core, points  # noqa: E402
from gpumatch.cuda.transport.sparse import engine  # noqa: E402
from tests.cpu.transport.problems import least_cost, task_of  # noqa: E402
from tests.cuda.transport.on_device import confirm, proved  # noqa: E402

pytestmark = pytest.mark.gpu


@pytest.fixture
def no_matrix(monkeypatch):
    monkeypatch.setattr(points, "STORED", 0)
    monkeypatch.setattr(core, "WHOLE", 12)
    monkeypatch.setattr(engine, "FEW", 0)


def random_points(rng):
    nrows, ncols, width = *rng.integers(4, 14, 2), rng.integers(1, 4)
    rows, cols = rng.random((nrows, width)), rng.random((ncols, width))
    return rows, cols, rng.integers(0, 6, nrows), rng.integers(0, 6, ncols)


def distances(rows, cols, metric):
    apart = np.abs(rows[:, None] - cols)
    return {
        "sqeuclidean": np.square(apart).sum(axis=2),
        "euclidean": np.sqrt(np.square(apart).sum(axis=2)),
        "cityblock": apart.sum(axis=2),
    }[metric]


@pytest.mark.emulated
@pytest.mark.usefixtures("no_matrix")
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
def test_boxes_and_pricing(metric):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows, cols, supply, demand = random_points(rng)
        limits = None
        if seed < 2:
            demand[0] += max(supply.sum() - demand.sum(), 0) + seed
        else:
            limits = rng.random(len(supply)) - 0.2
        costs = distances(rows, cols, metric)
        if seed == 1:
            costs = -costs
        task = task_of(costs, supply, demand, limits=limits)
        cloud = Points(*map(cp.asarray, (rows, cols)), metric, False, -1.0 if seed == 1 else 1.0)

        def solve(given, cloud=cloud):
            return points.solve(dataclasses.replace(given, costs=None), cloud)

        confirm(cp, solve, task, least_cost(task))


def test_larger_clouds(monkeypatch):
    monkeypatch.setattr(points, "STORED", 2**10)
    rng = np.random.default_rng(9)
    rows, cols, supply = rng.random((900, 2)), rng.random((800, 2)), rng.integers(1, 9, 900)
    demand = rng.multinomial(supply.sum(), np.full(800, 1 / 800))
    cloud = Points(*map(cp.asarray, (rows, cols)), "euclidean", False, 1.0)

    def solve(given):
        return points.solve(dataclasses.replace(given, costs=None), cloud)

    proved(cp, solve, task_of(distances(rows, cols, "euclidean"), supply, demand))
