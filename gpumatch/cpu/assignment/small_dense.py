"""Shortest augmenting paths for small dense costs, in one compiled call.

If a problem is small, calls from Python take most of the time. So there is one call, which checks
the costs, copies them, solves and names the pairs. It cannot be stopped, and it returns no duals.
If all columns are to be matched, they are priced at their least costs and given to rows that have
these costs (column reduction). Each row that is left gets a shortest augmenting path.

The search is Dijkstra's, as in `gpumatch.cpu.assignment.dense_paths`. But scanning a row and
choosing the next column are loops without a branch, over whole vectors, because a processor cannot
predict branches on costs that it has not seen before. Beyond FEW columns, the copy is padded with
forbidden pairs. A column in the tree has the price -inf and the distance inf, so that nothing is
offered to it. The number of a free column is encoded in its mate, below 0. So the least mate of the
nearest columns names a free one if there is one.

If one row has all the least costs, for example if costs are products, trees are large and regular,
and the processor can predict the branches. Up to LISTED columns, those outside the tree are then in
a list and looked at one by one. The rows are taken from the end that is farther from its nearest
column, because that makes paths shorter.

    table[i, j]       cost of the pair
    table[PRICE, j]   dual of column j; if the search is by vectors, -inf while it is in the tree
    table[DIST, j]    distance of column j from the root; inf in the same case
    links[MATE, j]    row matched to column j; j - width if there is none
    links[PRED, j]    row from which column j is reached
    links[TREE, k]    columns of the tree in the order of joining; table[REACH, k] and
    table[PAID, k]    their distances and prices. As a list: the columns outside the tree, and after
                      them those of the tree
    found[COL, i]     column matched to row i, or -1; at last, the second of each pair
    found[ROW, k]     the first

For the shortest calls there is the function that `solver` has for a dtype. It reads the values from
where they are. `pairs` is needed only if that function has no result. Costs are float64, or int64
if integers are so large that sums of floats would round; then a number ``far`` above all costs
stands for inf. Vectors are rows of few arrays, because each view of an array costs an atomic count.
Small arrays are on the stack. The GIL is kept if leaving it would take a tenth of the time.

References
----------
Crouse, *On implementing 2D rectangular assignment algorithms*, IEEE Transactions on Aerospace and
Electronic Systems 52(4), 2016.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import carray, types

from gpumatch.cpu.numba_tools.compiled import inlined, short_kernel, strict_kernel
from gpumatch.cpu.numba_tools.self_test import short_calls_work
from gpumatch.cpu.numba_tools.short_calls import (
    Borrowed,
    Rows,
    by_strides,
    entry_of,
    leave_gil,
    number,
    on_stack,
    take_gil,
)
from gpumatch.cpu.numba_tools.vector_min import lesser

__all__ = ["MOST", "MOST_FLOATS", "pairs", "solver"]

MOST, MOST_FLOATS = 2**18, 2**20
"""Costs up to which a call ends within a fraction of a second, and before `assign` would.

