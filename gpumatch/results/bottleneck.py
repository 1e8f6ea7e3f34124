"""The result of `gpumatch.assign` for the objective ``"bottleneck"``."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.results.pairs import Labels, Pairs

__all__ = ["BottleneckAssignment", "Cover"]

Cover = tuple[np.ndarray, np.ndarray]  # rows and columns


class BottleneckAssignment(Pairs):
    """An assignment whose most expensive pair is as cheap as possible, with its proof.

    Attributes
    ----------
    row_ind, col_ind : int64 arrays
        The assigned pairs, by row.
    row_to_col, col_to_row : int32 arrays of length nrows, ncols
        The column of each row and the row of each column; -1 means unmatched.
    unmatched_rows, unmatched_cols : int64 arrays, or lists of nodes for a networkx graph
        The rows and columns in no pair.
    size : int
        Number of pairs.
    pair_costs : int64 or float64 array of length size
        The cost of each pair, by row.
    objective : int, float or None
        The greatest cost of a pair, or the least with `maximize`. None if there are no pairs.
    proven : bool
        True if the search has ended by itself, so that the assignment is optimal.
    maximize, cardinality
        The arguments of the call.
    stats : dict
        ``algorithm``, ``backend``, ``objective``, ``seconds`` by part and ``trace``: one dict a
        phase of a matching.
    """

    def __init__(
        self,
        row_to_col: Any,
        col_to_row: Any,
        *,
        pair_costs: Any,
        proven: bool,
        maximize: bool,
        cardinality: str,
        threshold_cover: Cover | None,
        cover: Cover | None,
        labels: Labels = (None, None),
        stats: dict[str, Any],
    ) -> None:
        super().__init__(row_to_col, col_to_row, labels)
        self.pair_costs, self.proven = pair_costs, proven
        self.maximize, self.cardinality = maximize, cardinality
        self.objective = None
        if self.size:
            self.objective = (pair_costs.min() if maximize else pair_costs.max()).item()
        self.stats = stats
        self._threshold_cover, self._cover = threshold_cover, cover

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        proof = "optimal" if self.proven else "not proven optimal"
        return f"BottleneckAssignment({self.size} pairs, objective {self.objective}, {proof})"

    def threshold_cover(self) -> Cover:
        """A vertex cover of the pairs better than the objective, smaller than the assignment.

        So no assignment with as many pairs has only better pairs.

        Raises
        ------
        ValueError
            If the assignment is not proven optimal.
        """
        if self._threshold_cover is None:
            raise ValueError("only a proven assignment has a threshold cover")
        return self._threshold_cover

    def cover_ind(self) -> Cover:
        if self._cover is None:
            raise ValueError("only a proven assignment of cardinality 'maximum' has a vertex cover")
        return self._cover
