"""Check an edge cover or a T-join of least weight, by the duals of the matching behind it.

That the edges are edges, that they cover all vertices or are odd at those of T alone, and what they
weigh, is checked on them. That nothing is lighter follows from the duals of a matching of another
graph, which the checker makes by itself and then checks as any weighted matching.

Theorem (covers). Let c_v be the least weight of an edge at vertex v, or 0 if that is below 0. Let N
be the sum of the weights below 0, and let no matching of edges of weight w_uv >= 0 have a sum of
c_u + c_v - w_uv above B. Then no edge cover weighs less than N + (sum of all c_v) - B.

Proof. A cover gets no heavier if it takes all edges below 0, nor if it drops an edge of weight 0 or
more whose ends are both in others. Then its other edges are stars, whose leaves are in no other
edge. Of each star, let one edge be the matching's: it weighs c_u + c_v - (what it saves). Each of
the others weighs at least the c_v of its leaf. A vertex in no star has an edge below 0, so its c_v
is 0. ∎

With floats, what an edge saves is rounded. By how much the exact number is larger is charged to one
of its ends, and the largest of each vertex is added to B. That is not needed for an edge that saves
nothing, because no matching is better with it.

Theorem (joins). No T-join weighs less than half of the least weight of a perfect matching of this
graph. *Copies* of a vertex are as many as its edges, each of one edge. The graph has a vertex for
both ends of each edge, a *link* between any two consecutive copies of a vertex, with two ends as
well, and a vertex at the first copy of each vertex of T. Edges of weight 0 join the two ends of an
edge, and those of a link. All vertices at one copy are joined, too: that of an end of an edge to
the others by the weight of that edge, the others by 0.

Proof. In a T-join J, let a link be used if the copies up to it have an odd number of vertices of T
and ends of J. Then each copy has an even number of vertices of T, of ends of J, and of ends of used
links. Match these in pairs, and the ends of all other edges and links with each other. In a copy's
pairs, each edge of J pays its weight at both ends. ∎

Vertices of that graph are numbered so: the end of an edge by its place in `gpumatch.general.graph`,
then the ends of links, by the place of the copy before the link, and the vertices of T.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    check_claim_of_size,
    marks_in,
    python_number,
)
from gpumatch.certificates.gaps import Proof, allowance_of, check_objective
from gpumatch.certificates.general_weights import verify_general_weights
from gpumatch.certificates.slacks import excess_of_any, most, sum_in_units, units_of
from gpumatch.general.graph import Graph, weighted_of
from gpumatch.numeric.arrays import array_of, first_true

__all__ = ["EdgeSetCertificate", "verify_edge_set"]

LARGEST = 2**55
"""Integer weights of covers are below this, so that what edges save fits int64."""


@dataclass(frozen=True)
class EdgeSetCertificate(Certificate):
    """The proof of an edge cover or a T-join, checked.

    Attributes
    ----------
    problem : str
        ``"edge cover"`` or ``"T-join"``.
    size : int
        Edges of the set.
    bound : int or float
        What the duals prove: no such set weighs less. Rounded down.
    edges : int
        Edges that were checked.
    objective : int or float
        The total weight.
    gap : int or float
        How far that is from the bound at most, rounded up.
    allowance : int or float
        The gap up to which floats are accepted as optimal; 0 for integers.
    """

    objective: float
    gap: float
    allowance: float

    def __str__(self) -> str:
        is_optimal = self.gap <= self.allowance
        article = "an" if self.problem == "edge cover" else "a"
        return (
            f"{'optimal' if is_optimal else 'not proven optimal'}: {article} {self.problem} of "
            f"{self.size} edges of total {self.objective}, and duals of total {self.bound}, "
            f"checked on {self.edges} edges; the gap is at most {self.gap:.3g}, with an allowance "
            f"of {self.allowance:.3g}"
        )


class _Bound(NamedTuple):
    """What is proven: a bound of the weight and the magnitudes it is of, both in units.

    No bound is None. `allowance` is the gap of floats that is accepted.
    """

    units: int | None
    summed: int
    allowance: float


def verify_edge_set(
    G: Any,
    result: Any,
    *,
    weight: Hashable = "weight",
    triangle: str = "both",
    optimal: bool = True,
) -> EdgeSetCertificate:
    """Check an edge cover or a T-join and what proves it; see `gpumatch.verify`."""
    graph = weighted_of(G, weight, triangle, maximize=False)
    assert graph.weights is not None
    ends, places = _checked_edges(graph, result.edge_ind)
    paid = graph.weights[places]
    size, is_whole = int(paid.size), paid.dtype.kind != "f"
    check_claim_of_size(result, size)
    degrees = np.bincount(ends.ravel(), minlength=graph.order)
    total, magnitudes = sum_in_units(paid), sum_in_units(abs(paid))
    objective = python_number("the objective", result.objective)
    check_objective(objective, total, is_whole, lambda: magnitudes)
    if result.odd_vertices is None:
        problem = "edge cover"
        _check_covered(degrees)
        bound = _bound_of_cover(graph, result.matching, paid, optimal)
    else:
        problem = "T-join"
        is_odd = _marks_of_odd(result.odd_vertices, degrees)
        bound = _bound_of_join(graph, result.matching, is_odd, optimal)
    proof = Proof.of(total, bound.units, 1, is_whole)
    allowance = 0 if is_whole else bound.allowance
    if optimal and not proof.gap <= allowance:
        raise CertificateError(
            f"the duals prove {proof.bound}, which is {proof.gap} from the objective: no proof"
        )
    is_modest = not optimal and python_number("the gap", result.gap) >= proof.gap
    if not is_modest:
        proof.check_gap(result.gap, allowance, optimal, lambda: magnitudes + bound.summed)
    return EdgeSetCertificate(
        problem, size, proof.bound, graph.size, objective, proof.gap, allowance
    )


# -- the edges -------------------------------------------------------------------------------------


def _owners(graph: Graph) -> np.ndarray:
    """The vertex of each place."""
    owners: np.ndarray = np.repeat(np.arange(graph.order), np.diff(graph.indptr))
    return owners


def _checked_edges(graph: Graph, edge_ind: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the claimed edges, and their places at the smaller ones."""
    parts = [array_of(np, part) for part in edge_ind]
    if len(parts) != 2 or any(part.ndim != 1 or part.dtype.kind not in "iu" for part in parts):
        raise CertificateError("edge_ind must be two lists of integers")
    if parts[0].size != parts[1].size:
        raise CertificateError(f"edge_ind has {parts[0].size} ends and {parts[1].size} others")
    n = graph.order
    for part in parts:
        stray = first_true((part < 0) | (part >= n))
        if stray is not None:
            raise CertificateError(f"edge_ind names vertex {int(part[stray])} of {n}")
    low, high = ends = np.stack(parts).astype(np.int64)
    stray = first_true(low >= high)
    if stray is not None:
        raise CertificateError(
            f"edge ({low[stray]}, {high[stray]}) must have its smaller end first"
        )
    keys, known = low * n + high, _owners(graph) * n + graph.indices
    places = np.searchsorted(known, keys)
    is_there = np.append(known, -1)[places] == keys
    stray = first_true(~is_there)
    if stray is not None:
        raise CertificateError(f"({low[stray]}, {high[stray]}) is no edge")
    order = np.sort(keys)
    twice = first_true(order[1:] == order[:-1])
    if twice is not None:
        raise CertificateError(f"edge {divmod(int(order[twice]), n)} is there twice")
    return ends, places


