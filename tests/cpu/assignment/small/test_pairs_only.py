"""Small costs by SciPy's name in one call: the errors that it raises, and magnitudes it takes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize

import gpumatch.optimize
from gpumatch.optimize import linear_sum_assignment


def refuse(*args, **kwargs):
    raise AssertionError("the general way was taken")


FORMS = [
    *(np.asarray, np.asfortranarray),
    *(pytest.param(dtype, marks=pytest.mark.dtypes) for dtype in (np.float32, ">f8")),
    pytest.param(np.float16, marks=pytest.mark.long),  # each dtype has kernels of its own
]
FORBIDDEN = {"row": np.s_[1], "column": np.s_[:, 2], "block": np.s_[:3, 2:], "all": np.s_[:]}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", FORBIDDEN.values(), ids=FORBIDDEN)
@pytest.mark.parametrize("shape", [(6, 6), (5, 70), (70, 5), (33, 33)], ids=str)
def test_one_call_tells_that_small_costs_are_infeasible(monkeypatch, shape, place, form):
    costs = np.random.default_rng(4).random(shape)
    costs = costs if shape[0] <= shape[1] else costs.T
    costs[place] = math.inf
    costs = (costs if shape[0] <= shape[1] else costs.T).astype(form if form == ">f8" else float)
    costs = form(costs) if callable(form) else costs
    monkeypatch.setattr(gpumatch.optimize, "assign", refuse)
    for sign in (1, -1):
        try:
            expected = scipy.optimize.linear_sum_assignment(sign * costs, sign < 0)
        except ValueError as exc:
            with pytest.raises(ValueError, match=f"^{exc}$"):
                linear_sum_assignment(sign * costs, sign < 0)
        else:
            assert place == FORBIDDEN["column"]
            assert np.array_equal(linear_sum_assignment(sign * costs, sign < 0), expected)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("value", [math.nan, -math.inf], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (6, 6), (5, 70), (70, 5)], ids=str)
def test_one_call_tells_that_a_number_is_invalid(monkeypatch, shape, value, maximize):
    costs = np.random.default_rng(4).random(shape)
    costs[-1, -1] = -value if maximize else value
    costs[0, :-1] = math.inf  # which tells nothing before all numbers are valid
    monkeypatch.setattr(gpumatch.optimize, "_by_assign", refuse)
    for array in (costs, np.asfortranarray(costs), costs.astype(">f8")):
        with pytest.raises(ValueError, match=r"^matrix contains invalid numeric entries$"):
            linear_sum_assignment(array, maximize)


@pytest.mark.dtypes
@pytest.mark.parametrize("infeasible", [False, True])
@pytest.mark.parametrize("kind", ["floats", "sums", "integers"])
def test_small_costs_of_any_magnitude_are_solved_in_one_call(monkeypatch, kind, infeasible):
    costs = np.random.default_rng(4).integers(1, 2**20, (5, 6))
    costs = (
        costs * 2**42 if kind == "integers" else costs * 2.0 ** (990 if kind == "sums" else 1003)
    )
    monkeypatch.setattr(gpumatch.optimize, "assign", refuse)
    if infeasible and kind != "integers":
        costs[:3, 2:] = math.inf
        with pytest.raises(ValueError, match="cost matrix is infeasible"):
            linear_sum_assignment(costs)
        return
    expected = scipy.optimize.linear_sum_assignment(costs // 2**42 if kind == "integers" else costs)
    assert np.array_equal(linear_sum_assignment(costs), expected)
