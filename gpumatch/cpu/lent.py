"""Arrays lent to a compiled function for one call.

Numba counts each array argument as one more owner of its memory, which takes as long as the rest of
a short call. The caller holds its arguments until the call returns; so an array may as well be
lent: the function reads and writes it, but must neither return nor keep it.

    Lent(dtype, ndim)  -> the type of such an argument, for a signature

What is checked is that it is an array, and the size of an entry. The rest is for the caller: above
all the number of dimensions, for the shape of an array with more overwrites the stack, and the
dtype, for another of that size is read as if it were this. That it is C-contiguous the function can
tell by its strides.

Reference: Numba Developer Manual, *Low-level extension API*; numba.core.boxing.unbox_array.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import NativeValue, register_model, unbox

__all__ = ["Lent"]


class Lent(types.Array):
    """The type of a lent array."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        super().__init__(dtype, ndim, "C", name=f"Lent({dtype}, {ndim})")


# Sets data, shape and strides of a NumPy array, and no owner; not 0 for another object.
_ADAPT = ir.FunctionType(ir.IntType(32), (cgutils.voidptr_t, cgutils.voidptr_t))

register_model(Lent)(models.ArrayModel)


@unbox(Lent)
def _unbox(typ: Any, obj: Any, c: Any) -> Any:
    array = c.context.make_array(typ)(c.context, c.builder)
    place = c.builder.bitcast(array._getpointer(), c.pyapi.voidptr)
    adapt = cgutils.get_or_insert_function(c.builder.module, _ADAPT, "numba_adapt_ndarray")
    failed = cgutils.is_not_null(c.builder, c.builder.call(adapt, (obj, place)))
    size = c.context.get_abi_sizeof(c.context.get_data_type(typ.dtype))
    failed = c.builder.or_(
        failed, c.builder.icmp_unsigned("!=", array.itemsize, array.itemsize.type(size))
    )
    with c.builder.if_then(failed, likely=False):
        c.pyapi.err_set_string("PyExc_TypeError", f"needs an array like {typ}")
    return NativeValue(array._getvalue(), is_error=failed)