def _check_covered(degrees: np.ndarray) -> None:
    vertex = first_true(degrees == 0)
    if vertex is not None:
        raise CertificateError(f"vertex {vertex} is in none of the edges")


def _marks_of_odd(odd_vertices: Any, degrees: np.ndarray) -> np.ndarray:
    """The marks of the vertices of T; checked to be those of an odd degree."""
    n = degrees.size
    is_odd: np.ndarray = marks_in(np, array_of(np, odd_vertices), n, "T", "T names vertex")
    vertex = first_true(is_odd != (degrees % 2 == 1))
    if vertex is not None:
        whose = "of T" if is_odd[vertex] else "not of T"
        raise CertificateError(f"vertex {vertex} is {whose}, but in {degrees[vertex]} edges")
    return is_odd


# -- the bounds ------------------------------------------------------------------------------------


def _bound_of_cover(graph: Graph, matching: Any, paid: np.ndarray, optimal: bool) -> _Bound:
    weights, owners = graph.weights, _owners(graph)
    assert weights is not None
    is_whole = weights.dtype.kind != "f"
    if is_whole and most(weights) >= LARGEST:
        raise CertificateError("weights reach 2**55, so this is the cover of another graph")
    least = np.full(graph.order, weights.max(initial=0), weights.dtype)
    np.minimum.at(least, owners, weights)
    pays = np.maximum(least, 0)
    with np.errstate(over="ignore"):
        saved = np.where(weights < 0, 0, pays[owners] + pays[graph.indices] - weights)
    if not np.isfinite(saved).all():
        raise CertificateError("what edges save is beyond float64")
    source = graph._replace(weights=saved)
    units, allowed = _proven(source, matching, cardinality="any", maximize=True, optimal=optimal)
    at_low = np.flatnonzero((owners < graph.indices) & (weights >= 0))
    lacking = 0 if is_whole else _rounded_off(graph, owners, pays, saved, at_low)
    base = sum_in_units(pays) + sum_in_units(weights[(owners < graph.indices) & (weights < 0)])
    largest = float(most(paid))
    allowance = allowed + allowance_of(paid.size, largest, largest)
    if units is None:
        return _Bound(None, base, allowance)
    return _Bound(base - units - lacking, abs(base) + abs(units) + lacking, allowance)


