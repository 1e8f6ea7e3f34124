"""Random row and column permutation: the "RCP" sets of the matching literature."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, sparray

from graphs.csr import INDEX, pattern


def rcp(matrix: sparray, seed: int = 0) -> csr_array:
    """Return the pattern of the matrix with rows and columns permuted at random.

    The two permutations are independent: a symmetric pattern does not stay symmetric.

    References
    ----------
    Deveci, Kaya, Uçar, Çatalyürek, "GPU accelerated maximum cardinality matching algorithms for
    bipartite graphs", Euro-Par 2013.
    """
    rng = np.random.default_rng(seed)
    nrows, ncols = matrix.shape
    row_number = rng.permutation(np.arange(nrows, dtype=INDEX))
    column_number = rng.permutation(np.arange(ncols, dtype=INDEX))
    entries = matrix.tocoo()
    return pattern(row_number[entries.row], column_number[entries.col], (nrows, ncols))
