"""SciPy's own assignments, whatever the ties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from gpumatch.cpu.assignment.small import scipy_order
from gpumatch.cpu.assignment.small.scipy_order import columns_of_rows


def expected(costs):
    columns = np.full(costs.shape[0], -1)
    try:
        rows, cols = linear_sum_assignment(costs)
    except ValueError:
        return columns
    columns[rows] = cols
    return columns


@pytest.mark.parametrize("most", [1, 2, 4, 50])
@pytest.mark.parametrize("forbidden", [0, 0.4])
def test_the_same_pairs_as_scipy(most, forbidden):
    rng = np.random.default_rng(most)
    problems = []
    for _ in range(60):
        costs = rng.integers(-1, most, rng.integers(0, 16, 2)).astype(float) / 3
        costs[rng.random(costs.shape) < forbidden] = math.inf
        problems.append(costs)
    found = columns_of_rows(problems, 16, 2)
    for costs, columns in zip(problems, found, strict=True):
        assert columns[: len(costs)].tolist() == expected(costs).tolist()
        assert (columns[len(costs) :] == -1).all()


@pytest.mark.parametrize("wrong", [math.nan, -math.inf])
def test_a_number_that_is_not_valid_leaves_no_pairs(wrong):
    costs = np.ones((3, 4))
    costs[1, 2] = wrong
    assert columns_of_rows([costs, np.ones((2, 2))], 3, 1).tolist() == [[-1] * 3, [0, 1, -1]]


class WaitsForOthers:
    """Two workers on one thread: the second works whatever becomes of the first."""

    def __init__(self, threads, costs):
        assert (threads, costs) == (2, 40 * 6)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, kernel, tasks):
        assert tasks == 40
        try:
            return kernel(0)
        finally:
            assert kernel(1) is False


def test_no_thread_goes_on_when_one_is_interrupted(monkeypatch):
    solved = []

    def solve(costs, columns):
        solved.append(costs)
        if len(solved) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(scipy_order, "Workers", WaitsForOthers)
    monkeypatch.setattr(scipy_order, "_solve", solve)
    with pytest.raises(KeyboardInterrupt):
        columns_of_rows([np.ones((2, 3))] * 40, 2, 2)
    assert len(solved) == 3


def test_the_others_stop_when_the_caller_is_interrupted_while_it_waits(monkeypatch):
    class Interrupted(WaitsForOthers):
        def run(self, kernel, tasks):
            self.kernel = kernel
            raise KeyboardInterrupt

        def __exit__(self, *_):
            assert self.kernel(1) is False

    monkeypatch.setattr(scipy_order, "Workers", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        columns_of_rows([np.ones((2, 3))] * 40, 2, 2)
