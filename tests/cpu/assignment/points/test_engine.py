"""The engine for points, on problems so small that every step of it needs other numbers."""

from __future__ import annotations

import contextlib
from itertools import pairwise

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.contracts import AssignmentTask, Solution
from gpumatch.costs import FunctionCosts, PointCosts
from gpumatch.costs.dense import DenseCosts
from gpumatch.cpu.assignment.engine import run as solve
from gpumatch.cpu.assignment.points import engine
from gpumatch.cpu.assignment.points import tuning as tunings
from gpumatch.numeric.points import engine as steps
from gpumatch.numeric.points import extension
from gpumatch.running.control import Control
from tests.clouds import METRICS, SMALL, WISHES, in_quantiles, two_clouds, worth
from tests.cpu.assignment.tuned import tune
from tests.pairwise import parametrize_pairwise


@pytest.fixture(autouse=True)
def _is_small(monkeypatch):
    tune(monkeypatch, tunings, **SMALL)


@parametrize_pairwise(
    metric=METRICS,
    wish=WISHES,
    shape=[(40, 40), (30, 45), (45, 30)],
    kind=["normal", "shifted", "lattice", "copies", "line", "far", "equal"],
    d=[1, 2, 3, 8],
    dtype=["float32", "float64"],
    has_offsets=[False, True],
    threads=[1, 2],
)
def test_it_finds_what_the_matrix_has(metric, wish, shape, kind, d, dtype, has_offsets, threads):
    X, Y = (side.astype(dtype) for side in two_clouds(kind, shape, d))
    offsets = {}
    if has_offsets:
        rng = np.random.default_rng(3)
        offsets = {"row_offset": rng.normal(size=shape[0]), "col_offset": rng.normal(size=shape[1])}
    costs = PointCosts(X, Y, metric, **offsets)
    matrix = costs.dense()
    wish = in_quantiles(wish, matrix)
    a = gm.assign(costs, backend="cpu", threads=threads, **wish)
    b = gm.assign(matrix, backend="cpu", algorithm="shortest-augmenting-path", **wish)
    assert a.proven
    scale = abs(matrix).max() * len(matrix)
    assert worth(a) == pytest.approx(worth(b), rel=0, abs=1e-12 * scale)
    certificate = gm.verify(costs, a)
    assert certificate.gap <= certificate.allowance


@pytest.mark.parametrize("wish", [{}, {"maximize": True}, {"cost_limit": 0.3}], ids=str)
@pytest.mark.parametrize("scales", [(1e200,), (1e-200,), (1.0, 1e-200), (1e200, 1e-200)], ids=str)
@pytest.mark.parametrize("metric", ["euclidean", "chebyshev"])
@pytest.mark.parametrize("d", [2, 8])
def test_far_and_near_points(metric, scales, wish, d):
    """Squares of their coordinates overflow, or lose all digits."""
    rng = np.random.default_rng(5)
    X, Y = (side * rng.choice(scales, size=(40, 1)) for side in two_clouds("shifted", (40, 40), d))
    X[3:6] = Y[3:6]
    costs = PointCosts(X, Y, metric)
    matrix = costs.dense()
    wish = in_quantiles(wish, matrix)
    a = gm.assign(costs, backend="cpu", **wish)
    b = gm.assign(matrix, backend="cpu", algorithm="shortest-augmenting-path", **wish)
    assert a.proven
    assert worth(a) == pytest.approx(worth(b), rel=0, abs=1e-12 * matrix.max())
    certificate = gm.verify(costs, a)
    assert certificate.gap <= certificate.allowance


@pytest.mark.parametrize("wish", [{}, {"maximize": True}, {"cost_limit": 30}], ids=str)
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_functions_need_no_matrix(wish, dtype, monkeypatch):
    C = np.random.default_rng(2).integers(0, 99, (40, 40)).astype(dtype)
    costs = FunctionCosts(lambda rows, cols: C[rows, cols], C.shape, dtype, low=0, high=99)
    monkeypatch.setattr(FunctionCosts, "dense", None)
    a = gm.assign(costs, backend="cpu", **wish)
    assert a.objective == gm.assign(C, backend="cpu", **wish).objective
    gm.verify(costs, a)


