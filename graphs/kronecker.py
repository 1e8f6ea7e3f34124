"""Kronecker (R-MAT) graphs of the Graph500 benchmark: skewed degrees, tiny diameter."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from graphs.csr import INDEX, adjacency

# Probabilities of the four quadrants of the adjacency matrix, at every level.
A, B, C, D = 0.57, 0.19, 0.19, 0.05
_BLOCK = 1 << 20  # edges drawn at a time, to stay in cache


def kron(k: int, edge_factor: int = 48, *, seed: int = 0) -> csr_array:
    """Return a Graph500 Kronecker graph with 2**k vertices: kron_g500-logn{k} of DIMACS10.

    Symmetric; self loops removed, duplicates merged; many vertices are isolated.  Low numbers
    have the high degrees: `rcp` hides that.

    Parameters
    ----------
    k : int
        Logarithm of the number of vertices.
    edge_factor : int
        Edges drawn a vertex, before loops are removed and duplicates merged.

    References
    ----------
    Chakrabarti, Zhan, Faloutsos, "R-MAT: a recursive model for graph mining", SDM 2004.
    Bader, Meyerhenke, Sanders, Wagner (eds), "Graph partitioning and graph clustering", 2013.
    """
    rng = np.random.default_rng(seed)
    n = 1 << k
    ends = np.empty((2, n * edge_factor), INDEX)
    for start in range(0, n * edge_factor, _BLOCK):
        block = ends[:, start : start + _BLOCK]
        block[:] = _rmat(k, block.shape[1], rng)
    return adjacency(ends[0], ends[1], n)


def _rmat(k: int, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw edges by descending k times into a quadrant of the matrix."""
    u = np.zeros(count, INDEX)
    v = np.zeros(count, INDEX)
    for _ in range(k):
        draw = rng.random(count, np.float32)
        low = draw >= A + B  # quadrants C, D: lower half
        right = (draw >= A) & (draw < A + B) | (draw >= A + B + C)  # quadrants B, D
        u += u + low
        v += v + right
    return u, v
