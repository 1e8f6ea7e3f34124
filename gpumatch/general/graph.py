"""Any input as a simple undirected graph: no edge joins a vertex to itself, and none is repeated.

Encodings
---------
``indptr, indices``  the neighbours of vertex v are ``indices[indptr[v]:indptr[v+1]]``, sorted
``weights``          the weight of each entry of `indices`; both entries of an edge have the same

Each edge is stored from both ends. Vertex numbers are int32. Offsets are int32, or int64 if there
are 2**31 entries or more. Weights are int64 or float64. All arrays are on the host.

Of repeated edges, the best is kept: the largest to be maximised, the smallest to be minimised. A
matrix may store an edge in both triangles. Then its two weights must be equal.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from gpumatch.dispatch.by_device import csr_on_host, symmetry_on_host
from gpumatch.interop.compressed import Compressed, Edges, checked_shape, compressed_of, edges_of
from gpumatch.interop.networkx import is_networkx, numbered_edges
from gpumatch.interop.tensors import is_tensor, source_of
from gpumatch.numeric.arrays import (
    array_of,
    as_array,
    exactly,
    first_true,
    hint_of_type,
    index_array,
    is_sparse,
)

__all__ = ["TRIANGLES", "Graph", "pattern_of", "weighted_of"]

TRIANGLES = ("both", "upper", "lower")
"""The entries of a matrix that are read: all, those right of the diagonal, those left of it."""


class Graph(NamedTuple):
    """An undirected graph in CSR; see `gpumatch.general.graph`.

    Attributes
    ----------
    indptr : int32 or int64 array of length n + 1
    indices : int32 array of length 2 * size
        The neighbours of each vertex, sorted.
    weights : int64 or float64 array of length 2 * size, optional
    nodes : list of nodes, optional
        The networkx nodes behind the vertices.
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None = None
    nodes: list[Hashable] | None = None

    @property
    def order(self) -> int:
        """The number of vertices."""
        return int(self.indptr.size) - 1

    @property
    def size(self) -> int:
        """The number of edges."""
        return int(self.indices.size) // 2

    def name_of(self, vertex: int) -> str:
        """What an error calls a vertex: its number, or its networkx node."""
        return str(vertex) if self.nodes is None else repr(self.nodes[vertex])

    def __repr__(self) -> str:
        kind = "" if self.weights is None else f", weights of {self.weights.dtype}"
        return f"Graph({self.order} vertices, {self.size} edges{kind})"


def pattern_of(source: Any, triangle: str = "both") -> Graph:
    """The graph without weights.

    Parameters
    ----------
    source : Graph, sparse or dense matrix, edge list, or networkx graph
        - a square matrix of SciPy or cupyx, or ``(indptr, indices, shape)`` as CSR: stored entries
          are edges, stored zeros too;
        - a square dense array or tensor: nonzero entries are edges;
        - an integer array of shape (m, 2) with the ends of the edges, or a tuple of it and their
          weights or None: the vertices are those up to the largest that is named;
        - a networkx graph of any kind. Directions do not matter.
    triangle : {"both", "upper", "lower"}
        The entries of a matrix that are edges. With ``"both"``, an edge may be stored in either
        triangle or in both.

    Raises
    ------
    TypeError, ValueError
        If the source is of no known kind, a matrix is not square, a number is out of range, or
        `triangle` is no such name. A 2 x 2 array may be a matrix or a list of two edges, so it is
        refused.

    Notes
    -----
    O(n + m) if the entries are sorted, a sort otherwise. The arrays are the graph's own.
    """
    _check_triangle(triangle)
    if isinstance(source, Graph):
        return _checked_graph(source._replace(weights=None))
    if is_networkx(source):
        edges = numbered_edges(source)
        n = checked_shape((len(edges.nodes),) * 2)[0]
        return Graph(*_joined(n, edges.tails, edges.heads), nodes=edges.nodes)
    entries = _entries_of(source)
    n = entries.shape[0]
    if isinstance(entries, Compressed) and triangle == "both" and entries.is_canonical:
        indptr, indices = entries.pattern()
        symmetry = symmetry_on_host(indptr, indices)
        if symmetry.is_symmetric:
            arrays = _without_loops(indptr, indices) if symmetry.loops else (indptr, indices)
            return Graph(*arrays[:2])
    rows, cols = _ends(entries)
    return Graph(*_joined(n, *_in_triangle(triangle, entries, rows, cols)[:2]))


