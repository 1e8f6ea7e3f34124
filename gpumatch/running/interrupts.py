"""Delay of Ctrl-C during imports that it would break."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class InterruptsHeld:
    """A block during which Ctrl-C waits. At its end, the signal is handled.

    Some modules that Numba and SciPy import catch every exception. They swallow a
    KeyboardInterrupt, or raise another error in its place, or stay half imported. Only the main
    thread receives signals, so the class does nothing in other threads.
    """

    def __init__(self) -> None:
        self._handler: Any = None
        self._frame: FrameType | None = None
        self._came = False

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):  # neither ignored, nor left to the system or to another language
            self._handler = handler
            signal.signal(signal.SIGINT, self._hold)

    def __exit__(self, *_: object) -> None:
        if self._handler is None:
            return
        signal.signal(signal.SIGINT, self._handler)
        if self._came:
            self._handler(signal.SIGINT, self._frame)

    def _hold(self, _signal: int, frame: FrameType | None) -> None:
        self._came, self._frame = True, frame
