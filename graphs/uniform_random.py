"""Uniform random bipartite graphs, square and rectangular."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from graphs.csr import INDEX, pattern


def uniform(nrows: int, degree: float, ncols: int | None = None, *, seed: int = 0) -> csr_array:
    """Return a random matrix with `degree` uniform columns drawn for each row.

    Columns drawn twice for a row are merged.  With degree 3 a greedy start leaves the most to
    search: the "uniform d 3" of the matching literature.

    Parameters
    ----------
    nrows : int
        Rows.
    degree : float
        Columns drawn for a row; with a fraction, the mean of two neighbouring numbers in turn.
    ncols : int, optional
        Columns; as many as rows unless given.
    """
    ncols = nrows if ncols is None else ncols
    drawn = np.diff(np.floor(np.arange(nrows + 1) * degree).astype(np.int64))
    columns = np.random.default_rng(seed).integers(ncols, size=drawn.sum(), dtype=INDEX)
    return pattern(np.repeat(np.arange(nrows, dtype=INDEX), drawn), columns, (nrows, ncols))


def lopsided(nrows: int, ncols: int, degree: int = 3, *, seed: int = 0) -> csr_array:
    """Return a uniform random rectangle that matches its shorter side fully.

    A random matching of the shorter side is planted into `uniform(nrows, degree, ncols)`, as in
    the constraint matrices of set covering problems, 500 times as wide as high.

    Parameters
    ----------
    nrows, ncols : int
        Rows and columns.
    degree : int
        Columns drawn for a row, besides the planted ones.
    """
    background = uniform(nrows, degree, ncols, seed=seed)
    rng = np.random.default_rng([seed, 1])
    shorter = min(nrows, ncols)
    rows = rng.permutation(nrows)[:shorter]
    columns = rng.permutation(ncols)[:shorter]
    return background + pattern(rows, columns, (nrows, ncols))
