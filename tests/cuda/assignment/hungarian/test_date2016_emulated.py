"""The paper's two searches with their kernels on the CPU, step by step beside the reference."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("cupy")

from gpumatch.cuda.assignment import hungarian
from gpumatch.cuda.assignment.hungarian import classical, problem, search, sources, tree
from tests.cuda.assignment.hungarian.date2016_beside import MATRICES, ClassicalBeside, TreeBeside
from tests.cuda.emulator import COMPILER, Emulator, lead_drivers_here

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="there is no g++"),
    pytest.mark.long,  # for the compiler
]

BLOCK = 64  # two warps
KINDS = TreeBeside, ClassicalBeside
SOURCES = {
    sources.REDUCTION: {},
    sources.TREE_PAPER: {"kBlock": BLOCK},
    sources.CLASSICAL: {"kBlock": BLOCK, "kAlone": 3, "kGathered": 2},
}


@pytest.fixture(scope="module")
def emulators():
    """The kernels for int64."""
    types = {"Cost": {"int64": "long long"}}
    return {
        source: Emulator(dataclasses.replace(source, types=types), constants)
        for source, constants in SOURCES.items()
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MATRICES)
def test_each_step_is_the_papers(name, kind, emulators, monkeypatch):
    lead_drivers_here(monkeypatch, emulators, classical, problem, search, tree, block=BLOCK)
    monkeypatch.setattr(classical, "_EDGES_A_ROW", 4096)
    monkeypatch.setattr(search, "_STEPS_A_LAUNCH", 1)
    monkeypatch.setattr(search, "_most_blocks", lambda: 1)
    assert kind(MATRICES[name], hungarian).run() > 1
