"""The graph every algorithm works on: rows and columns joined by edges, in CSR.

Encodings
---------
``indptr, indices``          rows -> columns: row r's columns are ``indices[indptr[r]:indptr[r+1]]``
``col_indptr, col_indices``  columns -> rows, the same the other way round

Neighbours are sorted and distinct. Vertex numbers are int32; offsets are int32, or int64 where
there are 2**31 edges or more. Both directions live on one device: NumPy arrays on the host, CuPy
arrays on a GPU. One direction is made from the other when it is first asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

_MAX_VERTICES = 2**31 - 2
_MAX_INT32_OFFSET = 2**31 - 1


class BipartiteGraph:
    """A bipartite graph held as CSR in both directions.

    Parameters
    ----------
    source : sparse, dense or networkx graph, or tuple
        - any SciPy sparse array or matrix, any cupyx sparse matrix: stored entries are edges,
          stored zeros too;
        - ``(indptr, indices, shape)`` or ``(indptr, indices, data, shape)``: CSR arrays of NumPy,
          CuPy or anything that speaks ``__cuda_array_interface__`` or DLPack; indices may be
          unsorted and repeated, ``data`` is not looked at;
        - a torch sparse CSR tensor;
        - a two-dimensional dense array: nonzero entries are edges, NaN too;
        - a networkx graph whose nodes carry ``bipartite=0`` (rows) or ``1`` (columns).

    Attributes
    ----------
    nrows, ncols, nnz : int
        Number of rows, columns and edges.
    row_labels, col_labels : list or None
        The networkx nodes behind the rows and columns.

    Raises
    ------
    TypeError
        If indices are not integers, or the source is of no known kind.
    ValueError
        If indices lie out of range, offsets do not describe the arrays, or there are more than
        2**31 - 2 vertices a side.

    Notes
    -----
    O(nrows + ncols + nnz) when the indices are sorted, a sort otherwise. The caller's arrays are
    shared, not copied, where they have the right form already: don't change them afterwards.

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
        self._rows: tuple[Any, Any] | None = None
        self._cols: tuple[Any, Any] | None = None
        self.row_labels: list[Hashable] | None = None
        self.col_labels: list[Hashable] | None = None
        _fill(self, source)

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

        Examples
        --------
        >>> from gpumatch import BipartiteGraph
        >>> BipartiteGraph.from_edges([0, 0, 1], [1, 2, 1])
        BipartiteGraph(2 rows, 3 columns, 3 edges, host)
        """
        rows, cols = _index_array(rows, "rows"), _index_array(cols, "cols")
        if rows.shape != cols.shape:
            raise ValueError(f"rows and cols must have one length; got {rows.size} and {cols.size}")
        if shape is None:
            shape = (_length_for(rows), _length_for(cols))
        nrows, ncols = _checked_shape(shape)
        _check_range(rows, nrows, "rows")
        _check_range(cols, ncols, "cols")
        graph = cls.__new__(cls)
        graph._rows = _csr(rows).from_edges(rows, cols, nrows)
        graph._cols = graph.row_labels = graph.col_labels = None
        graph._set_shape(nrows, ncols)
        return graph

    @classmethod
    def from_networkx(cls, G: Any, row_nodes: Iterable[Hashable] | None = None) -> BipartiteGraph:
        """Make a graph from a networkx graph.

        Parameters
        ----------
        G : networkx.Graph
            Directions and parallel edges don't matter.
        row_nodes : iterable of nodes, optional
            The nodes that become rows, in this order; all others become columns. By default the
            nodes with attribute ``bipartite=0``, or either side where the graph is connected.

        Raises
        ------
        ValueError
            If an edge joins two rows or two columns, or the two sides can't be told apart.
        """
        graph = cls.__new__(cls)
        graph._cols = None
        _fill_from_networkx(graph, G, row_nodes)
        return graph

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
        """Whether the arrays live on a GPU."""
        return not isinstance(self._either()[0], np.ndarray)

    @property
    def xp(self) -> Any:
        """The library of the arrays: NumPy or CuPy."""
        return _xp(self._either()[0])

    @property
    def has_rows(self) -> bool:
        """Whether rows -> columns is there already, so that `indptr` costs nothing."""
        return self._rows is not None

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
        """The row and the column of every edge, as two int32 arrays."""
        arrays = self._either()
        major, minor = _csr(arrays[1]).owners(*arrays), arrays[1]
        return (major, minor) if self.has_rows else (minor, major)

    # -- moves -----------------------------------------------------------------------------------

    def to_device(self) -> BipartiteGraph:
        """The same graph on the current GPU: a copy, or itself when it is there already."""
        if self.on_device:
            return self
        import cupy

        return self._moved(cupy.asarray)

    def to_host(self) -> BipartiteGraph:
        """The same graph in NumPy arrays: a copy, or itself when it is there already."""
        if not self.on_device:
            return self
        import cupy

        return self._moved(cupy.asnumpy)

    def transpose(self) -> BipartiteGraph:
        """The graph with rows and columns exchanged; shares the arrays."""
        graph = BipartiteGraph.__new__(BipartiteGraph)
        graph._rows, graph._cols = self._cols, self._rows
        graph.row_labels, graph.col_labels = self.col_labels, self.row_labels
        graph._set_shape(self.ncols, self.nrows)
        return graph

    # -- inside ----------------------------------------------------------------------------------

    def _set_shape(self, nrows: int, ncols: int) -> None:
        self.nrows, self.ncols = nrows, ncols

    def _either(self) -> tuple[Any, Any]:
        arrays = self._rows if self._rows is not None else self._cols
        assert arrays is not None
        return arrays

    def _row_arrays(self) -> tuple[Any, Any]:
        if self._rows is None:
            assert self._cols is not None
            self._rows = _csr(self._cols[1]).transpose(*self._cols, self.nrows)
        return self._rows

    def _col_arrays(self) -> tuple[Any, Any]:
        if self._cols is None:
            assert self._rows is not None
            self._cols = _csr(self._rows[1]).transpose(*self._rows, self.ncols)
        return self._cols

    def _moved(self, convert: Any) -> BipartiteGraph:
        graph = BipartiteGraph.__new__(BipartiteGraph)
        graph._rows = self._rows and (convert(self._rows[0]), convert(self._rows[1]))
        graph._cols = self._cols and (convert(self._cols[0]), convert(self._cols[1]))
        graph.row_labels, graph.col_labels = self.row_labels, self.col_labels
        graph._set_shape(self.nrows, self.ncols)
        return graph


def as_bipartite(source: Any) -> BipartiteGraph:
    """`source` itself when it is a BipartiteGraph, else one made from it."""
    return source if isinstance(source, BipartiteGraph) else BipartiteGraph(source)


# -- from anything -------------------------------------------------------------------------------


def _fill(graph: BipartiteGraph, source: Any) -> None:
    if isinstance(source, BipartiteGraph):
        graph.__dict__.update(source.__dict__)
    elif isinstance(source, tuple):
        _fill_from_tuple(graph, source)
    elif _is_sparse(source):
        _fill_from_sparse(graph, source)
    elif _is_instance(source, "networkx", "Graph"):
        _fill_from_networkx(graph, source, None)
    elif _is_instance(source, "torch", "Tensor") and source.layout == _torch().sparse_csr:
        indptr, indices = _from_dlpack(source.crow_indices()), _from_dlpack(source.col_indices())
        _fill_from_csr(graph, indptr, indices, tuple(source.shape))
    else:
        _fill_from_dense(graph, source)


def _fill_from_tuple(graph: BipartiteGraph, source: tuple[Any, ...]) -> None:
    if len(source) not in (3, 4):
        raise TypeError(
            "a tuple must be (indptr, indices, shape) or (indptr, indices, data, shape); "
            f"got {len(source)} parts"
        )
    _fill_from_csr(graph, source[0], source[1], source[-1])


def _fill_from_sparse(graph: BipartiteGraph, matrix: Any) -> None:
    if matrix.ndim != 2:
        raise ValueError(f"the sparse array must have 2 dimensions; got {matrix.ndim}")
    if matrix.format == "csc":
        _fill_from_csr(graph, matrix.indptr, matrix.indices, matrix.shape[::-1])
        graph._rows, graph._cols = None, graph._rows
        graph._set_shape(*matrix.shape)
        return
    if matrix.format != "csr":
        matrix = _pattern(matrix).tocsr()
    _fill_from_csr(graph, matrix.indptr, matrix.indices, matrix.shape)


def _pattern(matrix: Any) -> Any:
    """The COO matrix with an entry 1 for each stored one, so that no zero is lost on the way."""
    coo = matrix.tocoo()
    ones = _xp(coo.data).ones(coo.data.shape, dtype=np.float32)
    return type(coo)((ones, (coo.row, coo.col)), shape=coo.shape)


def _fill_from_dense(graph: BipartiteGraph, source: Any) -> None:
    array = _as_array(source, "the graph")
    if array.ndim != 2:
        raise ValueError(f"a dense graph must have 2 dimensions; got {array.ndim}")
    if array.dtype.kind not in "biufc":
        raise TypeError(f"a dense graph must be boolean or numeric; got dtype {array.dtype}")
    nrows, ncols = _checked_shape(array.shape)
    rows, cols = array.nonzero()
    graph._rows = _csr(rows).from_edges(rows, cols, nrows)
    graph._set_shape(nrows, ncols)


def _fill_from_networkx(
    graph: BipartiteGraph, G: Any, row_nodes: Iterable[Hashable] | None
) -> None:
    rows, cols = _networkx_sides(G, row_nodes)
    number = {node: i for i, node in enumerate(rows)}
    number.update((node, ~i) for i, node in enumerate(cols))  # columns count -1, -2, …
    ends = np.array([(number[u], number[v]) for u, v in G.edges()], dtype=np.int64).reshape(-1, 2)
    ends = np.sort(ends, axis=1)  # column first
    one_side = (ends[:, 0] < 0) == (ends[:, 1] < 0)
    if one_side.any():
        u, v = list(G.edges())[int(one_side.argmax())]
        raise ValueError(f"the graph is not bipartite: edge ({u!r}, {v!r}) stays on one side")
    graph._rows = _csr(ends).from_edges(ends[:, 1], ~ends[:, 0], len(rows))
    graph._set_shape(len(rows), len(cols))
    graph.row_labels, graph.col_labels = rows, cols


def _networkx_sides(
    G: Any, row_nodes: Iterable[Hashable] | None
) -> tuple[list[Hashable], list[Hashable]]:
    if row_nodes is None:
        side = G.nodes(data="bipartite")
        if all(mark in (0, 1) for _, mark in side):
            return [n for n, mark in side if mark == 0], [n for n, mark in side if mark == 1]
        import networkx as nx

        try:
            row_nodes = nx.bipartite.sets(G)[0]
        except nx.NetworkXException as exc:
            raise ValueError(
                f"the sides of the networkx graph can't be told apart ({exc}): give its nodes the "
                "attribute bipartite=0 or 1, or use BipartiteGraph.from_networkx(G, row_nodes)"
            ) from exc
        row_nodes = [node for node in G if node in row_nodes]
    rows = list(dict.fromkeys(row_nodes))
    known = set(rows)
    missing = known.difference(G)
    if missing:
        raise ValueError(f"row_nodes: {next(iter(missing))!r} is not a node of the graph")
    return rows, [node for node in G if node not in known]


# -- CSR arrays ----------------------------------------------------------------------------------


def _fill_from_csr(graph: BipartiteGraph, indptr: Any, indices: Any, shape: Any) -> None:
    nrows, ncols = _checked_shape(shape)
    indptr, indices = _index_array(indptr, "indptr"), _index_array(indices, "indices")
    if isinstance(indptr, np.ndarray) != isinstance(indices, np.ndarray):
        raise ValueError("indptr and indices must live on one device")
    indices = _check_offsets(indptr, indices, nrows)
    _check_range(indices, ncols, "indices")
    module = _csr(indices)
    if module.is_canonical(indptr, indices):
        offsets = np.int32 if indices.size <= _MAX_INT32_OFFSET else np.int64
        graph._rows = _exactly(indptr, offsets), _exactly(indices, np.int32)
    else:
        graph._rows = module.canonical(indptr, indices, nrows)
    graph._set_shape(nrows, ncols)


def _check_offsets(indptr: Any, indices: Any, nrows: int) -> Any:
    """Check indptr; return the entries it covers, without spare room behind them."""
    if indptr.size != nrows + 1:
        raise ValueError(f"indptr must have nrows + 1 = {nrows + 1} entries; got {indptr.size}")
    first, last = int(indptr[0]), int(indptr[-1])
    if first != 0:
        raise ValueError(f"indptr[0] must be 0; got {first}")
    if last > indices.size:
        raise ValueError(f"indptr[-1] is {last}, but there are only {indices.size} indices")
    if nrows and bool((indptr[1:] < indptr[:-1]).any()):
        raise ValueError("indptr must not decrease")
    return indices[:last]


def _check_range(indices: Any, bound: int, name: str) -> None:
    if indices.size == 0:
        return
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or high >= bound:
        raise ValueError(f"{name}: {low if low < 0 else high} lies outside [0, {bound})")


def _checked_shape(shape: Any) -> tuple[int, int]:
    if not isinstance(shape, Sequence) or len(shape) != 2:
        raise ValueError(f"shape must be (rows, columns); got {shape!r}")
    if not all(isinstance(n, (int, np.integer)) for n in shape):
        raise TypeError(f"shape must hold two integers; got {shape!r}")
    nrows, ncols = (int(n) for n in shape)
    if nrows < 0 or ncols < 0:
        raise ValueError(f"shape must not be negative; got {(nrows, ncols)}")
    if max(nrows, ncols) > _MAX_VERTICES:
        raise ValueError(
            f"shape {(nrows, ncols)}: at most {_MAX_VERTICES} rows and columns are held"
        )
    return nrows, ncols


def _index_array(values: Any, name: str) -> Any:
    array = _as_array(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must have 1 dimension; got {array.ndim}")
    if array.size == 0 and not hasattr(values, "dtype"):
        array = array.astype(np.int32)  # [] says nothing of its type
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers; got dtype {array.dtype}")
    return array


def _exactly(array: Any, dtype: Any) -> Any:
    """The array as contiguous, writeable `dtype`: itself where it is that already."""
    if isinstance(array, np.ndarray):
        return np.require(array, dtype, ["C", "A", "W"])
    return _xp(array).ascontiguousarray(array, dtype=dtype)


def _length_for(indices: Any) -> int:
    return int(indices.max()) + 1 if indices.size else 0


# -- which library an array belongs to -----------------------------------------------------------


def _as_array(values: Any, name: str) -> Any:
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "__cuda_array_interface__"):
        import cupy

        return cupy.asarray(values)
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        return _from_dlpack(values)
    try:
        return np.asarray(values)
    except ValueError as exc:
        raise TypeError(f"{name}: can't make an array of {type(values).__name__}: {exc}") from exc


def _from_dlpack(values: Any) -> Any:
    if values.__dlpack_device__()[0] == 2:  # kDLCUDA
        import cupy

        return cupy.from_dlpack(values)
    return np.from_dlpack(values)


def _is_sparse(source: Any) -> bool:
    """Whether `source` is a sparse array of SciPy or cupyx, importing neither."""
    return _is_instance(source, "scipy.sparse", "spmatrix", "sparray") or _is_instance(
        source, "cupyx.scipy.sparse", "spmatrix"
    )


def _is_instance(source: Any, module: str, *names: str) -> bool:
    """isinstance() of classes whose module need not be imported for the answer to be no."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(source, tuple(getattr(loaded, n) for n in names))


def _torch() -> Any:
    return sys.modules["torch"]


def _xp(array: Any) -> Any:
    """NumPy for a host array, CuPy for a device array."""
    return np if isinstance(array, np.ndarray) else sys.modules["cupy"]


def _csr(array: Any) -> Any:
    """The module that orders and transposes CSR where the array lives."""
    if isinstance(array, np.ndarray):
        from gpumatch.cpu import csr
    else:
        from gpumatch.cuda import csr  # type: ignore[no-redef]
    return csr
