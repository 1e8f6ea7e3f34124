"""What a worker does in the test of crashes and hangs; it imports little, to start soon."""

from __future__ import annotations

import os
import time

from tests.fuzz.trials import Outcome


def serve_badly(pipe, backend, door):
    """Crash at seed 1, hang at seed 2, else do nothing."""
    while True:
        seed, _ = pipe.recv()
        pipe.send(seed)
        if seed == 1:
            os._exit(11)
        if seed == 2:
            time.sleep(1000)
        pipe.send(Outcome(seed, 1, "assign", "< 2^8", "ok", 0.0))
