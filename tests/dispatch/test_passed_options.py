"""Options of `assign` reach the modules that solve parts of its problem."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.assignment import assign
from gpumatch.problems import bottleneck, one_problem

COSTS = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
OPTIONS = {"seed": 5, "threads": 2, "backend": "cpu", "maximize": True}
AUCTION = {"algorithm": "auction", "cardinality": "any"}
SCALING = {"scaling": "none"}


def hear(progress):
    assert progress.seconds >= 0


@pytest.fixture
def requests_of(monkeypatch):
    """Has the requests that a module gets written down."""

    def begin(module):
        solve, requests = module.solve, []

        def noted(costs, request):
            requests.append(request)
            return solve(costs, request)

        monkeypatch.setattr(module, "solve", noted)
        return requests

    return begin


def has(request, how):
    return {name: getattr(request, name) for name in how} == how


def test_a_limit_for_each_row(requests_of, calls_of):
    requests, controls = requests_of(one_problem), calls_of("gpumatch.assignment", "Control")
    how = {**OPTIONS, **AUCTION}
    watch = {"time_limit": 60.0, "progress": True, "callback": hear}
    a = assign(COSTS, cost_limit=[1, 2, 3], **how, **SCALING, **watch)
    assert a.stats["algorithm"] == "auction"
    (request,) = requests
    assert has(request, {**how, "options": SCALING, "cost_limit": 0})
    assert controls == [watch]
    assert request.control.is_watched


def test_one_limit_for_all_rows_and_none(requests_of, calls_of):
    requests, controls = requests_of(one_problem), calls_of("gpumatch.assignment", "Control")
    watch = {"time_limit": 60.0, "progress": False, "callback": hear}
    assign(COSTS, cost_limit=[-np.inf] * 3, **OPTIONS, **watch)
    (request,) = requests
    assert has(request, {**OPTIONS, "cost_limit": None})
    assert controls == [watch]
    assert request.control.is_watched


def test_problems_of_a_batch_that_are_solved_alone(requests_of, calls_of):
    """The batch itself watches the time, and shows its bar."""
    requests = requests_of(one_problem)
    controls = calls_of("gpumatch.problems.request", "Control")
    how = {**OPTIONS, **AUCTION, "cost_limit": 1}
    assign([COSTS, COSTS[:2]], time_limit=60.0, progress=True, **how, **SCALING)
    assert len(requests) == 2
    assert all(has(request, {**how, "options": SCALING}) for request in requests)
    assert [set(control) for control in controls] == [{"callback"}] * 2
    assert all(control["callback"] is not None for control in controls)


@pytest.mark.parametrize(
    ("costs", "how"),
    [
        (COSTS, {"cost_limit": [1, 2, 3]}),
        (COSTS, {"cost_limit": [np.inf] * 3, "seed": 5}),
        ([COSTS, COSTS[:2]], {"algorithm": "engine"}),
        (COSTS * 1e307, {"algorithm": "engine"}),
        (COSTS, {"objective": "bottleneck"}),
    ],
    ids=["row limits", "no limits", "batch", "divided", "bottleneck"],
)
def test_no_call_makes_another(costs, how, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a call of assign from below")

    monkeypatch.setattr("gpumatch.assignment.assign", refuse)
    assert np.all(assign(costs, **how).proven)


def test_a_bottleneck(requests_of):
    requests = requests_of(bottleneck)
    first = assign(COSTS)
    assign(COSTS, objective="bottleneck", algorithm="thresholds", initial=first, **OPTIONS)
    (request,) = requests
    assert has(request, {**OPTIONS, "algorithm": "thresholds", "initial": first})
