"""Starts of general weighted matching: feasible duals, and a matching of tight edges.

Greedy duals begin at half of each vertex's largest weight, so that no edge is violated. Duals that
are given, of a fractional optimum or of a similar problem, are raised where they violate an edge.
Then each vertex in turn lowers its dual as far as its edges allow. One of them is tight then, and
is matched if its other end is unmatched. Edges of a given matching come first.
"""

from __future__ import annotations

from gpumatch.cpu.general.weights.state import NONE
from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = ["greedy", "resume"]


@kernel
def greedy(graph, nodes, level):
    """Write duals of at least `level`, and match tight edges; return how many vertices are matched.

    The nodes are those of a graph without any matched edge. Weights are doubled.
    """
    indptr, _, weights = graph
    for vertex in range(indptr.size - 1):
        dual = level
        for k in range(indptr[vertex], indptr[vertex + 1]):
            dual = max(dual, weights[k] >> 1)
        nodes[vertex].dual = dual
    return _lowered(graph, nodes, level)


@kernel
def resume(graph, nodes, level, duals, mates):
    """Write duals from given ones and mates, and match tight edges; return how many are matched."""
    indptr, indices, weights = graph
    n, matched = indptr.size - 1, 0
    for vertex in range(n):
        nodes[vertex].dual = max(level, duals[vertex])
    for vertex in range(n):
        dual = nodes[vertex].dual
        for k in range(indptr[vertex], indptr[vertex + 1]):
            dual = max(dual, weights[k] - nodes[indices[k]].dual)
        nodes[vertex].dual = dual
    for vertex in range(n):
        least, own = level, level - 1  # below all, if there is no edge to the given mate
        for k in range(indptr[vertex], indptr[vertex + 1]):
            needed = weights[k] - nodes[indices[k]].dual
            least = max(least, needed)
            if indices[k] == mates[vertex]:
                own = needed
        nodes[vertex].dual = least
        mate = mates[vertex]
        is_open = mate != NONE and nodes[vertex].mate == NONE and nodes[mate].mate == NONE
        if is_open and own == least:
            nodes[vertex].mate, nodes[mate].mate = mate, vertex
            matched += 2
    return matched + _lowered(graph, nodes, level)


@kernel
def _lowered(graph, nodes, level):
    """Lower the duals of unmatched vertices, and match tight edges; return the vertices matched."""
    indptr, indices, weights = graph
    n, matched = indptr.size - 1, 0
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
