"""Check that a matching is maximum, by code that algorithms do not share.

A matching is proven maximum by a vertex cover of its size, because every matched edge needs a
vertex of its own in any cover (König 1931, Egerváry 1931). These are checked, for every edge of the
input:

1. both mate arrays have the graph's lengths and name each other,
2. every matched pair is an edge,
3. every edge has its row or its column in the cover,
4. the cover has as many vertices as the matching has edges.

Theorem. Then no matching has more edges. Proof. Each edge of a matching has a vertex of its own in
the cover. ∎
"""

from __future__ import annotations

from typing import Any

from gpumatch.bipartite import BipartiteGraph, as_bipartite
from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    ClaimedMatching,
    check_claim_of_size,
    check_edges,
    check_pairs,
    count_of,
    cover_of,
    edge_tiles,
    marks_of,
)
from gpumatch.numeric.arrays import array_of, first_true


def verify_matching(A: Any, result: ClaimedMatching) -> Certificate:
    """Check a matching and the cover that proves it maximum; see `gpumatch.verify`."""
    graph = as_bipartite(A)
    xp = graph.xp
    row_to_col, col_to_row = array_of(xp, result.row_to_col), array_of(xp, result.col_to_row)
    check_matching(graph, row_to_col, col_to_row)
    try:
        cover_rows, cover_cols = (array_of(xp, part) for part in cover_of(result))
    except ValueError as exc:
        raise CertificateError(str(exc)) from exc
    in_rows = marks_of(xp, cover_rows, graph.nrows, "row")
    in_cols = marks_of(xp, cover_cols, graph.ncols, "column")
    _check_cover(graph, in_rows, in_cols)
    size = count_of(row_to_col >= 0)
    bound = count_of(in_rows) + count_of(in_cols)
    check_claim_of_size(result, size)
    if size != bound:
        raise CertificateError(
            f"the matching has {size} edges, but the cover has {bound} vertices: no proof"
        )
    return Certificate("matching", size, bound, graph.nnz)


def check_matching(graph: BipartiteGraph, row_to_col: Any, col_to_row: Any) -> None:
    """Check points 1 and 2: the two arrays are one matching of `graph`."""
    row_to_col, _ = check_pairs(row_to_col, col_to_row, graph.shape)
    check_edges(graph, row_to_col)


def _check_cover(graph: BipartiteGraph, in_rows: Any, in_cols: Any) -> None:
    """Check point 3: every edge has an end in the cover."""
    for rows, cols in edge_tiles(graph):
        bare = first_true(~(in_rows[rows] | in_cols[cols]))
        if bare is not None:
            raise CertificateError(
                f"the cover misses the edge of row {int(rows[bare])} and column {int(cols[bare])}"
            )
