"""The functions of `atomics`, `prefetch` and `views` by documented means of Numba alone.

They serve where Numba lacks what those are made of (`private.arrays`). They do the same, but for
three differences: arguments are not checked, prefetches fetch nothing, and views have owners, which
Numba counts. The room of `on_stack` is on the heap.

An atomic operation is LLVM's instruction at an address, which `array.ctypes` tells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic as _intrinsic
from numba.extending import overload

__all__ = [
    "as_bytes",
    "as_halves",
    "as_integers",
    "cas",
    "fetch_add",
    "load",
    "on_stack",
    "prefetch",
    "prefetch_far",
    "prefetch_range",
    "store",
    "view",
]

# Callers do not pass the typing context, which Numba's annotation of an intrinsic asks for.
intrinsic: Any = _intrinsic


# -- atomics ---------------------------------------------------------------------------------------


@njit
def _address(array, index):
    return array.ctypes.data + index * array.strides[0]


def _pointer(builder: Any, item: Any, address: Any) -> Any:
    return builder.inttoptr(address, ir.IntType(item.bitwidth).as_pointer())


@intrinsic
def _cas(typingctx: Any, array: Any, address: Any, expected: Any, desired: Any) -> Any:
    item = array.dtype

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _pointer(builder, item, args[1])
        outcome = builder.cmpxchg(place, args[2], args[3], "acq_rel", "acquire")
        return builder.extract_value(outcome, 1)

    return types.boolean(array, types.intp, item, item), generate


@intrinsic
def _fetch_add(typingctx: Any, array: Any, address: Any, value: Any) -> Any:
    item = array.dtype

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _pointer(builder, item, args[1])
        return builder.atomic_rmw("add", place, args[2], "acq_rel")

    return item(array, types.intp, item), generate


@intrinsic
def _load(typingctx: Any, array: Any, address: Any) -> Any:
    item = array.dtype

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_pointer(builder, item, args[1]), "acquire", item.bitwidth // 8)

    return item(array, types.intp), generate


@intrinsic
def _store(typingctx: Any, array: Any, address: Any, value: Any) -> Any:
    """Write the value, and return it."""
    item = array.dtype

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _pointer(builder, item, args[1])
        builder.store_atomic(args[2], place, "release", item.bitwidth // 8)
        return args[2]

    return item(array, types.intp, item), generate


@njit
def cas(array, index, expected, desired):
    """Set ``array[index]`` to ``desired`` if it holds ``expected``; True if it did."""
    return _cas(array, _address(array, index), expected, desired)


@njit
def fetch_add(array, index, value):
    """Add ``value`` to ``array[index]``; return what it held before."""
    return _fetch_add(array, _address(array, index), value)


@njit
def load(array, index):
    """Read ``array[index]``, which any thread may write."""
    return _load(array, _address(array, index))


@njit
def store(array, index, value):
    """Write ``value`` to ``array[index]``, for any thread to read."""
    _store(array, _address(array, index), value)


# -- prefetch --------------------------------------------------------------------------------------


@njit
def prefetch(array, index):
    """Fetch nothing."""


prefetch_far = prefetch


@njit
def prefetch_range(array, first, last):
    """Fetch nothing."""


# -- views -----------------------------------------------------------------------------------------


def view(array: Any, place: Any, shape: Any) -> Any:
    """An array of this shape in the memory of another; compiled code calls it."""
    raise NotImplementedError


@overload(view, strict=False)
def _view(array: Any, place: Any, shape: Any) -> Callable[..., Any]:
    find = _PLACES[0 if isinstance(place, types.Integer) else len(place)]
    if isinstance(shape, types.Integer):

        def made(array, place, shape):
            first = find(array, place)
            return array.reshape(-1)[first : first + max(shape, 0)]

        return made
    lengths_of = _LENGTHS[len(shape)]

    def made_by_tuple(array, place, shape):
        first, count, lengths = find(array, place), np.intp(1), lengths_of(shape)
        for length in lengths:
            count *= length
        return array.reshape(-1)[first : first + count].reshape(lengths)

    return made_by_tuple


_PLACES = [
    njit(lambda array, place: place),
    njit(lambda array, place: place[0]),
    njit(lambda array, place: place[0] * array.shape[1] + place[1]),
    njit(lambda array, place: (place[0] * array.shape[1] + place[1]) * array.shape[2] + place[2]),
]
"""Where a place is in memory, by how many numbers it has; 0 is a number alone."""

_LENGTHS = {
    1: njit(lambda shape: (np.intp(shape[0]),)),
    2: njit(lambda shape: (np.intp(shape[0]), np.intp(shape[1]))),
    3: njit(lambda shape: (np.intp(shape[0]), np.intp(shape[1]), np.intp(shape[2]))),
}
"""A shape as a tuple of numbers of one type."""


@njit
def as_integers(array):
    """The memory of an array of float64 as one of int64."""
    return array.view(np.int64)


@njit
def as_halves(array):
    """The memory of a vector of numbers of 8 bytes as int32."""
    return array.view(np.int32)


@njit
def as_bytes(array):
    """The memory of a vector as bytes."""
    return array.view(np.uint8)


@njit
def on_stack(number, count):
    """A vector for so many numbers of the type of ``number``."""
    return np.full(count, number)
