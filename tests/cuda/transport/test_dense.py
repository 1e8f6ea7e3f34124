"""The engine for dense transport, on a GPU or on the emulator of its kernels."""

from __future__ import annotations

import pytest

cp = pytest.importorskip("cupy")

from gpumatch.cuda.transport import core, dense  # noqa: E402
from gpumatch.cuda.transport.sparse import engine  # noqa: E402
from tests.cpu.transport.problems import least_cost, random_task  # noqa: E402
from tests.cuda.transport.on_device import confirm  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]


@pytest.mark.parametrize("limit", [False, True], ids=["all", "limits"])
@pytest.mark.parametrize("integer", [True, False], ids=["int", "float"])
def test_core_and_pricing(monkeypatch, limit, integer):
    monkeypatch.setattr(core, "WHOLE", 12)
    monkeypatch.setattr(core, "NEAREST", 2)
    monkeypatch.setattr(core, "MORE", 1)
    monkeypatch.setattr(engine, "FEW", 0)
    for seed in range(6):
        task = random_task(seed, dense=True, integer=integer, limit=limit, size=14, allow=True)
        confirm(cp, dense.solve, task, least_cost(task))
