"""Shortest augmenting paths for small dense costs, in one compiled call.

Where a problem is small, calls from Python take most of the time. So there is one, which checks the
costs, copies them, solves and names the pairs; it neither stops on the way nor tells of the duals.
If all columns are to be matched, they are priced at their least costs and given to rows that have
those (column reduction). Each row that is left gets a shortest augmenting path.

The search is Dijkstra's, as in `gpumatch.cpu.dense_paths`, but to scan a row and to choose the next
column are loops without a branch, over whole vectors: beyond FEW columns, the copy is padded with
forbidden pairs. A column in the tree has the price -inf and the distance inf, so that nothing is
offered to it. The number of a free column is hidden in its mate, below 0: the least mate of the
nearest columns names a free one if there is one.

    state[PRICE, j]   dual of column j; -inf while it is in the tree
    state[DIST, j]    distance of column j from the root; inf while it is in the tree
    links[MATE, j]    row matched to column j; j - width where there is none
    links[PRED, j]    row from which column j is reached
    links[COL, i]     column matched to row i, or -1
    links[TREE, k]    columns of the tree in the order of joining; state[REACH, k] and
    state[PAID, k]    their distances and prices

A caller in a hurry takes the function that `solver` has for its dtype, allocates the result, and
asks `pairs` only if that fails. Costs are float64; or int64, where integers are so large that sums
of floats would round, and then a number ``far`` above all costs stands for inf. Vectors are rows of
few arrays, because each view of an array costs an atomic count.

References
----------
Crouse, *On implementing 2D rectangular assignment algorithms*, IEEE Transactions on Aerospace and
Electronic Systems 52(4), 2016.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import from_dtype, njit, types
from numpy import empty

from gpumatch.cpu.lent import Lent
from gpumatch.cpu.reductions import lesser

__all__ = ["MOST", "MOST_FLOATS", "pairs", "solver"]

MOST, MOST_FLOATS = 2**18, 2**20
"""Costs up to which a call ends within a fraction of a second, and before `assign` would.

