"""General weighted matching where all weights are equal: a matching of the most edges, and duals.

Let D, A and C be the Gallai–Edmonds decomposition, w the weight of every edge, and L the level of
unmatched vertices, with L < w. These duals of doubled weights prove a matching of the most edges
optimal (`gpumatch.contracts.general_weights` states the inequalities):

    D: L        A: 2 w - L        C: w        each component of D: 2 (w - L)

An edge of a vertex of A has at least 2 w - L + L. One within C has w + w, one within a component of
D has L + L + 2 (w - L), and no other edges exist. The first three are equalities where the edge is
matched: A is matched into D. Each component of D is matched inside but for one vertex, and all
unmatched vertices are in D.
"""

from __future__ import annotations

import numpy as np

from gpumatch.bipartite import BipartiteGraph
from gpumatch.contracts import GeneralMatchingTask
from gpumatch.contracts.general_weights import GeneralWeightSolution, OddSets
from gpumatch.dispatch.backends import choose_components

__all__ = ["equal_solution"]


def equal_solution(largest: GeneralMatchingTask, weight: int, level: int) -> GeneralWeightSolution:
    """The solution for edges that all have one weight, above the level.

    Parameters
    ----------
    largest : GeneralMatchingTask
        A matching of the most edges, and the parts of its vertices.
    weight, level : int
    """
    part = largest.part
    dual = np.full(part.size, weight, np.int64)
    dual[part == largest.OUTER] = level
    dual[part == largest.INNER] = 2 * weight - level
    sets = _components(largest, 2 * (weight - level))
    return GeneralWeightSolution(largest.mate, dual, sets, True)


def _components(largest: GeneralMatchingTask, dual: int) -> OddSets:
    """The components of D with more than one vertex."""
    n = largest.mate.size
    graph = BipartiteGraph.of_rows(largest.indptr, largest.indices, (n, n))
    _, find = choose_components("cpu", graph)
    is_outer = largest.part == largest.OUTER
    component, count = find(graph, np.arange(n, dtype=np.int32), is_outer)
    outer = np.flatnonzero(is_outer)
    sizes = np.bincount(component[outer], minlength=count)
    chosen = outer[sizes[component[outer]] > 1]
    vertices = chosen[np.argsort(component[chosen], kind="stable")]
    end = sizes[sizes > 1].cumsum()
    begin = end - sizes[sizes > 1]
    return OddSets(vertices.astype(np.int32), begin, end, np.full(end.size, dual, np.int64))
