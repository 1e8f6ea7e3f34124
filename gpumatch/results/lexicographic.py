"""The result of `gpumatch.assign` for the objective ``"lexicographic"``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpumatch.results.pairs import Labels, Pairs

__all__ = ["LevelDuals", "LexicographicAssignment"]


class LevelDuals(NamedTuple):
    """The duals of one level; `gpumatch.problems.lexicographic` states what they prove.

    Attributes
    ----------
    value : int or float
        The cost of the level's pairs.
    vertices, numbers : int arrays
        Vertices of the square problem and their duals. Column j is vertex N + j, for N rows of it.
    """

    value: float
    vertices: np.ndarray
    numbers: np.ndarray


class LexicographicAssignment(Pairs):
    """An assignment whose costs, from the largest on, are lexicographically least.

    Attributes
    ----------
    row_ind, col_ind : int64 arrays
        The assigned pairs, by row.
    row_to_col, col_to_row : int32 arrays of length nrows, ncols
        The column of each row and the row of each column; -1 means unmatched.
    size : int
        Number of pairs.
    pair_costs : int64 or float64 array of length size
        The cost of each pair, by row.
    sorted_costs : int64 or float64 array of length size
        The same from the largest to the least; with `maximize`, from the least to the largest. No
        other assignment has lexicographically better ones.
    objective : int, float or None
        The first of them; None if there are no pairs.
    proven : bool
        True if the search has ended by itself.
    maximize : bool
        The argument of the call.
    levels : list of LevelDuals
        The proof.
    stats : dict
    """

    cardinality = "full"

    def __init__(
        self,
        row_to_col: Any,
        col_to_row: Any,
        *,
        pair_costs: Any,
        proven: bool,
        maximize: bool,
        levels: list[LevelDuals],
        labels: Labels = (None, None),
        stats: dict[str, Any],
    ) -> None:
        super().__init__(row_to_col, col_to_row, labels)
        self.pair_costs, self.proven, self.maximize = pair_costs, proven, maximize
        self.levels, self.stats = levels, stats
        ordered = pair_costs.copy()
        ordered.sort()
        self.sorted_costs = ordered if maximize else ordered[::-1]
        self.objective = self.sorted_costs[0].item() if self.size else None

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        proof = "optimal" if self.proven else "not proven optimal"
        return f"LexicographicAssignment({self.size} pairs, objective {self.objective}, {proof})"
