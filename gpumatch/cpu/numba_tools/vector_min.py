"""The lesser of two numbers, for loops that are to become vector instructions.

LLVM turns a loop that keeps the least of many numbers into vector instructions only if it knows
that no NaN is among them. Numba's ``fastmath`` does not tell it so for a comparison. This does.

    lesser(one, two)  -> the lesser of two numbers of one type, neither of them NaN

Reference: LLVM Language Reference, llvm.minnum and llvm.smin.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import intrinsic as _intrinsic

__all__ = ["lesser"]

# Callers do not pass the typing context, which Numba's annotation of an intrinsic asks for.
intrinsic: Any = _intrinsic


@intrinsic
def lesser(typingctx: Any, one: Any, two: Any) -> Any:
    """The lesser of two numbers of one type."""
    if one != two or not isinstance(one, types.Float | types.Integer):
        raise TypingError(f"needs two numbers of one type, got {one} and {two}")
    name = "llvm.minnum" if isinstance(one, types.Float) else "llvm.smin"
    flags = ("nnan", "nsz") if isinstance(one, types.Float) else ()

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = args[0].type
        function = ir.FunctionType(number, (number, number))
        function = builder.module.declare_intrinsic(name, (number,), function)
        return builder.call(function, args, fastmath=flags)

    return one(one, two), generate
