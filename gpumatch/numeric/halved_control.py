"""The control of a double cover, two of whose edges count as one of the graph."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from gpumatch.contracts import Control

__all__ = ["HalvedControl"]


class HalvedControl:
    """A control that passes all on, with half as many matched edges."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.stopped, self.seconds = control.stopped, control.seconds

    def tick(self, matched: int) -> bool:
        self.stopped = self._control.tick(matched // 2)
        return self.stopped

    def phase(self, *, found: int, matched: int, levels: int = 0, **more: Any) -> None:
        more = {"step": "double cover", **more}
        self._control.phase(found=found, matched=matched // 2, levels=levels, **more)

    def part(self, name: str) -> AbstractContextManager[None]:
        return self._control.part(name)
