"""Numba's typing context, with a memory of what operations on numbers and arrays return.

To find the type of an operation, Numba asks all functions that are registered for it, those for
strings, lists and times too. It asks several times about each operation in a function. For the
truth of numbers and the entries of arrays alone, this took a sixth of the time of a compilation.

Only operators and `bool` are remembered, and only of numbers, arrays, and tuples of these. What
Numba compiles for a call of another function may depend on the caller's flags.

This depends on private parts of Numba (`private.compiler`): all that a context knows is in its
attributes, and inference asks `resolve_function_type`.
"""

from __future__ import annotations

import operator
from typing import Any

from numba import types

from gpumatch.cpu.numba_tools.private import compiler

__all__ = ["Operations"]

_OPERATIONS = {bool, *(getattr(operator, name) for name in operator.__all__)}
_PLAIN = types.Number | types.Boolean | types.Array


class Operations(compiler.Context):
    """The context ``known``, whose knowledge it shares, with a memory of operations."""

    def __init__(self, known: Any) -> None:
        self.__dict__.update(vars(known))
        self._signatures: dict[Any, Any] = {}

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """The signature of a call; Numba calls this."""
        operation = getattr(func, "typing_key", func)
        if operation not in _OPERATIONS or kws or not all(_is_plain(one) for one in args):
            return super().resolve_function_type(func, args, kws)
        if (func, args) not in self._signatures:
            self._signatures[func, args] = super().resolve_function_type(func, args, kws)
        return self._signatures[func, args]


def _is_plain(one: Any) -> bool:
    return isinstance(one, _PLAIN) or (
        isinstance(one, types.UniTuple | types.Tuple) and all(_is_plain(part) for part in one.types)
    )
