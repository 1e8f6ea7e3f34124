"""Ways to save time on the arrays of short calls of compiled functions.

    Borrowed(entry, ndim)    -> the type of an array argument, for a signature
    entry_of(dtype)          -> the type of its entries
    number(entry)            -> in compiled code, the number that an entry stands for
    Rows(dtype, count)       -> the type of a result: the ``count`` rows of an array, or a reason
    leave_gil(flag)          -> in compiled code, release the GIL if ``flag`` is set
    take_gil(thread)         -> take it again, given what leave_gil returned
    by_strides(array)        -> in compiled code, a borrowed array that need not be contiguous
    Held()                   -> the type of an argument that compiled code gets as an object
    locate(arrays, k, place) -> in compiled code, write where array k of a held tuple is
    array_at(like, address, rows, cols, across, along)
                             -> in compiled code, the array of such a place, as if borrowed
    listed(pairs, begins, counts)
                             -> in compiled code, a list of pairs of new arrays, to return as Held

Numba counts each array argument as one more owner of its memory. That takes as long as the rest of
a short call, and it is not needed, because the caller holds its arguments until the call returns. A
function that borrows an array reads and writes it without becoming an owner, so it must neither
return nor keep it. The number of dimensions and the size of an entry are checked. The rest is up to
the caller:

- Another dtype of the same size is read as if it were the expected one.
- An array that is not C-contiguous must be read `by_strides`. The function sees the strides.
- Numba has no type for float16 and for numbers of the other byte order. Such entries must be read
  by `number`.

Wrapping one of Numba's arrays for Python takes even longer, and a call of `numpy.empty` does too. A
function that returns an array of two dimensions as Rows gives a tuple of new arrays with copies of
its rows. If it returns an array without rows, the result is the number of columns of that array: an
int, which tells why there are none, or None instead of 0.

To release the GIL and take it again costs a tenth of the shortest calls, so a function compiled
without ``nogil=True`` may decide. In between, nothing may raise, and no memory may be allocated.

This depends on private parts of Numba (`private.boxes`). `gpumatch.cpu.numba_tools.self_test`
checks that they are as expected. Where one of them is missing, this module cannot be imported, and
the general front door serves.

Reference: Numba Developer Manual, *Low-level extension API*; numba.core.boxing.unbox_array and
box_array.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.extending import NativeValue, box, models, register_model, unbox
from numba.extending import intrinsic as _intrinsic

from gpumatch.cpu.numba_tools.private import boxes

__all__ = [
    "ADAPT",
    "NEW",
    "Borrowed",
    "Held",
    "Rows",
    "array_at",
    "by_strides",
    "entry_of",
    "leave_gil",
    "listed",
    "locate",
    "number",
    "take_gil",
]

if boxes is None:
    raise ImportError("this Numba lacks what short calls are made of")
as_dtype, cgutils = boxes.as_dtype, boxes.cgutils

ADAPT, NEW = "numba_adapt_ndarray", "numba_ndarray_new"  # functions of Numba's C library

# Callers do not pass the typing context, which Numba's annotation of an intrinsic asks for.
intrinsic: Any = _intrinsic

_INT, _INTP = ir.IntType(32), cgutils.intp_t
# Sets data, shape and strides of a NumPy array, and no owner; returns 0 only for an array.
_ADAPT = ir.FunctionType(_INT, (cgutils.voidptr_t, cgutils.voidptr_t))
# An item of a tuple, which stays its owner.
_ITEM = ir.FunctionType(cgutils.voidptr_t, (cgutils.voidptr_t, _INTP))
_MOST_DIMENSIONS = 64  # of NumPy's arrays
# A new NumPy array of a number of dimensions, a shape, strides, data, a dtype's number, and 0.
_NEW = ir.FunctionType(
    cgutils.voidptr_t,
    (_INT, _INTP.as_pointer(), _INTP.as_pointer(), cgutils.voidptr_t, _INT, _INT),
)


class Half(types.Type):
    """A float16, as it is stored."""

    bitwidth = 16

    def __init__(self) -> None:
        super().__init__("Half")


class Swapped(types.Type):
    """A number of the other byte order, as it is stored."""

    def __init__(self, native: Any) -> None:
        self.native, self.bitwidth = native, native.bitwidth
        super().__init__(f"Swapped({native})")


class Borrowed(types.Array):
    """The type of a borrowed array."""

    def __init__(self, entry: Any, ndim: int) -> None:
        super().__init__(entry, ndim, "C", name=f"Borrowed({entry}, {ndim})")


class Held(types.Opaque):
    """The type of an object that the caller holds until the call returns."""

    def __init__(self) -> None:
        super().__init__("Held")


class Rows(types.Array):
    """The type of a result that Python gets as a tuple of its rows."""

    def __init__(self, dtype: Any, count: int) -> None:
        super().__init__(dtype, 2, "A", name=f"Rows({dtype}, {count})")
        self.number = count

    @property
    def key(self) -> Any:
        return *super().key, self.number


def entry_of(dtype: np.dtype) -> Any:
    """The type of the entries of arrays of a dtype."""
    native = dtype.newbyteorder("=")
    entry = Half() if native == np.float16 else from_dtype(native)
    return entry if dtype.isnative else Swapped(entry)


@register_model(Half)
@register_model(Swapped)
class _AsBits(models.PrimitiveModel):
    def __init__(self, manager: Any, entry: Any) -> None:
        super().__init__(manager, entry, ir.IntType(entry.bitwidth))


register_model(Borrowed)(models.ArrayModel)
register_model(Held)(models.OpaqueModel)
register_model(Rows)(models.ArrayModel)


@unbox(Borrowed)
def _unbox(typ: Any, obj: Any, c: Any) -> Any:
    array, failed = _adapted(typ, obj, c)
    size = c.context.get_abi_sizeof(c.context.get_data_type(typ.dtype))
    failed = c.builder.or_(
        failed, c.builder.icmp_unsigned("!=", array.itemsize, array.itemsize.type(size))
    )
    with c.builder.if_then(failed, likely=False):
        c.pyapi.err_set_string("PyExc_TypeError", f"needs an array like {typ}")
    return NativeValue(array._getvalue(), is_error=failed)


@unbox(Held)
def _unbox_held(typ: Any, obj: Any, c: Any) -> Any:
    return NativeValue(obj)


@box(Held)
def _box_held(typ: Any, obj: Any, c: Any) -> Any:
    return obj


@box(Rows)
def _box(typ: Any, value: Any, c: Any) -> Any:
    array = c.context.make_array(typ)(c.context, c.builder, value)
    count, length = cgutils.unpack_tuple(c.builder, array.shape)
    result = cgutils.alloca_once(c.builder, c.pyapi.pyobj)
    with c.builder.if_else(cgutils.is_null(c.builder, count)) as (without, some):
        with without, c.builder.if_else(cgutils.is_null(c.builder, length)) as (none, reason):
            with none:
                c.builder.store(c.pyapi.make_none(), result)
            with reason:
                c.builder.store(c.pyapi.long_from_ssize_t(length), result)
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
    new = cgutils.get_or_insert_function(c.builder.module, _NEW, NEW)
    number = _INT(as_dtype(dtype).num)
    obj = c.builder.call(new, (_INT(1), shape, strides, data, number, _INT(0)))
    with c.builder.if_then(cgutils.is_not_null(c.builder, obj)):
        array, _ = _adapted(types.Array(dtype, 1, "C"), obj, c)
        cgutils.raw_memcpy(c.builder, array.data, start, length, array.itemsize)
    return obj


def _adapted(typ: Any, obj: Any, c: Any) -> Any:
    """The array of an object, for Numba; and whether the object is no such array.

    Numba's C function writes a shape and strides of as many dimensions as the object has, at the
    end of the struct. Numbers that it should have left, or written, tell how many those were.
    """
    builder, kind = c.builder, c.context.get_value_type(typ)
    numbers = ir.ArrayType(_INTP, 2 * _MOST_DIMENSIONS)
    room = cgutils.alloca_once(builder, ir.LiteralStructType((*kind.elements[:-2], numbers)))
    last = len(kind.elements) - 2
    first_unset, last_set = (
        cgutils.gep_inbounds(builder, room, 0, last, at) for at in (2 * typ.ndim, 2 * typ.ndim - 1)
    )
    unset = _INTP(-(2**63))
    for place in (first_unset, last_set):
        builder.store(unset, place)
    adapt = cgutils.get_or_insert_function(builder.module, _ADAPT, ADAPT)
    failed = builder.call(adapt, (obj, builder.bitcast(room, c.pyapi.voidptr)))
    is_other = builder.or_(
        builder.icmp_signed("!=", builder.load(first_unset), unset),
        builder.icmp_signed("==", builder.load(last_set), unset),
    )
    value = builder.load(builder.bitcast(room, kind.as_pointer()))
    array = c.context.make_array(typ)(c.context, builder, value)
    return array, builder.or_(cgutils.is_not_null(builder, failed), is_other)


@intrinsic
def leave_gil(typingctx: Any, flag: Any) -> Any:
    """Release the GIL if ``flag`` is set; what `take_gil` needs."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        thread = cgutils.alloca_once_value(builder, cgutils.voidptr_t(None))
        with builder.if_then(args[0]):
            builder.store(context.get_python_api(builder).save_thread(), thread)
        return builder.load(thread)

    return types.voidptr(types.boolean), generate


