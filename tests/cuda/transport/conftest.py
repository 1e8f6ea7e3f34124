"""On the emulator, small problems go everywhere: rows are wide, fronts large, launches short."""

from __future__ import annotations

import pytest

from tests.cuda.transport.on_device import short_launches


@pytest.fixture(scope="session")
def crowded_paths():
    from gpumatch.cuda.transport.sparse.paths import PATHS
    from tests.cuda.emulator import Emulator
    from tests.cuda.emulator.device import BLOCK

    return PATHS, Emulator(PATHS, {"kBlock": BLOCK, "kWide": 4, "kSmall": 2})


@pytest.fixture(autouse=True)
def small_is_large(request, monkeypatch):
    if "stand_in" in request.fixturenames:
        from gpumatch.cuda.transport.sparse import auction, paths

        emulators = request.getfixturevalue("all_emulators")
        monkeypatch.setitem(emulators, *request.getfixturevalue("crowded_paths"))
        monkeypatch.setattr(paths, "_WIDE", 4)
        monkeypatch.setattr(auction.Tuning.__new__, "__defaults__", short_launches(8))
