"""Whether all rows can be assigned at all, whatever it costs: by a maximum matching."""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import AssignmentTask, MatchingTask
from gpumatch.cpu.matching import cheap
from gpumatch.cpu.matching import engine as matching_engine

__all__ = ["complete", "complete_matching"]


def complete(task: AssignmentTask, row_to_col: np.ndarray, col_to_row: np.ndarray) -> bool:
    """Extend a matching to a maximum one of the allowed pairs, in place; False when stopped."""
    costs = task.costs
    if costs.is_complete and costs.shape[0] <= costs.shape[1]:
        free_rows, free_cols = np.flatnonzero(row_to_col < 0), np.flatnonzero(col_to_row < 0)
        row_to_col[free_rows] = free_cols[: free_rows.size]
        col_to_row[free_cols[: free_rows.size]] = free_rows
        return True
    return complete_matching(task.matching(costs.pattern(), row_to_col, col_to_row))


def complete_matching(matching: MatchingTask) -> bool:
    """The same of a matching of the allowed pairs that is a task already."""
    return cheap.run(matching) and matching_engine.run(matching)