def weighted_of(
    source: Any, weight: Hashable = "weight", triangle: str = "both", *, maximize: bool = True
) -> Graph:
    """The graph with its weights.

    Parameters
    ----------
    source : Graph, sparse or dense matrix, edge list, or networkx graph
        As of `pattern_of`, with weights: the values of a matrix, the second part of a tuple. Edges
        without any weigh 1.
    weight : hashable
        The edge attribute of a networkx graph that is the weight. Edges without it weigh 1, as in
        networkx, and with None all do.
    triangle : {"both", "upper", "lower"}
        As of `pattern_of`.
    maximize : bool
        True if the largest of repeated edges is kept, False if the smallest is.

    Raises
    ------
    TypeError, ValueError
        As of `pattern_of`; also if the weight of an edge is no finite number, a weight does not fit
        int64 or float64, or an edge has other weights in the two triangles of a matrix.
    """
    _check_triangle(triangle)
    if not isinstance(weight, Hashable):
        raise TypeError(f"weight must be the name of an attribute; got {weight!r}")
    if isinstance(source, Graph):
        graph = _checked_graph(source)
        ones = np.ones(graph.indices.size, np.int64)
        return graph if graph.weights is not None else graph._replace(weights=ones)
    best: np.ufunc = np.maximum if maximize else np.minimum
    if is_networkx(source):
        edges = numbered_edges(source, weight)
        n = checked_shape((len(edges.nodes),) * 2)[0]
        ones, name = np.ones(edges.tails.size, np.int64), f"weight {weight!r}"
        values = ones if weight is None else _real_numbers(edges.weights, name)
        is_edge = edges.tails != edges.heads
        tails, heads, values = (part[is_edge] for part in (edges.tails, edges.heads, values))
        return Graph(*_best_joined(n, tails, heads, _finite(values, name), best), nodes=edges.nodes)
    entries = _entries_of(source)
    name = "weights" if isinstance(entries, _EdgeList) else "the matrix"
    n, values = entries.shape[0], _weights_of(entries, name)
    if isinstance(entries, Compressed) and triangle == "both" and entries.is_canonical:
        indptr, indices = entries.pattern()
        symmetry = symmetry_on_host(indptr, indices, values)
        if symmetry.is_symmetric:
            kept: Any = indptr, indices, values
            kept = _without_loops(*kept) if symmetry.loops else kept
            return Graph(kept[0], kept[1], _finite(kept[2], name))
    rows, cols = _ends(entries)
    rows, cols, values = _in_triangle(triangle, entries, rows, cols, values)
    values = _finite(values, name)
    if triangle == "both" and not isinstance(entries, _EdgeList):
        _check_alike(n, rows, cols, values, best)
    return Graph(*_best_joined(n, rows, cols, values, best))


# -- from anything -------------------------------------------------------------------------------


class _EdgeList(NamedTuple):
    """Edges by their ends, as given; the numbers are checked."""

    rows: np.ndarray
    cols: np.ndarray
    data: Any
    shape: tuple[int, int]


_Entries = Compressed | Edges | _EdgeList


def _entries_of(source: Any) -> _Entries:
    """The entries of a matrix or of an edge list, on the host."""
    if is_tensor(source):
        source = source_of(source)
    if isinstance(source, tuple) and len(source) == 2:
        return _edge_list(*source)
    if isinstance(source, tuple) or is_sparse(source):
        return _on_host(compressed_of(source))
    array = array_of(np, as_array(source, "the graph"))
    if not array.size and array.shape in ((0,), (0, 2)):
        return _edge_list(array, None)
    if array.ndim == 2 and array.shape == (2, 2):
        raise ValueError(
            "a 2 x 2 array may be a matrix or a list of two edges: give edges as (edges, None), "
            "and a matrix as a sparse one"
        )
    if array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind in "iu":
        return _edge_list(array, None)
    if array.dtype.kind not in "biufc":
        raise TypeError(
            "the graph must be a sparse matrix, a boolean or numeric array, an edge list or a "
            f"networkx graph; got {type(source).__name__} (dtype {array.dtype})"
            f"{hint_of_type(array.dtype)}"
        )
    if array.ndim != 2:
        raise ValueError(f"a dense graph must have 2 dimensions; got {array.ndim}")
    if array.shape[0] != array.shape[1]:
        raise ValueError(
            f"a dense graph must be square; got shape {array.shape}; edges are given as (edges, "
            "weights), with integers of shape (m, 2) and m numbers or None"
        )
    rows, cols = array.nonzero()
    return edges_of(rows, cols, checked_shape(array.shape), array[rows, cols])


