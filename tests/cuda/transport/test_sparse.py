"""The engine for sparse transport, on a GPU or on the emulator of its kernels."""

from __future__ import annotations

import pytest

cp = pytest.importorskip("cupy")

from gpumatch.cuda.transport.sparse import engine, paths  # noqa: E402
from tests.cpu.transport.problems import least_cost, random_task  # noqa: E402
from tests.cuda.emulator import Emulator  # noqa: E402
from tests.cuda.transport.on_device import confirm  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]


@pytest.fixture(autouse=True)
def short_rows_are_wide(request, monkeypatch):
    """On the emulator, so that all threads read a row together in small problems, too."""
    if "stand_in" in request.fixturenames:
        emulators = request.getfixturevalue("all_emulators")
        monkeypatch.setitem(emulators, paths.PATHS, Emulator(paths.PATHS, {"kWide": 4}))


@pytest.mark.parametrize("few", [0, 2**30], ids=["auction", "paths"])
@pytest.mark.parametrize("limit", [False, True], ids=["all", "limits"])
@pytest.mark.parametrize("integer", [True, False], ids=["int", "float"])
def test_random_problems(monkeypatch, few, limit, integer):
    monkeypatch.setattr(engine, "FEW", few)
    for seed in range(40):
        task = random_task(seed, dense=False, integer=integer, limit=limit, size=9)
        confirm(cp, engine.solve, task, least_cost(task))
