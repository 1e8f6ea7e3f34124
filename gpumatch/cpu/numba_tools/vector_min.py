"""The lesser and the greater of two numbers, for loops that are to become vector instructions.

LLVM turns a loop that keeps the least of many numbers into vector instructions only if it knows
that no NaN is among them. Numba's ``fastmath`` does not tell it so for a comparison. These do.
They also compile sooner than Python's `min` and `max`.

    lesser(one, two)   -> the lesser of two numbers of one type, neither of them NaN
    greater(one, two)  -> the greater

Reference: LLVM Language Reference, llvm.minnum, llvm.smin, llvm.maxnum and llvm.smax.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import TypingError, types
from numba.extending import intrinsic as _intrinsic

__all__ = ["greater", "lesser"]

# Callers do not pass the typing context, which Numba's annotation of an intrinsic asks for.
intrinsic: Any = _intrinsic


@intrinsic
def lesser(typingctx: Any, one: Any, two: Any) -> Any:
    """The lesser of two numbers of one type."""
    return _of_two(one, two, "min")


@intrinsic
def greater(typingctx: Any, one: Any, two: Any) -> Any:
    """The greater of two numbers of one type."""
    return _of_two(one, two, "max")


def _of_two(one: Any, two: Any, which: str) -> Any:
    """The signature and the code of ``which``, "min" or "max"."""
    if one != two or not isinstance(one, types.Float | types.Integer):
        raise TypingError(f"needs two numbers of one type, got {one} and {two}")
    name = f"llvm.{which}num" if isinstance(one, types.Float) else f"llvm.s{which}"
    flags = ("nnan", "nsz") if isinstance(one, types.Float) else ()

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = args[0].type
        function = ir.FunctionType(number, (number, number))
        function = builder.module.declare_intrinsic(name, (number,), function)
        return builder.call(function, args, fastmath=flags)

    return one(one, two), generate
