"""The base of all results: pairs of rows and columns, in the forms that users need."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from gpumatch.dispatch.by_device import count_matched
from gpumatch.interop.sparse import csr_of
from gpumatch.numeric.arrays import array_module, array_of, as_array

__all__ = ["Labels", "Pairs", "in_nodes", "matrix_of", "side_by_side"]

Labels = tuple[list[Hashable] | None, list[Hashable] | None]  # of the rows, of the columns


class Pairs:
    """Pairs of a row and a column. Each row and each column is in at most one pair.

    Attributes
    ----------
    row_to_col, col_to_row : int32 arrays of length nrows, ncols
        The column of each row and the row of each column; -1 means unmatched.
    size : int
        Number of pairs.

    Notes
    -----
    If rows and columns are nodes of a networkx graph, `edges`, `to_dict`, `vertex_cover`,
    `unmatched_rows` and `unmatched_cols` have nodes. All other arrays have numbers of rows and
    columns.

    ``rows, cols = result`` unpacks to `row_ind` and `col_ind`, as SciPy's functions return them.
    """

    def __init__(
        self,
        row_to_col: Any,
        col_to_row: Any,
        labels: Labels = (None, None),
        size: int | None = None,
    ) -> None:
        self.row_to_col, self.col_to_row = row_to_col, col_to_row
        self.size = count_matched(row_to_col) if size is None else size
        self._labels = labels

    def __iter__(self) -> Iterator[Any]:
        return iter((self.row_ind, self.col_ind))

    @functools.cached_property
    def row_ind(self) -> Any:
        """The rows of the pairs, in increasing order: an int64 array of length `size`."""
        return (self.row_to_col >= 0).nonzero()[0]

    @functools.cached_property
    def col_ind(self) -> Any:
        """The columns of the pairs, in the order of `row_ind`: an int64 array."""
        return self.row_to_col[self.row_ind].astype(np.int64)

    @property
    def unmatched_rows(self) -> Any:
        """The rows that are in no pair: an int64 array, or a list of nodes."""
        return _named((self.row_to_col < 0).nonzero()[0], self._labels[0])

    @property
    def unmatched_cols(self) -> Any:
        """The columns that are in no pair: an int64 array, or a list of nodes."""
        return _named((self.col_to_row < 0).nonzero()[0], self._labels[1])

    def cover_ind(self) -> tuple[Any, Any]:
        """The rows and the columns of a vertex cover, as int64 arrays; see `vertex_cover`."""
        raise ValueError("these pairs have no vertex cover")

    def vertex_cover(self) -> tuple[Any, Any]:
        """The rows and the columns of a vertex cover with as many vertices as there are pairs.

        Every edge has its row or its column in the cover. The edges of a matching share no vertex,
        so each has its own vertex in the cover. So no matching has more pairs (König).

        Returns
        -------
        rows, cols : int64 arrays, or lists of nodes for a networkx graph

        Raises
        ------
        ValueError
            If the pairs are not known to be as many as possible.

        Notes
        -----
        For a matching, the first call makes one search, O(nrows + nnz). Only assignments of
        cardinality ``"maximum"`` have a cover.

        Examples
        --------
        >>> import networkx as nx, gpumatch as gm
        >>> G = nx.Graph(["ax", "bx", "cx", "cy"])
        >>> gm.maximum_matching(G).vertex_cover()
        (['c'], ['x'])
        """
        return self._in_nodes(*self.cover_ind())

    def edges(self) -> Any:
        """The pairs, by row.

        Returns
        -------
        int64 array of shape (size, 2), or list of pairs of nodes for a networkx graph
        """
        if self._labels != (None, None):
            return list(zip(*self._in_nodes(self.row_ind, self.col_ind)))
        return side_by_side(self.row_ind, self.col_ind)

    def to_dict(self) -> dict[Any, Any]:
        """The pairs as a dict without unmatched rows and columns.

        Returns
        -------
        dict
            The column of each matched row. For a networkx graph: the mate of each matched node of
            both sides, as networkx's own functions return and take it.

        Examples
        --------
        >>> import networkx as nx, gpumatch as gm
        >>> gm.maximum_matching([[1, 1], [1, 0], [0, 0]]).to_dict()
        {0: 1, 1: 0}
        >>> graph = gm.BipartiteGraph.from_networkx(nx.Graph(["ax", "ay", "bx"]), "ab")
        >>> gm.maximum_matching(graph).to_dict()
        {'a': 'y', 'b': 'x', 'y': 'a', 'x': 'b'}
        """
        if self._labels == (None, None):
            return dict(zip(self.row_ind.tolist(), self.col_ind.tolist()))
        pairs = self.edges()
        return {**dict(pairs), **{col: row for row, col in pairs}}

    def to_matrix(self, values: Any = None) -> Any:
        """The pairs as a sparse matrix of shape (nrows, ncols), with one entry for each pair.

        Parameters
        ----------
        values : array of length size, optional
            The values of the entries, in the order of `row_ind`; by default ones of float64.

        Returns
        -------
        scipy.sparse.csr_array or cupyx.scipy.sparse.csr_matrix
            The matrix, on the device of the pairs. cupyx has no integer matrices, so integers
            become float64 there.

        Raises
        ------
        ValueError
            If there is not one value for each pair.

        Examples
        --------
        >>> import numpy as np, gpumatch as gm
        >>> C = np.array([[4, 1, 3], [2, 0, 5]])
        >>> a = gm.assign(C)
        >>> a.to_matrix().toarray()
        array([[0., 1., 0.],
               [1., 0., 0.]])
        >>> a.to_matrix(a.pair_costs).toarray()
        array([[0, 1, 0],
               [2, 0, 0]])
        """
        is_matched = self.row_to_col >= 0
        shape = self.row_to_col.size, self.col_to_row.size
        return matrix_of(is_matched, self.row_to_col[self.row_ind], shape, values)

    def row_permutation(self) -> Any:
        """The order of rows that puts matched entries on the diagonal.

        Returns
        -------
        p : int array, length nrows
            ``A[p]`` has an entry at (c, c) for every matched column c < nrows. The rows without
            such a column fill the other places in increasing order.

        Examples
        --------
        >>> import numpy as np, gpumatch as gm
        >>> A = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
        >>> A[gm.maximum_matching(A).row_permutation()].diagonal().tolist()
        [1, 1, 1]
        """
        return _diagonal_order(self.row_to_col, self.col_to_row)

    def col_permutation(self) -> Any:
        """The order of columns that puts matched entries on the diagonal.

        Returns
        -------
        q : int array, length ncols
            ``A[:, q]`` has an entry at (r, r) for every matched row r < ncols. The columns without
            such a row fill the other places in increasing order.

        Examples
        --------
        >>> import numpy as np, gpumatch as gm
        >>> A = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
        >>> A[:, gm.maximum_matching(A).col_permutation()].diagonal().tolist()
        [1, 1, 1]
        """
        return _diagonal_order(self.col_to_row, self.row_to_col)

    def _in_nodes(self, rows: Any, cols: Any) -> tuple[Any, Any]:
        """The labels of rows and columns, or their numbers where they have no labels."""
        return _named(rows, self._labels[0]), _named(cols, self._labels[1])


def matrix_of(
    degrees: Any, cols: Any, shape: tuple[int, int], values: Any = None, things: str = "pairs"
) -> Any:
    """Pairs as a sparse matrix on their device, with one entry for each.

    Parameters
    ----------
    degrees : array
        The number of pairs of each row.
    cols : array
        Their columns, in the order of the rows.
    values : array, optional
        The values of the entries; by default ones of float64.
    things : str
        What an error calls the pairs.

    Raises
    ------
    ValueError
        If there is not one value for each pair.
    """
    xp = array_module(cols)
    data = xp.ones(cols.size) if values is None else array_of(xp, as_array(values, "values"))
    if data.shape != cols.shape:
        raise ValueError(
            f"values must be one for each of the {cols.size} {things}; got shape {data.shape}"
        )
    if xp is not np and data.dtype.kind in "iu":
        data = data.astype(np.float64)
    indptr = xp.zeros(shape[0] + 1, cols.dtype)
    xp.cumsum(degrees, dtype=cols.dtype, out=indptr[1:])
    return csr_of(data, cols, indptr, shape)


def side_by_side(rows: Any, cols: Any) -> Any:
    """Rows and columns of pairs as one array of shape (number of pairs, 2)."""
    pairs = rows.repeat(2).reshape(-1, 2)
    pairs[:, 1] = cols
    return pairs


def in_nodes(sides: tuple[Any, Any], labels: Labels) -> tuple[Any, Any]:
    """Rows and columns as nodes of a networkx graph, or as arrays of numbers on the host."""
    rows, cols = (array_of(np, numbers) for numbers in sides)
    return _named(rows, labels[0]), _named(cols, labels[1])


def _named(numbers: Any, labels: list[Hashable] | None) -> Any:
    """The labels of these numbers, or the numbers if there are no labels."""
    return numbers if labels is None else [labels[i] for i in numbers.tolist()]


def _diagonal_order(mates: Any, partners: Any) -> Any:
    """An order of one side's vertices with each matched one at the place of its mate, if any."""
    order = mates.copy()
    diagonal = min(mates.size, partners.size)
    order[:diagonal] = partners[:diagonal]
    order[diagonal:] = -1
    is_left = order < order.size
    is_left[order[order >= 0]] = False
    order[(order < 0).nonzero()[0]] = is_left.nonzero()[0]
    return order
