"""Small dense costs in one compiled call, which names the pairs as SciPy does.

If a problem is small, calls from Python take most of the time. So there is one call, which checks
the costs, copies them, solves (`gpumatch.cpu.assignment.small.search`) and names the pairs. It
cannot be stopped, and it returns no duals; `gpumatch.cpu.assignment.small.batch` does. If there are
no pairs, it tells why: INFEASIBLE means that a row has no column, and INVALID means that a cost is
NaN or an infinity of the wrong sign.

    found[COL, i]     column matched to row i, or -1; at last, the second of each pair
    found[ROW, k]     the first

For the shortest calls there is the function that `solver` has for a dtype. It reads the values from
where they are. `pairs` is needed only if that function has no result. Costs are float64, or int64
if integers are so large that sums of floats would round; then a number ``far`` above all costs
stands for inf. Small arrays are on the stack. The GIL is kept if leaving it would take a tenth of
the time.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import types

from gpumatch.cpu.assignment.small.search import (
    COL,
    LINKS,
    MATE,
    NEAR,
    NEAR_LINKS,
    NEAR_VECTORS,
    VECTORS,
    match_rows,
    price_columns,
    rows_at_once,
    vectors_in,
    width_for,
)
from gpumatch.cpu.numba_tools.compiled import inlined, short_kernel, strict_kernel
from gpumatch.cpu.numba_tools.self_test import short_calls_work
from gpumatch.cpu.numba_tools.short_calls import (
    Borrowed,
    Rows,
    by_strides,
    entry_of,
    leave_gil,
    number,
    take_gil,
)
from gpumatch.cpu.numba_tools.views import on_stack, view

__all__ = ["INFEASIBLE", "INVALID", "MOST", "MOST_FLOATS", "Pairs", "pairs", "solver", "takes"]

Pairs = tuple[np.ndarray, np.ndarray]

MOST, MOST_FLOATS = 2**18, 2**20
"""Costs up to which a call ends within a fraction of a second, and before `assign` would.

Of integers there are fewer, because `assign` reads those as int32.
"""

SMALL = 64  # columns up to which the table is on the stack, 32 KiB, as the vectors are up to NEAR
QUICK = 16**2  # costs up to which the GIL is kept: to release it would take a tenth of the time
ROW = 0
FOUND, INFEASIBLE, INVALID, UNFIT = range(4)
"""How a problem may end. A caller gets INFEASIBLE and INVALID; for UNFIT it gets None."""

_ZERO = np.int32(0)
_SMALL_TABLE = SMALL**2


def pairs(values: np.ndarray, maximize: bool) -> Pairs | int | None:
    """Return the rows and columns of a best full assignment, or INFEASIBLE, or INVALID.

    None if the values are not for this: if they are too many, or too large for exact sums.
    """
    if not takes(values) or solver(values.dtype) is None:
        return None
    if values.dtype.kind == "u" and _is_beyond_int64(values):
        return None
    is_float = values.dtype.kind == "f"
    values = values.astype(np.float64 if is_float else np.int64, "C")
    found = solver(values.dtype)(values, maximize)
    if found is None and not is_float:
        found = _compiled(_large_integers, values.dtype)(values, maximize)
    return found


def takes(values: np.ndarray) -> bool:
    """True if it is a matrix, and not too large."""
    return values.ndim == 2 and values.size <= (MOST_FLOATS if values.dtype.kind == "f" else MOST)


def _is_beyond_int64(values: np.ndarray) -> bool:
    return values.itemsize == 8 and values.size != 0 and bool(values.max() >= 2**63)


def solver(dtype: np.dtype) -> Any:
    """For a dtype, ``solve(values, maximize)``, which returns what `pairs` does; or None.

    ``values`` is an array of two dimensions. The result is None in the cases of `pairs`. It is also
    None if strides are not multiples of an entry, or integers too large for floats; then `pairs`
    may have a result.
    There is no such function where `short_calls_work` says no.
    """
    kernel = _KERNELS.get(dtype.newbyteorder("="))
    return _compiled(kernel, dtype) if kernel is not None and short_calls_work() else None


@functools.cache
def _compiled(kernel: Any, dtype: np.dtype) -> Any:
    """A kernel without Numba's dispatcher, which would look at the types of all arguments."""
    return kernel.compile(Rows(types.int64, 2)(Borrowed(entry_of(dtype), 2), types.boolean))


