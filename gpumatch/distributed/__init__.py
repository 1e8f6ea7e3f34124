"""Matching and assignment of what is divided among the ranks of an MPI program.

Each rank holds some rows, calls these functions together with all others, and gets its share of
the result. The names are imported when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpumatch.distributed.assignment import assign
    from gpumatch.distributed.matching import maximum_matching
    from gpumatch.distributed.results import DistributedAssignment, DistributedMatching
    from gpumatch.distributed.verification import verify

__all__ = [
    "DistributedAssignment",
    "DistributedMatching",
    "assign",
    "maximum_matching",
    "verify",
]

_HOME = {
    "DistributedAssignment": "results",
    "DistributedMatching": "results",
    "assign": "assignment",
    "maximum_matching": "matching",
    "verify": "verification",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"gpumatch.distributed.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'gpumatch.distributed' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
