"""König's vertex cover of a maximum matching, by one alternating search on the device.

Z, the cover and the proof are those of `gpumatch.cpu.vertex_cover`; the search is driven by the
queue of frontier.cuh. Device memory beside the graph: 20 bytes a row and 4 a column.
"""

from __future__ import annotations

from typing import Any

import cupy as cp

from gpumatch.cuda import kernels as module
from gpumatch.cuda.frontier import DeviceFrontier

_BLOCKS = 2**20  # as many as are resident


def cover(
    graph: Any, row_to_col: cp.ndarray, col_to_row: cp.ndarray
) -> tuple[cp.ndarray, cp.ndarray]:
    """Rows and columns (bool arrays) of a minimum vertex cover; O(nrows + nnz).

    Raises
    ------
    ValueError
        If an augmenting path exists: the matching is not maximum.
    """
    module.require_memory(DeviceFrontier.nbytes(graph.nrows) + 4 * sum(graph.shape), "the cover")
    row_seen = (row_to_col < 0).astype(cp.int32)
    col_seen = cp.zeros(graph.ncols, cp.int32)
    kernel = "search_cover<{Offset}>"
    frontier = DeviceFrontier(graph.nrows, graph.indptr.dtype, kernel, _BLOCKS)
    frontier.start_from_free(row_to_col, level=0)
    while True:
        frontier.search(graph.indptr, graph.indices, col_to_row, row_seen, col_seen)
        if frontier.found[0] > 0:
            raise ValueError(
                "the matching is not maximum: an augmenting path reaches column "
                f"{int(frontier.found[0]) - 1}"
            )
        if frontier.size == 0:
            return row_seen == 0, col_seen != 0
