"""LLVM's prefetch, for Numba's CPU target: ask for an item that will be read some steps later.

    prefetch(array, index)               brings array[index] into the nearest cache, without waiting
    prefetch_far(array, index)           brings it into the one behind that, if it is for much later
    prefetch_range(array, first, last)   the same for array[first] to array[last], at most LINES

Indices are not checked and do not wrap. An address that does not exist does no harm.

This depends on private parts of Numba (`private.arrays`). Where they do not work, nothing is
fetched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import TypingError, njit, types
from numba.extending import intrinsic as _intrinsic

from gpumatch.cpu.numba_tools.cache import keep
from gpumatch.cpu.numba_tools.private import arrays, works

__all__ = ["prefetch", "prefetch_far", "prefetch_range"]

# Callers do not pass the typing context, which Numba's annotation of an intrinsic asks for.
intrinsic: Any = _intrinsic

_READ, _ALL_CACHES, _ALL_BUT_NEAREST, _DATA = 0, 3, 2, 1
LINE = 64
"""Bytes that come into a cache at once."""
LINES = 8
"""Lines that are fetched of a range, beside that of its last item."""


@intrinsic
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Bring ``array[index]`` into the nearest cache."""
    _check(array)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _fetch(context, builder, signature.args[0], args[0], args[1])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def prefetch_far(typingctx: Any, array: Any, index: Any) -> Any:
    """Bring ``array[index]`` into the second cache, so that what is in the nearest stays there."""
    _check(array)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _fetch(context, builder, signature.args[0], args[0], args[1], _ALL_BUT_NEAREST)
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def prefetch_range(typingctx: Any, array: Any, first: Any, last: Any) -> Any:
    """Bring ``array[first]`` to ``array[last]`` into the nearest cache, `LINES` lines at most."""
    _check(array)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind, (view, first, last) = signature.args[0], args
        step = LINE // (kind.dtype.bitwidth // 8)
        most = builder.add(first, first.type(LINES * step))
        end = builder.select(builder.icmp_signed("<", last, most), last, most)
        places = arrays.for_range_slice(builder, first, end, first.type(step), inc=True)
        with places as (index, _):
            _fetch(context, builder, kind, view, index)
        _fetch(context, builder, kind, view, last)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


def _check(array: Any) -> None:
    if not (isinstance(array, types.Array) and array.ndim == 1):
        raise TypingError(f"prefetch needs a one-dimensional array, got {array}")


def _fetch(
    context: Any, builder: Any, kind: Any, array: Any, index: Any, caches: int = _ALL_CACHES
) -> None:
    """LLVM's instruction for one item."""
    view = context.make_array(kind)(context, builder, array)
    item = arrays.get_item_pointer(context, builder, kind, view, [index], wraparound=False)
    byte_pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    takes = [byte_pointer, number, number, number]
    function = arrays.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), takes), "llvm.prefetch.p0i8"
    )
    how = [number(_READ), number(caches), number(_DATA)]
    builder.call(function, [builder.bitcast(item, byte_pointer), *how])


def _attempt(numbers):
    """Fetch some of an array, and the last of it."""
    prefetch(numbers, 1)
    prefetch_far(numbers, 2)
    prefetch_range(numbers, 0, numbers.size - 1)
    return numbers[numbers.size - 1]


def _trial() -> bool:
    attempt = njit(_attempt)
    keep(attempt)
    return attempt(np.arange(200)) == 199


if not works(arrays, _trial):
    from gpumatch.cpu.numba_tools import plain

    prefetch, prefetch_far, prefetch_range = (
        plain.prefetch,
        plain.prefetch_far,
        plain.prefetch_range,
    )
