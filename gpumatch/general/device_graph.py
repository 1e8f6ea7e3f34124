"""Graphs on a device, which stay there if they are canonical CSR with both entries of each edge.

Any other graph on a device is made one on the host (`gpumatch.general.graph`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.dispatch.by_device import symmetry_on_device
from gpumatch.general.graph import Graph
from gpumatch.interop.compressed import Compressed, compressed_of
from gpumatch.numeric.arrays import array_module, is_sparse

__all__ = ["graph_on_device", "home_of", "is_on_device"]

_TAKEN = tuple(map(np.dtype, (np.int32, np.int64, np.float32, np.float64)))


def is_on_device(G: Any) -> bool:
    """True if this is a sparse matrix, or a tuple of CSR arrays, on a device."""
    if isinstance(G, tuple) and len(G) >= 3:
        return hasattr(G[1], "__cuda_array_interface__")
    return is_sparse(G) and hasattr(G, "indices") and array_module(G.indices) is not np


def home_of(G: Any) -> Any:
    """The module of arrays like the input's: NumPy or CuPy."""
    if not is_on_device(G):
        return np
    return array_module(G[1] if isinstance(G, tuple) else G.indices)


def graph_on_device(
    G: Any, triangle: str, *, weighted: bool, keeps_loops: bool = False
) -> Graph | None:
    """The caller's own arrays if they are those of an undirected graph, or of one with loops.

    None if not, and if a number is not finite: the host says which, or finds that it is a loop's.
    """
    entries = compressed_of(G, valued=weighted)
    if not (isinstance(entries, Compressed) and entries.is_canonical and triangle == "both"):
        return None
    if entries.shape[0] != entries.shape[1]:
        return None  # an error, which the host's conversion raises
    indptr, indices = entries.pattern()
    weights = _numbers(entries.values()) if weighted else None
    if weighted and weights is None:
        return None
    symmetry = symmetry_on_device(indptr, indices, weights)
    if symmetry.infinite or symmetry.alone or (symmetry.loops and not keeps_loops):
        return None
    return Graph(indptr, indices, weights)


def _numbers(weights: Any) -> Any:
    """Weights of a type that kernels read; None if they are no real numbers."""
    if weights.dtype.kind not in "biuf" or weights.dtype == np.uint64:
        return None
    if weights.dtype in _TAKEN:
        return weights
    return weights.astype(np.float32 if weights.dtype.kind == "f" else np.int64)
