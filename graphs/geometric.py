"""Random geometric graphs."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from graphs.csr import adjacency


def rgg(k: int, *, seed: int = 0) -> csr_array:
    """Return the random geometric graph rgg_n_2_{k} of DIMACS10.

    2**k random points of the unit square, joined below a distance of 0.55 sqrt(ln n / n), a
    radius that makes the graph almost surely almost connected.  Numbered from left to right.

    Parameters
    ----------
    k : int
        Logarithm of the number of vertices; at least 1.

    References
    ----------
    Holtgrewe, Sanders, Schulz, "Engineering a scalable high quality graph partitioner",
    IPDPS 2010.
    """
    n = 1 << k
    points = random_points(n, seed)
    radius = 0.55 * math.sqrt(math.log(n) / n)
    pairs = cKDTree(points).query_pairs(radius, output_type="ndarray")
    return adjacency(pairs[:, 0], pairs[:, 1], n)


def random_points(n: int, seed: int) -> np.ndarray:
    """Return n random points of the unit square, sorted by x."""
    points = np.random.default_rng(seed).random((n, 2))
    return points[np.argsort(points[:, 0])]
