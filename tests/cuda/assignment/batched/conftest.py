"""The emulator of the kernels for batches, and what solves problems on it."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def emulator():
    from tests.cuda.emulator import Emulator
    from tests.cuda.emulator.device import BATCHES

    return Emulator(BATCHES, {})


@pytest.fixture
def solve(emulator, monkeypatch):
    """The results for some problems of one dtype: a list, or an array."""
    from tests.cuda.assignment.batched.emulated import solver

    return solver(emulator, monkeypatch)
