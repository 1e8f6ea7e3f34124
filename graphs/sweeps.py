"""Digraphs of radiation transport sweeps: which cell of a mesh must be solved before which.

Particles fly through the mesh in one direction. An arc leads from a cell to its neighbour if some
leave through their common face. A face that is bent lets particles through both ways. Then the
two cells depend on each other, and such cycles are what solvers must find: strong components, most
of them single cells (Alabandi, Sands, Biros, Burtscher, "A GPU algorithm for detecting strongly
connected components", SC 2023, whose inputs are of this kind).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from graphs.csr import INDEX, pattern


def sweep(
    nx: int, ny: int, nz: int = 1, bend: float = 0.05, swirl: float = 0.0, *, seed: int = 0
) -> csr_array:
    """Return the sweep digraph of an nx x ny x nz mesh of cells with bent faces.

    Cell (i, j, k) has number (i ny + j) nz + k.

    Parameters
    ----------
    nx, ny, nz : int
        Cells along each axis.
    bend : float
        How much a face's normal differs from its axis, at each of two points of the face.
    swirl : float
        Particles also go round the middle of the mesh, so fast at its border. From about 2 on, most
        cells are one component.
    """
    rng = np.random.default_rng(seed)
    shape = nx, ny, nz
    direction = rng.normal(size=3)
    direction /= np.sqrt((direction * direction).sum())
    cells = np.arange(nx * ny * nz, dtype=INDEX).reshape(shape)
    tails, heads = [], []
    for axis in range(3):
        lower = np.delete(cells, -1, axis).ravel()
        upper = np.delete(cells, 0, axis).ravel()
        i, j, _ = np.unravel_index(lower, shape)
        turning = (0.5 - j / ny, i / nx - 0.5, 0.0)[axis]
        flow = direction[axis] + swirl * turning + bend * rng.normal(size=(2, lower.size))
        up, down = (flow > 0).any(axis=0), (flow < 0).any(axis=0)
        tails += [lower[up], upper[down]]
        heads += [upper[up], lower[down]]
    return pattern(np.concatenate(tails), np.concatenate(heads), (cells.size, cells.size))
