"""Check what some, or all, maximum matchings have, by code that algorithms do not share.

Let the blocks be 0 to K, and s the number of rows before block K and of columns in it. Checked are:

1. no edge leads from the row of a block to the column of an earlier one,
2. blocks 1 to K - 1 have as many rows as columns,
3. the matching has s edges, all within blocks,
4. in each of blocks 1 to K - 1, exchanges lead from every row to every other: row i may take the
   column of row k, if it has an edge there. In block 0 they lead from every row to an unmatched
   column, and in block K from an unmatched row to every matched row,
5. the edges are those within blocks, or those of blocks 1 to K - 1 that have one row.

Theorem. Then an edge is in some maximum matching if it is within a block, and in all if its block
has one row and one column and is neither 0 nor K.

Proof. For each k from 1 to K, the rows before block k and the columns from it on touch all edges by
1. By 2 they are s vertices. So by 3 the matching is maximum, each maximum matching has s edges,
which each have one vertex of these, and none is an edge from before k to k or beyond. By 4 an edge
within a block lies on a cycle of exchanges, or on a path to an unmatched vertex, and if the block
has other rows, or is 0 or K, so does what could replace it. ∎
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpumatch.bipartite import as_bipartite
from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    check_flag,
    check_mates,
    csr_arrays,
    python_number,
)
from gpumatch.numeric.arrays import array_of, first_true

__all__ = ["EdgesCertificate", "verify_edges"]


@dataclass(frozen=True)
class EdgesCertificate(Certificate):
    """The edges of maximum matchings, checked.

    Attributes
    ----------
    problem : str
        ``"edges"``.
    size : int
        Edges that some, or all, maximum matchings have.
    bound : int
        Edges of a maximum matching.
    edges : int
        Edges of the graph that were checked.
    """

    def __str__(self) -> str:
        return (
            f"{self.size} edges of maximum matchings, which have {self.bound} edges, checked on "
            f"{self.edges} edges"
        )


def verify_edges(A: Any, result: Any) -> EdgesCertificate:
    """Check the edges that maximum matchings have, and their order; see `gpumatch.verify`."""
    graph = as_bipartite(A).to_host()
    rows, cols = (part.astype(np.int64) for part in graph.edges())
    row_block = _blocks(result.row_block, graph.nrows, "row")
    col_block = _blocks(result.col_block, graph.ncols, "column")
    mates = check_mates("row", array_of(np, result.row_to_col), graph.nrows, graph.ncols)
    last = python_number("the last block", result.last_block)
    if not isinstance(last, int) or last > graph.nrows + graph.ncols + 1:
        raise CertificateError(f"the last block is {last}, but there are fewer")
    if last < max(row_block.max(initial=0), col_block.max(initial=0), 1):
        raise CertificateError(f"a block is after the last one, {last}")
    stray = first_true(row_block[rows] > col_block[cols])
    if stray is not None:
        raise CertificateError(
            f"the edge of row {rows[stray]} and column {cols[stray]} leads to an earlier block"
        )
    count = [np.bincount(part, minlength=last + 1) for part in (row_block, col_block)]
    stray = first_true(count[0][1:last] != count[1][1:last])
    if stray is not None:
        raise CertificateError(f"block {stray + 1} is not square")
    bound = int(count[0][:last].sum() + count[1][last])
    _check_matching(rows, cols, mates, row_block, col_block, bound)
    inside = row_block[rows] == col_block[cols]
    _check_exchanges(rows[inside], cols[inside], mates, row_block, graph.ncols, last)
    wanted = inside
    if check_flag("forced", result.forced):
        single = (count[0] == 1) & (np.arange(last + 1) > 0) & (np.arange(last + 1) < last)
        wanted = inside & single[row_block[rows]]
    _check_chosen(result, rows[wanted], cols[wanted], graph.ncols)
    if check_flag("is_unique", result.is_unique) != (np.count_nonzero(inside) == bound):
        raise CertificateError("is_unique does not agree with the edges within blocks")
    return EdgesCertificate("edges", int(np.count_nonzero(wanted)), bound, graph.nnz)


def _blocks(blocks: Any, length: int, side: str) -> np.ndarray:
    """The block of each vertex of a side."""
    blocks = array_of(np, blocks)
    if blocks.shape != (length,) or blocks.dtype.kind != "i" or blocks.min(initial=0) < 0:
        raise CertificateError(f"the blocks of the {side}s must be {length} integers from 0 up")
    return blocks.astype(np.int64)


def _check_matching(
    rows: np.ndarray,
    cols: np.ndarray,
    mates: np.ndarray,
    row_block: np.ndarray,
    col_block: np.ndarray,
    bound: int,
) -> None:
    """Point 3."""
    matched = (mates >= 0).nonzero()[0]
    if np.unique(mates[matched]).size != matched.size:
        raise CertificateError("the matching has a column twice")
    if np.count_nonzero(mates[rows] == cols) < matched.size:
        raise CertificateError("the matching has a pair that is no edge")
    if (row_block[matched] != col_block[mates[matched]]).any():
        raise CertificateError("the matching has an edge between blocks")
    if matched.size != bound:
        raise CertificateError(
            f"the matching has {matched.size} edges, but the blocks allow {bound}"
        )


def _check_exchanges(
    rows: np.ndarray,
    cols: np.ndarray,
    mates: np.ndarray,
    row_block: np.ndarray,
    ncols: int,
    last: int,
) -> None:
    """Point 4, by one vertex more for the unmatched columns, and one for the unmatched rows."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    nrows = mates.size
    col_to_row = np.full(ncols, nrows)  # the vertex of unmatched columns
    matched = (mates >= 0).nonzero()[0]
    col_to_row[mates[matched]] = matched
    first, end = (row_block == 0).nonzero()[0], (row_block == last).nonzero()[0]
    is_free = mates[end] < 0
    free, held = end[is_free], end[~is_free]
    tails = [rows, np.full(first.size, nrows), np.full(free.size, nrows + 1), held]
    heads = [col_to_row[cols], first, free, np.full(held.size, nrows + 1)]
    arcs = np.concatenate(tails), np.concatenate(heads)
    graph = csr_array((np.ones(arcs[0].size, np.int8), arcs), shape=(nrows + 2, nrows + 2))
    _, label = connected_components(graph, connection="strong")
    wanted = np.full(last + 1, -1)
    wanted[row_block[matched]] = label[matched]
    wanted[0], wanted[last] = label[nrows], label[nrows + 1]
    stray = first_true((label[:nrows] != wanted[row_block]) & (mates >= 0))
    if stray is not None:
        raise CertificateError(f"row {stray} cannot be exchanged with all of its block")


def _check_chosen(result: Any, rows: np.ndarray, cols: np.ndarray, ncols: int) -> None:
    """Point 5."""
    indptr, indices, _ = csr_arrays(result.matrix)
    chosen = np.repeat(np.arange(indptr.size - 1), np.diff(indptr)) * ncols + indices
    if not np.array_equal(np.sort(chosen), np.sort(rows * ncols + cols)):
        raise CertificateError("the edges are not those that the blocks tell")
