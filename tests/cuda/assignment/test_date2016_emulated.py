"""The paper's two searches with their kernels on the CPU, step by step beside the reference."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("cupy")

from gpumatch.cuda.assignment import hungarian
from tests.cuda.assignment.date2016_beside import MATRICES, ClassicalBeside, TreeBeside
from tests.cuda.emulator import COMPILER, Emulator, lead_drivers_here

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
    kernels = {SOURCES[kind][0]: emulators[kind]}
    lead_drivers_here(monkeypatch, kernels, hungarian, block=BLOCK)
    monkeypatch.setattr(hungarian._Problem, "_reduce_rows", reduce_rows)
    monkeypatch.setattr(hungarian._Problem, "_reduce_columns", reduce_columns)
    monkeypatch.setattr(hungarian, "_EDGES_A_ROW", 4096)
    monkeypatch.setattr(hungarian, "_STEPS_A_LAUNCH", 1)
    monkeypatch.setattr(hungarian, "_most_blocks", lambda: 1)
    assert kind(MATRICES[name], hungarian).run() > 1
