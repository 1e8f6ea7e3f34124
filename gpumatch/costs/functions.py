"""Costs that a function of the caller computes, a block at a time, or in kernels of a GPU."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpumatch.contracts import Tile
from gpumatch.costs.base import Extent, check_extent, extent_of, sum_dtype, tile_size
from gpumatch.costs.computed import ComputedCosts
from gpumatch.dispatch.by_device import device_function
from gpumatch.dispatch.devices import why_no_cuda
from gpumatch.interop.tensors import is_tensor, source_of
from gpumatch.numeric.arrays import array_module, array_of, as_array

__all__ = ["FunctionCosts"]


class FunctionCosts(ComputedCosts):
    """Costs that a function computes: of no matrix more than a block is ever held.

    Parameters
    ----------
    tile : callable, optional
        It is called with two slices, and returns the costs of their rows and columns as an array of
        that shape, NumPy, CuPy or torch. It must be pure: each block and each call must give a pair
        the same cost. It is called from one thread at a time.
        ``inf`` (``-inf`` to be maximised) forbids a pair.
    shape : (int, int)
        Numbers of rows and columns.
    dtype : dtype
        The type of the costs: integer or floating. What the function returns is converted to it.
    source : str, optional
        In place of `tile`, CUDA C++ that defines a device function ``cost`` of a row and a column::

            __device__ double cost(long long i, long long j, const float* x, const float* y) {
              return fabs(x[i] - y[j]);
            }

        It is compiled into the kernels that search, which keep no block. It must be pure. No
        operation is fused unless it calls ``fma``, so a pair has the same cost everywhere.
    arrays : sequence of arrays
        What ``cost`` gets after ``i`` and ``j``: a pointer to each, of its type. CuPy, or torch on
        the device; arrays of the host are copied there. They must not change afterwards.
    low, high : int or float, optional
        No cost is less or greater. Without both, all costs are computed once to find them. Costs
        are held against them when they are computed.

    Attributes
    ----------
    low, high, largest : int or float
        The least and the greatest cost, and the largest magnitude.

    Raises
    ------
    TypeError
        If `tile` is not callable, if both or none of `tile` and `source` are given, or if the dtype
        is not one of real numbers.
    ValueError
        If a block has another shape than its slices, or holds NaN or costs beyond `low` and
        `high`; if `source` does not compile; or if numbers are so large that sums of them overflow.
    RuntimeError
        If there is no GPU for `source`.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> x, y = np.array([1, 5, 9]), np.array([8, 2, 4])
    >>> def tile(rows, cols):
    ...     return abs(x[rows, None] - y[None, cols])
    >>> C = gm.FunctionCosts(tile, (3, 3), np.int64, low=0, high=9)
    >>> gm.assign(C).row_to_col.tolist()
    [1, 2, 0]
    """

    def __init__(
        self,
        tile: Callable[[slice, slice], Any] | None = None,
        shape: tuple[int, int] | None = None,
        dtype: Any = None,
        *,
        source: str | None = None,
        arrays: Sequence[Any] = (),
        low: float | None = None,
        high: float | None = None,
    ) -> None:
        if (tile is None) == (source is None):
            raise TypeError("costs of a function need either tile or source")
        if tile is not None and not callable(tile):
            raise TypeError(f"tile must be callable; got {type(tile).__name__}")
        if not isinstance(source, (str, type(None))):
            raise TypeError(f"source must be CUDA C++ as a str; got {type(source).__name__}")
        if tile is not None and len(arrays):
            raise TypeError("arrays are for a source")
        if shape is None or dtype is None:
            raise TypeError("costs of a function need a shape and a dtype")
        try:
            nrows, ncols = (int(length) for length in shape)
        except (TypeError, ValueError):
            raise ValueError(f"shape must be (rows, columns); got {shape!r}") from None
        if min(nrows, ncols) < 0 or max(nrows, ncols) >= 2**31 - 1:
            raise ValueError(f"shape must have lengths from 0 to 2**31 - 2; got {shape!r}")
        number = np.dtype(dtype)
        if number.kind not in "biuf" or number.itemsize > 8:
            raise TypeError(f"dtype must be of real numbers of up to 64 bits; got {number}")
        self._device: Any = None
        self._function: Any = tile
        self._shape, self._dtype = (nrows, ncols), number
        self._is_transposed, self._sign, self._is_float = False, 1, False
        self._range: tuple[Any, Any] | None = None
        try:
            if source is not None:
                parts = [source_of(part) if is_tensor(part) else part for part in arrays]
                self._device = device_function(source, number, parts)
                self._function = self._device.block
            first = self._asked(slice(0, min(1, nrows)), slice(0, min(1, ncols)))
        except RuntimeError as exc:
            reason = None if source is None else why_no_cuda()
            if reason is None:
                raise
            raise RuntimeError(f"source needs a GPU and CuPy: {reason}") from exc
        self._xp = self._home = array_module(first)
        extent = self._given_extent(low, high)
        if extent is None:
            extent = self._found_extent()
        else:
            self._range = extent.low, extent.high
        self.low, self.high, self.largest = extent
        check_extent(extent, min(self._shape), summed=True)

    @property
    def shape(self) -> tuple[int, int]:
        return self._shape[::-1] if self._is_transposed else self._shape

    @property
    def dtype(self) -> Any:
        return np.dtype(np.float64) if self._is_float else self._dtype

    @property
    def xp(self) -> Any:
        return self._xp

    @property
    def device_function(self) -> Any:
        """The source's function, to be called for the rows and columns of these costs."""
        if self._device is None or not self.on_device or self._is_float:
            return None
        low, high = (self.low, self.high) if self._sign > 0 else (-self.high, -self.low)
        return dataclasses.replace(
            self._device,
            is_turned=self._is_transposed,
            is_negated=self._sign < 0,
            low=low,
            high=high,
        )

    def tile(self, rows: slice) -> Tile:
        xp, ncols = self.xp, self.shape[1]
        own, cols = xp.arange(rows.start, rows.stop)[:, None], xp.arange(ncols)[None, :]
        return own, cols, self._block(rows, slice(0, ncols))

    def at(self, rows: Any, cols: Any) -> Any:
        """The costs of pairs, from the same blocks that `tiles` has, or by the source."""
        if self._device is not None:
            return self._at_on_device(rows, cols)
        rows, cols = (array_of(np, part).astype(np.int64) for part in (rows, cols))
        shape = np.broadcast_shapes(rows.shape, cols.shape)
        rows, cols = (np.broadcast_to(part, shape).ravel() for part in (rows, cols))
        nrows, ncols = self.shape
        found = self.xp.zeros(rows.size, sum_dtype(self.dtype))
        step = max(1, tile_size(on_device=self.on_device) // max(1, ncols))
        blocks = rows // step
        for block in np.unique(blocks).tolist():
            places = np.flatnonzero(blocks == block)
            begin = block * step
            values = self._block(slice(begin, min(begin + step, nrows)), slice(0, ncols))
            own, other = rows[places] - begin, cols[places]
            found[array_of(self.xp, places)] = values[
                array_of(self.xp, own), array_of(self.xp, other)
            ]
        return found.reshape(shape)

    def _at_on_device(self, rows: Any, cols: Any) -> Any:
        home = self._home
        rows, cols = (array_of(home, part).astype(np.int64) for part in (rows, cols))
        shape = np.broadcast_shapes(rows.shape, cols.shape)
        pairs = [home.broadcast_to(part, shape).ravel() for part in (rows, cols)]
        values = self._device.at(*(pairs[::-1] if self._is_transposed else pairs))
        return array_of(self.xp, self._signed(values)).reshape(shape)

    def restricted(self, rows: Any, cols: Any) -> Any:
        if self._device is None:
            return super().restricted(rows, cols)
        costs, device = self._copy(self.extent), self._device
        some = [array_of(self._home, part).astype(np.int64) for part in (rows, cols)]
        if self._is_transposed:
            some.reverse()
        known = device.rows, device.cols
        ids = [part if own is None else own[part] for own, part in zip(known, some)]
        costs._device = dataclasses.replace(device, rows=ids[0], cols=ids[1])
        costs._function = costs._device.block
        costs._shape = int(ids[0].size), int(ids[1].size)
        return costs

    def transpose(self) -> FunctionCosts:
        return self._turned(False, True)

    def as_float(self) -> FunctionCosts:
        if not self.is_integer:
            return self
        costs = self._copy(self.extent.as_float())
        costs._is_float = True
        return costs

    def to_host(self) -> Any:
        if not self.on_device:
            return self
        costs = self._copy(self.extent)
        costs._xp = np
        return costs

    def of_pairs(self, indptr: Any, indices: Any, weights: Any) -> Any:
        from gpumatch.costs.sparse import SparseCosts

        return SparseCosts.of_csr(self.shape, indptr, indices, weights)

    # -- inside ----------------------------------------------------------------------------------

    def _copy(self, extent: Extent) -> FunctionCosts:
        costs = type(self).__new__(type(self))
        costs.__dict__.update(self.__dict__)
        costs.low, costs.high, costs.largest = extent
        return costs

    def _turned(self, maximize: bool, transposed: bool) -> FunctionCosts:
        costs = self._copy(self.extent.negated() if maximize else self.extent)
        costs._sign = -self._sign if maximize else self._sign
        costs._is_transposed = self._is_transposed != transposed
        return costs

    def _block(self, rows: slice, cols: slice) -> Any:
        """A block of these costs, as int64 or float64, where they are."""
        values = self._asked(*((cols, rows) if self._is_transposed else (rows, cols)))
        if self._is_transposed:
            values = values.T
        if self._range is not None and values.size:
            low, high = self._range
            self._check(values, low, high)
        return self._signed(array_of(self.xp, values))

    def _signed(self, values: Any) -> Any:
        """What the function has returned as int64 or float64, with the sign of these costs."""
        values = values.astype(sum_dtype(self._dtype), copy=False)
        if self._is_float:
            values = values.astype(np.float64)
        return -values if self._sign < 0 else values

    def _asked(self, rows: slice, cols: slice) -> Any:
        """What the function returns for a block, as an array of the dtype."""
        given = self._function(rows, cols)
        if is_tensor(given):
            given = source_of(given)
        values = as_array(given, "the block of tile")
        shape = rows.stop - rows.start, cols.stop - cols.start
        if values.shape != shape:
            raise ValueError(
                f"tile must return a block of shape {shape} for rows {rows.start} to {rows.stop} "
                f"and columns {cols.start} to {cols.stop}; got {values.shape}"
            )
        kind = values.dtype.kind
        if kind not in "biuf" or (kind == "f" and self._dtype.kind != "f"):
            raise TypeError(f"tile must return costs of dtype {self._dtype}; got {values.dtype}")
        return values.astype(self._dtype, copy=False)

    def _check(self, values: Any, low: Any, high: Any) -> None:
        """Check that a block of the function's own costs is within what was said."""
        least, most = values.min().item(), values.max().item()
        if least != least or most != most:
            raise ValueError("the costs that tile returned hold NaN")
        if least < low or most > high:
            raise ValueError(
                f"tile returned costs from {least} to {most}, but low and high are {low} and {high}"
            )

    def _given_extent(self, low: Any, high: Any) -> Extent | None:
        """What the caller said of the costs; None if it does not tell the largest magnitude."""
        if low is None or high is None:
            return None
        number = int if self._dtype.kind in "biu" else float
        low, high = number(low), number(high)
        if low != low or high != high or low > high:
            raise ValueError(f"low must be at most high; got {low} and {high}")
        if not (abs(low) < math.inf and abs(high) < math.inf):
            return None
        return Extent(low, high, max(abs(low), abs(high)))

    def _found_extent(self) -> Extent:
        """Least, greatest and largest of all costs, which are computed once for it."""
        cols = slice(0, self.shape[1])
        parts = [extent_of(self._asked(tile, cols)) for tile in self.tiles()]
        parts = parts or [extent_of(np.empty(0, self._dtype))]
        return Extent(
            min(part.low for part in parts),
            max(part.high for part in parts),
            max(part.largest for part in parts),
        )
