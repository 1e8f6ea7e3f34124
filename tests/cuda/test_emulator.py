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
    emulator.lead_drivers_here(monkeypatch, {surveys.SOURCE: emulated}, surveys, block=64)
    indptr, indices = np.arange(101, dtype=np.int32), np.arange(100, dtype=np.int32)
    assert surveys.canonical_size(indptr, indices, (100, 100)) == 100
    assert emulated.seed > 0


def test_arrays_of_the_stand_in_for_cupy_do_not_mix_with_those_of_numpy(stand_in):
    there, here = stand_in.asarray(np.arange(6)), np.arange(6)
    for mixed in (
        lambda: there + here,
        lambda: here + there,
        lambda: stand_in.where(there > 2, there, here),
        lambda: stand_in.concatenate([there, here]),
        lambda: there.__setitem__(slice(None), here),
        lambda: np.asarray(there),
        lambda: np.add(here, 1, out=there),
    ):
        with pytest.raises(TypeError, match=r"do not mix|moved by `get`"):
            mixed()
    assert there.tolist() == here.tolist()
    assert isinstance(there.max(), stand_in.ndarray)  # of no dimensions
    assert isinstance(there[there > 2] * 2, stand_in.ndarray)
    assert np.array_equal(there.get(), here)
