"""Costs that a function computes, a block at a time."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm
import gpumatch.costs.base
from gpumatch.costs import FunctionCosts

WISHES = [
    {},
    {"maximize": True},
    {"cost_limit": 20},
    {"cost_limit": 20.5, "maximize": True},
    {"cardinality": "any", "maximize": True},
    {"cardinality": "maximum", "cost_limit": 15},
    {"cost_limit": [3, 30, 8, 9, 1, 60, 12]},
    {"cost_limit": [3, 30, 8, 9, 1, 60, 12], "cardinality": "maximum"},
]


def matrix(shape, dtype=np.int64, seed=4):
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(dtype)


def function_of(C, **named):
    return FunctionCosts(lambda rows, cols: C[rows, cols], C.shape, C.dtype, **named)


@pytest.mark.parametrize("shape", [(7, 9), (7, 7), (7, 4)], ids=str)
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float64, np.float32])
@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_a_function_is_assigned_as_its_matrix(wish, dtype, shape, monkeypatch):
    monkeypatch.setattr(gpumatch.costs.base, "HOST_TILE", 20)
    C = matrix(shape, dtype)
    costs = function_of(C)
    a, b = gm.assign(costs, backend="cpu", **wish), gm.assign(C, backend="cpu", **wish)
    assert (a.objective, a.size, a.proven) == (b.objective, b.size, True)
    assert gm.verify(costs, a).objective == a.objective
    assert (costs.low, costs.high) == (C.min(), C.max())


def test_a_given_range_saves_the_first_pass():
    C, asked = matrix((6, 6)), []

    def tile(rows, cols):
        asked.append((rows, cols))
        return C[rows, cols]

    costs = FunctionCosts(tile, C.shape, C.dtype, low=-50, high=50)
    assert asked == [(slice(0, 1), slice(0, 1))]
    assert (costs.low, costs.high, costs.largest) == (-50, 50, 50)
    assert gm.assign(costs, backend="cpu").objective == gm.assign(C).objective


def test_inf_forbids():
    C = matrix((5, 5), np.float64)
    C[0, 1:] = C[1, 1:] = np.inf
    costs = function_of(C)
    assert costs.high == np.inf
    assert costs.largest <= 50
    with pytest.raises(gm.InfeasibleError):
        gm.assign(costs, backend="cpu")
    a = gm.assign(costs, cardinality="maximum", backend="cpu")
    assert a.size == 4
    gm.verify(costs, a)


def test_at_has_the_numbers_of_the_tiles(monkeypatch):
    monkeypatch.setattr(gpumatch.costs.base, "HOST_TILE", 12)
    C = matrix((8, 6), np.float64)
    costs = function_of(C)
    rows, cols = np.array([7, 0, 3, 3]), np.array([5, 0, 2, 4])
    for turned, ends in ((costs, (rows, cols)), (costs.transpose(), (cols, rows))):
        assert (turned.at(*ends) == C[rows, cols]).all()
    assert (costs.at(rows[:, None], cols) == C[np.ix_(rows, cols)]).all()
    assert (costs.problem(True, True).dense() == -C.T).all()


BAD = {
    "callable": (lambda: FunctionCosts(3, (1, 1), float), TypeError, "tile must be callable"),
    "shape": (lambda: FunctionCosts(np.ones, 4, float), ValueError, "shape must be"),
    "negative": (lambda: FunctionCosts(np.ones, (-1, 4), float), ValueError, "lengths from 0"),
    "dtype": (lambda: FunctionCosts(np.ones, (1, 1), complex), TypeError, "real numbers"),
    "block": (
        lambda: FunctionCosts(lambda r, c: np.ones((3, 3)), (4, 4), float),
        ValueError, "tile must return a block of shape",
    ),
    "floats": (
        lambda: FunctionCosts(lambda r, c: np.ones((1, 1)), (1, 1), int), TypeError, "got float64",
    ),
    "NaN": (lambda: function_of(np.array([[1.0, np.nan]])), ValueError, "NaN"),
    "large": (lambda: function_of(np.array([[2**62]])), ValueError, "too large"),
    "range": (
        lambda: function_of(np.array([[1, 2]]), low=2, high=1), ValueError, "low must be at most",
    ),
    "beyond": (
        lambda: gm.assign(function_of(np.array([[1, 9]]), low=0, high=5), backend="cpu"),
        ValueError, "tile returned costs from 1 to 9",
    ),
    "unknown": (
        lambda: gm.assign(function_of(np.array([[1, np.nan]]), low=0, high=5), backend="cpu"),
        ValueError, "NaN",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_functions_are_refused(case):
    make, error, message = BAD[case]
    with pytest.raises(error, match=message):
        make()


def test_tensors_are_taken():
    torch = pytest.importorskip("torch")
    C = matrix((5, 5), np.float64)
    costs = FunctionCosts(lambda r, c: torch.from_numpy(C)[r, c], C.shape, np.float64)
    assert gm.assign(costs, backend="cpu").objective == gm.assign(C).objective