def task_of(costs, control=None):
    solution = Solution.empty(costs.shape, is_integer=costs.is_integer)
    return AssignmentTask(costs, solution, control or Control(), threads=1)


@pytest.mark.parametrize("kind", ["shifted", "copies"])
def test_no_second_counts_for_two_parts(kind, monkeypatch):
    """Samples and unmatched rows are problems with the same parts, within a part of the first."""
    tune(monkeypatch, tunings, nearest=1, least_sampled=8, few=0, places=0)
    control, opened, inner = Control(), [], []

    @contextlib.contextmanager
    def part(name):
        assert not opened
        opened.append(name)
        yield
        inner.append(opened.pop())

    monkeypatch.setattr(control, "part", part)
    assert engine.run(task_of(PointCosts(*two_clouds(kind, (60, 60), 2)), control), solve)
    assert {"candidates", "sample", "core", "pricing"} == set(inner)


def test_no_step_makes_the_matrix(monkeypatch):
    """But for the small problems of a sample and of unmatched rows."""
    costs = PointCosts(*two_clouds("normal", (50, 50), 2))
    tune(monkeypatch, tunings, least_sampled=100, few=50)
    monkeypatch.setattr(PointCosts, "dense", None)
    task = task_of(costs)
    assert engine.run(task, solve)
    assert task.solution.has_duals
    assert task.solution.are_fair
    rounds = [phase for phase in task.control.trace if phase.get("step") == "pricing"]
    assert [phase["round"] for phase in rounds] == list(range(1, len(rounds) + 1))
    assert rounds[-1]["undercut"] == 0
    assert rounds[-1]["pairs"] < 2500


def test_a_core_that_becomes_large_gives_way_to_the_matrix(monkeypatch):
    costs = PointCosts(*two_clouds("normal", (30, 30), 2))
    tune(monkeypatch, tunings, share=0.01)
    assert engine.run(task_of(costs), solve) is None
    made = []
    stored = PointCosts.stored
    monkeypatch.setattr(PointCosts, "stored", lambda self: made.append(1) or stored(self))
    a = gm.assign(costs, backend="cpu")
    assert made
    assert a.objective == pytest.approx(gm.assign(stored(costs).values).objective)


@pytest.mark.parametrize("d", [2, 8])
@pytest.mark.parametrize("side", ["rows", "columns"])
def test_copies_of_one_point_end_soon(side, d, monkeypatch):
    """All copies name the same partners: rows would be matched a few at a time."""
    tune(monkeypatch, tunings, places=0)
    here, spread = np.zeros((90, d)), two_clouds("normal", (90, 90), d)[0]
    costs = PointCosts(*((here, spread) if side == "rows" else (spread, here)))
    depths, solved = [0], engine._Engine.solved

    def counted(self, *sides):
        depths.append(depths[-1] + 1)
        part = solved(self, *sides)
        depths.append(depths[-1] - 1)
        return part

    monkeypatch.setattr(engine._Engine, "solved", counted)
    task = task_of(costs)
    assert engine.run(task, solve)
    rounds = [phase["round"] for phase in task.control.trace if phase.get("step") == "pricing"]
    assert max(depths) <= 7  # halves of 90
    assert max(rounds) <= 15
    total = costs.at(np.arange(90), task.solution.row_to_col).sum()
    assert total == pytest.approx(gm.assign(costs.dense()).objective)


def test_costs_without_any_candidate_are_solved_by_their_matrix(monkeypatch):
    """The search of the unmatched rows would be for all rows again, without end."""
    costs = PointCosts(*two_clouds("normal", (30, 30), 4))
    monkeypatch.setattr(engine._Engine, "name_nearest", lambda *_: [(np.empty(0, int),) * 2])
    assert engine.run(task_of(costs), solve) is None


@pytest.mark.parametrize("d", [1, 2, 3])
def test_prices_of_a_sample_are_tried_where_rows_stay_unmatched(d, monkeypatch):
    costs = PointCosts(*two_clouds("shifted", (120, 120), d), "euclidean")
    tune(monkeypatch, tunings, nearest=1)
    tried = []
    sample = engine._Engine.prices_of_sample
    monkeypatch.setattr(
        engine._Engine, "prices_of_sample", lambda self: tried.append(1) or sample(self)
    )
    a = gm.assign(costs, backend="cpu")
    assert tried
    assert a.objective == pytest.approx(gm.assign(costs.dense()).objective)


