"""Cheap matching on the GPU: the start of the GPU's algorithms. The host's side of cheap.cu."""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import MatchingTask
from gpumatch.cuda.kernels import BLOCK, OFFSETS, Source, blocks_for, kernels_for

_KERNEL = "cheap_matching_kernel<{Offset}>"
SOURCE = Source("matching/cheap.cu", (_KERNEL,), {"Offset": OFFSETS})


def run(task: MatchingTask) -> bool:
    """Match each free vertex to the first free one it can get; O(nnz).

    The columns choose, or the rows if only their side of the graph is there.
    """
    graph, row_to_col, col_to_row = task.graph, *task.mates
    if graph.has_cols:
        chooser, indptr, indices = col_to_row, graph.col_indptr, graph.col_indices
        chosen = row_to_col
    else:
        chooser, indptr, indices = row_to_col, graph.indptr, graph.indices
        chosen = col_to_row
    kernels_for(SOURCE, Offset=indptr.dtype)[_KERNEL](
        (blocks_for(chooser.size),),
        (BLOCK,),
        (
            *(np.int32(chooser.size), indptr, indices),  # IN
            *(chosen, chooser),  # IN, OUT
        ),
    )
    return True
