"""The suite of first calls: every public function is among them, and processes are its own."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import gpumatch as gm
from bench.harness import Limits
from bench.suites import first_calls

WITHOUT_KERNELS = {"algorithms", "warmup", "linalg.cudss"}  # a table, compiling itself, CUDA


def public_functions():
    for name in gm.__all__:
        value = getattr(gm, name)
        if inspect.isfunction(value):
            yield name
        elif inspect.ismodule(value) and name in ("csgraph", "linalg", "optimize"):
            functions = (own for own in value.__all__ if inspect.isfunction(getattr(value, own)))
            yield from (f"{name}.{own}" for own in functions)


def test_every_public_function_is_called():
    called = {name.partition(",")[0] for name in first_calls.CALLS}
    assert called - {"Matching.vertex_cover"} == set(public_functions()) - WITHOUT_KERNELS


@pytest.mark.long
def test_calls_run(capsys):
    given = first_calls.Given(np.random.default_rng(0).integers(0, 600, (600, 600)) * 1.0)
    for call in first_calls.CALLS.values():
        call(gm, given)


@pytest.mark.long
def test_a_call_is_measured_in_processes_of_its_own(tmp_path):
    (problem,) = (
        first_calls.problem(case, file, "cpu")
        for case in first_calls.instances(quick=True, data=None)
        for file in [saved(case, tmp_path)]
    )
    numba, call = (
        first_calls.FirstCall(name).measure(problem, Limits())
        for name in (first_calls.NUMBA, "maximum_matching")
    )
    assert 0 < call["compilation"] < call["wall"] < 60
    assert len(call["warm"]) == len(call["warm_wall"]) == first_calls.WARM
    assert max(call["warm"]) < call["seconds"][0]
    assert numba["compilation"] < call["compilation"]


def saved(case, folder):
    file = folder / "costs.npy"
    case.save(case.original(), file)
    return file


def result(seconds, warm):
    return {"seconds": [seconds], "warm": [warm], "size": 0, "levels": []}


def test_the_report_takes_off_what_numba_takes():
    results = {"numba": result(0.5, 0.25), "assign": result(2.0, 0.375), "verify": result(1.0, 0.3)}
    graphs = {"int64-s0": {"dtype": "int64", "results": results}}
    text = first_calls.report({"runs": [], "graphs": graphs}, 0.0)
    assert "| assign | 2 | 0.375 | 0.125 |" in text
    fast = {"numba": result(0.5, 0.25), "verify": result(1.0, 0.125)}
    graphs = {"int64-s0": {"dtype": "int64", "results": fast}}
    assert "| verify | 1 | 0.125 | 0 |" in first_calls.report({"runs": [], "graphs": graphs}, 0.0)
    assert "A first call compiles for 2 s at most (assign)." in text
    assert "In a new process it takes 0.375 s at most (assign)." in text
