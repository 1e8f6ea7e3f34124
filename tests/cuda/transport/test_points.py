"""The engine for transport of points, on a GPU or on the emulator of its kernels."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

cp = pytest.importorskip("cupy")

import gpumatch as gm  # noqa: E402
from gpumatch.contracts import Points  # noqa: E402
from gpumatch.cuda.transport import engine as whole  # noqa: E402
from gpumatch.cuda.transport import points  # noqa: E402
from gpumatch.problems import flow_proofs  # noqa: E402
from tests.cpu.transport.problems import least_cost, task_of  # noqa: E402
from tests.cuda.transport.on_device import confirm, proved, take_small_cores  # noqa: E402

pytestmark = pytest.mark.gpu


@pytest.fixture
def no_matrix(monkeypatch):
    monkeypatch.setattr(points, "STORED", 0)
    take_small_cores(monkeypatch)


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


# -- at the front door -----------------------------------------------------------------------------


class MatrixMade(Exception):
    """Somebody has made the matrix of points."""


@pytest.fixture
def dense_raises(monkeypatch):
    def dense(costs, out=None):
        raise MatrixMade

    monkeypatch.setattr(gm.PointCosts, "dense", dense)


@pytest.fixture
def matrix_raises(monkeypatch, no_matrix, dense_raises):
    monkeypatch.setattr(whole, "NARROW", 0)


def of_points(rng, metric, nrows, ncols, offsets=False):
    """Costs of points on the host, and their matrix."""
    rows, cols = rng.random((nrows, 2)), rng.random((ncols, 2)) + 0.1
    added = {}
    if offsets:
        added = {"row_offset": rng.random(nrows) - 0.6, "col_offset": rng.random(ncols) - 0.6}
    costs = gm.PointCosts(rows, cols, metric, **added)
    return costs, costs.at(np.arange(nrows)[:, None], np.arange(ncols))


def agree(costs, matrix, supply, demand, **wish):
    """Both have the objective of the matrix on the CPU, and prove it."""
    host = gm.transport(matrix, supply, demand, backend="cpu", **wish)
    t = gm.transport(costs, supply, demand, backend="cuda", **wish)
    limit = wish.get("cost_limit", 0)
    worth = [one.objective - limit * one.total for one in (host, t)]
    assert worth[1] == pytest.approx(worth[0], abs=1e-9)
    assert t.proven
    gm.verify(costs, t, supply=supply, demand=demand)
    return t


@pytest.mark.emulated
@pytest.mark.usefixtures("matrix_raises")
@pytest.mark.parametrize(
    ("metric", "wish", "offsets"),
    [
        ("sqeuclidean", {}, False),
        ("euclidean", {"maximize": True}, True),
        ("chebyshev", {"cardinality": "any"}, True),
        ("sqeuclidean", {"cost_limit": 0.1}, False),
        ("cosine", {"cost_limit": 0.1, "maximize": True}, False),
        ("cityblock", {"cardinality": "maximum"}, True),
    ],
)
def test_transport_makes_no_matrix_of_points(metric, wish, offsets):
    for seed, (nrows, ncols) in enumerate([(7, 11), (11, 7)]):
        rng = np.random.default_rng(seed)
        costs, matrix = of_points(rng, metric, nrows, ncols, offsets)
        supply, demand = rng.integers(0, 6, nrows), rng.integers(0, 6, ncols)
        agree(costs, matrix, supply, demand, **wish)


@pytest.mark.emulated
@pytest.mark.usefixtures("matrix_raises")
@pytest.mark.parametrize("wish", [{}, {"cardinality": "any"}, {"cost_limit": 0.5}])
def test_points_without_masses_on_one_side(wish):
    costs, matrix = of_points(np.random.default_rng(0), "euclidean", 5, 6)
    for masses in ((0, 2), (2, 0), (0, 0)):
        assert agree(costs, matrix, *masses, **wish).total == 0


@pytest.mark.emulated
@pytest.mark.usefixtures("matrix_raises")
def test_units_left_on_both_sides_join_points_at_the_limit(monkeypatch):
    monkeypatch.setattr("gpumatch.costs.points.FEW", 0)
    X = np.arange(6.0)[:, None]
    costs, matrix = gm.PointCosts(X, X + 1, "cityblock"), abs(X - X.T - 1)
    for limit in (1.0, 0.5):
        t = agree(costs, matrix, 2, 1, cost_limit=limit)
        left = [2 - t.row_flow > 0, 1 - t.col_flow > 0]
        assert not (matrix[np.ix_(*left)] <= limit).any()


@pytest.mark.emulated
@pytest.mark.usefixtures("matrix_raises")
@pytest.mark.parametrize(
    ("demand", "wish"),
    [((1, 9), {}), (9, {"cardinality": "maximum", "cost_limit": 0.9})],
)
def test_lower_bounds_and_forbidden_pairs_take_the_matrix(monkeypatch, demand, wish):
    costs, matrix = of_points(np.random.default_rng(0), "euclidean", 6, 5)
    with pytest.raises(MatrixMade):
        gm.transport(costs, 2, demand, backend="cuda", **wish)
    monkeypatch.setattr(gm.PointCosts, "dense", lambda costs, out=None: cp.asarray(matrix))
    agree(costs, matrix, 2, demand, **wish)


@pytest.mark.usefixtures("dense_raises")
@pytest.mark.parametrize("wish", [{}, {"cost_limit": 1e-4}])
def test_more_pairs_than_are_stored(wish):
    rng = np.random.default_rng(5)
    costs = gm.PointCosts(cp.asarray(rng.random((2500, 2))), cp.asarray(rng.random((2000, 2))))
    supply, demand = rng.random(2500), rng.random(2000)
    t = gm.transport(costs, supply, demand, **wish)
    assert t.proven
    gm.verify(costs, t, supply=supply, demand=demand)


@pytest.mark.emulated
def test_rows_with_units_left_keep_their_duals():
    rng = np.random.default_rng(0)
    costs, matrix = of_points(rng, "sqeuclidean", 6, 7)
    row_dual, col_dual = np.full(6, 0.1), -rng.random(7) / 4
    kept = np.arange(6) % 3 == 0
    u, v = flow_proofs._lowered(costs.to_device(), *map(cp.asarray, (row_dual, col_dual, kept)))
    u, v = u.get(), v.get()
    assert (u[kept] == 0.1).all()
    assert np.allclose(v, np.minimum(col_dual, (matrix - 0.1)[kept].min(axis=0)), atol=1e-15)
    assert (v < col_dual).any()
    assert np.allclose(u[~kept], (matrix - v)[~kept].min(axis=1), atol=1e-15)
    for i, j in np.ndindex(matrix.shape):
        assert Fraction(u[i]) + Fraction(v[j]) <= Fraction(matrix[i, j])


@pytest.mark.emulated
def test_which_points_are_taken(monkeypatch):
    def cloud(nrows, ncols, width=2):
        return Points(np.zeros((nrows, width)), np.zeros((ncols, width)), "euclidean", False, 1.0)

    monkeypatch.setattr(points, "STORED", 100)
    monkeypatch.setattr(whole, "NARROW", 4)
    assert whole.takes_points(cloud(11, 10))
    assert not whole.takes_points(cloud(10, 10))
    assert not whole.takes_points(cloud(11, 10, 7))
    assert not whole.takes_points(cloud(40, 10))
    assert not whole.takes_points(cloud(26, 4))

    def no_memory(nbytes, purpose):
        raise MemoryError

    monkeypatch.setattr(whole, "require_memory", no_memory)
    assert whole.takes_points(cloud(40, 10))
