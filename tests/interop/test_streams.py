"""CuPy works on another library's stream, by the protocol for streams where it has that."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from gpumatch.interop import streams


@pytest.mark.parametrize("has_protocol", [True, False])
def test_work_goes_to_the_stream_of_the_device(monkeypatch, has_protocol):
    current = []

    class Entered:
        def __init__(self, *what):
            self.what = what

        def __enter__(self):
            current.append(self.what)

        def __exit__(self, *_):
            current.pop()

    kinds = {"null": Entered("null")}
    if has_protocol:
        kinds["from_external"] = lambda stream: Entered("stream", stream.__cuda_stream__())
    cuda = SimpleNamespace(
        Device=lambda number: Entered("device", number),
        Stream=SimpleNamespace(**kinds),
        ExternalStream=lambda *where: Entered("external", where),
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    streams._stream.cache_clear()
    with streams.on_stream(640, 3):
        named = ("stream", (0, 640)) if has_protocol else ("external", (640, 3))
        assert current == [("device", 3), named]
    with streams.on_stream(0, 1):
        assert current == [("device", 1), ("null",)]
    assert current == []
    streams._stream.cache_clear()
