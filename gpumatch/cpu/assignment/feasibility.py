"""Whether all rows can be assigned at all, whatever it costs: by a maximum matching."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.cpu.matching import engine as matching_engine
from gpumatch.cpu.matching import karp_sipser

__all__ = ["complete"]


def complete(
    costs: Any,
    row_to_col: np.ndarray,
    col_to_row: np.ndarray,
    control: Any,
    *,
    threads: int,
    seed: int,
) -> bool:
    """Extend a matching to a maximum one of the allowed pairs, in place; False when stopped."""
    if costs.is_complete and costs.shape[0] <= costs.shape[1]:
        free_rows, free_cols = np.flatnonzero(row_to_col < 0), np.flatnonzero(col_to_row < 0)
        row_to_col[free_rows] = free_cols[: free_rows.size]
        col_to_row[free_cols[: free_rows.size]] = free_rows
        return True
    pattern = costs.pattern()
    return all(
        step(pattern, row_to_col, col_to_row, control, threads=threads, seed=seed)
        for step in (karp_sipser.run, matching_engine.run)
    )
