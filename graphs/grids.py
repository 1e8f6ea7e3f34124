"""Square grid graphs with edges removed at random."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from graphs.csr import INDEX, adjacency


def grid(k: int, p: float = 1.0, *, seed: int = 0) -> csr_array:
    """Return the k x k grid graph, each edge kept with probability p, as adjacency matrix.

    Near p = 0.65 many vertices stay unmatched by a greedy start and augmenting paths are long.

    Parameters
    ----------
    k : int
        Vertices a side; vertex (i, j) has number i k + j.
    p : float
        Probability to keep an edge.
    """
    u, v = kept_edges(k, p, np.random.default_rng(seed))
    return adjacency(u, v, k * k)


def kept_edges(k: int, p: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the edges of a k x k grid that survive with probability p each."""
    vertex = np.arange(k * k, dtype=INDEX).reshape(k, k)
    u = np.concatenate([vertex[:, :-1].ravel(), vertex[:-1].ravel()])
    v = np.concatenate([vertex[:, 1:].ravel(), vertex[1:].ravel()])
    kept = rng.random(u.size) < p
    return u[kept], v[kept]
