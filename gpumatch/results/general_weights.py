"""The result of `gpumatch.general.maximum_weight_matching`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from gpumatch.contracts.general_weights import OddSets
from gpumatch.results.general import Mates

__all__ = ["GeneralWeightMatching"]


class GeneralWeightMatching(Mates):
    """A matching of a graph with weights, and the duals that prove it optimal.

    Attributes
    ----------
    mate : int32 array of length n
        The mate of each vertex, -1 if it is unmatched.
    size : int
        Number of edges.
    objective : int or float
        The total weight: a Python int for integers.
    gap : int or float
        No matching that competes is better by more. It is infinity if the run was stopped before
        there were as many edges as asked for.
    proven : bool
        True if the matching is optimal, as for an `Assignment`.
    vertex_dual : int64 or float64 array of length n
        The dual u of each vertex.
    set_vertices : int32 array
        The vertices that are in odd sets, in an order in which each set is one piece.
    set_begin, set_end : int64 arrays
        Odd set k is ``set_vertices[set_begin[k]:set_end[k]]``. Two sets are disjoint, or one
        contains the other.
    set_dual : int64 or float64 array
        The dual z of each odd set.
    dual_scale : int
        2 for integers, whose duals are those of twice the weights, as halves arise; 1 for floats.
    cardinality, maximize
        The arguments of the call.
    stats : dict
        ``algorithm``, ``backend``, ``seconds`` by part, ``trace``, and what the algorithm counts.

    Notes
    -----
    The proof, for weights w to be maximised and with s the `dual_scale`: for every edge, u_i + u_j
    and the z of the sets that contain both i and j add up to at least s w_ij. All z are at least 0.
    With ``"any"``, all u are at least 0. Then no matching weighs more than the sum of all u, and of
    z times half of the vertices, rounded down, of each odd set, divided by s. With ``"maximum"``,
    all unmatched vertices have the least u in common, which is left out of the sum. It is so low
    that more edges cannot weigh enough. All signs are turned for weights to be minimised.
    """

    def __init__(
        self,
        mate: np.ndarray,
        vertex_dual: np.ndarray,
        odd_sets: OddSets,
        *,
        objective: float,
        gap: float,
        proven: bool,
        cardinality: str,
        maximize: bool,
        nodes: list[Hashable] | None,
        stats: dict[str, Any],
    ) -> None:
        super().__init__(mate, nodes)
        self.vertex_dual = vertex_dual
        self.set_vertices, self.set_begin, self.set_end, self.set_dual = odd_sets
        self.objective, self.gap, self.proven = objective, gap, proven
        self.cardinality, self.maximize = cardinality, maximize
        self.stats = stats

    def __repr__(self) -> str:
        proof = "optimal" if self.proven else "not proven optimal"
        return (
            f"GeneralWeightMatching(size {self.size}, objective {self.objective}, {proof}, "
            f"{self.stats.get('algorithm')})"
        )

    @property
    def dual_scale(self) -> int:
        return 1 if self.vertex_dual.dtype.kind == "f" else 2

    def odd_sets(self) -> list[Any]:
        """The odd sets with a dual, each with its vertices.

        Returns
        -------
        list of int64 arrays, or of lists of nodes for a networkx graph
            In the order of `set_dual`.

        Examples
        --------
        >>> import gpumatch as gm
        >>> m = gm.general.maximum_weight_matching(([(0, 1), (1, 2), (0, 2)], [8, 8, 9]))
        >>> [vertices.tolist() for vertices in m.odd_sets()], m.set_dual.tolist()
        ([[1, 2, 0]], [14])
        """
        pieces = zip(self.set_begin.tolist(), self.set_end.tolist())
        numbers = [self.set_vertices[begin:end].astype(np.int64) for begin, end in pieces]
        if self._nodes is None:
            return numbers
        return [[self._nodes[v] for v in vertices.tolist()] for vertices in numbers]
