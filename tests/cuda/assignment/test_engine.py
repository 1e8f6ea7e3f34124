"""What the engine tries first, when it is given up, and that the auction ends what trees began."""

from __future__ import annotations

import weakref
from types import SimpleNamespace

import numpy as np
import pytest

cupy = pytest.importorskip("cupy")

from gpumatch.contracts import AssignmentTask, Solution  # noqa: E402
from gpumatch.cuda.assignment import auction, engine  # noqa: E402
from gpumatch.cuda.assignment.dense.tuning import DEFAULT  # noqa: E402
from gpumatch.cuda.assignment.hungarian import tree as hungarian_tree  # noqa: E402
from gpumatch.cuda.assignment.hungarian.search import Patience  # noqa: E402

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

    monkeypatch.setattr(hungarian_tree, "run", stand_in("tree"))
    monkeypatch.setattr(auction, "run", stand_in("auction"))
    monkeypatch.setattr(engine, "_has_team", lambda *_: False)
    monkeypatch.setattr(engine, "count_matched", lambda mates: int((mates >= 0).sum()))
    return made, orders


@pytest.fixture(autouse=True)
def no_sparse_engine(request, monkeypatch):
    """Costs without a device are not sparse."""
    if "gpu" not in request.keywords:
        for way in (engine.sparse, engine.stages):
            monkeypatch.setattr(way, "takes", lambda *_: False)
        monkeypatch.setattr(engine, "_may_be_sorted", lambda _: False)


def drive(*, stopped=False, has_matrix=True):
    """The engine's answer, and what it leaves."""
    task = task_of_three(stopped=stopped, has_matrix=has_matrix)
    ended = engine.run(task)
    return ended, [part.tolist() for part in (*task.mates, *task.duals)]


def task_of_three(*, stopped=False, has_matrix=True):
    arrays = np.full(3, -1), np.full(3, -1), np.zeros(3), np.zeros(3)
    costs = SimpleNamespace(
        shape=(3, 3), has_matrix=has_matrix, is_computed=False, nnz=9, readable=lambda: costs
    )
    control = SimpleNamespace(stopped=stopped, tick=lambda _: stopped)
    return AssignmentTask(costs, Solution(*arrays), control)


PATIENT, IMPATIENT = {}, {"patience": engine.patience_for(3, DEFAULT)}
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


def no_room(*_):
    raise MemoryError("the matrix of sparse costs")


def test_a_fallback_closes_the_auctions_gap_where_trees_have_no_room(monkeypatch):
    monkeypatch.setattr(hungarian_tree, "run", no_room)
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
    monkeypatch.setattr(hungarian_tree, "run", no_room)
    task = task_of_three(has_matrix=has_fallback)
    task.fallback = no_room if has_fallback else None
    with pytest.raises(MemoryError, match="the matrix of sparse costs"):
        auction._close_gap(task)


def test_patience_ends_where_one_row_in_ten_still_wants_a_column():
    patience = Patience(for_most=10, in_all=100)
    assert not patience.is_out(steps=10, wanting=39, rows=39)
    assert patience.is_out(steps=11, wanting=4, rows=39)
    assert not patience.is_out(steps=100, wanting=4, rows=40)
    assert patience.is_out(steps=101, wanting=1, rows=40)


def test_patience_is_a_step_a_row_at_least():
    few, many = engine.patience_for(3, DEFAULT), engine.patience_for(10**5, DEFAULT)
    assert (few.for_most, many.for_most) == (2048, 10**5)
    assert few.in_all > few.for_most
    assert many.in_all > 10 * many.for_most


# -- the core, without a device --------------------------------------------------------------------


@pytest.fixture
def with_core(calls, monkeypatch):
    """The engine's calls, the core's with the solution that it begins from; how each is to end."""
    made, orders = calls
    told = SimpleNamespace(made=made, orders=orders, begins_with_trees=False)

    def solve_by_core(task, _):
        made.append(("core", [part.tolist() for part in (*task.mates, *task.duals)]))
        answer = orders["core"].pop(0)
        task.solution.col_dual[:] = 7
        return answer

    monkeypatch.setattr(engine, "_has_core", lambda *_: True)
    monkeypatch.setattr(engine, "_begins_with_trees", lambda *_: told.begins_with_trees)
    monkeypatch.setattr(engine, "_solve_by_core", solve_by_core)
    return told


TRIAL = {"patience": Patience(*DEFAULT.trial)}


def test_a_core_that_is_solved_is_all_there_is(with_core):
    with_core.orders["core"] = [True]
    assert drive()[0]
    assert with_core.made == [("core", NOTHING)]


def test_trees_go_on_from_a_core_that_is_given_up(with_core):
    with_core.orders.update(core=[False], tree=[(True, 3)])
    assert drive() == (True, left(3, call=2))
    assert with_core.made[1] == ("tree", [*NOTHING[:3], [7] * 3], IMPATIENT, 0)


def test_a_core_that_is_stopped_is_all_there_is(with_core):
    with_core.orders["core"] = [False]
    assert not drive(stopped=True)[0]
    assert len(with_core.made) == 1


def test_a_trial_of_trees_may_be_all_there_is(with_core):
    with_core.begins_with_trees = True
    with_core.orders["tree"] = [(True, 3)]
    assert drive() == (True, left(3, call=1))
    assert with_core.made == [("tree", NOTHING, TRIAL, 0)]


def test_a_core_begins_from_what_was_given_and_not_from_a_trial(with_core):
    with_core.begins_with_trees = True
    with_core.orders.update(tree=[(False, 2)], core=[True])
    task = task_of_three(stopped=False)
    task.solution.col_dual[:] = -4
    assert engine.run(task)
    assert with_core.made[1] == ("core", [*NOTHING[:3], [-4] * 3])


