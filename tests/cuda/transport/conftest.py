"""On the emulator, small problems go everywhere: launches are short."""

from __future__ import annotations

import pytest

from tests.cuda.transport.on_device import short_launches


@pytest.fixture(autouse=True)
def small_is_large(request, monkeypatch):
    if "stand_in" in request.fixturenames:
        from gpumatch.cuda.transport.sparse import auction

        monkeypatch.setattr(auction.Tuning.__new__, "__defaults__", short_launches(8))
