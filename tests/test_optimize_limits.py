"""`linear_sum_assignment` with a limit, for one frame and for many: pairs, forms, and errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gpumatch as gm
import gpumatch.optimize
from gpumatch.optimize import linear_sum_assignment, linear_sum_assignment_batch
from gpumatch.problems import frames as problems_frames
from tests.frames import KINDS, check_pairs, frame

SIDES = 1, 2, 5, 15, 16, 17, 40, 64, 80, 100
LIMITS = 0.0, 0.02, 0.1, 0.25, 0.5, 1.0, 1.5, 3.0


def refuse(*args, **kwargs):
    raise AssertionError("the general way was taken")


def forms(costs):
    """The same costs in all the ways that they may lie in memory."""
    yield costs
    yield np.asfortranarray(costs)
    yield np.repeat(np.repeat(costs, 2, axis=0), 3, axis=1)[::2, ::3]
    yield costs[::-1, ::-1].copy()[::-1, ::-1]
    frozen = costs.copy()
    frozen.flags.writeable = False
    yield frozen
    yield costs.astype(">f8")


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_all_kinds(kind, monkeypatch):
    monkeypatch.setattr(gpumatch.optimize, "assign", refuse)
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(250):
        rows, cols = rng.choice(SIDES, 2).tolist()
        limit = float(rng.choice(LIMITS))
        costs = frame(rng, kind, rows, cols)
        pairs = linear_sum_assignment(costs, cost_limit=limit)
        check_pairs(pairs, costs, limit)
        turned = linear_sum_assignment(-costs, True, cost_limit=-limit)
        check_pairs(turned, -costs, -limit, maximize=True)


@pytest.mark.parametrize("shape", [(9, 30), (30, 9), (20, 20), (70, 33), (1, 5), (5, 1)], ids=str)
def test_costs_may_lie_in_memory_as_they_like(shape, monkeypatch):
    monkeypatch.setattr(gpumatch.optimize, "assign", refuse)
    rng = np.random.default_rng(5)
    costs = frame(rng, "uniform", *shape)
    best = linear_sum_assignment(costs, cost_limit=0.2)
    check_pairs(best, costs, 0.2)
    limits = rng.random(shape[0])
    own = linear_sum_assignment(costs, cost_limit=limits)
    check_pairs(own, costs, limits)
    for form in forms(costs):
        assert np.array_equal(linear_sum_assignment(form, cost_limit=0.2), best)
        assert np.array_equal(linear_sum_assignment(form, cost_limit=limits), own)
        assert np.array_equal(linear_sum_assignment(-form, True, -0.2), best)
        assert np.array_equal(linear_sum_assignment(-form, True, -limits), own)
    assert np.array_equal(linear_sum_assignment(costs.tolist(), cost_limit=0.2), best)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i1", "u4", "i8", "u8", "?"])
def test_other_dtypes(dtype):
    rng = np.random.default_rng(9)
    for shape in ((12, 20), (20, 12), (33, 33)):
        numbers = 10 * rng.random(shape)
        costs = (numbers > 5 if dtype == "?" else numbers).astype(dtype)
        for limit in (0, 0.5, 2, 7.25, np.float32(3), np.int64(4), np.array(6.0)):
            check_pairs(linear_sum_assignment(costs, cost_limit=limit), costs, limit)
            check_pairs(linear_sum_assignment(costs, True, limit), costs, limit, maximize=True)


def test_a_limit_is_compared_with_float32_without_rounding():
    cost = np.float32(0.1)  # above the float64
    assert len(linear_sum_assignment(np.array([[cost]]), cost_limit=0.1)[0]) == 0
    assert len(linear_sum_assignment(np.array([[cost]]), cost_limit=float(cost))[0]) == 1


def test_integers_beyond_floats_are_exact():
    costs = np.array([[2**53 + 1, 2**53 + 2], [2**53, 2**53 + 1]])
    rows, cols = linear_sum_assignment(costs, cost_limit=2**53)
    assert (rows.tolist(), cols.tolist()) == ([1], [0])
    rows, cols = linear_sum_assignment(costs, True, cost_limit=2**53 + 2)
    assert (rows.tolist(), cols.tolist()) == ([0], [1])


def test_columns_beyond_the_stack_and_costs_beyond_a_call():
    rng = np.random.default_rng(2)
    for shape in ((6, 700), (700, 6)):
        costs = rng.random(shape)
        check_pairs(linear_sum_assignment(costs, cost_limit=0.1), costs, 0.1)
        ((rows, cols),) = linear_sum_assignment_batch([costs], cost_limit=0.1)
        check_pairs((rows, cols), costs, 0.1)
    large = rng.random((1100, 1000)).astype(np.float32)
    check_pairs(linear_sum_assignment(large, cost_limit=0.001), large, 0.001)


@pytest.mark.parametrize("limit", [None, math.inf, -math.inf])
def test_no_limit(limit):
    costs = np.random.default_rng(4).random((6, 9))
    maximize = limit == -math.inf
    best = linear_sum_assignment(costs, maximize)
    assert np.array_equal(linear_sum_assignment(costs, maximize, limit), best)
    rows = None if limit is None else np.full(6, limit)
    assert np.array_equal(linear_sum_assignment(costs, maximize, rows), best)
    ((found, cols),) = linear_sum_assignment_batch([costs], maximize, limit)
    assert np.array_equal((found, cols), best)


def test_with_a_limit_nothing_is_infeasible():
    nothing = np.full((5, 7), math.inf)
    assert [part.size for part in linear_sum_assignment(nothing, cost_limit=1e6)] == [0, 0]
    with pytest.raises(ValueError, match="infeasible"):
        linear_sum_assignment(nothing)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (4, 0)], ids=str)
def test_empty_frames(shape):
    for limit in (0.5, np.full(shape[0], 0.5)):
        pairs = linear_sum_assignment(np.empty(shape), cost_limit=limit)
        assert [(part.dtype, part.size) for part in pairs] == [(np.int64, 0)] * 2


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("value", [math.nan, -math.inf], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (6, 6), (5, 70), (70, 5)], ids=str)
def test_numbers_that_are_not_valid(shape, value, maximize):
    for at in ((0, 0), (-1, -1), (-1, 0)):
        costs = np.random.default_rng(4).random(shape)
        costs[at] = -value if maximize else value
        for form in (costs, np.asfortranarray(costs), costs.astype(np.float32)):
            with pytest.raises(ValueError, match=r"^matrix contains invalid numeric entries$"):
                linear_sum_assignment(form, maximize, 0.3)
            with pytest.raises(ValueError, match=r"^problem 1: matrix contains invalid"):
                linear_sum_assignment_batch([np.ones((2, 2)), form], maximize, 0.3)


@pytest.mark.parametrize(
    ("limit", "error", "message"),
    [
        (math.nan, ValueError, "cost_limit must be None or finite"),
        (-math.inf, ValueError, "cost_limit must be None or finite"),
        ("0.5", TypeError, "cost_limit must be"),
        (True, TypeError, "cost_limit must be"),
        ([0.5, 0.5], ValueError, "2 numbers|3 numbers"),
        ([0.5, math.nan, 1], ValueError, r"cost_limit\[1\] is nan"),
        (np.ones((3, 3)), ValueError, "one for each row"),
        (["a", "b", "c"], (TypeError, ValueError), "cost_limit"),
    ],
)
def test_limits_that_are_none(limit, error, message):
    costs = np.ones((3, 4))
    with pytest.raises(error, match=message):
        linear_sum_assignment(costs, cost_limit=limit)


def test_what_is_no_matrix():
    for wrong in (np.ones(3), np.ones((1, 2, 3)), np.array(1.0)):
        with pytest.raises(ValueError, match="expected a matrix"):
            linear_sum_assignment(wrong, cost_limit=0.5)
    with pytest.raises(TypeError, match="Cannot cast"):
        linear_sum_assignment(np.ones((2, 2), complex), cost_limit=0.5)


def test_the_pairs_are_those_of_assign():
    rng = np.random.default_rng(11)
    for _ in range(30):
        costs = rng.random(rng.integers(1, 40, 2))
        a = gm.assign(costs, cost_limit=0.2)
        assert gm.verify(costs, a)
        rows, cols = linear_sum_assignment(costs, cost_limit=0.2)
        assert len(rows) == a.size
        assert math.isclose(costs[rows, cols].sum(), a.objective, abs_tol=1e-12)


def test_without_short_calls_assign_answers(monkeypatch):
    costs = np.random.default_rng(1).random((7, 9))
    best = linear_sum_assignment(costs, cost_limit=0.3)
    monkeypatch.setattr(problems_frames, "_kernels", lambda: None)
    monkeypatch.setattr(gpumatch.optimize, "_LIMITED", {})
    assert np.array_equal(linear_sum_assignment(costs, cost_limit=0.3), best)
    ((rows, cols),) = linear_sum_assignment_batch([costs], cost_limit=0.3)
    assert np.array_equal((rows, cols), best)


# -- many frames -----------------------------------------------------------------------------------


def ragged(rng, count, most=60):
    return [frame(rng, str(rng.choice(KINDS)), *rng.integers(0, most, 2)) for _ in range(count)]


@pytest.mark.parametrize("threads", [1, 2])
def test_ragged_frames(threads, monkeypatch):
    monkeypatch.setattr(gpumatch.optimize, "linear_sum_assignment", refuse)
    rng = np.random.default_rng(3)
    frames = ragged(rng, 400)
    own = rng.random(400)
    of_rows = [rng.random(len(costs)) for costs in frames]
    for limits in (0.3, own, own.tolist(), of_rows):
        found = linear_sum_assignment_batch(frames, cost_limit=limits, threads=threads)
        for k, (pairs, costs) in enumerate(zip(found, frames)):
            check_pairs(pairs, costs, limits if isinstance(limits, float) else limits[k])
    turned = linear_sum_assignment_batch([-costs for costs in frames], True, -own)
    for pairs, costs, limit in zip(turned, frames, own):
        check_pairs(pairs, -costs, -limit, maximize=True)


def test_frames_of_all_forms(monkeypatch):
    monkeypatch.setattr(gpumatch.optimize, "linear_sum_assignment", refuse)
    rng = np.random.default_rng(6)
    costs = rng.random((8, 13))
    frames = [*forms(costs), costs.astype(np.float32), (100 * costs).astype(int)]
    for pairs, form in zip(linear_sum_assignment_batch(frames, cost_limit=0.4), frames):
        check_pairs(pairs, form, 0.4)
    alike = [costs.astype(np.float32), np.asfortranarray(costs.astype(np.float32))]
    for limit in (0.4, [np.full(8, 0.4)] * 2):
        one, other = linear_sum_assignment_batch(alike, cost_limit=limit)
        assert np.array_equal(one, other)
        check_pairs(one, alike[0], 0.4)


def test_an_array_of_frames():
    rng = np.random.default_rng(8)
    costs = rng.random((40, 9, 14))
    rows, cols = rng.integers(0, 10, 40), rng.integers(0, 15, 40)
    costs_of = [one[:n, :m] for one, n, m in zip(costs, rows, cols)]
    limits = rng.random((40, 9))
    for form in (costs, np.asfortranarray(costs), costs[::-1][::-1]):
        for pairs, one in zip(linear_sum_assignment_batch(form, cost_limit=0.3), costs):
            check_pairs(pairs, one, 0.3)
        for pairs, one, own in zip(
            linear_sum_assignment_batch(form, cost_limit=limits), costs, limits
        ):
            check_pairs(pairs, one, own)
        found = linear_sum_assignment_batch(form, cost_limit=0.3, sizes=(rows, cols))
        for pairs, one in zip(found, costs_of):
            check_pairs(pairs, one, 0.3)


def test_an_array_of_frames_may_lie_in_memory_as_it_likes():
    drawn = np.random.default_rng(9).random((7, 6, 12))
    for stack in (drawn[::2, :, ::3], drawn[::-1].transpose(0, 2, 1), np.asfortranarray(drawn)):
        for kind in (np.float64, np.float32):
            own = stack.astype(kind, order="K")
            found = linear_sum_assignment_batch(own, cost_limit=0.3)
            for (rows, cols), costs in zip(found, own):
                alone = linear_sum_assignment(np.ascontiguousarray(costs), False, 0.3)
                assert (rows.tolist(), cols.tolist()) == tuple(part.tolist() for part in alone)
    drawn[3, 2, 1] = np.nan
    with pytest.raises(ValueError, match="problem 3"):
        linear_sum_assignment_batch(drawn, cost_limit=0.3)


def test_many_without_a_limit():
    rng = np.random.default_rng(8)
    frames = [rng.random(rng.integers(0, 9, 2)) for _ in range(20)]
    for pairs, costs in zip(linear_sum_assignment_batch(frames), frames):
        assert np.array_equal(pairs, linear_sum_assignment(costs))
    mixed = [0.2, math.inf] * 10
    for pairs, costs, limit in zip(
        linear_sum_assignment_batch(frames, cost_limit=mixed), frames, mixed
    ):
        assert np.array_equal(pairs, linear_sum_assignment(costs, cost_limit=limit))


def test_no_frames():
    assert linear_sum_assignment_batch([], cost_limit=0.5) == []
    assert linear_sum_assignment_batch(np.empty((0, 3, 4)), cost_limit=0.5) == []


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ([0.5], "have 2 limits.*got 1"),
        ([0.5, math.nan], "problem 1: cost_limit must be None or finite"),
        ([[0.5] * 3, [0.5]], "problem 1: cost_limit must be a number, or 3 numbers"),
    ],
)
def test_wrong_limits_of_frames_are_named(limits, message):
    with pytest.raises(ValueError, match=message):
        linear_sum_assignment_batch([np.ones((3, 4))] * 2, cost_limit=limits)


def test_wrong_arguments_of_many():
    with pytest.raises(ValueError, match="threads must be"):
        linear_sum_assignment_batch([np.ones((2, 2))], threads=0)
    with pytest.raises(ValueError, match="problem 0: the costs must have 2 dimensions"):
        linear_sum_assignment_batch([np.ones(3), np.ones((2, 2))], cost_limit=0.5)
