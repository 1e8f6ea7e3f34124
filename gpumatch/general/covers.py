"""The front door to edge covers of least weight, by matchings of what edges save.

All edges of weight below 0 are taken. Let c_v be the least weight of an edge at a vertex v, and 0
if v has such an edge. Each vertex pays c_v for an edge of its own. An edge uv of weight w >= 0
covers both of its ends, and saves c_u + c_v - w. The edges of a cover of least weight fall into
stars, because an edge can go if both of its ends are in other edges. Of each star, one edge is the
matching's, and each of the others is the cheapest of its leaf. So the most that a matching saves is
the difference between the sum of all c_v and the least weight.

Reference: Schrijver, *Combinatorial Optimization*, 2003, section 27.1.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from gpumatch.general.graph import Graph, weighted_of
from gpumatch.general.weights import maximum_weight_matching
from gpumatch.numeric.exact_sums import summands
from gpumatch.results.edge_set import EdgeSet
from gpumatch.running.control import with_interrupts_result, without_result

__all__ = ["edge_cover", "total_of"]

LARGEST = 2**55
"""Integer weights are below this, so that what edges save is below 2**58."""


@with_interrupts_result
def edge_cover(
    G: Any, *, weight: Hashable = "weight", triangle: str = "both", **options: Any
) -> EdgeSet:
    """Choose edges of least total weight, so that each vertex is in at least one of them.

    Parameters
    ----------
    G, weight, triangle
        As of `gpumatch.general.maximum_weight_matching`. Of repeated edges, the lightest counts.
    **options
        Its `algorithm`, `backend`, `seed`, `threads`, `time_limit`, `progress` and `callback`.

    Returns
    -------
    EdgeSet
        If the run was stopped, it is a cover, but maybe not the lightest.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong, a vertex has no edge, or integers reach 2**55.
    KeyboardInterrupt
        On Ctrl-C, with the attribute ``result`` None.

    Notes
    -----
    O(n m log n) at worst for n vertices and m edges: one matching.

    Examples
    --------
    >>> import gpumatch as gm
    >>> edges, weights = [(0, 1), (1, 2), (2, 3), (1, 3)], [4, 1, 5, 3]
    >>> cover = gm.general.edge_cover((edges, weights))
    >>> cover.edges().tolist(), cover.objective, cover.proven
    ([[0, 1], [1, 2], [1, 3]], 8, True)
    """
    for name in ("cardinality", "maximize"):
        if name in options:
            raise TypeError(f"edge_cover got an unexpected argument {name!r}")
    graph = weighted_of(G, weight, triangle, maximize=False)
    weights = graph.weights
    assert weights is not None
    _check(graph, weights)
    owners = np.repeat(np.arange(graph.order, dtype=np.int32), np.diff(graph.indptr))
    cheapest = _cheapest(graph, weights)
    pays = np.maximum(weights[cheapest], 0)
    saved = pays[owners] + pays[graph.indices] - weights
    saved[weights < 0] = 0
    source = graph._replace(weights=saved)
    matching: Any = without_result(lambda: maximum_weight_matching(source, **options))
    is_taken = weights < 0
    is_taken |= (matching.mate[owners] == graph.indices) & (saved > 0)
    is_covered = np.zeros(graph.order, bool)
    is_covered[owners[is_taken]] = True
    is_taken[cheapest[~is_covered]] = True
    low, high = (end(owners, graph.indices)[is_taken] for end in (np.minimum, np.maximum))
    keys, first = np.unique(low.astype(np.int64) * graph.order + high, return_index=True)
    n = max(graph.order, 1)
    objective = total_of(weights[is_taken][first])
    return EdgeSet(keys // n, keys % n, objective, matching.gap, matching, graph.nodes)


def total_of(weights: np.ndarray) -> Any:
    """The sum of weights: a Python int for integers."""
    terms = summands(weights)
    return sum(terms) if weights.dtype.kind != "f" else math.fsum(terms)


def _check(graph: Graph, weights: np.ndarray) -> None:
    lonely = np.flatnonzero(np.diff(graph.indptr) == 0)
    if lonely.size:
        name = graph.name_of(int(lonely[0]))
        raise ValueError(f"there is no edge cover: vertex {name} has no edge")
    if weights.dtype.kind != "f" and weights.size:
        largest = max(int(weights.max()), -int(weights.min()))
        if largest >= LARGEST:
            raise ValueError(f"weights: {largest} is too large; integers must be below 2**55")


def _cheapest(graph: Graph, weights: np.ndarray) -> np.ndarray:
    """The place of the lightest edge of each vertex."""
    if not weights.size:
        return np.zeros(0, np.int64)
    least = np.minimum.reduceat(weights, graph.indptr[:-1])
    owners = np.repeat(np.arange(graph.order), np.diff(graph.indptr))
    places = np.flatnonzero(weights == least[owners])
    first: np.ndarray = places[np.unique(owners[places], return_index=True)[1]]
    return first
