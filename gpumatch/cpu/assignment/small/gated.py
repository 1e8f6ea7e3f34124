"""Pairs under a limit in one compiled call: what trackers ask for, frame by frame.

A pair costs what its entry says, and an unmatched row costs ``limit``, or its own of ``gates``. It
makes no difference which side pays, as each pair takes one vertex from both. The call returns pairs
only; `gpumatch.cpu.assignment.small.batch` has duals. `gpumatch.cpu.assignment.small.frames` solves
many matrices.

The rows that bid (`gpumatch.cpu.assignment.small.bids`) are the lines of memory, and the longer
ones. If the values lie so, if they are minimised, and if there is one limit, they are read where
they are. Else they are copied to a table, negated to be maximised, and with gates each row less its
gate, under the limit 0.

    values[i, j]     costs; float64 or float32, strided as they like
    limit, gates[i]  costs of an unmatched row, to be minimised; ``gates`` are empty if all have
                     ``limit``
    found[ROW, k]    row of pair k, rows ascending
    found[COL, k]    its column

"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import types

from gpumatch.cpu.assignment.small.bids import match_under_limit
from gpumatch.cpu.assignment.small.search import (
    COL,
    LINKS,
    MATE,
    NEAR,
    NEAR_LINKS,
    NEAR_VECTORS,
    VECTORS,
    vectors_in,
)
from gpumatch.cpu.numba_tools.compiled import inlined, short_kernel, strict_kernel, vector_kernel
from gpumatch.cpu.numba_tools.self_test import short_calls_work
from gpumatch.cpu.numba_tools.short_calls import (
    Borrowed,
    Rows,
    by_strides,
    entry_of,
    leave_gil,
    take_gil,
)
from gpumatch.cpu.numba_tools.turned import turn
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.numba_tools.views import on_stack, view

__all__ = [
    "LARGEST",
    "MOST",
    "NO_GATES",
    "match",
    "solver",
]

MOST = 2**20
"""Costs up to which a call ends within a fraction of a second."""
LARGEST = 2.0**1000
"""Magnitude up to which no sum of costs and limits overflows: limits beyond must not come here."""
NO_GATES = np.empty(0)

SMALL = 2**12  # costs up to which a table is on the stack: 32 KiB
QUICK = 16**2  # costs up to which the GIL is kept: to release it would take a tenth of the time
ROW = 0
_ZERO = np.int32(0)


@functools.cache
def solver(dtype: np.dtype) -> Any:
    """For float64 or float32, ``solve(values, maximize, limit, gates)``; None for others.

    The result is a tuple of rows and columns. It is None if another way must answer: if there are
    too many costs, or strides are not multiples of an entry. It is 1 if a cost is NaN
    or below -LARGEST. There is no such function where `short_calls_work` says no.
    """
    if dtype not in (np.float64, np.float32) or not short_calls_work():
        return None
    kinds = Borrowed(entry_of(dtype), 2), types.boolean, types.float64, Borrowed(types.float64, 1)
    return _solve.compile(Rows(types.int64, 2)(*kinds))


@short_kernel
def _solve(values, maximize, limit, gates):
    """Name the pairs; else an array without rows, which has the columns that `Rows` asks for."""
    rows, cols = values.shape
    short, longest = lesser(rows, cols), greater(rows, cols)
    across, along = values.strides
    if values.size > MOST or across % values.itemsize != 0 or along % values.itemsize != 0:
        return np.empty((0, 0), np.int64)
    found = np.empty((2, short), np.int64)
    if short == 0:
        return found
    near = on_stack(values.dtype.type(0), SMALL)
    memory = near if values.size <= SMALL else np.empty(values.size, values.dtype)
    if longest <= NEAR:
        vectors = vectors_in(on_stack(0.0, NEAR_VECTORS), longest)
        links = view(on_stack(_ZERO, NEAR_LINKS), 0, (LINKS, longest))
    else:
        vectors, links = np.empty((VECTORS, longest)), np.empty((LINKS, longest), np.int32)
    thread = leave_gil(values.size > QUICK)
    count = match(values, maximize, limit, gates, memory, vectors, links, found)
    take_gil(thread)
    return found[:, :count] if count >= 0 else np.empty((0, 1), np.int64)


@vector_kernel
def match(values, maximize, limit, gates, memory, vectors, links, found):
    """Name the pairs of a matrix, and return how many; -1 if a cost is not valid."""
    rows, cols = values.shape
    across, along = values.strides
    size, has_gates = values.itemsize, gates.size > 0
    is_turned = rows > cols or (rows == cols and along != size)
    short, longest = lesser(rows, cols), greater(rows, cols)
    by_rows, by_cols = (
        across == cols * size and along == size,
        along == rows * size and across == size,
    )
    if (by_cols if is_turned else by_rows) and not maximize and not has_gates:
        table = view(values, (0, 0), (short, longest))
    else:
        table = view(memory, 0, (short, longest))
        if by_cols if is_turned else by_rows:
            _copy(view(values, (0, 0), (short, longest)), table)
        elif by_rows or by_cols:
            turn(view(values, (0, 0), (longest, short)), table)
        else:
            strided = by_strides(values)
            _copy(strided.T if is_turned else strided, table)
        if maximize or has_gates:
            _adjust(table, maximize, gates, is_turned)
    if not match_under_limit(
        table, vectors, links, found, 0.0 if has_gates else limit, None, None, -LARGEST, np.inf
    ):
        return -1
    return _name_pairs(links, found, is_turned, longest)


@strict_kernel  # else NaN may become another number, here and in the next two
def _copy(values, table):
    """Copy the values to the table."""
    for line in range(table.shape[0]):
        for col in range(table.shape[1]):
            table[line, col] = values[line, col]


@strict_kernel
def _adjust(table, maximize, gates, is_turned):
    """Make values costs to be minimised, less the gates of their rows."""
    sign = table.dtype.type(-1 if maximize else 1)
    for line in range(table.shape[0]):
        for col in range(table.shape[1]):
            table[line, col] *= sign
        if gates.size > 0:
            for col in range(table.shape[1]):
                table[line, col] -= gates[col if is_turned else line]


@inlined
def _name_pairs(links, found, is_turned, longest):
    """List the pairs by the rows of the values, which are the columns here if turned; how many."""
    count = 0
    if is_turned:
        for col in range(longest):
            if links[MATE, col] >= 0:
                found[ROW, count] = col
                found[COL, count] = links[MATE, col]
                count += 1
    else:
        for row in range(found.shape[1]):
            col = found[COL, row]
            found[ROW, count] = row
            found[COL, count] = col
            count += col >= 0
    return count
