"""The costs of many problems: a list of matrices, or an array of three dimensions."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gpumatch.contracts import Rounding
from gpumatch.costs.base import Costs
from gpumatch.costs.points import PointCosts
from gpumatch.dispatch.by_device import fill_clouds, require_device_memory
from gpumatch.interop.tensors import is_tensor, matrix_of, source_of
from gpumatch.numeric.arrays import PROTOCOLS, as_array, for_kernels

__all__ = ["CostBatch", "SideBySide", "is_batch", "native"]

_FLOAT64 = np.dtype(np.float64)
_READ_ON_DEVICE = {
    np.dtype(kind): np.dtype(read)
    for read, kinds in {"i4": "?bBhHi", "i8": "Ilq", "f4": "ef", "f8": "d"}.items()
    for kind in kinds
}
_READ = {np.dtype(order + kind) for kind in "?bBhHiIlLqQefd" for order in "<>"}
_READ_IN_PLACE = {np.dtype(kind) for kind in "?Bilqfd"}
"""What compiled code reads as it is. The code is compiled for each, which takes a second or two.

Other integers are copied as float64. Batches of problems of 8 to 128 rows take 1 to 6 % longer so,
and those of 32-bit integers or float32 would take 4 to 10 %.
"""


def native(values: np.ndarray) -> np.ndarray | None:
    """The costs as float64, without gaps; None for a dtype that this may not hold.

    Integers of 64 bits are rounded, but not below 2**53.
    """
    return for_kernels(np.ascontiguousarray(values, _FLOAT64)) if values.dtype in _READ else None


def _is_on_device(part: Any) -> bool:
    """True if an array, a sparse matrix or costs are on a device."""
    if isinstance(part, Costs):
        return part.on_device
    return hasattr(getattr(part, "data", part), "__cuda_array_interface__") or hasattr(
        part, "__cuda_array_interface__"
    )


def _part(costs: Any, k: int) -> Any:
    """The costs of one problem of a list: as they are, if they have a shape and can be read."""
    if is_tensor(costs):
        return matrix_of(costs)
    is_read = hasattr(costs, "shape") and isinstance(getattr(costs, "dtype", None), np.dtype)
    if is_read and not isinstance(costs, np.ma.MaskedArray):
        return costs
    return as_array(costs, f"problem {k}")


def _dimensions(values: Any, name: str) -> int:
    """The dimensions of an array, or of what can be read as one; 0 of anything else."""
    if hasattr(values, "ndim"):
        return int(values.ndim)
    is_read = any(hasattr(values, protocol) for protocol in PROTOCOLS)
    return int(as_array(values, name).ndim) if is_read else 0


def is_batch(source: Any) -> bool:
    """True if these are the costs of many problems: a list, or an array of three dimensions."""
    if isinstance(source, CostBatch):
        return True
    if isinstance(source, list):
        first = source[0] if source else None
        return (
            not source
            or isinstance(first, Costs)
            or _dimensions(first, "problem 0") == 2
            or (isinstance(first, list) and bool(first) and isinstance(first[0], list))
        )
    return _dimensions(source, "the costs") == 3


class CostBatch(Sequence[Any]):
    """Problems by their numbers: what `assign` takes for each of them.

    Parameters
    ----------
    source : array of shape (B, n, m), or list of matrices
        In a list, each may have its own shape, dtype and kind.
    sizes : (rows, cols), optional
        How many rows and columns of an array each problem has, from the first on; integers, or
        arrays of B of them.

    Attributes
    ----------
    sizes : int64 array of shape (B, 2)
        The rows and columns of each problem.
    shape : (int, int)
        Rows and columns that have room for each problem.
    is_even : bool
        Whether this is an array whose problems have all its rows and columns.
    begins : int, or int64 array of length B
        The columns of an array at which its problems begin.

    Raises
    ------
    TypeError, ValueError
        If it is no batch, or the sizes do not fit it.
    """

    begins: Any

    def __init__(self, source: Any, sizes: Any = None) -> None:
        self._array: Any = None
        self._list: list[Any] = []
        self.is_even, self.begins = False, 0
        if isinstance(source, list):
            if sizes is not None:
                raise TypeError("sizes are for an array of three dimensions, not for a list")
            self._list = [
                part if type(part) is np.ndarray else _part(part, k)
                for k, part in enumerate(source)
            ]
            for k, part in enumerate(self._list):
                if len(part.shape) != 2:
                    raise ValueError(f"problem {k}: the costs must have 2 dimensions")
            # Tuples that are kept would have Python's garbage collector look at them.
            lengths = itertools.chain.from_iterable(part.shape for part in self._list)
            self.sizes = np.fromiter(lengths, np.int64).reshape(-1, 2)
            nrows, ncols = self.sizes.max(axis=0, initial=0).tolist()
            self.shape: tuple[int, int] = (nrows, ncols)
            return
        self._array = as_array(source_of(source) if is_tensor(source) else source, "the costs")
        if self._array.ndim != 3:
            raise ValueError(f"sizes need costs of 3 dimensions; got {self._array.ndim}")
        count, *shape = self._array.shape
        self.shape = (shape[0], shape[1])
        self.is_even = sizes is None
        # To write ten thousand pairs would take longer than to solve as many problems on a device.
        self.sizes = np.broadcast_to(np.array(self.shape, np.int64), (count, 2))
        if sizes is not None:
            self.sizes = self.sizes.copy()
            self._set_sizes(sizes)

    def _set_sizes(self, sizes: Any) -> None:
        rows, cols = sizes
        for side, given in enumerate((rows, cols)):
            numbers = np.asarray(as_array(given, "sizes"))
            if numbers.dtype.kind not in "iu" or numbers.shape not in ((), (len(self),)):
                raise TypeError(f"sizes must be integers, or arrays of {len(self)} of them")
            if ((numbers < 0) | (numbers > self.shape[side])).any():
                raise ValueError(f"sizes must be from 0 to {self.shape[side]}")
            self.sizes[:, side] = numbers
        self.is_even = bool((self.sizes == self.shape).all())

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, k: Any) -> Any:
        if self._array is None:
            return self._list[k]
        nrows, ncols = self.sizes[k].tolist()
        return self._array[k, :nrows, :ncols]

    def __iter__(self) -> Iterator[Any]:
        if self._array is None:
            return iter(self._list)
        return iter(self._array) if self.is_even else (self[k] for k in range(len(self)))

    @property
    def _parts(self) -> list[Any]:
        return self._list if self._array is None else [self._array]

    @functools.cached_property
    def on_device(self) -> bool:
        """True if any costs are on a device."""
        return not self._all_arrays and any(map(_is_on_device, self._parts))

    @functools.cached_property
    def _all_arrays(self) -> bool:
        """True if all costs are arrays of NumPy."""
        return set(map(type, self._parts)) <= {np.ndarray}

    @functools.cached_property
    def _are_filled(self) -> bool:
        """True if some costs are distances of points, and all others arrays of NumPy."""
        return self._array is None and all(
            type(part) is np.ndarray or _is_filled(part) for part in self._list
        )

    def roundings(self) -> Iterator[tuple[int, Rounding]]:
        """The problems whose costs are rounded, and how far."""
        for k, part in enumerate(self._list):
            if isinstance(part, Costs) and (part.rounding.share or part.rounding.pair):
                yield k, part.rounding

    @functools.cached_property
    def _dtypes(self) -> set[np.dtype]:
        return {part.dtype for part in self._parts}

    @property
    def xp(self) -> Any:
        """The module of arrays like the costs."""
        if not self.on_device:
            return np
        import cupy

        return cupy

    @property
    def kinds(self) -> set[str]:
        """The kinds of the costs' dtypes."""
        return {dtype.kind for dtype in self._dtypes}

    @property
    def is_integer(self) -> bool:
        """True if all costs are integers."""
        return all(dtype.kind in "biu" for dtype in self._dtypes)

    def on_one_device(self) -> tuple[Any, np.dtype] | None:
        """All costs on the current device, in one dtype that kernels read, which is also returned.

        They are an array without gaps, or a list of arrays whose rows have none. None if some costs
        are not dense, or of a dtype that no kernel reads.
        """
        import cupy

        parts = self._parts
        if not all(isinstance(part, (np.ndarray, cupy.ndarray)) for part in parts):
            return None
        dtype = _READ_ON_DEVICE.get(np.result_type(*self._dtypes).newbyteorder("="))
        if dtype is None:
            return None
        if self._array is not None:
            return cupy.ascontiguousarray(cupy.asarray(self._array), dtype), dtype

        def read(part: Any) -> Any:  # to ask CuPy takes a microsecond each
            is_so = type(part) is cupy.ndarray and part.dtype == dtype
            return part if is_so else cupy.asarray(part, dtype)

        there = list(map(read, parts))

        def without_gaps(part: Any) -> Any:
            across, along = part.strides
            return part if along == dtype.itemsize <= across else cupy.ascontiguousarray(part)

        return list(map(without_gaps, there)), dtype

    def are_made_on_device(self) -> bool:
        """True if all costs are distances of points whose matrices a device makes."""
        return bool(self._list) and all(
            isinstance(part, PointCosts) and part.points_if(True) is not None for part in self._list
        )

    def made_on_device(self, first: int, last: int) -> Any:
        """The matrices of the problems from ``first`` to ``last``, which a device makes.

        They are one array if all have one shape, else a list of arrays.
        """
        import cupy

        parts = [part.to_device() for part in self._list[first:last]]
        entries = [math.prod(part.shape) for part in parts]
        require_device_memory(sum(entries) * _FLOAT64.itemsize, "a part of the batch's matrices")
        room = cupy.empty(sum(entries))
        fill_clouds([part.points for part in parts], room)
        shapes = [part.shape for part in parts]
        if len(set(shapes)) == 1:
            return room.reshape(len(parts), *shapes[0])
        ends = itertools.accumulate(entries)
        return [room[end - n : end].reshape(part) for n, end, part in zip(entries, ends, shapes)]

    def places(self) -> tuple[np.ndarray, int] | None:
        """Where each problem is if all costs are in one array, and the length of that.

        A place is the start, the step to the next row, the rows and the columns. None if `read`
        cannot read some costs: they are neither dense nor distances of points, not on the host, or
        not numbers that float64 may hold.
        """
        if not ((self._all_arrays or self._are_filled) and self._dtypes <= _READ):
            return None
        places = np.empty((len(self), 4), np.int64)
        for side in range(2):  # pairs would be written one by one
            places[:, 2 + side] = self.sizes[:, side]
        if self._array is not None:
            nrows, ncols = self.shape
            places[:, 0] = np.arange(len(self)) * (nrows * ncols)
            places[:, 1] = ncols
            return places, self._array.size
        entries = self.sizes[:, 0] * self.sizes[:, 1]
        places[:, 0] = entries.cumsum() - entries
        places[:, 1] = self.sizes[:, 1]
        return places, int(entries.sum())

    @property
    def in_place(self) -> bool:
        """True if `read` never copies the costs."""
        return self._array is not None and self._can_read(self._array)

    def _can_read(self, part: np.ndarray) -> bool:
        """True if compiled code reads an array as it is."""
        return part.dtype in _READ_IN_PLACE and part.flags.c_contiguous

    def read(self, first: int, last: int, room: Callable[[int], np.ndarray]) -> np.ndarray:
        """The costs of the problems from ``first`` to ``last``, one after the other.

        They are read where they are if they are there in this form, and of a dtype that compiled
        code reads. Else they are copied into ``room(count)``, an array of so many float64. Truth
        values are read as bytes, for which code is then compiled once.
        """
        if self._array is not None:
            part = self._array[first:last]
        elif not self._all_arrays:
            return self._filled(first, last, room)
        elif last - first == 1:
            part = self._list[first]
        else:
            entries = int(self.sizes[first:last].prod(axis=1).sum())
            return np.concatenate(self._list[first:last], axis=None, out=room(entries))
        if self._can_read(part):
            values = for_kernels(part.reshape(-1))
            return values.view(np.uint8) if part.dtype == np.bool_ else values
        values = room(part.size)
        values.reshape(part.shape)[...] = part
        return values

    def _filled(self, first: int, last: int, room: Callable[[int], np.ndarray]) -> np.ndarray:
        """Do as `read` does for a list that has distances of points."""
        parts = self._list[first:last]
        values = room(sum(math.prod(part.shape) for part in parts))
        begin = 0
        for part in parts:
            block = values[begin : begin + math.prod(part.shape)].reshape(part.shape)
            if type(part) is np.ndarray:
                block[...] = part
            else:
                part.fill(block)
            begin += block.size
        return values


def _is_filled(part: Any) -> bool:
    """True if compiled code writes the costs: distances of points on the host."""
    return isinstance(part, PointCosts) and part.points is not None and not part.on_device


class SideBySide(CostBatch):
    """Problems side by side in an array of a device: problem k has the next columns of its part k.

    Parameters
    ----------
    source : array of shape (B, n, m)
    widths : sequence of B ints
        The columns of each problem. They add up to m.
    """

    def __init__(self, source: Any, widths: Sequence[int]) -> None:
        super().__init__(source)
        count, nrows, _ = self._array.shape
        columns = np.array(widths, np.int64)
        self.is_even, self.begins = False, columns.cumsum() - columns
        self.sizes = np.stack([np.full(count, nrows), columns], axis=1)
        self.shape = nrows, int(columns.max(initial=0))

    def __getitem__(self, k: Any) -> Any:
        begin = self.begins[k]
        return self._array[k, :, begin : begin + self.sizes[k, 1]]