def rounds_of(costs):
    """The result, and its phases of pricing."""
    a = gm.assign(costs, backend="cpu")
    assert a.objective == pytest.approx(gm.assign(costs.dense()).objective)
    return [phase for phase in a.stats["trace"] if phase.get("step") == "pricing"]


def test_each_cluster_has_its_share_of_the_sample(monkeypatch):
    rng = np.random.default_rng(4)
    places = np.array([[0, 0], [50, 0], [0, 50]])
    X, Y = (
        np.repeat(places, counts, axis=0) + rng.normal(size=(160, 2))
        for counts in ((80, 48, 32), (48, 48, 64))
    )
    costs = PointCosts(X, Y)
    samples = []
    solved = engine._Engine.solved
    monkeypatch.setattr(
        engine._Engine,
        "solved",
        lambda self, *sides: samples.append(sides) or solved(self, *sides),
    )
    rounds_of(costs)
    rows, cols = samples[0]
    assert np.bincount(np.searchsorted([80, 128], rows, side="right")) == pytest.approx(
        [20, 12, 8], abs=1
    )
    assert np.bincount(np.searchsorted([48, 96], cols, side="right")) == pytest.approx(
        [12, 12, 16], abs=1
    )


def test_lines_along_which_clusters_are_torn_cost_few_pricings(monkeypatch):
    """Prices that are smooth across them let most rows name wrong columns."""
    rng = np.random.default_rng(5)
    places = np.array([[0, 0], [9, 0], [0, 9]])
    X, Y = (
        np.repeat(places, counts, axis=0) + rng.normal(size=(3000, 2))
        for counts in ((1500, 900, 600), (900, 900, 1200))
    )
    tune(monkeypatch, tunings, least_sampled=500, priced=24, stored=2**19, few=256)
    undercut, objectives = [], []
    for are_known in (True, False):
        if not are_known:
            monkeypatch.setattr(extension, "torn", lambda points, *_: np.empty(0, np.int64))
        a = gm.assign(PointCosts(X, Y), backend="cpu")
        objectives.append(a.objective)
        whole = [p for p in a.stats["trace"] if p.get("step") == "pricing" and p["matched"] == 3000]
        undercut.append(sum(phase["undercut"] for phase in whole))
    assert objectives[1] == pytest.approx(objectives[0], rel=1e-12)
    assert undercut[0] < 100
    assert undercut[1] > 1000


def test_clouds_that_are_apart_begin_with_prices_of_a_sample(monkeypatch):
    costs = PointCosts(*two_clouds("shifted", (300, 300), 3), "euclidean")
    tune(monkeypatch, tunings, nearest=8, priced=8, added=8, least_sampled=100)
    few = rounds_of(costs)
    monkeypatch.setattr(steps, "are_apart", lambda _: False)
    many = rounds_of(costs)
    assert few[-1]["pairs"] < many[-1]["pairs"]
    assert few[-1]["round"] <= many[-1]["round"]
    squared = PointCosts(*two_clouds("shifted", (300, 300), 3))
    monkeypatch.undo()
    assert not steps.are_apart(squared.points)


@pytest.mark.parametrize("given", [False, True])
def test_squared_distances_in_the_plane_begin_with_prices_of_a_sample(given, monkeypatch):
    """At these prices the cheapest need few pricings; pairs that are given take their place."""
    costs = PointCosts(*two_clouds("shifted", (300, 300), 2))
    tune(monkeypatch, tunings, least_sampled=100, priced=12)
    named = []
    name_nearest = engine._Engine.name_nearest
    monkeypatch.setattr(
        engine._Engine,
        "name_nearest",
        lambda self, costs, *rest: named.append(costs.shape[0]) or name_nearest(self, costs, *rest),
    )
    initial = gm.assign(costs.dense(), backend="cpu") if given else None
    a = gm.assign(costs, backend="cpu", initial=initial)
    assert a.objective == pytest.approx(gm.assign(costs.dense()).objective)
    assert (300 in named) == given
    gm.verify(costs, a)