Of integers there are fewer, because `assign` reads those as int32.
"""

PAD = 16  # columns that are read at once
FEW = 19  # columns up to which a whole vector of them is too many
PRICE, DIST, REACH, PAID = range(4)
MATE, PRED, COL, TREE = range(4)

_NONE = np.int32(2**31 - 1)
_INT64 = np.dtype(np.int64)
_DTYPES = frozenset(map(np.dtype, "?bBhHiIlLqQefd"))

_inlined = njit(inline="always")
_kernel = njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})


def pairs(values: np.ndarray, maximize: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """The rows and columns of a best full assignment; None where the values are not for this.

    So are too many of them, numbers too large for exact sums, NaN, infinities of the wrong sign,
    and costs that have no full assignment.
    """
    if values.dtype not in _DTYPES or values.ndim != 2:
        return None
    count = min(values.shape)
    row_ind, col_ind = empty(count, _INT64), empty(count, _INT64)
    return (row_ind, col_ind) if _by_copy(values, maximize, row_ind, col_ind) else None


@functools.cache
def solver(dtype: np.dtype) -> Any:
    """For a dtype, ``solve(values, maximize, row_ind, col_ind)``, which names the pairs; or None.

    ``values`` has two dimensions, and the int64 arrays as many entries as the smaller has. False
    where `pairs` may do better, because of the layout in memory, and where it gives None.
    """
    kernel = _KERNELS.get(dtype)
    if kernel is None:
        return _by_copy if dtype in _DTYPES else None
    values, indices = Lent(from_dtype(dtype), 2), Lent(types.int64, 1)
    # Numba's dispatcher, which looks at the types of all arguments, would take as long again.
    return kernel.compile(types.boolean(values, types.boolean, indices, indices))


def _by_copy(values: np.ndarray, maximize: bool, row_ind: np.ndarray, col_ind: np.ndarray) -> bool:
    """Name the pairs for any of the dtypes and layouts."""
    is_float = values.dtype.kind == "f"
    if values.size > (MOST_FLOATS if is_float else MOST):
        return False
    if values.dtype.kind == "u" and values.size and values.max() >= 2**63:
        return False
    values = values.astype(np.float64 if is_float else np.int64, "C")
    if solver(values.dtype)(values, maximize, row_ind, col_ind):
        return True
    return not is_float and _large_integers(values, bool(maximize), row_ind, col_ind)


@njit(cache=True, nogil=True, fastmath=False)  # else its caller's is inherited, and NaN passes
def _take(values, turned, maximize, largest, far, costs):
    """Copy the values as costs to be minimised, pad them, and tell whether all are fit."""
    sign = values.dtype.type(-1 if maximize else 1)
    nrows, ncols = min(values.shape), max(values.shape)
    fit = True
    if turned:
        for col in range(ncols):
            for row in range(nrows):
                cost = sign * values[col, row]
                costs[row, col] = cost
                fit &= (-largest <= cost) & ((cost <= largest) | (cost == np.inf))
    else:
        for row in range(nrows):
            for col in range(ncols):
                cost = sign * values[row, col]
                costs[row, col] = cost
                fit &= (-largest <= cost) & ((cost <= largest) | (cost == np.inf))
    for row in range(nrows):
        for col in range(ncols, costs.shape[1]):
            costs[row, col] = far
    return fit


@_inlined
def _reduce_columns(costs, state, links, far):
    """Price the columns at their least costs, and give them to rows that have those."""
    nrows, width = costs.shape
    for col in range(width):
        state[PRICE, col] = costs[0, col]
        links[PRED, col] = 0
    for row in range(1, nrows):
        for col in range(width):
            cost, price, before = costs[row, col], state[PRICE, col], links[PRED, col]
            links[PRED, col] = row if cost < price else before
            state[PRICE, col] = lesser(cost, price)
    for col in range(nrows):
        row = links[PRED, col]
        if links[COL, row] < 0 and state[PRICE, col] < far:
            links[COL, row] = col
            links[MATE, col] = row
    for col in range(width):
        state[PRICE, col] = state[PRICE, col] if state[PRICE, col] < far else 0


@_inlined
def _augment(costs, state, links, far):
    """Match all free rows by shortest augmenting paths; False when one has none."""
    nrows, width = costs.shape
    for root in range(nrows):
        if links[COL, root] >= 0:
            continue
        front = _start(costs, state, links, root, far)
        size = 0
        while True:
            if front == far:
                return False
            row = _least_mate(state, links, width, front)
            if row < 0:
                break
            col = links[COL, row]
            offset = front - (costs[row, col] - state[PRICE, col])
            links[TREE, size] = col
            state[REACH, size] = front
            state[PAID, size] = state[PRICE, col]
            size += 1
            state[PRICE, col] = -2 * far  # farther than any offset brings nearer
            state[DIST, col] = far
            front = max(front, _relax(costs, state, links, row, offset, far))
        for k in range(size):
            state[PRICE, links[TREE, k]] = state[PAID, k] + (state[REACH, k] - front)
        sink = row + width
        while True:
            row = links[PRED, sink]
            links[MATE, sink] = row
            links[COL, row], sink = sink, links[COL, row]
            if row == root:
                break
    return True


@_inlined
def _start(costs, state, links, root, far):
    """Set the distances of the columns from ``root``; the least."""
    least = far
    for col in range(costs.shape[1]):
        there = costs[root, col] - state[PRICE, col]
        state[DIST, col] = there
        links[PRED, col] = root
        least = lesser(least, there)
    return least


@_inlined
def _relax(costs, state, links, row, offset, far):
    """Offer every column outside the tree the way through ``row``; the least distance then."""
    least = far
    for col in range(costs.shape[1]):
        there = (costs[row, col] - state[PRICE, col]) + offset
        known, before = state[DIST, col], links[PRED, col]
        nearest = lesser(there, known)
        state[DIST, col] = nearest
        links[PRED, col] = row if there < known else before
        least = lesser(least, nearest)
    return least


@_inlined
def _least_mate(state, links, width, front):
    """The least mate among the columns within ``front``."""
    least = _NONE
    for col in range(width):
        least = min(least, links[MATE, col] if state[DIST, col] <= front else _NONE)
    return least


@_inlined
def _name_pairs(links, turned, nrows, ncols, row_ind, col_ind):
    """List the pairs by the rows of the values, which are our columns where ``turned``."""
    if turned:
        count = 0
        for col in range(ncols):
            if links[MATE, col] >= 0:
                row_ind[count] = col
                col_ind[count] = links[MATE, col]
                count += 1
    else:
        for row in range(nrows):
            row_ind[row] = row
            col_ind[row] = links[COL, row]


@_inlined
def _solve(values, maximize, most, largest, far, row_ind, col_ind):
    """Name the pairs; False where the values are not for this, or not C-contiguous."""
    turned = values.shape[0] > values.shape[1]
    nrows, ncols = min(values.shape), max(values.shape)
    if nrows == 0:
        return True
    is_plain = values.strides == (values.shape[1] * values.itemsize, values.itemsize)
    if values.size > most or not is_plain:
        return False
    width = ncols if ncols <= FEW else -(-ncols // PAD) * PAD
    costs = np.empty((nrows, width), type(far))
    state = np.empty((4, width), type(far))
    links = np.empty((4, width), np.int32)
    if not _take(values, turned, maximize, largest, far, costs):
        return False
    for col in range(width):
        links[COL, col] = -1
        links[MATE, col] = col - width
        state[PRICE, col] = 0
    if nrows == ncols:
        _reduce_columns(costs, state, links, far)
    if not _augment(costs, state, links, far):
        return False
    _name_pairs(links, turned, nrows, ncols, row_ind, col_ind)
    return True


@_kernel
def _floats(values, maximize, row_ind, col_ind):
    """Solve for floats of which no sum overflows."""
    return _solve(values, maximize, MOST_FLOATS, 2.0**1000, np.inf, row_ind, col_ind)


@_kernel
def _integers(values, maximize, row_ind, col_ind):
    """Solve for integers of which sums of a few are exact in floats."""
    return _solve(values, maximize, MOST, 2.0**47, np.inf, row_ind, col_ind)


@_kernel
def _large_integers(values, maximize, row_ind, col_ind):
    """Solve for larger integers without floats."""
    return _solve(values, maximize, MOST, 2**55, 2**60, row_ind, col_ind)


_KERNELS = {
    np.dtype(np.float64): _floats,
    np.dtype(np.float32): _floats,
    np.dtype(np.int64): _integers,
    np.dtype(np.int32): _integers,
}
