"""True if this Numba has the private parts that `gpumatch.cpu.numba_tools.short_calls` depends on.

These are the order of the fields in Numba's struct of an array, two functions of its C library, and
what these do with a struct without an owner. Numba promises none of it. Another version could read
or write wrong memory. So nothing is compiled before the fields and functions have been checked, and
nothing is solved before an array has been passed in and out correctly.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import types

from gpumatch.cpu.numba_tools.compiled import short_kernel
from gpumatch.cpu.numba_tools.private import boxes
from gpumatch.cpu.numba_tools.short_calls import ADAPT, NEW, Borrowed, Rows, by_strides, entry_of

__all__ = ["short_calls_work"]

FIELDS = ("meminfo", "parent", "nitems", "itemsize", "data", "shape", "strides")
"""Of `arystruct_t` in Numba's _arraystruct.h; the last two are one array of numbers in C."""
VALUES = np.arange(24).reshape(4, 6)


@functools.cache
def short_calls_work() -> bool:
    """True if all is as expected. The first call compiles a function, or loads it."""
    try:
        return _has_fields() and _has_functions() and _passes_arrays()
    except Exception:  # then the private parts are not as expected
        return False


def _has_fields() -> bool:
    model = boxes.default_manager.lookup(Borrowed(types.int64, 2))
    order = [model.get_field_position(name) for name in FIELDS]
    return order == [*range(len(model.get_value_type().elements))]


def _has_functions() -> bool:
    assert boxes.cpu_target.target_context is not None  # its making registers the functions
    return all(llvm.address_of_symbol(name) is not None for name in (ADAPT, NEW))


def _passes_arrays() -> bool:
    """True if a whole and a strided array arrive as they are, and rows come back as copies."""
    borrowed = Borrowed(entry_of(VALUES.dtype), 2)
    look = _look.compile(Rows(types.int64, 2)(borrowed, borrowed))
    whole, part, seen = VALUES.copy(), VALUES[::2, ::-3], np.zeros((1, 4), VALUES.dtype)
    return all(_looks_right(look, values, seen) for values in (whole, part))


def _looks_right(look: Callable[..., Any], values: np.ndarray, seen: np.ndarray) -> bool:
    owners = sys.getrefcount(values)
    rows = look(values, seen)
    return (
        seen.tolist() == [[*values.shape, *values.strides]]
        and [row.tolist() for row in rows] == values[:2].tolist()
        and all(row.flags.owndata for row in rows)
        and sys.getrefcount(values) == owners
    )


@short_kernel
def _look(values, seen):
    """Write the shape and strides of an array, and return its first two rows."""
    seen[0, 0], seen[0, 1] = values.shape
    seen[0, 2], seen[0, 3] = values.strides
    strided = by_strides(values)
    rows = np.empty((2, values.shape[1]), np.int64)
    for row in range(2):
        for col in range(values.shape[1]):
            rows[row, col] = strided[row, col]
    return rows
