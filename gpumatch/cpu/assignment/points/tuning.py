"""The numbers that tune the engine for points: `DEFAULT`, unless a caller passes others."""

from __future__ import annotations

from gpumatch.numeric.points.tuning import Tuning

__all__ = ["DEFAULT", "Tuning"]

DEFAULT = Tuning()