Of integers there are fewer, because `assign` reads those as int32.
"""

PAD = 16  # columns that are read at once: 2 or 4 vectors of float64
FEW = 19  # columns up to which a whole vector of them is too many: a little more than one PAD
LISTED = 36  # columns up to which a list of them may be kept: about two PADs
SMALL = 64  # columns up to which the arrays are on the stack: 35 KiB there
QUICK = 16**2  # costs up to which the GIL is kept: to release it would take a tenth of the time
PRICE, DIST, REACH, PAID = range(-4, 0)
MATE, PRED, TREE = range(3)
ROW, COL = range(2)

_NONE = np.int32(2**31 - 1)
_ZERO = np.int32(0)
_TABLE, _LINKS = SMALL * (SMALL + 4), SMALL * 3


def pairs(values: np.ndarray, maximize: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """The rows and columns of a best full assignment; None if the values are not for this.

    They are not if they are too many or too large for exact sums, if there is NaN or an infinity of
    the wrong sign, or if there is no full assignment.
    """
    is_float = values.dtype.kind == "f"
    if values.ndim != 2 or values.size > (MOST_FLOATS if is_float else MOST):
        return None
    if solver(values.dtype) is None or (values.dtype.kind == "u" and _is_beyond_int64(values)):
        return None
    values = values.astype(np.float64 if is_float else np.int64, "C")
    found = solver(values.dtype)(values, maximize)
    if found is None and not is_float:
        found = _compiled(_large_integers, values.dtype)(values, maximize)
    return found


def _is_beyond_int64(values: np.ndarray) -> bool:
    return values.itemsize == 8 and values.size != 0 and bool(values.max() >= 2**63)


def solver(dtype: np.dtype) -> Any:
    """For a dtype, ``solve(values, maximize)``, which names the pairs; or None.

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
    """Copy the values as costs to be minimised, pad them, and tell whether all are valid."""
    sign = type(far)(-1 if maximize else 1)
    nrows, ncols = min(values.shape), max(values.shape)
    fit = True
    if turned:
        for col in range(ncols):
            for row in range(nrows):
                cost = sign * number(values[col, row])
                table[row, col] = cost
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
def _reduce_columns(table, links, found, far):
    """Price the columns at their least costs, and give them to rows that have these; how many."""
    nrows, width = found.shape[1], table.shape[1]
    for col in range(width):
        table[PRICE, col] = table[0, col]
        links[PRED, col] = 0
    for row in range(1, nrows):
        for col in range(width):
            cost, price, before = table[row, col], table[PRICE, col], links[PRED, col]
            links[PRED, col] = row if cost < price else before
            table[PRICE, col] = lesser(cost, price)
    count = 0
    for col in range(nrows):
        row = links[PRED, col]
        if found[COL, row] < 0 and table[PRICE, col] < far:
            found[COL, row] = col
            links[MATE, col] = row
            count += 1
    for col in range(width):
        table[PRICE, col] = table[PRICE, col] if table[PRICE, col] < far else 0
    return count


@inlined
def _nearest(table, row, far):
    """The distance of a row from its nearest column."""
    least = far
    for col in range(table.shape[1]):
        least = lesser(least, table[row, col] - table[PRICE, col])
    return least


@inlined
def _augment(table, links, found, listed, far):
    """Match all free rows by shortest augmenting paths; False when one has none.

    ``listed`` is the number of columns if a list of them is to be kept, else 0.
    """
    nrows = found.shape[1]
    backwards = listed and _nearest(table, nrows - 1, far) > _nearest(table, 0, far)
    for k in range(nrows):
        root = nrows - 1 - k if backwards else k
        if found[COL, root] >= 0:
            continue
        if listed:
            sink = _search_one_by_one(table, links, root, listed, far)
        else:
            sink = _search(table, links, found, root, far)
        if sink < 0:
            return False
        while True:
            row = links[PRED, sink]
            links[MATE, sink] = row
            found[COL, row], sink = sink, found[COL, row]
            if row == root:
                break
    return True


@inlined
def _search_one_by_one(table, links, root, ncols, far):
    """Search from ``root``; return the nearest free column, or -1 if there is none."""
    left, at, front = ncols, 0, far
    for k in range(ncols):
        col = ncols - 1 - k
        there = table[root, col] - table[PRICE, col]
        links[TREE, k] = col
        links[PRED, col] = root
        table[DIST, col] = there
        if there < front or (there == front and links[MATE, col] < 0):
            front = there
            at = k
    while front < far:
        col = np.uintp(links[TREE, at])  # Numba does not check unsigned indices for a sign
        row = links[MATE, col]
        if row < 0:
            for k in range(left, ncols):
                passed = np.uintp(links[TREE, k])
                table[PRICE, passed] += table[DIST, passed] - front
            return links[TREE, at]
        left -= 1
        links[TREE, at], links[TREE, left] = links[TREE, left], col
        offset = front - (table[row, col] - table[PRICE, col])
        least = far
        for k in range(left):
            col = np.uintp(links[TREE, k])
            there = (table[row, col] - table[PRICE, col]) + offset
            known = table[DIST, col]
            if there < known:
                known = there
                table[DIST, col] = there
                links[PRED, col] = row
            if known < least or (known == least and links[MATE, col] < 0):
                least = known
                at = k
        front = max(front, least)
    return -1


