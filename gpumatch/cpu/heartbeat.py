"""How an algorithm stops from deep within its calls: by an exception that its `run` catches."""

from __future__ import annotations

from collections.abc import Callable

from gpumatch.contracts import Control, Stopped

__all__ = ["heartbeat"]


def heartbeat(control: Control, matched: Callable[[], int]) -> Callable[[], None]:
    """A function to be called at least every half second of work.

    It reports the number of matched rows, and raises `Stopped` when the control says so.
    """

    def beat() -> None:
        if control.tick(matched()):
            raise Stopped

    return beat
