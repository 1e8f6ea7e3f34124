"""The result of `gpumatch.maximum_matching` with capacities."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpumatch.numeric.arrays import array_module
from gpumatch.results.pairs import Labels, in_nodes, matrix_of, side_by_side

__all__ = ["BMatching"]


class BMatching:
    """Edges of a bipartite graph, of which no vertex has more than its capacity, with their proof.

    Attributes
    ----------
    row_ind, col_ind : int64 arrays
        The edges, by row and then by column.
    size : int
        Number of edges.
    row_degree, col_degree : int64 arrays of length nrows, ncols
        How many of the edges each row and each column has.
    row_capacity, col_capacity : int64 arrays of length nrows, ncols
        How many it may have.
    proven : bool
        True if the algorithm has ended by itself, so that there are as many edges as possible.
    stats : dict
        ``algorithm``, ``backend``, ``start_size``, ``phases``, ``levels``, ``seconds`` by part, and
        ``trace``: one dict a phase.

    Notes
    -----
    ``rows, cols = result`` unpacks to `row_ind` and `col_ind`. If rows and columns are nodes of a
    networkx graph, `edges`, `to_dict` and `vertex_cover` have nodes.
    """

    def __init__(
        self,
        edges: tuple[Any, Any],
        capacities: tuple[Any, Any],
        cover: tuple[Any, ...] | None,
        labels: Labels,
        stats: dict[str, Any],
    ) -> None:
        self.row_ind, self.col_ind = edges
        self.row_capacity, self.col_capacity = capacities
        self.size = int(self.row_ind.size)
        self.proven = cover is not None
        self.stats = stats
        self._cover, self._labels = cover, labels

    def __repr__(self) -> str:
        proof = "maximum" if self.proven else "not proven maximum"
        return f"BMatching(size {self.size}, {proof})"

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Any]:
        return iter((self.row_ind, self.col_ind))

    @functools.cached_property
    def row_degree(self) -> Any:
        """How many of the edges each row has."""
        return self._degree(self.row_ind, self.row_capacity)

    @functools.cached_property
    def col_degree(self) -> Any:
        """How many of the edges each column has."""
        return self._degree(self.col_ind, self.col_capacity)

    @staticmethod
    def _degree(ends: Any, capacity: Any) -> Any:
        return array_module(ends).bincount(ends, minlength=capacity.size).astype(np.int64)

    def cover_ind(self) -> tuple[Any, Any]:
        """The rows and the columns of the cover, as int64 arrays; see `vertex_cover`."""
        if self._cover is None:
            raise ValueError("the b-matching is not maximum: it has no cover")
        rows, cols = self._cover
        return rows, cols

    def vertex_cover(self) -> tuple[Any, Any]:
        """The rows and the columns of the cover that proves the b-matching maximum.

        An edge of a b-matching has an end in the cover, or is one of the edges that the cover
        misses. So no b-matching has more edges than the capacities of the cover's vertices and the
        number of edges that it misses add up to. Here they add up to `size`.

        Returns
        -------
        rows, cols : int64 arrays, or lists of nodes for a networkx graph

        Raises
        ------
        ValueError
            If the run was stopped before the b-matching was maximum.

        Examples
        --------
        >>> import gpumatch as gm
        >>> m = gm.maximum_matching([[1, 1, 1], [1, 0, 0], [1, 0, 0]], row_capacity=2)
        >>> m.size, [part.tolist() for part in m.vertex_cover()]
        (3, [[0], [0]])
        """
        return self._in_nodes(*self.cover_ind())

    def edges(self) -> Any:
        """The edges, by row.

        Returns
        -------
        int64 array of shape (size, 2), or list of pairs of nodes for a networkx graph
        """
        if self._labels != (None, None):
            return list(zip(*self._in_nodes(self.row_ind, self.col_ind)))
        return side_by_side(self.row_ind, self.col_ind)

    def to_dict(self) -> dict[Any, list[Any]]:
        """The columns of each row that has any, as a list.

        Examples
        --------
        >>> import gpumatch as gm
        >>> gm.maximum_matching([[1, 1], [1, 0], [0, 0]], row_capacity=2, col_capacity=2).to_dict()
        {0: [0, 1], 1: [0]}
        """
        found: dict[Any, list[Any]] = {}
        pairs = self.edges()
        for row, col in pairs if isinstance(pairs, list) else pairs.tolist():
            found.setdefault(row, []).append(col)
        return found

    def to_matrix(self, values: Any = None) -> Any:
        """The edges as a sparse matrix of shape (nrows, ncols), with one entry for each.

        Parameters
        ----------
        values : array of length size, optional
            The values of the entries, in the order of `row_ind`; by default ones of float64.

        Returns
        -------
        scipy.sparse.csr_array or cupyx.scipy.sparse.csr_matrix
        """
        cols = self.col_ind.astype(np.int32)
        shape = self.row_capacity.size, self.col_capacity.size
        return matrix_of(self.row_degree, cols, shape, values, "edges")

    def _in_nodes(self, rows: Any, cols: Any) -> tuple[Any, Any]:
        if self._labels == (None, None):
            return rows, cols
        return in_nodes((rows, cols), self._labels)
