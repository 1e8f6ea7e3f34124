"""The engine on a device: who solves what, and that all that may be asked for is solved."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import gpumatch as gm
from graphs import costs
from tests.cpu.assignment.tuned import tune

cupy = pytest.importorskip("cupy")

from gpumatch.cuda.assignment import engine  # noqa: E402
from gpumatch.cuda.assignment.batched import tuning as team_tuning  # noqa: E402
from gpumatch.cuda.assignment.dense import tuning  # noqa: E402
from gpumatch.cuda.assignment.hungarian import search as hungarian_search  # noqa: E402
from gpumatch.cuda.assignment.hungarian.search import Patience  # noqa: E402


def solve(matrix, **wish):
    return gm.assign(matrix, algorithm="engine", backend="cuda", **wish)


def was_handed_over(a):
    return any("rounds" in phase for phase in a.stats["trace"])


@pytest.fixture
def no_core(monkeypatch):
    """Nor a team, nor an order of Monge costs."""
    for has in ("_has_core", "_has_team", "_may_be_sorted"):
        monkeypatch.setattr(engine, has, lambda *_: False)


@pytest.mark.gpu
@pytest.mark.usefixtures("no_core")
@pytest.mark.parametrize(
    ("matrix", "is_hard"),
    [
        (costs.low_rank(900, rank=1), True),
        (costs.machol_wien(900), True),
        (-costs.geom(1_200), True),
        (costs.low_rank(900, 1_100, rank=1), True),
        (costs.uniform_float(900), False),
        (costs.uniform_integer(900, factor=10), False),
        (costs.geom2(900), False),
        (costs.two_cost(900), False),
    ],
    ids=["rank 1", "machol-wien", "geom", "wide rank 1", "floats", "integers", "geom2", "two-cost"],
)
def test_who_solves_what(matrix, is_hard):
    a = solve(matrix)
    gm.verify(matrix, a)
    assert a.proven
    assert was_handed_over(a) is is_hard
    rows, cols = linear_sum_assignment(matrix)
    assert math.isclose(a.objective, matrix[rows, cols].sum(), rel_tol=1e-12)


@pytest.fixture(params=[1, 2, 5])
def hasty(request, monkeypatch, no_core):
    """Trees come first, and are given up after so many steps."""
    monkeypatch.setattr(hungarian_search, "_STEPS_A_LAUNCH", request.param)
    monkeypatch.setattr(engine, "patience_for", lambda *_: Patience(0, 0))


WISHES = [
    {},
    {"maximize": True},
    {"cost_limit": 40},
    {"cardinality": "any"},
    {"cardinality": "maximum"},
    {"cardinality": "maximum", "cost_limit": 40},
]


@pytest.mark.gpu
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("dtype", [np.int32, np.float64])
@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_whatever_is_asked_for_may_be_handed_over(wish, dtype):
    rng = np.random.default_rng(6)
    for shape in ((40, 40), (30, 50), (50, 30), (3, 200)):
        matrix = rng.integers(-20, 100, shape).astype(dtype)
        if dtype is np.float64:
            matrix += rng.random(shape)
            matrix[rng.random(shape) < 0.3] = -math.inf if wish.get("maximize") else math.inf
            np.fill_diagonal(matrix, 99)
        a = solve(matrix, **wish)
        assert gm.verify(matrix, a)
        if min(shape) > 3:  # a limit among the largest forbids pairs, which leaves sparse costs
            assert was_handed_over(a) == (wish != WISHES[-1])
        b = gm.assign(matrix, backend="cpu", **wish)
        limit = wish.get("cost_limit", 0)
        ours, theirs = (x.objective - limit * x.size for x in (a, b))
        assert math.isclose(ours, theirs, rel_tol=1e-9)


@pytest.mark.gpu
@pytest.mark.usefixtures("hasty")
def test_infeasible_costs_are_refused():
    matrix = np.random.default_rng(2).random((40, 60))
    matrix[5:12, 3:] = math.inf
    with pytest.raises(gm.InfeasibleError) as caught:
        solve(matrix)
    assert caught.value.rows.size > caught.value.cols.size


@pytest.mark.gpu
@pytest.mark.usefixtures("no_core")
@pytest.mark.parametrize(("at", "is_later"), [(1, False), (5, False), (12, True)])
def test_it_stops_on_either_side_of_the_handing_over(at, is_later):
    matrix, ticks = costs.low_rank(900, rank=1), iter(range(10_000))
    a = solve(matrix, callback=lambda progress: next(ticks) >= at)
    assert not a.proven
    assert was_handed_over(a) is is_later
    cols = a.row_to_col[a.row_to_col >= 0]
    assert len(set(cols.tolist())) == cols.size >= 1
    assert solve(matrix, initial=a).proven


CORE_FAMILIES = {
    "uniform": costs.uniform_float,
    "integers": costs.uniform_integer,
    "plane": costs.points,
    "rank 1": lambda n: costs.low_rank(n, rank=1),
    "rank 4": lambda n: costs.low_rank(n, rank=4),
    "machol-wien": costs.machol_wien,
    "far": lambda n: -costs.geom(n),
    "two-cost": costs.two_cost,
    "constant": costs.constant,
}


@pytest.fixture(params=[(64, 32, 16), (4, 3, 1)], ids=["many pairs", "few pairs"])
def only_core(request, monkeypatch):
    """The engine has nothing but its core, of few pairs a row and in many rounds."""
    first, again, more = request.param
    for has in ("_begins_with_trees", "_has_team", "_may_be_sorted"):
        monkeypatch.setattr(engine, has, lambda *_: False)
    tune(monkeypatch, tuning, first=first, again=again, more=more)
    return monkeypatch


@pytest.mark.gpu
@pytest.mark.usefixtures("only_core")
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("family", CORE_FAMILIES)
def test_a_core_finds_the_optimum(family, dtype):
    matrix = CORE_FAMILIES[family](700)
    matrix = (matrix if abs(matrix).max() > 2 else 1000 * matrix).astype(dtype)
    a = solve(matrix)
    gm.verify(matrix, a)
    assert a.proven
    rows, cols = linear_sum_assignment(matrix)
    wanted = matrix[rows, cols].astype(np.float64).sum()
    assert math.isclose(a.objective, wanted, rel_tol=1e-9)
    assert any("added" in phase for phase in a.stats["trace"])


@pytest.mark.gpu
@pytest.mark.usefixtures("only_core")
@pytest.mark.parametrize("wish", WISHES, ids=str)
@pytest.mark.parametrize("shape", [(600, 600), (600, 900), (900, 600)], ids=str)
def test_a_core_does_whatever_is_asked_for(wish, shape):
    rng = np.random.default_rng(6)
    for matrix in (rng.integers(-20, 400, shape), rng.random(shape) * 100 - 20):
        a = solve(matrix, **wish)
        assert gm.verify(matrix, a)
        assert a.proven
        b = gm.assign(matrix, backend="cpu", **wish)
        limit = wish.get("cost_limit", 0)
        ours, theirs = (x.objective - limit * x.size for x in (a, b))
        assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.gpu
@pytest.mark.usefixtures("only_core")
@pytest.mark.parametrize("family", ["uniform", "far"])
def test_a_core_stops_at_any_tick(family):
    matrix, ticks = CORE_FAMILIES[family](700), []
    assert solve(matrix, callback=ticks.append).proven
    for last in range(1, len(ticks), max(1, len(ticks) // 5)):
        left = iter(range(10_000))
        a = solve(matrix, callback=lambda _, left=left, last=last: next(left) >= last)
        assert not a.proven or a.gap <= 1e-12 * abs(a.objective)
        assert (a.row_dual[:, None] + a.col_dual <= matrix + 1e-9).all()
        rows = np.flatnonzero(a.row_to_col >= 0)
        assert (a.col_to_row[a.row_to_col[rows]] == rows).all()
    assert solve(matrix, initial=a).proven


@pytest.mark.gpu
@pytest.mark.usefixtures("only_core")
def test_a_core_of_an_infeasible_problem_is_given_up():
    matrix = np.random.default_rng(2).random((600, 600))
    matrix[5:12, 3:] = math.inf
    with pytest.raises(gm.InfeasibleError) as caught:
        solve(matrix)
    assert caught.value.rows.size > caught.value.cols.size


def was_of_a_team(a):
    return any(phase.get("step") == "team" for phase in a.stats["trace"])


@pytest.mark.gpu
@pytest.mark.parametrize("wish", WISHES[:-1], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (40, 40), (60, 700), (700, 60), (700, 700)], ids=str)
def test_a_team_does_whatever_is_asked_for(wish, shape):
    rng = np.random.default_rng(6)
    whole, real = rng.integers(-20, 400, shape), rng.random(shape) * 100 - 20
    narrow = rng.random(shape)
    narrow[rng.random(shape) < 0.3] = -math.inf if wish.get("maximize") else math.inf
    for matrix in (whole, whole.astype(np.int32), real, real.astype(np.float32), narrow):
        if not np.isfinite(matrix).all() and min(shape) < 40:
            continue  # it may be infeasible
        a = solve(matrix, **wish)
        gm.verify(matrix, a)
        assert a.proven
        assert was_of_a_team(a)
        b = gm.assign(matrix, backend="cpu", **wish)
        limit = wish.get("cost_limit", 0)
        ours, theirs = (x.objective - limit * x.size for x in (a, b))
        assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)


def check_without_a_team(matrix):
    a = solve(matrix)
    gm.verify(matrix, a)
    assert a.proven
    assert not was_of_a_team(a)


@pytest.mark.gpu
@pytest.mark.parametrize("steps", [0, 1, 100])
def test_what_a_team_gives_up_is_solved(steps, monkeypatch):
    tune(monkeypatch, tuning, steps_of_team=(steps, steps))
    tune(monkeypatch, team_tuning, steps_before_a_guess=steps // 2)
    check_without_a_team(costs.low_rank(300, rank=1))


@pytest.mark.gpu
def test_a_team_leaves_what_floats_cannot_add_to_others():
    check_without_a_team(np.random.default_rng(1).integers(2**47, 2**47 + 99, (30, 30)))


@pytest.mark.gpu
def test_given_pairs_are_where_the_search_begins_and_not_a_team():
    matrix = np.random.default_rng(1).random((200, 200))
    a = solve(matrix)
    assert was_of_a_team(a)
    assert not was_of_a_team(solve(matrix, initial=a))
