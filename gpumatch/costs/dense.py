"""Costs in a dense matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.bipartite import BipartiteGraph
from gpumatch.contracts import Tile
from gpumatch.costs.base import (
    Costs,
    Extent,
    check_extent,
    extent_of,
    row_tiles,
    sum_dtype,
)
from gpumatch.costs.sparse import SparseCosts
from gpumatch.interop.tensors import is_tensor, source_of
from gpumatch.numeric.arrays import array_module, array_of, as_array, exactly

__all__ = ["DenseCosts"]

INT32_COSTS = 2**25  # leaves room in int32 for a few times as much
LEAST_NORMAL = 2.0**-126
"""The least float32 above 0 that is not subnormal. A GPU reads those below it as 0."""


class DenseCosts(Costs):
    """A matrix with the cost of every pair.

    Parameters
    ----------
    source : two-dimensional array
        NumPy, CuPy, torch or anything that speaks ``__array__``, ``__cuda_array_interface__`` or
        DLPack; boolean, integer or floating. It is shared, not copied: do not change it afterwards.
    summed : bool
        Whether costs are to be summed. If they are only compared, they may be larger.

    Attributes
    ----------
    values : array of shape (nrows, ncols)
        On the source's device.
    low, high : int or float
        Least and greatest value, infinities too.
    largest : int or float
        Greatest finite magnitude.

    Raises
    ------
    TypeError
        If the values are not real numbers.
    ValueError
        If there is a NaN, there are not two dimensions, or numbers are so large that sums of them
        overflow: integers from ``(n + 1) * max|c| = 2**62``, for n vertices of the smaller side.

    Examples
    --------
    >>> from gpumatch.costs import DenseCosts
    >>> DenseCosts([[1, 2, 3], [3, 1, 2]])
    DenseCosts(2 rows, 3 columns, int64, host)
    """

    def __init__(self, source: Any, *, summed: bool = True) -> None:
        given = source_of(source) if is_tensor(source) else source
        values = as_array(given, "the costs")
        if values.ndim != 2 and values.dtype.kind not in "biuf":
            raise TypeError(
                "the costs must be a matrix of numbers, dense or sparse, or a tuple of CSR arrays; "
                f"got {type(source).__name__}"
            )
        if values.ndim != 2:
            raise ValueError(f"the costs must have 2 dimensions; got {values.ndim}")
        plain = np.asarray(values) if isinstance(values, np.ndarray) else values
        self._hold(plain, extent_of(plain))
        check_extent(self.extent, min(self.shape), summed=summed)

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def xp(self) -> Any:
        return array_module(self.values)

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes)

    @property
    def problem_dtype(self) -> Any:
        dtype = self.values.dtype
        if dtype.kind == "f":
            return np.float32 if dtype.itemsize <= 4 else np.float64
        most = 2**31 if self.on_device and dtype == np.int32 else INT32_COSTS
        return np.int32 if self.largest < most else np.int64

    @property
    def has_matrix(self) -> bool:
        return True

    def tile(self, rows: slice) -> Tile:
        own, cols = self.xp.arange(rows.start, rows.stop), self.xp.arange(self.shape[1])
        return own[:, None], cols[None, :], self.values[rows]

    def at(self, rows: Any, cols: Any) -> Any:
        return self.values[array_of(self.xp, rows), array_of(self.xp, cols)]

    def dense(self, out: Any = None) -> Any:
        if out is None:
            return self.values
        out[:] = self.values
        return out

    def stored(self) -> DenseCosts:
        return self

    def to_host(self) -> DenseCosts:
        return self._of(array_of(np, self.values), self.extent) if self.on_device else self

    def to_device(self) -> DenseCosts:
        if self.on_device:
            return self
        import cupy

        self._check_room_for_copy()
        values = cupy.asarray(self.values)
        if values.dtype == np.float32 and not self._is_normal() and _has_subnormals(values):
            del values  # its memory may be needed
            wide = self.as_float()
            wide._check_room_for_copy()
            return self._of(cupy.asarray(wide.values), wide.extent)
        return self._of(values, self.extent)

    def _is_normal(self) -> bool:
        """True if the extent shows that no cost of float32 is 0 or subnormal."""
        return self.low >= LEAST_NORMAL or self.high <= -LEAST_NORMAL

    def problem(self, maximize: bool, transposed: bool) -> DenseCosts:
        self.check_sign(maximize)
        given = self.values.T if transposed else self.values
        dtype = self.problem_dtype
        if maximize or not (given.dtype == dtype and given.flags.c_contiguous):
            self._require_room(self.shape, dtype)
        if not maximize:
            return self._of(exactly(given, dtype), self.extent)
        values = self.xp.array(given, dtype, order="C")
        return self._of(self.xp.negative(values, out=values), self.extent.negated())

    def as_float(self) -> DenseCosts:
        self._require_room(self.shape, np.float64)
        return self._of(self.values.astype(np.float64), self.extent.as_float())

    def divided(self, power: int) -> DenseCosts:
        self._require_room(self.shape, np.float64)
        values = self.values.astype(np.float64)
        values *= 2.0**-power
        return self._of(values, self.extent.divided(power))

    def transpose(self) -> DenseCosts:
        self._require_room(self.shape, self.values.dtype)
        return self._of(self.xp.ascontiguousarray(self.values.T), self.extent)

    def restricted(self, rows: Any, cols: Any) -> DenseCosts:
        shape = rows.size, cols.size
        self._require_room(shape, self.values.dtype)
        rows, cols = array_of(self.xp, rows), array_of(self.xp, cols)
        values = self.xp.empty(shape, self.values.dtype)
        for tile in row_tiles(values):
            values[tile] = self.values[rows[tile]][:, cols]
        return self._of(values, extent_of(values))

    def up_to(self, limit: float) -> SparseCosts:
        graph = self._graph_of(lambda values: _unrounding(values) <= limit)
        weights = self.values[graph.edges()].astype(sum_dtype(self.values.dtype))
        return SparseCosts.of(graph, weights)

    def below(self, limits: Any) -> DenseCosts:
        dtype = self.xp.result_type(sum_dtype(self.values.dtype), limits.dtype)
        self._require_room(self.shape, dtype)
        values = self.values.astype(dtype)
        values -= limits[:, None]
        return DenseCosts(values)

    def within(self, limits: Any, maximize: bool) -> Costs:
        self.check_sign(maximize)
        if self.is_integer:  # which no number can forbid
            return self.stored_sparse().within(limits, maximize)
        xp, values = self.xp, _unrounding(self.values)
        is_within = values >= limits[:, None] if maximize else values <= limits[:, None]
        return DenseCosts(xp.where(is_within, self.values, -math.inf if maximize else math.inf))

    def stored_sparse(self) -> SparseCosts:
        """The same costs in CSR, as they are given."""
        graph = self.pattern()
        return SparseCosts.of(graph, self.values[graph.edges()])

    def of_pairs(self, indptr: Any, indices: Any, weights: Any) -> SparseCosts:
        return SparseCosts.of(BipartiteGraph.of_rows(indptr, indices, self.shape), weights)

    def pattern(self) -> BipartiteGraph:
        return self._graph_of(lambda values: abs(values) < math.inf)

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

    def _hold(self, values: Any, extent: Extent) -> None:
        self.values = values
        self.low, self.high, self.largest = extent

    @classmethod
    def _of(cls, values: Any, extent: Extent) -> DenseCosts:
        """The costs of values that have passed the checks, and whose extent is known."""
        costs = cls.__new__(cls)
        costs._hold(values, extent)
        return costs


def _has_subnormals(values: Any) -> bool:
    """True if any number of a float32 array is subnormal, which its bits tell even on a GPU.

    Without the sign, and less 1, those of 0 are the greatest integer, and those of subnormal
    numbers are the least.
    """
    one, normal = np.uint32(1), np.uint32(1 << 24)
    for tile in row_tiles(values):
        bits = values[tile].view(np.uint32)
        if bits.size and int(((bits << one) - one).min()) < normal - one:
            return True
    return False


def _unrounding(values: Any) -> Any:
    """The values in a type in which a Python number they are compared with is not rounded."""
    return values.astype(np.float64, copy=False) if values.dtype.kind == "f" else values
