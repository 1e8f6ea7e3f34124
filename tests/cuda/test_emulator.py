"""The emulator of kernels, where compilers have habits of their own."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cupy")

from gpumatch.cuda import surveys
from tests.cuda import emulator

pytestmark = pytest.mark.skipif(emulator.COMPILER is None, reason="there is no g++")


def test_threads_change_where_the_c_library_checks_jumps(monkeypatch):
    """Ubuntu's compiler asks for these checks by itself. They take another stack for a fault."""
    compiler, *options = emulator._COMMAND
    monkeypatch.setattr(emulator, "_COMMAND", (compiler, "-D_FORTIFY_SOURCE=2", *options))
    emulated = emulator.Emulator(surveys.SOURCE, {})
    kernels = emulated.bound_to({"Number": surveys.SOURCE.types["Number"]["int32"]})
    monkeypatch.setattr(surveys, "cp", emulator.ArraysOfDevice())
    monkeypatch.setattr(surveys, "kernels_for", lambda *_, **__: kernels)
    monkeypatch.setattr(surveys, "blocks_for", lambda _: 2)
    monkeypatch.setattr(surveys, "BLOCK", 64)
    indptr, indices = np.arange(101, dtype=np.int32), np.arange(100, dtype=np.int32)
    assert surveys.canonical_size(indptr, indices, (100, 100)) == 100
    assert emulated.seed > 0
