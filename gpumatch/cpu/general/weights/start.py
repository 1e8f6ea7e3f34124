"""A start of general weighted matching: greedy duals, and a matching of tight edges.

Each dual begins at half of the vertex's largest weight, so that no edge is violated. Then each
vertex in turn lowers its dual as far as its edges allow. One of them is tight then, and is matched
if its other end is unmatched.
"""

from __future__ import annotations

from gpumatch.cpu.general.weights.state import NONE
from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["greedy"]


@kernel
def greedy(graph, nodes, level):
    """Write duals of at least `level`, and match tight edges; return how many vertices are matched.

    The nodes are those of a graph without any matched edge. Weights are doubled.
    """
    indptr, indices, weights = graph
    n, matched = indptr.size - 1, 0
    for vertex in range(n):
        dual = level
        for k in range(indptr[vertex], indptr[vertex + 1]):
            dual = max(dual, weights[k] >> 1)
        nodes[vertex].dual = dual
    for vertex in range(n):
        if nodes[vertex].mate != NONE:
            continue
        dual, partner = level, NONE
        for k in range(indptr[vertex], indptr[vertex + 1]):
            other = indices[k]
            least = weights[k] - nodes[other].dual
            if least > dual or (least == dual and nodes[other].mate == NONE):
                dual, partner = least, other
        nodes[vertex].dual = dual
        if partner != NONE and nodes[partner].mate == NONE:
            nodes[vertex].mate, nodes[partner].mate = partner, vertex
            matched += 2
    return matched
