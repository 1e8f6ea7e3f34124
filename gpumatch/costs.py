"""What an assignment costs: a dense matrix, or a sparse one that forbids what it does not store.

Both are checked once, when they are made. An algorithm never sees the caller's array, but the
``problem`` made from it: costs to be minimised, no more rows than columns, in one of the dtypes
below, C-contiguous, every infinity a forbidden pair of value inf (dense) or none at all (sparse).

    given                 dense    sparse
    integers below 2**25  int32    int64
    other integers        int64    int64
    float16, float32      float32  float64
    other floats          float64  float64

On a device, where kernels count in 64 bits, int32 stays what it is.
Duals of integer problems are int64, of others float64.

Costs live where their source does, and so do the problems made from them. A dense matrix that has a
problem's form already is not copied, and nothing here needs a second one beside it: what looks at
every entry does so in tiles of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from gpumatch.arrays import (
    any_true,
    array_module,
    array_of,
    as_array,
    exactly,
    first_true,
    is_instance,
    is_sparse,
    is_sparse_torch,
)
from gpumatch.backends import module_for
from gpumatch.bipartite import BipartiteGraph

__all__ = ["Costs", "DenseCosts", "SparseCosts", "as_costs"]

TOO_LARGE = 2**62
INT32_COSTS = 2**25  # leaves room in int32 for a few times as much
HOST_TILE, DEVICE_TILE = 2**20, 2**22  # entries looked at at a time


class DenseCosts:
    """A matrix with the cost of every pair.

    Parameters
    ----------
    source : two-dimensional array
        NumPy, CuPy, torch or anything that speaks ``__array__``, ``__cuda_array_interface__`` or
        DLPack; boolean, integer or floating. It is shared, not copied: don't change it afterwards.

    Attributes
    ----------
    values : array of shape (nrows, ncols)
        Where the source lives.
    low, high : int or float
        Least and greatest value, infinities too.
    largest : int or float
        Greatest finite magnitude.

    Raises
    ------
    TypeError
        If the values are no real numbers.
    ValueError
        If there is a NaN, there are not two dimensions, or numbers are so large that sums of them
        overflow: integers from (n + 1) · max |c| = 2**62, for n vertices of the smaller side.

    Examples
    --------
    >>> from gpumatch.costs import DenseCosts
    >>> DenseCosts([[1, 2, 3], [3, 1, 2]])
    DenseCosts(2 rows, 3 columns, int64, host)
    """

    is_sparse = False

    def __init__(self, source: Any) -> None:
        values = as_array(source, "the costs")
        if isinstance(values, np.ma.MaskedArray):
            raise TypeError("the costs are a masked array: fill it, with inf to forbid a pair")
        if values.ndim != 2 and values.dtype.kind not in "biuf":
            raise TypeError(
                "the costs must be a matrix of numbers, dense or sparse, or a tuple of CSR arrays; "
                f"got {type(source).__name__}"
            )
        if values.ndim != 2:
            raise ValueError(f"the costs must have 2 dimensions; got {values.ndim}")
        self.values = np.asarray(values) if isinstance(values, np.ndarray) else values
        self.low, self.high, self.largest = _extent(self.values, min(values.shape))

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape

    @property
    def nnz(self) -> int:
        return int(self.values.size)

    @property
    def on_device(self) -> bool:
        """Whether the values live on a GPU."""
        return not isinstance(self.values, np.ndarray)

    @property
    def xp(self) -> Any:
        """The library of the values: NumPy or CuPy."""
        return array_module(self.values)

    @property
    def itemsize(self) -> int:
        """Bytes of a cost in a problem."""
        return np.dtype(self._problem_dtype()).itemsize

    @property
    def is_integer(self) -> bool:
        return self.values.dtype.kind in "biu"

    @property
    def is_complete(self) -> bool:
        """Whether no pair is forbidden."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def __repr__(self) -> str:
        return _repr(self, self.values.dtype)

    def to_host(self) -> DenseCosts:
        """The same costs in a NumPy array: a copy, or itself when it is there already."""
        return self._like(array_of(np, self.values)) if self.on_device else self

    def to_device(self) -> DenseCosts:
        """The same costs on the current GPU: a copy, or themselves when they are there already."""
        if self.on_device:
            return self
        import cupy

        return self._like(cupy.asarray(self.values))

    def problem(self, maximize: bool, transposed: bool) -> DenseCosts:
        """The costs as an algorithm takes them; see the module.

        Raises
        ------
        ValueError
            If there is an infinity that asks for a pair instead of forbidding it.
        """
        _check_sign(self, maximize)
        given = self.values.T if transposed else self.values
        dtype = self._problem_dtype()
        if maximize or not (given.dtype == dtype and given.flags.c_contiguous):
            self._require_room(self.shape, dtype)
        if not maximize:
            return self._like(exactly(given, dtype))
        values = self.xp.array(given, dtype, order="C")
        return self._like(self.xp.negative(values, out=values))

    def as_float(self) -> DenseCosts:
        self._require_room(self.shape, np.float64)
        return self._like(self.values.astype(np.float64))

    def transpose(self) -> DenseCosts:
        self._require_room(self.shape, self.values.dtype)
        return self._like(self.xp.ascontiguousarray(self.values.T))

    def restricted(self, rows: Any, cols: Any) -> DenseCosts:
        """The costs between some rows and some columns."""
        shape = rows.size, cols.size
        self._require_room(shape, self.values.dtype)
        rows, cols = array_of(self.xp, rows), array_of(self.xp, cols)
        values = self.xp.empty(shape, self.values.dtype)
        for tile in row_tiles(values):
            values[tile] = self.values[rows[tile]][:, cols]
        return self._like(values)

    def up_to(self, limit: float) -> SparseCosts:
        """The pairs that cost no more than `limit`, as a problem."""
        graph = self._graph_of(lambda values: _unrounding(values) <= limit)
        weights = self.values[graph.edges()].astype(_sparse_dtype(self.values.dtype))
        return SparseCosts._of(graph, weights)

    def pattern(self) -> BipartiteGraph:
        """The graph of the pairs that are not forbidden."""
        return self._graph_of(lambda values: abs(values) < math.inf)

    def at(self, rows: Any, cols: Any) -> Any:
        """The costs of these pairs, which may be named in arrays of host or device."""
        return self.values[array_of(self.xp, rows), array_of(self.xp, cols)]

    def allows(self, rows: Any, cols: Any) -> Any:
        """Which of these pairs are not forbidden, as a bool array."""
        return abs(self.at(rows, cols)) < math.inf

    def _graph_of(self, is_edge: Callable[[Any], Any]) -> BipartiteGraph:
        """The graph of the pairs that `is_edge` marks."""
        xp = self.xp
        counts = xp.zeros(self.shape[0] + 1, np.int64)
        for tile in row_tiles(self.values):
            counts[1:][tile] = is_edge(self.values[tile]).sum(axis=1)
        indptr = xp.cumsum(counts)
        indices = xp.empty(int(indptr[-1]), np.int32)
        for tile in row_tiles(self.values):
            cols = is_edge(self.values[tile]).nonzero()[1]
            begin = int(indptr[tile.start])
            indices[begin : begin + cols.size] = cols
        return BipartiteGraph((indptr, indices, self.shape))

    def _require_room(self, shape: tuple[int, int], dtype: Any) -> None:
        """Check, on a GPU, that it has memory for a matrix."""
        if self.on_device:
            nbytes = math.prod(shape) * np.dtype(dtype).itemsize
            module_for("kernels", on_device=True).require_memory(nbytes, "a copy of the costs")

    def _problem_dtype(self) -> Any:
        dtype = self.values.dtype
        if dtype.kind == "f":
            return np.float32 if dtype.itemsize <= 4 else np.float64
        most = 2**31 if self.on_device and dtype == np.int32 else INT32_COSTS
        return np.int32 if self.largest < most else np.int64

    def _like(self, values: Any) -> DenseCosts:
        """Costs that need no check because these have passed it."""
        costs = DenseCosts.__new__(DenseCosts)
        costs.values = values
        costs.low, costs.high, costs.largest = self.low, self.high, self.largest
        return costs


