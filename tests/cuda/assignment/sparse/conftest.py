"""The emulators of the kernels for sparse costs, and what solves problems on them."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def emulators():
    from tests.cuda.assignment.sparse.emulated import small_emulators

    return small_emulators()


@pytest.fixture
def solve(emulators, monkeypatch):
    from tests.cuda.assignment.sparse.emulated import solver

    return solver(emulators, monkeypatch)
