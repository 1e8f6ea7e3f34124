"""When the engine's trees are given up, and that the auction ends what they began."""

from __future__ import annotations

import math
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import gpumatch as gm
from graphs import costs

cupy = pytest.importorskip("cupy")

from gpumatch.contracts import AssignmentTask, Solution  # noqa: E402
from gpumatch.cuda.assignment import (  # noqa: E402  they import cupy
    auction,
    engine,
    hungarian,
)


def solve(matrix, **wish):
    return gm.assign(matrix, algorithm="engine", backend="cuda", **wish)


def was_handed_over(a):
    return any("rounds" in phase for phase in a.stats["trace"])


# -- the driver, without a device ------------------------------------------------------------------


class Caught:
    """What a frame holds while its exception lives."""


@pytest.fixture
def calls(monkeypatch):
    """What the engine calls, in order, and their orders: answer and matched rows, or an error."""
    made, orders, held = [], {}, []

    def stand_in(name):
        def run(task, **options):
            solution = *task.mates, *task.duals
            caught = Caught()
            held.append(weakref.ref(caught))
            alive = sum(one() is not None for one in held) - 1
            made.append((name, [part.tolist() for part in solution], options, alive))
            order = orders[name].pop(0)
            if isinstance(order, type):
                raise order
            answer, matched = order
            solution[0][:matched] = solution[1][:matched] = range(matched)
            solution[2][:], solution[3][:] = len(made), -len(made)
            return answer

        return run

    monkeypatch.setattr(hungarian, "run_tree", stand_in("tree"))
    monkeypatch.setattr(auction, "run", stand_in("auction"))
    monkeypatch.setattr(engine, "count_matched", lambda mates: int((mates >= 0).sum()))
    return made, orders


@pytest.fixture(autouse=True)
def no_sparse_engine(request, monkeypatch):
    """Costs without a device are not sparse."""
    if "gpu" not in request.keywords:
        monkeypatch.setattr(engine.sparse, "takes", lambda *_: False)


def drive(*, stopped=False, has_matrix=True):
    """The engine's answer, and what it leaves."""
    task = task_of_three(stopped=stopped, has_matrix=has_matrix)
    ended = engine.run(task)
    return ended, [part.tolist() for part in (*task.mates, *task.duals)]


def task_of_three(*, stopped=False, has_matrix=True):
    arrays = np.full(3, -1), np.full(3, -1), np.zeros(3), np.zeros(3)
    costs = SimpleNamespace(shape=(3, 3), has_matrix=has_matrix)
    return AssignmentTask(costs, Solution(*arrays), SimpleNamespace(stopped=stopped))


PATIENT, IMPATIENT = {}, {"patience": engine.patience_for(3)}
NOTHING = [[-1] * 3, [-1] * 3, [0] * 3, [0] * 3]


def left(matched, call):
    """What a stand-in leaves that matched so many rows as the call of this number."""
    mates = [*range(matched), *[-1] * (3 - matched)]
    return [mates, mates, [call] * 3, [-call] * 3]


def test_trees_that_end_are_all_there_is(calls):
    made, orders = calls
    orders["tree"] = [(True, 3)]
    assert drive() == (True, left(3, call=1))
    assert made == [("tree", NOTHING, IMPATIENT, 0)]


def test_sparse_costs_have_an_engine_of_their_own(calls, monkeypatch):
    made, _ = calls
    monkeypatch.setattr(engine.sparse, "takes", lambda *_: True)
    monkeypatch.setattr(engine.sparse, "run", lambda task: "its answer")
    assert drive(has_matrix=False)[0] == "its answer"
    assert made == []


def test_a_stopped_search_is_not_handed_over(calls):
    made, orders = calls
    orders["tree"] = [(False, 1)]
    assert drive(stopped=True) == (False, left(1, call=1))
    assert len(made) == 1


def test_the_auction_begins_anew(calls):
    made, orders = calls
    orders.update(tree=[(False, 2)], auction=[(True, 3)])
    assert drive() == (True, left(3, call=2))
    assert made[1] == ("auction", NOTHING, PATIENT, 0)


