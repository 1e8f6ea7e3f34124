"""Whether canonical CSR on the device is an undirected graph: the host's side of symmetry.cu."""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from gpumatch.cuda.kernels import BLOCK, COSTS, OFFSETS, Source, blocks_for, kernels_for

__all__ = ["Symmetry", "symmetry_of"]

_KERNEL = "compare_triangles<{Offset}, {Weight}>"
SOURCE = Source(
    "general/symmetry.cu",
    (_KERNEL,),
    {"Offset": OFFSETS, "Weight": COSTS},
    structs=("Edges<{Offset}, {Weight}>",),
)


class Symmetry(NamedTuple):
    """How many entries have no twin across the diagonal, are not finite, are on the diagonal."""

    alone: int
    infinite: int
    loops: int


def symmetry_of(indptr: Any, indices: Any, weights: Any = None) -> Symmetry:
    """Look at canonical CSR of a square matrix, without weights if only the pattern counts.

    O(nnz log(degree)).
    """
    number = np.dtype(np.int32) if weights is None else weights.dtype
    kernels = kernels_for(SOURCE, Offset=indptr.dtype, Weight=number)
    faults = cp.zeros(3, cp.uint64)
    edges = {"count": indptr.size - 1, "indptr": indptr, "indices": indices, "weights": weights}
    kernels[_KERNEL](
        (blocks_for(4 * indptr.size),),
        (BLOCK,),
        (
            kernels.struct("Edges")(**edges),  # IN
            faults,  # IN, OUT
        ),
    )
    return Symmetry(*map(int, faults.tolist()))
