"""The numbers that tune the GPU's engine for points: `DEFAULT`, unless a caller passes others."""

from __future__ import annotations

from gpumatch.numeric.points.tuning import Tuning

__all__ = ["DEFAULT", "Tuning"]

DEFAULT = Tuning(stored=2**24, nearest_of_many=24, few=1024)
