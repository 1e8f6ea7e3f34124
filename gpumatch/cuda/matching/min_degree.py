"""Minimum-degree matching on the GPU, the engine's start: the host's side of min_degree.cu.

Device memory beside the graph and both mate arrays: a byte a vertex of the side that is chosen, 4
more where the graph holds the other side's edges only, and 4 for each 1024 edges.
"""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import MatchingTask
from gpumatch.cuda import kernels as module

_FEW = 2  # neighbours up to which a vertex chooses first
_ANY = 2**31 - 1
_HUB = 1024  # neighbours from which a block chooses for a vertex, as kHub in min_degree.cu


def run(task: MatchingTask) -> bool:
    """Match each free vertex to the free neighbour of least degree; O(nnz).

    It is the columns that choose, or the rows where only their side of the graph is there.
    """
    graph, row_to_col, col_to_row = task.graph, *task.mates
    if graph.has_cols:
        indptr, indices, mate, chosen_mate = *_columns(graph), col_to_row, row_to_col
        chosen_indptr = graph.indptr if graph.has_rows else None
    else:
        indptr, indices, mate, chosen_mate = *_rows(graph), row_to_col, col_to_row
        chosen_indptr = None
    most_hubs = indices.size // _HUB
    needed = 1 if chosen_indptr is not None else 5
    module.require_memory(
        needed * chosen_mate.size + 4 * (1 + most_hubs), "minimum-degree matching"
    )
    kernels = module.kernels_for(module.MIN_DEGREE, indptr.dtype)
    standing = _standing(kernels, chosen_indptr, indices, chosen_mate)
    hubs = cp.zeros(1 + most_hubs, cp.int32)  # their number, and they
    choosers = module.struct(
        *(indptr, indices, mate.size, mate, chosen_mate, standing),
        *(module.pointer(hubs, hubs.itemsize), hubs, task.seed % 2**31),
    )
    grid, block = (module.blocks_for(mate.size),), (module.BLOCK,)
    for most in (_FEW, _ANY):
        kernels["choose<{Offset}>"](grid, block, (choosers, np.int32(most)))
    if most_hubs != 0:
        grid = (module.blocks_for(most_hubs * module.BLOCK),)
        kernels["choose_for_hubs<{Offset}>"](grid, block, (choosers,))
    return True


def _columns(graph: Any) -> tuple[cp.ndarray, cp.ndarray]:
    return graph.col_indptr, graph.col_indices


def _rows(graph: Any) -> tuple[cp.ndarray, cp.ndarray]:
    return graph.indptr, graph.indices


def _standing(
    kernels: module.Kernels, indptr: cp.ndarray | None, indices: cp.ndarray, mate: cp.ndarray
) -> cp.ndarray:
    """The classes of the side that is chosen, whose degrees are counted where `indptr` is None."""
    standing = cp.empty(mate.size, cp.uint8)
    grid, block = (module.blocks_for(mate.size),), (module.BLOCK,)
    if indptr is not None:
        kernels["classify<{Offset}>"](grid, block, (np.int32(mate.size), indptr, mate, standing))
        return standing
    degrees = cp.zeros(mate.size, cp.int32)
    edges = np.int64(indices.size)
    kernels["count_degrees"]((module.blocks_for(indices.size),), block, (edges, indices, degrees))
    kernels["classify_counted"](grid, block, (np.int32(mate.size), degrees, mate, standing))
    return standing
