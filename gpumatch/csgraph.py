"""SciPy's names from `scipy.sparse.csgraph`, served by gpumatch.

What differs from SciPy 1.17: an unknown ``perm_type`` raises ValueError, duplicate entries count
once, and cupyx matrices are taken too and answered with CuPy arrays.
"""

from __future__ import annotations

import sys
from typing import Any
from warnings import warn

from gpumatch.bipartite import BipartiteGraph
from gpumatch.matching import Matching
from gpumatch.matching import maximum_matching as _maximum_matching

__all__ = ["maximum_bipartite_matching", "structural_rank"]


def maximum_bipartite_matching(graph: Any, perm_type: str = "row") -> Any:
    """Match the rows of a sparse matrix to its columns, as many as possible.

    Parameters
    ----------
    graph : sparse array or matrix of SciPy or cupyx, in CSR, CSC or COO format
        Stored entries are edges, stored zeros too.
    perm_type : {"row", "column"}
        ``"row"``: the row of each column; ``"column"``: the column of each row.

    Returns
    -------
    perm : int32 array
        Of length ncols for ``"row"``, nrows for ``"column"``; -1 where a vertex is unmatched.

    Raises
    ------
    TypeError
        If `graph` is not sparse or of another format.
    ValueError
        If `perm_type` is none of the two.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from gpumatch.csgraph import maximum_bipartite_matching
    >>> maximum_bipartite_matching(csr_array([[1, 1], [1, 0]]), perm_type="column")
    array([1, 0], dtype=int32)
    """
    if perm_type not in ("row", "column"):
        raise ValueError(f"perm_type must be 'row' or 'column'; got {perm_type!r}")
    if not _is_sparse(graph):
        raise TypeError("graph must be sparse")
    if graph.format not in ("csr", "csc", "coo"):
        raise TypeError("graph must be in CSC, CSR, or COO format.")
    matching = _matched(graph)
    return matching.col_to_row if perm_type == "row" else matching.row_to_col


def structural_rank(graph: Any) -> Any:
    """Count the entries of a maximum transversal: the largest rank the pattern allows.

    Parameters
    ----------
    graph : sparse array or matrix of SciPy or cupyx

    Returns
    -------
    rank : int64 scalar

    Raises
    ------
    TypeError
        If `graph` is not sparse.

    Warns
    -----
    SparseEfficiencyWarning
        If `graph` is in none of the formats CSR, CSC, COO.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from gpumatch.csgraph import structural_rank
    >>> int(structural_rank(csr_array([[1, 1], [0, 0]])))
    1
    """
    if not _is_sparse(graph):
        raise TypeError("Input must be sparse")
    if graph.format not in ("csr", "csc", "coo"):
        from scipy.sparse import SparseEfficiencyWarning

        warn(
            "Input matrix should be in CSC, CSR, or COO matrix format",
            SparseEfficiencyWarning,
            stacklevel=2,
        )
    return (_matched(graph).row_to_col >= 0).sum()


def _matched(graph: Any) -> Matching:
    return _maximum_matching(BipartiteGraph(graph))


def _is_sparse(graph: Any) -> bool:
    from scipy.sparse import issparse

    cupyx_sparse = sys.modules.get("cupyx.scipy.sparse")
    return issparse(graph) or (cupyx_sparse is not None and cupyx_sparse.issparse(graph))
