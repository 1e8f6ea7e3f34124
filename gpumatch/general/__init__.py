"""Matchings of graphs that are not bipartite: any edges, any weights, with a proof.

The names are imported when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpumatch.general.covers import edge_cover
    from gpumatch.general.graph import Graph
    from gpumatch.general.matching import maximum_matching
    from gpumatch.general.t_joins import NoJoinError, t_join
    from gpumatch.general.weights import maximum_weight_matching
    from gpumatch.problems.general_weights import ImperfectError
    from gpumatch.results.edge_set import EdgeSet
    from gpumatch.results.general import GeneralMatching
    from gpumatch.results.general_weights import GeneralWeightMatching
    from gpumatch.results.suitor import BoundedMatching

__all__ = [
    "BoundedMatching",
    "EdgeSet",
    "GeneralMatching",
    "GeneralWeightMatching",
    "Graph",
    "ImperfectError",
    "NoJoinError",
    "edge_cover",
    "maximum_matching",
    "maximum_weight_matching",
    "t_join",
]

_HOME = {
    "BoundedMatching": "results.suitor",
    "EdgeSet": "results.edge_set",
    "GeneralMatching": "results.general",
    "GeneralWeightMatching": "results.general_weights",
    "Graph": "general.graph",
    "ImperfectError": "problems.general_weights",
    "NoJoinError": "general.t_joins",
    "edge_cover": "general.covers",
    "maximum_matching": "general.matching",
    "maximum_weight_matching": "general.weights",
    "t_join": "general.t_joins",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"gpumatch.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'gpumatch.general' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