@pytest.mark.parametrize("useless", [0.01, 2.0])
def test_nearest_points_that_leave_many_rows_are_forgotten(useless, monkeypatch):
    X, Y = two_clouds("normal", (300, 300), 3)
    X[:200, 0] += 9
    Y[:100, 0] += 9
    tune(monkeypatch, tunings, least_sampled=100, nearest=6, priced=4, useless=useless)
    sizes = []
    add_priced = steps.PointsEngine.add_priced

    def add(self, *prices):
        sizes.append(self.pairs.keys.size)
        add_priced(self, *prices)

    monkeypatch.setattr(steps.PointsEngine, "add_priced", add)
    costs = PointCosts(X, Y)
    a = gm.assign(costs, backend="cpu")
    assert a.objective == pytest.approx(gm.assign(costs.dense()).objective)
    assert (sizes == [0]) == (useless < 1)


def test_many_rows_that_are_undercut_bid_again(monkeypatch):
    costs = PointCosts(*two_clouds("normal", (300, 300), 2))
    tune(monkeypatch, tunings, least_sampled=1000, bid_again=1 / 16)
    a = gm.assign(costs, backend="cpu")
    assert a.objective == pytest.approx(gm.assign(costs.dense()).objective)
    trace = a.stats["trace"]
    after = [
        then.get("step") for phase, then in pairwise(trace) if phase.get("undercut", 0) > 300 / 4
    ]
    assert after
    assert set(after) == {"auction"}
    assert trace[-1]["undercut"] == 0


@pytest.mark.parametrize("ticks", [1, 2, 3, 5, 8, 13, 21])
def test_a_run_that_stops_claims_nothing_false(ticks):
    costs = PointCosts(*two_clouds("normal", (60, 60), 2))
    calls = []

    def stop(progress):
        calls.append(1)
        return len(calls) >= ticks

    a = gm.assign(costs, backend="cpu", callback=stop)
    assert a.proven or a.gap > 0
    gm.verify(costs, a, optimal=False)
    whole = gm.assign(costs, initial=a, backend="cpu")
    assert whole.objective == pytest.approx(gm.assign(costs.dense()).objective)


@pytest.mark.parametrize("d", [2, 12])
def test_a_run_that_stops_after_a_pricing_has_a_true_gap(d, monkeypatch):
    """Duals that pairs undercut are lowered, so that the bound holds."""
    costs = PointCosts(*two_clouds("normal", (200, 200), d))
    best = gm.assign(costs.dense(), backend="cpu").objective
    tune(monkeypatch, tunings, nearest=8, nearest_of_many=8, added=4, least_sampled=1000)
    priced = []
    keep = steps.PointsEngine.keep_priced
    monkeypatch.setattr(
        steps.PointsEngine,
        "keep_priced",
        lambda self, *found: priced.append(1) or keep(self, *found),
    )
    a = gm.assign(costs, backend="cpu", callback=lambda _: bool(priced))
    assert priced
    assert not a.proven
    assert a.objective - best <= a.gap < 0.1 * best
    gm.verify(costs, a, optimal=False)


def test_initial_prices_and_pairs_are_candidates():
    X, Y = two_clouds("normal", (50, 50), 2)
    before = gm.assign(PointCosts(X, Y), backend="cpu")
    costs = PointCosts(X + 1e-3, Y)
    expected = gm.assign(costs.dense()).objective
    for initial in (before, before.row_to_col):
        a = gm.assign(costs, initial=initial, backend="cpu")
        assert a.objective == pytest.approx(expected)


def test_small_problems_go_by_the_matrix(monkeypatch):
    tune(monkeypatch, tunings, stored=2**20)
    costs = PointCosts(*two_clouds("normal", (20, 20), 2))
    assert not engine.takes(task_of(costs))
    assert not engine.takes(task_of(DenseCosts(costs.dense())))


def test_rounding_is_no_reason_for_a_round():
    """Copies of points tie to the last digit, and rounding may break the ties."""
    X, _ = two_clouds("normal", (30, 30), 3)
    costs = PointCosts(X, X[::-1] + 1e-9, "euclidean")
    task = task_of(costs)
    assert engine.run(task, solve)
    a = gm.assign(costs, backend="cpu")
    assert a.row_to_col.tolist() == list(range(29, -1, -1))
    gm.verify(costs, a)
