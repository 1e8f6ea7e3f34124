"""Atomic operations on the elements of one-dimensional integer arrays, for Numba's CPU target.

Numba publishes atomics for CUDA only. These are LLVM's own instructions (cmpxchg, atomicrmw, atomic
load and store), callable inside ``@njit`` functions, in ``prange`` loops as well as in ``nogil``
kernels that share arrays between Python threads.

    cas(array, index, expected, desired)  -> bool   True when array[index] was expected, now desired
    fetch_add(array, index, value)        -> old    array[index] += value
    load(array, index)                    -> value
    store(array, index, value)

The array's item type is any NumPy integer; the other values are cast to it. Indices are not checked
and do not wrap. Every operation is an acquire or a release or both. So a thread that reads a value
with one of these sees all that another thread wrote before the ``store``, ``fetch_add`` or
successful ``cas`` of that value. On x86 ``load`` and ``store`` cost as much as plain accesses. In
addition, the compiler cannot keep the value in a register across them and cannot tear it.

This depends on private parts of Numba (`private.arrays`). Where they do not work, the functions are
those of `plain`.

Reference: LLVM Atomic Instructions and Concurrency Guide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import TypingError, njit, types
from numba.extending import intrinsic as _intrinsic

from gpumatch.cpu.numba_tools.cache import keep
from gpumatch.cpu.numba_tools.private import arrays, works

__all__ = ["cas", "fetch_add", "load", "store"]

# Callers do not pass the typing context, which Numba's annotation of an intrinsic asks for.
intrinsic: Any = _intrinsic


def _item_type(array: Any, index: Any) -> Any:
    if not (isinstance(array, types.Array) and array.ndim == 1 and array.aligned):
        raise TypingError(f"an atomic needs a one-dimensional array, got {array}")
    if not isinstance(array.dtype, types.Integer):
        raise TypingError(f"an atomic needs integer items, got {array.dtype}")
    if not isinstance(index, types.Integer):
        raise TypingError(f"an atomic needs an integer index, got {index}")
    return array.dtype


def _item_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    return arrays.get_item_pointer(context, builder, array_type, view, [index], wraparound=False)


@intrinsic
def cas(typingctx: Any, array: Any, index: Any, expected: Any, desired: Any) -> Any:
    """Set ``array[index]`` to ``desired`` if it holds ``expected``; True if it did."""
    item = _item_type(array, index)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _item_pointer(context, builder, array, args[0], args[1])
        outcome = builder.cmpxchg(pointer, args[2], args[3], "acq_rel", "acquire")
        return builder.extract_value(outcome, 1)

    return types.boolean(array, types.intp, item, item), generate


@intrinsic
def fetch_add(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Add ``value`` to ``array[index]``; return what it held before."""
    item = _item_type(array, index)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _item_pointer(context, builder, array, args[0], args[1])
        return builder.atomic_rmw("add", pointer, args[2], "acq_rel")

    return item(array, types.intp, item), generate


@intrinsic
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """Read ``array[index]``, which any thread may write."""
    item = _item_type(array, index)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _item_pointer(context, builder, array, args[0], args[1])
        return builder.load_atomic(pointer, "acquire", item.bitwidth // 8)

    return item(array, types.intp), generate


@intrinsic
def store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Write ``value`` to ``array[index]``, for any thread to read."""
    item = _item_type(array, index)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _item_pointer(context, builder, array, args[0], args[1])
        builder.store_atomic(args[2], pointer, "release", item.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, item), generate


def _attempt(counts):
    """Change two numbers from 3 and 4 to 5 and 6; True if what was there before is right."""
    swapped, kept = cas(counts, 0, 3, 5), cas(counts, 0, 3, 7)
    store(counts, 1, fetch_add(counts, 1, 1) + load(counts, 1) - 3)
    return swapped and not kept


def _trial() -> bool:
    attempt, counts = njit(_attempt), np.array([3, 4], np.int32)
    keep(attempt)
    return attempt(counts) and counts.tolist() == [5, 6]


if not works(arrays, _trial):
    from gpumatch.cpu.numba_tools import plain

    cas, fetch_add, load, store = plain.cas, plain.fetch_add, plain.load, plain.store
