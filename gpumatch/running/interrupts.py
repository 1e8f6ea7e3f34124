"""Hold Ctrl-C back while something is imported that would break."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class InterruptsHeld:
    """While the block runs, Ctrl-C waits; after it, the signal is handled.

    Numba and SciPy import much, and some of that catches whatever is raised. A KeyboardInterrupt is
    swallowed there, or turned into another error, or leaves half a module behind. Signals reach the
    main thread alone, so in other threads there is nothing to hold.
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
