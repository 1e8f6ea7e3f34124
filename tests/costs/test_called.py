"""Points with a metric that is a function of the caller."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import gpumatch as gm
from gpumatch.costs import PointCosts, called
from gpumatch.cpu.assignment.points import tuning as tunings
from tests.cpu.assignment.tuned import tune


def sides(shape=(9, 11), d=3, seed=4):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(count, d)) for count in shape]


def lopsided(x, y):
    """A metric that is another number if its arguments change places."""
    return float(abs(x - y).sum() + 0.25 * x[0] + y[1] ** 2)


@pytest.fixture(params=["kept", "called"], autouse=True)
def _is_kept(request, monkeypatch):
    monkeypatch.setattr(called, "KEPT", 2**22 if request.param == "kept" else -1)


@pytest.mark.parametrize("has_offsets", [False, True], ids=["bare", "offsets"])
def test_costs_are_what_the_function_returns(has_offsets):
    X, Y = sides()
    offsets = {"row_offset": X[:, 0], "col_offset": Y[:, 0]} if has_offsets else {}
    costs = PointCosts(X, Y, lopsided, **offsets)
    expected = cdist(X, Y, lopsided)
    if has_offsets:
        expected += X[:, None, 0] + Y[None, :, 0]
    assert (costs.dense() == expected).all()
    rows, cols = np.array([3, 0, 8]), np.array([10, 2, 2])
    assert (costs.at(rows, cols) == expected[rows, cols]).all()
    assert (costs.at(rows[:, None], cols[None]) == expected[np.ix_(rows, cols)]).all()
    assert costs.low <= expected.min() <= expected.max() <= costs.high
    assert costs.largest >= abs(expected).max()
    assert (costs.transpose().dense() == expected.T).all()
    assert (costs.problem(True, True).dense() == -expected.T).all()
    part = costs.problem(True, False).restricted(rows, cols)
    assert (part.dense() == -expected[np.ix_(rows, cols)]).all()
    assert part.low <= part.dense().min() <= part.dense().max() <= part.high
    assert isinstance(costs, PointCosts)
    assert (costs.points, costs.metric) == (None, lopsided)
    assert costs.rounding.share == (2.0**-52 if has_offsets else 0)


WISHES = {
    "full": {},
    "maximize": {"maximize": True},
    "limit": {"cost_limit": 2.0},
    "each": {"cost_limit": np.linspace(1, 3, 9)},
    "maximum": {"cardinality": "maximum", "cost_limit": 2.0},
    "any": {"cardinality": "any", "maximize": True},
    "bottleneck": {"objective": "bottleneck"},
}


@pytest.mark.parametrize("small", [False, True], ids=["matrix", "engine"])
@pytest.mark.parametrize("wish", WISHES)
def test_every_option(wish, small, monkeypatch):
    if small:
        tune(monkeypatch, tunings, stored=-1, nearest_of_many=3, share=2.0)
    costs = PointCosts(*sides(), lopsided)
    a = gm.assign(costs, backend="cpu", **WISHES[wish])
    b = gm.assign(costs.dense(), backend="cpu", **WISHES[wish])
    assert a.objective == pytest.approx(b.objective)
    assert a.size == b.size
    gm.verify(costs, a)


def test_infinity_forbids():
    X, Y = sides((5, 5))
    costs = PointCosts(X, Y, lambda x, y: np.inf if x[0] < y[0] else abs(x - y).sum())
    a = gm.assign(costs, cardinality="maximum", backend="cpu")
    assert 0 < a.size < 5
    assert gm.verify(costs, a).size == a.size
    with pytest.raises(gm.InfeasibleError):
        gm.assign(costs, backend="cpu")


def test_numbers_of_any_type():
    X, Y = sides((2, 2))
    values = iter([np.float32(1.5), True, np.array(2), 3] * 9)
    costs = PointCosts(X, Y, lambda x, y: next(values))
    assert (costs.low, costs.high, costs.dtype) == (1.0, 3.0, np.float64)


def test_the_function_cannot_change_the_points():
    X, Y = sides((2, 2))

    def bad(x, y):
        x[0] = 7
        return 1.0

    with pytest.raises(ValueError, match="read-only"):
        PointCosts(X, Y, bad)
    assert X.flags.writeable


def fourth(value):
    """A function that returns another value for the fourth pair."""
    values = iter([1.0, 1.0, 1.0, value])
    return lambda x, y: next(values)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (np.nan, ValueError, "returned NaN for row 1 and column 1"),
        (1j, TypeError, "real numbers; got complex for row 1 and column 1"),
        (None, TypeError, "real numbers; got NoneType"),
        ("1.0", TypeError, "real numbers; got str"),
        (np.ones(3), ValueError, r"array of shape \(3,\) for row 1 and column 1"),
        (np.ones(1), ValueError, r"array of shape \(1,\)"),
    ],
    ids=["NaN", "complex", "None", "words", "several", "one in an array"],
)
def test_what_is_no_cost_is_refused(value, error, message):
    X, Y = sides((2, 2))
    with pytest.raises(error, match=message):
        PointCosts(X, Y, fourth(value))


def test_arrays_of_one_shape_are_refused():
    with pytest.raises(ValueError, match=r"array of shape \(3,\) for row 0 and column 0"):
        PointCosts(*sides((2, 2)), lambda x, y: x - y)


def test_costs_that_overflow_are_refused():
    with pytest.raises(ValueError, match="overflow"):
        PointCosts(*sides((2, 2)), lambda x, y: 1e308, row_offset=[1e308, 0])


def test_no_points():
    costs = PointCosts(np.empty((0, 2)), np.ones((3, 2)), lopsided)
    assert (costs.low, costs.high) == (0, 0)
    assert gm.assign(costs, backend="cpu").size == 0


def test_it_says_what_it_is():
    costs = PointCosts(*sides((2, 3)), lopsided)
    assert repr(costs) == "CalledCosts(2 rows, 3 columns, 3 coordinates, lopsided, host)"
    assert gm.assign([costs, costs], backend="cpu").proven.all()
