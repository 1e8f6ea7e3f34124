"""The front door to T-joins of least weight, by one perfect matching of a sparse graph.

A set J of edges is a T-join if the vertices of T, and no others, are in an odd number of its edges.

Each vertex of d edges becomes a chain of d copies, joined by *links* of weight 0; each copy has one
of the edges. If the vertex is in T, its first copy is. A T-join of the new graph has the same edges
as one of the old graph, as the links can carry any parity along the chain.

The graph to be matched has two ends for each edge and for each link, and one vertex for each copy
in T. An edge of weight 0 joins both ends of an edge or link: if these are matched with each other,
it is not in J. All ends at one copy, and its vertex of T, are joined to each other. An end that is
matched there is of an edge in J, and pays half of its weight. A perfect matching leaves no end
over, so the number of J's ends at a copy is even, or odd with its vertex of T. Weights are doubled,
so the matching pays twice what J weighs.

There are at most 4 vertices at a copy, so the graph has O(m) vertices and edges.

Reference: Edmonds, Johnson, *Matching, Euler tours and the Chinese postman*, Math. Programming 5,
1973.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from gpumatch.general.covers import refuse_others, total_of
from gpumatch.general.graph import Graph, weighted_of
from gpumatch.general.weights import maximum_weight_matching
from gpumatch.numeric.arrays import array_of, first_true, index_array
from gpumatch.problems.cardinality import InfeasibleError
from gpumatch.problems.general_weights import ImperfectError
from gpumatch.results.edge_set import EdgeSet
from gpumatch.running.control import with_interrupts_result, without_result

__all__ = ["NoJoinError", "t_join"]


class NoJoinError(InfeasibleError):
    """There is no T-join: a component of the graph has an odd number of vertices of T."""

    def __init__(self, message: str) -> None:
        ValueError.__init__(self, message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args


@with_interrupts_result
def t_join(
    G: Any, T: Any, *, weight: Hashable = "weight", triangle: str = "both", **options: Any
) -> EdgeSet:
    """Choose edges of least total weight, an odd number at each vertex of T, and even elsewhere.

    Parameters
    ----------
    G, weight, triangle
        As of `gpumatch.general.maximum_weight_matching`. Weights may be negative. Of repeated
        edges, the lightest counts.
    T : array of vertices, or list of nodes for a networkx graph
        Each at most once.
    **options
        Its `algorithm`, `backend`, `seed`, `threads`, `time_limit`, `progress` and `callback`.

    Returns
    -------
    EdgeSet

    Raises
    ------
    NoJoinError
        An `InfeasibleError`, and a ValueError: a component has an odd number of vertices of T.
    ValueError, TypeError
        If an argument is wrong, or integers are too large.
    RuntimeError
        If the run was stopped before there was a T-join.
    KeyboardInterrupt
        On Ctrl-C, with the attribute ``result`` None.

    Notes
    -----
    One perfect matching of a graph with O(m) vertices and edges.

    Examples
    --------
    The streets that a postman walks twice, who must walk each at least once:

    >>> import gpumatch as gm
    >>> streets = [(0, 1), (1, 2), (2, 3), (0, 3), (1, 3)]
    >>> join = gm.general.t_join((streets, [2, 2, 4, 3, 6]), [1, 3])
    >>> join.edges().tolist(), join.objective, join.odd_vertices.tolist()
    ([[0, 1], [0, 3]], 5, [1, 3])
    >>> gm.verify((streets, [2, 2, 4, 3, 6]), join).bound
    5
    """
    refuse_others(t_join, options)
    graph = weighted_of(G, weight, triangle, maximize=False)
    is_odd = _marks(_listed(T), graph)
    owners = np.repeat(np.arange(graph.order), np.diff(graph.indptr))
    back = _other_ends(graph, owners)
    source = _gadgets(graph, owners, back, is_odd)
    try:
        matching: Any = without_result(
            lambda: maximum_weight_matching(
                source, cardinality="perfect", maximize=False, **options
            )
        )
    except ImperfectError as exc:
        raise NoJoinError(
            "there is no T-join: a component has an odd number of vertices of T"
        ) from exc
    if 2 * matching.size < matching.mate.size:
        raise RuntimeError("the run was stopped before there was a T-join")
    places = np.arange(owners.size)
    is_used = (matching.mate[places] != back) & (owners < graph.indices)
    assert graph.weights is not None
    objective = total_of(graph.weights[is_used])
    gap = matching.gap / 2 if graph.weights.dtype.kind == "f" else matching.gap // 2
    ends, T = (owners[is_used], graph.indices[is_used]), np.flatnonzero(is_odd)
    return EdgeSet(*ends, objective, gap, matching, graph.nodes, odd_vertices=T)


def _listed(T: Any) -> Any:
    """An array as it is, and a list of anything else, which may be readable once only."""
    if hasattr(T, "dtype"):
        if T.ndim != 1 or getattr(T.dtype, "kind", None) == "b":  # torch's types have no kind
            raise TypeError(
                f"T must be a list of vertices; got an array of {T.dtype}, of shape {T.shape}"
            )
        return T
    try:
        return list(T)
    except TypeError:
        raise TypeError(f"T must be a list of vertices; got {type(T).__name__}") from None


def _marks(T: Any, graph: Graph) -> np.ndarray:
    """The marks of the vertices of T, checked."""
    if graph.nodes is not None:
        numbers = {node: number for number, node in enumerate(graph.nodes)}
        strange = [node for node in T if not isinstance(node, Hashable) or node not in numbers]
        if strange:
            raise ValueError(f"T: {strange[0]!r} is no node of the graph")
        T = [numbers[node] for node in T]
    vertices = array_of(np, index_array(np.asarray(T, np.int64) if not len(T) else T, "T"))
    stray = first_true((vertices < 0) | (vertices >= graph.order))
    if stray is not None:
        raise ValueError(f"T names vertex {int(vertices[stray])} of {graph.order}")
    marks = np.bincount(vertices, minlength=graph.order)
    twice = first_true(marks > 1)
    if twice is not None:
        raise ValueError(f"T names vertex {graph.name_of(twice)} more than once")
    is_lonely = (marks > 0) & (np.diff(graph.indptr) == 0)
    if is_lonely.any():
        name = graph.name_of(int(is_lonely.argmax()))
        raise NoJoinError(f"there is no T-join: vertex {name} has no edge")
    return marks > 0


def _other_ends(graph: Graph, owners: np.ndarray) -> np.ndarray:
    """The place of each edge as it is seen from its other end."""
    back = np.empty(owners.size, np.int64)
    back[np.lexsort((owners, graph.indices))] = np.arange(owners.size)
    return back


def _gadgets(
    graph: Graph, owners: np.ndarray, back: np.ndarray, is_odd: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The edges to be matched, and their weights.

    The end of an edge has the number of its place. Then come the ends of links: of the one behind
    copy p, that at p and that at the next copy. The vertices of T are last.
    """
    assert graph.weights is not None
    ends = owners.size
    behind = np.flatnonzero(owners[1:] == owners[:-1])  # copies with a link to the next one
    near, far = (np.full(ends, -1) for _ in range(2))
    near[behind] = ends + 2 * np.arange(behind.size)
    far[behind + 1] = near[behind] + 1
    firsts = graph.indptr[:-1][is_odd]
    odd = np.full(ends, -1)
    odd[firsts] = ends + 2 * behind.size + np.arange(firsts.size)
    places = np.arange(ends)
    is_low = places < back
    joined = [
        (places[is_low], back[is_low], np.zeros_like(graph.weights[is_low])),
        (near[behind], near[behind] + 1, np.zeros(behind.size, graph.weights.dtype)),
    ]
    at_copy = places, near, far, odd
    for k, one in enumerate(at_copy):
        for other in at_copy[k + 1 :]:
            is_there = (one >= 0) & (other >= 0)
            paid = graph.weights[is_there] * (k == 0)
            joined.append((one[is_there], other[is_there], paid))
    tails, heads, weights = (np.concatenate(part) for part in zip(*joined))
    return np.stack([tails, heads], axis=1), weights
