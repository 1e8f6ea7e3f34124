"""The GPU's engine for points, on problems so small that every step of it needs other numbers."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.costs import FunctionCosts, PointCosts
from tests.clouds import METRICS, SMALL, WISHES, in_quantiles, two_clouds, worth
from tests.cpu.assignment.tuned import tune
from tests.pairwise import parametrize_pairwise

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]
cp = pytest.importorskip("cupy")

from gpumatch.cuda.assignment.points import tuning as tunings  # noqa: E402  it imports cupy


@pytest.fixture(autouse=True)
def _is_small(monkeypatch):
    tune(monkeypatch, tunings, **SMALL)
    monkeypatch.setattr("gpumatch.costs.points.FEW", 64)


@parametrize_pairwise(
    metric=METRICS,
    wish=WISHES,
    shape=[(40, 40), (30, 45), (45, 30)],
    kind=["normal", "shifted", "lattice", "copies", "far", "equal"],
    d=[1, 2, 3, 8],
    dtype=["float32", "float64"],
    has_offsets=[False, True],
)
def test_it_finds_what_the_host_finds(metric, wish, shape, kind, d, dtype, has_offsets):
    X, Y = (side.astype(dtype) for side in two_clouds(kind, shape, d))
    offsets = {}
    if has_offsets:
        rng = np.random.default_rng(3)
        offsets = {"row_offset": rng.normal(size=shape[0]), "col_offset": rng.normal(size=shape[1])}
    costs = PointCosts(X, Y, metric, **offsets)
    matrix = costs.dense()
    wish = in_quantiles(wish, matrix)
    a = gm.assign(costs.to_device(), **wish)
    b = gm.assign(matrix, backend="cpu", algorithm="shortest-augmenting-path", **wish)
    assert a.proven
    scale = abs(matrix).max() * len(matrix)
    assert worth(a) == pytest.approx(worth(b), rel=0, abs=1e-12 * scale)
    gm.verify(costs.to_device(), a)


@pytest.mark.parametrize("wish", [{}, {"maximize": True}, {"cost_limit": 30}], ids=str)
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_functions_need_no_matrix(wish, dtype, monkeypatch):
    C = np.random.default_rng(2).integers(0, 99, (40, 40)).astype(dtype)
    on_device = cp.asarray(C)
    costs = FunctionCosts(lambda rows, cols: on_device[rows, cols], C.shape, dtype, low=0, high=99)
    monkeypatch.setattr(FunctionCosts, "dense", None)
    a = gm.assign(costs, **wish)
    assert a.objective == gm.assign(C, backend="cpu", **wish).objective
    assert a.proven


def test_no_step_makes_the_matrix(monkeypatch):
    """Only the small problems of a sample and of unmatched rows have matrices."""
    costs = PointCosts(*two_clouds("normal", (50, 50), 2)).to_device()
    tune(monkeypatch, tunings, least_sampled=100, few=50)
    monkeypatch.setattr(PointCosts, "dense", None)
    a = gm.assign(costs)
    rounds = [phase for phase in a.stats["trace"] if phase.get("step") == "pricing"]
    assert [phase["round"] for phase in rounds] == list(range(1, len(rounds) + 1))
    assert rounds[-1]["undercut"] == 0
    assert rounds[-1]["pairs"] < 2500
    assert a.proven


def test_a_core_that_becomes_large_gives_way_to_the_matrix(monkeypatch):
    costs = PointCosts(*two_clouds("normal", (30, 30), 2))
    tune(monkeypatch, tunings, share=0.01)
    made = []
    stored = PointCosts.stored
    monkeypatch.setattr(PointCosts, "stored", lambda self: made.append(1) or stored(self))
    a = gm.assign(costs.to_device())
    assert made
    assert float(a.objective) == pytest.approx(gm.assign(costs.dense()).objective)


@pytest.mark.parametrize("d", [2, *(pytest.param(d, marks=pytest.mark.long) for d in (1, 3))])
def test_prices_of_a_sample_are_tried_where_rows_stay_unmatched(d, monkeypatch):
    from gpumatch.numeric.points.engine import PointsEngine

    costs = PointCosts(*two_clouds("shifted", (120, 120), d), "euclidean")
    tune(monkeypatch, tunings, nearest=1)
    tried = []
    sample = PointsEngine.prices_of_sample
    monkeypatch.setattr(
        PointsEngine, "prices_of_sample", lambda self: tried.append(1) or sample(self)
    )
    a = gm.assign(costs.to_device())
    assert tried
    assert float(a.objective) == pytest.approx(gm.assign(costs.dense()).objective)


@pytest.mark.parametrize("ticks", [1, 2, 3, 5, 8, 13])
def test_a_run_that_stops_claims_nothing_false(ticks):
    costs = PointCosts(*two_clouds("normal", (60, 60), 2)).to_device()
    calls = []

    def stop(progress):
        calls.append(1)
        return len(calls) >= ticks

    a = gm.assign(costs, callback=stop)
    assert a.proven or a.gap > 0
    gm.verify(costs, a, optimal=False)


def test_initial_prices_and_pairs_are_candidates():
    X, Y = two_clouds("normal", (50, 50), 2)
    before = gm.assign(PointCosts(X, Y), backend="cpu")
    costs = PointCosts(X + 1e-3, Y)
    expected = gm.assign(costs.dense()).objective
    for initial in (before, before.row_to_col):
        a = gm.assign(costs.to_device(), initial=initial)
        assert float(a.objective) == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine", "chebyshev"])
def test_all_devices_find_what_one_finds(metric):
    """On a machine with one GPU, they are the same."""
    costs = PointCosts(*two_clouds("normal", (60, 60), 12), metric).to_device()
    one, every = (gm.assign(costs, backend="cuda", devices=which) for which in ("one", "all"))
    assert every.proven
    assert every.stats["devices"] == "all"
    assert float(every.objective) == pytest.approx(float(one.objective), rel=1e-12)
    gm.verify(costs, every)