@inlined
def _search(table, links, found, root, far):
    """The same by vectors."""
    size = 0
    front = _start(table, links, root, far)
    while front < far:
        row = _least_mate(table, links, front)
        if row < 0:
            for k in range(size):
                table[PRICE, links[TREE, k]] = table[PAID, k] + (table[REACH, k] - front)
            return row + table.shape[1]
        col = np.uintp(found[COL, row])
        offset = front - (table[row, col] - table[PRICE, col])
        links[TREE, size] = col
        table[REACH, size] = front
        table[PAID, size] = table[PRICE, col]
        size += 1
        table[PRICE, col] = -2 * far  # farther than any offset brings nearer
        table[DIST, col] = far
        front = max(front, _relax(table, links, row, offset, far))
    return -1


@inlined
def _start(table, links, root, far):
    """Set the distances of the columns from ``root``; return the least."""
    least = far
    for col in range(table.shape[1]):
        there = table[root, col] - table[PRICE, col]
        table[DIST, col] = there
        links[PRED, col] = root
        least = lesser(least, there)
    return least


@inlined
def _relax(table, links, row, offset, far):
    """Offer every column outside the tree the way through ``row``; return the least distance."""
    least = far
    for col in range(table.shape[1]):
        there = (table[row, col] - table[PRICE, col]) + offset
        known, before = table[DIST, col], links[PRED, col]
        nearest = lesser(there, known)
        table[DIST, col] = nearest
        links[PRED, col] = row if there < known else before
        least = lesser(least, nearest)
    return least


@inlined
def _least_mate(table, links, front):
    """The least mate among the columns within ``front``."""
    least = _NONE
    for col in range(table.shape[1]):
        least = min(least, links[MATE, col] if table[DIST, col] <= front else _NONE)
    return least


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
def _match(values, turned, maximize, largest, far, table, links, found):
    """Name the pairs; False if the values are not valid, or allow no full assignment."""
    nrows, ncols = min(values.shape), max(values.shape)
    across, along = values.strides
    if (across, along) == (values.shape[1] * values.itemsize, values.itemsize):
        fit = _take(values, turned, maximize, largest, far, table)
    elif abs(across) >= abs(along):
        fit = _take(by_strides(values), turned, maximize, largest, far, table)
    else:
        fit = _take(by_strides(values).T, not turned, maximize, largest, far, table)
    if not fit:
        return False
    width = table.shape[1]
    for row in range(nrows):
        found[COL, row] = -1
    for col in range(width):
        links[MATE, col] = col - width
        table[PRICE, col] = 0
    count = _reduce_columns(table, links, found, far) if nrows == ncols else 0
    listed = ncols if count == 1 and ncols <= LISTED else 0
    if not _augment(table, links, found, listed, far):
        return False
    _name_pairs(links, found, turned, ncols)
    return True


@inlined
def _solve(values, maximize, most, largest, far):
    """Name the pairs; no rows if the values or their strides are not for this."""
    turned = values.shape[0] > values.shape[1]
    nrows, ncols = min(values.shape), max(values.shape)
    found = np.empty((2, nrows), np.int64)
    if nrows == 0:
        return found
    across, along = values.strides
    if values.size > most or across % values.itemsize != 0 or along % values.itemsize != 0:
        return found[:0]
    width = ncols if ncols <= FEW else -(-ncols // PAD) * PAD
    if width <= SMALL:
        table = carray(on_stack(far, _TABLE), (nrows + 4, width))
        links = carray(on_stack(_ZERO, _LINKS), (3, width))
    else:
        table = np.empty((nrows + 4, width), type(far))
        links = np.empty((3, width), np.int32)
    thread = leave_gil(values.size > QUICK)
    is_full = _match(values, turned, maximize, largest, far, table, links, found)
    take_gil(thread)
    return found if is_full else found[:0]


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