def _rounded_off(
    graph: Graph, owners: np.ndarray, pays: np.ndarray, saved: np.ndarray, places: np.ndarray
) -> int:
    """By how much matchings may save more than rounded numbers say, at most, in units."""
    assert graph.weights is not None
    tails, heads = owners[places], graph.indices[places]
    terms = [pays[tails], pays[heads], -graph.weights[places], -saved[places]]
    missing = excess_of_any(terms)
    charged = np.zeros(graph.order)
    np.maximum.at(charged, tails, np.where(missing > -saved[places], missing, 0.0).clip(0.0))
    return sum_in_units(charged)


def _bound_of_join(graph: Graph, matching: Any, is_odd: np.ndarray, optimal: bool) -> _Bound:
    source = weighted_of(_of_copies(graph, is_odd), maximize=False)
    units, allowed = _proven(
        source, matching, cardinality="perfect", maximize=False, optimal=optimal
    )
    half = None if units is None else units // 2
    return _Bound(half, abs(half or 0), allowed / 2)


def _of_copies(graph: Graph, is_odd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The edges of the graph of copies, and their weights."""
    weights, owners = graph.weights, _owners(graph)
    assert weights is not None
    count = owners.size
    n, others = graph.order, graph.indices.astype(np.int64)
    low = np.flatnonzero(owners < others)
    high = np.searchsorted(owners * n + others, (others * n + owners)[low])
    has_link = np.flatnonzero(owners[1:] == owners[:-1])
    link = count + 2 * np.arange(has_link.size)
    first = graph.indptr[:-1][is_odd]
    at = np.full((4, count), -1)  # an end of an edge, of the next link, of the last one, one of T
    at[0] = np.arange(count)
    at[1, has_link], at[2, has_link + 1] = link, link + 1
    at[3, first] = count + 2 * has_link.size + np.arange(first.size)
    tails, heads, costs = [low, link], [high, link + 1], [np.zeros(low.size + link.size)]
    for one, two in zip(*np.triu_indices(4, 1)):
        here = np.flatnonzero((at[one] >= 0) & (at[two] >= 0))
        tails.append(at[one, here])
        heads.append(at[two, here])
        costs.append(weights[here] if one == 0 else np.zeros(here.size))
    ends = np.stack([np.concatenate(tails), np.concatenate(heads)], axis=1)
    return ends, np.concatenate([part.astype(weights.dtype) for part in costs])


def _proven(
    source: Graph, matching: Any, *, cardinality: str, maximize: bool, optimal: bool
) -> tuple[int | None, float]:
    """What the duals of the matching behind a set prove, in units, and the allowance.

    That is its exact weight and the gap, so it is not rounded like the certificate's bound.
    """
    if matching.cardinality != cardinality or matching.maximize != maximize:
        raise CertificateError(
            f"the matching behind it must have cardinality {cardinality!r} and maximize={maximize}"
        )
    try:
        proven = verify_general_weights(source, matching, optimal=optimal)
    except CertificateError as error:
        raise CertificateError(f"the matching behind it: {error}") from error
    if math.isinf(proven.gap):
        return None, proven.allowance
    assert source.weights is not None
    owners = _owners(source)
    is_pair = (array_of(np, matching.mate)[owners] == source.indices) & (owners < source.indices)
    gap = units_of(proven.gap)
    total = sum_in_units(source.weights[is_pair])
    return total + gap if maximize else total - gap, proven.allowance
