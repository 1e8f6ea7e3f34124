"""What pairs cost, and the mates of rows and columns, in calls of less than a microsecond.

values[i, j]    costs, strided as they like
rows, cols      the pairs
row_to_col[i]   column of row i, or -1
col_to_row[j]   row of column j, or -1
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import types

from gpumatch.cpu.numba_tools.compiled import short_kernel
from gpumatch.cpu.numba_tools.self_test import short_calls_work
from gpumatch.cpu.numba_tools.short_calls import Borrowed, by_strides, entry_of, number

__all__ = ["matcher", "summer"]

_PAIRS = Borrowed(types.int64, 1), Borrowed(types.int64, 1)
_MATES = Borrowed(types.int32, 1), Borrowed(types.int32, 1)


@functools.cache
def summer(dtype: np.dtype) -> Any:
    """For a dtype, ``total(values, rows, cols)``, a float; None where short calls do not work."""
    if not short_calls_work():
        return None
    return _total.compile(types.float64(Borrowed(entry_of(dtype), 2), *_PAIRS))


@functools.cache
def matcher() -> Any:
    """``match(rows, cols, row_to_col, col_to_row)``; None where short calls do not work."""
    return _match.compile(types.void(*_PAIRS, *_MATES)) if short_calls_work() else None


@short_kernel
def _total(values, rows, cols):
    """Return the sum of the costs of the pairs, in their order."""
    strided, total = by_strides(values), 0.0
    for k in range(rows.size):
        total += number(strided[rows[k], cols[k]])
    return total


@short_kernel
def _match(rows, cols, row_to_col, col_to_row):
    """Write the mates."""
    for row in range(row_to_col.size):
        row_to_col[row] = -1
    for col in range(col_to_row.size):
        col_to_row[col] = -1
    for k in range(rows.size):
        row_to_col[rows[k]] = cols[k]
        col_to_row[cols[k]] = rows[k]
