"""Batches whose costs are distances of points: compiled calls write their matrices one by one."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.costs import CostBatch, FunctionCosts, PointCosts
from gpumatch.problems import batches, device_batches, one_by_one

METRICS = ["sqeuclidean", "euclidean", "cityblock", "chebyshev", "cosine"]
WISHES = {
    "full": {},
    "maximize": {"maximize": True},
    "limit": {"cost_limit": 0.8},
    "any": {"cardinality": "any", "maximize": True},
    "maximum": {"cardinality": "maximum", "cost_limit": 0.8},
}


def problems(count=10, seed=1):
    rng = np.random.default_rng(seed)
    for k in range(count):
        n, m, d = rng.integers(1, 30, 3)
        X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d))
        offsets = {"row_offset": rng.normal(size=n)} if k % 3 == 0 else {}
        yield PointCosts(X, Y, METRICS[k % 5], **offsets)


@pytest.fixture
def _none_alone(monkeypatch):
    monkeypatch.setattr(one_by_one.Batch, "_solve_one", None)


@pytest.mark.usefixtures("_none_alone")
@pytest.mark.parametrize("wish", WISHES)
def test_a_batch_is_solved_by_compiled_calls(wish):
    given = list(problems())
    batch = gm.assign(given, backend="cpu", **WISHES[wish])
    for k, costs in enumerate(given):
        alone = gm.assign(costs.dense(), backend="cpu", **WISHES[wish])
        assert batch.objective[k] == pytest.approx(alone.objective)
        assert batch.proven[k]
        assert batch[k].size == alone.size
    for certificate in gm.verify(given, batch).certificates:
        assert certificate.gap <= certificate.allowance


@pytest.mark.usefixtures("_none_alone")
def test_the_gap_has_the_rounding_of_the_costs():
    given = list(problems())
    points = gm.assign(given, backend="cpu")
    matrices = gm.assign([costs.dense() for costs in given], backend="cpu")
    for k, costs in enumerate(given):
        share, pair, added = costs.rounding
        paid = abs(matrices[k].pair_costs).sum()
        above = share * (2 * paid + 8 * added) + 2 * min(costs.shape) * pair
        assert points.gap[k] == pytest.approx(matrices.gap[k] + above, rel=1e-5)


@pytest.mark.usefixtures("_none_alone")
def test_arrays_and_points_in_one_list():
    first, second = list(problems(2))
    whole = np.arange(12).reshape(3, 4) % 5
    batch = gm.assign([first, whole, PointCosts(np.empty((0, 2)), np.ones((4, 2))), second])
    assert batch.sizes.tolist() == [list(first.shape), [3, 4], [0, 4], list(second.shape)]
    assert batch.objective[1] == gm.assign(whole).objective
    assert batch[2].size == 0


def test_large_ones_make_no_matrix(monkeypatch):
    monkeypatch.setattr(batches, "MOST", 100)
    small, large = (PointCosts(*np.random.default_rng(2).random((2, n, 2))) for n in (9, 40))
    filled = []
    fill = PointCosts.fill
    monkeypatch.setattr(
        PointCosts, "fill", lambda self, out: filled.append(self.shape) or fill(self, out)
    )
    batch = gm.assign([small, large, small], backend="cpu")
    assert filled == [(9, 9), (9, 9)]
    assert batch.objective[1] == pytest.approx(gm.assign(large.dense()).objective)
    assert batch.gap[1] > 0


def test_functions_are_called_one_by_one():
    C = np.random.default_rng(3).random((5, 5))
    function = FunctionCosts(lambda rows, cols: C[rows, cols], C.shape, float)
    called = PointCosts(C, C, lambda x, y: float(abs(x - y).sum()))
    far = PointCosts(C * 1e200, C[::-1] * 1e200, "euclidean")
    batch = gm.assign([function, called, far], backend="cpu")
    alone = [gm.assign(costs, backend="cpu").objective for costs in (function, called, far)]
    assert batch.objective.tolist() == alone


def test_a_problem_that_is_wrong_is_named():
    points = PointCosts(np.ones((2, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"problem 1: .*NaN"):
        gm.assign([points, np.full((2, 2), np.nan)], backend="cpu")
    batch = gm.assign([points, np.full((2, 2), np.nan)], backend="cpu", on_error="mark")
    assert list(batch.errors) == [1]
    assert batch.proven.tolist() == [True, False]


@pytest.mark.gpu
@pytest.mark.emulated
@pytest.mark.usefixtures("_none_alone")
@pytest.mark.parametrize("at_once", [1, 300, 2**20])
@pytest.mark.parametrize("wish", ["full", "limit", "any"])
def test_a_device_makes_some_matrices_at_a_time(wish, at_once, monkeypatch):
    pytest.importorskip("cupy")
    monkeypatch.setattr(device_batches, "MADE_AT_ONCE", at_once)
    given = list(problems())
    expected = gm.assign(given, backend="cpu", **WISHES[wish])
    for batch in (
        gm.assign([costs.to_device() for costs in given], **WISHES[wish]),
        gm.assign(given, backend="cuda", **WISHES[wish]),
    ):
        assert batch.stats["backend"] == "cuda"
        found = [part.get() if hasattr(part, "get") else part for part in
                 (batch.objective, batch.gap, batch.proven)]  # fmt: skip
        np.testing.assert_allclose(found[0], expected.objective, atol=1e-9)
        assert found[2].all()
        for k, costs in enumerate(given):
            share, pair, added = costs.rounding
            paid = abs(expected[k].pair_costs).sum()
            assert found[1][k] >= share * (2 * paid + 8 * added) + 2 * min(costs.shape) * pair
    gm.verify(given, batch)


@pytest.mark.gpu
@pytest.mark.emulated
def test_clouds_of_one_size_are_one_launch(monkeypatch):
    cp = pytest.importorskip("cupy")
    given = PointCosts.batch(*map(cp.asarray, np.random.default_rng(5).random((2, 7, 12, 3))))
    launches, launch = [], device_batches.load

    def counted(name):
        run = launch(name)
        return lambda task: launches.append((len(task.sizes), task.apart)) or run(task)

    monkeypatch.setattr(device_batches, "load", counted)
    batch = gm.assign(given)
    assert launches == [(7, 144)]
    expected = gm.assign(np.stack([costs.to_host().dense() for costs in given]), backend="cpu")
    np.testing.assert_allclose(batch.objective.get(), expected.objective)
    launches.clear()
    monkeypatch.setattr(device_batches, "MADE_AT_ONCE", 300)
    again = gm.assign(given)
    assert launches == [(2, 144)] * 3 + [(1, 144)]
    assert (again.row_to_col.get() == batch.row_to_col.get()).all()
    monkeypatch.setattr(device_batches, "MOST", 100)
    assert gm.assign(given).objective.tolist() == pytest.approx(expected.objective.tolist())
    assert len(launches) == 4


@pytest.mark.gpu
@pytest.mark.emulated
def test_a_stop_between_parts_leaves_the_rest_unsolved(monkeypatch):
    pytest.importorskip("cupy")
    monkeypatch.setattr(device_batches, "MADE_AT_ONCE", 300)
    clouds = np.random.default_rng(5).random((7, 2, 12, 3))
    given = [PointCosts(*pair).to_device() for pair in clouds]
    batch = gm.assign(given, callback=lambda _: True)
    assert batch.proven.tolist() == [True, True, *[False] * 5]
    assert (batch.row_to_col.get()[2:] == -1).all()
    assert np.isinf(batch.gap.get()[2:]).all()


def test_points_whose_squares_vanish_on_a_device_are_not_made_there():
    """The host scales their roots, so it alone can compute them."""
    costs = [gm.PointCosts(np.array([[1e-200, 0.0], [1.0, 0.0]]), np.zeros((2, 2)), "euclidean")]
    assert costs[0].points_if(False) is not None
    assert costs[0].points_if(True) is None
    assert not CostBatch(costs).are_made_on_device()
