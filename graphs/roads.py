"""Road-like networks: sparse planar graphs, mostly chains of vertices of degree two."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from graphs.csr import adjacency
from graphs.grids import kept_edges


def road(k: int, p: float = 0.65, segments: float = 4.0, *, seed: int = 0) -> csr_array:
    """Return a k x k grid with edges removed and the others subdivided.

    The defaults give the average degree 2.1 and the long chains of the OpenStreetMap graphs of
    DIMACS10 (europe_osm, italy_osm); `segments` near 1 is like the roadNet graphs.  Crossings
    come first, then the inner vertices of each street in order.

    Parameters
    ----------
    k : int
        Crossings a side.
    p : float
        Probability to keep a street of the grid.
    segments : float
        Mean number of edges a street is made of (geometric distribution); at least 1.
    """
    rng = np.random.default_rng(seed)
    u, v = kept_edges(k, p, rng)
    lengths = rng.geometric(1.0 / segments, u.size)
    return _subdivide(u, v, lengths, k * k)


def _subdivide(u: np.ndarray, v: np.ndarray, lengths: np.ndarray, n: int) -> csr_array:
    """Replace edge e of a graph on n vertices by a path of lengths[e] edges.

    The edges of all paths are in one row.  Along a path the new vertices count up, and a path has
    one new vertex fewer than edges: the t-th edge of all, if in path e, leads from vertex
    n + t - e - 1 to the next, except that a path starts at u[e] and ends at v[e].
    """
    stop = np.cumsum(lengths)
    start = stop - lengths
    tails = n + np.arange(lengths.sum()) - np.repeat(np.arange(lengths.size), lengths)
    heads = tails - 1
    heads[start] = u
    tails[stop - 1] = v
    return adjacency(heads, tails, n + int(lengths.sum()) - lengths.size)
