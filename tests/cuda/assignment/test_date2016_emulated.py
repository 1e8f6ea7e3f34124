"""The paper's two searches with their kernels on the CPU, step by step beside the reference."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("cupy")

from gpumatch.cuda import launches
from gpumatch.cuda.assignment import hungarian
from tests.cuda.assignment.date2016_beside import MATRICES, ClassicalBeside, TreeBeside
from tests.cuda.emulator import COMPILER, ArraysOfDevice, Emulator

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="there is no g++"),
    pytest.mark.long,  # for the compiler
]

BLOCK = 64  # two warps
SOURCES = {
    TreeBeside: (hungarian.TREE_PAPER, {"kBlock": BLOCK}),
    ClassicalBeside: (hungarian.CLASSICAL, {"kBlock": BLOCK, "kAlone": 3, "kGathered": 2}),
}


@pytest.fixture(scope="module")
def emulators():
    """The kernels for int64."""
    emulators = {}
    for kind, (source, constants) in SOURCES.items():
        source = dataclasses.replace(source, types={"Cost": {"int64": "long long"}})
        emulators[kind] = Emulator(source, constants)
    return emulators


def reduce_rows(problem):
    """Algorithm 1, whose kernels have grids of two dimensions."""
    problem.row_dual[:] = problem.values.min(axis=1)


def reduce_columns(problem):
    problem.col_dual[:] = (problem.values - problem.row_dual[:, None]).min(axis=0)


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("name", MATRICES)
def test_each_step_is_the_papers(name, kind, emulators, monkeypatch):
    emulators[kind].blocks = 1
    kernels = emulators[kind].bound_to({"Cost": "long long"})
    cp = ArraysOfDevice()
    for module in (hungarian, launches):
        monkeypatch.setattr(module, "cp", cp)
    monkeypatch.setattr(launches, "cupyx", SimpleNamespace(zeros_pinned=np.zeros))
    monkeypatch.setattr(hungarian, "kernels_for", lambda *_, **__: kernels)
    monkeypatch.setattr(hungarian, "unmatched", lambda count: cp.full(count, -1, np.int32))
    monkeypatch.setattr(hungarian, "count_matched", lambda mates: int((mates >= 0).sum()))
    monkeypatch.setattr(hungarian.memory, "require_memory", lambda *_: None)
    monkeypatch.setattr(hungarian._Problem, "_reduce_rows", reduce_rows)
    monkeypatch.setattr(hungarian._Problem, "_reduce_columns", reduce_columns)
    monkeypatch.setattr(hungarian, "_BLOCK", BLOCK)
    monkeypatch.setattr(hungarian, "_EDGES_A_ROW", 4096)
    monkeypatch.setattr(hungarian, "_STEPS_A_LAUNCH", 1)
    monkeypatch.setattr(hungarian, "_most_blocks", lambda: 1)
    assert kind(MATRICES[name], hungarian).run() > 1
