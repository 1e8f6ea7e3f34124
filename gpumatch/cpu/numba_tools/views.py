"""Parts of arrays that kernels work in, without an owner.

A slice of an array counts as one of its owners, and may begin before the array's end or beyond it.
Numba compiles code for all of that, hundreds of instructions a slice, and reshaping one takes as
many again. A view is a place and a shape. So its array must outlive it, as the arguments of a
kernel do, and it must lie inside the array. Neither is checked.

    view(array, place, shape)  -> what begins at array[place], with this shape
    as_integers(array)         -> all of it, as integers of the same bits
    as_halves(array)           -> all of it, as int32, two for each number of 8 bytes
    as_bytes(array)            -> all of it, as bytes
    on_stack(number, count)    -> a vector for so many numbers of the type of ``number``

Room on the stack ends with the call. Its size must be known when the function is compiled. A line
that is passed twice gives the same room twice.

This depends on private parts of Numba (`private.arrays`). Where they do not work, the functions are
those of `plain`, which make slices and arrays with owners.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import TypingError, njit, types
from numba.extending import intrinsic as _intrinsic

from gpumatch.cpu.numba_tools.cache import keep
from gpumatch.cpu.numba_tools.prefetch import LINE
from gpumatch.cpu.numba_tools.private import arrays, works

__all__ = ["ARE_PLAIN", "as_halves", "as_integers", "on_stack", "view"]

# Callers do not pass the typing context, which Numba's annotation of an intrinsic asks for.
intrinsic: Any = _intrinsic


@intrinsic
def view(typingctx: Any, array: Any, place: Any, shape: Any) -> Any:
    """An array without an owner; ``place`` and ``shape`` are integers or tuples of them."""
    if not (isinstance(array, types.Array) and array.layout == "C"):
        raise TypingError(f"needs a C-contiguous array, got {array}")
    if _dimensions(place) != array.ndim:
        raise TypingError(f"needs an index for each dimension of {array}, got {place}")
    result = types.Array(array.dtype, _dimensions(shape), "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = context.make_array(array)(context, builder, args[0])
        at, lengths = (
            _numbers(context, builder, *one) for one in zip(signature.args[1:], args[1:])
        )
        size = context.get_abi_sizeof(context.get_data_type(array.dtype))
        stride = ir.Constant(arrays.intp_t, size)
        strides: list[Any] = []
        for length in reversed(lengths):
            strides.insert(0, stride)
            stride = builder.mul(stride, length)
        made = context.make_array(result)(context, builder)
        context.populate_array(
            made,
            data=arrays.get_item_pointer(context, builder, array, source, at, wraparound=False),
            shape=lengths,
            strides=strides,
            itemsize=size,
            meminfo=None,
        )
        return made._getvalue()

    return result(array, place, shape), generate


def _dimensions(numbers: Any) -> int:
    return 1 if isinstance(numbers, types.Integer) else len(numbers)


def _numbers(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """The integers of one or of a tuple, as wide as indices are."""
    kinds = [kind] if isinstance(kind, types.Integer) else list(kind)
    values = [value] if isinstance(kind, types.Integer) else arrays.unpack_tuple(builder, value)
    return [context.cast(builder, one, own, types.intp) for one, own in zip(values, kinds)]


@intrinsic
def as_integers(typingctx: Any, array: Any) -> Any:
    """The memory of an array of float64 as one of int64, without an owner."""
    if not (isinstance(array, types.Array) and array.dtype == types.float64):
        raise TypingError(f"needs an array of float64, got {array}")
    return _read_as(array, types.int64)


@intrinsic
def as_halves(typingctx: Any, array: Any) -> Any:
    """The memory of a vector of numbers of 8 bytes as int32, without an owner."""
    if not (isinstance(array, types.Array) and array.layout == "C" and array.ndim == 1):
        raise TypingError(f"needs a C-contiguous vector, got {array}")
    if array.dtype not in (types.float64, types.int64):
        raise TypingError(f"needs numbers of 8 bytes, got {array}")
    return _read_as(array, types.int32)


@intrinsic
def as_bytes(typingctx: Any, array: Any) -> Any:
    """The memory of a vector as bytes, without an owner."""
    if not (isinstance(array, types.Array) and array.layout == "C" and array.ndim == 1):
        raise TypingError(f"needs a C-contiguous vector, got {array}")
    return _read_as(array, types.uint8)


def _read_as(array: Any, dtype: Any) -> Any:
    """The signature and the code of an array of the same bits in numbers of this dtype."""
    result = array.copy(dtype=dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = context.make_array(array)(context, builder, args[0])
        made = context.make_array(result)(context, builder)
        lengths = arrays.unpack_tuple(builder, source.shape)
        strides = arrays.unpack_tuple(builder, source.strides)
        size, own = (
            context.get_abi_sizeof(context.get_data_type(one)) for one in (dtype, array.dtype)
        )
        number = ir.Constant(arrays.intp_t, own // size)
        lengths[-1] = builder.mul(lengths[-1], number)
        strides[-1] = builder.sdiv(strides[-1], number)
        context.populate_array(
            made,
            data=builder.bitcast(source.data, made.data.type),
            shape=lengths,
            strides=strides,
            itemsize=ir.Constant(arrays.intp_t, size),
            meminfo=None,
        )
        return made._getvalue()

    return result(array), generate


@intrinsic(prefer_literal=True)
def on_stack(typingctx: Any, number: Any, count: Any) -> Any:
    """A vector on the stack, from the begin of a cache line, for the whole call of the kernel."""
    dtype = types.unliteral(number)
    result = types.Array(dtype, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data_type = context.get_data_type(dtype)
        memory = arrays.alloca_once(builder, data_type, count.literal_value)
        memory.align = LINE
        size = ir.Constant(arrays.intp_t, context.get_abi_sizeof(data_type))
        made = context.make_array(result)(context, builder)
        context.populate_array(
            made,
            data=memory,
            shape=[ir.Constant(arrays.intp_t, count.literal_value)],
            strides=[size],
            itemsize=size,
            meminfo=None,
        )
        return made._getvalue()

    return result(number, count), generate


def _attempt(numbers, pairs):
    """Change numbers in views of all kinds; what the views say of themselves."""
    part = view(numbers, 3, (2, np.int32(2)))
    part[1, 0] = 0.5
    line = view(pairs, (1, 1), 2)
    line[1] = 7
    as_integers(numbers)[0] = 2**62
    as_halves(numbers)[3] = 2**30
    as_bytes(numbers)[31] = 0x40
    room, other = on_stack(numbers[0], 5), on_stack(np.int32(0), 3)
    for k in range(5):
        room[k] = k
    for k in range(3):
        other[k] = 2 * k
    total = 0.0
    for k in range(5):
        total += room[k]
    return part.shape, part.strides, line.size, room.itemsize, other.itemsize, total + other[2]


def _trial() -> bool:
    attempt, numbers, pairs = njit(_attempt), np.zeros(8), np.zeros((2, 3), np.int32)
    keep(attempt)
    facts = attempt(numbers, pairs)
    return (
        facts == ((2, 2), (16, 8), 2, 8, 4, 14.0)
        and numbers.tolist() == [2.0, 2.0, 0, 2.0, 0, 0.5, 0, 0]
        and pairs.tolist() == [[0, 0, 0], [0, 0, 7]]
    )


ARE_PLAIN = not works(arrays, _trial)

if ARE_PLAIN:
    from gpumatch.cpu.numba_tools import plain

    view, on_stack = plain.view, plain.on_stack
    as_integers, as_halves, as_bytes = plain.as_integers, plain.as_halves, plain.as_bytes
