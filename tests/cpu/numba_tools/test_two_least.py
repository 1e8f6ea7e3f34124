"""The least and the second least: any number of columns, ties, infinities, NaN, both dtypes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

from gpumatch.cpu.numba_tools import two_least as module
from gpumatch.cpu.numba_tools.two_least import LANES, two_least

FLOOR = -1000.0


@njit
def look(costs, prices):
    return two_least(costs, prices, FLOOR)


@njit
def look_one_by_one(costs, prices):
    return module._one_by_one(costs, prices, FLOOR)


def expected(costs, prices):
    there = costs.astype(float) - prices
    ordered = np.sort(there)
    second = ordered[1] if there.size > 1 else math.inf
    return ordered[0], second, int(there.argmin()), True


@pytest.mark.parametrize("look", [look, look_one_by_one], ids=["vectors", "one by one"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_number_of_columns(dtype, look):
    rng = np.random.default_rng(3)
    for size in [*range(1, 3 * LANES + 2), 300]:
        for many in (4, 10**6):  # with ties, and without
            costs = rng.integers(0, many, size).astype(dtype)
            prices = -rng.integers(0, 3, size).astype(float)
            least, second, place, fit = expected(costs, prices)
            assert look(costs, prices) == (least, second, place, fit)
            assert (costs - prices)[: int(place)].min(initial=math.inf) > least


@pytest.mark.parametrize("size", [1, LANES - 1, LANES, LANES + 1, 3 * LANES])
def test_the_least_at_each_place(size):
    for at in range(size):
        costs = np.full(size, 5.0)
        costs[at] = 2.0
        assert look(costs, np.zeros(size))[2] == at
        costs[at] = math.nan
        assert not look(costs, np.zeros(size))[3]
        costs[at] = 2 * FLOOR
        assert not look(costs, np.zeros(size))[3]
        costs[at] = math.inf
        assert look(costs, np.zeros(size))[3]


@pytest.mark.parametrize("size", [3, LANES, LANES + 5])
def test_infinities(size):
    costs = np.full(size, math.inf)
    assert look(costs, np.zeros(size))[:2] == (math.inf, math.inf)
    costs[size - 1] = 7.0
    assert look(costs, np.zeros(size))[:3] == (7.0, math.inf, size - 1)


def test_it_is_made_of_vectors():
    look(np.zeros(LANES), np.zeros(LANES))
    code = next(iter(look.inspect_llvm().values()))
    assert f"<{LANES} x double>" in code
    assert "vector.reduce.fmin" in code
