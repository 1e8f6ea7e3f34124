"""LLVM's prefetch, for Numba's CPU target: ask for an item that will be read some steps later.

    prefetch(array, index)   brings array[index] into the nearest cache, without waiting for it

The index is not checked and does not wrap. An address that does not exist does no harm.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic as _intrinsic

__all__ = ["prefetch"]

# Callers do not pass the typing context, which Numba's annotation of an intrinsic asks for.
intrinsic: Any = _intrinsic

_READ, _ALL_CACHES, _DATA = 0, 3, 1


@intrinsic
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Bring ``array[index]`` into the nearest cache."""
    if not (isinstance(array, types.Array) and array.ndim == 1):
        raise TypingError(f"prefetch needs a one-dimensional array, got {array}")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        item = cgutils.get_item_pointer(
            context, builder, signature.args[0], view, [args[1]], wraparound=False
        )
        byte_pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        takes = [byte_pointer, number, number, number]
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), takes), "llvm.prefetch.p0i8"
        )
        how = [number(_READ), number(_ALL_CACHES), number(_DATA)]
        builder.call(function, [builder.bitcast(item, byte_pointer), *how])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate
