"""Matchings of graphs that are not bipartite: any edges, any weights, with a proof.

The names are imported when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpumatch.general.graph import Graph
    from gpumatch.general.matching import maximum_matching
    from gpumatch.results.general import GeneralMatching

__all__ = ["GeneralMatching", "Graph", "maximum_matching"]

_HOME = {
    "GeneralMatching": "results.general",
    "Graph": "general.graph",
    "maximum_matching": "general.matching",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"gpumatch.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'gpumatch.general' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
