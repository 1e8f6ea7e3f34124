"""Costs of the edges of a sparse graph."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np

from gpumatch.bipartite import BipartiteGraph
from gpumatch.contracts import Entries, Tile
from gpumatch.costs.base import (
    Costs,
    Extent,
    check_extent,
    check_sums,
    extent_of,
    sum_dtype,
    tile_size,
)
from gpumatch.dispatch.by_device import (
    count_matched,
    csr_for,
    csr_on_host,
    find_on_device,
    values_of_mates_on_host,
)
from gpumatch.interop.compressed import compressed_of
from gpumatch.interop.networkx import labelled_edges
from gpumatch.interop.sparse import labels_of
from gpumatch.numeric.arrays import array_of, exactly, first_true

__all__ = ["SparseCosts"]

UNFOLDING_BYTES = 32  # an entry, while a GPU makes a matrix of them


class SparseCosts(Costs):
    """A graph with the cost of every edge; other pairs are forbidden.

    Parameters
    ----------
    source : sparse matrix or tuple
        A SciPy or cupyx sparse matrix, ``(indptr, indices, data, shape)`` as CSR, or a torch sparse
        tensor; boolean, integer or floating. Stored zeros are edges of cost 0. DIA fills its
        diagonals with zeros, so it must have none. Repeated entries are summed, as int64 or
        float64. On the host all arrays are copied, so the caller's may change afterwards. On a
        device they are shared if the entries are sorted, and none is repeated.
    summed : bool
        As of `DenseCosts`.

    Attributes
    ----------
    graph : BipartiteGraph
        The stored pairs.
    indptr, indices : arrays
        Those of the graph: the columns of each row.
    weights : array of length nnz
        Their costs, in the same order.
    low, high, largest : int or float
        As in `DenseCosts`.

    Raises
    ------
    TypeError, ValueError
        As for `DenseCosts` and `BipartiteGraph`.

    Examples
    --------
    >>> from gpumatch.costs import SparseCosts
    >>> SparseCosts(([0, 1, 3], [0, 0, 1], [4.0, 0.0, 1.0], (2, 2)))
    SparseCosts(2 rows, 2 columns, 3 edges, float64, host)
    """

    def __init__(self, source: Any, *, summed: bool = True) -> None:
        entries = compressed_of(source, valued=True)
        given = entries.values()
        if isinstance(given, np.ndarray):
            given = given.copy()  # no search ends for sure if a number becomes NaN meanwhile
            entries = entries._replace(data=given)
        extent = extent_of(given)
        check_extent(extent, min(entries.shape), summed=summed)
        if getattr(source, "format", None) == "dia" and given.size != source.nnz:
            raise ValueError(
                "the costs are in DIA, which fills diagonals with zeros, so a cost of 0 looks like "
                "no entry: pass them in another format"
            )
        indptr, indices, weights = entries.canonical()
        if weights.size < given.size:  # repeated entries are summed
            extent = extent_of(weights)
            check_extent(extent, min(entries.shape), summed=summed)
        graph = BipartiteGraph.of_rows(indptr, indices, entries.shape)
        graph.row_labels, graph.col_labels = labels_of(source)
        self._hold(graph, weights, extent)

    @classmethod
    def from_networkx(
        cls,
        G: Any,
        weight: Hashable | None = "weight",
        row_nodes: Iterable[Hashable] | None = None,
        *,
        summed: bool = True,
    ) -> SparseCosts:
        """Make costs of the edges of a networkx graph.

        Parameters
        ----------
        G : networkx.Graph
            No multigraph, because that may have several costs for an edge.
        weight : edge attribute or function, optional
            What an edge costs. An edge without the attribute costs 1, and with None every edge
            does. A function is called as ``weight(row, column, attributes)``; of a directed graph,
            with the edge's own ends.
        row_nodes : iterable of nodes, optional
            As in `BipartiteGraph.from_networkx`.
        summed : bool
            As of the class.

        Raises
        ------
        TypeError, ValueError
            As for `BipartiteGraph.from_networkx` and for the class; also for a multigraph, for a
            directed graph that has an edge in both directions, if no edge has the attribute, and
            if a weight is in no 64-bit integer or float exactly.

        Examples
        --------
        >>> import networkx as nx
        >>> from gpumatch.costs import SparseCosts
        >>> G = nx.Graph()
        >>> G.add_weighted_edges_from([("a", "x", 3), ("a", "y", 1), ("b", "x", 2)])
        >>> SparseCosts.from_networkx(G).weights.tolist()
        [3, 1, 2]
        """
        edges = labelled_edges(G, row_nodes, weight)
        graph = BipartiteGraph.of_labelled(edges)
        if edges.weights is None:
            return cls.of(graph, np.ones(graph.nnz, np.int64))
        if graph.nnz < edges.rows.size:
            raise ValueError("the directed graph has an edge in both directions, with two costs")
        unknown = first_true(edges.weights != edges.weights)
        if unknown is not None:
            ends = edges.row_labels[edges.rows[unknown]], edges.col_labels[edges.cols[unknown]]
            raise ValueError(f"weight {weight!r} of edge {ends!r} is NaN or None")
        check_extent(extent_of(edges.weights), min(graph.shape), summed=summed)
        return cls.of(graph, edges.weights[_order(np, edges.rows, edges.cols)])

    @property
    def shape(self) -> tuple[int, int]:
        return self.graph.shape

    @property
    def dtype(self) -> Any:
        return self.weights.dtype

    @property
    def xp(self) -> Any:
        return self.graph.xp

    @property
    def nnz(self) -> int:
        return self.graph.nnz

    @property
    def nbytes(self) -> int:
        return self.graph.nbytes + int(self.weights.nbytes)

    @property
    def is_sparse(self) -> bool:
        return True

    @property
    def labels(self) -> tuple[list[Hashable] | None, list[Hashable] | None]:
        return self.graph.row_labels, self.graph.col_labels

    @property
    def unfolding_bytes(self) -> int:
        return UNFOLDING_BYTES * self.nnz

    def tiles(self) -> Iterator[slice]:
        step = tile_size(on_device=self.on_device)
        starts = self.xp.arange(0, self.nnz, step, self.indptr.dtype)
        ends = self.xp.searchsorted(self.indptr, starts, side="right").tolist()
        bounds = sorted({0, *(end - 1 for end in ends), self.shape[0]})
        return map(slice, bounds, bounds[1:])

    def tile(self, rows: slice) -> Tile:
        begin, end = int(self.indptr[rows.start]), int(self.indptr[rows.stop])
        indptr, cols = self.indptr[rows.start : rows.stop + 1] - begin, self.indices[begin:end]
        own = csr_for(cols).owners(indptr, cols) + rows.start
        return own, cols, self.weights[begin:end]

    def at(self, rows: Any, cols: Any) -> Any:
        places, _ = self.graph.find(array_of(self.xp, rows), array_of(self.xp, cols))
        return self.weights[places]

    def of_mates(self, row_to_col: Any, threads: int = 1) -> Any:
        if self.on_device:
            if not self.nnz or count_matched(row_to_col) < row_to_col.size:
                return super().of_mates(row_to_col)
            places, _ = find_on_device(self.indptr, self.indices, None, row_to_col)
            return self.weights[places]
        indptr, indices, weights = self.indptr, self.indices, self.weights
        found = values_of_mates_on_host(indptr, indices, weights, row_to_col, threads)
        is_matched = row_to_col >= 0
        return found if is_matched.all() else found[is_matched]

    def dense(self, out: Any = None) -> Any:
        if out is None:
            out = self._room_for_matrix("the matrix of sparse costs")
        out.fill(self.far)
        out[self.graph.edges()] = self.weights
        return out

    def entries(self) -> Entries:
        return self.indptr, self.indices, self.weights

    def stored(self) -> SparseCosts:
        return self

    def to_host(self) -> SparseCosts:
        if not self.on_device:
            return self
        return self._of(self.graph.to_host(), array_of(np, self.weights), self.extent)

    def to_device(self) -> SparseCosts:
        if self.on_device:
            return self
        import cupy

        self._check_room_for_copy()
        return self._of(self.graph.to_device(), cupy.asarray(self.weights), self.extent)

    def problem(self, maximize: bool, transposed: bool) -> SparseCosts:
        self.check_sign(maximize)
        costs = self._as_sums()
        if maximize:
            costs = self._with(-costs.weights, self.extent.negated())
        if not self.is_finite:
            costs = costs._kept(costs.weights < math.inf)
        return costs.transpose() if transposed else costs

    def as_float(self) -> SparseCosts:
        return self._with(self.weights.astype(np.float64), self.extent.as_float())

    def divided(self, power: int) -> SparseCosts:
        weights = self.weights.astype(np.float64)
        weights *= 2.0**-power
        return self._with(weights, self.extent.divided(power))

    def transpose(self) -> SparseCosts:
        if not self.on_device and not self.graph.has_cols:
            indptr, indices, weights = csr_on_host().transpose_values(
                *self.entries(), self.shape[1]
            )
            graph = BipartiteGraph.of_rows(indptr, indices, self.shape[::-1])
            return self._of(graph, weights, self.extent)
        rows, cols = self.graph.edges()
        weights = self.weights[_order(self.xp, cols, rows)]
        return self._of(self.graph.transpose(), weights, self.extent)

    def restricted(self, rows: Any, cols: Any) -> SparseCosts:
        xp = self.xp
        rows, cols = array_of(xp, rows), array_of(xp, cols)
        if not self.on_device:
            part = csr_on_host().part(*self._as_sums().entries(), rows, cols, self.shape[1])
            return self.of_csr((rows.size, cols.size), *part)
        row_number = xp.full(self.shape[0], -1, np.int32)
        col_number = xp.full(self.shape[1], -1, np.int32)
        row_number[rows] = xp.arange(rows.size)
        col_number[cols] = xp.arange(cols.size)
        of_rows, of_cols = self.graph.edges()
        of_rows, of_cols = row_number[of_rows], col_number[of_cols]
        inside = (of_rows >= 0) & (of_cols >= 0)
        of_rows, of_cols = of_rows[inside], of_cols[inside]
        weights = self._as_sums().weights[inside][_order(xp, of_rows, of_cols)]
        graph = BipartiteGraph.from_edges(of_rows, of_cols, (rows.size, cols.size))
        return self.of(graph, weights)

    def of_pairs(self, indptr: Any, indices: Any, weights: Any) -> SparseCosts:
        return self.of_csr(self.shape, indptr, indices, weights)

    def up_to(self, limit: float) -> SparseCosts:
        return self._kept(self.weights <= limit)

    def below(self, limits: Any) -> SparseCosts:
        rows, _ = self.graph.edges()
        weights = self.weights.astype(sum_dtype(self.weights.dtype)) - limits[rows]
        check_sums(extent_of(weights).largest, min(self.shape))
        return self.of(self.graph, weights)

    def within(self, limits: Any, maximize: bool) -> SparseCosts:
        own = limits[self.graph.edges()[0]]
        return self._kept(self.weights >= own if maximize else self.weights <= own)

    def pattern(self) -> BipartiteGraph:
        return self.graph if self.is_finite else self._kept(abs(self.weights) < math.inf).graph

    def allows(self, rows: Any, cols: Any) -> Any:
        places, are_edges = self.graph.find(array_of(self.xp, rows), array_of(self.xp, cols))
        if self.nnz == 0:
            return are_edges
        return are_edges & (abs(self.weights[places]) < math.inf)

    def _as_sums(self) -> SparseCosts:
        """The same costs in the type of their sums; themselves if that is theirs."""
        weights = exactly(self.weights, sum_dtype(self.weights.dtype))
        return self if weights is self.weights else self._with(weights, self.extent)

    def _what_is_held(self) -> str:
        return f"{self.nnz} edges, {self.dtype}"

    def _kept(self, marks: Any) -> SparseCosts:
        """The costs of the marked edges only."""
        rows, cols = self.graph.edges()
        graph = BipartiteGraph.from_edges(rows[marks], cols[marks], self.shape)
        return self.of(graph, self.weights[marks])

    def _hold(self, graph: BipartiteGraph, weights: Any, extent: Extent) -> None:
        self.graph, self.weights = graph, weights
        self.indptr, self.indices = graph.indptr, graph.indices
        self.low, self.high, self.largest = extent

    def _with(self, weights: Any, extent: Extent) -> SparseCosts:
        """Other weights of the same edges, whose extent is known."""
        return self._of(self.graph, weights, extent)

    @classmethod
    def _of(cls, graph: BipartiteGraph, weights: Any, extent: Extent) -> SparseCosts:
        """The costs of weights that have passed the checks, and whose extent is known."""
        costs = cls.__new__(cls)
        costs._hold(graph, weights, extent)
        return costs

    @classmethod
    def of(
        cls, graph: BipartiteGraph, weights: Any, low: Any = None, high: Any = None
    ) -> SparseCosts:
        """The costs of a graph that has its rows -> columns, in the order of its edges.

        The least and the greatest are found, unless they are known; then all are finite.
        """
        is_known = low is not None
        extent = Extent(low, high, max(abs(low), abs(high))) if is_known else extent_of(weights)
        return cls._of(graph, weights, extent)

    @classmethod
    def of_csr(cls, shape: Any, indptr: Any, indices: Any, weights: Any) -> SparseCosts:
        """The costs of CSR arrays that are known to be right, each row's columns in order."""
        return cls.of(BipartiteGraph.of_rows(indptr, indices, shape), weights)


def _order(xp: Any, major: Any, minor: Any) -> Any:
    """The permutation that sorts by `major`, then by `minor`."""
    return xp.lexsort(xp.stack([minor, major]))