def test_a_trial_that_is_stopped_keeps_its_pairs(with_core):
    with_core.begins_with_trees = True
    with_core.orders["tree"] = [(False, 2)]
    assert drive(stopped=True) == (False, left(2, call=1))


# -- a team, without a device ----------------------------------------------------------------------


@pytest.fixture
def with_team(with_core, monkeypatch):
    """Likewise, the team's with the steps that it may take."""
    made, orders = with_core.made, with_core.orders

    def run_one(task, most_steps):
        made.append(("team", most_steps))
        return orders["team"].pop(0)

    monkeypatch.setattr(engine, "_has_team", lambda *_: True)
    monkeypatch.setattr(engine.device_batch, "run_one", run_one)
    return with_core


def test_a_team_that_ends_is_all_there_is(with_team):
    with_team.orders["team"] = [True]
    assert drive()[0]
    assert with_team.made == [("team", 2**14)]


def test_a_core_follows_a_team_that_gives_up(with_team):
    with_team.orders.update(team=[False], core=[True])
    assert drive()[0]
    assert with_team.made == [("team", 2**14), ("core", NOTHING)]


def test_a_team_does_not_begin_once_stopped(with_team):
    assert not drive(stopped=True)[0]
    assert with_team.made == []


@pytest.mark.parametrize(
    ("shape", "limit", "most"),
    [((1024, 1024), None, 2**14), ((1025, 1025), None, 2048), ((512, 513), None, 2048),
     ((512, 512), 1.0, 2048)],
)  # fmt: skip
def test_a_team_has_more_steps_in_small_squares_that_must_be_matched(with_team, shape, limit, most):
    with_team.orders["team"] = [True]
    task = task_of_three(stopped=False)
    task.costs.shape, task.limit = shape, limit
    assert engine.run(task)
    assert with_team.made == [("team", most)]


UNIFORM = (0.0, 1.0)


@pytest.mark.parametrize(
    ("shape", "values", "limit", "wanted"),
    [
        ((1024, 1024), UNIFORM, None, True),
        ((1025, 1025), UNIFORM, None, False),
        ((1025, 1025), UNIFORM, 0.5, True),
        ((2000, 2560), UNIFORM, None, True),
        ((2000, 2561), UNIFORM, None, False),
        ((4096, 4096), (0, 4096 // 33), None, True),
        ((4096, 4096), (0, 4096 // 32), None, False),
        ((4096, 4096), (0.5, 0.5), None, True),
        ((4097, 4097), (7, 7), None, False),
        ((0, 10), UNIFORM, None, False),
    ],
)
def test_a_team_has_few_rows_or_easy_ones(shape, values, limit, wanted):
    low, high = values
    costs = SimpleNamespace(
        shape=shape, low=low, high=high, is_integer=isinstance(high, int), has_matrix=True
    )
    task = SimpleNamespace(costs=costs, limit=limit, is_fresh=True)
    assert engine._has_team(task, DEFAULT) is wanted
    task.is_fresh = False
    assert not engine._has_team(task, DEFAULT)
    task.is_fresh, costs.has_matrix = True, False
    assert not engine._has_team(task, DEFAULT)


MANY, FEW = 5000, 1000


@pytest.mark.parametrize(
    ("shape", "values", "limit", "wanted"),
    [
        ((FEW, FEW), (0.0, 1.0), None, False),
        ((FEW, FEW), (0, 10 * FEW), None, True),
        ((FEW, FEW + 1), (0.0, 1.0), None, True),
        ((FEW, FEW), (0.0, 1.0), 0.5, True),
        ((MANY, MANY), (0, MANY), None, False),
        ((MANY, MANY), (0, MANY // 10), None, True),
        ((MANY, MANY + 1), (0.0, 1.0), None, False),
        ((MANY, MANY), (0, 1), None, False),
        ((FEW, FEW), (7, 7), None, False),
        ((10 * MANY, 10 * MANY), (0, MANY), None, False),
    ],
)
def test_trees_begin_where_they_end_soon(shape, values, limit, wanted):
    low, high = values
    costs = SimpleNamespace(shape=shape, low=low, high=high, is_integer=isinstance(high, int))
    task = SimpleNamespace(costs=costs, limit=limit)
    assert engine._begins_with_trees(task, DEFAULT) is wanted


@pytest.mark.parametrize(
    ("nrows", "largest", "has_matrix", "wanted"),
    [
        (100, 1, True, True),
        (99, 1, True, False),
        (100, 1, False, False),
        (100, 2**50, True, True),
        (100, 2**55, True, False),
    ],
)
def test_a_core_is_of_many_rows_of_a_matrix(nrows, largest, has_matrix, wanted):
    costs = SimpleNamespace(
        shape=(nrows, nrows), has_matrix=has_matrix, is_integer=True,
        low=0, high=largest, largest=largest,
    )  # fmt: skip
    assert engine._has_core(SimpleNamespace(costs=costs, limit=None), DEFAULT) is wanted


def test_a_core_that_has_no_room_is_left_out(calls, monkeypatch):
    made, orders = calls
    monkeypatch.setattr(engine, "_has_core", lambda *_: True)
    monkeypatch.setattr(engine, "_begins_with_trees", lambda *_: False)
    monkeypatch.setattr(engine.memory, "require_memory", no_room)
    orders["tree"] = [(True, 3)]
    assert drive() == (True, left(3, call=1))
    assert made == [("tree", NOTHING, IMPATIENT, 0)]
