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

import inspect
import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from gpumatch.dispatch.registry import did_you_mean, option_names
from gpumatch.general.graph import Graph, weighted_of
from gpumatch.general.weights import PROBLEM, maximum_weight_matching
from gpumatch.numeric.exact_sums import summands
from gpumatch.numeric.fair_duals import two_sum
from gpumatch.results.edge_set import EdgeSet
from gpumatch.running.control import with_interrupts_result, without_result

__all__ = ["edge_cover", "refuse_others", "total_of"]

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
    >>> gm.verify((edges, weights), cover).bound
    8
    """
    refuse_others(edge_cover, options)
    graph = weighted_of(G, weight, triangle, maximize=False)
    weights = graph.weights
    assert weights is not None
    _check(graph, weights)
    owners = np.repeat(np.arange(graph.order, dtype=np.int32), np.diff(graph.indptr))
    cheapest = _cheapest(graph, weights)
    pays = np.maximum(weights[cheapest], 0)
    saved, lost = _saved(pays[owners], pays[graph.indices], weights)
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
    gap = matching.gap if weights.dtype.kind != "f" else _widened(matching.gap, lost, graph)
    return EdgeSet(keys // n, keys % n, objective, gap, matching, graph.nodes)


def refuse_others(front_door: Callable[..., Any], given: Iterable[str]) -> None:
    """Raise TypeError for names that are no options of the matching behind a front door."""
    decided = {"weight", "triangle", "cardinality", "maximize"}
    matching = inspect.signature(maximum_weight_matching).parameters.values()
    known = {p.name for p in matching if p.kind == p.KEYWORD_ONLY} | {*option_names(PROBLEM)}
    for name in given:
        if name in decided or name not in known:
            text = f"{front_door.__name__} got an unexpected argument {name!r}"
            raise TypeError(text + did_you_mean(name, sorted(known - decided | {"weight"})))


def total_of(weights: np.ndarray) -> Any:
    """The sum of weights: a Python int for integers."""
    terms = summands(weights)
    return sum(terms) if weights.dtype.kind != "f" else math.fsum(terms)


def _saved(one: np.ndarray, other: np.ndarray, weights: np.ndarray) -> tuple[Any, Any]:
    """What edges save, 0 for weights below 0, and how far floats may be from that.

    An edge that is heavier than what its ends pay saves nothing, however it is rounded.
    """
    if weights.dtype.kind != "f":
        return np.where(weights < 0, 0, one + other - weights), None
    sums, first = two_sum(one, other)
    saved, second = two_sum(sums, -weights)
    lost = abs(first) + abs(second)
    is_useless = (weights < 0) | (saved < -2 * lost)
    return np.where(weights < 0, 0.0, saved), np.where(is_useless, 0.0, lost)


def _widened(gap: float, lost: np.ndarray, graph: Graph) -> float:
    """The gap of a matching of rounded savings, as one of the true ones; rounded up.

    No matching saves more than it seems to by more than half of the sum over the vertices of what
    their edges have lost at most, because each edge has two vertices. Ours saves no less by more.
    """
    most = np.maximum.reduceat(lost, graph.indptr[:-1]) if lost.size else lost
    if not most.any():
        return gap
    return math.nextafter(math.fsum([gap, math.fsum(most) * (1 + 2.0**-50)]), math.inf)


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
