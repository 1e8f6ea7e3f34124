"""Dual graphs of triangular meshes: planar, every vertex of degree three except at the border.

DIMACS10's hugetrace and hugebubbles graphs are of this kind.  They are frames of two-dimensional
adaptive numerical simulations: a vertex is a triangle, an edge a side that two triangles share
(Marquardt, Schamberger, "Open benchmarks for load balancing heuristics in parallel adaptive finite
element computations", PDPTA 2005).  Here a mesh is a grid of cells, of which some are missing.  One
of its diagonals, chosen at random, cuts each cell into two triangles.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from graphs.csr import INDEX, adjacency


def trace(k: int, width: int = 16, *, seed: int = 0) -> csr_array:
    """Return a hugetrace-like mesh: a corridor that winds through a k x k square.

    The corridor is `width` cells wide and about k**2 / width cells long.  The graph's diameter is
    about as large.

    Parameters
    ----------
    k : int
        Cells a side; the graph has nearly 2 k**2 vertices.
    width : int
        Cells across the corridor.
    """
    present = np.ones((k, k), bool)
    present[width :: 2 * (width + 1), : k - width] = False  # walls open to the right
    present[2 * width + 1 :: 2 * (width + 1), width:] = False  # and to the left, in turn
    return _dual(present, np.random.default_rng(seed))


def bubbles(k: int, holes: int = 64, *, seed: int = 0) -> csr_array:
    """Return a hugebubbles-like mesh: a k x k square of cells with round holes.

    Parameters
    ----------
    k : int
        Cells a side.
    holes : int
        Discs cut out, at random places; they cover less than a third of the square.
    """
    rng = np.random.default_rng(seed)
    present = np.ones((k, k), bool)
    largest = k / np.sqrt(10.0 * max(holes, 1))
    for x, y, size in rng.random((holes, 3)):
        _cut_disc(present, x * k, y * k, largest * (0.3 + 0.7 * size))
    return _dual(present, rng)


def _cut_disc(present: np.ndarray, x: float, y: float, radius: float) -> None:
    """Remove the cells within the radius of (x, y)."""
    rows = slice(max(int(y - radius), 0), int(y + radius) + 1)
    columns = slice(max(int(x - radius), 0), int(x + radius) + 1)
    box = present[rows, columns]
    i = np.arange(box.shape[0])[:, None] + rows.start + 0.5 - y
    j = np.arange(box.shape[1]) + columns.start + 0.5 - x
    box &= i * i + j * j > radius * radius


def _dual(present: np.ndarray, rng: np.random.Generator) -> csr_array:
    """Return the dual graph of the mesh whose cells are present, each cut at random.

    Of a cell's two triangles one has its left side, the other its right side; the diagonal
    decides which of the two has the upper side, and the other has the lower.
    """
    cells = int(present.sum())
    left = np.full(present.shape, -1, INDEX)
    left[present] = 2 * np.arange(cells, dtype=INDEX)
    right = left + 1
    falling = rng.random(present.shape) < 0.5
    upper = np.where(falling, right, left)
    lower = np.where(falling, left, right)
    beside = present[:, :-1] & present[:, 1:]
    below = present[:-1] & present[1:]
    u = [left[present], right[:, :-1][beside], lower[:-1][below]]
    v = [right[present], left[:, 1:][beside], upper[1:][below]]
    return adjacency(np.concatenate(u), np.concatenate(v), 2 * cells)
