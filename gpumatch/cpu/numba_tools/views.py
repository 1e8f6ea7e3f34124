"""Parts of arrays that kernels work in, without an owner.

A slice of an array counts as one of its owners, and may begin before the array's end or beyond it.
Numba compiles code for all of that, hundreds of instructions a slice, and reshaping one takes as
many again. A view is a place and a shape. So its array must outlive it, as the arguments of a
kernel do, and it must lie inside the array. Neither is checked.

    view(array, place, shape)  -> what begins at array[place], with this shape
    as_integers(array)         -> all of it, as integers of the same bits
    as_halves(array)           -> all of it, as int32, two for each number of 8 bytes
    on_stack(number, count)    -> a vector for so many numbers of the type of ``number``

Room on the stack ends with the call. Its size must be known when the function is compiled. A line
that is passed twice gives the same room twice.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic as _intrinsic
from numba.np.arrayobj import populate_array

from gpumatch.cpu.numba_tools.prefetch import LINE

__all__ = ["as_halves", "as_integers", "on_stack", "view"]

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
        stride = ir.Constant(cgutils.intp_t, size)
        strides: list[Any] = []
        for length in reversed(lengths):
            strides.insert(0, stride)
            stride = builder.mul(stride, length)
        made = context.make_array(result)(context, builder)
        populate_array(
            made,
            data=cgutils.get_item_pointer(context, builder, array, source, at, wraparound=False),
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
    values = [value] if isinstance(kind, types.Integer) else cgutils.unpack_tuple(builder, value)
    return [context.cast(builder, one, own, types.intp) for one, own in zip(values, kinds)]


@intrinsic
def as_integers(typingctx: Any, array: Any) -> Any:
    """The memory of an array of float64 as one of int64, without an owner."""
    if not (isinstance(array, types.Array) and array.dtype == types.float64):
        raise TypingError(f"needs an array of float64, got {array}")
    return _read_as(array, types.int64, 1)


@intrinsic
def as_halves(typingctx: Any, array: Any) -> Any:
    """The memory of a vector of numbers of 8 bytes as int32, without an owner."""
    if not (isinstance(array, types.Array) and array.layout == "C" and array.ndim == 1):
        raise TypingError(f"needs a C-contiguous vector, got {array}")
    if array.dtype not in (types.float64, types.int64):
        raise TypingError(f"needs numbers of 8 bytes, got {array}")
    return _read_as(array, types.int32, 2)


def _read_as(array: Any, dtype: Any, parts: int) -> Any:
    """The signature and the code of an array of ``parts`` times as many numbers of this dtype."""
    result = array.copy(dtype=dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = context.make_array(array)(context, builder, args[0])
        made, kind = context.make_array(result)(context, builder), context.get_data_type(dtype)
        lengths = cgutils.unpack_tuple(builder, source.shape)
        strides = cgutils.unpack_tuple(builder, source.strides)
        number = ir.Constant(cgutils.intp_t, parts)
        lengths[-1] = builder.mul(lengths[-1], number)
        strides[-1] = builder.sdiv(strides[-1], number)
        populate_array(
            made,
            data=builder.bitcast(source.data, made.data.type),
            shape=lengths,
            strides=strides,
            itemsize=ir.Constant(cgutils.intp_t, context.get_abi_sizeof(kind)),
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
        memory = cgutils.alloca_once(builder, data_type, count.literal_value)
        memory.align = LINE
        size = ir.Constant(cgutils.intp_t, context.get_abi_sizeof(data_type))
        made = context.make_array(result)(context, builder)
        populate_array(
            made,
            data=memory,
            shape=[ir.Constant(cgutils.intp_t, count.literal_value)],
            strides=[size],
            itemsize=size,
            meminfo=None,
        )
        return made._getvalue()

    return result(number, count), generate
