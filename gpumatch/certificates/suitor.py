"""Check a matching of any graph and the duals that bound its weight, by code of its own.

These are checked, for every edge of the input, where weights are those to be maximised, which are
their opposites if the smallest total was asked for:

1. the mates name each other, and each pair is an edge; the objective is what the pairs weigh,
2. no dual is below 0, and the duals of each edge's ends add up to its weight at least, as exact
   numbers,
3. the bound is the sum of the duals at least, and of integers the greatest integer up to it.

Theorem. Then no matching weighs more than the bound. Proof. Each edge of a matching has two ends of
its own, whose duals add up to its weight at least. All other duals are at least 0. So the sum of
all duals is at least the weight of the matching; and if weights are integers, so is its weight. ∎
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpumatch.certificates.base import (
    TILE,
    Certificate,
    CertificateError,
    check_claim_of_size,
    check_flag,
    check_numbers,
    python_number,
)
from gpumatch.certificates.gaps import check_objective
from gpumatch.certificates.general import check_mate
from gpumatch.certificates.slacks import LEAST, excess_of_any, parts_of, sum_in_units, units_of
from gpumatch.general.graph import Graph, weighted_of
from gpumatch.numeric.arrays import array_of, first_true

__all__ = ["BoundCertificate", "verify_bound"]


@dataclass(frozen=True)
class BoundCertificate(Certificate):
    """The proof that a matching is near the best, checked.

    ``bound`` is what no total exceeds, or falls below.

    Attributes
    ----------
    objective : int or float
        The total weight of the matching.
    """

    objective: float

    def __str__(self) -> str:
        share = abs(self.objective / self.bound) if self.bound else 1.0
        return (
            f"{self.size} edges of total weight {self.objective}, and duals which prove that no "
            f"matching is better than {self.bound} ({100 * share:.1f} %), checked on {self.edges} "
            "edges"
        )


def verify_bound(
    G: Any, result: Any, *, weight: Hashable = "weight", triangle: str = "both"
) -> BoundCertificate:
    """Check a matching and its bound; see `gpumatch.verify`. On the host."""
    maximize = check_flag("maximize", result.maximize)
    graph = weighted_of(G, weight, triangle, maximize=maximize)
    assert graph.weights is not None
    weights = graph.weights if maximize else -graph.weights
    mate = check_mate(graph, array_of(np, result.mate))
    total, magnitudes = _total(graph, weights, mate)
    size = int(np.count_nonzero(mate >= 0)) // 2
    check_claim_of_size(result, size)
    sign = 1 if maximize else -1
    is_whole = weights.dtype.kind == "i"
    objective = python_number("the objective", result.objective)
    check_objective(sign * objective, total, is_whole, lambda: magnitudes)
    if result.vertex_dual is None:
        raise CertificateError("the run was stopped before there were duals: nothing is proven")
    dual = check_numbers("duals", array_of(np, result.vertex_dual), graph.order)
    dual = sign * dual.astype(np.float64)
    _check_cover(graph, weights, dual)
    bound = python_number("the bound", result.bound)
    _check_bound(sign * bound, sum_in_units(dual), is_whole)
    if is_whole and result.gap != sign * (bound - objective):
        raise CertificateError(
            f"the gap is {result.gap}, but {bound} and {objective} leave another"
        )
    if not is_whole and units_of(float(result.gap)) < sum_in_units(dual) - total:
        raise CertificateError(f"the gap is {result.gap}, but the duals leave more")
    return BoundCertificate("bounded matching", size, bound, graph.size, objective)


def _rows(graph: Graph, begin: int, end: int) -> np.ndarray:
    """The row of each entry in a range."""
    return np.searchsorted(graph.indptr, np.arange(begin, end), side="right") - 1


def _tiles(graph: Graph) -> Any:
    for begin in range(0, graph.indices.size, TILE):
        end = min(begin + TILE, graph.indices.size)
        yield _rows(graph, begin, end), slice(begin, end)


def _total(graph: Graph, weights: np.ndarray, mate: np.ndarray) -> tuple[int, int]:
    """What the pairs weigh, and the sum of magnitudes, in units."""
    total, magnitudes = 0, 0
    for rows, entries in _tiles(graph):
        cols = graph.indices[entries]
        once = weights[entries][(mate[rows] == cols) & (rows < cols)]
        total += sum_in_units(once)
        magnitudes += sum_in_units(abs(once))
    return total, magnitudes


def _check_cover(graph: Graph, weights: np.ndarray, dual: np.ndarray) -> None:
    """Check point 2."""
    stray = first_true(dual < 0)
    if stray is not None:
        raise CertificateError(f"the dual of vertex {stray} has the wrong sign: {dual[stray]}")
    for rows, entries in _tiles(graph):
        cols = graph.indices[entries]
        lacking = first_true(
            excess_of_any([*parts_of(weights[entries]), -dual[rows], -dual[cols]]) > 0
        )
        if lacking is not None:
            u, v = int(rows[lacking]), int(cols[lacking])
            raise CertificateError(
                f"the duals {dual[u]} and {dual[v]} of vertices {u} and {v} do not cover their "
                f"edge of weight {weights[entries][lacking]}"
            )


def _check_bound(bound: float, total: int, is_whole: bool) -> None:
    """Check point 3, with the sum of the duals in units."""
    if is_whole:
        total = total >> LEAST << LEAST
    if not (bound == math.inf or units_of(bound) >= total):
        raise CertificateError(f"the bound is {bound}, but the duals add up to more")
