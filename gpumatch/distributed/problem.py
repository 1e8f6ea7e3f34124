"""A problem of assignment whose rows are divided among ranks, and what all ranks know of it.

Each of n rows wants one of m >= n columns at least total cost, or may go without one at a limit. A
rank has the costs of its rows. The numbers of all vertices, mates and duals, are on every rank:
they are few beside the costs, and as they are made by the same steps from what was reduced, they
are the same everywhere. With a limit, row i may also take a column of its own, m + i, at that
price. No other row knows this column, so it needs no communication.

The initial reduction and the first assignments are those of
`gpumatch.cpu.assignment.hungarian.problem`, which says why nothing overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from gpumatch.contracts import Costs, Solution
from gpumatch.distributed.blocks import Split
from gpumatch.distributed.communicator import Communicator

__all__ = ["Problem"]

ROUNDS = 8
"""Rounds of first assignments, at most. A row whose column another rank's row got tries again."""


class Problem:
    """The costs of this rank's rows, and the state of all rows and columns.

    `rows_of` makes of the costs what this rank computes from them: `gpumatch.cpu.distributed.rows`
    and `gpumatch.cuda.assignment.dense.rows` have one each.

    Attributes
    ----------
    rows : Split
        How the rows are divided.
    own : DenseRows, SparseRows or ArrayRows
        What this rank computes from its rows' costs.
    real : int
        Columns that are not a row's own.
    row_to_col, col_to_row, row_dual, col_dual : arrays
        As in `gpumatch.contracts`, with the rows' own columns.
    far, low
        Above and below all numbers.
    """

    def __init__(
        self,
        costs: Costs,
        rows: Split,
        limit: float | None,
        world: Communicator,
        kernels: ModuleType,
        rows_of: Callable[[Any, Any, Callable[[], bool]], Any],
    ) -> None:
        self.rows, self.limit, self.world = rows, limit, world
        number = np.dtype(np.int64 if costs.is_integer else np.float64)
        self.far, self.low = kernels.far_of(number), kernels.low_of(number)
        self.own = rows_of(costs.entries(), self.far, self.beat)
        self.real = costs.shape[1]
        ncols = self.real + (0 if limit is None else rows.total)
        self.is_square = ncols == rows.total
        self.row_to_col = np.full(rows.total, -1, np.int32)
        self.col_to_row = np.full(ncols, -1, np.int32)
        self.row_dual: Any = np.zeros(rows.total, number)
        self.col_dual: Any = np.zeros(ncols, number)
        self.matched = 0

    def beat(self) -> bool:
        """Report progress; whether this rank wants to stop."""
        return self.world.wants_to_stop(self.matched)

    def count(self) -> int:
        """Count the rows that are matched to real columns, for `matched`."""
        mates = self.row_to_col
        self.matched = int(np.count_nonzero((mates >= 0) & (mates < self.real)))
        return self.matched

    def reduce(self) -> None:
        """Make the duals feasible: reduce rows, and columns if none may stay unmatched."""
        self.row_dual[:] = self.least_of_rows()
        if self.is_square:
            least = np.full(self.real, self.far)
            self.own.least_slacks(
                self.row_dual[self.rows.slice], self.col_dual[: self.real],  # IN
                least,  # OUT
            )  # fmt: skip
            least = self.world.allreduce(least, "min")
            np.add(self.col_dual, least, out=self.col_dual, where=least < self.far)

    def least_of_rows(self) -> np.ndarray:
        """The dual of each row that its columns' duals allow, on all ranks."""
        own = np.empty(self.rows.own, self.row_dual.dtype)
        self.own.least(
            self.col_dual[: self.real],  # IN
            own,  # OUT
        )  # fmt: skip
        every = np.concatenate(self.world.allgather(own))
        if self.limit is not None:  # a row's own column is in no tree, so its dual is 0
            np.minimum(every, self.limit, out=every)
        return every

    def match_tight(self) -> None:
        """Match rows to columns as far as tight pairs are free, in rounds of proposals."""
        own = self.rows.slice
        for _ in range(ROUNDS):
            mates, taken = self.row_to_col[own].copy(), self.col_to_row[: self.real].copy()
            free = mates < 0
            self.own.match_tight(
                self.row_dual[own], self.col_dual[: self.real],  # IN
                mates, taken,  # OUT
            )  # fmt: skip
            wants = np.flatnonzero(free & (mates >= 0))
            pairs = np.column_stack([wants + own.start, mates[wants]]).astype(np.int32)
            pairs = np.concatenate(self.world.allgather(pairs))
            granted = pairs[np.unique(pairs[:, 1], return_index=True)[1]]
            self.row_to_col[granted[:, 0]] = granted[:, 1]
            self.col_to_row[granted[:, 1]] = granted[:, 0]
            self.world.tick(self.count())
            if len(granted) == len(pairs) or self.world.stopped:
                break
        self.world.control.phase(found=self.matched, matched=self.matched, updates=0)

    def solution(self) -> Solution:
        """The mates and duals without the rows' own columns; row duals hold up to one rounding."""
        if self.is_square and self.col_dual.size:
            self.col_dual -= self.col_dual.max()
        row_to_col = np.where(self.row_to_col < self.real, self.row_to_col, -1).astype(np.int32)
        return Solution(
            row_to_col,
            self.col_to_row[: self.real],
            self.least_of_rows(),
            self.col_dual[: self.real],
            has_duals=True,
        )