@strict_kernel  # else the caller's is inherited, and NaN passes
def _take(values, turned, maximize, largest, far, table):
    """Copy the values as costs to be minimised, pad them, and return if all are valid."""
    sign = type(far)(-1 if maximize else 1)
    nrows, ncols = min(values.shape), max(values.shape)
    fit = True
    if turned:
        step = rows_at_once(table)
        for first in range(0, nrows, step):
            part = table[first : min(first + step, nrows)]
            for col in range(ncols):
                for row in range(part.shape[0]):
                    cost = sign * number(values[col, first + row])
                    part[row, col] = cost
                    fit &= (-largest <= cost) & ((cost <= largest) | (cost == np.inf))
    else:
        for row in range(nrows):
            for col in range(ncols):
                cost = sign * number(values[row, col])
                table[row, col] = cost
                fit &= (-largest <= cost) & ((cost <= largest) | (cost == np.inf))
    for row in range(nrows):
        for col in range(ncols, table.shape[1]):
            table[row, col] = far
    return fit


@inlined
def _name_pairs(links, found, turned, ncols):
    """List the pairs by the rows of the values, which are the columns here if ``turned``."""
    if turned:
        count = 0
        for col in range(ncols):
            if links[MATE, col] >= 0:
                found[ROW, count] = col
                found[COL, count] = links[MATE, col]
                count += 1
    else:
        for row in range(found.shape[1]):
            found[ROW, row] = row


@inlined
def _match(values, turned, maximize, largest, far, table, vectors, links, found):
    """Name the pairs, and return FOUND; or return why there are none."""
    nrows, ncols = min(values.shape), max(values.shape)
    across, along = values.strides
    if (across, along) == (values.shape[1] * values.itemsize, values.itemsize):
        fit = _take(values, turned, maximize, largest, far, table)
    elif abs(across) >= abs(along):
        fit = _take(by_strides(values), turned, maximize, largest, far, table)
    else:
        fit = _take(by_strides(values).T, not turned, maximize, largest, far, table)
    if not fit:
        return INVALID if _is_invalid(table) else UNFIT
    if nrows == ncols:
        price_columns(table, vectors, links, far)
    stuck = match_rows(
        table, vectors, links, found, ncols, nrows == ncols, True, far, False, far, None
    )
    if stuck > 0:
        return INFEASIBLE
    _name_pairs(links, found, turned, ncols)
    return FOUND


@strict_kernel  # else NaN passes
def _is_invalid(table):
    """True if the table has a cost that is NaN or -inf."""
    for row in range(table.shape[0]):
        for col in range(table.shape[1]):
            cost = table[row, col]
            if cost != cost or cost == -np.inf:
                return True
    return False


@inlined
def _solve(values, maximize, most, largest, far):
    """Name the pairs; else an array without rows, which has the columns that `Rows` asks for."""
    turned = values.shape[0] > values.shape[1]
    nrows, ncols = min(values.shape), max(values.shape)
    found = np.empty((2, nrows), np.int64)
    if nrows == 0:
        return found
    across, along = values.strides
    if values.size > most or across % values.itemsize != 0 or along % values.itemsize != 0:
        return found[:0, :0]
    width = width_for(ncols)
    if width <= SMALL:
        table = view(on_stack(far, _SMALL_TABLE), 0, (nrows, width))
    else:
        table = np.empty((nrows, width), type(far))
    if width <= NEAR:
        vectors = vectors_in(on_stack(far, NEAR_VECTORS), width)
        links = view(on_stack(_ZERO, NEAR_LINKS), 0, (LINKS, width))
    else:
        vectors = np.empty((VECTORS, width), type(far))
        links = np.empty((LINKS, width), np.int32)
    thread = leave_gil(values.size > QUICK)
    end = _match(values, turned, maximize, largest, far, table, vectors, links, found)
    take_gil(thread)
    if end == FOUND:
        return found
    return np.empty((0, 0 if end == UNFIT else end), np.int64)


@short_kernel
def _floats(values, maximize):
    """Solve for floats of which no sum overflows."""
    return _solve(values, maximize, MOST_FLOATS, 2.0**1000, np.inf)


@short_kernel
def _integers(values, maximize):
    """Solve for integers of which sums of a few are exact in floats."""
    return _solve(values, maximize, MOST, 2.0**47, np.inf)


@short_kernel
def _large_integers(values, maximize):
    """Solve for larger integers without floats."""
    return _solve(values, maximize, MOST, 2**55, 2**60)


_KERNELS = {
    **dict.fromkeys(map(np.dtype, "efd"), _floats),
    **dict.fromkeys(map(np.dtype, "?bBhHiIlLqQ"), _integers),
}
