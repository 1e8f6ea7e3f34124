"""The result of half-approximate weighted matching: a matching, and a bound on all others."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from gpumatch.numeric.exact_sums import summands
from gpumatch.results.general import Mates

__all__ = ["BoundedMatching"]


class BoundedMatching(Mates):
    """A matching of any graph whose weight is near the best, with a bound that proves how near.

    Attributes
    ----------
    mate : int32 array of length n
        The mate of each vertex, -1 if it is unmatched. It is on the device of the input.
    size : int
        Number of edges.
    objective : int or float
        Their total weight; an int if the weights are integers.
    bound : int or float
        No matching has a greater total, or a smaller one if that was asked for. Infinite if the run
        was stopped before there were duals.
    gap : int or float
        How far the objective may be from the best: the difference of both.
    vertex_dual : float64 array of length n, or None
        What proves the bound: for each edge, the duals of its ends add up to its weight at least,
        and none is below 0; their sum is the bound. With ``maximize=False``, at most, and above 0.
    proven : bool
        True if the gap is 0, so that the matching is the best.
    cardinality, maximize
        What was asked for: ``"any"``, and whether the total is maximised.
    stats : dict
        ``algorithm``, ``backend``, ``bound``, ``phases``, ``seconds`` by part, and ``trace``.

    Examples
    --------
    >>> import gpumatch as gm
    >>> graph = [(0, 1), (1, 2), (2, 3)], [4, 5, 4]
    >>> a = gm.general.maximum_weight_matching(graph, algorithm="suitor")
    >>> a.edges().tolist(), a.objective, a.bound, a.gap
    ([[0, 1], [2, 3]], 8, 8, 0)
    """

    def __init__(
        self,
        mate: Any,
        weight: Any,
        vertex_dual: Any,
        *,
        maximize: bool,
        nodes: list[Hashable] | None,
        stats: dict[str, Any],
    ) -> None:
        super().__init__(mate, nodes)
        sign = 1 if maximize else -1
        self.cardinality, self.maximize, self.stats = "any", maximize, stats
        self.objective, self.bound, self.gap = _totals(weight, vertex_dual, sign)
        self.vertex_dual = vertex_dual if maximize or vertex_dual is None else -vertex_dual
        self.proven = self.gap == 0

    def __repr__(self) -> str:
        proof = "optimal" if self.proven else f"at most {self.gap} from the best"
        return f"BoundedMatching(size {self.size}, objective {self.objective}, {proof})"


def _totals(weight: Any, dual: Any, sign: int) -> tuple[Any, Any, Any]:
    """Objective, bound and gap of the weights of the edges, each once, and of the duals.

    The weights are those to be maximised, and `sign` is -1 if their opposites are asked for. The
    sums are exact, and rounded outward once. The optimum of integers is one.
    """
    weights = summands(weight)
    if weight.dtype.kind == "i":
        objective = sum(weights)
        if dual is None:
            return sign * objective, sign * math.inf, math.inf
        bound = max(objective, math.floor(_above(summands(dual))))
        return sign * objective, sign * bound, bound - objective
    objective = math.fsum(weights)
    if dual is None:
        return sign * objective, sign * math.inf, math.inf
    duals = summands(dual)
    gap = max(0.0, _above([*duals, *(-w for w in weights)])) if weights or any(duals) else 0.0
    return sign * objective, sign * (_above(duals) if any(duals) else 0.0), gap


def _above(terms: list[float]) -> float:
    return math.nextafter(math.fsum(terms), math.inf)
