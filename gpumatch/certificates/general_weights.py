"""Check a weighted matching of any graph, and the duals that prove it optimal.

Weights are to be maximised here, and s is 1, or 2 for duals of twice the weights.

Theorem. Let u be any numbers of the vertices, and z >= 0 of some sets of vertices. For each edge ij
let e_ij >= s w_ij - u_i - u_j - Z_ij, at least 0, where Z_ij is the sum of z over the sets with i
and j. Let r_i be the largest e_ij of the edges that are charged to vertex i; each is charged to one
of its ends. Then for every matching M

    s w(M)  <=  sum of u_i + r_i over the vertices of M  +  sum of z_B times |B| / 2, rounded down

Proof. Add up s w_ij <= u_i + r_i + u_j + r_j + Z_ij over the edges of M. A set B holds at most
|B| / 2 of these edges. ∎

So with U = sum of u and R = sum of r, the bounds B of s w(M) are

    "any"       sum of the u_i above 0, + R + the sets
    "perfect"   U + R + the sets
    "maximum"   U + R + the sets - L (n - 2 k), for matchings of k edges, with L the least u

For ``"maximum"``, a matching of more than k edges would contain one of k + 1. The theorem holds for
any weights, so also for u_i + u_j + Z_ij in place of s w_ij: in that matching, these add up to at
most B + 2 L. If that is less than k + 1 times the least of them, or if fewer than two vertices are
unmatched, k is the largest number of edges.

Nothing is asked of the duals but that the sets are laminar, which makes Z_ij a sum along a path to
the root of a forest, for the innermost set with i and j. Binary lifting finds it in O(log) steps,
by whole arrays. That duals are feasible shows in R = 0, and complementary slackness in the equality
of the bound and the total weight.

Accepted as optimal: with integers R = 0, and the bound, rounded down to an integer, is the total.
With floats the gap, and R alone, are at most the allowance of `gpumatch.certificates.gaps`.
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
    check_cardinality,
    check_claim_of_size,
    check_flag,
    check_numbers,
    python_number,
)
from gpumatch.certificates.gaps import Proof, allowance_of, check_objective
from gpumatch.certificates.general import checked_mates
from gpumatch.certificates.slacks import (
    at_most,
    excess_of_any,
    most,
    nearest,
    parts_of,
    sum_in_units,
    units_of,
)
from gpumatch.general.graph import Graph, weighted_of
from gpumatch.numeric.arrays import array_of, first_true

__all__ = ["GeneralWeightCertificate", "verify_general_weights"]

NEAR = 2.0**-48
"""An edge is looked at exactly if its rounded slack is not above this share of its numbers."""


@dataclass(frozen=True)
class GeneralWeightCertificate(Certificate):
    """The proof of a weighted matching, checked.

    Attributes
    ----------
    problem : str
        ``"general weights"``.
    size : int
        Edges of the matching.
    bound : int or float
        What the duals prove: no matching that competes has a better total. Rounded outward.
    edges : int
        Edges that were checked.
    objective : int or float
        The total weight.
    gap : int or float
        How far that is from the bound at most, rounded up.
    allowance : int or float
        The gap up to which floats are accepted as optimal; 0 for integers.
    sets : int
        Odd sets that were checked.
    """

    objective: float
    gap: float
    allowance: float
    sets: int

    def __str__(self) -> str:
        is_optimal = self.gap <= self.allowance
        return (
            f"{'optimal' if is_optimal else 'not proven optimal'}: {self.size} edges of total "
            f"{self.objective}, and duals of vertices and {self.sets} odd sets of total "
            f"{self.bound}, checked on {self.edges} edges; the gap is at most {self.gap:.3g}, with "
            f"an allowance of {self.allowance:.3g}"
        )


def verify_general_weights(
    G: Any,
    result: Any,
    *,
    weight: Hashable = "weight",
    triangle: str = "both",
    optimal: bool = True,
) -> GeneralWeightCertificate:
    """Check a weighted matching and what proves it; see `gpumatch.verify`."""
    maximize = check_flag("maximize", result.maximize)
    cardinality = check_cardinality(result.cardinality, ("any", "maximum", "perfect"))
    graph = weighted_of(G, weight, triangle, maximize=maximize)
    assert graph.weights is not None
    n, sign = graph.order, 1 if maximize else -1
    mate = checked_mates(array_of(np, result.mate), n)
    dual = sign * check_numbers("duals of vertices", array_of(np, result.vertex_dual), n)
    family = _Family.of(result, n, sign)
    is_whole = graph.weights.dtype.kind != "f"
    scale = result.dual_scale
    if not (isinstance(scale, int) and scale in (1, 2)):
        raise CertificateError(f"dual_scale must be 1 or 2; got {scale!r}")

    tails, heads, weights = _edges(graph, sign)
    is_pair = mate[tails] == heads
    size, paid = int(np.count_nonzero(is_pair)), weights[is_pair]
    _check_pairs(mate, tails[is_pair], size)
    check_claim_of_size(result, size)
    total = sum_in_units(paid)
    objective = python_number("the objective", result.objective)
    check_objective(objective, sign * total, is_whole, lambda: sum_in_units(abs(paid)))

    covers = _Covers.of(tails, heads, dual, family)
    repair, worst = _repair(covers, weights, scale)
    bound = _bound(cardinality, mate, size, dual, repair, covers)
    least = None if bound is None else -bound // scale
    proof = Proof.of(-total, least, -sign, is_whole)
    largest, largest_dual = float(most(paid)), float(most(dual[mate >= 0]))
    allowance = 0 if is_whole else allowance_of(size, largest, largest_dual)
    if optimal:
        _check_optimal(cardinality, n, size, proof, allowance, repair, worst, is_whole)
    proof.check_gap(
        result.gap, allowance, optimal, lambda: _summed(paid, dual, family, int(n - 2 * size))
    )
    return GeneralWeightCertificate(
        "general weights", size, proof.bound, tails.size, objective, proof.gap, allowance,
        family.number,
    )  # fmt: skip


# -- the edges -------------------------------------------------------------------------------------


def _edges(graph: Graph, sign: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The smaller and the larger end of each edge, and its weight to be maximised."""
    assert graph.weights is not None
    owners = np.repeat(np.arange(graph.order), np.diff(graph.indptr))
    places = np.flatnonzero(owners < graph.indices)
    weights = graph.weights[places]
    stray = first_true(weights == -(2**63)) if weights.dtype.kind != "f" else None
    if stray is not None:
        raise CertificateError("a weight is -2**63")
    return owners[places], graph.indices[places].astype(np.int64), sign * weights


