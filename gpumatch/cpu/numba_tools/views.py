"""Parts of arrays that kernels work in, without an owner.

A slice of an array counts as one of its owners, and may begin before the array's end or beyond it.
Numba compiles code for all of that, hundreds of instructions a slice, and reshaping one takes as
many again. A view is a place and a shape. So its array must outlive it, as the arguments of a
kernel do, and it must lie inside the array. Neither is checked.

    view(array, place, shape)  -> what begins at array[place], with this shape
    as_integers(array)         -> all of it, as integers of the same bits
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic as _intrinsic
from numba.np.arrayobj import populate_array

__all__ = ["as_integers", "view"]

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
    result = array.copy(dtype=types.int64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = context.make_array(array)(context, builder, args[0])
        made = context.make_array(result)(context, builder)
        populate_array(
            made,
            data=builder.bitcast(source.data, made.data.type),
            shape=source.shape,
            strides=source.strides,
            itemsize=source.itemsize,
            meminfo=None,
        )
        return made._getvalue()

    return result(array), generate
