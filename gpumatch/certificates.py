"""Check that a result is what it claims to be, by code that shares nothing with the algorithms.

A matching is proven maximum by a vertex cover of its size, for every matched edge needs a vertex
of its own in any cover (König 1931, Egerváry 1931). What is checked, edge by edge of the input:

1. both mate arrays have the graph's lengths and name each other,
2. every matched pair is an edge,
3. every edge has its row or its column in the cover,
4. the cover has as many vertices as the matching has edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpumatch.bipartite import as_bipartite

_TILE = 2**24  # edges checked at a time


class CertificateError(Exception):
    """A result that is not what it claims to be; the message says what breaks it."""


@dataclass(frozen=True)
class Certificate:
    """The proof of a result, checked.

    Attributes
    ----------
    problem : str
        ``"matching"``.
    size : int
        Edges of the matching.
    bound : int
        Vertices of the cover: no matching has more edges.
    edges : int
        Edges of the graph that were checked.
    """

    problem: str
    size: int
    bound: int
    edges: int

    def __str__(self) -> str:
        return (
            f"maximum: a matching of {self.size} edges and a cover of {self.bound} vertices, "
            f"checked on {self.edges} edges"
        )


def verify(A: Any, result: Any) -> Certificate:
    """Check a matching and the proof that it is maximum.

    Parameters
    ----------
    A : what was matched
        Anything `BipartiteGraph` is made from.
    result : Matching
        Or any object with ``row_to_col``, ``col_to_row`` and ``vertex_cover()``.

    Returns
    -------
    Certificate

    Raises
    ------
    CertificateError
        If a matched pair is no edge, a vertex is matched twice, or the cover does not prove the
        matching maximum. The message names the edge or the vertex.

    Notes
    -----
    O(nrows + ncols + nnz) on the device that holds the graph, in tiles of 2**24 edges.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> A = np.array([[1, 1], [0, 0]])
    >>> print(gm.verify(A, gm.maximum_matching(A)))
    maximum: a matching of 1 edges and a cover of 1 vertices, checked on 2 edges
    """
    graph = as_bipartite(A)
    xp = graph.xp
    row_to_col, col_to_row = xp.asarray(result.row_to_col), xp.asarray(result.col_to_row)
    _check_mates(row_to_col, col_to_row, graph.shape)
    try:
        cover_rows, cover_cols = (xp.asarray(part) for part in result.vertex_cover())
    except ValueError as exc:
        raise CertificateError(str(exc)) from exc
    in_rows = _marks(xp, cover_rows, graph.nrows, "row")
    in_cols = _marks(xp, cover_cols, graph.ncols, "column")

    is_edge = row_to_col < 0
    for rows, cols in _edge_tiles(graph):
        bare = ~(in_rows[rows] | in_cols[cols])
        if bool(bare.any()):
            at = int(bare.argmax())
            raise CertificateError(
                f"the cover misses the edge of row {int(rows[at])} and column {int(cols[at])}"
            )
        is_edge[rows[row_to_col[rows] == cols]] = True
    if not bool(is_edge.all()):
        row = int(is_edge.argmin())
        raise CertificateError(
            f"row {row} is matched to column {int(row_to_col[row])}, but that is no edge"
        )
    size = int((row_to_col >= 0).sum())
    bound = int(in_rows.sum()) + int(in_cols.sum())
    if size != bound:
        raise CertificateError(
            f"the matching has {size} edges, but the cover has {bound} vertices: no proof"
        )
    return Certificate("matching", size, bound, graph.nnz)


def _check_mates(row_to_col: Any, col_to_row: Any, shape: tuple[int, int]) -> None:
    """Both arrays have the right lengths and ranges, and each names the other."""
    for name, mates, length, bound in (
        ("row_to_col", row_to_col, shape[0], shape[1]),
        ("col_to_row", col_to_row, shape[1], shape[0]),
    ):
        if mates.shape != (length,) or mates.dtype.kind != "i":
            raise CertificateError(
                f"{name} must be {length} integers; got {mates.dtype} of shape {mates.shape}"
            )
        if length and not -1 <= int(mates.min()) <= int(mates.max()) < max(bound, 0):
            raise CertificateError(f"{name} names a vertex outside [-1, {bound})")
    for name, mates, partners in (
        ("row", row_to_col, col_to_row),
        ("column", col_to_row, row_to_col),
    ):
        vertices = (mates >= 0).nonzero()[0]
        broken = partners[mates[vertices]] != vertices
        if bool(broken.any()):
            vertex = int(vertices[int(broken.argmax())])
            raise CertificateError(
                f"{name} {vertex} is matched to {int(mates[vertex])}, "
                f"which is matched to {int(partners[mates[vertex]])}"
            )


def _marks(xp: Any, members: Any, length: int, side: str) -> Any:
    """A bool array of the cover's members on one side."""
    if members.size and not 0 <= int(members.min()) <= int(members.max()) < length:
        raise CertificateError(f"the cover names a {side} outside [0, {length})")
    marks = xp.zeros(length, dtype=bool)
    marks[members] = True
    return marks


def _edge_tiles(graph: Any) -> Iterator[tuple[Any, Any]]:
    """Rows and columns of all edges, a tile at a time, straight from whichever CSR is there."""
    xp, by_rows = graph.xp, graph.has_rows
    indptr = graph.indptr if by_rows else graph.col_indptr
    indices = graph.indices if by_rows else graph.col_indices
    for begin in range(0, graph.nnz, _TILE):
        entries = xp.arange(begin, min(begin + _TILE, graph.nnz), dtype=np.int64)
        major = xp.searchsorted(indptr, entries, side="right") - 1
        minor = indices[begin : begin + _TILE]
        yield (major, minor) if by_rows else (minor, major)
