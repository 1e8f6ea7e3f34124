"""Minimum-degree matching on the GPU, the engine's start: the host's side of min_degree.cu.

Device memory in addition to the graph and both mate arrays: a byte a vertex of the side that is
chosen, 4 more if the graph holds the other side's edges only, and 4 for each 1024 edges.
"""

from __future__ import annotations

import cupy as cp
import numpy as np

from gpumatch.contracts import Graph, MatchingTask
from gpumatch.cuda import memory
from gpumatch.cuda.kernels import BLOCK, OFFSETS, Kernels, Source, blocks_for, kernels_for
from gpumatch.cuda.structs import address

SOURCE = Source(
    "matching/min_degree.cu",
    (
        "count_degrees",
        "classify_counted",
        "classify<{Offset}>",
        "choose<{Offset}>",
        "choose_for_hubs<{Offset}>",
    ),
    {"Offset": OFFSETS},
    structs=("Choosers<{Offset}>",),
)

_FEW = 2  # neighbours up to which a vertex chooses first
_ANY = 2**31 - 1
_HUB = SOURCE.constant("kHub")  # neighbours from which a block chooses for a vertex


def run(task: MatchingTask) -> bool:
    """Match each free vertex to the free neighbour of least degree; O(nnz).

    The columns choose, or the rows if only their side of the graph is there.
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
    memory.require_memory(
        needed * chosen_mate.size + 4 * (1 + most_hubs), "minimum-degree matching"
    )
    kernels = kernels_for(SOURCE, Offset=indptr.dtype)
    standing = _standing(kernels, chosen_indptr, indices, chosen_mate)
    hubs = cp.zeros(1 + most_hubs, cp.int32)  # their number, then the hubs
    choosers = kernels.struct("Choosers")(
        indptr=indptr,  # IN
        indices=indices,
        count=mate.size,
        seed=task.seed % 2**31,
        mate=mate,  # IN, OUT
        chosen_mate=chosen_mate,
        standing=standing,
        hubs={"items": address(hubs, hubs.itemsize), "size": hubs},
    )
    for most in (_FEW, _ANY):
        kernels["choose<{Offset}>"](
            (blocks_for(mate.size),),
            (BLOCK,),
            (
                choosers,  # IN, OUT
                np.int32(most),  # IN
            ),
        )
    if most_hubs != 0:
        grid = (blocks_for(most_hubs * BLOCK),)
        kernels["choose_for_hubs<{Offset}>"](grid, (BLOCK,), (choosers,))  # IN, OUT
    return True


def _columns(graph: Graph) -> tuple[cp.ndarray, cp.ndarray]:
    return graph.col_indptr, graph.col_indices


def _rows(graph: Graph) -> tuple[cp.ndarray, cp.ndarray]:
    return graph.indptr, graph.indices


def _standing(
    kernels: Kernels, indptr: cp.ndarray | None, indices: cp.ndarray, mate: cp.ndarray
) -> cp.ndarray:
    """The classes of the side that is chosen; its degrees are counted if `indptr` is None."""
    standing = cp.empty(mate.size, cp.uint8)
    count, grid, block = np.int32(mate.size), (blocks_for(mate.size),), (BLOCK,)
    if indptr is not None:
        kernels["classify<{Offset}>"](
            grid,
            block,
            (
                *(count, indptr, mate),  # IN
                standing,  # OUT
            ),
        )
        return standing
    degrees = cp.zeros(mate.size, cp.int32)
    kernels["count_degrees"](
        (blocks_for(indices.size),),
        block,
        (
            *(np.int64(indices.size), indices),  # IN
            degrees,  # IN, OUT
        ),
    )
    kernels["classify_counted"](
        grid,
        block,
        (
            *(count, degrees, mate),  # IN
            standing,  # OUT
        ),
    )
    return standing
