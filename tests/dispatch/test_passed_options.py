"""What `assign` passes on where other functions, or calls of its own, do the work."""

from __future__ import annotations

import numpy as np

from gpumatch.assignment import assign

COSTS = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
OPTIONS = {"seed": 5, "threads": 2, "backend": "cpu", "maximize": True}
AUCTION = {"algorithm": "auction", "scaling": "none", "cardinality": "any"}


def hear(progress):
    assert progress.seconds >= 0


def test_a_limit_for_each_row(calls_of):
    calls = calls_of("gpumatch.assignment", "assign")
    how = {**OPTIONS, **AUCTION, "time_limit": 60.0, "progress": True, "callback": hear}
    a = assign(COSTS, cost_limit=[1, 2, 3], **how)
    assert a.stats["algorithm"] == "auction"
    (options,) = calls
    assert {name: options[name] for name in how} == how


def test_one_limit_for_all_rows_and_none(calls_of):
    calls = calls_of("gpumatch.assignment", "assign")
    how = {**OPTIONS, "time_limit": 60.0, "progress": False, "callback": hear}
    assign(COSTS, cost_limit=[-np.inf] * 3, **how)
    (options,) = calls
    assert {name: options[name] for name in how} == how


def test_problems_of_a_batch_that_are_solved_alone(calls_of):
    """The batch itself watches the time, and shows its bar."""
    calls = calls_of("gpumatch.assignment", "assign")
    how = {**OPTIONS, **AUCTION}
    assign([COSTS, COSTS[:2]], cost_limit=1, time_limit=60.0, progress=True, **how)
    assert len(calls) == 2
    for options in calls:
        assert {name: options[name] for name in how} == how
        assert (options["cost_limit"], options["time_limit"], options["progress"]) == (
            1,
            None,
            False,
        )


def test_a_bottleneck(calls_of):
    calls = calls_of("gpumatch.assignment", "assign_bottleneck")
    first = assign(COSTS)
    assign(COSTS, objective="bottleneck", algorithm="thresholds", initial=first, **OPTIONS)
    (options,) = calls
    assert (options["seed"], options["threads"], options["backend"]) == (5, 2, "cpu")
    assert (options["method"], options["initial"]) == ("thresholds", first)
