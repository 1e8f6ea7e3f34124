"""König's vertex cover of a maximum matching, by one alternating search.

Let Z hold the vertices that alternating paths reach from the unmatched rows: by any edge from row
to column, by the matched edge from column to row. If the matching is maximum, no unmatched column
is reached. Then the rows outside Z and the columns inside Z cover every edge, and there are as many
of them as matched edges (König 1931).

Encodings
---------
``row_seen, col_seen``  bool: the vertex is in Z
``queue``               rows of Z in the order reached; ``queue[head:tail]`` wait
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import Graph
from gpumatch.cpu.numba_tools.compiled import kernel

BUDGET = 2**24


def cover(
    graph: Graph, row_to_col: np.ndarray, col_to_row: np.ndarray, budget: int = BUDGET
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns (bool arrays) of a minimum vertex cover; O(nrows + nnz).

    `budget` is the number of edges that are visited between two returns to Python.

    Raises
    ------
    ValueError
        If an augmenting path exists: the matching is not maximum.
    """
    row_seen = row_to_col < 0
    col_seen = np.zeros(col_to_row.size, bool)
    free_rows = np.flatnonzero(row_seen)
    queue = np.empty(row_to_col.size, np.int32)
    queue[: free_rows.size] = free_rows
    head, tail, free_col = 0, free_rows.size, -1
    while head < tail and free_col < 0:
        head, tail, free_col = _reach(
            graph.indptr, graph.indices, col_to_row,  # IN
            queue, row_seen, col_seen, head, tail, budget,  # OUT
        )  # fmt: skip
    if free_col >= 0:
        raise ValueError(
            f"the matching is not maximum: an augmenting path reaches column {free_col}"
        )
    return ~row_seen, col_seen


@kernel
def _reach(indptr, indices, col_to_row, queue, row_seen, col_seen, head, tail, budget):
    """Search on until the queue or the budget is used up, or an unmatched column is reached."""
    while head < tail and budget > 0:
        row = queue[head]
        head += 1
        budget -= indptr[row + 1] - indptr[row]
        for k in range(indptr[row], indptr[row + 1]):
            col = indices[k]
            if col_seen[col]:
                continue
            col_seen[col] = True
            mate = col_to_row[col]
            if mate < 0:
                return head, tail, np.int64(col)
            row_seen[mate] = True
            queue[tail] = mate
            tail += 1
    return head, tail, np.int64(-1)
