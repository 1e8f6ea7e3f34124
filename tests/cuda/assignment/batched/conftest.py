"""The emulator of the kernels for batches, and what solves problems on it."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def emulator():
    from gpumatch.cuda.assignment.batched import batch
    from tests.cuda.emulator import Emulator

    return Emulator(batch.SOURCE, {})


@pytest.fixture
def solve(emulator, monkeypatch):
    """The results for some problems of one dtype: a list, or an array."""
    from tests.cuda.assignment.batched.emulated import solver

    return solver(emulator, monkeypatch)