@pytest.mark.parametrize(("matched", "kept"), [(1, 1), (2, 2), (3, 2)])
def test_a_stopped_auction_leaves_the_larger_assignment(calls, matched, kept):
    _, orders = calls
    orders.update(tree=[(False, 2)], auction=[(False, matched)])
    assert drive() == (False, left(max(matched, 2), call=kept))


def test_an_interrupted_auction_leaves_what_the_trees_had(calls):
    _, orders = calls
    orders.update(tree=[(False, 2)], auction=[KeyboardInterrupt])
    task = task_of_three()
    with pytest.raises(KeyboardInterrupt):
        engine.run(task)
    assert [part.tolist() for part in (*task.mates, *task.duals)] == left(2, call=1)


def test_trees_end_what_the_auction_has_no_room_for(calls):
    made, orders = calls
    orders.update(tree=[(False, 2), (True, 3)], auction=[MemoryError])
    assert drive() == (True, left(3, call=3))
    assert made[2] == ("tree", left(2, call=1), PATIENT, 0)


def test_the_auction_takes_sparse_costs_that_trees_have_no_room_for(calls):
    _, orders = calls
    orders.update(tree=[MemoryError], auction=[(True, 3)])
    assert drive(has_matrix=False) == (True, left(3, call=2))
    orders.update(tree=[MemoryError])
    with pytest.raises(MemoryError):
        drive()


class SparseCosts(SimpleNamespace):
    """Costs on the device, whose copy on the host is told apart."""

    def to_host(self):
        return "costs on the host"


def no_room(task):
    raise MemoryError("the matrix of sparse costs")


def test_a_fallback_closes_the_auctions_gap_where_trees_have_no_room(monkeypatch):
    monkeypatch.setattr(hungarian, "run_tree", no_room)
    task = task_of_three(has_matrix=False)
    task.costs = SparseCosts(has_matrix=False)

    def fallback(closing):
        assert closing.costs == "costs on the host"
        assert all(isinstance(part, np.ndarray) for part in (*closing.mates, *closing.duals))
        closing.solution.col_dual[:] = -7
        return True

    task.fallback = fallback
    assert auction._close_gap(task)
    assert task.solution.col_dual.tolist() == [-7] * 3


@pytest.mark.parametrize("has_fallback", [False, True])
def test_the_auctions_gap_stays_where_nothing_can_close_it(has_fallback, monkeypatch):
    """Without a fallback; or with dense costs, which have no smaller form."""
    monkeypatch.setattr(hungarian, "run_tree", no_room)
    task = task_of_three(has_matrix=has_fallback)
    task.fallback = no_room if has_fallback else None
    with pytest.raises(MemoryError, match="the matrix of sparse costs"):
        auction._close_gap(task)


def test_patience_ends_where_one_row_in_ten_still_wants_a_column():
    patience = hungarian.Patience(for_most=10, in_all=100)
    assert not patience.is_out(steps=10, wanting=39, rows=39)
    assert patience.is_out(steps=11, wanting=4, rows=39)
    assert not patience.is_out(steps=100, wanting=4, rows=40)
    assert patience.is_out(steps=101, wanting=1, rows=40)


def test_patience_is_a_step_a_row_at_least():
    few, many = engine.patience_for(3), engine.patience_for(10**5)
    assert (few.for_most, many.for_most) == (2048, 10**5)
    assert few.in_all > few.for_most
    assert many.in_all > 10 * many.for_most


# -- on a device -----------------------------------------------------------------------------------


@pytest.mark.gpu
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
def hasty(request, monkeypatch):
    """Trees are given up after so many steps."""
    monkeypatch.setattr(hungarian, "_STEPS_A_LAUNCH", request.param)
    monkeypatch.setattr(engine, "patience_for", lambda nrows: hungarian.Patience(0, 0))


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
@pytest.mark.parametrize(("at", "is_later"), [(1, False), (5, False), (12, True)])
def test_it_stops_on_either_side_of_the_handing_over(at, is_later):
    matrix, ticks = costs.low_rank(900, rank=1), iter(range(10_000))
    a = solve(matrix, callback=lambda progress: next(ticks) >= at)
    assert not a.proven
    assert was_handed_over(a) is is_later
    cols = a.row_to_col[a.row_to_col >= 0]
    assert len(set(cols.tolist())) == cols.size >= 1
    assert solve(matrix, initial=a).proven