def _on_host(entries: Compressed | Edges) -> Compressed | Edges:
    _check_square(entries.shape)
    data = None if entries.data is None else array_of(np, as_array(entries.data, "data"))
    if isinstance(entries, Compressed):
        arrays = array_of(np, entries.indptr), array_of(np, entries.indices)
        return entries._replace(indptr=arrays[0], indices=arrays[1], data=data)
    return Edges(array_of(np, entries.rows), array_of(np, entries.cols), data, entries.shape)


def _edge_list(edges: Any, weights: Any) -> _EdgeList:
    ends = array_of(np, as_array(edges, "edges"))
    if ends.size == 0:
        ends = np.zeros((0, 2), np.int32)
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise ValueError(f"edges must have shape (m, 2); got {ends.shape}")
    rows, cols = index_array(ends[:, 0], "edges"), index_array(ends[:, 1], "edges")
    if ends.size and int(ends.min()) < 0:
        raise ValueError(f"edges: vertex {int(ends.min())} is below 0")
    n = int(ends.max()) + 1 if ends.size else 0
    checked = edges_of(rows, cols, checked_shape((n, n)))
    data = None if weights is None else array_of(np, as_array(weights, "weights"))
    return _EdgeList(checked.rows, checked.cols, data, checked.shape)


def _ends(entries: _Entries) -> tuple[np.ndarray, np.ndarray]:
    """The row and the column of each entry."""
    if not isinstance(entries, Compressed):
        return entries.rows, entries.cols
    major = csr_on_host().owners(entries.indptr, entries.indices)
    return (major, entries.indices) if entries.is_by_rows else (entries.indices, major)