def _check_pairs(mate: np.ndarray, ends: np.ndarray, size: int) -> None:
    """Check that all pairs are edges: `size` of them have their smaller ends in `ends`."""
    if 2 * size == np.count_nonzero(mate >= 0):
        return
    has_edge = mate < np.arange(mate.size)  # unmatched, or the larger end
    has_edge[ends] = True
    vertex = int(np.flatnonzero(~has_edge)[0]) if not has_edge.all() else int(mate.argmax())
    raise CertificateError(
        f"vertex {vertex} is matched to {int(mate[vertex])}, but no edge joins them"
    )


# -- the sets --------------------------------------------------------------------------------------


class _Family(NamedTuple):
    """A laminar family of sets, in preorder: each is followed by the sets within it.

    Attributes
    ----------
    innermost : int64 array of length n
        The innermost set of each vertex; `number` if it is in none.
    parent, depth : int64 arrays of length number + 1
        The set around each set, and how many there are; `number` stands for all vertices.
    above : list of two float64 arrays
        Numbers that add up to no more than the sum of the duals of a set and all around it.
    halves : int
        The sum of each dual times half the vertices, rounded down, in units.
    """

    innermost: np.ndarray
    parent: np.ndarray
    depth: np.ndarray
    above: list[np.ndarray]
    halves: int

    @property
    def number(self) -> int:
        return int(self.parent.size) - 1

    @classmethod
    def of(cls, result: Any, n: int, sign: int) -> _Family:
        """The family of a result, checked."""
        vertices, begin, end = (
            _checked_integers(name, array_of(np, getattr(result, name)))
            for name in ("set_vertices", "set_begin", "set_end")
        )
        count, length = begin.size, vertices.size
        dual = sign * check_numbers("duals of sets", array_of(np, result.set_dual), count)
        if end.size != count:
            raise CertificateError(f"set_begin has {count} numbers, set_end {end.size}")
        is_there = np.zeros(n, bool)
        if length and not (vertices.min() >= 0 and vertices.max() < n):
            raise CertificateError(f"set_vertices names a vertex outside [0, {n})")
        is_there[vertices] = True
        if np.count_nonzero(is_there) != length:
            raise CertificateError("set_vertices names a vertex twice")
        is_wrong = (begin < 0) | (end > length) | (begin >= end) | ((end - begin) % 2 == 0)
        for stray, what in (
            (first_true(is_wrong), "is no odd number of the vertices that set_vertices names"),
            (first_true(dual < 0), "has a dual of the wrong sign"),
        ):
            if stray is not None:
                raise CertificateError(f"odd set {stray} {what}")
        order = np.lexsort((-end, begin))
        parent, depth, marks = _nested(begin[order].tolist(), end[order].tolist())
        innermost = np.full(n, count)
        places, holders = np.array([(0, count), *marks, (length, count)]).T
        innermost[vertices] = np.repeat(holders[:-1], np.diff(places))
        units = [units_of(number) for number in dual[order].tolist()]
        halves = sum(z * half for z, half in zip(units, ((end - begin) // 2)[order].tolist()))
        return cls(innermost, parent, depth, _sums_above(units, parent.tolist()), halves)

    def shared(self, tails: np.ndarray, heads: np.ndarray) -> np.ndarray:
        """The innermost set with both ends, of each edge."""
        ups = [self.parent]
        while 2 ** len(ups) <= self.depth.max():
            ups.append(ups[-1][ups[-1]])
        one, other = self.innermost[tails], self.innermost[heads]
        for step in range(len(ups) - 1, -1, -1):
            ahead = self.depth[one] - self.depth[other]
            one = np.where(ahead >= 2**step, ups[step][one], one)
            other = np.where(-ahead >= 2**step, ups[step][other], other)
        for up in reversed(ups):
            goes = up[one] != up[other]
            one, other = np.where(goes, up[one], one), np.where(goes, up[other], other)
        return np.where(one == other, one, self.parent[one])


def _checked_integers(name: str, values: Any) -> np.ndarray:
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise CertificateError(
            f"{name} must be a list of integers; got {values.dtype} of shape {values.shape}"
        )
    numbers: np.ndarray = values.astype(np.int64)
    return numbers


def _nested(
    begin: list[int], end: list[int]
) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """The parent and the depth of each set, and from which place on which set is the innermost.

    Raises
    ------
    CertificateError
        If two sets overlap.
    """
    count = len(begin)
    parent, depth = [count] * (count + 1), [0] * (count + 1)
    open_sets, marks = [count], []
    for k in range(count):
        while open_sets[-1] < count and end[open_sets[-1]] <= begin[k]:
            closed = open_sets.pop()
            marks.append((end[closed], open_sets[-1]))
        around = open_sets[-1]
        if around < count and end[k] > end[around]:
            raise CertificateError("two odd sets overlap, and neither contains the other")
        parent[k], depth[k] = around, depth[around] + 1
        open_sets.append(k)
        marks.append((begin[k], k))
    for closed, around in zip(open_sets[:0:-1], open_sets[-2::-1]):
        marks.append((end[closed], around))
    return np.array(parent), np.array(depth), marks


def _sums_above(units: list[int], parent: list[int]) -> list[np.ndarray]:
    """Two floats for each set that add up to no more than the duals of it and the sets around."""
    count = len(units)
    sums = [0] * (count + 1)
    for k in range(count):
        sums[k] = sums[parent[k]] + units[k]
    high = [at_most(number) for number in sums]
    low = [at_most(number - units_of(part)) for number, part in zip(sums, high)]
    return [np.array(high), np.array(low)]


# -- the bound -------------------------------------------------------------------------------------


class _Covers(NamedTuple):
    """The edges, and what covers their weights: two duals and those of the sets with both ends.

    Attributes
    ----------
    tails, heads : int64 arrays
    around : int64 array
        The innermost set with both ends.
    dual : int64 or float64 array of length n
    family : _Family
    total, size : float64 arrays
        The sum of what covers an edge, rounded, and the sum of its magnitudes.
    """

    tails: np.ndarray
    heads: np.ndarray
    around: np.ndarray
    dual: np.ndarray
    family: _Family
    total: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, tails: np.ndarray, heads: np.ndarray, dual: np.ndarray, family: _Family) -> _Covers:
        around = family.shared(tails, heads)
        numbers, sets = dual.astype(np.float64), family.above[0][around]
        with np.errstate(over="ignore"):
            total = numbers[tails] + numbers[heads] + sets
            size = abs(numbers[tails]) + abs(numbers[heads]) + sets
        return cls(tails, heads, around, dual, family, total, size)

    def least(self) -> float:
        """A number that is no more than what covers any edge; NaN if sums are beyond float64."""
        with np.errstate(invalid="ignore"):
            return float((self.total - NEAR * self.size).min(initial=math.inf))


def _repair(
    covers: _Covers, weights: np.ndarray, scale: int
) -> tuple[np.ndarray, tuple[int, int] | None]:
    """What must be added to each dual, and the edge that is violated most; None if none is."""
    paid = scale * weights.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        is_far = covers.total - paid > NEAR * (covers.size + abs(paid))
    near = np.flatnonzero(~is_far)
    tails, heads, around = covers.tails[near], covers.heads[near], covers.around[near]
    terms = [scale * part for part in parts_of(weights[near])]
    for part in parts_of(covers.dual):
        terms += [-part[tails], -part[heads]]
    terms += [-part[around] for part in covers.family.above]
    missing = excess_of_any(terms)
    repair = np.zeros(covers.dual.size)
    np.maximum.at(repair, tails, np.maximum(missing, 0.0))
    if not missing.size or not missing.max() > 0:
        return repair, None
    at = int(missing.argmax())
    if missing[at] == math.inf:
        raise _uncovered(int(tails[at]), int(heads[at]))
    return repair, (int(tails[at]), int(heads[at]))


def _uncovered(one: int, other: int) -> CertificateError:
    return CertificateError(
        f"the duals of edge ({one}, {other}) and of the sets around it are less than its weight"
    )


def _bound(
    cardinality: str,
    mate: np.ndarray,
    size: int,
    dual: np.ndarray,
    repair: np.ndarray,
    covers: _Covers,
) -> int | None:
    """The bound of `scale` times the weight of what competes, in units; None if there is none."""
    counted = np.maximum(dual, 0) if cardinality == "any" else dual
    bound = sum_in_units(counted) + sum_in_units(repair) + covers.family.halves
    missing = mate.size - 2 * size
    if cardinality != "maximum" or not missing:
        return bound
    level = units_of(dual.min().item())
    bound -= missing * level
    least = covers.least()
    if missing < 2 or least == math.inf:
        return bound
    if math.isfinite(least) and bound + 2 * level < (size + 1) * units_of(least):
        return bound
    return None


def _check_optimal(
    cardinality: str,
    n: int,
    size: int,
    proof: Proof,
    allowance: float,
    repair: np.ndarray,
    worst: tuple[int, int] | None,
    is_whole: bool,
) -> None:
    """Check that the matching is optimal, as far as is allowed."""
    if cardinality == "perfect" and 2 * size < n:
        raise CertificateError(
            f"the matching is not perfect: {n - 2 * size} vertices are unmatched"
        )
    lacking = nearest(sum_in_units(repair))
    if worst is not None and lacking > allowance:
        raise _uncovered(*worst)
    if proof.gap == math.inf:
        raise CertificateError(f"the duals do not prove that there are no more than {size} edges")
    if not proof.gap <= allowance or (is_whole and proof.gap < 0):
        raise CertificateError(
            f"the duals prove {proof.bound}, which is {proof.gap} from the objective: no proof"
        )


def _summed(paid: np.ndarray, dual: np.ndarray, family: _Family, missing: int) -> int:
    """The magnitudes of all that is added for the gap, in units."""
    least = abs(units_of(dual.min().item())) if dual.size else 0
    return (
        2 * sum_in_units(abs(paid))
        + sum_in_units(abs(dual))
        + abs(family.halves)
        + abs(missing) * least
    )
