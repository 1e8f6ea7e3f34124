"""What else could be: the pairs of all optima, and the order that shows that there are no more."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.dispatch.by_device import csr_for
from gpumatch.results.assignment import Assignment
from gpumatch.results.pairs import side_by_side

__all__ = ["Alternatives", "MatchingEdges"]


class _Entries:
    """Entries of a sparse matrix, each with a witness.

    Attributes
    ----------
    matrix : sparse matrix in CSR, of SciPy or cupyx
    is_unique : bool
    """

    _TENSORS = ("matrix", "row_ind", "col_ind", "row_to_col", "row_block", "col_block")

    def __init__(
        self, matrix: Any, *, is_unique: bool, witness: Callable[[int, int], np.ndarray]
    ) -> None:
        self.matrix, self.is_unique, self._witness = matrix, is_unique, witness

    def __len__(self) -> int:
        return int(self.matrix.indices.size)

    @functools.cached_property
    def row_ind(self) -> Any:
        """The rows of the pairs, in increasing order: an int64 array."""
        indptr, indices = self.matrix.indptr, self.matrix.indices
        return csr_for(indices).owners(indptr, indices).astype(np.int64)

    @functools.cached_property
    def col_ind(self) -> Any:
        """The columns of the pairs, in the order of `row_ind`: an int64 array."""
        return self.matrix.indices.astype(np.int64)

    def edges(self) -> Any:
        """The pairs, by row: an int64 array of shape (len, 2)."""
        return side_by_side(self.row_ind, self.col_ind)

    def witness(self, row: int, col: int) -> np.ndarray:
        """An optimum that has this pair: the column of each row, -1 for none.

        What it changes is a cycle or a path of the exchanges. One search, on the host.

        Raises
        ------
        ValueError
            If the pair is none of these.
        """
        indptr, indices = self.matrix.indptr, self.matrix.indices
        if not 0 <= row < self.matrix.shape[0]:
            raise ValueError(f"row {row} is outside [0, {self.matrix.shape[0]})")
        own = indices[int(indptr[row]) : int(indptr[row + 1])]
        if not bool((own == col).any()):
            raise ValueError(f"the pair of row {row} and column {col} is in none of these")
        return self._witness(row, col)


class Alternatives(_Entries):
    """The pairs that are in some assignment within so much of the optimum.

    Attributes
    ----------
    matrix : sparse matrix in CSR, of SciPy or cupyx
        An entry for each such pair: by how much the best assignment that has the pair is worse
        than the optimum. Entries of 0 are stored.
    is_unique : bool
        True if there is no other assignment within so much.
    assignment : Assignment
        The optimum.
    within : number
        How much worse others may be.
    tolerance : float
        Slacks of floats up to this are taken for 0; 0 for integers.
    row_block, col_block : int32 arrays, or None
        With ``within=0``, an order that shows what is left out. Of each pair that costs what its
        duals say, the block of its row is not after that of its column, and the pair is in some
        optimum if they are the same. So no exchange leads back from one block to an earlier one.
    """

    def __init__(
        self,
        matrix: Any,
        *,
        assignment: Assignment,
        within: float,
        tolerance: float,
        blocks: tuple[Any, Any],
        **common: Any,
    ) -> None:
        super().__init__(matrix, **common)
        self.assignment, self.within, self.tolerance = assignment, within, tolerance
        self.row_block, self.col_block = blocks

    def __repr__(self) -> str:
        ends = "the optimum is unique" if self.is_unique else "there are others"
        return f"Alternatives({len(self)} pairs, {ends})"


class MatchingEdges(_Entries):
    """Edges that some, or all, maximum matchings have.

    Attributes
    ----------
    matrix : sparse matrix of ones in CSR, of SciPy or cupyx
        The edges.
    is_unique : bool
        True if there is one maximum matching only.
    forced : bool
        True if all maximum matchings have these edges, False if some have.
    row_to_col : int32 array
        A maximum matching: the column of each row.
    row_block, col_block : int32 arrays
        The order of the Dulmage–Mendelsohn decomposition: no edge leads from the row of a block to
        the column of an earlier one. So an edge between two blocks is in no maximum matching, and
        the edge of a block of one row and one column is in all. Other edges within a block are in
        some, and not in all. Block 0 has the underdetermined part, the last one the overdetermined
        part; both may be empty.
    last_block : int
        The number of the last block.
    """

    def __init__(
        self,
        matrix: Any,
        *,
        forced: bool,
        blocks: tuple[Any, Any, int],
        row_to_col: Any,
        **common: Any,
    ) -> None:
        super().__init__(matrix, **common)
        self.forced, self.row_to_col = forced, row_to_col
        self.row_block, self.col_block, self.last_block = blocks

    def __repr__(self) -> str:
        ends = "one maximum matching" if self.is_unique else "several maximum matchings"
        return f"MatchingEdges({len(self)} edges, {ends})"
