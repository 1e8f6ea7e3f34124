"""What a short call of a compiled function can spare on arrays.

    Lent(dtype, ndim)        -> the type of an array argument, for a signature
    Rows(dtype, count)       -> the type of a result: the ``count`` rows of an array, or None
    on_stack(number, count)  -> in compiled code, room for numbers of the type of ``number``
    turned_in_place(array)   -> the transposed of a lent array whose columns are contiguous

Numba counts each array argument as one more owner of its memory, which takes as long as the rest of
a short call. The caller holds its arguments until the call returns; so an array may as well be
lent: the function reads and writes it, but must neither return nor keep it. What is checked is that
it is an array, and the size of an entry. The rest is for the caller: above all the number of
dimensions, for the shape of an array with more overwrites the stack, and the dtype, for another of
that size is read as if it were this. That it is C-contiguous the function can tell by its strides;
if it is by columns instead, `turned_in_place` is.

To wrap an array of Numba's for Python takes longer still, and so does a call of `numpy.empty`. A
function that returns an array of two dimensions as Rows gives a tuple of new arrays with copies of
its rows; and None if it returns one without rows.

Room on the stack is for `numba.carray`. It ends with the call, its size must be known when the
function is compiled, and it is but one room even if that line is passed again.

Reference: Numba Developer Manual, *Low-level extension API*; numba.core.boxing.unbox_array and
box_array.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import NativeValue, box, register_model, unbox
from numba.extending import intrinsic as _intrinsic
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import as_dtype

__all__ = ["Lent", "Rows", "on_stack", "turned_in_place"]

# Callers do not pass the typing context, which Numba's annotation of an intrinsic asks for.
intrinsic: Any = _intrinsic

_INT, _INTP = ir.IntType(32), cgutils.intp_t
# Sets data, shape and strides of a NumPy array, and no owner; not 0 for another object.
_ADAPT = ir.FunctionType(_INT, (cgutils.voidptr_t, cgutils.voidptr_t))
# A new NumPy array of so many dimensions, a shape, strides, data, a dtype's number, and 0.
_NEW = ir.FunctionType(
    cgutils.voidptr_t,
    (_INT, _INTP.as_pointer(), _INTP.as_pointer(), cgutils.voidptr_t, _INT, _INT),
)


class Lent(types.Array):
    """The type of a lent array."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        super().__init__(dtype, ndim, "C", name=f"Lent({dtype}, {ndim})")


class Rows(types.Array):
    """The type of a result that is handed over by its rows."""

    def __init__(self, dtype: Any, count: int) -> None:
        super().__init__(dtype, 2, "A", name=f"Rows({dtype}, {count})")
        self.number = count

    @property
    def key(self) -> Any:
        return *super().key, self.number


register_model(Lent)(models.ArrayModel)
register_model(Rows)(models.ArrayModel)


@unbox(Lent)
def _unbox(typ: Any, obj: Any, c: Any) -> Any:
    array, failed = _adapted(typ, obj, c)
    size = c.context.get_abi_sizeof(c.context.get_data_type(typ.dtype))
    failed = c.builder.or_(
        failed, c.builder.icmp_unsigned("!=", array.itemsize, array.itemsize.type(size))
    )
    with c.builder.if_then(failed, likely=False):
        c.pyapi.err_set_string("PyExc_TypeError", f"needs an array like {typ}")
    return NativeValue(array._getvalue(), is_error=failed)


@box(Rows)
def _box(typ: Any, value: Any, c: Any) -> Any:
    array = c.context.make_array(typ)(c.context, c.builder, value)
    count, length = cgutils.unpack_tuple(c.builder, array.shape)
    result = cgutils.alloca_once(c.builder, c.pyapi.pyobj)
    with c.builder.if_else(cgutils.is_null(c.builder, count)) as (without, some):
        with without:
            c.builder.store(c.pyapi.make_none(), result)
        with some:
            rows = c.pyapi.tuple_new(typ.number)
            c.builder.store(rows, result)
            for k in range(typ.number):
                place = (length.type(k), length.type(0))
                start = cgutils.get_item_pointer(c.context, c.builder, typ, array, place)
                row = _new(typ.dtype, start, length, c)
                c.pyapi.tuple_setitem(rows, k, row)
                with c.builder.if_then(cgutils.is_null(c.builder, row), likely=False):
                    c.builder.store(c.pyapi.get_null_object(), result)
            with c.builder.if_then(cgutils.is_null(c.builder, c.builder.load(result))):
                c.pyapi.decref(rows)
    c.context.nrt.decref(c.builder, typ, value)
    return c.builder.load(result)


def _new(dtype: Any, start: Any, length: Any, c: Any) -> Any:
    """A NumPy array with a copy of what is at ``start``, or NULL."""
    shape = cgutils.alloca_once_value(c.builder, length)
    strides, data = _INTP.as_pointer()(None), cgutils.voidptr_t(None)
    new = cgutils.get_or_insert_function(c.builder.module, _NEW, "numba_ndarray_new")
    number = _INT(as_dtype(dtype).num)
    obj = c.builder.call(new, (_INT(1), shape, strides, data, number, _INT(0)))
    with c.builder.if_then(cgutils.is_not_null(c.builder, obj)):
        array, _ = _adapted(types.Array(dtype, 1, "C"), obj, c)
        cgutils.raw_memcpy(c.builder, array.data, start, length, array.itemsize)
    return obj


def _adapted(typ: Any, obj: Any, c: Any) -> Any:
    """The array of an object, for Numba; and whether it is none."""
    array = c.context.make_array(typ)(c.context, c.builder)
    place = c.builder.bitcast(array._getpointer(), c.pyapi.voidptr)
    adapt = cgutils.get_or_insert_function(c.builder.module, _ADAPT, "numba_adapt_ndarray")
    return array, cgutils.is_not_null(c.builder, c.builder.call(adapt, (obj, place)))


@intrinsic(prefer_literal=True)
def on_stack(typingctx: Any, number: Any, count: Any) -> Any:
    """A pointer to room for ``count`` numbers, which is a constant."""
    dtype = types.unliteral(number)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return cgutils.alloca_once(builder, context.get_data_type(dtype), count.literal_value)

    return types.CPointer(dtype)(number, count), generate


@intrinsic
def turned_in_place(typingctx: Any, array: Any) -> Any:
    """The same memory as a C-contiguous array of the shape turned round."""
    turned = types.Array(array.dtype, 2, "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        given = context.make_array(array)(context, builder, args[0])
        result = context.make_array(turned)(context, builder)
        rows, cols = cgutils.unpack_tuple(builder, given.shape)
        populate_array(
            result,
            data=given.data,
            shape=cgutils.pack_array(builder, [cols, rows]),
            strides=cgutils.pack_array(
                builder, [builder.mul(rows, given.itemsize), given.itemsize]
            ),
            itemsize=given.itemsize,
            meminfo=None,
        )
        return result._getvalue()

    return turned(array), generate
