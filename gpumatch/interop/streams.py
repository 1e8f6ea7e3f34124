"""Let CuPy work on a stream of another library, and on its device."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

__all__ = ["on_stream"]


@contextlib.contextmanager
def on_stream(address: int, device: int) -> Iterator[None]:
    """Work on the stream with this address, of the device with this number."""
    import cupy

    with cupy.cuda.Device(device), _stream(address, device):
        yield


@functools.lru_cache(maxsize=64)
def _stream(address: int, device: int) -> Any:
    """CuPy's object for a stream. It holds nothing but the address."""
    import cupy

    if address == 0:
        return cupy.cuda.Stream.null
    if hasattr(cupy.cuda.Stream, "from_external"):  # which takes the place of the other
        return cupy.cuda.Stream.from_external(_Stream(address))
    return cupy.cuda.ExternalStream(address, device)


class _Stream:
    """A stream by the protocol of CUDA's libraries for Python."""

    def __init__(self, address: int) -> None:
        self.address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.address
