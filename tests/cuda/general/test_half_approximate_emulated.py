"""Suitor and its duals with their kernels on the CPU, threads in any order."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("cupy")

from gpumatch.cpu.general import dual_descent
from gpumatch.cuda.general import half_approximate as module
from gpumatch.cuda.kernels import COSTS
from gpumatch.numeric.half_approximate import solve
from gpumatch.running.control import Control
from tests.cpu.general.greedy import (
    Ending,
    check_duals,
    check_matching,
    check_solution,
    greedy,
    owners,
    path,
    random_graph,
    weight_of,
)
from tests.cuda.emulator import COMPILER, ArraysOfDevice, Emulator, lead_drivers_here

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

CASES = [  # weights, and their type on the device
    ("ties", np.int32),
    ("equal", np.int64),
    ("wide", np.int64),
    ("floats", np.float32),
    ("decades", np.float64),
    ("tiny", np.float64),
]
KINDS = {"Offset": {"int32": "int"}, "Weight": COSTS}


@pytest.fixture(scope="module")
def emulators():
    constants = {module.SUITOR: {"kChain": 3}, module.DUALS: {}, module.PARTS: {}}
    return {
        source: Emulator(
            dataclasses.replace(source, types={name: KINDS[name] for name in source.types}), small
        )
        for source, small in constants.items()
    }


@pytest.fixture(
    autouse=True, params=[(99, 99), (-1, 99), (-1, -1)], ids=["4 lanes", "8 lanes", "32 lanes"]
)
def device(request, emulators, monkeypatch):
    lead_drivers_here(monkeypatch, emulators, module, block=64)
    monkeypatch.setattr(module, "_MOST", request.param)
    for emulator in emulators.values():
        emulator.vary(np.random.default_rng(1))


def steps_of(graph, control):
    cp = ArraysOfDevice()
    return module.DeviceSteps(*map(cp.asarray, graph), control)


def solved(graph, bound="tight", control=None):
    control = control or Control()
    found = solve(steps_of(graph, control), control, bound)
    return found


@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_random_graphs(emulators, kind, dtype):
    rng = np.random.default_rng(len(kind))
    for _ in range(6):
        for emulator in emulators.values():
            emulator.vary(rng)
        indptr, indices, weights = random_graph(rng, 30, kind)
        graph = indptr.astype(np.int32), indices, weights.astype(dtype)
        for bound in ("half", "tight"):
            check_solution(graph, solved(graph, bound), bound)


def test_chains_of_bids_go_on_in_the_next_launch():
    """A group makes three bids in a launch."""
    indptr, indices, weights = path(np.arange(1, 60, dtype=np.int32))
    graph = indptr.astype(np.int32), indices, weights
    assert (solved(graph, "half").mate == greedy(*graph)).all()


def test_a_sweep_is_that_of_the_cpu():
    rng = np.random.default_rng(4)
    indptr, indices, weights = random_graph(rng, 40, "integers")
    graph = indptr.astype(np.int32), indices, weights.astype(np.int32)
    steps = steps_of(graph, Control())
    dual = steps.weights_of(steps.match()[1]) + 50.0
    for temperature in (300.0, 20.0, 0.0):
        expected = dual_descent.sweep(
            indptr, indices, weights.astype(float), dual, temperature, 1, lambda: False
        )
        assert steps.sweep(dual, temperature) == pytest.approx(expected, rel=1e-3)


def test_the_edge_of_least_slack_comes_first():
    rng = np.random.default_rng(5)
    for _ in range(6):
        indptr, indices, weights = random_graph(rng, 40, "ties")
        graph = indptr.astype(np.int32), indices, weights.astype(np.int32)
        dual = rng.integers(0, 4, len(indptr) - 1).astype(float)
        slack = (dual[owners(indptr)] + dual[indices]) - weights
        keys = np.where(weights > 0, 0.5 / (0.5 + np.maximum(slack, 0)), 0)
        mate = steps_of(graph, Control()).match_by_slack(dual, 0.5)[0]
        assert (mate == greedy(indptr, indices, keys)).all()


def test_the_heavier_parts_are_kept():
    """The result is as heavy as the best of both on each part, by brute force over the parts."""
    rng = np.random.default_rng(9)
    for _ in range(12):
        indptr, indices, weights = random_graph(rng, 30, "integers")
        graph = indptr.astype(np.int32), indices, weights.astype(np.int32)
        steps = steps_of(graph, Control())
        dual = rng.uniform(0, 1000, len(indptr) - 1)
        one, other = steps.match(), steps.match_by_slack(dual, 100.0)
        gain = sum(max(Fraction(0), part) for part in gains(graph, one, other))
        before = weight_of(graph, one[1])
        steps.keep_better(one, other)
        check_matching(graph, *one)
        assert weight_of(graph, one[1]) == before + gain


def gains(graph, one, other):
    """By how much the other matching is heavier, on each path and cycle."""
    weights, left = graph[2], {v for v in range(len(one[0])) if one[0][v] != other[0][v]}
    while left:
        part, reached = set(), {left.pop()}
        while reached:
            v = reached.pop()
            part.add(v)
            reached |= {int(m[0][v]) for m in (one, other) if m[0][v] >= 0} - part
        left -= part
        yield sum(
            sign * Fraction(int(weights[m[1][v]])) / 2
            for v in part
            for sign, m in ((1, other), (-1, one))
            if m[0][v] >= 0
        )


def test_a_run_that_is_stopped_has_a_matching():
    indptr, indices, weights = random_graph(np.random.default_rng(6), 40, "integers")
    graph = indptr.astype(np.int32), indices, weights.astype(np.int32)
    for tick in range(60):
        found = solved(graph, control=Ending(tick))
        check_matching(graph, found.mate, found.entry)
        if found.dual is not None:
            check_duals(graph, found.dual)
        if found.finished:
            break
    assert found.finished
    assert tick > 10
