"""Transport of points without their matrix: the same as with it, in O(n) memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.contracts import Points
from gpumatch.contracts.transport import TransportTask
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.cpu.transport import dense, engine, few_columns, sources
from gpumatch.cpu.transport.sources import Cloud, Matrix
from gpumatch.running.control import Control
from tests.cpu.transport.problems import answers, check

METRICS = ["sqeuclidean", "euclidean", "cityblock", "chebyshev"]


def cloud(rng, nrows, ncols, metric, sign=1.0, has_offsets=False):
    width = rng.integers(1, 4)
    rows, cols = rng.random((nrows, width)), rng.random((ncols, width))
    offsets = (rng.random(nrows), rng.random(ncols)) if has_offsets else (None, None)
    return Points(rows, cols, metric, False, sign, *offsets)


def matrix_of(points):
    return sources.fill_distances(points, 0, points.rows.shape[0])


@pytest.fixture
def no_matrix(monkeypatch):
    monkeypatch.setattr(sources, "STORED", 0)
    monkeypatch.setattr(few_columns, "NARROW", 0)
    steps = dense.Tuning(whole=30, loose=0, features=2, row_arcs=3, col_arcs=2, more_arcs=2)
    monkeypatch.setattr(dense, "DEFAULT", steps)


@pytest.mark.parametrize("metric", METRICS)
def test_points_tell_what_their_matrix_tells(monkeypatch, metric):
    monkeypatch.setattr(sources, "STORED", 0)
    rng = np.random.default_rng(0)
    for sign, has_offsets in ((1.0, False), (-1.0, True), (1.0, True)):
        points = cloud(rng, 40, 30, metric, sign, has_offsets)
        matrix, some = Matrix(matrix_of(points)), np.sort(rng.permutation(30)[:5])
        with Workers(1, 0) as workers:
            source = Cloud(points, workers)
            low, high = source.extremes
            assert low <= matrix.costs.min() <= matrix.costs.max() <= high
            dual, rows = rng.random(30) * 0.3, np.sort(rng.permutation(40)[:9])
            own = rng.random(9)
            for own_answer, answer in zip(
                *(answers(one, rows, some, own, dual) for one in (source, matrix))
            ):
                np.testing.assert_allclose(own_answer, answer, rtol=1e-14, atol=1e-15)
            bound = matrix.row_minima(dual) + 0.05
            found = [
                set(zip(*map(np.ndarray.tolist, one.undercuts(bound, dual, 0.0, 40, lambda: None))))
                for one in (source, matrix)
            ]
            assert found[0] == found[1]
            assert found[0]


@pytest.mark.usefixtures("no_matrix")
@pytest.mark.parametrize("metric", METRICS)
def test_levels_and_pricing(metric):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        nrows, ncols = rng.integers(9, 60, 2)
        points = cloud(rng, nrows, ncols, metric, rng.choice([-1.0, 1.0]), seed % 2 == 1)
        supply, demand = rng.integers(0, 6, nrows), rng.integers(0, 6, ncols)
        limits = None
        if seed % 3:
            demand[0] += max(supply.sum() - demand.sum(), 0)
            supply[0] += max(demand.sum() - supply.sum(), 0) if seed % 3 == 2 else 0
        else:
            limits = rng.random(nrows) - 0.2
        arrays = {"control": Control(), "row_limit": limits}
        stored = TransportTask(supply, demand, costs=matrix_of(points), **arrays)
        found = engine.solve(TransportTask(supply, demand, points=points, **arrays))
        want = check(stored, engine.solve(stored), 1e-9)
        assert found.is_optimal
        assert check(stored, found, 1e-9) == pytest.approx(want, rel=1e-9, abs=1e-12)


@pytest.mark.usefixtures("no_matrix")
@pytest.mark.parametrize(
    "wish", [{}, {"cardinality": "any", "maximize": True}, {"cost_limit": 0.1}]
)
def test_the_front_door_makes_no_matrix(monkeypatch, wish):
    monkeypatch.setattr(gm.PointCosts, "stored", None)
    rng = np.random.default_rng(1)
    X, Y, supply, demand = *rng.random((2, 60, 2)), *rng.integers(0, 9, (2, 60))
    costs = gm.PointCosts(X, Y)
    t = gm.transport(costs, supply, demand, **wish, time_limit=1e9)
    with monkeypatch.context() as patch:
        patch.setattr(sources, "STORED", 2**22)
        matrix = ((X[:, None] - Y) ** 2).sum(-1)
        other = gm.transport(matrix, supply, demand, **wish, time_limit=1e9)
    limit = wish.get("cost_limit", 0)
    assert t.proven
    assert t.objective - limit * t.total == pytest.approx(other.objective - limit * other.total)
    gm.verify(costs, t, supply=supply, demand=demand)
    nothing = gm.transport(costs, 0, demand, **wish, time_limit=1e9)
    assert (nothing.total, nothing.proven) == (0, True)
    again = gm.transport(costs, supply, demand, **wish, initial=t, time_limit=1e9)
    assert again.objective - limit * again.total == pytest.approx(t.objective - limit * t.total)


def test_memory_is_that_of_the_points():
    rng = np.random.default_rng(2)
    X, Y = rng.random((2, 2500, 2))
    supply = rng.integers(1, 6, 2500)
    gm.transport(gm.PointCosts(X[:300], Y[:300]), 1, 1)
    tracemalloc.start()
    t = gm.transport(gm.PointCosts(X, Y), supply, rng.permutation(supply), threads=1)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert t.proven
    assert t.stats["arcs"] < 40 * 2500
    assert most < 8 * 2500**2 / 2


@pytest.mark.usefixtures("no_matrix")
def test_a_run_of_points_can_be_stopped():
    rng = np.random.default_rng(3)
    X, Y = rng.random((2, 80, 2))
    for ticks in (0, 2, 5, 9):
        seen = []

        def stop(progress, seen=seen, ticks=ticks):
            seen.append(progress.matched)
            return len(seen) > ticks

        t = gm.transport(gm.PointCosts(X, Y), 3, 3, callback=stop)
        assert not t.proven
        gm.verify(gm.PointCosts(X, Y), t, optimal=False, supply=3, demand=3)
