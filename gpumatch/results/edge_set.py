"""The result of `gpumatch.general.edge_cover` and `gpumatch.general.t_join`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.results.general_weights import GeneralWeightMatching
from gpumatch.results.pairs import side_by_side

__all__ = ["EdgeSet"]


class EdgeSet:
    """Edges of a graph, of least total weight among those that do what was asked for.

    Attributes
    ----------
    edge_ind : pair of int64 arrays
        The smaller and the larger ends of the edges, in their order.
    size : int
        Number of edges.
    objective : int or float
        The total weight: a Python int for integers.
    gap : int or float
        No such set weighs less by more.
    proven : bool
        True if the weight is the least.
    matching : GeneralWeightMatching
        The matching that proves it, with its duals.
    odd_vertices : int64 array, optional
        The vertices of T that a T-join was asked for, sorted; None of an edge cover.
    stats : dict
        Those of the matching.
    """

    def __init__(
        self,
        ends: np.ndarray,
        others: np.ndarray,
        objective: float,
        gap: float,
        matching: GeneralWeightMatching,
        nodes: list[Any] | None,
        odd_vertices: np.ndarray | None = None,
    ) -> None:
        self.edge_ind = ends.astype(np.int64), others.astype(np.int64)
        self.objective, self.gap, self.matching = objective, gap, matching
        self.odd_vertices, self._nodes = odd_vertices, nodes

    @property
    def size(self) -> int:
        return int(self.edge_ind[0].size)

    @property
    def proven(self) -> bool:
        return self.matching.proven

    @property
    def stats(self) -> dict[str, Any]:
        return self.matching.stats

    def __repr__(self) -> str:
        proof = "optimal" if self.proven else "not proven optimal"
        return f"EdgeSet({self.size} edges, objective {self.objective}, {proof})"

    def edges(self) -> Any:
        """The edges, by their smaller ends.

        Returns
        -------
        int64 array of shape (size, 2), or list of pairs of nodes for a networkx graph
        """
        ends, others = self.edge_ind
        if self._nodes is None:
            return side_by_side(ends, others)
        return [(self._nodes[u], self._nodes[v]) for u, v in zip(ends.tolist(), others.tolist())]