@intrinsic
def take_gil(typingctx: Any, thread: Any) -> Any:
    """Take the GIL again if `leave_gil` has released it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        with builder.if_then(cgutils.is_not_null(builder, args[0])):
            context.get_python_api(builder).restore_thread(args[0])
        return context.get_dummy_value()

    return types.void(types.voidptr), generate


@intrinsic
def by_strides(typingctx: Any, array: Any) -> Any:
    """The same array, whose layout is not known when the function is compiled."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]

    return types.Array(array.dtype, array.ndim, "A")(array), generate


@intrinsic
def array_at(
    typingctx: Any, like: Any, address: Any, rows: Any, cols: Any, across: Any, along: Any
) -> Any:
    """An array of two dimensions at an address, without an owner; strides are in bytes."""
    result = types.Array(like.dtype, 2, "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = context.make_array(result)(context, builder)
        size = context.get_abi_sizeof(context.get_data_type(like.dtype))
        context.populate_array(
            made,
            data=builder.inttoptr(args[1], made.data.type),
            shape=args[2:4],
            strides=args[4:],
            itemsize=_INTP(size),
            meminfo=None,
        )
        return made._getvalue()

    return result(like, *5 * (types.int64,)), generate


@intrinsic
def locate(typingctx: Any, arrays: Any, k: Any, place: Any) -> Any:
    """Write the address, shape and strides of a matrix of a held tuple to five integers.

    The answer is False if it is no array of two dimensions.
    """
    kind = Borrowed(types.uint8, 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        api = context.get_python_api(builder)
        item = cgutils.get_or_insert_function(builder.module, _ITEM, "PyTuple_GetItem")
        obj = builder.call(item, args[:2])
        array, failed = _adapted(
            kind, obj, SimpleNamespace(context=context, builder=builder, pyapi=api)
        )
        numbers = context.make_array(place)(context, builder, args[2]).data
        shape, strides = (
            cgutils.unpack_tuple(builder, part) for part in (array.shape, array.strides)
        )
        address = builder.ptrtoint(array.data, _INTP)
        for at, value in enumerate((address, *shape, *strides)):
            builder.store(value, builder.gep(numbers, [_INTP(at)]))
        return builder.not_(failed)

    return types.boolean(arrays, types.intp, place), generate


@intrinsic
def listed(typingctx: Any, pairs: Any, begins: Any, counts: Any) -> Any:
    """A list with a tuple of two new arrays for each count, or None for one below 0.

    Those of k are copies of what begins at pairs[2 * begins[k]] and pairs[begins[k] + begins[k +
    1]].
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        api = context.get_python_api(builder)
        c = SimpleNamespace(context=context, builder=builder, pyapi=api)
        data, starts, sizes = (
            context.make_array(kind)(context, builder, array)
            for kind, array in zip(signature.args, args)
        )
        (length,) = cgutils.unpack_tuple(builder, sizes.shape)
        found = api.list_new(length)
        result = cgutils.alloca_once_value(builder, found)
        with cgutils.for_range(builder, length) as loop:
            begin, end, size = (
                builder.load(builder.gep(array.data, [at]))
                for array, at in (
                    (starts, loop.index),
                    (starts, builder.add(loop.index, _INTP(1))),
                    (sizes, loop.index),
                )
            )
            with builder.if_else(builder.icmp_signed("<", size, _INTP(0))) as (none, some):
                with none:
                    api.list_setitem(found, loop.index, api.make_none())
                with some:
                    both = api.tuple_new(2)
                    api.list_setitem(found, loop.index, both)
                    for k, at in enumerate((builder.add(begin, begin), builder.add(begin, end))):
                        own = _new(pairs.dtype, builder.gep(data.data, [at]), size, c)
                        api.tuple_setitem(both, k, own)
                        with builder.if_then(cgutils.is_null(builder, own), likely=False):
                            builder.store(api.get_null_object(), result)
        with builder.if_then(cgutils.is_null(builder, builder.load(result)), likely=False):
            api.decref(found)
        return builder.load(result)

    return Held()(pairs, begins, counts), generate


@intrinsic
def number(typingctx: Any, entry: Any) -> Any:
    """The number that an entry stands for; a float16's is a float64."""
    is_swapped = isinstance(entry, Swapped)
    native = entry.native if is_swapped else entry
    result = types.float64 if isinstance(native, Half) else native

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.bswap(args[0]) if is_swapped else args[0]
        if isinstance(native, Half):
            return _widened(builder, bits)
        return builder.bitcast(bits, context.get_value_type(result)) if is_swapped else bits

    return result(entry), generate


def _widened(builder: Any, bits: Any) -> Any:
    """The float64 of a float16, which with its exponent in a float32 is 2**112 times too small."""
    single = ir.FloatType()
    bits = builder.zext(bits, _INT)
    small = builder.shl(builder.and_(bits, _INT(0x7FFF)), _INT(13))
    scaled = builder.fmul(builder.bitcast(small, single), ir.Constant(single, 2.0**112))
    is_finite = builder.icmp_unsigned("<", small, _INT(0x1F << 23))
    infinite = builder.bitcast(builder.or_(small, _INT(0xFF << 23)), single)  # or NaN
    magnitude = builder.select(is_finite, scaled, infinite)
    sign = builder.shl(builder.and_(bits, _INT(0x8000)), _INT(16))
    signed = builder.or_(builder.bitcast(magnitude, _INT), sign)
    return builder.fpext(builder.bitcast(signed, single), ir.DoubleType())
