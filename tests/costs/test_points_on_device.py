"""Points and functions on a device: they are solved there, and so is what proves the result."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm
import gpumatch.costs.base
from gpumatch.costs import FunctionCosts, PointCosts

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]
METRICS = ["sqeuclidean", "euclidean", "cityblock", "chebyshev", "cosine"]
WISHES = [
    {},
    {"maximize": True},
    {"cost_limit": 1.0},
    {"cardinality": "any", "maximize": True},
    {"cardinality": "maximum", "cost_limit": 0.5},
]


@pytest.fixture
def cp(monkeypatch):
    monkeypatch.setattr(gpumatch.costs.base, "DEVICE_TILE", 64)
    return pytest.importorskip("cupy")


def clouds(shape, dtype=np.float64, d=3, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(count, d)).astype(dtype) for count in shape]


@pytest.mark.parametrize("metric", METRICS)
def test_a_device_computes_the_numbers_of_the_host(cp, metric):
    X, Y = clouds((9, 11))
    offsets = {"row_offset": np.arange(9.0), "col_offset": np.arange(11.0) / 7}
    here = PointCosts(X, Y, metric, **offsets)
    there = PointCosts(cp.asarray(X), cp.asarray(Y), metric, **offsets)
    assert there.on_device
    assert there.rounding == pytest.approx(here.rounding)
    assert (there.low, there.high) == pytest.approx((here.low, here.high))
    if metric != "cosine":  # whose norms may be summed in another order
        assert (cp.asnumpy(there.dense()) == here.dense()).all()
        assert (there.to_host().dense() == here.dense()).all()
        assert (cp.asnumpy(here.to_device().dense()) == here.dense()).all()
    np.testing.assert_allclose(cp.asnumpy(there.dense()), here.dense(), atol=1e-14)


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_points_are_assigned_where_they_are(cp, wish, metric):
    X, Y = clouds((24, 30), np.float32)
    costs = PointCosts(cp.asarray(X), cp.asarray(Y), metric)
    a = gm.assign(costs, **wish)
    assert isinstance(a.row_to_col, cp.ndarray)
    expected = gm.assign(PointCosts(X, Y, metric), backend="cpu", **wish)
    limit = wish.get("cost_limit", 0) if wish.get("cardinality") != "maximum" else 0
    assert a.objective - limit * a.size == pytest.approx(expected.objective - limit * expected.size)
    assert a.proven
    gm.verify(costs, a)


def test_points_of_a_device_may_be_solved_on_the_host(cp):
    X, Y = clouds((12, 12))
    costs = PointCosts(cp.asarray(X), cp.asarray(Y))
    a = gm.assign(costs, backend="cpu")
    assert a.stats["backend"] == "cpu"
    gm.verify(costs, a)


def test_bad_points_on_a_device_are_refused(cp):
    X, Y = clouds((3, 3))
    X[1, 2] = np.nan
    with pytest.raises(ValueError, match="X holds NaN, first at row 1, column 2"):
        PointCosts(cp.asarray(X), cp.asarray(Y))
    with pytest.raises(ValueError, match="one device"):
        PointCosts(cp.asarray(Y), Y)


@pytest.mark.parametrize("wish", [{}, {"maximize": True}, {"cost_limit": 40}], ids=str)
def test_functions_give_blocks_of_a_device(cp, wish):
    C = np.random.default_rng(5).integers(0, 99, (20, 25))
    there = cp.asarray(C)
    costs = FunctionCosts(lambda rows, cols: there[rows, cols], C.shape, np.int64)
    assert costs.on_device
    a = gm.assign(costs, **wish)
    expected = gm.assign(C, backend="cpu", **wish)
    limit = wish.get("cost_limit", 0)
    assert a.objective - limit * a.size == expected.objective - limit * expected.size
    gm.verify(costs, a)
    assert gm.assign(costs, backend="cpu", **wish).stats["backend"] == "cpu"


@pytest.mark.parametrize("scale", [1e200, 1e-200, 2.0**-450])
def test_a_device_computes_distances_of_any_magnitude(cp, scale):
    X, Y = (side * scale for side in clouds((9, 11)))
    X[0] = Y[0]
    here = PointCosts(X, Y, "euclidean")
    there = PointCosts(cp.asarray(X), cp.asarray(Y), "euclidean")
    assert (cp.asnumpy(there.dense()) == here.dense()).all()
    assert there.points is None or scale == 2.0**-450
    assert there.power == here.power
    a = gm.assign(there)
    assert a.objective == pytest.approx(gm.assign(here, backend="cpu").objective)
    gm.verify(there, a)


def test_a_list_of_points_of_a_device_is_a_batch(cp):
    problems = [PointCosts(*map(cp.asarray, clouds((5, 6), seed=seed))) for seed in (1, 2)]
    batch = gm.assign(problems)
    assert isinstance(batch.row_to_col, cp.ndarray)
    for problem, one in zip(problems, batch):
        assert float(one.objective) == pytest.approx(float(gm.assign(problem).objective))


def test_functions_of_two_points_need_the_host(cp):
    X, Y = clouds((3, 3))
    with pytest.raises(ValueError, match="callable metric needs points on the host"):
        PointCosts(cp.asarray(X), cp.asarray(Y), lambda x, y: 0.0)