def _in_triangle(
    triangle: str, entries: _Entries, rows: np.ndarray, cols: np.ndarray, *values: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Those entries of a matrix that are edges."""
    if triangle == "both" or isinstance(entries, _EdgeList):
        is_edge = rows != cols
    else:
        is_edge = rows < cols if triangle == "upper" else rows > cols
    return tuple(array[is_edge] for array in (rows, cols, *values))


# -- one entry from each end -----------------------------------------------------------------------


def _joined(n: int, rows: np.ndarray, cols: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """CSR of edges from both of their ends."""
    is_edge = rows != cols
    rows, cols = rows[is_edge], cols[is_edge]
    return csr_on_host().from_edges(_both(rows, cols), _both(cols, rows), n)


def _best_joined(
    n: int, rows: np.ndarray, cols: np.ndarray, values: np.ndarray, best: np.ufunc
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSR of edges, no loops among them, from both of their ends, with the best weight of each."""
    return _merged(n, _both(rows, cols), _both(cols, rows), _both(values, values), best)


def _both(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.concatenate([one, other])


def _merged(
    n: int, rows: np.ndarray, cols: np.ndarray, values: np.ndarray, best: np.ufunc
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Canonical CSR with the best of repeated entries."""
    from scipy.sparse import coo_array

    places = np.arange(rows.size, dtype=np.int32 if rows.size < 2**31 else np.int64)
    matrix = coo_array((places, (rows, cols)), shape=(n, n))
    matrix.has_canonical_format = True  # else `tocsr` sums repeated entries
    matrix = matrix.tocsr()
    matrix.sort_indices()
    indptr, indices, values = matrix.indptr, matrix.indices, values[matrix.data]
    if indices.size:
        is_first = np.ones(indices.size, bool)
        is_first[1:] = indices[1:] != indices[:-1]
        is_first[indptr[:-1][np.diff(indptr) > 0]] = True
        if not is_first.all():
            values = best.reduceat(values, is_first.nonzero()[0])
            indptr = np.concatenate([[0], is_first.cumsum()])[indptr]
            indices = indices[is_first]
    offsets = np.int32 if indices.size < 2**31 else np.int64
    return exactly(indptr, offsets), exactly(indices, np.int32), values


def _without_loops(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Canonical CSR without its diagonal."""
    is_edge = csr_on_host().owners(indptr, indices) != indices
    kept = np.concatenate([[0], is_edge.cumsum()])[indptr].astype(indptr.dtype)
    return kept, indices[is_edge], None if values is None else values[is_edge]


# -- checks ----------------------------------------------------------------------------------------


def _check_triangle(triangle: str) -> None:
    if not (isinstance(triangle, str) and triangle in TRIANGLES):
        raise ValueError(f"triangle must be one of {TRIANGLES}; got {triangle!r}")


def _checked_graph(graph: Graph) -> Graph:
    """A Graph, which anybody may have made of any arrays."""
    arrays = [part for part in graph[:3] if part is not None]
    entries = _on_host(compressed_of((*arrays, (graph.order,) * 2)))
    assert isinstance(entries, Compressed)
    weights = None if graph.weights is None else _weights_of(entries, "weights")
    symmetry = symmetry_on_host(*entries.pattern(), weights)
    if not entries.is_canonical or symmetry.loops or not symmetry.is_symmetric:
        raise ValueError(
            "a Graph must have each edge once from both of its ends, with one weight, sorted, and "
            "no edge from a vertex to itself"
        )
    if graph.nodes is not None and len(graph.nodes) != graph.order:
        raise ValueError(f"a Graph of {graph.order} vertices has {len(graph.nodes)} nodes")
    indptr, indices = array_of(np, graph.indptr), array_of(np, graph.indices)
    weights = None if weights is None else _finite(weights, "weights")
    return Graph(indptr, exactly(indices, np.int32), weights, graph.nodes)


def _check_square(shape: tuple[int, ...]) -> None:
    if shape[0] != shape[1]:
        raise ValueError(f"the matrix of an undirected graph must be square; got shape {shape}")


def _check_alike(
    n: int, rows: np.ndarray, cols: np.ndarray, values: np.ndarray, best: np.ufunc
) -> None:
    """Check that edges stored in both triangles have the same weight in both."""
    indptr, indices, values = _merged(n, rows, cols, values, best)
    rows = csr_on_host().owners(indptr, indices)
    pairs = _both(rows, indices), _both(indices, rows), _both(values, values)
    indptr, indices, low = _merged(n, *pairs, np.minimum)
    _, _, high = _merged(n, *pairs, np.maximum)
    stray = first_true(low != high)
    if stray is not None:
        row, col = int(csr_on_host().owners(indptr, indices)[stray]), int(indices[stray])
        raise ValueError(
            f"edge ({row}, {col}) has the weight {low[stray]} in one triangle and {high[stray]} in "
            "the other: choose one by triangle='upper' or 'lower'"
        )


def _weights_of(entries: _Entries, name: str) -> np.ndarray:
    """The weights of all entries; ones if there are none."""
    count = entries.indices.size if isinstance(entries, Compressed) else entries.rows.size
    if entries.data is None:
        return np.ones(count, np.int64)
    if not isinstance(entries, _EdgeList):
        return _real_numbers(entries.values(), name)
    if entries.data.shape != (count,):
        raise ValueError(
            f"weights must be one number for each of the {count} edges; got shape "
            f"{entries.data.shape}"
        )
    return _real_numbers(entries.data, name)


def _real_numbers(values: Any, name: str) -> np.ndarray:
    """The weights as int64 or float64."""
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be real numbers; got dtype {values.dtype}")
    if values.dtype.kind == "f":
        return exactly(values, np.float64)
    if values.dtype.kind == "u" and values.size and int(values.max()) >= 2**63:
        raise ValueError(f"{name}: {int(values.max())} does not fit int64")
    return exactly(values, np.int64)


def _finite(weights: np.ndarray, name: str) -> np.ndarray:
    """The weights of what are edges, checked; loops and the other triangle may have any."""
    stray = first_true(~np.isfinite(weights)) if weights.dtype.kind == "f" else None
    if stray is not None:
        raise ValueError(f"{name}: a weight is {weights[stray]}, but all must be finite")
    return weights
