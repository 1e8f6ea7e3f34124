"""The graph every algorithm works on: rows and columns joined by edges, in CSR.

Encodings
---------
``indptr, indices``          rows -> columns: row r's columns are ``indices[indptr[r]:indptr[r+1]]``
``col_indptr, col_indices``  columns -> rows, the same the other way round

Neighbours are sorted and distinct. Vertex numbers are int32. Offsets are int32, or int64 if there
are 2**31 edges or more. Both directions are on one device: NumPy arrays on the host, CuPy arrays on
a GPU. One direction is made from the other when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from gpumatch.dispatch.by_device import (
    csr_for,
    find_on_device,
    find_on_host,
    require_device_memory,
)
from gpumatch.interop.compressed import check_one_home, checked_shape, compressed_of, edges_of, held
from gpumatch.interop.networkx import (
    LabelledEdges,
    is_networkx,
    labelled_edges,
    networkx_graph,
)
from gpumatch.interop.sparse import csr_of, labels_of
from gpumatch.interop.tensors import is_tensor, source_of
from gpumatch.numeric.arrays import (
    array_module,
    array_of,
    as_array,
    hint_of_type,
    index_array,
    is_sparse,
)

Csr = tuple[Any, Any]  # (indptr, indices)


class BipartiteGraph:
    """A bipartite graph held as CSR in both directions.

    Parameters
    ----------
    source : sparse, dense or networkx graph, or tuple
        - any SciPy sparse array or matrix, any of cupyx: stored entries are edges, stored zeros
          too (except in DIA, which stores its padding: there the nonzero entries);
        - ``(indptr, indices, shape)`` or ``(indptr, indices, data, shape)``: CSR arrays of NumPy,
          CuPy or anything that speaks ``__cuda_array_interface__`` or DLPack; indices may be
          unsorted and repeated, ``data`` is not looked at;
        - a torch tensor, dense or sparse;
        - a two-dimensional dense array: nonzero entries are edges, NaN too;
        - a networkx graph; `from_networkx` says which nodes are rows.

    Attributes
    ----------
    nrows, ncols, nnz : int
        Number of rows, columns and edges.
    row_labels, col_labels : list or None
        The networkx nodes behind the rows and columns.
    blocks : list of BipartiteGraph
        The graphs that `batch` has put side by side; empty otherwise.

    Raises
    ------
    TypeError
        If indices are not integers, or the source is of no known kind.
    ValueError
        If indices are out of range, offsets do not describe the arrays, or there are more than
        2**31 - 2**20 vertices a side.

    Notes
    -----
    O(nrows + ncols + nnz) if the indices are sorted, a sort otherwise. On the host the graph has
    arrays of its own, so those of the caller may change afterwards. On a device it shares the
    caller's arrays if they have the right form already: do not change these afterwards.

    Examples
    --------
    >>> import numpy as np
    >>> from gpumatch import BipartiteGraph
    >>> graph = BipartiteGraph(np.array([[1, 1, 0], [0, 0, 1]]))
    >>> graph
    BipartiteGraph(2 rows, 3 columns, 3 edges, host)
    >>> graph.col_indices.tolist()
    [0, 0, 1]
    """

    def __init__(self, source: Any) -> None:
        self._hold(_parts_of(source))

    # -- other ways in ---------------------------------------------------------------------------

    @classmethod
    def from_edges(
        cls, rows: Any, cols: Any, shape: tuple[int, int] | None = None
    ) -> BipartiteGraph:
        """Make a graph from two arrays that list the edges' rows and columns.

        Parameters
        ----------
        rows, cols : integer arrays of one length, NumPy or CuPy
            Repeated edges count once.
        shape : (int, int), optional
            Numbers of rows and columns; by default just enough.

        Raises
        ------
        TypeError, ValueError
            As for the class; also if the arrays differ in length.

        Examples
        --------
        >>> from gpumatch import BipartiteGraph
        >>> BipartiteGraph.from_edges([0, 0, 1], [1, 2, 1])
        BipartiteGraph(2 rows, 3 columns, 3 edges, host)
        """
        rows, cols = index_array(rows, "rows"), index_array(cols, "cols")
        if shape is None:
            shape = (_length_for(rows), _length_for(cols))
        return cls._from_parts(_parts_of_edges(rows, cols, checked_shape(shape)))

    @classmethod
    def batch(cls, sources: Iterable[Any]) -> BipartiteGraph:
        """Put many graphs side by side, as the blocks of one, so that one call matches them all.

        Parameters
        ----------
        sources : iterable of BipartiteGraph, or of what it is made from
            All on the host, or all on one device.

        Returns
        -------
        BipartiteGraph
            With the graphs as `blocks`. `Matching.split` of its matching gives theirs.

        Raises
        ------
        ValueError
            If there are none, or some are on the host and others on a device.

        Examples
        --------
        >>> import gpumatch as gm
        >>> graph = gm.BipartiteGraph.batch([[[1, 1], [1, 0]], [[0, 1, 1]]])
        >>> graph
        BipartiteGraph(3 rows, 5 columns, 5 edges, host)
        >>> [m.row_to_col.tolist() for m in gm.maximum_matching(graph).split()]
        [[1, 0], [1]]
        """
        blocks = [as_bipartite(source) for source in sources]
        if not blocks:
            raise ValueError("a batch needs at least one graph")
        for other in blocks[1:]:
            check_one_home(blocks[0].indices, other.indices, "the graphs of a batch")
        xp, shapes = blocks[0].xp, [block.shape for block in blocks]
        shape = checked_shape(tuple(map(sum, zip(*shapes))))
        indptrs, indices, edges, first = [blocks[0].indptr[:1].astype(np.int64)], [], 0, 0
        for block in blocks:
            indptrs.append(block.indptr[1:].astype(np.int64) + edges)
            indices.append(block.indices.astype(np.int64) + first)
            edges, first = edges + block.nnz, first + block.ncols
        graph = cls.of_rows(*held(xp.concatenate(indptrs), xp.concatenate(indices)), shape)
        graph.blocks = blocks
        return graph

    @classmethod
    def from_networkx(cls, G: Any, row_nodes: Iterable[Hashable] | None = None) -> BipartiteGraph:
        """Make a graph from a networkx graph.

        Parameters
        ----------
        G : networkx.Graph
            Directions and parallel edges do not matter.
        row_nodes : iterable of nodes, optional
            The nodes that become rows, in this order; all others become columns. By default the
            nodes with attribute ``bipartite=0`` are rows and those with 1 columns. Nodes without
            the attribute go where those that have it in their component let them. In a component
            without it, the first node is a row.

        Raises
        ------
        ValueError
            If an edge joins two rows or two columns, there is an odd cycle, which is named, or a
            node's attribute is neither 0 nor 1.

        Examples
        --------
        >>> import networkx as nx
        >>> from gpumatch import BipartiteGraph
        >>> graph = BipartiteGraph.from_networkx(nx.Graph(["ax", "ay", "by"]), "ab")
        >>> graph, graph.col_labels
        (BipartiteGraph(2 rows, 2 columns, 3 edges, host), ['x', 'y'])
        """
        return cls.of_labelled(labelled_edges(G, row_nodes))

    @classmethod
    def of_rows(cls, indptr: Any, indices: Any, shape: tuple[int, int]) -> BipartiteGraph:
        """A graph of CSR arrays that are known to be right, each row's columns in order."""
        return cls._from_parts(_Parts(shape, (indptr, indices)))

    @classmethod
    def of_labelled(cls, edges: LabelledEdges) -> BipartiteGraph:
        """Make a graph from what `gpumatch.interop.networkx.labelled_edges` gives."""
        return cls._from_parts(_parts_of_networkx(edges))

    # -- what it holds ---------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        return self.nrows, self.ncols

    @property
    def indptr(self) -> Any:
        return self._row_arrays()[0]

    @property
    def indices(self) -> Any:
        return self._row_arrays()[1]

    @property
    def col_indptr(self) -> Any:
        return self._col_arrays()[0]

    @property
    def col_indices(self) -> Any:
        return self._col_arrays()[1]

    @property
    def on_device(self) -> bool:
        """True if the arrays are on a GPU."""
        return not isinstance(self._either()[0], np.ndarray)

    @property
    def xp(self) -> Any:
        """The library of the arrays: NumPy or CuPy."""
        return array_module(self._either()[0])

    @property
    def has_rows(self) -> bool:
        """True if rows -> columns is there already, so that `indptr` costs nothing."""
        return self._rows is not None

    @property
    def has_cols(self) -> bool:
        """True if columns -> rows is there already, so that `col_indptr` costs nothing."""
        return self._cols is not None

    @property
    def nnz(self) -> int:
        return int(self._either()[1].size)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays made so far."""
        return sum(a.nbytes for pair in (self._rows, self._cols) if pair for a in pair)

    def __repr__(self) -> str:
        where = f"GPU {self._either()[0].device.id}" if self.on_device else "host"
        return f"BipartiteGraph({self.nrows} rows, {self.ncols} columns, {self.nnz} edges, {where})"

    def edges(self) -> tuple[Any, Any]:
        """The row and the column of every edge, as two int32 arrays.

        They are in the order of the CSR that is there. One of the arrays may be that CSR's own.
        """
        arrays = self._either()
        major, minor = csr_for(arrays[1]).owners(*arrays), arrays[1]
        return (major, minor) if self.has_rows else (minor, major)

    def find(self, rows: Any, cols: Any) -> tuple[Any, Any]:
        """The places of pairs among the edges, and which pairs are edges.

        Parameters
        ----------
        rows, cols : integer arrays of one length, of the graph's library

        Returns
        -------
        places : int array
            The pair's place in the order of `edges`; if it is not an edge, another edge's place.
        are_edges : bool array

        Notes
        -----
        By binary search: O(log d) a pair, for d neighbours of a vertex.
        """
        indptr, indices = self._either()
        major, minor = (rows, cols) if self.has_rows else (cols, rows)
        if self.nnz == 0 or major.size == 0:
            places = self.xp.zeros(major.size, np.int64)
            return places, places > 0
        find = find_on_device if self.on_device else find_on_host
        return find(indptr, indices, major, minor)

    # -- moves -----------------------------------------------------------------------------------

    def to_device(self) -> BipartiteGraph:
        """The same graph on the current GPU: a copy, or itself if it is there already."""
        if self.on_device:
            return self
        import cupy

        return self._moved(cupy.asarray)

    def to_host(self) -> BipartiteGraph:
        """The same graph in NumPy arrays: a copy, or itself if it is there already."""
        if not self.on_device:
            return self
        import cupy

        return self._moved(cupy.asnumpy)

    def transpose(self) -> BipartiteGraph:
        """The graph with rows and columns exchanged; shares the arrays."""
        labels = self.col_labels, self.row_labels
        return self._from_parts(_Parts(self.shape[::-1], self._cols, self._rows, *labels))

    # -- ways out --------------------------------------------------------------------------------

    def to_csr(self, dtype: Any = np.float64, copy: bool = False) -> Any:
        """The graph as a sparse matrix, with a one for each edge.

        Parameters
        ----------
        dtype : dtype
            Of the ones. cupyx has bool, float32, float64, complex64 and complex128 only.
        copy : bool
            Whether the matrix gets indices of its own. By default it shares those of the graph:
            then change its data as you like, but not which entries are stored, as
            `eliminate_zeros` does.

        Returns
        -------
        scipy.sparse.csr_array or cupyx.scipy.sparse.csr_matrix
            Where the graph is. The edges of each row are in the order of their columns. Indices
            are int32, or int64 from 2**31 edges on.

        Raises
        ------
        TypeError
            If `dtype` is not boolean or numeric.
        ValueError
            If the installed cupyx has no matrices of that type or size.
        MemoryError
            If the device has no room for the ones.

        Examples
        --------
        >>> from gpumatch import BipartiteGraph
        >>> graph = BipartiteGraph.from_edges([0, 1, 1], [2, 0, 2])
        >>> graph.to_csr().toarray()
        array([[0., 0., 1.],
               [1., 0., 1.]])
        """
        dtype = np.dtype(dtype)
        if dtype.kind not in "biufc":
            raise TypeError(f"dtype must be boolean or numeric; got {dtype}")
        indptr, indices = self._row_arrays()
        if self.on_device:
            copied = copy or indptr.dtype != indices.dtype
            nbytes = self.nnz * (dtype.itemsize + copied * indptr.dtype.itemsize)
            require_device_memory(nbytes, "the matrix of the graph")
        if copy:
            indptr, indices = indptr.copy(), indices.copy()
        return csr_of(self.xp.ones(self.nnz, dtype), indices, indptr, self.shape)

    def to_networkx(self) -> Any:
        """The graph as a networkx graph, on the host.

        Returns
        -------
        networkx.Graph
            Its nodes are the labels; those of a graph without labels are 0, 1, … for the rows,
            and the columns count on from there, as networkx numbers the nodes of a matrix. Rows
            have the attribute ``bipartite=0``, columns ``bipartite=1``. Attributes of the graph
            that this one was made from are not kept.

        Examples
        --------
        >>> from gpumatch import BipartiteGraph
        >>> G = BipartiteGraph.from_edges([0, 0, 1], [1, 2, 1]).to_networkx()
        >>> G.nodes(data="bipartite")
        NodeDataView({0: 0, 1: 0, 2: 1, 3: 1, 4: 1}, data='bipartite')
        >>> list(G.edges())
        [(0, 3), (0, 4), (1, 3)]
        """
        rows, cols = (array_of(np, end) for end in self.edges())
        row_labels, col_labels = self.row_labels, self.col_labels
        if row_labels is None or col_labels is None:
            numbers: list[Hashable] = list(range(self.nrows + self.ncols))
            row_labels, col_labels = numbers[: self.nrows], numbers[self.nrows :]
        return networkx_graph(LabelledEdges(rows, cols, row_labels, col_labels))

    # -- inside ----------------------------------------------------------------------------------

    @classmethod
    def _from_parts(cls, parts: _Parts) -> BipartiteGraph:
        graph = cls.__new__(cls)
        graph._hold(parts)
        return graph

    def _hold(self, parts: _Parts) -> None:
        self.blocks: list[BipartiteGraph] = []
        self.nrows, self.ncols = parts.shape
        self._rows, self._cols = parts.rows, parts.cols
        self.row_labels, self.col_labels = parts.row_labels, parts.col_labels

    def _parts(self) -> _Parts:
        return _Parts(self.shape, self._rows, self._cols, self.row_labels, self.col_labels)

    def _either(self) -> Csr:
        arrays = self._rows if self._rows is not None else self._cols
        assert arrays is not None
        return arrays

    def _row_arrays(self) -> Csr:
        if self._rows is None:
            arrays = self._either()
            self._rows = csr_for(arrays[1]).transpose(*arrays, self.nrows)
        return self._rows

    def _col_arrays(self) -> Csr:
        if self._cols is None:
            arrays = self._either()
            self._cols = csr_for(arrays[1]).transpose(*arrays, self.ncols)
        return self._cols

    def _moved(self, convert: Any) -> BipartiteGraph:
        rows, cols = (
            pair and (convert(pair[0]), convert(pair[1])) for pair in (self._rows, self._cols)
        )
        return self._from_parts(self._parts()._replace(rows=rows, cols=cols))


def as_bipartite(source: Any, row_nodes: Iterable[Hashable] | None = None) -> BipartiteGraph:
    """`source` itself if it is a BipartiteGraph, else one made from it.

    `row_nodes` are the rows of a networkx graph, as in `BipartiteGraph.from_networkx`.
    """
    if row_nodes is not None:
        if not is_networkx(source):
            raise TypeError("row_nodes are for the nodes of a networkx graph only")
        return BipartiteGraph.from_networkx(source, row_nodes)
    return source if isinstance(source, BipartiteGraph) else BipartiteGraph(source)


# -- from anything -------------------------------------------------------------------------------


class _Parts(NamedTuple):
    """What a graph is made of: at least one of `rows` and `cols`, in the module's form."""

    shape: tuple[int, int]
    rows: Csr | None = None
    cols: Csr | None = None
    row_labels: list[Hashable] | None = None
    col_labels: list[Hashable] | None = None