class SparseCosts:
    """A graph with the cost of every edge; other pairs are forbidden.

    Parameters
    ----------
    source : sparse matrix or tuple
        A SciPy or cupyx sparse matrix, ``(indptr, indices, data, shape)`` as CSR, or a torch sparse
        CSR tensor; boolean, integer or floating. Stored zeros are edges of cost 0; so DIA, which
        fills its diagonals with zeros, must have none. Repeated entries are summed, as everywhere
        in SciPy. Arrays in canonical form are shared, not copied.

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

    is_sparse = True

    def __init__(self, source: Any) -> None:
        indptr, indices, data, shape = _csr_of(source)
        graph = BipartiteGraph((indptr, indices, shape))
        weights = as_array(data, "data")
        if weights.ndim != 1:
            raise ValueError(f"data must have 1 dimension; got {weights.ndim}")
        count = int(indptr[-1])
        if weights.size < count:
            raise ValueError(f"data must have {count} entries; got {weights.size}")
        weights = weights[:count]
        _extent(weights, min(graph.shape))
        indices = as_array(indices, "indices")[:count]
        if graph.nnz < count or any_true(graph.indices != indices):
            weights = _summed(graph, as_array(indptr, "indptr"), indices, weights)
        self._hold(graph, weights)

    @property
    def shape(self) -> tuple[int, int]:
        return self.graph.shape

    @property
    def nnz(self) -> int:
        return self.graph.nnz

    @property
    def on_device(self) -> bool:
        """Whether the arrays live on a GPU."""
        return self.graph.on_device

    @property
    def xp(self) -> Any:
        """The library of the arrays: NumPy or CuPy."""
        return self.graph.xp

    @property
    def itemsize(self) -> int:
        """Bytes of a cost in a problem."""
        return np.dtype(_sparse_dtype(self.weights.dtype)).itemsize

    @property
    def is_integer(self) -> bool:
        return self.weights.dtype.kind in "biu"

    @property
    def is_complete(self) -> bool:
        """Whether no pair is forbidden."""
        finite = math.isfinite(self.low) and math.isfinite(self.high)
        return finite and self.nnz == self.shape[0] * self.shape[1]

    def __repr__(self) -> str:
        return _repr(self, f"{self.nnz} edges, {self.weights.dtype}")

    def to_host(self) -> SparseCosts:
        """The same costs in NumPy arrays: a copy, or itself when they are there already."""
        if not self.on_device:
            return self
        return self._of(self.graph.to_host(), array_of(np, self.weights))

    def to_device(self) -> SparseCosts:
        """The same costs on the current GPU: a copy, or themselves when they are there already."""
        if self.on_device:
            return self
        import cupy

        return self._of(self.graph.to_device(), cupy.asarray(self.weights))

    def problem(self, maximize: bool, transposed: bool) -> SparseCosts:
        """The costs as an algorithm takes them; see the module.

        Raises
        ------
        ValueError
            As for `DenseCosts.problem`.
        """
        _check_sign(self, maximize)
        weights = exactly(self.weights, _sparse_dtype(self.weights.dtype))
        costs = self._of(self.graph, -weights if maximize else weights)
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            costs = costs._kept(costs.weights < math.inf)
        return costs.transpose() if transposed else costs

    def as_float(self) -> SparseCosts:
        return self._of(self.graph, self.weights.astype(np.float64))

    def transpose(self) -> SparseCosts:
        rows, cols = self.graph.edges()
        return self._of(self.graph.transpose(), self.weights[_order(self.xp, cols, rows)])

    def restricted(self, rows: Any, cols: Any) -> SparseCosts:
        """The costs between some rows and some columns."""
        xp = self.xp
        rows, cols = array_of(xp, rows), array_of(xp, cols)
        row_number = xp.full(self.shape[0], -1, np.int32)
        col_number = xp.full(self.shape[1], -1, np.int32)
        row_number[rows] = xp.arange(rows.size)
        col_number[cols] = xp.arange(cols.size)
        of_rows, of_cols = self.graph.edges()
        of_rows, of_cols = row_number[of_rows], col_number[of_cols]
        inside = (of_rows >= 0) & (of_cols >= 0)
        of_rows, of_cols = of_rows[inside], of_cols[inside]
        weights = self.weights[inside][_order(xp, of_rows, of_cols)]
        graph = BipartiteGraph.from_edges(of_rows, of_cols, (rows.size, cols.size))
        return self._of(graph, weights)

    def up_to(self, limit: float) -> SparseCosts:
        """The pairs that cost no more than `limit`, as a problem."""
        return self._kept(self.weights <= limit)

    def pattern(self) -> BipartiteGraph:
        """The graph of the pairs that are not forbidden."""
        finite = math.isfinite(self.low) and math.isfinite(self.high)
        return self.graph if finite else self._kept(abs(self.weights) < math.inf).graph

    def at(self, rows: Any, cols: Any) -> Any:
        """The costs of these pairs, which must be edges."""
        return self.weights[self._places(array_of(self.xp, rows), array_of(self.xp, cols))]

    def allows(self, rows: Any, cols: Any) -> Any:
        """Which of these pairs are not forbidden, as a bool array."""
        if self.nnz == 0:
            return self.xp.zeros(rows.size, bool)
        rows, cols = array_of(self.xp, rows), array_of(self.xp, cols)
        places = self._places(rows, cols).clip(0, self.nnz - 1)
        of_rows, of_cols = self.graph.edges()
        there = (of_rows[places] == rows) & (of_cols[places] == cols)
        return there & (abs(self.weights[places]) < math.inf)

    def _places(self, rows: Any, cols: Any) -> Any:
        """Where each pair is among the edges, or would be."""
        ncols = self.shape[1]
        of_rows, of_cols = self.graph.edges()
        numbers = of_rows.astype(np.int64) * ncols + of_cols
        return self.xp.searchsorted(numbers, rows.astype(np.int64) * ncols + cols)

    def _kept(self, marks: Any) -> SparseCosts:
        """The costs of the marked edges only."""
        rows, cols = self.graph.edges()
        graph = BipartiteGraph.from_edges(rows[marks], cols[marks], self.shape)
        return self._of(graph, self.weights[marks])

    def _hold(self, graph: BipartiteGraph, weights: Any) -> None:
        self.graph, self.weights = graph, weights
        self.indptr, self.indices = graph.indptr, graph.indices
        self.low, self.high, self.largest = _extent(weights, min(graph.shape))

    @classmethod
    def _of(cls, graph: BipartiteGraph, weights: Any) -> SparseCosts:
        """Costs of a graph whose rows -> columns are there, in the order of its edges."""
        costs = cls.__new__(cls)
        costs._hold(graph, weights)
        return costs


Costs: TypeAlias = DenseCosts | SparseCosts


def as_costs(source: Any) -> Costs:
    """`source` itself when it is costs, else the dense or sparse costs made from it."""
    if isinstance(source, DenseCosts | SparseCosts):
        return source
    if isinstance(source, BipartiteGraph):
        raise TypeError("a BipartiteGraph has no costs: pass a sparse matrix or a tuple with data")
    if is_instance(source, "networkx", "Graph"):
        raise TypeError(
            "a networkx graph has no costs that are known: pass a matrix of its weights"
        )
    has_entries = isinstance(source, tuple) or is_sparse(source) or is_sparse_torch(source)
    return SparseCosts(source) if has_entries else DenseCosts(source)


# -- checks ----------------------------------------------------------------------------------------


def _extent(values: Any, n: int) -> tuple[Any, Any, Any]:
    """Least and greatest value and the greatest finite magnitude, as Python numbers, checked."""
    kind = values.dtype.kind
    if kind not in "biuf":
        raise TypeError(f"the costs must be real numbers; got dtype {values.dtype}")
    number = float if kind == "f" else int
    if values.size == 0:
        return number(0), number(0), number(0)
    tiles = list(row_tiles(values))
    lows = [number(values[tile].min()) for tile in tiles]
    highs = [number(values[tile].max()) for tile in tiles]
    if any(map(math.isnan, lows)):
        raise ValueError(f"the costs hold NaN, first {_first_nan(values)}")
    low, high = min(lows), max(highs)
    largest = max(abs(low), abs(high))
    if kind == "f" and math.isinf(largest):
        largest = max(_largest_finite(values[tile]) for tile in tiles)
    check_sums(largest, n)
    return low, high, largest


def _first_nan(values: Any) -> str:
    """Where the first NaN stands: in a matrix, or in the data of a sparse one."""
    tiles = ((tile.start, values[tile]) for tile in row_tiles(values))
    found = ((begin, first_true((part != part).ravel())) for begin, part in tiles)
    begin, at = next((begin, at) for begin, at in found if at is not None)
    if values.ndim == 1:
        return f"at entry {begin + at} of the data"
    row, col = divmod(at, values.shape[1])
    return f"at row {begin + row}, column {col}"


def _largest_finite(values: Any) -> float:
    magnitudes = abs(values)
    magnitudes[magnitudes == math.inf] = 0
    return float(magnitudes.max())


def check_sums(largest: float, n: int) -> None:
    """Check that sums of n numbers up to `largest` do not overflow."""
    if isinstance(largest, int):
        if (n + 1) * largest >= TOO_LARGE:
            raise ValueError(
                f"integer costs up to {largest} are too large for {n} rows or columns: "
                "(n + 1) * max |cost| must be below 2**62"
            )
    elif not math.isfinite(8.0 * (n + 1) * largest):
        raise ValueError(f"costs up to {largest} overflow when {n} of them are summed")


def _unrounding(values: Any) -> Any:
    """The values in a type to which a Python number they are compared with is not rounded."""
    return values.astype(np.float64, copy=False) if values.dtype.kind == "f" else values


def _check_sign(costs: Costs, maximize: bool) -> None:
    """Check that every infinity forbids."""
    if maximize and costs.high == math.inf:
        raise ValueError("the costs hold inf, but to be maximised: -inf forbids a pair")
    if not maximize and costs.low == -math.inf:
        raise ValueError("the costs hold -inf: inf forbids a pair")


# -- forms -----------------------------------------------------------------------------------------


def _sparse_dtype(dtype: Any) -> Any:
    return np.float64 if dtype.kind == "f" else np.int64


def row_tiles(values: Any) -> Iterator[slice]:
    """Ranges of rows that hold so few entries together that each may be copied some times."""
    entries = HOST_TILE if isinstance(values, np.ndarray) else DEVICE_TILE
    step = max(1, entries // max(1, math.prod(values.shape[1:])))
    for begin in range(0, values.shape[0], step):
        yield slice(begin, min(begin + step, values.shape[0]))


def _repr(costs: Costs, what: Any) -> str:
    where = "GPU" if costs.on_device else "host"
    nrows, ncols = costs.shape
    return f"{type(costs).__name__}({nrows} rows, {ncols} columns, {what}, {where})"


# -- sparse sources --------------------------------------------------------------------------------


def _csr_of(source: Any) -> tuple[Any, Any, Any, Any]:
    if isinstance(source, tuple):
        if len(source) != 4:
            raise TypeError(
                f"a tuple must be (indptr, indices, data, shape); got {len(source)} parts"
            )
        return source
    if is_instance(source, "torch", "Tensor"):
        return source.crow_indices(), source.col_indices(), source.values(), tuple(source.shape)
    if source.ndim != 2:
        raise ValueError(f"the sparse array must have 2 dimensions; got {source.ndim}")
    matrix = source.tocsr()
    if source.format == "dia" and matrix.nnz != source.nnz:
        raise ValueError(
            "the costs are in DIA, which fills diagonals with zeros, so a cost of 0 looks like "
            "no entry: pass them in another format"
        )
    return matrix.indptr, matrix.indices, matrix.data, matrix.shape


def _summed(graph: BipartiteGraph, indptr: Any, indices: Any, weights: Any) -> Any:
    """The weights in the graph's order, those of repeated entries summed."""
    xp = graph.xp
    rows = module_for("csr", on_device=graph.on_device).owners(indptr, indices)
    order = _order(xp, rows, indices)
    rows, cols = rows[order], indices[order]
    is_first = xp.ones(order.size, bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (cols[1:] != cols[:-1])
    # CuPy adds to uint64, not to int64; both wrap alike.
    sums = xp.zeros(graph.nnz, _sparse_dtype(weights.dtype))
    adds = sums if weights.dtype.kind == "f" else sums.view(np.uint64)
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, which is refused as such
        xp.add.at(adds, xp.cumsum(is_first) - 1, weights[order].astype(sums.dtype).view(adds.dtype))
    return sums


def _order(xp: Any, major: Any, minor: Any) -> Any:
    """The permutation that sorts by `major`, then by `minor`."""
    return xp.lexsort(xp.stack([minor, major]))
