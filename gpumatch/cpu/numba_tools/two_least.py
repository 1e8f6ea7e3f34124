"""The least and the second least of many differences, by vectors.

    two_least(costs, prices, floor)  -> least, second, place, and whether no cost is below the floor

The differences are ``costs[j] - prices[j]``, of as many columns as there are prices. ``least`` is
at ``place``, the first of the columns that have it. ``second`` is the least of the other columns:
``least`` itself if two have it. No price is NaN. A cost that is NaN counts as one below the floor;
then the other answers mean nothing.

LLVM makes vector instructions of a loop that keeps the least of many numbers, but not of one that
keeps the second, too. So this is written in vectors of LANES numbers. Each lane keeps its own
least two, and they are compared at the end. The last vector ends with the last column, and its
lanes that have been looked at before count as infinite.

This depends on private parts of Numba (`private.arrays`), as `views` does. Where they do not work,
it is a loop.

Reference: LLVM Language Reference, llvm.minnum and llvm.vector.reduce.fmin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import TypingError, types
from numba.extending import intrinsic as _intrinsic

from gpumatch.cpu.numba_tools.compiled import inlined
from gpumatch.cpu.numba_tools.private import arrays
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.numba_tools.views import ARE_PLAIN

__all__ = ["LANES", "two_least"]

LANES = 16
"""Numbers at once: one or two registers of the widest kind, so that neither waits for the other."""

intrinsic: Any = _intrinsic
_FLAGS = ("nnan", "nsz")
_INT, _LONG, _DOUBLE = ir.IntType(32), ir.IntType(64), ir.DoubleType()
_BITS, _PLACES = ir.VectorType(ir.IntType(1), LANES), ir.VectorType(_INT, LANES)
_NUMBERS = ir.VectorType(_DOUBLE, LANES)


@inlined
def two_least(costs, prices, floor):
    """Return the least, the second, the place of the least, and if no cost is below the floor."""
    if prices.size >= LANES and not ARE_PLAIN:
        return _by_vectors(costs, prices, floor)
    return _one_by_one(costs, prices, floor)


@inlined
def _one_by_one(costs, prices, floor):
    least, second, place, fit = np.inf, np.inf, 0, True
    for col in range(prices.size):
        cost = costs[col]
        fit &= cost >= floor
        there = cost - prices[col]
        second = lesser(second, greater(least, there))
        place = col if there < least else place
        least = lesser(least, there)
    return least, second, place, fit


@intrinsic
def _by_vectors(typingctx: Any, costs: Any, prices: Any, floor: Any) -> Any:
    """Return what `_one_by_one` does, for at least LANES columns."""
    if costs.dtype not in (types.float32, types.float64) or prices.dtype != types.float64:
        raise TypingError(f"needs costs and prices that are floats, got {costs} and {prices}")
    result = types.Tuple((types.float64, types.float64, types.intp, types.boolean))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        looks = _Looks(context, builder, signature, args)
        least, second, place, fit = looks.all()
        return context.make_tuple(builder, result, (least, second, place, fit))

    return result(costs, prices, types.float64), generate


class _Looks:
    """The code of one look at all columns."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.builder = builder
        costs, prices = (
            context.make_array(kind)(context, builder, array)
            for kind, array in zip(signature.args, args[:2])
        )
        self.costs, self.prices = costs.data, prices.data
        (self.count,) = arrays.unpack_tuple(builder, prices.shape)
        self.floor = self._splat(args[2], _NUMBERS)
        self.iota = _PLACES([*range(LANES)])

    def all(self) -> tuple[Any, Any, Any, Any]:
        """The least, the second, the place, and if all are fit."""
        builder, count = self.builder, self.count
        far = _NUMBERS([float("inf")] * LANES)
        state = [
            arrays.alloca_once_value(builder, value)
            for value in (far, far, _PLACES([0] * LANES), _BITS([1] * LANES))
        ]
        lanes = count.type(LANES)
        whole = builder.sub(count, builder.urem(count, lanes))
        with arrays.for_range_slice(builder, count.type(0), whole, lanes, inc=True) as (at, _):
            self._look(state, at, None)
        with builder.if_then(builder.icmp_unsigned("<", whole, count)):
            last = builder.sub(count, lanes)
            self._look(state, last, builder.sub(whole, last))
        least, second, place, fit = map(builder.load, state)
        return *self._across(least, second, place), self._reduce("and", fit)

    def _look(self, state: list[Any], at: Any, seen: Any) -> None:
        """Look at LANES columns from ``at`` on, of which the first ``seen`` count as infinite."""
        builder = self.builder
        least, second, place, fit = map(builder.load, state)
        costs, prices = self._load(self.costs, at), self._load(self.prices, at)
        fit = builder.and_(fit, builder.fcmp_ordered(">=", costs, self.floor))
        there = builder.fsub(costs, prices)
        places = builder.add(self._splat(builder.trunc(at, _INT), _PLACES), self.iota)
        if seen is not None:
            is_seen = builder.icmp_unsigned(
                "<", self.iota, self._splat(builder.trunc(seen, _INT), _PLACES)
            )
            there = builder.select(is_seen, _NUMBERS([float("inf")] * LANES), there)
        nearer = builder.fcmp_ordered("<", there, least)
        second = self._call("minnum", second, self._call("maxnum", least, there))
        place = builder.select(nearer, places, place)
        least = self._call("minnum", least, there)
        for slot, value in zip(state, (least, second, place, fit)):
            builder.store(value, slot)

    def _across(self, least: Any, second: Any, place: Any) -> tuple[Any, Any, Any]:
        """The answers from those of all lanes."""
        builder = self.builder
        best = self._reduce("fmin", least)
        has_best = builder.fcmp_ordered("==", least, self._splat(best, _NUMBERS))
        others = self._reduce("fmin", builder.select(has_best, second, least))
        first = self._reduce("umin", builder.select(has_best, place, _PLACES([-1] * LANES)))
        bits = builder.bitcast(has_best, ir.IntType(LANES))
        more = builder.and_(bits, builder.sub(bits, bits.type(1)))
        is_tied = builder.icmp_unsigned("!=", more, more.type(0))
        return best, builder.select(is_tied, best, others), builder.zext(first, _LONG)

    def _load(self, data: Any, at: Any) -> Any:
        """LANES numbers from ``at`` on, as doubles."""
        builder = self.builder
        entry = data.type.pointee
        kind = ir.VectorType(entry, LANES)
        place = builder.bitcast(builder.gep(data, [at]), kind.as_pointer())
        numbers = builder.load(place, align=4 if entry == ir.FloatType() else 8)
        return numbers if entry == _DOUBLE else builder.fpext(numbers, _NUMBERS)

    def _splat(self, number: Any, kind: Any) -> Any:
        builder = self.builder
        one = builder.insert_element(kind(ir.Undefined), number, _INT(0))
        return builder.shuffle_vector(one, kind(ir.Undefined), _PLACES([0] * LANES))

    def _call(self, name: str, *numbers: Any) -> Any:
        kind = ir.FunctionType(_NUMBERS, [_NUMBERS] * len(numbers))
        function = arrays.get_or_insert_function(
            self.builder.module, kind, f"llvm.{name}.v{LANES}f64"
        )
        return self.builder.call(function, numbers, fastmath=_FLAGS)

    def _reduce(self, name: str, vector: Any) -> Any:
        entry = vector.type.element
        suffix = "f64" if entry == _DOUBLE else str(entry)
        function = arrays.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(entry, [vector.type]),
            f"llvm.vector.reduce.{name}.v{LANES}{suffix}",
        )
        return self.builder.call(function, [vector], fastmath=_FLAGS if name == "fmin" else ())
