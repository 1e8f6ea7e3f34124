"""What each rank gets: its share of a result, in global numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["DistributedAssignment", "DistributedMatching"]


class _Share:
    """This rank's share of the pairs of rows and columns.

    Attributes
    ----------
    shape : (int, int)
        Rows and columns, those of all ranks.
    rows, cols : range
        The rows that `row_to_col` describes, and the columns that `col_to_row` describes.
    row_to_col : int32 array
        The column of each row of `rows`, -1 for none.
    col_to_row : int32 array
        The row of each column of `cols`, -1 for none.
    size : int
        Pairs, those of all ranks.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        rows: range,
        cols: range,
        row_to_col: np.ndarray,
        col_to_row: np.ndarray,
        size: int,
    ) -> None:
        self.shape, self.rows, self.cols = shape, rows, cols
        self.row_to_col, self.col_to_row = row_to_col, col_to_row
        self.size = size

    @property
    def row_ind(self) -> np.ndarray:
        """The rows of this rank's pairs, in global numbers: an int64 array."""
        return np.flatnonzero(self.row_to_col >= 0) + self.rows.start

    @property
    def col_ind(self) -> np.ndarray:
        """Their columns, in the same order: an int64 array."""
        return self.row_to_col[self.row_to_col >= 0].astype(np.int64)


class DistributedMatching(_Share):
    """A matching of a graph that is divided among ranks; each rank has its share.

    Attributes
    ----------
    shape, rows, cols, row_to_col, col_to_row, size
        The graph's shape; this rank's rows and its even share of the columns, as ranges; their
        mates in global numbers, -1 for none; the edges of the whole matching.
    row_ind, col_ind : int64 arrays
        This rank's pairs, in global numbers.
    proven : bool
        Whether the matching is maximum.
    cover : pair of bool arrays, optional
        Which of `rows` and of `cols` are in the vertex cover that proves it; None if not proven.
    stats : dict
        ``algorithm``, ``backend``, ``ranks``, ``start_size``, ``phases``, ``levels``, ``seconds``
        by step, ``trace``, and ``communication``: ``waiting`` and ``moving`` seconds, ``bytes``
        given by this rank, ``calls``, and ``seconds`` by step.
    """

    def __init__(
        self,
        *share: Any,
        proven: bool,
        cover: tuple[np.ndarray, np.ndarray] | None,
        stats: dict[str, Any],
    ) -> None:
        super().__init__(*share)
        self.proven, self.cover, self.stats = proven, cover, stats

    def __repr__(self) -> str:
        proof = "maximum" if self.proven else "not proven maximum"
        rows = f"rows {self.rows.start} to {self.rows.stop}"
        return f"DistributedMatching(size {self.size}, {proof}, {rows})"


class DistributedAssignment(_Share):
    """An assignment for costs that are divided among ranks; each rank has its share.

    Attributes
    ----------
    shape, rows, cols, row_to_col, col_to_row, size
        As of a `DistributedMatching`; but `cols` are all columns, on every rank.
    row_ind, col_ind : int64 arrays
        This rank's pairs, in global numbers.
    row_dual : array
        The prices of `rows`.
    col_dual : array
        The prices of all columns.
    pair_costs : array
        What this rank's pairs cost, by row.
    objective : int or float
        Total cost of all pairs; a Python int for integer costs.
    gap : int or float
        How far that may be from the optimum; inf if nothing is known.
    proven : bool
        Whether the assignment is optimal.
    maximize, cardinality, cost_limit
        What was asked for.
    cover : pair of bool arrays, optional
        For cardinality ``"maximum"``, which of `rows` and of `cols` are in the vertex cover that
        proves that there are no more pairs; None if not proven.
    stats : dict
        As of a `DistributedMatching`.
    """

    def __init__(
        self,
        *share: Any,
        row_dual: np.ndarray,
        col_dual: np.ndarray,
        pair_costs: np.ndarray,
        objective: float,
        gap: float,
        proven: bool,
        maximize: bool,
        cardinality: str,
        cost_limit: float | None,
        cover: tuple[np.ndarray, np.ndarray] | None,
        stats: dict[str, Any],
    ) -> None:
        super().__init__(*share)
        self.cover = cover
        self.row_dual, self.col_dual, self.pair_costs = row_dual, col_dual, pair_costs
        self.objective, self.gap, self.proven = objective, gap, proven
        self.maximize, self.cardinality, self.cost_limit = maximize, cardinality, cost_limit
        self.stats = stats

    def __repr__(self) -> str:
        proof = "optimal" if self.proven else "not proven optimal"
        rows = f"rows {self.rows.start} to {self.rows.stop}"
        return (
            f"DistributedAssignment({self.size} pairs, objective {self.objective}, {proof}, {rows})"
        )
