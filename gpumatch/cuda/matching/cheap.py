"""Cheap matching on the GPU: the start of the GPU's algorithms. The kernel is in cheap.cuh."""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import MatchingTask
from gpumatch.cuda import kernels as module


def run(task: MatchingTask) -> bool:
    """Match each free vertex to the first free one it can get; O(nnz).

    It is the columns that choose, or the rows where only their side of the graph is there.
    """
    graph, row_to_col, col_to_row = task.graph, *task.mates
    if graph.has_cols:
        chooser, indptr, indices = col_to_row, graph.col_indptr, graph.col_indices
        chosen = row_to_col
    else:
        chooser, indptr, indices = row_to_col, graph.indptr, graph.indices
        chosen = col_to_row
    kernels = module.kernels_for(module.APSB_APFB, indptr.dtype)
    arguments = (np.int32(chooser.size), indptr, indices, chosen, chooser)
    blocks = module.blocks_for(chooser.size)
    kernels["cheap_matching_kernel<{Offset}>"]((blocks,), (module.BLOCK,), arguments)
    return True
