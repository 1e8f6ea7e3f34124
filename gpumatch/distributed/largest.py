"""Cheapest among the largest assignments, of costs that are divided among ranks.

As `gpumatch.problems.cardinality` states for ``"maximum"``: a maximum matching of the allowed pairs
gives a vertex cover. The cover's rows with the columns outside it, and the rows outside with the
cover's columns, are two full problems, which the ranks solve one after the other. The matching is
that of `gpumatch.distributed.forests`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import Costs, Solution
from gpumatch.distributed.blocks import Split, split_of
from gpumatch.distributed.communicator import Communicator
from gpumatch.distributed.forests import Forests
from gpumatch.problems.request import Goal

__all__ = ["solve_largest"]

Engine = Callable[..., Any]
"""Makes a search of costs, splits of rows and columns, a goal and the communicator."""


class _Part(NamedTuple):
    """A full problem: some own rows of the costs, and columns that all ranks know."""

    rows: np.ndarray  # of this rank, counted from its first
    every: np.ndarray  # of all ranks, in global numbers
    cols: np.ndarray
    covers_cols: bool  # whether the columns must be matched, not the rows

    @classmethod
    def of(
        cls, own: np.ndarray, cols: np.ndarray, covers_cols: bool, rows: Split, world: Communicator
    ) -> _Part:
        local = np.flatnonzero(own)
        every = np.concatenate(world.allgather(local + rows.first))
        return cls(local, every, np.flatnonzero(cols), covers_cols)


def solve_largest(
    costs: Costs, rows: Split, cols: Split, engine: Engine, kernels: Any, world: Communicator
) -> tuple[Solution, bool]:
    """All mates and duals with the cover, on all ranks, and whether nothing has stopped it.

    `costs` are those of this rank's rows, to be minimised; `kernels` those of the forests.
    """
    whole = Solution.empty((rows.total, cols.total), is_integer=costs.is_integer)
    if world.total(int(costs.is_complete), "min"):
        is_wide = rows.total <= cols.total
        in_rows, in_cols = np.full(rows.own, is_wide), np.full(cols.total, not is_wide)
    else:
        forests = Forests(costs.pattern(), rows, cols, world, kernels)
        with world.step("matching"):
            forests.start()
            has_ended = forests.search()
        if not has_ended:
            _take_matching(whole, forests, world)
            return whole, False
        in_rows, own_cols = forests.cover()
        in_cols = np.concatenate(world.allgather(own_cols))
    parts = [
        _Part.of(in_rows, ~in_cols, False, rows, world),
        _Part.of(~in_rows, in_cols, True, rows, world),
    ]
    whole.has_duals = True  # until a part has none
    has_ended = all(_solve_part(whole, costs, part, engine, world) for part in parts)
    if has_ended:
        whole.cover = parts[0].every, np.flatnonzero(in_cols)
    return whole, has_ended


def _solve_part(
    whole: Solution, costs: Costs, part: _Part, engine: Engine, world: Communicator
) -> bool:
    """Write a part's solution into the whole; False when stopped."""
    if not part.every.size or not part.cols.size:
        return True
    split, cols = split_of(part.rows.size, world), Split.even(part.cols.size, world)
    goal = Goal(False, "full", None, part.covers_cols)
    if costs.shape != (part.rows.size, part.cols.size):
        costs = costs.restricted(part.rows, part.cols)
    search = engine(costs, split, cols, goal, world)
    has_ended = bool(search.solve())
    solution = search.solution()
    seen = solution.transpose() if part.covers_cols else solution
    matched = np.flatnonzero(seen.row_to_col >= 0)
    mates = part.cols[seen.row_to_col[matched]]
    whole.row_to_col[part.every[matched]] = mates
    whole.col_to_row[mates] = part.every[matched]
    whole.row_dual[part.every], whole.col_dual[part.cols] = seen.row_dual, seen.col_dual
    whole.has_duals &= seen.has_duals
    return has_ended


def _take_matching(whole: Solution, forests: Forests, world: Communicator) -> None:
    """The pairs of a matching that was stopped."""
    row_to_col, col_to_row = forests.mates()
    whole.row_to_col[:] = np.concatenate(world.allgather(row_to_col))
    whole.col_to_row[:] = np.concatenate(world.allgather(col_to_row))
