"""Calls of live kernels, without Numba's dispatcher, which would look at each argument's type."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba import types

from gpumatch.cpu.numba_tools.self_test import short_calls_work

__all__ = ["compiled", "on_first_call"]

_NUMBERS = {"f8": types.float64, "i8": types.int64, "i4": types.int32, "b1": types.boolean}


@functools.cache
def compiled(kernel: Any, result: str, arguments: str) -> Any:
    """A short kernel for these types: "f8" is a number, "f8,2" an array of two dimensions.

    The arrays are borrowed (`gpumatch.cpu.numba_tools.short_calls`), and must be C-contiguous. The
    types are parted by blanks. An empty result means none.
    """
    if not short_calls_work():
        return kernel
    from gpumatch.cpu.numba_tools.short_calls import Borrowed

    kinds = []
    for name in arguments.split():
        number, _, ndim = name.partition(",")
        kinds.append(Borrowed(_NUMBERS[number], int(ndim)) if ndim else _NUMBERS[number])
    return kernel.compile((_NUMBERS[result] if result else types.void)(*kinds))


def on_first_call(
    names: dict[str, Any], name: str, kernel: Any, result: str, arguments: str
) -> Callable[..., Any]:
    """What compiles such a kernel when it is first called.

    ``names`` has the names of the calling module. From then on, ``name`` is the compiled kernel
    there, so that later calls take no longer.
    """

    def call(*given: Any) -> Any:
        names[name] = compiled(kernel, result, arguments)
        return names[name](*given)

    return call
