"""König's vertex cover of a maximum matching, by one alternating search on the device.

From the free rows the search goes along any edge to a column, and from a column along its matched
edge to a row. The cover is the rows that it does not reach and the columns that it reaches. It is
as large as the matching, which proves both optimal. Device memory in addition to the graph: 12
bytes a row and 4 a column.
"""

from __future__ import annotations

import cupy as cp

from gpumatch.contracts import Graph
from gpumatch.cuda import frontier, memory
from gpumatch.cuda.frontier import DeviceFrontier
from gpumatch.cuda.kernels import OFFSETS, Source, kernels_for

_KERNEL = "search_cover<{Offset}>"
SOURCE = Source(
    "matching/vertex_cover.cu",
    (*frontier.KERNELS, _KERNEL),
    {"Offset": OFFSETS},
    structs=frontier.STRUCTS,
    cooperative=True,
)


def cover(
    graph: Graph, row_to_col: cp.ndarray, col_to_row: cp.ndarray
) -> tuple[cp.ndarray, cp.ndarray]:
    """Rows and columns (bool arrays) of a minimum vertex cover; O(nrows + nnz).

    Raises
    ------
    ValueError
        If an augmenting path exists: the matching is not maximum.
    """
    needed = DeviceFrontier.nbytes(graph.nrows) + 4 * sum(graph.shape)
    memory.require_memory(needed, "the cover")
    row_seen = (row_to_col < 0).astype(cp.int32)
    col_seen = cp.zeros(graph.ncols, cp.int32)
    kernels = kernels_for(SOURCE, Offset=graph.indptr.dtype)
    search = DeviceFrontier(kernels, _KERNEL, graph.nrows)
    search.start_from_free(row_to_col, level=0)
    while True:
        search.search(
            *(graph.indptr, graph.indices, col_to_row),  # IN
            *(row_seen, col_seen),  # IN, OUT
        )
        if search.found[0] > 0:
            raise ValueError(
                "the matching is not maximum: an augmenting path reaches column "
                f"{int(search.found[0]) - 1}"
            )
        if search.size == 0:
            return row_seen == 0, col_seen != 0
