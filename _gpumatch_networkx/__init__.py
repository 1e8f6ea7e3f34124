"""What networkx reads of this backend when it is imported itself: names and a line about each.

Nothing of gpumatch is imported here. `gpumatch.interop.networkx_backend` has the functions, and
networkx loads it when one of them is first dispatched.
"""

from __future__ import annotations

from typing import Any

_ANY_GRAPH = "Any graph; bipartite ones by an engine of their own."
_NO_DIRECTIONS = "Undirected graphs only."
_ALREADY_CONVERTED = "Runs by itself only where the graph has been converted before."

_FUNCTIONS = {
    "bipartite_min_edge_cover": "`matching_algorithm` must be one of the functions here.",
    "color": _ALREADY_CONVERTED,
    "edge_bfs": f"Simple directed graphs, from one node or all. {_ALREADY_CONVERTED}",
    "eppstein_matching": f"{_NO_DIRECTIONS} The same as `hopcroft_karp_matching`.",
    "hopcroft_karp_matching": f"{_NO_DIRECTIONS} Runs gpumatch's own engine.",
    "is_bipartite": _ALREADY_CONVERTED,
    "is_bipartite_node_set": _ALREADY_CONVERTED,
    "is_edge_cover": _ALREADY_CONVERTED,
    "is_matching": _ALREADY_CONVERTED,
    "is_maximal_matching": _ALREADY_CONVERTED,
    "is_perfect_matching": _ALREADY_CONVERTED,
    "max_weight_matching": _ANY_GRAPH,
    "maximal_matching": _ALREADY_CONVERTED,
    "min_edge_cover": f"{_ANY_GRAPH} `matching_algorithm` must be one of the functions here.",
    "min_weight_matching": _ANY_GRAPH,
    "minimum_weight_full_matching": "Undirected simple graphs only. Never makes a dense matrix.",
    "sets": _ALREADY_CONVERTED,
    "to_vertex_cover": f"{_NO_DIRECTIONS} Extends the matching first if it is not maximum.",
    "transitive_closure": "Simple directed graphs without data, if a call names the backend.",
}


def get_info() -> dict[str, Any]:
    """The backend's metadata, in the form that networkx asks for."""
    return {
        "backend_name": "gpumatch",
        "project": "gpumatch",
        "package": "gpumatch",
        "short_summary": "Matching of any graph, and assignment, on GPUs and CPUs.",
        "functions": {name: {"additional_docs": line} for name, line in _FUNCTIONS.items()},
    }