def _parts_of(source: Any) -> _Parts:
    if isinstance(source, BipartiteGraph):
        return source._parts()
    if is_tensor(source):
        source = source_of(source)
    if isinstance(source, tuple) or is_sparse(source):
        row_labels, col_labels = labels_of(source)
        return _parts_of_sparse(source)._replace(row_labels=row_labels, col_labels=col_labels)
    if is_networkx(source):
        return _parts_of_networkx(labelled_edges(source))
    return _parts_of_dense(source)


def _parts_of_sparse(source: Any) -> _Parts:
    entries = compressed_of(source)
    arrays = entries.pattern()
    if entries.is_by_rows:
        return _Parts(entries.shape, rows=arrays)
    return _Parts(entries.shape, cols=arrays)


def _parts_of_dense(source: Any) -> _Parts:
    array = as_array(source, "the graph")
    if array.dtype.kind not in "biufc":
        hint = hint_of_type(array.dtype)
        if array.dtype.kind in "OU":
            hint = "; for pairs of labels, see LabelledArray.from_pairs"
        raise TypeError(
            "the graph must be a sparse matrix, a boolean or numeric array, a tuple of CSR arrays "
            f"or a networkx graph; got {type(source).__name__} (dtype {array.dtype}){hint}"
        )
    if array.ndim != 2:
        raise ValueError(f"a dense graph must have 2 dimensions; got {array.ndim}")
    rows, cols = array.nonzero()
    return _parts_of_edges(rows, cols, checked_shape(array.shape))


def _parts_of_edges(rows: Any, cols: Any, shape: tuple[int, int]) -> _Parts:
    return _Parts(shape, rows=edges_of(rows, cols, shape).pattern())


def _parts_of_networkx(edges: LabelledEdges) -> _Parts:
    row_labels, col_labels = edges.row_labels, edges.col_labels
    shape = checked_shape((len(row_labels), len(col_labels)))
    parts = _parts_of_edges(edges.rows, edges.cols, shape)
    return parts._replace(row_labels=row_labels, col_labels=col_labels)


def _length_for(indices: Any) -> int:
    return int(indices.max()) + 1 if indices.size else 0
