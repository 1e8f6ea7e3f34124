"""SciPy's names from `scipy.sparse.csgraph`, served by gpumatch.

There are some differences from SciPy 1.17. An unknown ``perm_type`` raises ValueError. Duplicate
entries count once, or with the sum of their weights. Integer weights are exact. NaN and -inf among
weights (inf, to be maximised) raise ValueError. A cupyx matrix is taken too, and answered with CuPy
arrays.
"""

from __future__ import annotations

from functools import partial
from typing import Any
from warnings import warn

import numpy as np

from gpumatch.assignment import assign
from gpumatch.bipartite import BipartiteGraph
from gpumatch.contracts.batch import SOLVED
from gpumatch.costs import TOO_LARGE, SparseCosts, overflow_of_sums
from gpumatch.dispatch.registry import SMALL_MATCHING, SMALL_SPARSE, load
from gpumatch.interop.compressed import compressed_of
from gpumatch.matching import maximum_matching
from gpumatch.numeric.arrays import any_true, array_module, is_sparse
from gpumatch.problems.cardinality import InfeasibleError
from gpumatch.problems.small_problems import violator_in

__all__ = [
    "maximum_bipartite_matching",
    "min_weight_full_bipartite_matching",
    "structural_rank",
]

_ZEROS = "explicit zero weights are removed before matching"
_INFEASIBLE = "no full matching exists"


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
        Of length ncols for ``"row"``, nrows for ``"column"``; -1 if a vertex is unmatched.

    Raises
    ------
    TypeError
        If `graph` is not sparse or of another format.
    ValueError
        If `perm_type` is neither of the two.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from gpumatch.csgraph import maximum_bipartite_matching
    >>> maximum_bipartite_matching(csr_array([[1, 1], [1, 0]]), perm_type="column")
    array([1, 0], dtype=int32)
    """
    if perm_type not in ("row", "column"):
        raise ValueError(f"perm_type must be 'row' or 'column'; got {perm_type!r}")
    if not is_sparse(graph):
        raise TypeError("graph must be sparse")
    if graph.format not in ("csr", "csc", "coo"):
        raise TypeError("graph must be in CSC, CSR, or COO format.")
    row_to_col, col_to_row = _mates(graph)
    return col_to_row if perm_type == "row" else row_to_col


def min_weight_full_bipartite_matching(biadjacency: Any, maximize: bool = False) -> tuple[Any, Any]:
    """Match all of the smaller side of a sparse matrix at least total weight.

    Parameters
    ----------
    biadjacency : sparse array or matrix of SciPy or cupyx, in CSR, CSC or COO format
        The weights of the edges. Stored zeros and ``inf`` are not edges here.
    maximize : bool
        Seek the greatest total instead.

    Returns
    -------
    row_ind, col_ind : int arrays
        The matched pairs, rows ascending.

    Raises
    ------
    TypeError
        If `biadjacency` is not sparse or of another format.
    ValueError
        If the weights are not numbers, or no full matching exists.

    Warns
    -----
    UserWarning
        If zeros are stored.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from gpumatch.csgraph import min_weight_full_bipartite_matching
    >>> row_ind, col_ind = min_weight_full_bipartite_matching(csr_array([[3, 1], [2, 0]]))
    >>> col_ind
    array([1, 0], dtype=int32)
    """
    if not is_sparse(biadjacency):
        raise TypeError("graph must be sparse")
    if biadjacency.format not in ("csr", "csc", "coo"):
        raise TypeError("graph must be in CSC, CSR, or COO format.")
    maximize = bool(maximize)
    if biadjacency.format != "coo":
        arrays = biadjacency.indptr, biadjacency.indices, biadjacency.data
        by_rows = biadjacency.format == "csr"
        pairs = _pairs_at_once(arrays, biadjacency.shape, by_rows, maximize)
        if pairs is not None:
            return pairs
    entries = compressed_of(biadjacency)
    indptr, indices, weights = entries.canonical()
    if biadjacency.format == "coo":
        pairs = _pairs_at_once((indptr, indices, weights), entries.shape, True, maximize)
        if pairs is not None:
            return pairs
    weights = weights.astype(_weight_dtype(weights, entries.shape))
    graph = BipartiteGraph.of_rows(indptr, indices, entries.shape)
    are_zero = weights == 0
    if any_true(are_zero):
        warn(_ZEROS, stacklevel=2)
        rows, cols = graph.edges()
        graph = BipartiteGraph.from_edges(rows[~are_zero], cols[~are_zero], entries.shape)
        weights = weights[~are_zero]
    nrows, ncols = entries.shape
    try:
        assignment = assign(_summable(SparseCosts.of(graph, weights)), maximize=maximize)
    except InfeasibleError as exc:
        raise ValueError(_INFEASIBLE) from exc
    if nrows > ncols:
        return assignment.row_ind.astype(np.int32), assignment.col_ind
    return assignment.row_ind, assignment.col_ind.astype(np.int32)


def _pairs_at_once(
    arrays: tuple[Any, Any, Any], shape: tuple[int, int], by_rows: bool, maximize: bool
) -> tuple[Any, Any] | None:
    """The pairs of a small matrix by one compiled call; None if another way must answer."""
    solve = partial(
        load(SMALL_SPARSE), arrays, shape, by_rows=by_rows, maximize=maximize, drops_zeros=True
    )
    found = solve(wants_duals=False)
    if found is not None and found.end != SOLVED:
        found = solve(wants_duals=True)  # for the Hall violator
    if found is None:
        return None
    if found.zeros:
        warn(_ZEROS, stacklevel=3)
    nrows, ncols = shape
    if found.end != SOLVED:
        raise ValueError(_INFEASIBLE) from InfeasibleError(*violator_in(found.mates, nrows))
    if nrows > ncols:
        rows = found.mates[:nrows] >= 0
        return rows.nonzero()[0].astype(np.int32), found.mates[:nrows][rows].astype(np.int64)
    return np.arange(nrows), found.mates[:nrows].copy()


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
    if not is_sparse(graph):
        raise TypeError("Input must be sparse")
    if graph.format not in ("csr", "csc", "coo"):
        from scipy.sparse import SparseEfficiencyWarning

        warn(
            "Input matrix should be in CSC, CSR, or COO matrix format",
            SparseEfficiencyWarning,
            stacklevel=2,
        )
    row_to_col, _ = _mates(graph)
    return array_module(row_to_col).asarray((row_to_col >= 0).sum())[()]


def _mates(graph: Any) -> tuple[Any, Any]:
    """The columns of the rows, and the rows of the columns, in a maximum matching."""
    initial = None
    if graph.format in ("csr", "csc"):
        by_rows = graph.format == "csr"
        major, minor = graph.shape if by_rows else graph.shape[::-1]
        found = load(SMALL_MATCHING)(graph.indptr, graph.indices, major, minor)
        if found is not None:
            mates, done = found
            first, second = mates[:major].copy(), mates[major:].copy()
            row_to_col, col_to_row = (first, second) if by_rows else (second, first)
            if done:
                return row_to_col, col_to_row
            initial = row_to_col
    matching = maximum_matching(BipartiteGraph(graph), initial=initial)
    return matching.row_to_col, matching.col_to_row


def _weight_dtype(weights: Any, shape: tuple[int, int]) -> Any:
    """int64 for integers that can be added exactly, else float64."""
    kind = weights.dtype.kind
    if kind not in "biufc":
        raise ValueError(f"expected a matrix containing numerical entries, got {weights.dtype}")
    if kind not in "biu":
        return np.float64
    largest = max(int(weights.max()), -int(weights.min())) if weights.size else 0
    return np.int64 if (min(shape) + 1) * largest < TOO_LARGE else np.float64


def _summable(costs: SparseCosts) -> SparseCosts:
    """The costs, divided by a power of 2 if sums of them would overflow."""
    power = 0 if costs.is_integer else overflow_of_sums(costs.extent, min(costs.shape))
    return costs.divided(power) if power else costs


def __dir__() -> list[str]:
    return __all__
