"""Compiling ahead: every home is called, and later calls have nothing left to compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpumatch as gm
from gpumatch import compiling as module
from gpumatch.cpu.assignment.sparse.two_sided_search import TwoSidedPaths
from gpumatch.dispatch.registry import STARTS

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_every_algorithm_and_start_is_called(backend):
    names = [name for name, _ in module._steps(backend)]
    for algorithm in gm.algorithms():
        is_there = f"{backend}: {algorithm.problem}, {algorithm.name}" in names
        assert is_there == (backend in algorithm.backends)
    for start, homes in STARTS.items():
        assert (f"{backend}: start {start}" in names) == (backend in homes)
    assert len(set(names)) == len(names)


def two_steps(backend):
    yield f"{backend}: one", list
    yield f"{backend}: two", list


def test_seconds_are_told_by_step(monkeypatch):
    monkeypatch.setattr(module, "_steps", two_steps)
    monkeypatch.setattr(module, "why_no_cuda", lambda: "none here")
    told = []
    seconds = gm.warmup(tell=lambda name, taken: told.append((name, taken)))
    assert list(seconds) == ["cpu: one", "cpu: two"]
    assert told == list(seconds.items())
    assert all(taken >= 0 for taken in seconds.values())
    monkeypatch.setattr(module, "why_no_cuda", lambda: None)
    assert list(gm.warmup()) == ["cpu: one", "cpu: two", "cuda: one", "cuda: two"]
    assert list(gm.warmup(backend="cpu")) == ["cpu: one", "cpu: two"]


def test_wrong_backends_are_refused():
    with pytest.raises(ValueError, match="the reference compiles nothing"):
        gm.warmup(backend="reference")
    with pytest.raises(ValueError, match="abacus"):
        gm.warmup(backend="abacus")


def test_on_the_command_line(monkeypatch, capsys):
    from gpumatch import cli

    monkeypatch.setattr(module, "_steps", two_steps)
    assert cli.main(["warmup", "--backend", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[-1] for line in lines[:2]] == ["cpu: one", "cpu: two"]
    assert lines[2].endswith("s in all")
    assert cli.main(["warmup", "--backend", "cpu", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["seconds"]) == ["cpu: one", "cpu: two"]


CALLS = """
import numpy as np, gpumatch as gm
from graphs import make, costs
for graph in (make("delaunay", 14, seed=1), make("kron", 11, seed=1)):
    for init in ("cheap", "karp-sipser"):
        gm.maximum_matching(graph, init=init).vertex_cover()
for family, size in (("mesh", 12), ("spread", 5000), ("kkt", 3000)):
    C = costs.make(family, size)
    gm.assign(C)
    gm.assign(C, cardinality="any")
for dtype in ("int32", "int64", "float32", "float64"):
    C = costs.make("uniform_integer", 900).astype(dtype)
    gm.assign(C, cost_limit=100)
    gm.optimize.linear_sum_assignment(C)
"""


KERNELS = """
import gc, json
from gpumatch.cpu.numba_tools.parts import Kernel
kernels = [each for each in gc.get_objects() if isinstance(each, Kernel)]
print(json.dumps([f"{each.__module__}.{each.__qualname__} {signature}"
                  for each in kernels for signature in each.signatures]))
"""


@pytest.mark.long
def test_nothing_is_left_to_compile():
    """Other tests' kernels are loaded, so that nothing is compiled twice."""

    def used_by(code):
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", code + KERNELS]
        done = subprocess.run(command, env=env, cwd=ROOT, check=True, stdout=subprocess.PIPE)
        return {*json.loads(done.stdout)}

    compiled = used_by("import gpumatch; gpumatch.warmup(backend='cpu')")
    assert len(compiled) > 100
    assert used_by(CALLS) - compiled == set()


def test_an_algorithm_is_called_in_all_the_ways_that_are_compiled_apart(monkeypatch):
    calls = []
    for name in ("assign", "maximum_matching"):
        monkeypatch.setattr(module, name, lambda given, **how: calls.append((given, how)))
    monkeypatch.setattr(module, "verify", lambda *_: None)
    steps = dict(module._steps("cpu"))
    steps["cpu: matching, engine"]()
    assert [(how.get("threads"), how.get("init")) for _, how in calls] == [(1, "none"), (2, None)]
    calls.clear()
    steps["cpu: assignment, engine"]()
    kinds = {(costs.dtype.name, isinstance(costs, np.ndarray)) for costs, _ in calls}
    assert len(kinds) == 2 * len(module.DTYPES)
    wishes = {tuple(sorted(how.keys() - {"algorithm", "backend"})) for _, how in calls}
    assert wishes == {(), ("cost_limit",), ("cardinality", "maximize")}
    assert len(calls) == len(kinds) * len(wishes)


def test_sparse_costs_of_many_entries_come_to_paths_from_both_ends(monkeypatch):
    numbers = set()
    augment = TwoSidedPaths._augment

    def noted(paths, *how):
        numbers.add(paths.front.dtype.name)
        return augment(paths, *how)

    monkeypatch.setattr(TwoSidedPaths, "_augment", noted)
    dict(module._steps("cpu"))["cpu: sparse costs of many entries"]()
    assert numbers == {"int64", "float64"}
