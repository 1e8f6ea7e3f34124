"""The duals of rows that go with given prices of float costs, rounded down: dense or in CSR."""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import Entries
from gpumatch.cpu.searches import dense as dense_search
from gpumatch.cpu.searches import sparse as sparse_search
from gpumatch.cpu.searches.dense import LANES

__all__ = ["write_fair_duals"]


def write_fair_duals(
    entries: Entries, price: np.ndarray, row_dual: np.ndarray, limit: float | None
) -> None:
    """Write the largest duals of the rows that no pair undercuts, and that are within the limit."""
    if isinstance(entries, tuple):
        row_dual.fill(np.inf)
        sparse_search.fair_row_duals(
            *entries, price, np.inf,  # IN
            row_dual,  # OUT
            0, row_dual.size,  # IN
        )  # fmt: skip
    else:
        dense_search.fair_row_duals(
            entries, price,  # IN
            np.empty(LANES),  # OUT
            np.inf,  # IN
            row_dual,  # OUT
            0, row_dual.size,  # IN
        )  # fmt: skip
    if limit is not None:
        np.minimum(row_dual, limit, out=row_dual)
